"""Servers of greenlets, whose threads, locks and sleeps are gevent's: nothing is lost, and no wait holds up others."""

from __future__ import annotations

import json
import subprocess
import sys

import boto3
import pytest

from tests.cdk_cli import ROOT
from tests.client.scripted import CONSUMED, DynamoDB, told_units


def test_greenlets_are_metered_and_paced(dynamodb: tuple[DynamoDB, boto3.Session, str]) -> None:
    pytest.importorskip("gevent", reason="gevent is not in the environment of the local cloud; make test runs this")
    server, _, url = dynamodb
    server.answers = [(200, {"ConsumedCapacity": CONSUMED, "Attributes": {}})]
    command = [sys.executable, "-m", "tests.client.greenlets", url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    written = [asked for asked in server.asked if asked["TableName"] == "orders"]
    told = [asked for asked in server.asked if asked["TableName"] == "pulses"]
    assert len(written) == 20
    # 4.5 units of the table and its local index, and 2.5 of the other, for each request
    assert sum(told_units(asked) for asked in told) == 20 * (4.5 + 2.5)
    # 90 units at 60 a second, of which a second's are there at the start
    assert said["seconds"] == pytest.approx(0.5, abs=1e-6)
    assert said["ticks"]
    assert all(said["ticks"]), "other greenlets went on during each wait"
