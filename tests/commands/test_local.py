"""`highwater local` as people and machines use it: what it prints and how it ends."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import CloudControl
from tests.command import Command, refused
from tests.ports import free_port

NONE_RUNS = ": no local cloud is running; start one with: highwater local up"


@pytest.fixture
def highwater(command: Command) -> Iterator[Command]:
    """The command; ends what it started."""
    yield command
    command("local", "down")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        *(
            (
                f"up --port 0 --allow-origin {origin}",
                f" up: Invalid value for '--allow-origin': '{origin}' is no origin; give scheme, host and port, such "
                "as http://localhost:3000",
            )
            for origin in ("localhost:3000", "*", "http://localhost:3000/page", "null")
        ),
        ("up --port x", " up: Invalid value for '--port': 'x' is not a valid whole number."),
        (
            "up --clock driven --speed 20",
            ": a driven clock has no speed; leave out --speed 20, or --clock driven",
        ),
        (
            "up --starts-at 2026-03-02T07:59",
            ": a running clock begins now; add --clock driven, or leave out --starts-at",
        ),
        ("up --express", ": only a strict cloud has an express mode; add --strict, or leave out --express"),
        (
            "up --fresh-account",
            ": only a strict cloud can be a fresh account; add --strict, or leave out --fresh-account",
        ),
        ("status", NONE_RUNS),
        ("step 10s", NONE_RUNS),
        ("advance 1h", NONE_RUNS),
        ("down", NONE_RUNS),
        *(
            (f"advance {text}", f" advance: Invalid value for 'DURATION': '{text}' {why}")
            for text, why in [
                ("2x", "is not a duration; write it like 90s, 45m, 2h30m or 3d"),
                ("h", "is not a duration; write it like 90s, 45m, 2h30m or 3d"),
                ("0s", "is out of range; allowed: 1s to 3660d"),
                ("99999999999999d", "is out of range; allowed: 1s to 3660d"),
            ]
        ),
        ("advance -5m", " advance: No such option '-5'."),
        ("sideways", ": No such command 'sideways'."),
    ],
)
def test_misuse_and_no_cloud_are_told_in_one_line(highwater: Command, line: str, message: str) -> None:
    assert refused(highwater("local", *line.split())) == f"highwater local{message}"


def test_up_prints_variables_that_point_the_tools_at_it(highwater: Command) -> None:
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


def test_advance_and_step_move_a_driven_clock_and_json_tells_it(highwater: Command) -> None:
    driven = ("--clock", "driven", "--starts-at", "2026-03-02T07:59")
    up = json.loads(highwater("local", "up", "--port", str(free_port()), *driven, "--json").stdout)
    assert up["environment"]["AWS_ENDPOINT_URL"] == up["endpoint"]
    assert (up["now"], up["speed"]) == ("2026-03-02T07:59:00+00:00", 0)
    assert json.loads(highwater("local", "advance", "2d3h4m", "--json").stdout)["now"] == "2026-03-04T11:03:00+00:00"
    stepped = highwater("local", "step", "90s")
    assert stepped.stdout.splitlines()[1] == "clock              Wednesday 2026-03-04 11:04:30 UTC, driven"


def test_clock_that_runs_is_not_stepped(highwater: Command) -> None:
    highwater("local", "up", "--port", str(free_port()))
    assert refused(highwater("local", "step", "10s")) == (
        "highwater local: the clock runs by itself; use advance, or start the cloud with --clock driven"
    )


@pytest.mark.quick
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"PATH": "/nowhere"},
            "the local cloud is not installed; install highwater-local 0.1.0 as "
            "https://github.com/cdk-highwater/highwater/blob/main/docs/install.md#the-local-cloud says",
        ),
        (
            {"HIGHWATER_LOCAL": "/nowhere/highwater-local"},
            "HIGHWATER_LOCAL names '/nowhere/highwater-local', which is no command; name highwater-local, or unset the "
            "variable",
        ),
    ],
    ids=["not-installed", "variable-names-nothing"],
)
def test_server_that_is_not_there_is_told_with_the_command_that_installs_it(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, Any], message: str
) -> None:
    # a Python without the server's command beside it
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert refused(command("local", "up", **variables)) == f"highwater local: {message}"


def test_down_ends_it(highwater: Command) -> None:
    port = free_port()
    highwater("local", "up", "--port", str(port))
    done = highwater("local", "down")
    assert (done.returncode, done.stdout) == (0, f"stopped the local cloud at http://localhost:{port}\n")
    assert refused(highwater("local", "down")) == f"highwater local{NONE_RUNS}"


def test_second_up_is_refused(highwater: Command) -> None:
    port = free_port()
    first = json.loads(highwater("local", "up", "--port", str(port), "--json").stdout)
    assert refused(highwater("local", "up")) == (
        f"highwater local: a local cloud is already running at http://localhost:{port} (process {first['pid']}); stop "
        "it with: highwater local down"
    )


def test_port_in_use_is_refused(highwater: Command) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused(highwater("local", "up", "--port", str(port))) == (
            f"highwater local: port {port} is in use; choose another"
        )


def test_up_after_a_killed_process_cleans_up_and_starts(highwater: Command) -> None:
    first = json.loads(highwater("local", "up", "--port", str(free_port()), "--json").stdout)
    ended = os.pidfd_open(first["pid"])
    os.killpg(first["pid"], signal.SIGKILL)
    # the descriptor can be read once the process has ended
    select.select([ended], [], [])
    os.close(ended)
    again = highwater("local", "up", "--port", str(free_port()), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["pid"] != first["pid"]


def test_help_of_every_command_says_what_it_does(highwater: Command) -> None:
    for words, sentence in {
        (): "Manage provisioned capacity of DynamoDB tables.",
        ("local",): "An AWS endpoint on this machine for the real CDK CLI and any AWS SDK.",
        ("local", "up"): "Start the local cloud in the background.",
        ("local", "status"): "Show the local cloud's endpoint, its clock and the number of its tables.",
        ("local", "advance"): "Move the cloud's clock ahead by DURATION, such as 45m, 2h30m or 3d.",
        ("local", "step"): "Move the cloud's driven clock ahead by DURATION, such as 10s, 5m or 1h.",
        ("local", "down"): "Stop the local cloud and delete its tables and stacks.",
    }.items():
        done = highwater(*words, "--help")
        assert done.returncode == 0
        assert sentence in done.stdout


def test_version_is_told(highwater: Command) -> None:
    assert highwater("--version").stdout == "highwater, version 0.1.0\n"


@pytest.fixture
def other() -> Iterator[LocalCloud]:
    """A cloud with a driven clock that somebody else has started."""
    with LocalCloud(clock="driven") as cloud:
        yield cloud


def test_cloud_that_the_variable_names_is_the_one_that_is_moved(highwater: Command, other: LocalCloud) -> None:
    up = json.loads(highwater("local", "up", "--port", str(free_port()), "--clock", "driven", "--json").stdout)
    moved = json.loads(highwater("local", "advance", "2h", "--json", AWS_ENDPOINT_URL=other.endpoint).stdout)
    assert (moved["endpoint"], moved["now"]) == (other.endpoint, "2026-01-05T02:00:00+00:00")
    stepped = highwater("local", "step", "1h", "--json", AWS_ENDPOINT_URL=other.endpoint)
    assert json.loads(stepped.stdout)["now"] == "2026-01-05T03:00:00+00:00"
    assert (
        json.loads(highwater("local", "status", "--json", AWS_ENDPOINT_URL=other.endpoint).stdout)["pid"]
        == other.status().pid
    )
    mine = json.loads(highwater("local", "status", "--json").stdout)
    assert (mine["endpoint"], mine["now"]) == (up["endpoint"], "2026-01-05T00:00:00+00:00")
    environment = json.loads(highwater("local", "env", "--json", AWS_ENDPOINT_URL=other.endpoint).stdout)
    assert environment["AWS_ENDPOINT_URL"] == up["endpoint"], "with which another terminal gets at one's own"


def test_of_two_clouds_the_one_that_is_named_is_stopped(highwater: Command, other: LocalCloud) -> None:
    up = json.loads(highwater("local", "up", "--port", str(free_port()), "--json").stdout)
    port = int(up["endpoint"].rpartition(":")[2])
    assert refused(highwater("local", "down", AWS_ENDPOINT_URL=other.endpoint)) == (
        f"highwater local: there are two local clouds: {other.endpoint} of AWS_ENDPOINT_URL, and {up['endpoint']} of "
        f"highwater local up; say which with --port {other.port} or --port {port}"
    )
    stopped = highwater("local", "down", "--port", str(other.port), AWS_ENDPOINT_URL=other.endpoint)
    assert (stopped.returncode, stopped.stdout) == (0, f"stopped the local cloud at {other.endpoint}\n")
    assert refused(highwater("local", "status", AWS_ENDPOINT_URL=other.endpoint)) == (
        f"highwater local: no local cloud answers at AWS_ENDPOINT_URL={other.endpoint}, and highwater local up started "
        f'the one at {up["endpoint"]}; set the variable with: eval "$(highwater local env)", or unset it'
    )
    assert refused(highwater("local", "down", "--port", str(other.port))) == (
        f"highwater local: no local cloud answers at port {other.port}; yours has the port that this prints: highwater "
        "local env"
    )
    stopped = highwater("local", "down", AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
    assert (stopped.returncode, stopped.stdout) == (0, f"stopped the local cloud at {up['endpoint']}\n")


def test_cloud_that_only_the_variable_knows_is_stopped(highwater: Command, other: LocalCloud) -> None:
    stopped = highwater("local", "down", AWS_ENDPOINT_URL=other.endpoint)
    assert (stopped.returncode, stopped.stdout) == (0, f"stopped the local cloud at {other.endpoint}\n")


@pytest.mark.quick
@pytest.mark.parametrize(
    "url", ["http://localhost:1", "https://dynamodb.eu-west-1.amazonaws.com", "localhost", "http://localhost:x"]
)
@pytest.mark.parametrize("words", ["status", "advance 1h", "step 1h", "down", "traffic orders --writes 5/s --for 1m"])
def test_variable_that_names_no_cloud_is_told(command: Command, url: str, words: str) -> None:
    where = "highwater local traffic" if words.startswith("traffic") else "highwater local"
    assert refused(command("local", *words.split(), AWS_ENDPOINT_URL=url)) == (
        f"{where}: no local cloud answers at AWS_ENDPOINT_URL={url}; unset it, and start one with: highwater local up"
    )


def test_variables_of_a_role_are_printed_and_taken_back(highwater: Command) -> None:
    port = free_port()
    highwater("local", "up", "--port", str(port))
    assert refused(highwater("local", "env", "--role", "Loader")) == (
        "highwater local: the local cloud has no role 'Loader', nor any other; deploy the stack that declares it"
    )
    iam = CloudControl(port).client("iam")
    trust = {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    roles = [iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"] for name in ("Loader", "Reader")]
    iam.close()
    printed = highwater("local", "env", "--role", "Loader").stdout.splitlines()
    environment = dict(line.removeprefix("export ").split("=", 1) for line in printed)
    assert environment["AWS_ENDPOINT_URL"] == f"http://localhost:{port}"
    sts = boto3.client(
        "sts",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=environment["AWS_SESSION_TOKEN"],
    )
    assert sts.get_caller_identity()["Arn"] == "arn:aws:sts::000000000000:assumed-role/Loader/highwater-local"
    sts.close()
    by_arn = json.loads(highwater("local", "env", "--role", roles[1]["Arn"], "--json").stdout)
    assert by_arn["AWS_SESSION_TOKEN"]
    assert refused(highwater("local", "env", "--role", "Loadre")) == (
        "highwater local: the local cloud has no role 'Loadre'; its roles are Loader, Reader; did you mean Loader?"
    )
    again = highwater("local", "env", AWS_SESSION_TOKEN=environment["AWS_SESSION_TOKEN"]).stdout.splitlines()
    assert again[-1] == "unset AWS_SESSION_TOKEN"
    assert "export AWS_ACCESS_KEY_ID=000000000000" in again
