"""Apps that tests deploy: synthesized in the test's own process, which has the CDK's classes, with tables to delete."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, HighWaterTable, PacedJob
from tests.constructs.template_view import key

# of the local cloud; a stack without it learns its account and region from the deploy
HERE = cdk.Environment(account="000000000000", region="us-east-1")


def synthesize(
    folder: Path, stack: str, build: Callable[..., object], /, *, env: cdk.Environment | None = None, **given: Any
) -> Path:
    """Have *build* fill a stack from what is *given*; return the assembly, which `CdkCli.deploy` takes for an app."""
    app = cdk.App(outdir=tempfile.mkdtemp(prefix="app-", dir=folder), tree_metadata=False)
    build(cdk.Stack(app, stack, env=env), **given)
    return Path(app.synth().directory)


def scaled(low: int, high: int, percent: int = 70) -> Capacity:
    """Capacity that target tracking scales."""
    return Capacity.autoscaled(min_capacity=low, max_capacity=high, target_utilization_percent=percent)


def managed_table(stack: cdk.Stack, id: str, name: str | None, **more: Any) -> HighWaterTable:
    """A table with a plan, which is deleted with its stack."""
    free: dict[str, Any] = {"deletion_protection": False, "removal_policy": cdk.RemovalPolicy.DESTROY}
    return HighWaterTable(
        stack, id, **{"table_name": name, "partition_key": key(), "read": scaled(5, 50), **free, **more}
    )


def plain_table(stack: cdk.Stack, id: str, name: str, read: int, write: int, **more: Any) -> dynamodb.Table:
    """A table of the CDK's own with provisioned capacity, which is deleted with its stack."""
    units = {"read_capacity": read, "write_capacity": write, "billing_mode": dynamodb.BillingMode.PROVISIONED}
    free = {"removal_policy": cdk.RemovalPolicy.DESTROY}
    return dynamodb.Table(stack, id, **{"table_name": name, "partition_key": key(), **units, **free, **more})


def world_table(stack: cdk.Stack, name: str | None, **more: Any) -> dynamodb.TableV2:
    """A global table of one region, which is deleted with its stack."""
    billing = dynamodb.Billing.provisioned(
        read_capacity=dynamodb.Capacity.fixed(5), write_capacity=dynamodb.Capacity.autoscaled(max_capacity=10)
    )
    free = {"removal_policy": cdk.RemovalPolicy.DESTROY}
    return dynamodb.TableV2(
        stack, "World", **{"table_name": name, "partition_key": key(), "billing": billing, **free, **more}
    )


def tell_machine(stack: cdk.Stack, name: str, job: PacedJob) -> None:
    """Make outputs of a job's state machine, as `Machines` reads them."""
    cdk.CfnOutput(stack, f"{name}Machine", value=job.state_machine.state_machine_arn)
    cdk.CfnOutput(stack, f"{name}Jobs", value=job.job_prefix)


def break_after(stack: cdk.Stack, table: str, *, after: Any) -> cdk.CfnResource:
    """A resource that fails once *after* is deployed: its min is above its max, which the service refuses."""
    broken = cdk.CfnResource(
        stack,
        "Broken",
        type="AWS::ApplicationAutoScaling::ScalableTarget",
        properties={
            "ServiceNamespace": "dynamodb",
            "ResourceId": f"table/{table}",
            "ScalableDimension": "dynamodb:table:ReadCapacityUnits",
            "MinCapacity": 9,
            "MaxCapacity": 8,
        },
    )
    broken.node.add_dependency(after)
    return broken
