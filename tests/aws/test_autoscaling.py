"""Application Auto Scaling's adapter: names, bounds in batches and pages, and the service's time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from highwater.aws import autoscaling
from highwater.aws.autoscaling import (
    find_targets,
    read_failures,
    read_targets,
    register_again,
    service_time,
    set_bounds,
    set_bounds_patiently,
    suspend,
)
from highwater.core import Bounds, Units
from highwater.core.names import TargetName
from highwater.core.units import Dimension
from tests.aws.bench import Bench, Call, Wire, refusal, rewritten
from tests.memory_aws.wire import Fault, at

pytestmark = pytest.mark.usefixtures("bench")


@pytest.fixture(scope="module")
def shared_wire(shared_bench: tuple[Bench, dict[str, str]]) -> Wire:
    assert shared_bench[0].cloud.port  # the variables that point to it are set
    return Wire(autoscaling.client())


@pytest.fixture
def wire(shared_wire: Wire) -> Wire:
    shared_wire.reset()
    return shared_wire


def test_set_bounds_when_seen_again_are_the_same_for_just_that_target(bench: Bench, wire: Wire) -> None:
    table = bench.make_table(by_status=(3, 4))
    names = [TargetName(table, index, dimension) for index in (None, "by_status") for dimension in Dimension]
    for place, name in enumerate(names[:3]):
        set_bounds(wire.client, name, Bounds(5 + place, 500 + place))
    seen = read_targets(wire.client, names)
    assert [seen.of(name) for name in names] == [Bounds(5, 500), Bounds(6, 501), Bounds(7, 502), None]


def test_registering_again_moves_capacity_into_the_bounds_and_changes_nothing_else(bench: Bench, wire: Wire) -> None:
    table = bench.make_table()
    name = TargetName(table, None, Dimension.WRITE)
    set_bounds(wire.client, name, Bounds(40, 500))
    suspend(wire.client, name, suspended=True)
    bench.dynamodb.update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 9}
    )
    assert bench.capacities(table) == {None: Units(5, 9)}
    register_again(wire.client, name)
    assert bench.capacities(table) == {None: Units(5, 40)}
    seen = read_targets(wire.client, [name])
    assert (seen.of(name), seen.is_suspended(name)) == (Bounds(40, 500), True)


def test_target_that_is_not_registered_is_not_registered_again(bench: Bench, wire: Wire) -> None:
    name = TargetName(bench.make_table(), None, Dimension.READ)
    with pytest.raises(ClientError, match="ValidationException"):
        register_again(wire.client, name)
    assert read_targets(wire.client, [name]).of(name) is None


def test_targets_of_a_table_are_found_with_its_indexes_and_without_other_tables(bench: Bench, wire: Wire) -> None:
    table, other = bench.make_table(by_status=(3, 4)), bench.make_table()
    names = [TargetName(table, None, Dimension.WRITE), TargetName(table, "by_status", Dimension.READ)]
    for name in (names[1], TargetName(other, None, Dimension.READ), names[0]):
        set_bounds(wire.client, name, Bounds(5, 500))
    assert find_targets(wire.client, table) == names


def test_capacity_that_auto_scaling_could_not_set_is_told_with_the_services_reason(bench: Bench, wire: Wire) -> None:
    table = bench.make_table()
    names = [TargetName(table, None, dimension) for dimension in Dimension]
    now = bench.cloud.status().now
    set_bounds(wire.client, names[0], Bounds(21, 900))
    set_bounds(wire.client, names[1], Bounds(45_000, 50_000))
    found = read_failures(wire.client, names, now)
    assert list(found) == names[1:]
    head, _, why = found[names[1]].partition(" UTC: ")
    failed_at = datetime.fromisoformat(head.removeprefix("auto scaling could not set the capacity at ") + "Z")
    assert abs(failed_at - now) <= timedelta(minutes=1)
    assert why == (
        "Failed to set write capacity units to 45000. Reason: The requested WriteCapacityUnits, 45000, is above the "
        "per table maximum for the account in us-east-1. Per table maximum: 40000."
    )
    assert read_failures(wire.client, names, now + timedelta(hours=2)) == {}, "no reason for what is missing then"
    set_bounds(wire.client, names[1], Bounds(23, 900))
    assert read_failures(wire.client, names, now) == {}


@pytest.mark.parametrize(("count", "calls"), [(1, 1), (50, 1), (51, 2), (120, 3)])
def test_see_targets_of_many_resources_asks_for_fifty_at_a_time(
    bench: Bench, wire: Wire, count: int, calls: int
) -> None:
    table = bench.make_table(by_status=(3, 4))
    last = TargetName(table, None, Dimension.WRITE)
    set_bounds(bench.autoscaling, last, Bounds(8, 80))
    names = [TargetName(f"no-such-table-{place}", None, Dimension.READ) for place in range(count - 1)]
    seen = read_targets(wire.client, [*names, last, last])
    asked = [body["ResourceIds"] for body in wire.bodies("DescribeScalableTargets")]
    assert len(asked) == calls
    assert max(map(len, asked)) <= 50, "the service refuses more"
    assert sorted(resource for batch in asked for resource in batch) == sorted(
        {name.resource_id for name in [*names, last]}
    )
    assert seen.of(last) == Bounds(8, 80)
    assert seen.of(names[0] if names else TargetName("x", None, Dimension.READ)) is None


def test_see_targets_when_both_dimensions_fill_pages_reads_them_all(bench: Bench, wire: Wire) -> None:
    """Fifty resources have up to a hundred targets: two pages."""
    tables = [bench.make_table(by_status=(3, 4), by_day=(2, 9)) for _ in range(10)]
    names = [
        TargetName(table, index, dimension)
        for table in tables
        for index in (None, "by_status", "by_day")
        for dimension in Dimension
    ]
    for place, name in enumerate(names):
        set_bounds(bench.autoscaling, name, Bounds(10 + place, 1000 + place))
    seen = read_targets(wire.client, names)
    assert [seen.of(name) for name in names] == [Bounds(10 + place, 1000 + place) for place in range(60)]
    assert wire.operations == ["DescribeScalableTargets"] * 2
    bodies = wire.bodies("DescribeScalableTargets")
    assert bodies[1]["NextToken"]
    # with it, the service cuts a list off without a token (recorded: applicationautoscaling/wide_pages)
    assert not any("MaxResults" in body for body in bodies)


def test_see_targets_when_a_page_is_empty_reads_the_next(bench: Bench, wire: Wire) -> None:
    name = TargetName(bench.make_table(), None, Dimension.READ)
    set_bounds(bench.autoscaling, name, Bounds(5, 50))

    def empty(document: dict[str, object]) -> None:
        document.update(ScalableTargets=[], NextToken="MA==")

    wire.fault = at(1, _dated_like_the_cloud(bench, empty))
    assert read_targets(wire.client, [name]).of(name) == Bounds(5, 50)


def _dated_like_the_cloud(bench: Bench, change: Callable[[dict[str, Any]], None]) -> Fault:
    fault = rewritten(change)

    def dated(call: Call) -> Any:
        response = fault(call)
        response.headers["date"] = format_datetime(bench.cloud.status().now, usegmt=True)
        return response

    return dated


def test_see_targets_when_the_clouds_clock_is_ahead_tells_its_time(bench: Bench, wire: Wire) -> None:
    bench.cloud.advance(timedelta(days=4))
    name = TargetName("no-such-table", None, Dimension.READ)
    # a date has whole seconds
    before = bench.cloud.status().now.replace(microsecond=0)
    at = read_targets(wire.client, [name]).at
    assert at.tzinfo is UTC
    assert before <= at <= bench.cloud.status().now
    assert at - datetime.now(UTC) > timedelta(days=3)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Sun, 08 Nov 2026 23:59:59 GMT", datetime(2026, 11, 8, 23, 59, 59, tzinfo=UTC)),
        ("Sun, 29 Mar 2026 03:00:00 +0200", datetime(2026, 3, 29, 1, 0, tzinfo=UTC)),
    ],
    ids=["gmt", "offset"],
)
def test_service_time_when_read_is_utc(header: str, expected: datetime) -> None:
    at = service_time({"HTTPHeaders": {"date": header}})
    assert (at, at.tzinfo) == (expected, UTC)


def test_see_targets_when_throttled_asks_again(bench: Bench, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    # the SDK's pauses between its retries
    monkeypatch.setattr("time.sleep", lambda _: None)
    throttled = refusal("ThrottlingException", "Rate exceeded")
    wire.fault = lambda call: throttled(call) if call.number < 8 else None
    name = TargetName(bench.make_table(), None, Dimension.READ)
    assert read_targets(wire.client, [name]).of(name) is None
    assert len(wire.calls) == 8


_UNDER_WAY = refusal("ConcurrentUpdateException", "The scalable target is being updated")


def test_target_that_auto_scaling_is_changing_is_suspended_a_little_later(bench: Bench, wire: Wire) -> None:
    name = TargetName(bench.make_table(), None, Dimension.WRITE)
    set_bounds(wire.client, name, Bounds(7, 500))
    wire.reset()
    wire.fault = lambda call: _UNDER_WAY(call) if call.number <= 4 else None
    pauses: list[float] = []
    suspend(wire.client, name, suspended=True, pause=pauses.append)
    assert (wire.operations, pauses) == (["RegisterScalableTarget"] * 5, [1, 2, 4, 8])
    assert read_targets(wire.client, [name]).is_suspended(name)


def test_target_that_stays_under_change_is_given_up_after_five_tries(wire: Wire) -> None:
    wire.fault = _UNDER_WAY
    pauses: list[float] = []
    with pytest.raises(wire.client.exceptions.ConcurrentUpdateException):
        suspend(wire.client, TargetName("orders", None, Dimension.WRITE), suspended=True, pause=pauses.append)
    assert (wire.operations, pauses) == (["RegisterScalableTarget"] * 5, [1, 2, 4, 8])


def test_bounds_are_set_a_little_later_while_auto_scaling_changes_the_capacity(bench: Bench, wire: Wire) -> None:
    name = TargetName(bench.make_table(), None, Dimension.WRITE)
    wire.fault = lambda call: _UNDER_WAY(call) if call.number <= 2 else None
    pauses: list[float] = []
    set_bounds_patiently(wire.client, name, Bounds(7, 500), pause=pauses.append)
    assert (wire.operations, pauses) == (["RegisterScalableTarget"] * 3, [1, 2])
    assert read_targets(wire.client, [name]).of(name) == Bounds(7, 500)


def test_other_refusals_are_not_tried_again(wire: Wire) -> None:
    wire.fault = refusal("ObjectNotFoundException", "No scalable target found")
    pauses: list[float] = []
    with pytest.raises(wire.client.exceptions.ObjectNotFoundException):
        suspend(wire.client, TargetName("orders", None, Dimension.WRITE), suspended=True, pause=pauses.append)
    assert (wire.operations, pauses) == (["RegisterScalableTarget"], [])
