"""Cells that are served worse, and what each rule of the scaler buys in them, over a few traces made here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import cells, rent
from benchmarks.cells import Count, Result, Run
from benchmarks.rent import RULES, Rent, Rule, rent_of, replaced
from benchmarks.scores import BASE
from benchmarks.worlds import MODES
from highwater.core.scaler import burst, stages
from highwater.core.scaler.burst import capacity_to_carry

FLOOR = MODES[0]


def test_cells_that_throttle_more_and_that_are_dear_are_counted_with_the_worst_of_each() -> None:
    native = {"calm": Result(0, 100), "busy": Result(400, 100), "jumpy": Result(0, 100)}
    floor = {"calm": Result(49, 116), "busy": Result(470, 900), "jumpy": Result(91, 80)}
    results = {Run("burst", name, BASE): result for name, result in native.items()}
    results |= {Run("burst", name, FLOOR): result for name, result in floor.items()}
    counted = Count.of([Run("burst", name, FLOOR) for name in floor], results)
    assert (counted.cells, counted.more, counted.dear) == (3, 2, 1)
    assert counted.most_throttled == (91, "jumpy (burst)")
    assert counted.dearest == (1.16, "calm (burst)")


def test_fleets_way_of_telling_is_compared_with_native_in_the_recorded_world() -> None:
    assert cells.native_of(Run("silent", "calm", MODES[2])) == Run("recorded 1", "calm", BASE)
    assert cells.native_of(Run("burst", "calm", MODES[2])) == Run("burst", "calm", BASE)


def _folder(path: Path) -> Path:
    folder = path / "traces"
    folder.mkdir()
    for name, rates in {"calm": [600] * 60, "jump": [600] * 30 + [1_900] * 30}.items():
        lines = "".join(f"{minute},{rate}\n" for minute, rate in enumerate(rates))
        (folder / f"{name}.csv").write_text(f"minute_index,units\n{lines}")
    return folder


def test_measurement_goes_on_where_it_was_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.jsonl"
    given = ["--traces", str(_folder(tmp_path)), "--kind", "trace", "--processes", "1", "--kept", str(kept)]
    assert cells.main([*given, "--world", "recorded"]) == 0
    first = capsys.readouterr().out
    assert "| recorded, at seconds 1 | 0, 0 of 2 |" in first
    runs = kept.read_text().splitlines()
    assert len(runs) == 2 * 5
    kept.write_text("\n".join(runs[:7]) + "\n")
    assert cells.main([*given, "--world", "recorded"]) == 0
    assert capsys.readouterr().out == first
    assert sorted(kept.read_text().splitlines()) == sorted(runs)


def test_unknown_world_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cells.main(["--traces", ".", "--world", "mars"])
    assert capsys.readouterr().err.splitlines()[-1] == "cells: error: there is no world 'mars'"


def test_rule_is_out_of_force_for_a_while_also_where_a_run_fails() -> None:
    assert capacity_to_carry([600, 0], 60) == 6
    with replaced("burst._USED_PERCENT"):
        assert (capacity_to_carry([600, 0], 60), burst._USED_PERCENT) == (5, 100)
    as_it_is = stages.STAGES
    with pytest.raises(ZeroDivisionError), replaced("regret"):
        assert len(stages.STAGES) // (len(as_it_is) - len(stages.STAGES) - 1)
    assert as_it_is == stages.STAGES
    with replaced(""):
        assert as_it_is == stages.STAGES


def test_each_rule_differs_from_what_takes_its_place() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        module, name = rule.place
        assert vars(import_module(f"highwater.core.scaler.{module}"))[name] != rule.off, rule.name


def test_rent_says_where_a_rule_buys_most_and_whether_that_is_enough() -> None:
    runs = [Run("recorded 1", name, FLOOR, "regret") for name in ("calm", "busy")]
    results = {Run("recorded 1", name, BASE): Result(0, 200) for name in ("calm", "busy")}
    results |= {Run("recorded 1", "calm", FLOOR): Result(3, 150), Run("recorded 1", "busy", FLOOR): Result(70, 160)}
    results |= {runs[0]: Result(3, 154), runs[1]: Result(60, 240)}
    found = rent_of(runs, results)
    assert found.cost == (0.4, "busy, floor (recorded 1)")
    assert found.throttles == (0, "calm, floor (recorded 1)")
    assert (found.before, found.after) == ((1, 0), (1, 1))
    assert found.is_paid
    assert not Rent((0.009, "calm"), (49, "calm"), (0, 0), (0, 0)).is_paid
    assert Rent((0.0, "calm"), (50, "calm"), (0, 0), (0, 0)).is_paid


def test_table_of_rent_has_a_row_for_each_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--traces", str(_folder(tmp_path)), "--kind", "trace", "--processes", "1"]
    chosen = ["--rule", "leave_headroom", "--rule", "settings.FULL_PERCENT"]
    assert rent.main([*given, *chosen, "--kept", str(tmp_path / "kept.jsonl")]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| leave_headroom", "| settings.FULL_PERCENT"]


def test_stage_is_part_of_the_modes_that_it_concerns() -> None:
    modes = {rule.name: tuple(rule.modes) for rule in RULES}
    assert modes["leave_headroom"] == MODES[:2]
    assert modes["meet_surge"] == MODES[2:]
    assert modes["regret"] == modes["lower_capacity"] == MODES
    assert modes["rest_on_bucket"] == MODES[2:]
    assert Rule("burst._USED_PERCENT", 100).place == ("burst", "_USED_PERCENT")
