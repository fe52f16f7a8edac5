"""The ablation of the scaler's settings, over a small folder of traces made here."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.scores import BASE, Score, Scores, Trace, choose
from benchmarks.settings import NEUTRAL, Change, Row, changes, find_dropped, make_row
from highwater.core.scaler import Mode, ScalerSettings
from tests.cdk_cli import ROOT

CAUTION = Change(Mode.FLOOR, "cautious_target_percent", 100)


def _settings(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.settings", "--processes", "1", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def _write(folder: Path, name: str, rates: list[int]) -> None:
    lines = "".join(f"{minute},{rate}\n" for minute, rate in enumerate(rates))
    (folder / f"{name}.csv").write_text(f"minute_index,units\n{lines}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two traces that native-70 serves, one of them with a jump, and one that bursts out of nothing."""
    made = tmp_path / "traces"
    made.mkdir()
    _write(made, "calm", [600 + minute % 7 for minute in range(120)])
    _write(made, "jump", [700 if minute < 80 else 2_300 for minute in range(120)])
    _write(made, "idle", [9_000 if minute % 60 in (30, 31, 32) else 3 for minute in range(120)])
    return made


def test_folder_of_traces_becomes_a_table_with_a_row_per_mode_setting_and_neutral_value(folder: Path) -> None:
    done = _settings("--traces", str(folder))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["default", "neutral", "difference", "left", "out", "bought"]
    rows = [line.split() for line in lines[2 : lines.index("")]]
    assert [row[:2] for row in rows] == [[change.mode, change.setting] for change in changes()]
    forecast = next(line for line in lines if line.split()[:2] == ["floor", "forecast_target_percent"])
    assert forecast.endswith("  the default is neutral")
    below = lines[lines.index("") + 1 :]
    # the third throttles too much under native-70
    assert below[0] == "over calm, jump"
    assert below[2].startswith("so in both modes: ")
    # without an hour's end in these two hours nothing is lowered in either mode
    assert "lower_from_minute (0)" in below[2]
    assert [line.split()[0] for line in below[3:5]] == ["floor:", "direct:"]
    assert below[-1].split()[1:3] == ["runs", "in"]


def test_folder_that_is_not_there_is_skipped_loudly(tmp_path: Path) -> None:
    done = _settings("--traces", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"SKIPPED: no traces at {tmp_path / 'none'}; give a folder of CSV files with --traces\n"


def test_folder_with_too_few_traces_is_misuse(tmp_path: Path) -> None:
    _write(tmp_path, "calm", [600] * 60)
    done = _settings("--traces", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"settings: 1 serviceable traces in {tmp_path}; one of at least 2 is left out at a time\n"


def test_every_setting_but_those_measured_elsewhere_has_a_neutral_value() -> None:
    # benchmarks.pulses measures what is for fleets that report, benchmarks.batches what a throttle is worth
    others = {"mode", "pulsed_lower_from_minute", "throttle_price_requests"}
    assert set(NEUTRAL) == {field.name for field in fields(ScalerSettings)} - others


def test_neutral_value_that_is_the_default_is_the_default() -> None:
    assert Change(Mode.FLOOR, "forecast_target_percent", None).policy == "floor"
    assert Change(Mode.DIRECT, "forecast_target_percent", None).policy == "direct, forecast_target_percent=none"
    assert Change(Mode.DIRECT, "hold", timedelta(minutes=1)).policy == "direct, hold=1 min"


def _trace(name: str) -> Trace:
    return Trace(name, "made", Path(f"{name}.csv"), 60, 1.0, is_proxy=False)


def _scores(figures: dict[str, dict[str, tuple[float, float]]]) -> Scores:
    return {
        (trace, policy): Score(trace, policy, throttled, 1, cost, 2, 9_000.0)
        for trace, policies in figures.items()
        for policy, (throttled, cost) in policies.items()
    }


def test_the_other_traces_choose_for_the_one_that_is_left_out() -> None:
    traces = [_trace("a"), _trace("b"), _trace("c")]
    scores = _scores(
        {
            # the default is better by 0.1 in cost on a, the neutral value by half the throttles on b and on c
            "a": {BASE: (1_000, 100), "floor": (200, 90), CAUTION.policy: (200, 100)},
            "b": {BASE: (1_000, 100), "floor": (600, 100), CAUTION.policy: (100, 100)},
            "c": {BASE: (1_000, 100), "floor": (600, 100), CAUTION.policy: (100, 100)},
        }
    )
    row = make_row(CAUTION, traces, scores)
    assert row.kept == 0
    assert row.default == pytest.approx((1_400 / 3_000, 0.9 ** (1 / 3)))
    assert row.neutral == pytest.approx((400 / 3_000, 1))
    assert row.left_out == row.neutral
    assert row.buys == (0, 0)
    assert not row.is_worth


def test_setting_that_one_trace_alone_pays_for_buys_nothing_there() -> None:
    traces = [_trace("a"), _trace("b")]
    scores = _scores(
        {
            "a": {BASE: (1_000, 100), "floor": (0, 100), CAUTION.policy: (900, 100)},
            "b": {BASE: (1_000, 100), "floor": (500, 100), CAUTION.policy: (400, 100)},
        }
    )
    row = make_row(CAUTION, traces, scores)
    # b chooses the neutral value for a, and a the default for b
    assert row.kept == 1
    assert row.default[0] == 0.25
    assert row.neutral[0] == 0.65
    assert row.left_out[0] == 0.7
    assert not row.is_worth


def test_cost_alone_chooses_where_native_70_throttles_nothing_and_the_neutral_value_wins_a_tie() -> None:
    scores = _scores({"a": {BASE: (0, 100), "floor": (0, 90), "dear": (0, 95), "same": (0, 90)}})
    assert choose(["dear", "floor"], [_trace("a")], scores) == "floor"
    assert choose(["same", "floor"], [_trace("a")], scores) == "same"


def _row(mode: Mode, setting: str, neutral: int, bought: float, throttles: float = 0.2) -> Row:
    return Row(Change(mode, setting, neutral), (0.1, 0.9), (throttles + bought, 0.9), (throttles, 0.9), kept=2)


def test_setting_is_dropped_where_one_neutral_value_costs_too_little_in_both_modes() -> None:
    rows = [
        _row(Mode.FLOOR, "hold", 1, 0.005),
        _row(Mode.DIRECT, "hold", 1, 0.02),
        _row(Mode.FLOOR, "jump_percent", 101, 0.3),
        _row(Mode.DIRECT, "jump_percent", 101, 0.001),
        _row(Mode.FLOOR, "jump_percent", 10_000, 0.002),
        _row(Mode.DIRECT, "jump_percent", 10_000, -0.01),
        _row(Mode.FLOOR, "cautious_target_percent", 90, 0, throttles=0.3),
        _row(Mode.FLOOR, "cautious_target_percent", 100, 0),
    ]
    assert find_dropped(rows) == {"jump_percent": 10_000, "cautious_target_percent": 100}


def test_settings_that_are_tried_are_run_alone_on_short_buckets_too(folder: Path) -> None:
    tried = ["floor:", "direct:jump_percent=130,forecast_target_percent=none"]
    throttled = []
    for more in ((), ("--burst-seconds", "61")):
        done = _settings("--traces", str(folder), *(f"--try={each}" for each in tried), *more)
        assert done.returncode == 0, done.stderr
        head, *lines = done.stdout.splitlines()
        assert head.split() == ["throttles", "cost", "worst"]
        assert [line.split()[0] for line in lines] == tried
        throttled.append(float(lines[1].split()[1]))
    assert throttled[0] == 0
    assert throttled[1] > 0, "the jump outlasts 61 seconds"


def test_short_buckets_are_for_settings_that_are_tried() -> None:
    done = _settings("--burst-seconds", "60")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "settings: error: --burst-seconds is for settings that are given with --try"


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ("boosts:", "the mode must be floor or direct"),
        ("floor:mode=3", "mode is no setting that is a whole number"),
        ("floor:jump_percent=none", "invalid literal for int() with base 10: 'none'"),
        ("floor:jump_percent=7", "jump_percent must be from 101 to 10000, got 7"),
        ("floor:aim=70", "aim is no setting that is a whole number"),
    ],
)
def test_settings_that_do_not_exist_are_refused(given: str, wrong: str) -> None:
    done = _settings("--try", given)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"settings: error: argument --try: '{given}': {wrong}; give for instance "
        f"direct:jump_percent=130,forecast_target_percent=120"
    )
