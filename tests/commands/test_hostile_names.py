"""Names that are formulas to matplotlib or do not decode, and errors that nobody foresaw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import Run

BROKEN = (
    "import highwater_lab.commands.rehearse as rehearse\n"
    "def fail(*_, **__): raise KeyError('no such\\nthing')\n"
    "rehearse.print_rehearsal = fail\n"
)


def _write(path: Path, name: str) -> None:
    """Write a template that scales the writes of a table with that name."""
    target = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": f"table/{name}",
        "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
        "MinCapacity": 50,
        "MaxCapacity": 900,
    }
    resources = {"Target": {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": target}}
    path.write_text(json.dumps({"Resources": resources}))


@pytest.mark.parametrize("name", ["${TableName}", "orders-\ud800"], ids=["formula", "half-a-character"])
def test_picture_is_drawn_whatever_a_table_is_called(command: Run, tmp_path: Path, name: str) -> None:
    """AWS's own snippet scales `table/${TableName}`; a price in the title is the second dollar sign of a formula."""
    _write(tmp_path / "t.json", name)
    done = command("rehearse", "t.json", "--scenario", "step", "--png", "r.png", "--html", "r.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def _broken(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    _write(tmp_path / "t.json", "orders")
    start = f"sys.argv[1:] = {list(arguments)!r}\nfrom highwater.cli.main import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", f"import sys\n{BROKEN}{start}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_unforeseen_error_is_one_line_and_never_a_finding(tmp_path: Path) -> None:
    done = _broken(tmp_path, "rehearse", "t.json", "--scenario", "step")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "highwater: unforeseen error, please report it: KeyError: 'no such\\nthing'; "
        "highwater --debug ... tells more\n",
    )


def test_debug_adds_the_traceback(tmp_path: Path) -> None:
    done = _broken(tmp_path, "--debug", "rehearse", "t.json", "--scenario", "step")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.count("unforeseen error") == 1
