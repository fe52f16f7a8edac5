"""The page of worlds: what is compared with what, and that a measurement goes on where it was stopped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks import worlds
from benchmarks.scores import BASE, Score, Trace
from benchmarks.worlds import DEPARTURES, MODES, WORLDS, outcome, rows
from highwater.core import Dimension
from highwater_lab.traffic import Stream, Traffic

TRACES = [Trace(name, "made", Path(f"{name}.csv"), 60, 1.0, is_proxy=False) for name in ("calm", "busy")]


def _score(trace: str, policy: str, throttled: float, cost: float) -> Score:
    return Score(trace, policy, throttled, 0, cost, 0, 0.0)


def test_mode_is_compared_with_native_in_the_same_world_and_a_fleets_with_the_recorded_one() -> None:
    burst, half = (next(world for world in DEPARTURES if world.name == name) for name in ("burst", "half"))
    mode = MODES[2]
    made = [
        *(_score(name, f"recorded 1: {BASE}", 100, 10) for name in ("calm", "busy")),
        _score("calm", f"burst: {BASE}", 0, 10),
        _score("busy", f"burst: {BASE}", 400, 20),
        _score("calm", f"burst: {mode}", 51, 12),
        _score("busy", f"burst: {mode}", 450, 20),
        *(_score(name, f"half: {mode}", 30, 5) for name in ("calm", "busy")),
    ]
    scores = {(score.trace, score.policy): score for score in made}
    found = outcome(burst, mode, TRACES, scores)
    assert (found.throttled, found.worse, found.dear) == (501 / 400, 1, 1)
    assert (found.worst_per_million, found.worst) == (51, "calm")
    assert outcome(half, mode, TRACES, scores).cost == pytest.approx(0.5)


def test_recorded_world_has_its_mean_and_its_worst_and_noise_one_row() -> None:
    scores = {
        (trace.name, f"{world.key}: {policy}"): _score(trace.name, f"{world.key}: {policy}", 10.0 + place, 7)
        for place, world in enumerate(WORLDS)
        for policy in (BASE, *MODES)
        for trace in TRACES
    }
    found = dict(rows(WORLDS, TRACES, scores))
    assert len(found) == 2 + len({world.name for world in DEPARTURES})
    assert set(found["half of the fleet tells"]) == set(MODES[2:]), "others know nothing of a fleet"


def test_fleet_is_silent_for_half_an_hour_from_where_a_surge_begins() -> None:
    silent = next(world for world in DEPARTURES if world.name == "silent")
    counts = [600.0] * 90 + [1_200.0] * 40 + [600.0] * 30
    traffic = Traffic.from_counts(
        "made", {Stream(None, Dimension.WRITE): counts}, bin_seconds=60, start=datetime(2026, 11, 2, tzinfo=UTC)
    )
    assert silent.pulses is not None
    assert silent.pulses(traffic).silent_minutes == frozenset(range(90, 120))


def test_stopped_measurement_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = datetime(2026, 11, 2, tzinfo=UTC)
    lines = [f"{(start + timedelta(minutes=at)).isoformat()},{900 + at % 7}" for at in range(120)]
    (tmp_path / "made.csv").write_text("\n".join(["timestamp,writes", *lines]))
    kept = tmp_path / "kept" / "worlds.jsonl"
    monkeypatch.setattr(worlds, "KEPT", kept)
    arguments = ["--traces", str(tmp_path), "--days", "0.05", "--world", "burst", "--processes", "1"]
    capsys.readouterr()
    assert worlds.main([*arguments, "--world", "recorded"]) == 0
    said = capsys.readouterr().out
    runs = kept.read_text()
    assert "| bursts last 60 s, not 300 | " in said
    assert worlds.main([*arguments, "--world", "recorded"]) == 0
    assert (kept.read_text(), capsys.readouterr().out) == (runs, said)
    with pytest.raises(SystemExit) as refused:
        worlds.main([*arguments, "--world", "burts"])
    assert refused.value.code == 2
    assert "there is no world 'burts'; the worlds are recorded, burst, " in capsys.readouterr().err
