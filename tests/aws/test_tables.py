"""DynamoDB's adapter: what it reads, what it asks for, which error means what, and the note of a raise."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.aws import tables, tags
from highwater.aws.tables import (
    DecreaseRefusedError,
    DescribedTable,
    ForbiddenError,
    OvertakenError,
    TableBusyError,
    TableNotFoundError,
    TableRefusedError,
)
from highwater.core.units import Units
from tests.aws.bench import Bench, refusal, rewritten
from tests.memory_aws.wire import at

HOME = Units(5, 7)
SPENT = (
    "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. After the first 4 "
    "decreases, each subsequent decrease in the same UTC day can be performed at most once every 3600 seconds. Number "
    "of decreases today: 4. Last decrease at Thursday, October 8, 2026 at 11:20:48 PM Coordinated Universal Time. Next "
    "decrease can be made at Friday, October 9, 2026 at 12:00:00 AM Coordinated Universal Time."
)
# DynamoDB API Reference, Tag, and AWS General Reference, "Tagging AWS resources", read 2026-11
ALLOWED = re.compile(r"[\w\s+\-=._:/@]*")


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        pytest.param("ResourceNotFoundException", "Requested resource not found", TableNotFoundError, id="gone"),
        pytest.param("ResourceInUseException", "Table IOPS are being updated", TableBusyError, id="in-use"),
        pytest.param("ThrottlingException", "Rate exceeded", TableBusyError, id="throttled"),
        pytest.param("InternalServerError", "Internal server error", TableBusyError, id="internal"),
        pytest.param("LimitExceededException", SPENT, DecreaseRefusedError, id="decreases-spent"),
        pytest.param(
            "LimitExceededException",
            "Subscriber limit exceeded: There is a limit of 500 concurrent control plane operations",
            TableBusyError,
            id="too-many-tables-at-once",
        ),
        pytest.param(
            "LimitExceededException",
            "The requested ReadCapacityUnits, 40001, is above the per table maximum",
            TableRefusedError,
            id="above-the-quota",
        ),
        pytest.param("ValidationException", SPENT, TableRefusedError, id="text-under-another-code"),
        pytest.param("AccessDeniedException", "not authorized", ForbiddenError, id="denied"),
        pytest.param("ValidationException", "neither is allowed", TableRefusedError, id="invalid"),
        pytest.param("RequestLimitExceeded", "Throughput exceeds the limit", TableBusyError, id="request-limit"),
        pytest.param("SomethingNew", "try later", TableBusyError, id="any-5xx"),
        pytest.param("TooManyUpdates", "too many updates", TableBusyError, id="two deploys write one parameter"),
        pytest.param(
            "ValidationException",
            "The provisioned throughput for the table will not change.",
            OvertakenError,
            id="nothing-changes",
        ),
        pytest.param(
            "ValidationException",
            "One or more parameter values were invalid: decreasing WarmThroughput is not supported",
            OvertakenError,
            id="mark-lower-than-live",
        ),
        pytest.param("AccessDeniedException", "it will not change", ForbiddenError, id="text-under-denial"),
    ],
)
def test_set_capacity_when_refused_tells_what_passes_from_what_does_not(
    bench: Bench, code: str, text: str, expected: type[Exception]
) -> None:
    status = {"InternalServerError": 503, "SomethingNew": 500}
    bench.wire.fault = refusal(code, text, status.get(code, 400))
    with pytest.raises(expected, match=f"^{re.escape(text)}$") as raised:
        tables.set_capacity(bench.wire.client, "orders", None, HOME)
    assert raised.type is expected
    assert len(bench.wire.calls) == 1, "a refused decrease stays refused: no retry of its own"


def test_set_capacity_when_the_decreases_are_spent_carries_the_whole_text(bench: Bench) -> None:
    name = bench.make_table(HOME)
    bench.spend_decreases(name)
    with pytest.raises(DecreaseRefusedError, match=r"Number of decreases today: 4\..* Next decrease can be made at "):
        tables.set_capacity(bench.wire.client, name, None, Units(4, 7))


def test_set_capacity_when_it_raises_needs_no_decrease(bench: Bench) -> None:
    name = bench.make_table(HOME)
    bench.spend_decreases(name)
    tables.set_capacity(bench.wire.client, name, None, Units(6, 7))
    assert bench.capacities(name) == {None: Units(6, 7)}


def test_set_capacity_when_of_an_index_leaves_the_table_out_of_the_call(bench: Bench) -> None:
    name = bench.make_table(HOME, by_status=(3, 4))
    tables.set_capacity(bench.wire.client, name, "by_status", Units(60, 80))
    assert bench.capacities(name) == {None: HOME, "by_status": Units(60, 80)}
    assert set(bench.wire.bodies("UpdateTable")[0]) == {"TableName", "GlobalSecondaryIndexUpdates"}


def test_set_mark_when_of_an_index_raises_that_one_only(bench: Bench) -> None:
    name = bench.make_table(HOME, by_status=(3, 4), by_day=(2, 9))
    tables.set_mark(bench.wire.client, name, "by_status", Units(60, 80))
    assert bench.marks(name) == {None: HOME, "by_status": Units(60, 80), "by_day": Units(2, 9)}
    assert bench.capacities(name) == {None: HOME, "by_status": Units(3, 4), "by_day": Units(2, 9)}


def test_set_mark_when_of_the_table_raises_that_only(bench: Bench) -> None:
    name = bench.make_table(HOME, by_status=(3, 4))
    tables.set_mark(bench.wire.client, name, None, Units(400, 90))
    assert bench.marks(name) == {None: Units(400, 90), "by_status": Units(3, 4)}


def test_see_table_when_it_stands_tells_capacities_marks_and_decreases_by_index(bench: Bench) -> None:
    name = bench.make_table(HOME, by_status=(4, 5))
    tables.set_mark(bench.dynamodb, name, "by_status", Units(60, 80))
    tables.set_capacity(bench.dynamodb, name, "by_status", Units(3, 4))
    lowered = bench.cloud.status().now
    seen = tables.describe_table(bench.wire.client, name)
    used = seen.budgets["by_status"]
    assert used.used_on(lowered) == 1
    assert used.last is not None
    assert abs(used.last - lowered) < timedelta(seconds=5)
    assert seen.created is not None
    assert abs(seen.created - bench.cloud.status().now) < timedelta(hours=1)
    assert replace(seen, budgets={}, created=None) == DescribedTable(
        arn=f"arn:aws:dynamodb:us-east-1:000000000000:table/{name}",
        is_active=True,
        capacities={None: HOME, "by_status": Units(3, 4)},
        marks={None: HOME, "by_status": Units(60, 80)},
        increased={None: None, "by_status": None},
    )


def test_see_table_tells_when_each_was_raised_last(bench: Bench) -> None:
    name = bench.make_table(HOME, by_status=(4, 5))
    tables.set_capacity(bench.dynamodb, name, "by_status", Units(6, 7))
    raised = bench.cloud.status().now
    seen = tables.describe_table(bench.wire.client, name)
    assert seen.increased[None] is None
    at = seen.increased["by_status"]
    assert at is not None
    assert abs(at - raised) < timedelta(seconds=5)


def test_see_table_when_on_demand_has_no_capacity_and_the_default_mark(bench: Bench) -> None:
    seen = tables.describe_table(bench.wire.client, bench.make_table(on_demand=True))
    assert (seen.capacities, seen.marks) == ({None: Units(0, 0)}, {None: Units(12_000, 4_000)})


@pytest.mark.parametrize(
    ("status", "of_index"),
    [("CREATING", False), ("UPDATING", False), ("DELETING", False), ("UPDATING", True), ("DELETING", True)],
)
def test_see_table_when_anything_changes_is_not_active(bench: Bench, status: str, of_index: bool) -> None:
    name = bench.make_table(HOME, by_status=(3, 4), by_day=(2, 9))

    def change(document: dict[str, dict[str, object]]) -> None:
        described = document["Table"]
        if of_index:
            described["GlobalSecondaryIndexes"][1]["IndexStatus"] = status  # type: ignore[index]
        else:
            described["TableStatus"] = status

    bench.wire.fault = rewritten(change)
    assert not tables.describe_table(bench.wire.client, name).is_active


def test_index_that_is_being_built_does_not_keep_the_table_busy(bench: Bench) -> None:
    """2: a build takes hours."""
    name = bench.make_table(HOME, by_status=(3, 4), by_day=(2, 9))

    def build(document: dict[str, dict[str, Any]]) -> None:
        indexes = {index["IndexName"]: index for index in document["Table"]["GlobalSecondaryIndexes"]}
        indexes["by_day"]["IndexStatus"] = "CREATING"

    bench.wire.fault = rewritten(build)
    described = tables.describe_table(bench.wire.client, name)
    assert (described.is_active, described.building) == (True, frozenset({"by_day"}))
    active = {index: seen.is_active for index, seen in tables.seen_resources(described).items()}
    assert active == {None: True, "by_status": True, "by_day": False}


def test_see_table_when_parts_are_missing_from_the_answer_counts_them_as_nothing(bench: Bench) -> None:
    """An on-demand table's indexes have no throughput; a table of long ago has no warm throughput."""
    name = bench.make_table(HOME, by_status=(3, 4))

    def strip(document: dict[str, dict[str, object]]) -> None:
        document["Table"].pop("WarmThroughput")
        document["Table"]["GlobalSecondaryIndexes"][0].pop("ProvisionedThroughput")  # type: ignore[index]

    bench.wire.fault = rewritten(strip)
    seen = tables.describe_table(bench.wire.client, name)
    assert (seen.capacities["by_status"], seen.marks[None]) == (Units(0, 0), Units(0, 0))


def test_see_table_when_it_is_gone_says_so(bench: Bench) -> None:
    with pytest.raises(TableNotFoundError, match="no-such-table"):
        tables.describe_table(bench.wire.client, "no-such-table")


@pytest.mark.parametrize(("code", "status"), [("ThrottlingException", 400), ("InternalServerError", 500)])
def test_see_table_when_refused_for_the_moment_says_so(bench: Bench, code: str, status: int) -> None:
    bench.wire.fault = at(1, refusal(code, "later", status))
    with pytest.raises(TableBusyError, match="later"):
        tables.describe_table(bench.wire.client, "orders")


# The note of marks that wait for an index

KEY = tags.awaiting_tag("arn:of:the:stack", "Marks")
OTHER_KEY = tags.awaiting_tag("arn:of:the:stack", "Warm")


def test_note_of_a_deploy_reads_back_and_clears_and_tags_of_others_stay(bench: Bench) -> None:
    name = bench.make_table(HOME)
    arn = tables.describe_table(bench.dynamodb, name).arn
    bench.dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": "team", "Value": "orders"}])
    assert tags.read_awaiting(bench.wire.client, arn, KEY) is None
    tags.clear_awaiting(bench.wire.client, arn, KEY)
    tags.write_awaiting(bench.wire.client, arn, KEY, "deploy-1")
    tags.write_awaiting(bench.wire.client, arn, KEY, "deploy-2")
    # of another resource with marks of the table
    tags.write_awaiting(bench.wire.client, arn, OTHER_KEY, "deploy-3")
    assert tags.read_awaiting(bench.wire.client, arn, OTHER_KEY) == "deploy-3"
    tags.clear_awaiting(bench.wire.client, arn, OTHER_KEY)
    assert tags.read_awaiting(bench.wire.client, arn, KEY) == "deploy-2"
    tags.clear_awaiting(bench.wire.client, arn, KEY)
    assert bench.tags(name) == {"team": "orders"}


def test_note_of_a_deploy_is_found_on_any_page_of_tags(bench: Bench) -> None:
    name = bench.make_table(HOME)
    arn = tables.describe_table(bench.dynamodb, name).arn
    tags.write_awaiting(bench.dynamodb, arn, KEY, "deploy-1")

    def first_page(document: dict[str, object]) -> None:
        document.update(Tags=[{"Key": "team", "Value": "orders"}], NextToken="more")

    bench.wire.fault = at(1, rewritten(first_page))
    assert tags.read_awaiting(bench.wire.client, arn, KEY) == "deploy-1"
    assert bench.wire.bodies("ListTagsOfResource")[1]["NextToken"] == "more"
