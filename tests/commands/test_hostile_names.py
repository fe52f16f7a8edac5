"""Names that are formulas to matplotlib or do not decode, and errors that nobody foresaw."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from tests.command import SCRIPT, Command


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
def test_picture_is_drawn_whatever_a_table_is_called(command: Command, tmp_path: Path, name: str) -> None:
    """AWS's own snippet scales `table/${TableName}`; a price in the title is the second dollar sign of a formula."""
    _write(tmp_path / "t.json", name)
    done = command("simulate", "t.json", "--scenario", "step", "--png", "r.png", "--html", "r.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


ESCAPE = "or\x1b[2Jders\x9b31m\u202e"


@pytest.mark.parametrize("options", [(), ("--html", "r.html", "--png", "r.png")], ids=["text", "files"])
def test_escape_sequences_in_names_do_not_reach_the_terminal(
    command: Command, tmp_path: Path, options: tuple[str, ...]
) -> None:
    _write(tmp_path / "t.json", ESCAPE)
    traffic = f"tr{ESCAPE}.csv"
    (tmp_path / traffic).write_text("bin_60s,writes\n0,700\n1,800\n")
    done = command("simulate", "t.json", "--traffic", traffic, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("or\ufffd[2Jders\ufffd31m\ufffd under tror\ufffd[2Jders\ufffd31m\ufffd: ")
    assert all(character.isprintable() or character == "\n" for character in done.stdout + done.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "t.json", "--scenario", "step", "--table", f"x{ESCAPE}"),
        ("simulate", f"none{ESCAPE}", "--scenario", "step"),
        ("simulate", "t.json", "--traffic", f"none{ESCAPE}.csv"),
        ("simulate", "t.json", "--scenario", "step", "--parameter", f"{ESCAPE}=5"),
        (f"{ESCAPE}",),
        ("prices", "--prices", f"none{ESCAPE}"),
    ],
)
def test_escape_sequences_in_errors_do_not_either(command: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    _write(tmp_path / "t.json", ESCAPE)
    done = command(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert all(character.isprintable() or character == "\n" for character in done.stderr)


@pytest.mark.parametrize("columns", ["0", "1", "-5", "wide", ""])
def test_terminal_without_a_width_shows_everything(tmp_path: Path, command: Command, columns: str) -> None:
    _write(tmp_path / "t.json", "orders")
    shown = command("simulate", "t.json", "--scenario", "step", COLUMNS=columns)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "orders under step:" in shown.stdout


STREAMS = {">&-": (1,), "2>&-": (2,), ">&- 2>&-": (1, 2), "<&- >&- 2>&-": (0, 1, 2)}


def _check_page(path: Path) -> None:
    page = path.read_text()
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")


@pytest.mark.parametrize("closed", STREAMS)
@pytest.mark.parametrize("arguments", ["simulate t.json --scenario step --html r.html", "prices", "--help", "nonsense"])
def test_closed_streams_are_no_error(command: Command, tmp_path: Path, arguments: str, closed: str) -> None:
    _write(tmp_path / "t.json", "orders")
    done = command(*arguments.split(), closed=STREAMS[closed])
    assert done.returncode == (2 if arguments == "nonsense" else 0)
    assert "Traceback" not in done.stdout + done.stderr
    if "--html" in arguments:
        _check_page(tmp_path / "r.html")


@pytest.mark.parametrize("closed", STREAMS)
def test_streams_that_a_shell_closes_are_no_error(tmp_path: Path, closed: str) -> None:
    """What the interpreter makes of them before the command begins."""
    _write(tmp_path / "t.json", "orders")
    script = f"{SCRIPT} simulate t.json --scenario step --html r.html {closed}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stdout + done.stderr
    _check_page(tmp_path / "r.html")


@pytest.fixture
def broken(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, whose `simulate` fails where nothing is expected to."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise KeyError("no such\nthing")

    _write(command.folder / "t.json", "orders")
    monkeypatch.setattr("highwater_lab.commands.simulate.print_rehearsal", fail)
    return command


def test_unforeseen_error_is_one_line_and_never_a_finding(broken: Command) -> None:
    done = broken("simulate", "t.json", "--scenario", "step")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "highwater: unexpected error; please report it: KeyError: 'no such\\nthing'; "
        "for its traceback: highwater --debug ...\n",
    )


def test_debug_adds_the_traceback(broken: Command) -> None:
    done = broken("--debug", "simulate", "t.json", "--scenario", "step")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.count("unexpected error") == 1
