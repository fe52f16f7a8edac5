"""Forks and signals: no request waits for a pulse, and each process tells what it counted itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

import highwater
from highwater.core import Dimension
from tests.cdk_cli import ROOT
from tests.client.scripted import CONSUMED, ITEM, DynamoDB, driven_pulse, told_units

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
WRITE = (None, Dimension.WRITE)


def told_by(story: str, *arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.client.forked", story, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_request_of_a_child_that_was_forked_while_another_thread_counted_does_not_wait() -> None:
    assert told_by("fork_while_another_thread_counts")[:2] == [{"counted": True}, {"child": 0}]


def test_request_of_a_signal_handler_does_not_wait_for_the_one_that_it_interrupts() -> None:
    lines = told_by("signal_while_counting")
    assert lines[0] == {"counted": True}
    # the interrupted request had no units
    assert [line["told"] for line in lines[1:]] == [7.0]


def test_each_process_tells_what_it_counted_by_a_connection_of_its_own() -> None:
    assert told_by("fork_after_requests") == [
        {"told": 7.0, "is_parent": True, "is_own": True},
        {"told": 7.0, "is_parent": False, "is_own": True},
        {"child": 0},
        {"told": 7.0, "is_parent": True, "is_own": True},
    ]


def test_children_tell_at_moments_of_their_own() -> None:
    after = {line["after"] for line in told_by("spreads_of_children") if "after" in line}
    assert len(after) > 1
    assert max(after) <= 1.6


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_of_multiprocessing_tell_what_is_left_when_they_end(method: str) -> None:
    lines = told_by("children_of_multiprocessing", method)
    assert sum(line["told"] for line in lines) == 4 * 7.0
    assert not any(line["is_parent"] for line in lines)


class Watched(boto3.Session):
    """A session that says which threads have it make clients."""

    def __init__(self) -> None:
        super().__init__(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
        self.asked_by: list[threading.Thread] = []

    def client(self, *positional: Any, **named: Any) -> Any:
        self.asked_by.append(threading.current_thread())
        return super().client(*positional, **named)


def test_thread_makes_nothing_from_the_callers_session(
    dynamodb: tuple[DynamoDB, boto3.Session, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _, url = dynamodb
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    arn = "arn:aws:ssm:eu-central-1:123456789012:parameter/highwater/pulses/One"
    found = {"Name": "/highwater/pulses/One", "Value": "pulses", "ARN": arn}
    server.answers = [(200, {"Parameters": [found], "ConsumedCapacity": CONSUMED, "Attributes": {}})]
    session = Watched()
    pulse = highwater.pulse(session)
    client = session.client("dynamodb")
    client.put_item(TableName="orders", Item=ITEM)
    pulse.stop()
    told = [asked for asked in server.asked if asked.get("TableName") == "pulses"]
    assert told[0]["Key"]["table"] == {"S": "pulse#orders"}
    assert set(session.asked_by) == {threading.current_thread()}
    # requests that name the table by its ARN are those of this account from now on
    assert pulse.meter.place is not None
    assert pulse.meter.place.account == "123456789012"
    client.close()


def test_process_that_lambda_restores_from_a_snapshot_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks: list[Any] = []
    monkeypatch.setitem(sys.modules, "snapshot_restore_py", SimpleNamespace(register_after_restore=hooks.append))
    pulse = highwater.pulse(boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1"))
    pulse.counts.add("orders", 7, WRITE, 5.0)
    (restore,) = hooks
    restore()
    assert pulse.counts.tables() == []
    pulse.stop()


def test_thread_that_cannot_start_is_started_later(monkeypatch: pytest.MonkeyPatch) -> None:
    table: Any = SimpleNamespace(told=0.0)

    def update_item(**request: Any) -> dict[str, Any]:
        table.told += told_units(request)
        return {"Attributes": {}}

    table.update_item = update_item
    now = [1_795_436_760.0]
    pulse = driven_pulse(table, highwater.CoordinatorClient(), lambda: now[0])

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            pulse.counts.add("orders", 7, WRITE, 5.0)
            pulse.meter.notice()
    now[0] += 20
    pulse.counts.add("orders", 8, WRITE, 5.0)
    pulse.meter.notice()
    pulse.stop()
    assert table.told == 20
