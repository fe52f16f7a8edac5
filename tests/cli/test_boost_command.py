"""`highwater boost`: what it refuses, in a line each, before it asks anybody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOR = ("--for", "30m")


def _run(*arguments: str) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HIGHWATER_"))}
    keys = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_REGION": "eu-central-1"}
    # nobody listens there
    elsewhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1", "HOME": os.devnull}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "highwater"), *arguments],
        env=environment | keys | elsewhere,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("orders", "--write", "5"), 2, "highwater boost: Missing option '--for'."),
        (
            ("orders", "--write", "0", *FOR),
            2,
            "highwater boost: Invalid value for '--write': 0 is not in the range x>=1.",
        ),
        (
            ("orders", *FOR, "--done-in", "40m"),
            2,
            "highwater boost: --done-in sizes a job; give --items and --item-bytes, or --scan",
        ),
        (
            ("orders", *FOR, "--items", "5"),
            2,
            "highwater boost: a job is sized by --items, --item-bytes and --done-in, or by --scan and --done-in",
        ),
        (
            ("orders", *FOR, "--items", "5", "--item-bytes", "8", "--done-in", "1m"),
            2,
            "highwater boost: a job of 0:01:00 of which 0:02:00 pass before the capacity is there; give it more time",
        ),
        (
            ("orders", *FOR, "--write", "5", "--at", "02:00"),
            2,
            "highwater boost: '02:00' is no instant with its zone; write it like 2027-03-04T02:00Z",
        ),
        (
            ("orders", *FOR, "--write", "5", "--at", "2027-03-04T02:00Z", "--", "true"),
            2,
            "highwater boost: --at books capacity ahead; a command would start now",
        ),
        (
            ("orders", *FOR, "--write", "5"),
            1,
            "highwater boost: the parameters below /highwater/coordinators/ cannot be read: Could not connect to the "
            'endpoint URL: "http://127.0.0.1:9/"',
        ),
    ],
)
def test_what_cannot_be_is_said_in_a_line(arguments: tuple[str, ...], status: int, said: str) -> None:
    assert _run("boost", *arguments) == (status, f"{said}\n")


@pytest.mark.parametrize("command", [("boosts", "orders"), ("unboost", "orders", "some-boost-1")])
def test_coordinator_that_cannot_be_reached_is_a_finding(command: tuple[str, ...]) -> None:
    status, said = _run(*command, "--coordinator", "http://127.0.0.1:9/")
    assert status == 1
    assert said.startswith(f"highwater {command[0]}: the coordinator at http://127.0.0.1:9/ does not answer: ")
    assert said.count("\n") == 1
