"""The names of measurements: each is there, each that a file mentions is known, and misuse is said in one line."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

from benchmarks.__main__ import BENCHMARKS
from tests.cdk_cli import ROOT


def _benchmarks(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_without_a_name_they_are_listed_with_what_each_may_be_given() -> None:
    status, out, err = _benchmarks()
    head, *lines = out.splitlines()
    assert (status, err, head) == (0, "", "make benchmark NAME=..., offline and free:")
    assert [line.split()[0] for line in lines] == list(BENCHMARKS)
    (random,) = [line for line in lines if line.startswith("  random ")]
    assert random == (
        "  random       days of random traffic of fifteen families, beside native target tracking (4 minutes; "
        'ARGS="--first 100")'
    )


def test_unknown_name_is_misuse() -> None:
    assert _benchmarks("jmps") == (2, "", "benchmarks: NAME: unknown measurement 'jmps'; did you mean jumps?\n")
    assert _benchmarks("--traces", "x") == (
        2,
        "",
        "benchmarks: NAME: unknown measurement '--traces'; make benchmark lists them\n",
    )


def test_arguments_that_nothing_reads_are_misuse() -> None:
    assert _benchmarks("jumps", "--first", "7") == (
        2,
        "",
        "benchmarks: jumps takes no arguments, got --first 7; leave them out\n",
    )


def test_arguments_and_exit_status_are_those_of_the_measurement() -> None:
    status, out, err = _benchmarks("random", "--days", "0")
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == "random: error: days: got 0 from number 0 on; give one or more, from 0 on"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_measurement_is_there(name: str) -> None:
    _, module, *rest = BENCHMARKS[name].command
    assert find_spec(module)
    assert all((ROOT / each).exists() for each in rest if each.startswith("tests/"))


def test_each_name_in_a_file_of_the_project_is_known() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = {
        (file, name)
        for file in listed.splitlines()
        if file.endswith((".md", ".py")) and (ROOT / file).exists()
        for name in re.findall(r"make\s+(?:# )?benchmark\s+(?:# )?NAME=([a-z-]+)", (ROOT / file).read_text())
    }
    assert {(file, name) for file, name in named if name not in BENCHMARKS} == set()
    assert len({name for _, name in named}) > 20
