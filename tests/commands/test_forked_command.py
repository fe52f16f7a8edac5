"""What other tests see of the command in a fork is what users see of the installed script."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Command

TEMPLATE = str(Path(__file__).parents[1] / "template" / "corpus" / "target-by-a-split-arn" / "template.yaml")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("--version", 0),
        (f"simulate {TEMPLATE} --scenario step --html r.html", 0),
        (f"simulate {TEMPLATE} --scenario step --max-cost 0", 1),
        ("pause orders", 2),
    ],
)
def test_fork_prints_and_ends_as_the_script_does(command: Command, line: str, status: int) -> None:
    done = command(*line.split())
    with command.start(*line.split()) as process:
        out, err = process.communicate()
    assert (done.returncode, done.stdout, done.stderr) == (process.returncode, out, err)
    assert (done.returncode, bool(out), bool(err)) == (status, status < 2, status == 2)
