"""`highwater local` as people and machines use it: what it prints and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.ports import free_port

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def highwater(tmp_path: Path) -> Iterator[Run]:
    """The command, with a home of its own; ends what it started."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).parent / "highwater"), *arguments],
            env=os.environ | {"HOME": str(tmp_path), "XDG_STATE_HOME": ""},
            capture_output=True,
            text=True,
            check=False,
        )

    yield run
    run("local", "down")


def _refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, "one line"
    return done.stderr.strip()


@pytest.mark.parametrize("origin", ["localhost:3000", "*", "http://localhost:3000/page", "null"])
def test_origin_that_is_none_is_refused(highwater: Run, origin: str) -> None:
    done = highwater("local", "up", "--port", str(free_port()), "--allow-origin", origin)
    assert _refused(done) == (
        f"highwater local up: Invalid value for '--allow-origin': {origin!r} is no origin; "
        "give scheme, host and port, such as http://localhost:3000"
    )


def test_up_prints_variables_that_point_the_tools_at_it(highwater: Run) -> None:
    port = free_port()
    done = highwater("local", "up", "--port", str(port))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.fullmatch(
        rf"# local cloud at http://localhost:{port} \(process \d+\); stop it with: highwater local down", lines[0]
    )
    assert lines[1:] == [
        f"export AWS_ENDPOINT_URL=http://localhost:{port}",
        "export AWS_REGION=us-east-1",
        "export AWS_DEFAULT_REGION=us-east-1",
        "export AWS_ACCESS_KEY_ID=000000000000",
        "export AWS_SECRET_ACCESS_KEY=local",
        "export CDK_DEFAULT_ACCOUNT=000000000000",
        "export CDK_DEFAULT_REGION=us-east-1",
    ]
    status = highwater("local", "status")
    assert re.fullmatch(
        rf"endpoint           http://localhost:{port}\n"
        r"clock              \w+day \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n"
        r"tables             0\nscalable targets   0\nscheduled actions  0\n",
        status.stdout,
    )


def test_advance_moves_the_clock_and_json_tells_it(highwater: Run) -> None:
    up = json.loads(highwater("local", "up", "--port", str(free_port()), "--json").stdout)
    assert up["environment"]["AWS_ENDPOINT_URL"] == up["endpoint"]
    ahead = json.loads(highwater("local", "advance", "2d3h4m", "--json").stdout)
    moved = datetime.fromisoformat(ahead["now"]) - datetime.fromisoformat(up["now"])
    assert timedelta(0) <= moved - timedelta(days=2, hours=3, minutes=4) < timedelta(seconds=30)


def test_down_ends_it(highwater: Run) -> None:
    port = free_port()
    highwater("local", "up", "--port", str(port))
    done = highwater("local", "down")
    assert (done.returncode, done.stdout) == (0, f"stopped the local cloud at http://localhost:{port}\n")
    assert _refused(highwater("local", "down")) == (
        "highwater local: no local cloud is running; start one with: highwater local up"
    )


def test_second_up_is_refused(highwater: Run) -> None:
    port = free_port()
    first = json.loads(highwater("local", "up", "--port", str(port), "--json").stdout)
    assert _refused(highwater("local", "up")) == (
        f"highwater local: a local cloud is already running at http://localhost:{port} (process {first['pid']}); stop "
        "it with: highwater local down"
    )


def test_port_in_use_is_refused(highwater: Run) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert _refused(highwater("local", "up", "--port", str(port))) == (
            f"highwater local: port {port} is in use; choose another"
        )


def test_up_after_a_killed_process_cleans_up_and_starts(highwater: Run) -> None:
    first = json.loads(highwater("local", "up", "--port", str(free_port()), "--json").stdout)
    os.killpg(first["pid"], signal.SIGKILL)
    again = highwater("local", "up", "--port", str(free_port()), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["pid"] != first["pid"]


@pytest.mark.parametrize("command", [("status",), ("advance", "1h"), ("down",)], ids=lambda words: words[0])
def test_without_a_cloud_each_command_says_how_to_start_one(highwater: Run, command: tuple[str, ...]) -> None:
    assert _refused(highwater("local", *command)) == (
        "highwater local: no local cloud is running; start one with: highwater local up"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2x", "'2x' is not a duration; write it like 90s, 45m, 2h30m or 3d"),
        ("h", "'h' is not a duration; write it like 90s, 45m, 2h30m or 3d"),
        ("-5m", "No such option '-5'."),
        ("0s", "'0s' is out of range; allowed: 1s to 3660d"),
        ("99999999999999d", "'99999999999999d' is out of range; allowed: 1s to 3660d"),
    ],
)
def test_duration_that_is_none_is_refused_in_one_line(highwater: Run, text: str, message: str) -> None:
    said = _refused(highwater("local", "advance", text))
    assert said in (
        f"highwater local advance: Invalid value for 'DURATION': {message}",
        f"highwater local advance: {message}",
    )


def test_unknown_command_and_option_are_refused_in_one_line(highwater: Run) -> None:
    assert _refused(highwater("local", "sideways")) == "highwater local: No such command 'sideways'."
    assert _refused(highwater("local", "up", "--port", "x")) == (
        "highwater local up: Invalid value for '--port': 'x' is not a valid integer range."
    )


def test_help_of_every_command_says_what_it_does(highwater: Run) -> None:
    for words, sentence in {
        (): "Manage provisioned capacity of DynamoDB tables.",
        ("local",): "An AWS endpoint on this machine for the real CDK CLI and any AWS SDK.",
        ("local", "up"): "Start the local cloud in the background.",
        ("local", "status"): "Show the local cloud's endpoint, its clock and the number of its tables.",
        ("local", "advance"): "Move the cloud's clock ahead by DURATION, such as 45m, 2h30m or 3d.",
        ("local", "down"): "Stop the local cloud and delete its tables and stacks.",
    }.items():
        done = highwater(*words, "--help")
        assert done.returncode == 0
        assert sentence in done.stdout


def test_version_is_told(highwater: Run) -> None:
    assert highwater("--version").stdout == "highwater, version 0.1.0\n"
