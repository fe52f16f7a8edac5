"""Pulses deployed with the real CDK CLI to a strict local cloud, reported by real processes in lock-step with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from botocore.exceptions import ClientError

import highwater.budgets
import highwater.jobs
from cdk_highwater import BoostCoordinator, ThrottleAwareScaler
from highwater.client.fleet import FleetTable
from highwater.client.hooks import Counts
from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.lockstep import take_part
from tests.cdk_cli import deployed_app
from tests.deploys.apps import HERE, managed_table, plain_table, scaled, synthesize
from tests.deploys.live import session_of
from tests.ports import free_port

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("pulses")]
# writes at a rate, then at ten times the rate; ends with what was written and throttled
LOADER = """
import json, sys, time
import boto3
import highwater.budgets
import highwater.jobs
from highwater_lab.local.control import CloudControl
from highwater_lab.local.lockstep import take_part
table, role, before, after, port, seat = *sys.argv[1:3], *(int(each) for each in sys.argv[3:])
with take_part(CloudControl(port), seat):
    found = boto3.client("sts").assume_role(
        RoleArn=f"arn:aws:iam::000000000000:role/{role}", RoleSessionName="service"
    )["Credentials"]
    session = boto3.Session(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], "us-east-1")
    pulse = highwater.pulse(session)
    pulse.has_thread = False
    dynamodb = session.client("dynamodb")
    began, sent, refused, shown = time.time(), 0, 0, False
    due = began
    while (now := time.time()) < began + before + after:
        due += 0.15 if now > began + before else 1.5
        time.sleep(max(due - now, 0))  # the cloud's time
        items = [{"PutRequest": {"Item": {"pk": {"S": f"{seat}-{time.time_ns()}-{n}"}}}} for n in range(10)]
        try:
            answer = dynamodb.batch_write_item(RequestItems={table: items})
        except dynamodb.exceptions.ProvisionedThroughputExceededException:
            answer = {"UnprocessedItems": {table: items}}
        left = len(answer["UnprocessedItems"].get(table, []))
        sent, refused, shown = sent + 10 - left, refused + left, shown or "ConsumedCapacity" in answer
        pulse.beat()
    pulse.stop()
print(json.dumps({"sent": sent, "refused": refused, "shown": shown}))
"""
# two hundred processes that begin together; every tenth is killed before it has told
CROWD = """
import logging, os, signal, threading
import boto3
import highwater.jobs
found = boto3.client("sts").assume_role(
    RoleArn="arn:aws:iam::000000000000:role/pulsed-orderer", RoleSessionName="crowd"
)["Credentials"]
session = boto3.Session(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], "us-east-1")
pulse = highwater.pulse(session)
dynamodb = session.client("dynamodb")
unanswered = []
log = logging.getLogger("highwater.pulse")
log.setLevel(logging.INFO)
log.addFilter(lambda record: record.msg.startswith("pulse of") and unanswered.append(record))
children = []
for number in range(200):
    child = os.fork()
    if child:
        children.append(child)
        continue
    for turn in range(3):
        dynamodb.put_item(TableName="pulsed-orders", Item={"pk": {"S": f"{number}-{turn}"}})
    if number % 10 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    pulse.stop()
    is_telling = any(thread.name == "highwater-pulse" for thread in threading.enumerate())
    os._exit(3 if unanswered or is_telling else 0)
ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(ends.count(-signal.SIGKILL), ends.count(3), ends.count(0))
"""
_BEFORE, _AFTER = 45, 60


@dataclass(frozen=True)
class Stage:
    """The deployed app, and the folder with the loader."""

    cloud: LocalCloud
    folder: Path
    pulse_table: str

    def environment(self) -> dict[str, str]:
        return os.environ | self.cloud.environment()

    def load(
        self, table: str, role: str, seats: Sequence[int], environment: Mapping[str, str]
    ) -> list[subprocess.Popen[str]]:
        """Processes that write ten times as much after a while, each with a seat."""
        command = [sys.executable, str(self.folder / "loader.py"), table, role, str(_BEFORE), str(_AFTER)]
        return [
            subprocess.Popen(
                [*command, str(self.cloud.port), str(seat)],
                env={**self.environment(), **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for seat in seats
        ]

    def told(self, table: str) -> float:
        """The write units that a fleet told of as consumed."""
        dynamodb = self.cloud.client("dynamodb")
        items = dynamodb.scan(TableName=self.pulse_table)["Items"]
        dynamodb.close()
        return sum(
            float(value["N"])
            for item in items
            if item["table"]["S"] == f"pulse#{table}"
            for name, value in item.items()
            if name[0] == "c" and name.endswith("w")
        )

    def service(self) -> Any:
        """A client with the role that may pulse."""
        return session_of(self.cloud, "pulsed-service").client(
            "dynamodb", endpoint_url=self.cloud.environment()["AWS_ENDPOINT_URL"]
        )


def _pulsed(stack: cdk.Stack) -> None:
    direct = plain_table(stack, "Direct", "pulsed-direct", 5, 20)
    # in FLOOR mode help is taken to need 50 seconds, so that this table's bucket has to fill beforehand
    orders = managed_table(stack, "Orders", "pulsed-orders", write=scaled(40, 900))
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_direct_table(direct, read=scaled(5, 50), write=scaled(20, 900))
    scaler.add_table(orders)
    coordinator = BoostCoordinator(stack, "Boosts", scaler=scaler)
    service, orderer = (
        iam.Role(stack, name.title(), role_name=f"pulsed-{name}", assumed_by=iam.AccountRootPrincipal())
        for name in ("service", "orderer")
    )
    coordinator.grant_pulse(service, tables=["pulsed-direct"])
    coordinator.grant_pulse(orderer, tables=[orders])
    coordinator.grant_job(orderer, "backfill")
    for role in (service, orderer):
        coordinator.grant_budget(role, "nightly")
        for table in (direct, orders):
            table.grant_read_write_data(role)
    cdk.CfnOutput(stack, "Pulses", value=coordinator.lease_table_name)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("pulsed")
    (folder / "loader.py").write_text(LOADER)
    (folder / "crowd.py").write_text(CROWD)
    with deployed_app(folder, synthesize(folder, "Pulsed", _pulsed, env=HERE), "Pulsed") as (cli, outputs):
        yield Stage(cli.cloud, folder, outputs["Pulses"])


def test_tenfold_jump_of_three_processes_is_met_before_a_request_is_refused(stage: Stage) -> None:
    """Two fleets jump at the same time: one of a table in DIRECT mode, one in FLOOR mode.

    The first has no way to the coordinator's URL, and asks for help by events.
    """
    nowhere = {"HIGHWATER_BOOST_URL": f"http://127.0.0.1:{free_port()}/"}
    own, *seats = stage.cloud.control.take_seats(7)
    before = {table: stage.told(table) for table in ("pulsed-direct", "pulsed-orders")}
    fleets = {
        "pulsed-direct": stage.load("pulsed-direct", "pulsed-service", seats[:3], nowhere),
        "pulsed-orders": stage.load("pulsed-orders", "pulsed-orderer", seats[3:], {}),
    }
    dynamodb = stage.cloud.client("dynamodb")
    raised: dict[str, int] = {}
    with take_part(stage.cloud.control, own) as clock:
        for second in range(_BEFORE + _AFTER):
            for table in fleets.keys() - raised.keys():
                found = dynamodb.describe_table(TableName=table)["Table"]["ProvisionedThroughput"]
                # the first raise is by what the fleet asked for in a slot that the jump may have begun in the middle of
                if found["WriteCapacityUnits"] >= 60:
                    raised[table] = second - _BEFORE
            clock.sleep(1)
    dynamodb.close()
    results = {table: [_result(loader) for loader in loaders] for table, loaders in fleets.items()}
    # the bucket of 20 units a second lasts 33 seconds of 200
    assert raised.keys() == fleets.keys(), raised
    assert raised["pulsed-direct"] < 40, raised
    assert raised["pulsed-orders"] < 75, raised
    for table, found in results.items():
        assert not any(result["shown"] for result in found)
        sent = sum(result["sent"] for result in found)
        assert stage.told(table) - before[table] == sent, "each unit that was consumed is told once"
        assert sum(result["refused"] for result in found) <= sent / 10, (raised, results)
    logs = stage.cloud.client("logs")
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    lines = [event["message"] for name in groups for event in logs.filter_log_events(logGroupName=name)["events"]]
    logs.close()
    by_event = [line for line in lines if '"message":"pulse"' in line]
    assert by_event
    assert all('"table":"pulsed-direct"' in line for line in by_event)
    told = [line for line in lines if '"code":"bucket"' in line and "the fleet asks for" in line]
    assert all(any(f'"table":"{table}"' in line for line in told) for table in fleets)


def test_two_hundred_processes_that_begin_together_are_told_of_and_those_that_are_killed_lose_their_last_slot(
    stage: Stage,
) -> None:
    # the jump has emptied the table's bucket
    stage.cloud.advance(timedelta(minutes=10))
    before = stage.told("pulsed-orders")
    command = [sys.executable, str(stage.folder / "crowd.py")]
    with subprocess.Popen(
        command, env=stage.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as crowd:
        while crowd.poll() is None:
            # Systems Manager answers 40 reads in a second
            stage.cloud.step(1)
        said, wrong = crowd.communicate()
    killed, unanswered, told = (int(count) for count in said.split())
    # a busy machine may not answer in time: such a pulse may have arrived, and is not sent again
    assert (killed, unanswered + told) == (20, 180), wrong
    assert told > 0
    assert told * 3 <= stage.told("pulsed-orders") - before <= 200 * 3


def test_role_may_add_to_the_items_of_its_tables_and_to_nothing_else(stage: Stage) -> None:
    dynamodb = stage.service()
    counts = Counts()
    counts.add("pulsed-direct", 1_000, (None, Dimension.WRITE), 3.5)
    fleet = FleetTable(dynamodb, stage.pulse_table, "pulsed-direct")
    amounts = counts.take("pulsed-direct")
    fleet.add(amounts)
    assert amounts == {}
    other = FleetTable(dynamodb, stage.pulse_table, "pulsed-orders")
    counts.add("pulsed-orders", 1_000, (None, Dimension.WRITE), 3.5)
    amounts = counts.take("pulsed-orders")
    with pytest.raises(ClientError, match="dynamodb:UpdateItem"):
        other.add(amounts)
    assert len(amounts) == 1, "what was not told is kept"
    key, hint = _key("pulse#pulsed-direct"), {":hint": {"S": "{}"}}
    calls: list[Callable[[], Any]] = [
        lambda: dynamodb.update_item(
            TableName=stage.pulse_table,
            Key=key,
            UpdateExpression="SET hint = :hint",
            ExpressionAttributeValues=hint,
        ),
        lambda: dynamodb.update_item(
            TableName=stage.pulse_table,
            Key=key,
            UpdateExpression="ADD c1w :one REMOVE #other",
            ExpressionAttributeNames={"#other": "hint"},
            ExpressionAttributeValues={":one": {"N": "1"}},
        ),
        lambda: dynamodb.get_item(TableName=stage.pulse_table, Key=_key("pulse#pulsed-direct")),
        lambda: dynamodb.update_item(TableName=stage.pulse_table, Key=_key("pulsed-direct", "leases")),
        lambda: dynamodb.delete_item(TableName=stage.pulse_table, Key=_key("pulse#pulsed-direct")),
    ]
    for call in calls:
        with pytest.raises(ClientError, match="AccessDenied"):
            call()
    dynamodb.close()


def test_two_roles_share_a_budget_and_only_the_granted_one(stage: Stage) -> None:
    stage.cloud.advance(timedelta(minutes=10))
    consumed = {}
    endpoint = stage.cloud.environment()["AWS_ENDPOINT_URL"]
    for role in ("pulsed-service", "pulsed-orderer"):
        session = session_of(stage.cloud, role)
        pacing = highwater.pace(session, write=40, table="pulsed-direct", budget="nightly")
        dynamodb = session.client("dynamodb", endpoint_url=endpoint)
        shared = pacing.pacer.shared
        assert isinstance(shared, highwater.budgets.SharedBudget)
        shared.table = stage.pulse_table
        shared.connect = lambda role=role: session_of(stage.cloud, role).client("dynamodb", endpoint_url=endpoint)
        dynamodb.put_item(TableName="pulsed-direct", Item={"pk": {"S": role}})
        consumed[role] = pacing.pacer.rate("pulsed-direct", None, Dimension.WRITE)
        pacing.stop()
        dynamodb.close()
    # the first has given its share back
    assert consumed == {"pulsed-service": pytest.approx(40, abs=0.1), "pulsed-orderer": pytest.approx(40, abs=0.1)}
    for budget, item in (("weekly", "orders write"), ("nightly", "orders write")):
        call = partial(stage.service().get_item, TableName=stage.pulse_table, Key=_key(f"budget#{budget}", item))
        if budget == "nightly":
            call()
        else:
            with pytest.raises(ClientError, match="AccessDenied"):
                call()


def test_role_with_a_grant_starts_and_does_its_job_and_no_other(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", stage.cloud.environment()["AWS_ENDPOINT_URL"])
    stage.cloud.advance(timedelta(minutes=10))
    session = session_of(stage.cloud, "pulsed-orderer")
    stage.cloud.client("dynamodb").put_item(TableName="pulsed-orders", Item={"pk": {"S": "granted"}})
    highwater.jobs.start_job("backfill", table="pulsed-orders", read=5_000, segments=2, session=session)
    seen: list[str] = []
    ended = highwater.jobs.run_worker(
        "backfill", lambda items: seen.extend(each["pk"] for each in items), session=session
    )
    assert (ended.state, "granted" in seen) == ("done", True)
    with pytest.raises(highwater.jobs.JobError, match=r"AccessDeniedException.*give the role grant_job in the CDK app"):
        highwater.jobs.run_worker("nightly", print, session=session)
    with pytest.raises(highwater.jobs.JobError, match="AccessDeniedException"):
        highwater.jobs.run_worker("backfill", print, session=session_of(stage.cloud, "pulsed-service"))


def _result(loader: subprocess.Popen[str]) -> dict[str, Any]:
    said, failed = loader.communicate()
    assert loader.returncode == 0, failed
    return dict(json.loads(said))


def _key(table: str, item: str = "0000000166") -> dict[str, Any]:
    return {"table": {"S": table}, "item": {"S": item}}
