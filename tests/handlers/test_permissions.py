"""What the handlers call against what the synthesized role allows, action by action."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, HighWaterTable, Window
from highwater.core.units import Units
from tests.handlers.serving import Serving, marks_event
from tests.memory_aws.bench import Bench


@lru_cache
def _allowed() -> frozenset[str]:
    stack = cdk.Stack(cdk.App(), "Orders")
    HighWaterTable(
        stack,
        "Table",
        partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
        read=Capacity.autoscaled(min_capacity=5, max_capacity=500),
        write=Capacity.autoscaled(min_capacity=7, max_capacity=700),
        windows=[Window.daily("night", start="02:00", end="04:00", timezone="UTC", read_min=400, write_min=90)],
    )
    policies: Any = assertions.Template.from_stack(stack).find_resources("AWS::IAM::Policy")
    return frozenset(
        action
        for policy in policies.values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    )


@pytest.mark.parametrize("request_type", ["Create", "Update", "Delete"])
def test_marks_when_served_call_only_what_the_role_allows(bench: Bench, request_type: str) -> None:
    table = bench.make_table(Units(5, 7))
    event = marks_event(request_type, table, {None: Units(400, 90)})
    assert Serving(bench).serve(event).ok
    called = {f"dynamodb:{operation}" for operation in bench.wire.operations}
    assert called - _allowed() == set(), "AWS denies the call, and every deploy fails"
