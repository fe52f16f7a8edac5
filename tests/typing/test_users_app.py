"""Type checkers accept a user's app as a whole, and find the mistakes in another."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cdk_cli import ROOT

HERE = Path(__file__).parent


ACCEPTED, MISTAKEN = HERE / "users_app.py", HERE / "users_mistakes.py"
Errors = set[tuple[str, int]]


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, ACCEPTED, MISTAKEN], cwd=ROOT, capture_output=True, text=True, check=False)


def _mypy() -> Errors:
    done = _run(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", ".mypy_cache")
    assert done.stderr == ""
    errors = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    return {(Path(file).name, int(number)) for file, number, *_ in errors}


def _pyright() -> Errors:
    done = _run("node_modules/.bin/pyright", "--outputjson", "--pythonpath", sys.executable)
    found = [each for each in json.loads(done.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    return {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found}


@pytest.mark.parametrize("checker", [_mypy, _pyright], ids=["mypy", "pyright"])
def test_checker_accepts_the_app_and_finds_each_mistake(checker: Callable[[], Errors]) -> None:
    lines = enumerate(MISTAKEN.read_text().splitlines(), 1)
    assert checker() == {(MISTAKEN.name, number) for number, line in lines if "# mistake" in line}
