"""The CDK app of the suite: `python -m acceptance.app PREFIX STACK` makes one stack, whose values the context gives.

Capacities are small, and no table raises its high-water mark, as both cost money. Everything is deleted with its stack.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs

import cdk_highwater as hw
from acceptance.tables import (
    BURST_UNITS,
    CEILING,
    FLOOR,
    GRANTED,
    INDEX,
    INDEX_KEY,
    INDEX_UNITS,
    REPLICA_CEILING,
    REPLICA_FLOOR,
)

_STRING: Final = dynamodb.AttributeType.STRING


def bare(stack: cdk.Stack) -> None:
    """A table that nothing manages, of one unit of reads."""
    key = dynamodb.Attribute(name="id", type=_STRING)
    dynamodb.Table(stack, "Bare", partition_key=key, read_capacity=1, write_capacity=int(_context(stack, "units")))


def failed_index(stack: cdk.Stack) -> None:
    """A table that nothing manages; with its index comes a resource that fails."""
    key = dynamodb.Attribute(name="id", type=_STRING)
    units = int(_context(stack, "units"))
    table = dynamodb.Table(stack, "Orders", partition_key=key, read_capacity=1, write_capacity=units)
    if _context(stack, "index") == "yes":
        table.add_global_secondary_index(
            index_name=INDEX,
            partition_key=dynamodb.Attribute(name=INDEX_KEY, type=_STRING),
            read_capacity=1,
            write_capacity=INDEX_UNITS,
        )
        _break(stack, table)


def burst(stack: cdk.Stack) -> None:
    """Tables that nothing manages, for reads."""
    key = dynamodb.Attribute(name="id", type=_STRING)
    for units in BURST_UNITS:
        dynamodb.Table(stack, f"Units{units}", partition_key=key, read_capacity=units, write_capacity=1)


def windows(stack: cdk.Stack) -> None:
    """Tables with a window; in a broken stack a resource fails between their targets and their floors."""
    for name in _context(stack, "tables").split("+"):
        window = hw.Window.once(
            "load",
            start=_context(stack, "opens"),
            end=_context(stack, "closes"),
            timezone="UTC",
            lead=cdk.Duration.minutes(0),
            write_min=int(_context(stack, "floor")),
        )
        ceiling = int(_context(stack, "ceiling"))
        table = _table(stack, name, ceiling=ceiling, key=_context(stack, "key"), windows=[window])
        if _context(stack, "broken") == "yes":
            _break(stack, table)


def replicas(stack: cdk.Stack) -> None:
    """A global table in two regions, which nothing of Highwater manages."""
    write = dynamodb.Capacity.autoscaled(min_capacity=REPLICA_FLOOR, max_capacity=REPLICA_CEILING)
    dynamodb.TableV2(
        stack,
        "World",
        partition_key=dynamodb.Attribute(name="id", type=_STRING),
        billing=dynamodb.Billing.provisioned(read_capacity=dynamodb.Capacity.fixed(1), write_capacity=write),
        replicas=[dynamodb.ReplicaTableProps(region=_context(stack, "elsewhere"))],
    )


def surge(stack: cdk.Stack) -> None:
    """The same table twice: with target tracking alone, and with the scaler in addition."""
    _table(stack, "Native")
    hw.ThrottleAwareScaler(stack, "Scaler").add_table(_table(stack, "Scaled", target_percent=90))


def boosts(stack: cdk.Stack) -> None:
    """A table that the role of a job may boost."""
    boosted = _table(stack, "Boosted")
    coordinator = hw.BoostCoordinator(stack, "Boosts")
    coordinator.add_table(boosted)
    coordinator.grant_boost(_caller(stack, coordinator), max_write=GRANTED, tables=[boosted])


def pulses(stack: cdk.Stack) -> None:
    """A table with the scaler, whose clients may tell what they ask for."""
    pulsed = _table(stack, "Pulsed", target_percent=90)
    scaler = hw.ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(pulsed)
    coordinator = hw.BoostCoordinator(stack, "Pulses", scaler=scaler)
    coordinator.grant_pulse(_caller(stack, coordinator), tables=[pulsed])


# the worker of the third seat fails until somebody has mended that; the planner notes what Lambda's runtime is
_WORKER: Final = """
import os, platform, boto3
table = boto3.resource("dynamodb").Table(os.environ["TABLE"])
def handler(event, context):
    if "seat" not in event:
        versions = f"Python {platform.python_version()}, boto3 {boto3.__version__}"
        table.put_item(Item={"id": "runtime", "versions": versions})
        return {"job": event["job"], "seats": [0, 1, 2]}
    key = {"id": f"seat-{event['seat']}"}
    table.update_item(Key=key, UpdateExpression="ADD runs :one", ExpressionAttributeValues={":one": 1})
    if event["seat"] == 2 and "Item" not in table.get_item(Key={"id": "mended"}):
        raise RuntimeError("not mended")
    return {"state": "done"}
"""


def fleet(stack: cdk.Stack) -> None:
    """A queue before a table with a small budget, and the state machine of a scan whose workers only count."""
    table, coordinator = _table(stack, "Orders"), hw.BoostCoordinator(stack, "Boosts")
    hw.BufferedWrites(stack, "Queue", table=table, coordinator=coordinator, write=1)
    worker = lambda_.Function(
        stack,
        "Worker",
        # that of Highwater's own functions
        runtime=lambda_.Runtime.PYTHON_3_14,
        handler="index.handler",
        code=lambda_.Code.from_inline(_WORKER),
        environment={"TABLE": table.table_name},
        timeout=cdk.Duration.minutes(5),
        log_group=logs.LogGroup(stack, "Log"),
    )
    table.grant_read_write_data(worker)
    hw.PacedScan(stack, "Scan", table=table, coordinator=coordinator, function=worker, read=3, workers=3)


STACKS: Final[dict[str, Callable[[cdk.Stack], None]]] = {
    "Raises": bare,
    "IndexBuild": bare,
    "FailedIndex": failed_index,
    "Replicas": replicas,
    "Burst": burst,
    "Windows": windows,
    "StackOrder": windows,
    "Surge": surge,
    "Boosts": boosts,
    "Pulses": pulses,
    "Fleet": fleet,
}


def make_stack(app: cdk.App, prefix: str, name: str, account: str, region: str) -> cdk.Stack:
    """Make one of `STACKS`, named with *prefix*, a hyphen and its name."""
    # a stack of a given account cannot be deployed with the credentials of another
    stack = cdk.Stack(app, f"{prefix}-{name}", env=cdk.Environment(account=account, region=region))
    STACKS[name](stack)
    cdk.RemovalPolicies.of(stack).destroy()
    return stack


def _context(stack: cdk.Stack, name: str) -> str:
    return str(stack.node.get_context(name))


def _table(
    stack: cdk.Stack, id: str, *, ceiling: int = CEILING, target_percent: int = 70, key: str = "id", **more: Any
) -> hw.HighWaterTable:
    write = hw.Capacity.autoscaled(min_capacity=FLOOR, max_capacity=ceiling, target_utilization_percent=target_percent)
    return hw.HighWaterTable(
        stack,
        id,
        partition_key=dynamodb.Attribute(name=key, type=_STRING),
        read=hw.Capacity.fixed(units=5),
        write=write,
        high_water_mark=hw.HighWaterMark.none(),
        deletion_protection=False,
        **more,
    )


def _break(stack: cdk.Stack, table: dynamodb.Table) -> None:
    # a maximum below the minimum is refused when the deploy comes to it: after the targets, before the floors
    broken = autoscaling.CfnScalableTarget(
        stack,
        f"Broken{table.node.id}",
        min_capacity=9,
        max_capacity=3,
        resource_id=f"table/{table.table_name}",
        scalable_dimension="dynamodb:table:ReadCapacityUnits",
        service_namespace="dynamodb",
    )
    for child in table.node.find_all():
        if isinstance(child, autoscaling.CfnScalableTarget):
            broken.node.add_dependency(child)
        if isinstance(child, cdk.CustomResource):
            child.node.add_dependency(broken)


def _caller(stack: cdk.Stack, coordinator: hw.BoostCoordinator) -> iam.Role:
    """A role that the suite takes to call the coordinator; what that needs is among the stack's outputs."""
    role = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    cdk.CfnOutput(stack, "CallerRole", value=role.role_arn)
    cdk.CfnOutput(stack, "Url", value=coordinator.url.url)
    cdk.CfnOutput(stack, "LeaseTable", value=coordinator.lease_table_name)
    return role


if __name__ == "__main__":
    program = cdk.App()
    make_stack(program, sys.argv[1], sys.argv[2], os.environ["CDK_DEFAULT_ACCOUNT"], os.environ["CDK_DEFAULT_REGION"])
    program.synth()
