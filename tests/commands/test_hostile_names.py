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


ESCAPE = "or\x1b[2Jders\x9b31m\u202e"


@pytest.mark.parametrize("options", [(), ("--html", "r.html", "--png", "r.png")], ids=["text", "files"])
def test_escape_sequences_in_names_do_not_reach_the_terminal(
    command: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    _write(tmp_path / "t.json", ESCAPE)
    traffic = f"tr{ESCAPE}.csv"
    (tmp_path / traffic).write_text("bin_60s,writes\n0,700\n1,800\n")
    done = command("rehearse", "t.json", "--traffic", traffic, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("or\ufffd[2Jders\ufffd31m\ufffd under tror\ufffd[2Jders\ufffd31m\ufffd: ")
    assert all(character.isprintable() or character == "\n" for character in done.stdout + done.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        ("rehearse", "t.json", "--scenario", "step", "--table", f"x{ESCAPE}"),
        ("rehearse", f"none{ESCAPE}", "--scenario", "step"),
        ("rehearse", "t.json", "--traffic", f"none{ESCAPE}.csv"),
        ("rehearse", "t.json", "--scenario", "step", "--parameter", f"{ESCAPE}=5"),
        (f"{ESCAPE}",),
        ("prices", "--prices", f"none{ESCAPE}"),
    ],
)
def test_escape_sequences_in_errors_do_not_either(command: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    _write(tmp_path / "t.json", ESCAPE)
    done = command(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert all(character.isprintable() or character == "\n" for character in done.stderr)


@pytest.mark.parametrize("columns", ["0", "1", "-5", "wide", ""])
def test_terminal_without_a_width_shows_everything(tmp_path: Path, command: Run, columns: str) -> None:
    _write(tmp_path / "t.json", "orders")
    shown = command("rehearse", "t.json", "--scenario", "step", columns=columns)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "orders under step:" in shown.stdout


@pytest.mark.parametrize("arguments", ["rehearse t.json --scenario step --html r.html", "prices", "--help", "nonsense"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(tmp_path: Path, arguments: str, closed: str) -> None:
    _write(tmp_path / "t.json", "orders")
    binary = Path(sys.executable).parent / "highwater"
    script = f"{binary} {arguments} {closed}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if arguments == "nonsense" else 0)
    assert "Traceback" not in done.stdout + done.stderr
    if "--html" in arguments:
        page = (tmp_path / "r.html").read_text()
        assert page.startswith("<!doctype html>")
        assert page.rstrip().endswith("</html>")


@pytest.mark.parametrize("option", ["--html", "--png", "--save"])
def test_loop_of_links_is_told(command: Run, tmp_path: Path, option: str) -> None:
    _write(tmp_path / "t.json", "orders")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    done = command("rehearse", "t.json", "--scenario", "step", option, "a")
    assert (done.returncode, done.stderr) == (
        2,
        "highwater rehearse: a: cannot be written: Too many levels of symbolic links\n",
    )


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
