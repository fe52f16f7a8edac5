"""Random days are the same each time, of every family, and what a mode serves badly is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.batches import Result
from benchmarks.random_days import DAY, FAMILIES, day, lines_of
from highwater.core import Dimension
from highwater_lab.traffic.series import Stream
from tests.cdk_cli import ROOT


def _days(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.random_days", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_a_day_is_the_same_each_time_and_families_take_turns() -> None:
    rates = [day(number)[1].rates[Stream(None, Dimension.WRITE)] for number in (3, 3, 3 + len(FAMILIES))]
    assert len(rates[0]) == DAY
    assert rates[0] == rates[1]
    assert rates[0] != rates[2]
    assert [day(number)[0] for number in range(len(FAMILIES))] == list(FAMILIES)
    assert len(FAMILIES) == 15


def test_cost_is_a_geometric_mean_and_worst_days_are_told() -> None:
    native = Result(0, 100)
    found = [
        (7, "steps", (native, Result(0, 50))),
        (8, "wave", (native, Result(0, 200))),
        (9, "idle", (Result(3_000, 100), Result(4_200, 100))),
        (10, "ramps", (Result(3_000, 100), Result(600, 300))),
    ]
    head, line, *worst = lines_of(("native:70", "mine"), found)
    assert head.split() == ["cost", "throttled", "more", "dear"]
    # 0.5, 2, 1 and 3, and 4,800 of 6,000 throttled; one throttles more, one is dear where native throttles nothing
    assert line.split() == ["mine", "1.316", "0.800", "1", "1"]
    assert worst == [
        "mine: day 9, idle: 4,200 per million at 1.00, native 3,000",
        "mine: day 8, wave: 0 per million at 2.00, native 0",
    ]


def test_command_prints_a_line_for_each_mode() -> None:
    done = _days("--first", "12", "--days", "1", "--processes", "1")
    assert (done.returncode, done.stderr) == (0, "")
    title, _, *lines = done.stdout.splitlines()
    assert title == "1 days from number 12 on, relative to native target tracking at 70 %"
    assert [line.split()[0] for line in lines[:4]] == [
        "highwater-floor",
        "highwater-floor-pulse",
        "highwater-direct",
        "highwater-direct-pulse",
    ]


@pytest.mark.parametrize(("days", "first"), [(0, 4), (3, -1)])
def test_no_day_is_misuse(days: int, first: int) -> None:
    done = _days("--days", str(days), "--first", str(first))
    assert done.returncode == 2
    said = f"random: error: days: got {days} from number {first} on; give one or more, from 0 on"
    assert done.stderr.splitlines()[-1] == said
