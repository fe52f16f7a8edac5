"""`PacedScan` deployed by the real CDK CLI to a strict local cloud: twenty workers on one budget, and one that dies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

import highwater.jobs
from cdk_highwater import BoostCoordinator, PacedScan
from cdk_highwater.support.asset import files_of_room, write_asset
from highwater.core.names import PARTITION_KEY, SORT_KEY
from highwater.jobs.job_table import JobTable
from tests.cdk_cli import deployed_app
from tests.constructs.template_view import key
from tests.deploys.apps import HERE, plain_table, synthesize, tell_machine
from tests.deploys.live import Machines

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("paced scans")]
WORKER = """
import os, time, uuid
import boto3
import highwater.jobs
dynamodb, me = boto3.client("dynamodb"), uuid.uuid4().hex
def work(items):
    for item in items:
        n = int(item["n"])
        key = {"run": {"S": os.environ["RUN"]}, "pk": {"S": item["pk"]}}
        found = {"square": {"N": str(n * n)}, "by": {"S": me}, "at": {"N": str(time.time())}}
        died = key | {"run": {"S": "died"}}
        if os.environ["DIES_AT"] == str(n) and "Item" not in dynamodb.get_item(TableName="done", Key=died):
            dynamodb.put_item(TableName="done", Item=died | found)
            os._exit(1)
        dynamodb.put_item(TableName="done", Item=key | found)
handler = highwater.jobs.worker_handler(work)
"""
PLAIN = (
    WORKER
    + """
import sys
from highwater_lab.local.control import CloudControl
from highwater_lab.local.lockstep import take_part
with take_part(CloudControl(int(sys.argv[1])), int(sys.argv[2])):
    highwater.jobs.run_worker("plain", work)
"""
)
ORDERS, PARTS = 680, 120
# a read of an item takes five units
COST, TEXT = 5, "x" * 40_000
READ, WORKERS = 20, 20


SETTLED_AFTER, MEASURED = 60, 80
FIRST_WRITE_WITHIN = 60


def _squares(table: str, count: int) -> dict[str, int]:
    return {f"{table}-{number}": number * number for number in range(count)}


@dataclass(frozen=True)
class Done:
    """An item that a worker has worked on."""

    pk: str
    square: int
    by: str
    at: float


class Stage(Machines):
    """The deployed stack."""

    def versions(self) -> dict[str, int]:
        """The versions of the records of all budgets: each write counts its record's up, from a random number on."""
        dynamodb = self.cloud.client("dynamodb")
        items = dynamodb.scan(TableName=self.outputs["Leases"])["Items"]
        dynamodb.close()
        return {
            item[PARTITION_KEY]["S"] + item[SORT_KEY]["S"]: int(item["version"]["N"])
            for item in items
            if "members" in item
        }

    def first_version(self, known: Collection[str]) -> tuple[str, int]:
        """The record of a budget that is not *known*, and its version, as soon as a worker has made it."""
        for _ in range(FIRST_WRITE_WITHIN):
            for name, version in self.versions().items():
                if name not in known:
                    return name, version
            self.cloud.step(1)
        raise AssertionError("no worker has made a record of its budget")

    def done(self, run: str) -> list[Done]:
        """What the workers of a run have done, in the order of time."""
        pages = (
            self.cloud.client("dynamodb")
            .get_paginator("query")
            .paginate(
                TableName="done",
                KeyConditionExpression="#run = :run",
                ExpressionAttributeNames={"#run": "run"},
                ExpressionAttributeValues={":run": {"S": run}},
            )
        )
        found = [
            Done(item["pk"]["S"], int(item["square"]["N"]), item["by"]["S"], float(item["at"]["N"]))
            for page in pages
            for item in page["Items"]
        ]
        return sorted(found, key=lambda each: each.at)


def _shop(stack: cdk.Stack, *, code: Path) -> None:
    write_asset(code.parent / "worker.zip", [lambda: files_of_room("jobs"), lambda: [("worker.py", code)]])
    coordinator = BoostCoordinator(stack, "Boosts")
    done = plain_table(stack, "Done", "done", 1_000, 1_000, partition_key=key("run"), sort_key=key())

    def scan(name: str, table: str, minutes: int, dies_at: str = "", **more: Any) -> None:
        function = lambda_.Function(
            stack,
            f"{name}Work",
            runtime=lambda_.Runtime.PYTHON_3_12,
            handler="worker.handler",
            memory_size=256,
            code=lambda_.Code.from_asset(str(code.parent / "worker.zip")),
            timeout=cdk.Duration.minutes(minutes),
            environment={"RUN": name, "DIES_AT": dies_at},
        )
        done.grant_read_write_data(function)
        of = plain_table(stack, table.title(), table, 1_000, 1_000)
        made = PacedScan(stack, name, table=of, coordinator=coordinator, function=function, **more)
        tell_machine(stack, name, made)

    scan("Fair", "orders", 15, read=20, workers=20, segments=80)
    scan("Lost", "parts", 5, "7", read=3, workers=3, segments=12)
    cdk.CfnOutput(stack, "Leases", value=coordinator.lease_table_name)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("paced")
    (folder / "worker.py").write_text(WORKER)
    app = synthesize(folder, "Shop", _shop, env=HERE, code=folder / "worker.py")
    with deployed_app(folder, app, "Shop") as (cli, outputs):
        dynamodb = cli.cloud.client("dynamodb")
        for table, count in (("orders", ORDERS), ("parts", PARTS)):
            for number in range(count):
                item = {"pk": {"S": f"{table}-{number}"}, "n": {"N": str(number)}, "x": {"S": TEXT}}
                dynamodb.put_item(TableName=table, Item=item)
                if number % 20 == 0:
                    # a partition takes 1,000 units a second
                    cli.cloud.step(1)
        yield Stage(cli.cloud, outputs)


def test_twenty_workers_keep_to_one_budget_with_fair_shares(stage: Stage) -> None:
    known = stage.versions()
    run = stage.start("Fair", "first")
    record, first_version = stage.first_version(known)
    assert stage.until_ended(run, 12) == "SUCCEEDED"
    done = stage.done("Fair")
    assert {each.pk: each.square for each in done} == _squares("orders", ORDERS)
    # the bound of the page on shared budgets; under way is one item for each worker
    for seconds in (1, 2, 5, 10, 30, 60):
        for first in done:
            units = COST * sum(first.at <= each.at < first.at + seconds for each in done)
            assert units <= READ * (seconds + 1) + COST * WORKERS, (seconds, first.at)
    begin = done[0].at + SETTLED_AFTER
    counted = Counter(each.by for each in done if begin <= each.at < begin + MEASURED)
    fair = READ * MEASURED / COST / WORKERS
    assert len(counted) == WORKERS
    writes = stage.versions()[record] - first_version
    assert 0.5 <= writes / (done[-1].at - done[0].at) <= 1.4, "a second, as for three workers"
    assert all(0.9 * fair <= each <= 1.1 * fair for each in counted.values()), counted


def test_lost_worker_and_runs_that_end_in_time_give_what_plain_processes_give(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = stage.versions()
    run = stage.start("Lost", "first")
    record, first_version = stage.first_version(known)
    assert stage.until_ended(run, 12) == "SUCCEEDED"
    done = stage.done("Lost")
    writes = stage.versions()[record] - first_version
    assert writes / (done[-1].at - done[0].at) <= 1.4
    # each item is a page, which takes a worker five seconds, longer than half of a lease: nearly each renews it
    assert writes >= 0.9 * PARTS
    assert max(each.at for each in done) - done[0].at > 180, "workers return three minutes after they began"
    (died,) = stage.done("died")
    assert died.by not in {each.by for each in done if each.at > died.at}
    # the lease counts from the record of its last page, of one item, and not from its death in the next one
    recorded = max(each.at for each in done if each.by == died.by)
    assert any(each.pk == died.pk and each.at >= recorded + 60 for each in done), "its segment was free after its lease"
    stage.enter(monkeypatch)
    found = stage.progress("Lost", "first")
    assert (found.state, found.items, found.segments) == ("done", PARTS, 12)

    highwater.jobs.start_job("plain", table="parts", read=300, segments=12)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PLAIN, str(stage.cloud.port), str(seat)],
            env=os.environ | {"RUN": "Plain", "DIES_AT": ""},
        )
        for seat in stage.cloud.control.take_seats(3)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    plain = {each.pk: each.square for each in stage.done("Plain")}
    assert {each.pk: each.square for each in done} == plain == _squares("parts", PARTS)


def test_job_that_is_stopped_rests_and_goes_on_when_it_is_resumed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.enter(monkeypatch)
    run = stage.start("Lost", "second")
    job, jobs = stage.job("Lost", "second"), JobTable()
    stage.cloud.step(60)
    jobs.stop(job, is_stopped=True)
    # workers end after their page, which takes them some five seconds
    stage.cloud.step(20)
    before = stage.progress("Lost", "second")
    assert (before.state, before.workers) == ("stopped", 0)
    assert 0 < before.items < PARTS
    stage.cloud.step(600)
    assert stage.progress("Lost", "second").items == before.items
    assert stage.describe(run)["status"] == "RUNNING"
    jobs.stop(job, is_stopped=False)
    assert stage.until_ended(run, 12) == "SUCCEEDED"
    assert stage.progress("Lost", "second").items == PARTS
