"""`PacedLoad` deployed by the real CDK CLI to a strict local cloud: functions and a process that dies on one budget."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3

from cdk_highwater import BoostCoordinator, PacedLoad
from highwater.jobs.job_table import JobTable
from tests.cdk_cli import deployed_app
from tests.deploys.apps import plain_table, synthesize, tell_machine
from tests.deploys.live import Machines

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("paced loads")]
# a worker of the same job in no function, which dies between its third write and the record of that
KILLED = """
import os, signal, sys
import boto3
import highwater.jobs
from highwater_lab.local.control import CloudControl
from highwater_lab.local.lockstep import take_part
session, written = boto3.Session(), []
def count(model, **_):
    written.append(model.name)
    if written.count("BatchWriteItem") == 3:
        os.kill(os.getpid(), signal.SIGKILL)
session.events.register("after-call.dynamodb", count)
with take_part(CloudControl(int(sys.argv[1])), int(sys.argv[2])):
    highwater.jobs.run_worker(sys.argv[3], session=session)
"""
ORDERS, WRITE = 3_000, 50
# each takes four units, so a worker with one unit a second needs more than the fifteen minutes of a run
PARTS, PART = 240, {"x": "y" * 3_900}
# the name of an execution that a rule of EventBridge starts is two UUIDs, and its input the event
FIRST = "11111111-2222-4333-8444-555555555555_66666666-7777-4888-9999-000000000000-first"
CREATED = {
    "version": "0",
    "source": "aws.s3",
    "detail-type": "Object Created",
    "detail": {"bucket": {"name": "exports"}, "object": {"key": "nightly/orders.jsonl", "size": 7}},
}
NO_KEY = "One or more parameter values were invalid: Missing the key pk in the item"


def _order(number: int) -> str:
    return json.dumps({"pk": f"order-{number}", "n": number, "name": "Größe 🌊"}, ensure_ascii=False)


class Stage(Machines):
    """The deployed stack."""

    def put(self, key: str, content: bytes) -> None:
        """Put an object into the bucket of the loads."""
        self.cloud.client("s3").put_object(Bucket="exports", Key=key, Body=content)

    def items(self, table: str) -> list[dict[str, Any]]:
        """All items of a table."""
        pages = self.cloud.client("dynamodb").get_paginator("scan").paginate(TableName=table)
        return [item for page in pages for item in page["Items"]]

    def rejected(self, bucket: str, place: str | None) -> list[dict[str, Any]]:
        """The rejected lines below a place, in the order of their offsets."""
        client, prefix = self.cloud.client("s3"), (place or "").removeprefix(f"s3://{bucket}/")
        keys = [each["Key"] for each in client.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]]
        bodies = [client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys]
        found = [json.loads(line) for body in bodies for line in body.splitlines()]
        return sorted(found, key=lambda each: int(each["at"]))

    def written(self, table: str) -> list[float]:
        """The write units of each minute."""
        now = self.cloud.status().now
        points = self.cloud.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/DynamoDB",
            MetricName="ConsumedWriteCapacityUnits",
            Dimensions=[{"Name": "TableName", "Value": table}],
            StartTime=now - timedelta(hours=1),
            EndTime=now,
            Period=60,
            Statistics=["Sum"],
        )["Datapoints"]
        return [each["Sum"] for each in points]


def _shop(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    exports, rejected = (s3.Bucket(stack, each.title(), bucket_name=each) for each in ("exports", "rejected"))

    def load(name: str, **more: Any) -> None:
        table = plain_table(stack, f"{name}Table", name.lower(), 1_000, 1_000)
        made = PacedLoad(stack, name, table=table, coordinator=coordinator, bucket=exports, **more)
        tell_machine(stack, name, made)

    load("Orders", write=50, workers=4, segments=40, prefix="nightly/", rejects=rejected)
    load("Parts", write=1, workers=1, segments=3, key="parts.jsonl")
    cdk.CfnOutput(stack, "Leases", value=coordinator.lease_table_name)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("paced")
    with deployed_app(folder, synthesize(folder, "Shop", _shop), "Shop") as (cli, outputs):
        yield Stage(cli.cloud, outputs)


@pytest.fixture
def stage(deployed: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    deployed.enter(monkeypatch)
    return deployed


def test_table_ends_as_the_file_is_although_a_worker_is_lost(stage: Stage) -> None:
    lines = [_order(number) for number in range(ORDERS)]
    lines[170], lines[1_300], lines[2_900] = '{"pk": "order-170"', '{"n": 1300}', ""
    content = "\r\n".join(lines).encode()
    stage.put("nightly/orders.jsonl", content)
    run = stage.start("Orders", FIRST, json.dumps(CREATED))
    job = stage.job("Orders", FIRST)
    stage.cloud.step(5)
    assert job in JobTable().ids()
    (seat,) = stage.cloud.control.take_seats(1)
    killed = subprocess.Popen([sys.executable, "-c", KILLED, str(stage.cloud.port), str(seat), job])
    assert killed.wait() == -9
    stage.cloud.control.leave(seat)
    assert stage.progress("Orders", FIRST).state == "running"
    assert stage.until_ended(run, 10) == "SUCCEEDED"

    done = stage.progress("Orders", FIRST)
    assert (done.state, done.items, done.rejected) == ("done", ORDERS - 3, 2)
    assert {item["pk"]["S"]: int(item["n"]["N"]) for item in stage.items("orders")} == {
        f"order-{number}": number for number in range(ORDERS) if number not in (170, 1_300, 2_900)
    }
    broken, keyless = content.index(lines[170].encode()), content.index(lines[1_300].encode())
    assert stage.rejected("rejected", done.rejects_at) == [
        {"at": broken, "why": "the line is no JSON", "line": lines[170]},
        {"at": keyless, "why": NO_KEY, "line": lines[1_300]},
    ]
    assert [each.at for each in done.first_rejects] == [broken, keyless]
    stage.cloud.step(600)
    written = stage.written("orders")
    # the block of the worker that was lost is put again: five seconds of the budget at most
    assert ORDERS - 3 < sum(written) <= ORDERS - 3 + WRITE * 5
    # the bound of the page on shared budgets; under way is a batch of each worker
    assert max(written) <= WRITE * 61 + 25 * 5


def test_load_of_more_than_fifteen_minutes_goes_on_and_rests_while_it_is_stopped(stage: Stage) -> None:
    parts = [json.dumps({"pk": f"part-{number}", "n": number, **PART}) for number in range(PARTS)]
    stage.put("parts.jsonl", "\n".join(parts).encode())
    run, began = stage.start("Parts", "slow"), stage.cloud.status().now
    stage.cloud.step(120)
    jobs, job = JobTable(), stage.job("Parts", "slow")
    jobs.stop(job, is_stopped=True)
    stage.cloud.step(30)
    before = stage.progress("Parts", "slow")
    assert (before.state, before.workers) == ("stopped", 0)
    assert 0 < before.items < PARTS
    stage.cloud.step(300)
    assert stage.progress("Parts", "slow") == before
    jobs.stop(job, is_stopped=False)
    assert stage.until_ended(run, 30) == "SUCCEEDED"
    assert stage.cloud.status().now - began > timedelta(seconds=4 * PARTS + 300)
    done = stage.progress("Parts", "slow")
    assert (done.items, done.rejected, done.units) == (PARTS, 0, 4 * PARTS)
    assert sorted(int(item["n"]["N"]) for item in stage.items("parts")) == list(range(PARTS))


def test_object_that_is_not_allowed_fails_the_execution_and_no_job_is_made(stage: Stage) -> None:
    stage.put("other/orders.jsonl", b"")
    run = stage.start("Orders", "other", '{"key": "other/orders.jsonl"}')
    assert stage.until_ended(run, 10) == "FAILED"
    cause = stage.describe(run)["cause"]
    assert "s3://exports/other/orders.jsonl: cannot be read: " in cause
    assert "check the key, and that the role has s3:GetObject for it" in cause
    assert stage.job("Orders", "other") not in JobTable().ids()
