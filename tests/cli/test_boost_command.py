"""`highwater boost`: what it refuses, in a line each, before it asks anybody."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from highwater import CoordinatorClient
from tests.client.scripted import listening
from tests.command import Command, refused


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The command with credentials, and an endpoint at which nobody listens."""
    keys = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_REGION": "eu-central-1"}
    return Command(tmp_path, keys | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--write 5", "Missing option '--for'."),
        ("--write 0 --for 30m", "Invalid value for '--write': 0 is not in the range x>=1."),
        ("--for 30m --done-in 40m", "--done-in sizes a job; give --items and --item-bytes, or --scan"),
        (
            "--for 30m --items 5",
            "a job is sized by --items, --item-bytes and --done-in, or by --scan and --done-in",
        ),
        (
            "--for 30m --items 5 --item-bytes 8 --done-in 1m",
            "a job of 0:01:00 of which 0:02:00 pass before the capacity is there; give it more time",
        ),
        (
            "--for 30m --write 5 --at 02:00",
            "'02:00' is no instant with its zone; write it like 2027-03-04T02:00Z",
        ),
        (
            "--for 30m --write 5 --at 2027-03-04T02:00Z -- true",
            "--at books capacity ahead; a command would start now",
        ),
        (
            "--for 30m --write 5 -- lode-orders --fast",
            "no command 'lode-orders' on PATH; check its name, or give its path, such as ./lode-orders",
        ),
        (
            "--for 30m --write 5 -- ./load.sh",
            "'./load.sh' is no program that you may execute; check its path and its mode",
        ),
    ],
)
def test_what_cannot_be_is_said_in_a_line(command: Command, line: str, said: str) -> None:
    assert refused(command("boost", "run", "orders", *line.split())) == f"highwater boost run: {said}"


def test_coordinators_that_cannot_be_looked_up_are_a_finding(command: Command) -> None:
    done = command("boost", "run", "orders", "--for", "30m", "--write", "5")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "highwater boost run: the parameters below /highwater/coordinators/ cannot be read: Could not connect to the "
        'endpoint URL: "http://127.0.0.1:9/"\n',
    )


@pytest.mark.parametrize(
    "arguments",
    [("boost", "list", "orders"), ("boost", "log", "orders"), ("boost", "release", "orders", "some-boost-1")],
)
def test_coordinator_that_cannot_be_reached_is_a_finding(
    command: Command, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = functools.partial(CoordinatorClient, pause=lambda _: None)
    monkeypatch.setattr("highwater.cli.boost.CoordinatorClient", impatient)
    done = command(*arguments, "--coordinator", "http://127.0.0.1:9/")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"highwater boost {arguments[1]}: the coordinator at http://127.0.0.1:9/ does not answer: "
    )
    assert done.stderr.count("\n") == 1


def test_root_of_the_local_cloud_is_told_how_to_become_a_role(command: Command) -> None:
    said = "only roles and users may boost, and the caller is arn:aws:iam::000000000000:root; assume a role that has "
    said += "grant_boost"

    with listening(lambda *_: (403, json.dumps({"error": said}).encode())) as url:
        done = command("boost", "list", "orders", "--coordinator", f"{url}/")
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f'highwater boost list: {said}, on the local cloud with: eval "$(highwater local env --role NAME)"\n',
    )
