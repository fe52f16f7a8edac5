"""What `BufferedWrites`, `PacedScan` and `PacedLoad` refuse, each in one line."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import BoostCoordinator
from tests.constructs.jobs import buffered_writes, paced_load, paced_scan, work_function
from tests.constructs.template_view import new_app, placed_stack, refused, scalable_table

Make = Callable[..., Any]
ALL: tuple[Make, ...] = (buffered_writes, paced_scan, paced_load)
MINUTES = "give cdk.Duration.minutes(...)"
BUCKET = "got 'exports'; give its construct; an existing one is s3.Bucket.from_bucket_name(...)"
SECONDS = "allowed: whole seconds from"

TYPES: list[tuple[tuple[Make, ...], dict[str, Any], str]] = [
    (ALL, {"table": "orders"}, "table must be a dynamodb.Table, TableV2, CfnTable or an imported table, got str"),
    (ALL, {"coordinator": "boosts"}, "coordinator must be a BoostCoordinator, got 'boosts'; give its construct"),
    (ALL, {"budget": 5}, "budget must be the name of a budget, got 5; give it in quotes"),
    (
        ALL,
        {"topic": "night"},
        "topic must be an SNS topic, got 'night'; give an sns.Topic; an existing one is sns.Topic.from_topic_arn(...)",
    ),
    ((paced_scan,), {"function": "work"}, "function must be a Lambda function, got 'work'; give its construct"),
    ((paced_scan,), {"index": 5}, "index must be the name of an index, got 5; give it in quotes"),
    ((paced_scan,), {"read": "30%"}, "read must be a number of units per second, got '30%'; give a number"),
    ((paced_load,), {"write": "30%"}, "write must be a number of units per second, got '30%'; give a number"),
    ((paced_load,), {"bucket": "exports"}, f"bucket must be an S3 bucket, {BUCKET}"),
    ((paced_load,), {"rejects": "exports"}, f"rejects must be an S3 bucket, {BUCKET}"),
    ((paced_load,), {"key": 5}, "key must be a text, got 5; give it in quotes"),
    (
        (buffered_writes,),
        {"version_attribute": True},
        "version_attribute must be the name of an attribute, got True; give it in quotes",
    ),
    ((buffered_writes,), {"timeout": 60}, f"timeout must be a cdk.Duration, got 60; {MINUTES}"),
    ((buffered_writes,), {"drain_time": "1 day"}, f"drain_time must be a cdk.Duration, got '1 day'; {MINUTES}"),
    (
        (buffered_writes,),
        {"key": "pk"},
        "key must be a list of names of attributes, got 'pk'; give the names in brackets",
    ),
]
VALUES: list[tuple[tuple[Make, ...], dict[str, Any], str]] = [
    (ALL, {"budget": ""}, "budget is ''; allowed: 1 to 121 characters"),
    ((paced_scan, paced_load), {"workers": 501}, "workers is 501; allowed: whole numbers, from 1 to 500"),
    ((paced_scan, paced_load), {"segments": 10_001}, "segments is 10,001; allowed: whole numbers, from 1 to 10,000"),
    (
        (paced_scan,),
        {"read": 19.5, "workers": 20},
        "read is 19.5; allowed: at least one unit per second for each of the 20 workers; give more, or fewer workers",
    ),
    (
        (paced_load,),
        {"write": 7, "workers": 8},
        "write is 7; allowed: at least one unit per second for each of the 8 workers; give more, or fewer workers",
    ),
    (
        (paced_load,),
        {"key": None},
        "neither key nor prefix is given; give the key of an object, or what the keys that are loaded begin with",
    ),
    (
        (paced_load,),
        {"key": "orders.jsonl.gz"},
        "key is 'orders.jsonl.gz'; allowed: one object with lines of JSON, not compressed; convert other ones first",
    ),
    ((buffered_writes,), {"write": 0}, "write is 0; allowed: whole numbers, 1 or more"),
    ((buffered_writes,), {"write": 0.5}, "write is 0.5; allowed: whole numbers, 1 or more"),
    ((buffered_writes,), {"batch_size": 10_000}, "batch_size is 10,000; allowed: whole numbers, from 1 to 1,000"),
    ((buffered_writes,), {"max_concurrency": 1}, "max_concurrency is 1; allowed: whole numbers, from 2 to 1,000"),
    (
        (buffered_writes,),
        {"batching_window": cdk.Duration.minutes(6)},
        f"batching_window is 360 seconds; {SECONDS} 0 to 300",
    ),
    ((buffered_writes,), {"timeout": cdk.Duration.millis(30_500)}, f"timeout is 30.5 seconds; {SECONDS} 30 to 900"),
    (
        (buffered_writes,),
        {"drain_time": cdk.Duration.minutes(5)},
        f"drain_time is 300 seconds; {SECONDS} 3,600 to 1,123,200",
    ),
    # as long as messages are kept
    (
        (buffered_writes,),
        {"drain_time": cdk.Duration.days(14)},
        f"drain_time is 1,209,600 seconds; {SECONDS} 3,600 to 1,123,200",
    ),
    (
        (buffered_writes,),
        {"batching_window": cdk.Duration.seconds(0)},
        "batch_size is 100; allowed: 1 to 10 without a batching_window; give a window of a second or more",
    ),
    (
        (buffered_writes,),
        {"version_attribute": "pk"},
        "version_attribute is 'pk'; allowed: an attribute outside of the key, pk; give the one that producers count up",
    ),
    ((buffered_writes,), {"key": ["id"]}, "key is ['id'], and the table's is pk; leave the argument out"),
    (
        (buffered_writes,),
        {"key": []},
        "key is []; allowed: the names of one or two attributes, the partition key first",
    ),
]


@cache
def _shared() -> tuple[cdk.App, dict[str, Any]]:
    """An app with a table and a coordinator, which nothing that is refused changes."""
    app = new_app()
    stack = placed_stack(app)
    return app, {"table": scalable_table(stack), "coordinator": BoostCoordinator(stack, "Boosts")}


@pytest.mark.parametrize(
    ("make", "arguments", "kind", "told"),
    [
        pytest.param(make, arguments, kind, told, id=f"{make.__name__}-{'-'.join(arguments)}")
        for kind, cases in ((TypeError, TYPES), (ValueError, VALUES))
        for makes, arguments, told in cases
        for make in makes
    ],
)
def test_argument_that_is_not_allowed_is_refused(
    make: Make, arguments: dict[str, Any], kind: type[Exception], told: str
) -> None:
    app, given = _shared()
    with refused(kind, told):
        make(placed_stack(app, f"Shop{len(app.node.children)}"), **{**given, **arguments})


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 3), (cdk.Duration.seconds(299), 299)])
def test_function_without_time_for_a_worker_is_refused(timeout: cdk.Duration | None, seconds: int) -> None:
    stack = placed_stack()
    told = f"the timeout of Shop/Work is {seconds} seconds; allowed: 5 to 15 minutes; give it "
    with refused(ValueError, f"{told}timeout=cdk.Duration.minutes(15)"):
        paced_scan(stack, function=work_function(stack, timeout=timeout))


@pytest.mark.parametrize(
    ("region", "key", "told"),
    [
        ("eu-west-1", None, "key is not known of an imported table; give the attributes of its key: key=['pk', 'sk']"),
        ("us-east-1", ["pk"], "table is in us-east-1, and Shop in eu-west-1; give a table of the stack's region"),
    ],
    ids=["without-its-key", "of-another-region"],
)
def test_imported_table_is_refused(region: str, key: list[str] | None, told: str) -> None:
    stack = placed_stack()
    arn = f"arn:aws:dynamodb:{region}:111122223333:table/orders"
    with refused(ValueError, told):
        buffered_writes(stack, table=dynamodb.Table.from_table_arn(stack, "Imported", arn), key=key)


def test_grantee_that_is_no_role_is_refused() -> None:
    end = "; give its construct; that of an existing role is iam.Role.from_role_name(...)"
    with refused(TypeError, f"grantee must be a role or a user, or have a role, got 'api'{end}"):
        buffered_writes(placed_stack()).grant_send("api")  # type: ignore[arg-type]
    with refused(TypeError, f"grantee must be a role or a user, or have a role, got 'operator'{end}"):
        paced_scan(placed_stack()).grant_start("operator")  # type: ignore[arg-type]
