"""The scaler against a world that means no good: odd data, odd times, odd neighbours."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.region import AwsRegion
from highwater.aws.tables import DescribedTable
from highwater.core import Capacity, Dimension, Plan, Window
from highwater.core.names import TargetName, plan_parameter
from highwater.core.scaler import Observation
from highwater.handlers.scaler.handler import Scaler
from tests.handlers.stage import MINUTE, PLAN, Stage

pytestmark = pytest.mark.xdist_group("cloud-scaler")
WRITE = Dimension.WRITE
Result = dict[str, Any]


def _held_high(stage: Stage) -> str:
    """A table whose floor stands at 88, of which nothing is asked any more."""
    table = stage.table()
    stage.cloud.advance(45 * MINUTE)
    stage.register(TargetName(table, None, WRITE), 88, 400)
    return table


def _with_answers(stage: Stage, change: Callable[[Result], None]) -> Scaler:
    """A scaler that gets every series that CloudWatch answers changed on its way."""
    region = AwsRegion()

    def after(parsed: dict[str, Any], **_: Any) -> None:
        for result in parsed["MetricDataResults"]:
            change(result)

    region.clients.cloudwatch.meta.events.register("after-call.cloudwatch.GetMetricData", after)
    return stage.scaler(lambda _: region)


def test_floor_that_nothing_holds_falls(stage: Stage) -> None:
    table = _held_high(stage)
    stage.run(table)
    assert stage.bounds(table) == (12, 400), "or the tests below would show nothing"


def _nan(result: Result) -> None:
    result["Values"] = [math.nan for _ in result["Values"]]


def _some_nan(result: Result) -> None:
    result["Values"] = [math.nan if number % 3 == 0 else value for number, value in enumerate(result["Values"])]


def _gap(result: Result) -> None:
    keep = [number for number in range(len(result["Values"])) if number % 20 != 7]
    for member in ("Timestamps", "Values"):
        result[member] = [result[member][number] for number in keep]


def _negative(result: Result) -> None:
    result["Values"] = [-1.0 for _ in result["Values"]]


def _nothing(result: Result) -> None:
    result["Timestamps"], result["Values"] = [], []


def _old(result: Result) -> None:
    """The newest quarter of an hour is missing."""
    for member in ("Timestamps", "Values"):
        result[member] = result[member][:-15]


@pytest.mark.parametrize("change", [_nan, _some_nan, _gap, _negative, _nothing, _old])
def test_nothing_is_lowered_on_data_that_are_none(stage: Stage, change: Callable[[Result], None]) -> None:
    table = _held_high(stage)
    answer = stage.run(table, scaler=_with_answers(stage, change))
    assert answer.failed == {}
    assert stage.bounds(table) == (88, 400)


def _twice(result: Result) -> None:
    for member in ("Timestamps", "Values"):
        result[member] = [each for each in result[member] for _ in range(2)]


def _backwards(result: Result) -> None:
    for member in ("Timestamps", "Values"):
        result[member] = result[member][::-1]


def _late(result: Result) -> None:
    for member in ("Timestamps", "Values"):
        result[member] = result[member][:-3]


def _seconds_off(result: Result) -> None:
    result["Timestamps"] = [at + 17 for at in result["Timestamps"]]


@pytest.mark.parametrize("change", [_twice, _backwards, _late, _seconds_off])
def test_data_that_come_twice_out_of_order_or_late_are_data(stage: Stage, change: Callable[[Result], None]) -> None:
    table = _held_high(stage)
    stage.run(table, scaler=_with_answers(stage, change))
    assert stage.bounds(table) == (12, 400)


class _Blind(AwsRegion):
    """CloudWatch answers no metrics."""

    def read_consumption(self, *_: Any) -> Mapping[TargetName, Observation]:
        message = "no route to CloudWatch"
        raise ConnectionError(message)


def test_without_cloudwatch_a_floor_below_its_plan_rises_and_none_falls(stage: Stage) -> None:
    high, low = _held_high(stage), stage.table()
    stage.register(TargetName(low, None, WRITE), 2, 400)
    answer = stage.run(high, low, scaler=stage.scaler(_Blind))
    assert (stage.bounds(high), stage.bounds(low)) == ((88, 400), (12, 400))
    assert answer.counts["MetricsMissing"] == 4
    assert answer.notes == ["no metrics could be read: ConnectionError: no route to CloudWatch"]


def _window_plan(stage: Stage, opened_days_ago: int) -> Plan:
    """A window of an hour so many days ago."""
    begun = stage.now() - timedelta(days=opened_days_ago) - 20 * MINUTE
    window = Window.once(
        "load",
        start=f"{begun:%Y-%m-%dT%H:%M}",
        end=f"{begun + 60 * MINUTE:%Y-%m-%dT%H:%M}",
        timezone="UTC",
        write_min=333,
    )
    return Plan(read=PLAN.read, write=PLAN.write, windows=(window,))


def test_event_from_last_week_finds_the_plan_of_today(stage: Stage) -> None:
    table = stage.table(_window_plan(stage, opened_days_ago=7))
    stage.register(TargetName(table, None, WRITE), 2, 400)
    last_week = stage.now() - timedelta(days=7)
    answer = stage.run(table, time=last_week.isoformat())
    assert stage.bounds(table) == (12, 400), "not the floor of last week's window"
    assert answer.notes[0].startswith(f"the event is of {last_week:%Y-%m-%d %H:%M:%S} UTC, AWS's time is ")
    assert answer.notes[0].endswith(": the scaler decides for AWS's time")


@pytest.mark.parametrize("skew_minutes", [-4, 4])
def test_clock_that_is_off_by_minutes_changes_nothing(stage: Stage, skew_minutes: int) -> None:
    table = _held_high(stage)
    stage.run(table, time=(stage.now() + skew_minutes * MINUTE).isoformat())
    assert stage.bounds(table) == (12, 400)


def test_plan_of_forty_days_ago_is_the_plan(stage: Stage) -> None:
    opens = stage.now() + timedelta(days=40)
    window = Window.daily(
        "load", start=f"{opens - 30 * MINUTE:%H:%M}", end=f"{opens + 30 * MINUTE:%H:%M}", timezone="UTC", write_min=333
    )
    table = stage.table(Plan(read=PLAN.read, write=PLAN.write, windows=(window,)))
    stage.forget_alarms()
    stage.cloud.advance(timedelta(days=40))
    stage.run(table)
    assert stage.bounds(table) == (333, 400)


class _Interrupted(AwsRegion):
    """Something happens right after a table is described for the first time."""

    def __init__(self, happens: Callable[[str], None]) -> None:
        super().__init__()
        self._happens = happens
        self._met: set[str] = set()

    def describe_table(self, table: str) -> DescribedTable:
        described = super().describe_table(table)
        if table not in self._met:
            self._met.add(table)
            self._happens(table)
        return described


def test_table_that_is_deleted_in_the_middle_of_a_run_touches_no_other(stage: Stage) -> None:
    gone, other = stage.table(), stage.table()
    for table in (gone, other):
        stage.register(TargetName(table, None, WRITE), 2, 400)

    def lose(table: str) -> None:
        if table == gone:
            stage.client("dynamodb").delete_table(TableName=gone)
            stage.made.remove(gone)

    region = _Interrupted(lose)
    stage.run(gone, other, scaler=stage.scaler(lambda _: region))
    assert stage.bounds(other) == (12, 400)
    # a target outlives its table
    stage.register(TargetName(other, None, WRITE), 2, 400)
    stage.handed_on.clear()
    answer = stage.run(gone, other)
    assert answer.failed == {gone: f"TableNotFoundError: Requested resource not found: Table: {gone} not found"}
    assert stage.bounds(other) == (12, 400)
    assert [event["tables"] for event in stage.handed_on] == [[gone]]
    stage.client("ssm").delete_parameter(Name=plan_parameter("scaler", gone))


class _Updating(AwsRegion):
    """Every table is being changed."""

    def describe_table(self, table: str) -> DescribedTable:
        return replace(super().describe_table(table), is_active=False)


def test_table_that_is_being_changed_has_its_floor_set_and_in_direct_mode_is_left(stage: Stage) -> None:
    floor, direct = stage.table(), stage.table(mode="direct")
    stage.register(TargetName(floor, None, WRITE), 2, 400)
    stage.client("dynamodb").update_table(
        TableName=direct, ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}
    )
    stage.run(floor, direct, scaler=stage.scaler(_Updating))
    assert stage.bounds(floor) == (12, 400)
    assert stage.capacity(direct) == (7, 3), "the next run comes when it is done"
    stage.run(direct)
    assert stage.capacity(direct) == (7, 12)


def test_used_up_decreases_leave_capacity_and_are_told(stage: Stage) -> None:
    table = stage.table(mode="direct", units=(7, 90))
    late = stage.now().replace(hour=23, minute=51, second=0) + timedelta(days=1)
    stage.cloud.advance(late - 45 * MINUTE - stage.now())
    for units in (80, 70, 60, 50):
        stage.client("dynamodb").update_table(
            TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": units}
        )
    stage.cloud.advance(45 * MINUTE)
    answer = stage.run(table)
    assert stage.capacity(table) == (7, 50)
    assert answer.counts["DecreaseBudgetExhausted"] == 1
    limits = [limit["code"] for document in answer.decisions for limit in document["limits"]]
    assert "decrease-budget" in limits


def test_bounds_that_somebody_turned_upside_down_are_put_right(stage: Stage) -> None:
    table = stage.table()
    # a ceiling under the plan's floor
    stage.register(TargetName(table, None, WRITE), 2, 5)
    stage.run(table)
    assert stage.bounds(table) == (12, 400)


def test_ceiling_below_what_demand_asks_is_kept(stage: Stage) -> None:
    plan = Plan(read=PLAN.read, write=Capacity.autoscaled(min_capacity=12, max_capacity=31))
    table = stage.table(plan)
    stage.cloud.advance(40 * MINUTE)
    stage.write(table, 30)
    stage.cloud.advance(4 * MINUTE)
    answer = stage.run(table)
    assert stage.bounds(table) == (31, 31)
    assert answer.counts["AtCeiling"] == 1


class _Overtaken(AwsRegion):
    """Another run acts right after this one has read the targets."""

    def __init__(self, another_run: Callable[[], None]) -> None:
        super().__init__()
        self._another_run = another_run
        self._reads = 0

    def read_targets(self, names: Iterable[TargetName]) -> RegisteredTargets:
        registered = super().read_targets(names)
        self._reads += 1
        if self._reads == 1:
            self._another_run()
        return registered


def test_run_that_is_overtaken_leaves_the_higher_floor(stage: Stage) -> None:
    table = _held_high(stage)
    # a later run has met a surge
    region = _Overtaken(lambda: stage.register(TargetName(table, None, WRITE), 250, 400))
    answer = stage.run(table, scaler=stage.scaler(lambda _: region))
    assert stage.bounds(table) == (250, 400)
    assert answer.notes == [f"table/{table} write: the floor stays at 250, which another run has just set"]


def test_run_that_waited_does_not_lower_what_a_later_one_raised(stage: Stage) -> None:
    table = stage.table()
    stage.cloud.advance(40 * MINUTE)
    stage.write(table, 30)
    stage.cloud.advance(4 * MINUTE)
    stage.run(table)
    assert stage.bounds(table) == (73, 400)
    # its event is of before the surge's first datapoint
    stage.run(table, time=(stage.now() - 4 * MINUTE).isoformat())
    assert stage.bounds(table) == (73, 400)


def test_capacity_that_was_raised_since_a_run_looked_stays(stage: Stage) -> None:
    table = stage.table(mode="direct", units=(7, 90))
    late = stage.now().replace(minute=52, second=0, microsecond=0) + 60 * MINUTE
    stage.cloud.advance(late - stage.now())

    def another_run() -> None:
        stage.cloud.advance(timedelta(seconds=3))
        stage.client("dynamodb").update_table(
            TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 250}
        )

    region = _Overtaken(another_run)
    answer = stage.run(table, scaler=stage.scaler(lambda _: region))
    assert stage.capacity(table) == (7, 250)
    assert answer.notes == [
        f"table/{table} {dimension}: capacity was raised while the scaler looked" for dimension in ("read", "write")
    ]
    stage.cloud.advance(timedelta(seconds=3))
    stage.run(table)
    assert stage.capacity(table) == (7, 12)


def test_two_runs_at_once_leave_what_the_later_would(stage: Stage) -> None:
    table = stage.table()
    stage.cloud.advance(40 * MINUTE)
    stage.write(table, 30)
    stage.cloud.advance(4 * MINUTE)
    now = stage.now()
    # one event of before the surge's first datapoint, and one of now
    times = [now - 4 * MINUTE, now] * 3
    threads = [
        threading.Thread(target=stage.serve, args=({"highwater": "tables", "tables": [table], "time": at.isoformat()},))
        for at in times
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stage.bounds(table) == (73, 400)
