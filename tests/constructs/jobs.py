"""What works on a table within a budget, made with all that it needs but what a test gives itself."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3

from cdk_highwater import BoostCoordinator, BufferedWrites, PacedLoad, PacedScan
from tests.constructs.template_view import scalable_table


def _table_and_coordinator(stack: cdk.Stack, given: dict[str, Any]) -> dict[str, Any]:
    """Those of the stack, unless they are given."""
    orders, boosts = (stack.node.try_find_child(id) for id in ("Orders", "Boosts"))
    if "table" not in given:
        given["table"] = orders or scalable_table(stack, "Orders", table_name="orders")
    if "coordinator" not in given:
        given["coordinator"] = boosts or BoostCoordinator(stack, "Boosts")
    return given


def work_function(stack: cdk.Stack, **more: Any) -> lambda_.Function:
    """A function of the user's that does the work of a scan."""
    arguments: dict[str, Any] = {
        "runtime": lambda_.Runtime.PYTHON_3_14,
        "handler": "index.handler",
        "code": lambda_.Code.from_inline("handler = None"),
        "timeout": cdk.Duration.minutes(15),
        **more,
    }
    return lambda_.Function(stack, "Work", **arguments)


def buffered_writes(stack: cdk.Stack, **given: Any) -> BufferedWrites:
    """A queue before a table."""
    return BufferedWrites(stack, "Buffered", **{"write": 500, **_table_and_coordinator(stack, given)})


def paced_scan(stack: cdk.Stack, **given: Any) -> PacedScan:
    """A scan of a table, by a function in the same stack."""
    if "function" not in given:
        given["function"] = work_function(stack)
    return PacedScan(stack, "Backfill", **{"read": 500, **_table_and_coordinator(stack, given)})


def paced_load(stack: cdk.Stack, **given: Any) -> PacedLoad:
    """A load of objects into a table."""
    if "bucket" not in given:
        given["bucket"] = s3.Bucket.from_bucket_name(stack, "Exports", "exports")
    arguments = {"write": 500, "key": "orders.jsonl", **_table_and_coordinator(stack, given)}
    return PacedLoad(stack, "Nightly", **arguments)
