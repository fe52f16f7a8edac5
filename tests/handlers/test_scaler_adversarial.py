"""The scaler against a world that means no good: odd data, odd times, odd neighbours."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from highwater.aws import autoscaling, metrics, tables
from highwater.core import Capacity, Dimension, Plan, Window
from highwater.core.names import TargetName
from highwater.handlers import scaler
from highwater.handlers.scaled_table import Clients
from tests.handlers.stage import MINUTE, PLAN, Context, Stage

pytestmark = pytest.mark.xdist_group("cloud-scaler")
WRITE = Dimension.WRITE
Result = dict[str, Any]


def _held_high(stage: Stage) -> str:
    """A table whose floor stands at 88, of which nothing is asked any more."""
    table = stage.table()
    stage.cloud.advance(45 * MINUTE)
    stage.register(TargetName(table, None, WRITE), 88, 400)
    return table


def _with_answers(monkeypatch: pytest.MonkeyPatch, change: Callable[[Result], None]) -> None:
    """Every series that CloudWatch answers, changed on its way."""
    make = metrics.client

    def client(region: str | None = None) -> Any:
        made = make(region)

        def after(parsed: dict[str, Any], **_: Any) -> None:
            for result in parsed["MetricDataResults"]:
                change(result)

        made.meta.events.register("after-call.cloudwatch.GetMetricData", after)
        return made

    monkeypatch.setattr(metrics, "client", client)
    # a dataclass keeps the factory that it was made with
    original = Clients.__init__

    def init(self: Clients, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **{"cloudwatch": client()} | named)

    monkeypatch.setattr(Clients, "__init__", init)


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
def test_nothing_is_lowered_on_data_that_are_none(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, change: Callable[[Result], None]
) -> None:
    table = _held_high(stage)
    _with_answers(monkeypatch, change)
    answer = stage.run(table)
    assert answer["failed"] == {}
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
def test_data_that_come_twice_out_of_order_or_late_are_data(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, change: Callable[[Result], None]
) -> None:
    table = _held_high(stage)
    _with_answers(monkeypatch, change)
    stage.run(table)
    assert stage.bounds(table) == (12, 400)


def test_without_cloudwatch_a_floor_below_its_plan_rises_and_none_falls(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    high, low = _held_high(stage), stage.table()
    stage.register(TargetName(low, None, WRITE), 2, 400)

    def down(*_: Any) -> Any:
        message = "no route to CloudWatch"
        raise ConnectionError(message)

    monkeypatch.setattr(metrics, "see_consumed", down)
    answer = stage.run(high, low)
    assert (stage.bounds(high), stage.bounds(low)) == ((88, 400), (12, 400))
    assert answer["counts"]["MetricsMissing"] == 4


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


def test_event_from_last_week_finds_the_plan_of_today(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    table = stage.table(_window_plan(stage, opened_days_ago=7))
    stage.register(TargetName(table, None, WRITE), 2, 400)
    notes: list[str] = []
    monkeypatch.setattr(scaler.logger, "warning", notes.append)
    last_week = stage.now() - timedelta(days=7)
    stage.run(table, time=last_week.isoformat())
    assert stage.bounds(table) == (12, 400), "not the floor of last week's window"
    assert notes[0].startswith(f"the event is of {last_week:%Y-%m-%d %H:%M:%S} UTC, and AWS says ")
    assert notes[0].endswith(": the latter counts")


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


def test_table_that_is_deleted_in_the_middle_of_a_run_touches_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, other = stage.table(), stage.table()
    for table in (gone, other):
        stage.register(TargetName(table, None, WRITE), 2, 400)
    see = tables.see_table

    def see_and_lose(client: Any, table: str) -> Any:
        seen = see(client, table)
        if table == gone:
            stage.client("dynamodb").delete_table(TableName=gone)
            stage.made.remove(gone)
        return seen

    monkeypatch.setattr(tables, "see_table", see_and_lose)
    stage.run(gone, other)
    assert stage.bounds(other) == (12, 400)
    monkeypatch.setattr(tables, "see_table", see)
    # a target outlives its table
    stage.register(TargetName(other, None, WRITE), 2, 400)
    answer = stage.run(gone, other)
    assert answer["failed"] == {gone: f"TableNotFoundError: Requested resource not found: Table: {gone} not found"}
    assert stage.bounds(other) == (12, 400)
    assert [event["tables"] for event in stage.handed_on] == [[gone]]
    stage.client("ssm").delete_parameter(Name=f"/highwater/plans/{gone}")


def test_table_that_is_being_changed_has_its_floor_set_and_in_direct_mode_is_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    floor, direct = stage.table(), stage.table(mode="direct")
    stage.register(TargetName(floor, None, WRITE), 2, 400)
    stage.client("dynamodb").update_table(
        TableName=direct, ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}
    )
    see = tables.see_table

    def updating(client: Any, table: str) -> Any:
        from dataclasses import replace

        return replace(see(client, table), is_active=False)

    monkeypatch.setattr(tables, "see_table", updating)
    stage.run(floor, direct)
    assert stage.bounds(floor) == (12, 400)
    assert stage.capacity(direct) == (7, 3), "the next run comes when it is done"
    monkeypatch.setattr(tables, "see_table", see)
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
    assert answer["counts"]["DecreaseBudgetExhausted"] == 1
    limits = [limit["code"] for told in answer["decisions"] for limit in told["limits"]]
    assert "decrease-budget" in limits


def test_bounds_that_somebody_turned_upside_down_are_put_right(stage: Stage) -> None:
    table = stage.table()
    # a ceiling under the plan's floor
    stage.register(TargetName(table, None, WRITE), 2, 5)
    stage.run(table)
    assert stage.bounds(table) == (12, 400)


def test_ceiling_below_what_demand_asks_is_kept(stage: Stage) -> None:
    plan = Plan(read=PLAN.read, write=Capacity.autoscaled(min=12, max=31))
    table = stage.table(plan)
    stage.cloud.advance(40 * MINUTE)
    stage.write(table, 30)
    stage.cloud.advance(4 * MINUTE)
    answer = stage.run(table)
    assert stage.bounds(table) == (31, 31)
    assert answer["counts"]["AtCeiling"] == 1


def test_run_that_is_overtaken_leaves_the_higher_floor(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _held_high(stage)
    name = TargetName(table, None, WRITE)
    see = autoscaling.see_targets
    looks = 0

    def see_then_another_run_acts(client: Any, names: Any) -> Any:
        nonlocal looks
        seen = see(client, names)
        looks += 1
        if looks == 1:
            # a later run, which has seen a surge
            stage.register(name, 250, 400)
        return seen

    monkeypatch.setattr(autoscaling, "see_targets", see_then_another_run_acts)
    notes: list[str] = []
    monkeypatch.setattr(scaler.logger, "warning", notes.append)
    stage.run(table)
    assert stage.bounds(table) == (250, 400)
    assert notes == [f"{table}: left the floor of table/{table} write at 250, which another run set meanwhile"]


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


def test_capacity_that_was_raised_since_a_run_looked_stays(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    table = stage.table(mode="direct", units=(7, 90))
    late = stage.now().replace(minute=52, second=0, microsecond=0) + 60 * MINUTE
    stage.cloud.advance(late - stage.now())
    see = tables.see_table

    def see_after_another_run_acts(client: Any, table: str) -> Any:
        stage.cloud.advance(timedelta(seconds=3))
        stage.client("dynamodb").update_table(
            TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 250}
        )
        return see(client, table)

    monkeypatch.setattr(tables, "see_table", see_after_another_run_acts)
    notes: list[str] = []
    monkeypatch.setattr(scaler.logger, "warning", notes.append)
    stage.run(table)
    assert stage.capacity(table) == (7, 250)
    assert notes == [f"{table}: left as it is, as it was raised meanwhile"]
    monkeypatch.setattr(tables, "see_table", see)
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
        threading.Thread(
            target=scaler.handler,
            args=({"highwater": "tables", "tables": [table], "time": at.isoformat()}, Context()),
        )
        for at in times
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stage.bounds(table) == (73, 400)
