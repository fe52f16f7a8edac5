"""Leaving a trace out for the scaler's constants, over a small folder of traces made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.constants import CONSTANTS, POLICIES, Variant, changed, main, make_row, variants
from benchmarks.scores import BASE, Score, Scores, Trace
from highwater.core.scaler import Mode, burst, demand
from highwater.core.scaler.burst import highest_average

UNTOLD = next(each for each in CONSTANTS if each.name == "_UNTOLD_PERCENT")
AVERAGE = next(each for each in CONSTANTS if each.name == "_AVERAGE_MINUTES")


def test_constant_is_changed_for_a_while() -> None:
    peaks = [600] * 5 + [0] * 5
    assert highest_average(peaks) == 5
    with changed(AVERAGE, 5):
        assert (highest_average(peaks), burst._AVERAGE_MINUTES) == (10, 5)
    assert highest_average(peaks) == 5


def test_constant_is_changed_back_where_a_run_fails() -> None:
    with pytest.raises(ZeroDivisionError), changed(UNTOLD, 21):
        assert demand._UNTOLD_PERCENT // (demand._UNTOLD_PERCENT - 21)
    assert demand._UNTOLD_PERCENT == 10


def test_every_constant_is_tried_below_and_above_what_it_is() -> None:
    for each in CONSTANTS:
        lower, higher = each.others
        if isinstance(each.value, dict):
            assert all(lower[mode] < each.value[mode] < higher[mode] for mode in Mode if mode.follows_demand)
        else:
            assert lower < each.value < higher, each.name
    names = [variant.name for variant in variants(CONSTANTS)]
    assert names[:4] == ["floor", "direct", "floor, pulses", "direct, pulses"]
    assert len(names) == len(set(names))
    assert sum("_UNTOLD_PERCENT" in name for name in names) == 4, "two values, in both modes with pulses"
    assert sum("_MOST_JUMPS" in name for name in names) == 4, "two values, in both modes without"
    assert sum("_TOLERANCE_PERCENT" in name for name in names) == 8


def test_all_traces_but_one_choose_the_value_for_that_one() -> None:
    traces = [Trace(name, "made", Path(name), 60, 1.0, is_proxy=False) for name in ("a", "b", "c")]
    tried = [Variant(*next(iter(POLICIES))), *(each for each in variants(CONSTANTS) if each.constant is AVERAGE)][:3]
    throttled = {tried[0].name: (40, 50, 7), tried[1].name: (20, 90, 11), tried[2].name: (80, 80, 80)}
    scores: Scores = {(trace.name, BASE): Score(trace.name, BASE, 100, 1, 10, 0, 0) for trace in traces}
    scores |= {
        (trace.name, name): Score(trace.name, name, figures[at], 1, 10, 0, 0)
        for name, figures in throttled.items()
        for at, trace in enumerate(traces)
    }
    row = make_row(tried, traces, scores)
    assert row.default == pytest.approx((97 / 300, 1))
    assert [each[0] for each in row.others] == pytest.approx([121 / 300, 240 / 300])
    # without b the lower value throttles 31 and the default 47; without a and c it is the other way round
    assert row.left_out == pytest.approx(((40 + 90 + 7) / 300, 1))
    assert row.kept == 2


def _write(folder: Path, name: str, rates: list[int]) -> None:
    lines = "".join(f"{minute},{rate}\n" for minute, rate in enumerate(rates))
    (folder / f"{name}.csv").write_text(f"minute_index,units\n{lines}")


def test_folder_of_traces_becomes_a_table_with_a_row_for_each_constant_and_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write(tmp_path, "calm", [600 + minute % 7 for minute in range(60)])
    _write(tmp_path, "climb", [700 + 40 * max(0, minute - 20) for minute in range(60)])
    assert main(["--traces", str(tmp_path), "--processes", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[0].split()) == "mode constant values as it is lower higher left out kept"
    assert len(lines) == 1 + (len(variants(CONSTANTS)) - 4) // 2 + 2
    assert lines[1].startswith("floor          _STEP_PERCENT             200 150 300 ")
    climbs = [line for line in lines if "_CLIMB_MINUTES" in line]
    assert [line[:40].split()[-1] for line in climbs] == ["_CLIMB_MINUTES"] * 4
    assert any("changes nothing" not in line for line in climbs)
    assert lines[-1].startswith("over calm, climb: ")


def test_one_constant_is_tried_with_noise_against_native_with_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # with noise the seconds of each minute differ, and so do the figures
    _write(tmp_path, "calm", [600] * 30 + [1_500] * 30)
    _write(tmp_path, "climb", [700 + 40 * max(0, minute - 20) for minute in range(60)])
    given = ["--traces", str(tmp_path), "--processes", "1", "--constant", "_RAISED_TARGET_PERCENT"]
    tables = []
    for noise in ("0", "0.6"):
        assert main([*given, "--noise", noise]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line[:60].split()[-4:] for line in lines[1:3]] == [["_RAISED_TARGET_PERCENT", "97", "90", "100"]] * 2
        assert lines[-1] == "over calm, climb: 18 runs"
        tables.append(lines[1:3])
    assert tables[0] != tables[1]


def test_one_trace_is_too_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(tmp_path, "calm", [600] * 60)
    assert main(["--traces", str(tmp_path)]) == 2
    expected = f"constants: 1 serviceable traces in {tmp_path}; one of at least 2 is left out at a time\n"
    assert capsys.readouterr().err == expected
