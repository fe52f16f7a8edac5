"""The scaler against a world that means no good: odd data, odd times, odd neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Bounds, Capacity, Units
from highwater.core.names import TargetName
from highwater.core.scaler import Mode
from highwater.core.scaler.metrics import ScalerMetric
from tests.memory_aws.stage import MINUTE, PLAN, Stage
from tests.memory_aws.wire import at, each, no_connection, rewritten

Result = dict[str, Any]
PLANNED = Bounds(12, 400)
HELD = Bounds(88, 400)


@pytest.fixture
def high(stage: Stage) -> TargetName:
    """A table whose floor stands at 88, of which nothing is asked."""
    return stage.table("orders", floor=88)


def _change_metrics(stage: Stage, change: Callable[[Result], None]) -> None:
    """Have the scaler get every series of CloudWatch changed on its way."""

    def change_all(document: dict[str, Any]) -> None:
        for result in document["MetricDataResults"]:
            change(result)

    stage.wire.fault = each(rewritten(change_all), "GetMetricData")


def _values(change: Callable[[int, float], float]) -> Callable[[Result], None]:
    def change_values(result: Result) -> None:
        result["Values"] = [change(number, value) for number, value in enumerate(result["Values"])]

    return change_values


def _points(change: Callable[[list[Any]], list[Any]]) -> Callable[[Result], None]:
    def change_points(result: Result) -> None:
        for member in ("Timestamps", "Values"):
            result[member] = change(result[member])

    return change_points


def _seconds_off(result: Result) -> None:
    result["Timestamps"] = [at + 17 for at in result["Timestamps"]]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(_values(lambda _, value: value), PLANNED, id="data-as-they-are-lower-the-floor"),
        pytest.param(_points(lambda points: [each for each in points for _ in range(2)]), PLANNED, id="twice-are-data"),
        pytest.param(_points(lambda points: points[::-1]), PLANNED, id="out-of-order-are-data"),
        pytest.param(_points(lambda points: points[:-3]), PLANNED, id="late-are-data"),
        pytest.param(_seconds_off, PLANNED, id="seconds-off-are-data"),
        pytest.param(_values(lambda *_: math.nan), HELD, id="no-number-is-no-data"),
        pytest.param(
            _values(lambda number, value: math.nan if number % 3 == 0 else value), HELD, id="some-no-numbers-are-none"
        ),
        pytest.param(
            _points(lambda points: [each for number, each in enumerate(points) if number % 20 != 7]),
            PLANNED,
            id="a-missing-minute-now-and-then-is-as-usual",
        ),
        pytest.param(
            _points(lambda points: [each for number, each in enumerate(points) if number % 10 not in (7, 8)]),
            HELD,
            id="gaps-are-no-data",
        ),
        pytest.param(_values(lambda *_: -1.0), HELD, id="negative-is-no-data"),
        pytest.param(_points(lambda _: []), HELD, id="nothing-is-no-data"),
        pytest.param(_points(lambda points: points[:-15]), HELD, id="without-the-newest-quarter-of-an-hour-are-none"),
    ],
)
def test_nothing_is_lowered_but_on_data(
    stage: Stage, high: TargetName, change: Callable[[Result], None], expected: Bounds
) -> None:
    _change_metrics(stage, change)
    assert stage.run("orders").failed == {}
    assert stage.bounds(high) == expected


def test_without_cloudwatch_a_floor_below_its_plan_rises_and_none_falls(stage: Stage, high: TargetName) -> None:
    low = stage.table("jobs", floor=2)
    stage.wire.fault = each(no_connection, "GetMetricData")
    answer = stage.run("orders", "jobs")
    assert (stage.bounds(high), stage.bounds(low)) == (HELD, PLANNED)
    assert answer.counts[ScalerMetric.METRICS_MISSING] >= 4
    assert answer.notes[0].startswith("no metrics could be read: EndpointConnectionError: ")


@pytest.mark.parametrize("skew_minutes", [-4, 4])
def test_clock_that_is_off_by_minutes_changes_nothing(stage: Stage, high: TargetName, skew_minutes: int) -> None:
    stage.run("orders", time=(stage.now() + skew_minutes * MINUTE).isoformat())
    assert stage.bounds(high) == PLANNED


def test_table_that_is_deleted_in_the_middle_of_a_run_touches_no_other(stage: Stage) -> None:
    gone, other = stage.table("gone", floor=2), stage.table("other", floor=2)

    def lose(call: Any) -> Any:
        described = call.send()
        stage.account.tables.pop("gone", None)
        return described

    stage.wire.fault = each(lambda call: lose(call) if call.body["TableName"] == "gone" else None, "DescribeTable")
    first = stage.run("gone", "other")
    assert "not found" in first.failed["gone"] or "does not exist" in first.failed["gone"]
    # a target outlives its table
    assert stage.bounds(gone) == Bounds(2, 400)
    second = stage.run("gone", "other")
    assert second.failed == {"gone": "TableNotFoundError: Requested resource not found: Table: gone not found"}
    assert stage.bounds(other) == PLANNED
    assert [event["tables"] for event in stage.handed_on] == [["gone"], ["gone"]]


def test_table_that_is_being_changed_has_its_floor_set_and_in_direct_mode_is_left(stage: Stage) -> None:
    floor, direct = stage.table("floor", floor=2), stage.table("direct", mode=Mode.DIRECT, units=(7, 3))
    for name in (floor, direct):
        stage.account.tables[name.table].lasting_status = "UPDATING"
    stage.run("floor", "direct")
    assert stage.bounds(floor) == PLANNED
    assert stage.capacity("direct") == Units(7, 3), "the next run comes when it is done"
    stage.account.tables["direct"].lasting_status = ""
    stage.run("direct")
    assert stage.capacity("direct") == Units(7, 12)


def _with_spent_decreases(stage: Stage) -> None:
    """A table of 50 write units, late in an hour, that may not be lowered for a while."""
    stage.table("orders", mode=Mode.DIRECT, units=(7, 90))
    stage.wait_for_minute(6)
    for units in (80, 70, 60, 50):
        stage.provision("orders", Units(7, units))
    stage.wait_for_minute(58)


def test_used_up_decreases_leave_capacity_and_are_told(stage: Stage) -> None:
    _with_spent_decreases(stage)
    answer = stage.run("orders")
    assert stage.capacity("orders") == Units(7, 50)
    assert answer.counts[ScalerMetric.DECREASE_BUDGET_EXHAUSTED] == 1
    limits = [limit["code"] for document in answer.decisions for limit in document["limits"]]
    assert "decrease-budget" in limits


def test_decrease_that_dynamodb_refuses_fails_no_table(stage: Stage) -> None:
    """Somebody lowered it since the scaler looked; the next run looks again."""
    orders = stage.table("orders", mode=Mode.DIRECT, units=(7, 90))
    stage.wait_for_minute(58)
    stage.wire.fault = at(
        1, lambda _: stage.account.tables[orders.table].use_up_decreases(stage.account.now), "UpdateTable"
    )
    answer = stage.run("orders")
    assert stage.capacity("orders") == Units(7, 90)
    assert (answer.failed, stage.handed_on) == ({}, [])
    assert answer.notes[0].startswith("orders: Subscriber limit exceeded: Provisioned throughput decreases are limited")


def test_ceiling_below_what_demand_asks_is_kept(stage: Stage) -> None:
    plan = replace(PLAN, write=Capacity.autoscaled(min_capacity=12, max_capacity=31))
    orders = stage.table("orders", plan)
    stage.consume(orders, 49)
    answer = stage.run("orders")
    assert stage.bounds(orders) == Bounds(31, 31)
    assert answer.counts[ScalerMetric.AT_CEILING] == 1


@pytest.mark.parametrize("floor", [2, 88], ids=["would-raise", "would-lower"])
def test_run_that_is_overtaken_leaves_the_higher_floor(stage: Stage, floor: int) -> None:
    """A later run has met a surge, after this one has read the targets."""
    orders = stage.table("orders", floor=floor)

    def overtake(call: Any) -> Any:
        answer = call.send()
        stage.register(orders, 250, 400)
        return answer

    stage.wire.fault = at(1, overtake, "DescribeScalableTargets")
    answer = stage.run("orders")
    assert stage.bounds(orders) == Bounds(250, 400)
    assert answer.notes == ["table/orders write: the floor stays at 250, which another run has just set"]


def test_run_that_waited_does_not_lower_what_a_later_one_raised(stage: Stage) -> None:
    orders = stage.table("orders")
    stage.surge(orders, 30 * 98)
    stage.run("orders")
    # its event is of before the surge's first datapoint
    stage.run("orders", time=(stage.now() - 4 * MINUTE).isoformat())
    assert stage.bounds(orders) == Bounds(70, 400)


def test_capacity_that_was_raised_since_a_run_looked_stays(stage: Stage) -> None:
    stage.table("orders", mode=Mode.DIRECT, units=(7, 90))
    stage.wait_for_minute(58)

    def another_run(call: Any) -> Any:
        answer = call.send()
        stage.advance(timedelta(seconds=3))
        stage.provision("orders", Units(7, 250))
        return answer

    stage.wire.fault = at(1, another_run, "DescribeScalableTargets")
    answer = stage.run("orders")
    assert stage.capacity("orders") == Units(7, 250)
    assert answer.notes == [
        f"table/orders {dimension}: capacity was raised while the scaler looked" for dimension in ("read", "write")
    ]
    stage.advance(timedelta(seconds=3))
    stage.run("orders")
    assert stage.capacity("orders") == Units(7, 12)


def test_two_runs_at_once_leave_what_the_later_would(stage: Stage) -> None:
    orders = stage.table("orders")
    stage.surge(orders, 30 * 98)
    # one event of before the surge's first datapoint, and one of now
    times = [stage.now() - 4 * MINUTE, stage.now()] * 3
    with ThreadPoolExecutor(len(times)) as pool:
        list(pool.map(lambda at: stage.run("orders", time=at.isoformat()), times))
    assert stage.bounds(orders) == Bounds(70, 400)
