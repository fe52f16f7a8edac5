"""A run: nothing is made while something of an earlier part cannot be deleted, and what takes too long is ended."""

from __future__ import annotations

import io
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from acceptance import cdk
from acceptance.cdk import CdkError
from acceptance.run import Run
from acceptance.stage import Part, Stage
from highwater.core import HighwaterError
from tests.acceptance.fake_place import FakePlace, Pages, Stacks, place_of, refusal, stage_of

DENIED = "An error occurred (AccessDenied) when calling the DeleteStack operation: not allowed"


@pytest.fixture(autouse=True)
def _confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("123456789012\n"))


def _run(build: Path, place: FakePlace, *runs: Any) -> tuple[int, list[str]]:
    output = io.StringIO()
    parts = [Part(name=f"part{number}", title="any", minutes=9, units=1, run=run) for number, run in enumerate(runs)]
    run = Run(place, parts, build, Console(file=output, width=300), profile="trial", most_usd=1)
    status = run.run()
    return status, [line for line in output.getvalue().splitlines() if line.startswith("does not hold: ")]


def test_no_part_begins_while_a_deletion_is_outstanding(tmp_path: Path) -> None:
    begun = list[str]()

    def make(stage: Stage) -> None:
        begun.append(stage.part)
        stage.ledger.add("kept")

    place = place_of(Stacks({"kept": 0}, refused=("kept",)))
    status, told = _run(tmp_path, place, make, make)
    assert (status, begun) == (1, ["part0"])
    left = f"not deleted: kept: {DENIED}; try again with: make acceptance CLEAN=yes"
    assert told == [
        f"does not hold: {part}: is deleted: planned yes, actually {left}" for part in ("part0", "deletion")
    ]
    assert "Parts: part0. The run ended before its end." in (tmp_path / "report.md").read_text()


def test_part_that_fails_is_named_and_the_next_one_runs(tmp_path: Path) -> None:
    begun = list[str]()

    def fail(stage: Stage) -> None:
        begun.append(stage.part)
        raise refusal("ExpiredTokenException", "expired", "Anything")

    status, told = _run(tmp_path, place_of(Stacks({})), fail, fail)
    assert (status, begun) == (1, ["part0", "part1"])
    assert told == [
        f"does not hold: {part}: runs to its end: planned yes, actually An error occurred (ExpiredTokenException) when "
        "calling the Anything operation: expired"
        for part in begun
    ]
    assert "Parts: none. The run ended before its end." in (tmp_path / "report.md").read_text()


def test_part_that_takes_too_long_is_ended_and_deleted(tmp_path: Path) -> None:
    stacks = Stacks({"made": 0})

    def dawdle(stage: Stage) -> None:
        stage.ledger.add("made")
        assert stage.seconds_until(lambda: False, timedelta(minutes=5)) is None
        stage.seconds_until(lambda: False, timedelta(hours=5))

    status, told = _run(tmp_path, place_of(stacks), dawdle)
    assert (status, stacks.deleted) == (1, ["made"])
    assert told == [
        "does not hold: part0: runs to its end: planned yes, actually part0 takes longer than it may, until 05:20 UTC; "
        "it ends here"
    ]


def test_what_does_not_hold_and_what_is_left_fail_the_run_and_the_other_parts_go_on(tmp_path: Path) -> None:
    place = place_of(Stacks({}))

    def break_a_promise(stage: Stage) -> None:
        stage.check("floor of somewhere", 41, 17)

    def give_up(_: Stage) -> None:
        raise HighwaterError("nothing to look at")

    def leave_something(stage: Stage) -> None:
        entries = [{"DashboardName": f"{stage.ledger.prefix}-left"}]
        place.clients["cloudwatch"] = Pages({"list_dashboards": [{"DashboardEntries": entries}]})

    status, told = _run(tmp_path, place, break_a_promise, give_up, leave_something)
    (prefix,) = (folder.name for folder in tmp_path.iterdir() if folder.is_dir())
    assert (status, told) == (
        1,
        [
            "does not hold: part0: floor of somewhere: planned 41, actually 17",
            "does not hold: part1: runs to its end: planned yes, actually nothing to look at",
            f"does not hold: deletion: what is left: planned nothing, actually dashboard {prefix}-left",
        ],
    )
    assert "Parts: part0, part2. The run ended before its end." in (tmp_path / "report.md").read_text()


@pytest.fixture
def _endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CLI that never ends."""
    program = tmp_path / "node_modules" / ".bin" / "cdk"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec sleep 3600\n")
    program.chmod(0o755)
    monkeypatch.setattr(cdk, "ROOT", tmp_path)


@pytest.mark.usefixtures("_endless")
def test_deploy_that_does_not_end_is_stopped_at_the_parts_deadline(tmp_path: Path) -> None:
    stage = stage_of(FakePlace(), tmp_path)
    stage.deadline = stage.now() + timedelta(microseconds=1)
    with pytest.raises(CdkError) as stopped:
        stage.deploy("Surge")
    assert stage.ledger.stacks == ["HwAccept20310304050607-Surge"]
    assert str(stopped.value) == "cdk deploy did not end in the 0 s that its part had left; it was stopped"
