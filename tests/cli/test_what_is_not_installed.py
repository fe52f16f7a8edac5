"""The command imports what it needs: no other command; where a part is missing, one line says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

NO_LAB = (
    "from importlib import metadata\n"
    "every = metadata.entry_points\n"
    "metadata.entry_points = lambda **of: [e for e in every(**of) if not e.value.startswith('highwater_lab')]\n"
)
NO_CLICK = "sys.modules['click'] = None\n"


def _run(change: str, *arguments: str) -> tuple[int, str, str]:
    start = f"sys.argv[1:] = {list(arguments)!r}\nfrom highwater.cli.main import main\nmain()"
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys\n{change}{start}"], capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    "arguments", [("rehearse", "cdk.out", "--html", "x"), ("local", "up"), ("recommend", "--help")]
)
def test_command_of_the_lab_says_what_to_install(arguments: tuple[str, ...]) -> None:
    message = (
        f"highwater: {arguments[0]} is part of highwater-lab; install it as "
        "https://github.com/cdk-highwater/highwater/blob/main/docs/install.md says\n"
    )
    assert _run(NO_LAB, *arguments) == (2, "", message)


def test_help_lists_all_commands_by_what_they_are_for_and_says_what_to_install() -> None:
    status, listed, _ = _run(NO_LAB, "--help")
    missing = "In another package: highwater-lab"
    assert status == 0
    assert [line.rstrip() for line in listed[listed.index("Before a deploy:") :].splitlines()] == [
        "Before a deploy:",
        f"  check      {missing}",
        f"  rehearse   {missing}",
        f"  simulate   {missing}",
        f"  recommend  {missing}",
        f"  migrate    {missing}",
        f"  traffic    {missing}",
        f"  prices     {missing}",
        "  shards     Which partition keys of a trace need how many shards.",
        "",
        "Live tables:",
        f"  doctor   {missing}",
        f"  audit    {missing}",
        "  status   All managed tables, one line per target.",
        "  explain  Why a table has the capacity it has.",
        "  pulses   What a table's fleet reports, and how much of it.",
        "  pause    Suspend all scaling of a table.",
        "  resume   Resume scaling of a paused table.",
        "",
        "Jobs:",
        "  boost  Request capacity for a job, by lease.",
        "  scan   Read a whole table or index within a budget, into a file.",
        "  load   Put many items within a budget, from a file.",
        "  jobs   How far jobs of many workers are; stop and resume them.",
        "",
        "An AWS endpoint on this machine:",
        f"  local  {missing}",
    ]


def test_command_without_its_libraries_says_what_to_install() -> None:
    message = "highwater: the command needs more libraries; install them with: pip install click rich zstandard\n"
    assert _run(NO_CLICK, "status") == (2, "", message)


def test_command_imports_none_of_the_others() -> None:
    """All of them take longer to import than most take to run."""
    told = (
        "import atexit\n"
        "is_told = lambda name: name == 'boto3' or name.startswith(('highwater.cli.', 'highwater_lab.commands.'))\n"
        "atexit.register(lambda: print(*sorted(filter(is_told, sys.modules))))\n"
    )
    status, printed, _ = _run(told, "prices", "--help")
    assert status == 0
    assert printed.splitlines()[-1] == (
        "highwater.cli.main highwater_lab.commands.options highwater_lab.commands.prices"
    )
    assert _run(told, "--version")[1].splitlines()[1:] == ["highwater.cli.main"]


def test_misspelt_command_is_told_which_is_meant_though_none_is_imported() -> None:
    message = "highwater: No such command 'simulat'. Did you mean 'simulate'?\n"
    assert _run("sys.argv[0] = 'highwater'\n", "simulat") == (2, "", message)
