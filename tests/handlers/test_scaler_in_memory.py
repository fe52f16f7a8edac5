"""A run of the scaler against a region in memory: whom a failure touches, and what is called."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater.aws.alarms import TargetAlarm
from highwater.aws.tables import TableBusyError, TableRefusedError
from highwater.core import Bounds, Capacity, Dimension, Plan, Units
from highwater.core.names import TargetName
from highwater.core.scaler import Mode, alarm_threshold
from highwater.handlers.scaler.handler import Scaler, TablesFailedError
from highwater.handlers.scaler.outcome import Outcome
from highwater.handlers.scaler.run import Options
from tests.handlers.fake_region import FakeRegion, as_region

NOW = datetime(2027, 3, 4, 10, 20, 40, tzinfo=UTC)
PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=7, max_capacity=900),
    write=Capacity.autoscaled(min_capacity=12, max_capacity=400),
)
HERE = Units(7, 12)
ORDERS, JOBS = TargetName("orders", None, Dimension.WRITE), TargetName("jobs", None, Dimension.WRITE)


@pytest.fixture
def region() -> FakeRegion:
    made = FakeRegion(NOW)
    made.add_table("orders", PLAN, HERE)
    made.add_table("jobs", PLAN, HERE)
    for name in (ORDERS, JOBS):
        made.bounds[name] = Bounds(2, 400)
    return made


def _serve(region: FakeRegion, *tables: str, seconds: float = 300.0, **more: Any) -> tuple[Outcome, list[Any]]:
    """Serve an event of now for these tables; what was done, and the events that were handed on."""
    handed_on: list[Any] = []
    options = more.pop("options", Options())
    scaler = Scaler(options, region_of=lambda _: as_region(region), hand_on=handed_on.append, report=lambda *_: None)
    event = {"highwater": "tables", "tables": list(tables), "time": NOW.isoformat()} | more
    return scaler.serve(event, lambda: seconds), handed_on


def test_floors_are_set_to_demand_and_to_the_plan_and_alarms_follow(region: FakeRegion) -> None:
    region.units[ORDERS] = 190
    outcome, _ = _serve(region, "orders", "jobs")
    assert (region.bounds[ORDERS], region.bounds[JOBS]) == (Bounds(190, 400), Bounds(12, 400))
    assert region.alarms[ORDERS].threshold == alarm_threshold(190)
    assert outcome.counts["FloorsSet"] == 2
    assert [document["table"] for document in outcome.decisions] == ["orders", "jobs"]


def test_run_again_changes_nothing(region: FakeRegion) -> None:
    _serve(region, "orders")
    region.calls.clear()
    _serve(region, "orders")
    assert not [call for call in region.calls if call.startswith(("set_", "move_"))]


def test_dry_run_changes_nothing_and_logs_what_it_would(region: FakeRegion) -> None:
    outcome, _ = _serve(region, "orders", options=Options(dry_run=True))
    assert region.bounds[ORDERS] == Bounds(2, 400)
    assert [(document["granted"], document["dry_run"]) for document in outcome.decisions] == [(12, True)]
    assert not [call for call in region.calls if call.startswith(("set_", "move_"))]


@pytest.mark.parametrize("attempt", [0, 1])
def test_table_that_fails_touches_no_other_and_is_handed_to_a_run_of_its_own(region: FakeRegion, attempt: int) -> None:
    del region.tables["jobs"]
    outcome, handed_on = _serve(region, "orders", "jobs", attempt=attempt)
    assert outcome.failed == {"jobs": "TableNotFoundError: no jobs"}
    assert region.bounds[ORDERS] == Bounds(12, 400)
    assert handed_on == [{"highwater": "tables", "tables": ["jobs"], "attempt": attempt + 1, "time": NOW.isoformat()}]


def test_table_that_fails_for_the_third_time_ends_in_the_dead_letter_queue(region: FakeRegion) -> None:
    del region.tables["jobs"]
    with pytest.raises(TablesFailedError, match=r"^jobs: TableNotFoundError: no jobs$"):
        _serve(region, "jobs", attempt=2)


def test_tables_without_time_are_handed_on_and_left_as_they_are(region: FakeRegion) -> None:
    outcome, handed_on = _serve(region, "orders", seconds=15.0)
    assert (outcome.left, [event["tables"] for event in handed_on]) == (["orders"], [["orders"]])
    assert region.bounds[ORDERS] == Bounds(2, 400)


@pytest.mark.parametrize(
    ("method", "note"),
    [
        ("read_alarms of 2", "no alarms could be read: RuntimeError: refused"),
        ("read_consumption", "no metrics could be read: RuntimeError: refused"),
    ],
)
def test_floors_reach_their_plan_without_alarms_and_without_metrics(region: FakeRegion, method: str, note: str) -> None:
    def refuse(called: str) -> None:
        if called == method:
            raise RuntimeError("refused")

    region.before = refuse
    outcome, _ = _serve(region, "orders")
    assert region.bounds[ORDERS] == Bounds(12, 400)
    assert outcome.notes == [note]


def test_floor_that_another_run_has_raised_meanwhile_stays(region: FakeRegion) -> None:
    def raise_meanwhile(called: str) -> None:
        if called == "describe_table orders":
            region.bounds[ORDERS] = Bounds(250, 400)

    region.before = raise_meanwhile
    outcome, _ = _serve(region, "orders")
    assert region.bounds[ORDERS] == Bounds(250, 400)
    assert outcome.notes == ["table/orders write: the floor stays at 250, which another run has just set"]


def test_direct_mode_sets_both_dimensions_in_one_call(region: FakeRegion) -> None:
    region.add_table("clicks", PLAN, Units(7, 3), Mode.DIRECT)
    region.units |= {TargetName("clicks", None, Dimension.READ): 38, TargetName("clicks", None, Dimension.WRITE): 95}
    outcome, _ = _serve(region, "clicks")
    assert region.tables["clicks"] == {None: Units(40, 100)}
    assert region.calls.count("set_capacity clicks") == 1
    assert outcome.counts["CapacitiesSet"] == 1


def test_old_event_is_decided_for_the_time_of_aws(region: FakeRegion) -> None:
    outcome, _ = _serve(region, "orders", time=(NOW - timedelta(days=7)).isoformat())
    assert outcome.notes == [
        "the event is of 2027-02-25 10:20:40 UTC, AWS's time is 2027-03-04 10:20:40: the scaler decides for AWS's time"
    ]


def test_tick_reads_nothing_of_tables_that_are_not_due(region: FakeRegion) -> None:
    calm = NOW + timedelta(minutes=1)
    region.plans = region.plans[:1]
    outcome, _ = _serve(region, highwater="tick", time=calm.isoformat())
    assert outcome.counts["TargetsDue"] == 0
    assert region.calls == ["read_plans scaler", "read_alarms"]


@pytest.mark.parametrize(("is_busy", "registers"), [(False, True), (True, False)])
def test_capacity_below_its_floor_is_repaired_once_nothing_changes_the_table(
    region: FakeRegion, is_busy: bool, registers: bool
) -> None:
    """8: Application Auto Scaling looks at bounds only when a target is registered, and may miss one of several."""
    region.bounds[ORDERS] = Bounds(12, 400)
    region.tables["orders"] = {None: Units(7, 11)}
    region.busy = {"orders"} if is_busy else set()
    _serve(region, "orders")
    assert ("set_bounds table/orders write" in region.calls) is registers
    assert region.bounds[ORDERS] == Bounds(12, 400)


def test_floors_come_before_alarms_and_a_refused_alarm_is_left_to_the_next_run(region: FakeRegion) -> None:
    """9: CloudWatch takes about three changes of alarms a second."""

    def refuse(called: str) -> None:
        if called == "move_threshold":
            raise TableBusyError("Rate exceeded")

    region.before = refuse
    outcome, handed_on = _serve(region, "orders", "jobs")
    assert (region.bounds[ORDERS], region.bounds[JOBS]) == (Bounds(12, 400), Bounds(12, 400))
    assert (outcome.failed, handed_on) == ({}, [])
    assert region.calls.count("move_threshold") == 3, "more refusals would only take the rate from others"
    assert outcome.notes == [
        "thresholds of 4 alarms are left to the next runs: TableBusyError: Rate exceeded; TableBusyError: Rate "
        "exceeded; TableBusyError: Rate exceeded"
    ]
    region.before = lambda _: None
    assert _serve(region, "orders", "jobs")[0].counts["AlarmsMoved"] == 4


def test_run_moves_a_limited_number_of_alarms(region: FakeRegion) -> None:
    """9: the schedule starts the next run a minute later."""
    for number in range(60):
        region.add_table(f"more-{number}", PLAN, HERE)
    outcome, _ = _serve(region, *(f"more-{number}" for number in range(60)))
    assert (outcome.counts["AlarmsMoved"], outcome.failed) == (100, {})
    assert outcome.notes == ["thresholds of 20 alarms are left to the next runs"]


def test_alarms_that_are_refused_for_good_leave_the_others_to_follow(region: FakeRegion) -> None:
    """9: somebody has changed some alarms by hand, so that CloudWatch refuses to put them again."""
    broken = iter(range(4))

    def refuse(called: str) -> None:
        if called == "move_threshold" and next(broken, None) is not None:
            raise TableRefusedError("Period must be 60")

    for number in range(4):
        region.add_table(f"more-{number}", PLAN, HERE)
    region.before = refuse
    outcome, _ = _serve(region, *(f"more-{number}" for number in range(4)))
    assert outcome.counts["AlarmsMoved"] == 4
    refusals = "; ".join(["TableRefusedError: Period must be 60"] * 4)
    assert outcome.notes == [f"thresholds of 4 alarms are left to the next runs: {refusals}"]


def test_run_that_an_alarm_started_moves_floors_and_leaves_alarms_to_ticks(region: FakeRegion) -> None:
    """13: a run for each of 200 tables would ask for many more changes of alarms than CloudWatch takes."""
    metric = {"name": "ConsumedWriteCapacityUnits", "dimensions": {"TableName": "orders"}}
    alarm: dict[str, Any] = {
        "source": "aws.cloudwatch",
        "time": NOW.isoformat(),
        "alarmArn": "arn:aws:cloudwatch:us-east-1:111122223333:alarm:Highwater orders write",
        "alarmData": {"configuration": {"metrics": [{"id": "m1", "metricStat": {"metric": metric}}]}},
    }
    region.units[ORDERS] = 190
    outcome, _ = _serve(region, **alarm)
    assert region.bounds[ORDERS] == Bounds(190, 400)
    assert (region.calls.count("move_threshold"), outcome.notes) == (0, [])
    region.alarms[ORDERS] = TargetAlarm(is_in_alarm=True, threshold=7, document={})
    _serve(region, highwater="tick", time=(NOW + timedelta(minutes=1)).isoformat())
    assert region.alarms[ORDERS].threshold == alarm_threshold(190)


def _many_tables(region: FakeRegion) -> list[str]:
    """Tables with 260 targets, whose eight hours are read in two calls."""
    region.plans.clear()
    names = [f"more-{number}" for number in range(130)]
    for name in names:
        region.add_table(name, PLAN, HERE)
        region.units[TargetName(name, None, Dimension.WRITE)] = 190
    return names


def test_one_call_for_metrics_that_is_refused_leaves_the_others_what_they_were_told(region: FakeRegion) -> None:
    """11: CloudWatch grants an account so many datapoints a second, and others ask for some of them."""
    reads = iter(range(1))

    def refuse(called: str) -> None:
        if called == "read_consumption" and next(reads, None) is not None:
            raise RuntimeError("Rate exceeded")

    names = _many_tables(region)
    region.before = refuse
    outcome, _ = _serve(region, *names)
    raised = [name for name in names if region.bounds[TargetName(name, None, Dimension.WRITE)].min == 190]
    assert outcome.counts["MetricsMissing"] == 210
    assert len(raised) == 25
    assert "no metrics could be read: RuntimeError: Rate exceeded" in outcome.notes


def test_metrics_are_not_asked_for_again_and_again_while_cloudwatch_does_not_answer(region: FakeRegion) -> None:
    def refuse(called: str) -> None:
        if called == "read_consumption":
            raise RuntimeError("timed out")

    names = _many_tables(region)
    region.before = refuse
    _many = _serve(region, *names)[0]
    assert region.calls.count("read_consumption") == 2
    assert _many.counts["MetricsMissing"] == 260


def test_event_of_one_table_asks_for_nothing_of_the_others(region: FakeRegion) -> None:
    """13: a storm of alarms would exceed the rates of Systems Manager and CloudWatch."""
    _serve(region, "orders")
    assert region.calls[:2] == ["read_plans_of scaler orders", "read_alarms of 2"]
    assert not [call for call in region.calls if "jobs" in call]


def test_table_whose_alarm_starts_another_scaler_is_told(region: FakeRegion) -> None:
    """1: two scalers on one table set each other's floors."""
    actions = ["arn:aws:lambda:us-east-1:111122223333:function:other-scaler", "arn:aws:sns:us-east-1:111122223333:ops"]
    for name in (ORDERS, JOBS):
        mine = actions if name is ORDERS else ["arn:aws:lambda:us-east-1:111122223333:function:my-scaler"]
        region.alarms[name] = TargetAlarm(False, alarm_threshold(12), {"AlarmActions": mine})
    outcome, _ = _serve(region, "orders", "jobs", options=Options(function="my-scaler"))
    assert outcome.notes == [
        "orders: another scaler manages this table too, with the function other-scaler; remove the table from one of "
        "the two"
    ]


def test_table_that_has_left_the_scaler_is_let_alone(region: FakeRegion) -> None:
    """18: its plan is still there until CloudFormation cleans up."""
    region.plans = [replace(plan, is_released=plan.table == "orders") for plan in region.plans]
    _serve(region, "orders", "jobs")
    assert (region.bounds[ORDERS], region.bounds[JOBS]) == (Bounds(2, 400), Bounds(12, 400))


_TAGGED = Options(name="a", function="my-scaler", sees_tags=True)
# the minute of scaler "a", whose name is the byte 97
_HOURLY = datetime(2027, 3, 4, 10, 23, tzinfo=UTC)


def _asked_for_others(
    region: FakeRegion, at: datetime = _HOURLY, kind: str = "tick", options: Options = _TAGGED
) -> bool:
    tables = ["orders"] if kind == "tables" else []
    event = {"highwater": kind, "tables": tables, "time": at.isoformat()}
    Scaler(options, region_of=lambda _: as_region(region), report=lambda *_: None).serve(event, lambda: 300.0)
    return "read_tagged_scalers" in region.calls


def test_other_scalers_of_tagged_tables_are_asked_for_once_an_hour(region: FakeRegion) -> None:
    """For each minute of an hour it would be one more call in each region."""
    region.now = _HOURLY
    asked = []
    for minute in range(60):
        region.calls.clear()
        at = _HOURLY.replace(minute=minute)
        region.now = at
        if _asked_for_others(region, at):
            asked.append(minute)
    assert asked == [23]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("tables", _TAGGED),
        ("tick", replace(_TAGGED, sees_tags=False)),
        ("tick", replace(_TAGGED, function="")),
        ("tick", replace(_TAGGED, dry_run=True)),
    ],
    ids=["tables", "scaler-without-tags", "unknown-function", "dry-run"],
)
def test_other_scalers_of_tagged_tables_are_not_asked_for(region: FakeRegion, kind: str, options: Options) -> None:
    region.now = _HOURLY
    assert not _asked_for_others(region, kind=kind, options=options)


def test_tables_are_scaled_where_other_scalers_cannot_be_read(region: FakeRegion) -> None:
    def refuse(called: str) -> None:
        if called == "read_tagged_scalers":
            raise RuntimeError("timed out")

    region.now, region.before = _HOURLY, refuse
    event = {"highwater": "tick", "time": _HOURLY.isoformat()}
    scaler = Scaler(_TAGGED, region_of=lambda _: as_region(region), report=lambda *_: None)
    outcome = scaler.serve(event, lambda: 300.0)
    assert outcome.notes == [
        "other scalers of tagged tables in the scaler's region could not be read: RuntimeError: timed out"
    ]
    assert outcome.failed == {}
