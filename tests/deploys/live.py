"""What has come of a deploy, as boto3 sees it: tables, scalable targets, state machines, and roles to act in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import boto3
import pytest

from highwater.jobs.job_table import JobTable
from highwater.jobs.segments import JobProgress
from highwater_lab.local import LocalCloud
from tests.local.world import WRITE

Pair = tuple[int, int]


def targets(cloud: LocalCloud, table: str) -> dict[str, Pair]:
    """Floor and ceiling of a table's scalable targets, by `table write` or `index-name read`."""
    autoscaling = cloud.client("application-autoscaling")
    pages = autoscaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="dynamodb")
    found = [each for page in pages for each in page["ScalableTargets"]]
    autoscaling.close()
    return {
        _label(each): (each["MinCapacity"], each["MaxCapacity"])
        for each in found
        if each["ResourceId"].split("/")[1] == table
    }


def _label(target: dict[str, Any]) -> str:
    _, _, *index = target["ResourceId"].split("/")
    kind = "read" if "Read" in target["ScalableDimension"] else "write"
    return f"{index[-1] if index else 'table'} {kind}"


def floor(cloud: LocalCloud, table: str, of: str = "table") -> int:
    """The floor of writes of a table, or of one of its indexes."""
    return targets(cloud, table)[f"{of} write"][0]


def set_floor(cloud: LocalCloud, table: str, low: int, **more: int) -> None:
    """Register a floor of a table's writes by hand."""
    autoscaling = cloud.client("application-autoscaling")
    autoscaling.register_scalable_target(
        ServiceNamespace="dynamodb", ResourceId=f"table/{table}", ScalableDimension=WRITE, MinCapacity=low, **more
    )
    autoscaling.close()


def describe(cloud: LocalCloud, table: str) -> dict[str, Any]:
    """What DynamoDB says of a table."""
    dynamodb = cloud.client("dynamodb")
    found: dict[str, Any] = dynamodb.describe_table(TableName=table)["Table"]
    dynamodb.close()
    return found


def units(cloud: LocalCloud, table: str) -> list[Pair]:
    """Provisioned units of reads and writes, of a table and then of its indexes."""
    return [
        (each["ReadCapacityUnits"], each["WriteCapacityUnits"]) for each in _all(cloud, table, "ProvisionedThroughput")
    ]


def marks(cloud: LocalCloud, table: str) -> list[Pair]:
    """High-water marks of reads and writes, of a table and then of its indexes."""
    return [(each["ReadUnitsPerSecond"], each["WriteUnitsPerSecond"]) for each in _all(cloud, table, "WarmThroughput")]


def _all(cloud: LocalCloud, table: str, member: str) -> list[dict[str, int]]:
    described = describe(cloud, table)
    return [each[member] for each in (described, *described.get("GlobalSecondaryIndexes", ()))]


def stack_status(cloud: LocalCloud, stack: str) -> str:
    """The status of a stack."""
    return str(cloud.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])


def until(cloud: LocalCloud, what: Callable[[], bool], minutes: int, *, seconds: int = 15) -> bool:
    """Step the clock by so many seconds until that holds, by at most *minutes*; whether it holds."""
    for _ in range(minutes * 60 // seconds):
        if what():
            return True
        cloud.step(seconds)
    return what()


def session_of(cloud: LocalCloud, role: str, name: str = "service") -> boto3.Session:
    """A session of a role, which calls itself *name*."""
    sts = cloud.client("sts")
    arn = f"arn:aws:iam::000000000000:role/{role}"
    found = sts.assume_role(RoleArn=arn, RoleSessionName=name)["Credentials"]
    sts.close()
    return boto3.Session(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], "us-east-1")


@dataclass(frozen=True)
class Machines:
    """The state machines of a stack whose outputs are the ARN and the job ids' prefix of each, and the lease table."""

    cloud: LocalCloud
    outputs: dict[str, str]

    def environment(self) -> dict[str, str]:
        """The environment of a process that uses the cloud and the coordinator."""
        return {**self.cloud.environment(), "HIGHWATER_PULSES": self.outputs["Leases"]}

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have this process use them for the rest of the test."""
        for name, value in self.environment().items():
            monkeypatch.setenv(name, value)

    def start(self, machine: str, name: str, given: str = "{}") -> str:
        """Start an execution with an input; returns its ARN."""
        states = self.cloud.client("stepfunctions")
        arn = self.outputs[f"{machine}Machine"]
        run: str = states.start_execution(stateMachineArn=arn, name=name, input=given)["executionArn"]
        states.close()
        return run

    def describe(self, run: str) -> dict[str, Any]:
        """What Step Functions says of an execution."""
        states = self.cloud.client("stepfunctions")
        found: dict[str, Any] = states.describe_execution(executionArn=run)
        states.close()
        return found

    def until_ended(self, run: str, minutes: int) -> str:
        """Step until an execution has ended; returns its status."""
        until(self.cloud, lambda: self.describe(run)["status"] != "RUNNING", minutes, seconds=10)
        return str(self.describe(run)["status"])

    def job(self, machine: str, name: str) -> str:
        """The id of the job of an execution."""
        return f"{self.outputs[f'{machine}Jobs']}{name}"

    def progress(self, machine: str, name: str) -> JobProgress:
        """How far the job of an execution is."""
        jobs = JobTable()
        return jobs.read(self.job(machine, name)).progress(jobs.time.now())


def hours_around(cloud: LocalCloud) -> dict[str, Any]:
    """Start and end of a window that opened an hour ago and is open for three more."""
    now = cloud.status().now
    return {"start": f"{now - timedelta(hours=1):%H:%M}", "end": f"{now + timedelta(hours=3):%H:%M}"}
