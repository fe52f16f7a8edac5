"""The scoreboard, over a small folder of traces made here."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.scoreboard import POLICIES
from benchmarks.scores import BASE, Score, Trace, relative, serviceable
from tests.cdk_cli import ROOT


def _scoreboard(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.scoreboard", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A steady trace by the minute, a bursty one by the minute, one of ten minutes, and a file that is no traffic."""
    made = tmp_path / "traces"
    made.mkdir()
    steady = "".join(f"{number},{(700 if number < 120 else 2_300) + number % 7}\n" for number in range(180))
    (made / "steady.csv").write_text(f"minute_index,units\n{steady}")
    bursty = "".join(f"{number},{9_000 if number % 60 in (30, 31, 32) else 3}\n" for number in range(180))
    (made / "bursty.csv").write_text(f"minute_index,units\n{bursty}")
    (made / "tens.csv").write_text("bin_600s,units\n" + "".join(f"{number},{50 + number}\n" for number in range(18)))
    (made / "broken.csv").write_text("minute_index,units\n0,many\n")
    (made / "manifest.json").write_text(
        json.dumps(
            {
                "traces": [
                    {"file": "steady.csv", "character": "even", "tier": "A"},
                    {"file": "bursty.csv", "character": "burst", "tier": "A", "tags": ["low-rate"]},
                    {"file": "tens.csv", "character": "even", "tier": "B"},
                    {"file": "broken.csv", "character": "even", "tier": "A"},
                ]
            }
        )
    )
    return made


def _tables(page: Path) -> list[list[str]]:
    """The rows of the tables of a page's traces, with class and trace before each, in the order of the page."""
    rows, kind, trace = [], "", ""
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            kind, trace = line.removeprefix("## Class: "), ""
        elif line.startswith("### "):
            trace = line.removeprefix("### ")
        elif trace and line.startswith("| ") and not line.startswith("| policy "):
            policy, *figures = line.strip("| ").split(" | ")
            rows.append([kind, trace, policy, *(figure.replace(",", "") for figure in figures)])
    return rows


def _data(page: Path) -> list[list[str]]:
    with page.with_suffix(".csv").open(newline="") as file:
        heads, *rows = csv.reader(file)
    assert heads == ["class", "trace", "policy", "throttled per million", "minutes", "cost", "x bound", "decreases"]
    return rows


def test_data_of_the_benchmarks_are_the_tables_of_their_page() -> None:
    page = Path(ROOT) / "docs" / "benchmarks.md"
    assert len(_data(page)) > 500
    assert sorted(_data(page)) == sorted(_tables(page))


def test_folder_of_traces_becomes_a_page_with_pictures(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "docs" / "benchmarks.md"
    out.parent.mkdir()
    done = _scoreboard("--traces", str(folder), "--no-scenarios", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert f"left out: {folder / 'broken.csv'}, line 2: writes are 'many'" in done.stderr
    page = out.read_text()
    assert page.startswith("# Scoreboard\n")
    assert "| native:70 | 1.000 | 1.000 |" in page
    # the bursty one throttles and the one of ten minutes is too coarse, so one is serviceable
    assert "throttles under 5 %: steady." in page
    assert "### bursty\n\n0.1 days, low counts scaled up.\n" in page
    assert "### tens\n\n0.1 days, coarse: bins of 10 min.\n" in page
    for trace in ("steady", "bursty", "tens"):
        table = page.split(f"### {trace}\n")[1].split("\n### ")[0].split("\n## ")[0]
        rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")]
        assert rows[1:] == list(POLICIES)
    for kind in ("even", "burst"):
        picture = out.parent / "pictures" / f"benchmark-{kind}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert f"pictures/benchmark-{kind}.png" in page
    assert len(_data(out)) == 3 * len(POLICIES)
    assert sorted(_data(out)) == sorted(_tables(out))
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == list(POLICIES)
    assert lines[-1].startswith(f"{3 * len(POLICIES)} runs in ")


def test_folder_that_is_not_there_is_skipped_loudly(tmp_path: Path) -> None:
    done = _scoreboard("--traces", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (f"SKIPPED: no traces at {tmp_path / 'none'}; give a folder of CSV files with --traces\n")


def test_folder_without_traffic_is_misuse(tmp_path: Path) -> None:
    done = _scoreboard("--traces", str(tmp_path), "--no-scenarios")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"scoreboard: no traffic in {tmp_path}; give a folder of CSV files in the format of highwater simulate\n"
    )


def _trace(name: str, bin_seconds: int) -> Trace:
    return Trace(name, "made", Path(f"{name}.csv"), bin_seconds, 1.0, is_proxy=False)


def test_summary_is_over_the_serviceable_traces_and_relative_to_native_70() -> None:
    traces = [_trace("a", 60), _trace("b", 300), _trace("coarse", 600), _trace("idle", 60)]
    throttled = {"a": 300.0, "b": 1_700.0, "coarse": 5.0, "idle": 50_000.0}
    cost = {"a": 100.0, "b": 900.0, "coarse": 7.0, "idle": 11.0}
    scores = {(t.name, BASE): Score(t.name, BASE, throttled[t.name], 1, cost[t.name], 2, 9_000.0) for t in traces}
    scores |= {
        (t.name, "other"): Score(t.name, "other", throttled[t.name] / 4, 1, cost[t.name] * factor, 2, 9_000.0)
        for t, factor in zip(traces, (2, 8, 99, 99), strict=True)
    }
    chosen = serviceable(traces, scores)
    assert [trace.name for trace in chosen] == ["a", "b"]
    # (75 + 425) / 2,000, and the geometric mean of 2 and 8
    throttles, ratio = relative("other", chosen, scores)
    assert throttles == 0.25
    assert ratio == pytest.approx(4.0)
