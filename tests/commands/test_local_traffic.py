"""`highwater local traffic`: load from the command line."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from highwater_lab.local.control import CloudControl
from tests.command import Command
from tests.ports import free_port


@pytest.fixture(scope="module")
def highwater(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The command with a home of its own, and a local cloud at sixty times real time with a table of 30 write units."""
    run = Command(tmp_path_factory.mktemp("home"), {"COLUMNS": "100"})
    port = free_port()
    up = run("local", "up", "--port", str(port), "--speed", "60")
    assert up.returncode == 0, up.stderr
    environment = CloudControl(port).environment()
    dynamodb: Any = boto3.client(
        "dynamodb",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    for name, kind in (("orders", "S"), ("numbers", "N")):
        dynamodb.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": kind}],
            ProvisionedThroughput={"ReadCapacityUnits": 20, "WriteCapacityUnits": 30},
        )
    dynamodb.close()
    yield run
    run("local", "down")


def test_load_is_sent_and_told(highwater: Command) -> None:
    done = highwater("local", "traffic", "orders", "--writes", "100/s", "--reads", "13", "--for", "5m", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["speed"] == 60
    writes, reads = told["units"]["write"], told["units"]["read"]
    # at sixty times the speed a hundred units a second are 6,000 a real second
    assert (writes["per_request"], reads["per_request"]) == (24, 4)
    assert writes["asked"] == pytest.approx(100 * 300, rel=0.01)
    assert reads["asked"] == pytest.approx(13 * 300, rel=0.01)
    assert reads["throttled"] == 0
    # a full bucket of 9,000 and 30 a second, for as long as it took
    seconds = 300 + told["most_behind_seconds"]
    assert 0.95 * (9_000 + 30 * 300) <= writes["granted"] <= 1.05 * (9_000 + 30 * seconds)
    assert writes["granted"] + writes["throttled"] == writes["asked"]
    assert told["throttled_requests"] == writes["throttled"] / 24
    assert writes["minutes"][0] == [writes["minutes"][0][0], writes["minutes"][0][0], 0], "a full bucket holds a minute"
    assert 0 < told["latency_ms"]["p50"] <= told["latency_ms"]["p99"]


def test_summary_is_for_people(highwater: Command, tmp_path: Path) -> None:
    highwater("local", "advance", "10m")
    file = tmp_path / "load.csv"
    file.write_text("minute_index,writes\n0,900\n1,1800\n2,600\n")
    done = highwater("local", "traffic", "orders", "--traffic", str(file), "--scale", "0.5")
    assert (done.returncode, done.stderr) == (0, "")
    head, row, told = done.stdout.splitlines()
    assert head.split()[:4] == ["units", "asked", "granted", "throttled"]
    assert re.fullmatch(r"writes +1,6\d\d +1,6\d\d +0 +0 +4 *", row)
    assert re.fullmatch(r"[\d,]+ requests, 0 throttled, 0 retried; latency \d+\.\d ms p50, \d+\.\d ms p99", told)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("nowhere", "--writes", "5/s", "--for", "1m"),
            "no table 'nowhere' here; deploy or create it first",
        ),
        (
            ("orders", "--writes", "0/s", "--for", "1m"),
            "Invalid value for '--writes': '0/s' sends nothing; give a rate above 0, or leave the option out",
        ),
        (("orders", "--writes", "many"), "Invalid value for '--writes': 'many' is not a rate; write it like 180/s"),
        (("orders", "--writes", "5/s"), "--writes and --reads need a duration; give it with --for, such as --for 10m"),
        (("orders", "--writes", "5/s", "--for", "30s"), "--for must be a minute at least"),
        (("orders",), "give the load with --writes and --reads, or with --traffic FILE, or with --scenario NAME"),
        (
            ("orders", "--writes", "5/s", "--scenario", "step"),
            "give the load with --writes and --reads, or with --traffic FILE, or with --scenario NAME",
        ),
        (
            ("orders", "--scenario", "step", "--traffic-table", "orders"),
            "--traffic-table is of --traffic, and chooses one of the tables of its file; remove it",
        ),
        (("numbers", "--writes", "5/s", "--for", "1m"), "table numbers: its keys must be strings for made-up items"),
        (
            ("orders", "--writes", "9000/s", "--for", "1m"),
            "traffic steady asks for 9,000 write units/s at its peak; at speed 60 at most 1,625 can be sent: scale it "
            "down",
        ),
    ],
)
def test_misuse_is_one_line(highwater: Command, arguments: tuple[str, ...], message: str) -> None:
    done = highwater("local", "traffic", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"highwater local traffic: {message}\n"


@pytest.fixture
def long_load(command: Command) -> Iterator[tuple[Command, subprocess.Popen[str]]]:
    """A load of an hour on a cloud of its own, in real time, once some of it has been sent; and the command."""
    port = free_port()
    assert command("local", "up", "--port", str(port)).returncode == 0
    dynamodb = CloudControl(port).client("dynamodb")
    dynamodb.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 20, "WriteCapacityUnits": 30},
    )
    with command.start("local", "traffic", "orders", "--writes", "40/s", "--for", "1h") as process:
        while not dynamodb.scan(TableName="orders", Limit=1)["Count"]:
            pass
        dynamodb.close()
        yield command, process
        process.kill()
    command("local", "down")


def test_load_on_a_cloud_that_goes_away_says_so_after_what_was_sent(
    long_load: tuple[Command, subprocess.Popen[str]],
) -> None:
    command, process = long_load
    assert command("local", "down").returncode == 0
    told, problems = process.communicate(timeout=120)
    assert process.returncode == 1
    assert re.search(r"^writes +[1-9]\d* ", told, re.MULTILINE)
    assert re.fullmatch(r"highwater local traffic: ended before its time: .+\n", problems), problems


def test_load_that_is_interrupted_tells_what_was_sent(long_load: tuple[Command, subprocess.Popen[str]]) -> None:
    _, process = long_load
    process.send_signal(signal.SIGINT)
    told, problems = process.communicate(timeout=120)
    assert (process.returncode, problems) == (130, "")
    assert re.search(r"^writes +[1-9]\d* ", told, re.MULTILINE)


def test_variables_are_printed_for_another_terminal(highwater: Command) -> None:
    printed = highwater("local", "env")
    told = json.loads(highwater("local", "env", "--json").stdout)
    assert printed.returncode == 0
    assert printed.stdout.splitlines() == [f"export {name}={value}" for name, value in told.items()]
    assert told["AWS_ENDPOINT_URL"].startswith("http://localhost:")
