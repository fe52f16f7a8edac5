"""A run: nothing else is made while something of an earlier part cannot be deleted."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from acceptance.parts.part import Part
from acceptance.run import Run
from acceptance.stage import Stage
from tests.acceptance.fake_place import FakePlace, Stacks, Tables, place_of, refusal

DENIED = "An error occurred (AccessDeniedException) when calling the DeleteTable operation: not allowed"


class _Sts:
    """Answers while the credentials last."""

    def __init__(self, error: ClientError | None = None) -> None:
        self._error = error

    def get_caller_identity(self) -> dict[str, Any]:
        if self._error is not None:
            raise self._error
        return {}


@pytest.fixture(autouse=True)
def _confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("123456789012\n"))


def _run(build: Path, place: FakePlace, *runs: Any) -> tuple[int, list[str]]:
    output = io.StringIO()
    parts = [Part(name=f"part{number}", title="any", minutes=9, run=run) for number, run in enumerate(runs)]
    run = Run(place, parts, build, Console(file=output, width=300), profile="trial", most_usd=1)
    status = run.run()
    return status, [line for line in output.getvalue().splitlines() if line.startswith("does not hold: ")]


def test_no_part_begins_while_a_deletion_is_outstanding(tmp_path: Path) -> None:
    begun = list[str]()

    def make(stage: Stage) -> None:
        begun.append(stage.part)
        stage.ledger.add_table("kept")

    place = place_of(Stacks({}), Tables(["kept"], refused=("kept",)))
    status, told = _run(tmp_path, place, make, make)
    assert (status, begun) == (1, ["part0"])
    left = f"1 not deleted: table kept: {DENIED}; try again with: make acceptance CLEAN=yes"
    assert told == [
        f"does not hold: {part}: is deleted: planned yes, actually {left}" for part in ("part0", "deletion")
    ]
    assert "Parts: part0. The run ended before its end." in (tmp_path / "report.md").read_text()


def test_part_that_fails_is_the_last_once_credentials_are_refused(tmp_path: Path) -> None:
    begun = list[str]()

    def fail(stage: Stage) -> None:
        begun.append(stage.part)
        raise refusal("ExpiredTokenException", "expired", "Anything")

    place = place_of(Stacks({}), Tables([]))
    place.clients["sts"] = _Sts()
    assert _run(tmp_path / "lasting", place, fail, fail)[0] == 1
    assert begun == ["part0", "part1"]
    begun.clear()
    place.clients["sts"] = _Sts(refusal("ExpiredToken", "expired", "GetCallerIdentity"))
    sys.stdin = io.StringIO("123456789012\n")
    status, told = _run(tmp_path / "expired", place, fail, fail)
    assert (status, begun) == (1, ["part0"])
    assert told == [
        "does not hold: part0: runs to its end: planned yes, actually An error occurred (ExpiredTokenException) when "
        "calling the Anything operation: expired",
        "does not hold: part0: credentials last: planned yes, actually An error occurred (ExpiredToken) when calling "
        "the GetCallerIdentity operation: expired",
    ]
