"""Type checkers accept a user's app as a whole, and find the mistakes in another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cdk_cli import ROOT

HERE = Path(__file__).parent


def _mypy(file: str) -> set[int]:
    """The lines in which mypy finds an error."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", ".mypy_cache", HERE / file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}


def _pyright(file: str) -> set[int]:
    """The lines in which pyright finds an error."""
    done = subprocess.run(
        ["node_modules/.bin/pyright", "--outputjson", "--pythonpath", sys.executable, HERE / file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}


@pytest.mark.parametrize("checker", [_mypy, _pyright], ids=["mypy", "pyright"])
def test_checker_accepts_the_app_and_finds_each_mistake(checker: object) -> None:
    assert callable(checker)
    assert checker("users_app.py") == set()
    lines = (HERE / "users_mistakes.py").read_text().splitlines()
    assert checker("users_mistakes.py") == {number for number, line in enumerate(lines, 1) if "# mistake" in line}
