"""Compares the synth time of 200 `HighWaterTable`s with the same resources written by hand.

Each table has two indexes. For reads and writes of the table and of each index, all sides create a scalable target, a
scaling policy and the scheduled actions of two windows: one side with `HighWaterTable`, the others with aws-cdk-lib's
own constructs. Of those, one ("by hand, bare") has nothing more, so that deploys reset its floors; the other ("by
hand") also has what a `HighWaterTable` has for deploys: the function of each stack, and for each table its permissions
and its custom resources.

The sides take turns, each round in a new process, so that none profits from caches of another. Prints seconds, the
ratios of the medians, and resources per table. Exits with status 1 if the ratio to the same resources by hand exceeds
its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aws_cdk as cdk
    from aws_cdk import aws_dynamodb as dynamodb
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_lambda as lambda_

TABLES = 200
ROUNDS = 5
LIMIT = 1.10
# CloudFormation allows 500 resources in a stack: 25 tables have up to 400, the rest is for the function's resources
TABLES_PER_STACK = 25
ZONE = "America/New_York"


def _measure(kind: str, tables: int) -> None:
    import aws_cdk as cdk

    # the first call starts Node, which must not count for either side
    cdk.Stack(cdk.App(), "Warm")
    began = time.perf_counter()
    app = cdk.App()
    build = _SIDES[kind]
    stacks: list[cdk.Stack] = []
    for number in range(tables):
        if number % TABLES_PER_STACK == 0:
            stacks.append(cdk.Stack(app, f"Stack{number // TABLES_PER_STACK}"))
        build(stacks[-1], f"Table{number}")
    assembly = app.synth()
    seconds = time.perf_counter() - began
    resources = sum(
        len(json.loads((Path(assembly.directory) / f"{stack.stack_name}.template.json").read_text())["Resources"])
        for stack in stacks
    )
    print(json.dumps({"seconds": seconds, "resources": resources}))


def _with_highwater(stack: cdk.Stack, name: str) -> None:
    from aws_cdk import aws_dynamodb as dynamodb

    from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterTable, Window

    text = dynamodb.AttributeType.STRING
    HighWaterTable(
        stack,
        name,
        partition_key=dynamodb.Attribute(name="pk", type=text),
        read=Capacity.autoscaled(min_capacity=200, max_capacity=8_000),
        write=Capacity.autoscaled(min_capacity=100, max_capacity=20_000),
        windows=[
            Window.weekly("load", days="MON-FRI", start="05:00", end="06:30", timezone=ZONE, write_min=18_000),
            Window.weekly(
                "rush", days="MON-FRI", start="09:00", end="11:00", timezone=ZONE, read_min=3_000, write_min=1_500
            ),
        ],
        indexes=[
            GlobalSecondaryIndex(index_name="first", partition_key=dynamodb.Attribute(name="a", type=text)),
            GlobalSecondaryIndex(index_name="second", partition_key=dynamodb.Attribute(name="b", type=text)),
        ],
    )


def _bare_by_hand(stack: cdk.Stack, name: str) -> dynamodb.Table:
    import aws_cdk as cdk
    from aws_cdk import aws_applicationautoscaling as autoscaling
    from aws_cdk import aws_dynamodb as dynamodb

    text = dynamodb.AttributeType.STRING
    table = dynamodb.Table(
        stack,
        name,
        partition_key=dynamodb.Attribute(name="pk", type=text),
        read_capacity=200,
        write_capacity=100,
        deletion_protection=True,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True
        ),
    )
    for index, key in (("first", "a"), ("second", "b")):
        table.add_global_secondary_index(
            index_name=index,
            partition_key=dynamodb.Attribute(name=key, type=text),
            read_capacity=200,
            write_capacity=100,
        )
    zone = cdk.TimeZone.of(ZONE)
    reads = [
        table.auto_scale_read_capacity(min_capacity=200, max_capacity=8_000),
        *(
            table.auto_scale_global_secondary_index_read_capacity(index, min_capacity=200, max_capacity=8_000)
            for index in ("first", "second")
        ),
    ]
    writes = [
        table.auto_scale_write_capacity(min_capacity=100, max_capacity=20_000),
        *(
            table.auto_scale_global_secondary_index_write_capacity(index, min_capacity=100, max_capacity=20_000)
            for index in ("first", "second")
        ),
    ]
    read_times = (("RushUp", 8, 55, 3_000), ("RushDown", 11, 0, 200))
    write_times = (
        ("LoadUp", 4, 55, 18_000),
        ("LoadDown", 6, 30, 100),
        ("RushUp", 8, 55, 1_500),
        ("RushDown", 11, 0, 100),
    )
    for targets, times, ceiling in ((reads, read_times, 8_000), (writes, write_times, 20_000)):
        for target in targets:
            target.scale_on_utilization(target_utilization_percent=70)
            for action, hour, minute, floor in times:
                target.scale_on_schedule(
                    action,
                    schedule=autoscaling.Schedule.cron(week_day="MON-FRI", hour=str(hour), minute=str(minute)),
                    time_zone=zone,
                    min_capacity=floor,
                    max_capacity=ceiling,
                )
    return table


def _by_hand(stack: cdk.Stack, name: str) -> None:
    import aws_cdk as cdk
    from aws_cdk import aws_iam as iam

    table = _bare_by_hand(stack, name)
    role, function, permissions = _function_of(stack)
    of_table = iam.Policy(
        stack,
        f"{name}Permissions",
        roles=[role],
        statements=[
            iam.PolicyStatement(actions=["dynamodb:DescribeTable", "dynamodb:UpdateTable"], resources=[table.table_arn])
        ],
    )
    scaling = [child for child in table.node.children if child.node.id.endswith("Scaling")]
    properties = {"TableName": table.table_name, "Plan": _PLAN}
    token = function.function_arn
    before = cdk.CustomResource(
        stack, f"{name}Before", resource_type="Custom::Before", service_token=token, properties=properties
    )
    before.node.add_dependency(*permissions, of_table)
    for each in scaling:
        each.node.add_dependency(before)
    floors = cdk.CustomResource(
        stack, f"{name}Floors", resource_type="Custom::Floors", service_token=token, properties=properties
    )
    floors.node.add_dependency(*scaling)
    marks = cdk.CustomResource(
        stack, f"{name}Marks", resource_type="Custom::Marks", service_token=token, properties=properties
    )
    marks.node.add_dependency(*permissions, of_table, floors)


def _function_of(stack: cdk.Stack) -> tuple[iam.Role, lambda_.Function, list[iam.Policy]]:
    """The function of a stack's custom resources, with its role and what it may do for all tables."""
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_logs as logs

    if stack not in _FUNCTIONS:
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group = logs.LogGroup(stack, "Logs")
        log_group.grant_write(role)
        function = lambda_.Function(
            stack,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_14,
            handler="index.handler",
            code=lambda_.Code.from_inline("def handler(event, context): ..."),
            role=role,
            log_group=log_group,
        )
        setting = iam.PolicyStatement(actions=["application-autoscaling:RegisterScalableTarget"], resources=["*"])
        reading = iam.PolicyStatement(actions=["application-autoscaling:DescribeScalableTargets"], resources=["*"])
        permissions = [
            iam.Policy(stack, "Setting", roles=[role], statements=[setting]),
            iam.Policy(stack, "Reading", roles=[role], statements=[reading]),
        ]
        _FUNCTIONS[stack] = role, function, permissions
    return _FUNCTIONS[stack]


_FUNCTIONS: dict[cdk.Stack, tuple[iam.Role, lambda_.Function, list[iam.Policy]]] = {}
# about as long as the plan of such a `HighWaterTable`
_PLAN = json.dumps({"windows": "x" * 1_000})
_SIDES: dict[str, Callable[[cdk.Stack, str], object]] = {
    "highwater": _with_highwater,
    "by hand": _by_hand,
    "by hand, bare": _bare_by_hand,
}


def _round(kind: str, tables: int) -> tuple[float, int]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", kind, "--tables", str(tables)],
        env=os.environ | {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    measured = json.loads(done.stdout)
    return measured["seconds"], measured["resources"]


def main() -> int:
    """Run the rounds of both sides in turns and print the results; return 1 if the ratio exceeds its limit, else 0."""
    parser = argparse.ArgumentParser(prog="synth", description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=TABLES, help="number of tables (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of each side (default %(default)s)")
    parser.add_argument("--measure", choices=tuple(_SIDES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        _measure(arguments.measure, arguments.tables)
        return 0
    seconds: dict[str, list[float]] = {side: [] for side in _SIDES}
    resources = {}
    for number in range(arguments.rounds):
        for kind, measured in seconds.items():
            elapsed, resources[kind] = _round(kind, arguments.tables)
            measured.append(elapsed)
            print(f"round {number + 1} of {arguments.rounds}: {kind:13} {elapsed:6.2f} s", flush=True)
    medians = {kind: statistics.median(measured) for kind, measured in seconds.items()}
    for kind, median in medians.items():
        per_table = resources[kind] / arguments.tables
        print(f"{kind:13} median {median:6.2f} s, {per_table:.2f} resources per table")
    ratio = medians["highwater"] / medians["by hand"]
    print(f"ratio {ratio:.2f} to the same resources by hand, limit {LIMIT}")
    print(f"ratio {medians['highwater'] / medians['by hand, bare']:.2f} to bare scaling by hand")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
