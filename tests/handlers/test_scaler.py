"""Runs of the scaler: what they set and report, whom a failure touches, and what they call."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from highwater.core import Bounds, Capacity, Dimension, IndexCapacity, Units, Window
from highwater.core.names import TargetName
from highwater.core.scaler import Mode, ScaledPlan, alarm_threshold
from highwater.core.scaler.attention import is_daily_tick, is_full_tick
from highwater.core.scaler.metrics import ScalerMetric
from highwater.handlers.scaler.gather import RunOutcome
from highwater.handlers.scaler.handler import TablesFailedError
from highwater.handlers.scaler.run import Options
from highwater_lab.services.update_table import CapacityControl
from tests.memory_aws.stage import MINUTE, NOW, PLAN, Stage
from tests.memory_aws.wire import Call, at, each, refusal

THROTTLED = refusal("ThrottlingException", "Rate exceeded")
DENIED = refusal("AccessDeniedException", "not authorized")
PLANNED = Bounds(12, 400)
BY_HAND = Bounds(2, 400)


def test_floors_are_set_to_demand_and_plan_and_alarms_follow(
    stage: Stage, orders: TargetName, jobs: TargetName
) -> None:
    stage.consume(orders, 190)
    before = dict(stage.account.alarms[orders.alarm])
    outcome = stage.run("orders", "jobs")
    assert (stage.bounds(orders), stage.bounds(jobs)) == (Bounds(190, 400), PLANNED)
    assert stage.capacity("orders") == Units(7, 190), "auto scaling raises capacity to the floor at once"
    assert stage.account.alarms[orders.alarm] == before | {"Threshold": float(190 * 60 * 97 // 100)}
    assert outcome.counts[ScalerMetric.FLOORS_SET] == 2
    assert [document["table"] for document in outcome.decisions] == ["orders", "jobs"]


def test_surge_raises_the_floor_holds_it_and_lets_it_fall_to_the_plan(stage: Stage) -> None:
    orders = stage.table("orders")
    # how long a peak is held depends on the minute of the hour
    stage.wait_for_minute(0)
    stage.surge(orders, 30 * 98)
    answer = stage.run("orders")
    assert stage.bounds(orders) == Bounds(70, 400), "30 x 98 units in a minute at 70 %"
    assert stage.capacity("orders") == Units(7, 70)
    assert [(d["target"], d["current"], d["granted"]) for d in answer.decisions] == [("table write", 12, 70)]
    reason = "peak of 49 units/s in the last 6 minutes at 70 %, headroom after 1 jump"
    assert answer.decisions[0]["reason"] == reason
    stage.advance(20 * MINUTE)
    stage.run("orders")
    assert stage.bounds(orders) == Bounds(70, 400), "the hour is paid for"
    stage.wait_for_minute(58)
    stage.run("orders")
    assert stage.bounds(orders) == PLANNED


def test_run_again_changes_nothing_and_throttles_from_before_a_raise_count_on(stage: Stage) -> None:
    orders = stage.table("orders")
    stage.surge(orders, 40 * 98, throttled=20)
    first = stage.run("orders")
    assert stage.bounds(orders) == Bounds(140, 400), "60 x 98 units in a minute at 70 %, a third of them throttled"
    assert first.counts[ScalerMetric.FLOORS_SET] == 1
    stage.wire.reset()
    # consumption is far below the new capacity, and still the throttles are known
    second = stage.run("orders")
    assert stage.changes() == []
    assert [told for told in second.decisions if told["current"] != told["granted"]] == []


@pytest.mark.parametrize(
    ("low", "high"),
    [
        pytest.param(2, 77, id="floor-and-ceiling-that-somebody-changed-are-healed"),
        pytest.param(2, 5, id="a-ceiling-below-the-plans-floor-is-put-right"),
    ],
)
def test_bounds_become_those_of_the_plan(stage: Stage, low: int, high: int) -> None:
    orders = stage.table("orders")
    stage.register(orders, low, high)
    stage.run("orders")
    assert stage.bounds(orders) == PLANNED


@pytest.mark.parametrize("days", [0, 40])
def test_open_window_is_the_baseline_however_old_the_plan_is(stage: Stage, days: int) -> None:
    window = Window.daily("load", start="10:10", end="11:10", timezone="UTC", write_min=333)
    orders = stage.table("orders", replace(PLAN, windows=(window,)))
    stage.advance(timedelta(days=days))
    stage.run("orders")
    assert (stage.bounds(orders), stage.capacity("orders")) == (Bounds(333, 400), Units(7, 333))


def test_paused_target_is_left_alone(stage: Stage, orders: TargetName) -> None:
    stage.pause(orders)
    answer = stage.run("orders")
    assert (stage.bounds(orders), answer.counts[ScalerMetric.PAUSED]) == (BY_HAND, 1)


def test_dry_run_changes_nothing_and_logs_what_it_would(stage: Stage, orders: TargetName) -> None:
    outcome = stage.serve({"highwater": "tables", "tables": ["orders"]}, options=Options(dry_run=True))
    assert stage.bounds(orders) == BY_HAND
    assert [(document["granted"], document["dry_run"]) for document in outcome.decisions] == [(12, True)]
    assert stage.changes() == []


def _of_writes(outcome: RunOutcome) -> dict[str, Any]:
    """What was decided of the writes of the only table."""
    (found,) = [each for each in outcome.decisions if each["target"] == "table write"]
    return found


# Whom a failure touches


@pytest.mark.parametrize("attempt", [0, 1])
def test_table_that_fails_touches_no_other_and_is_handed_to_a_run_of_its_own(
    stage: Stage, orders: TargetName, jobs: TargetName, attempt: int
) -> None:
    del stage.account.tables[jobs.table]
    outcome = stage.run("orders", "jobs", attempt=attempt)
    assert outcome.failed == {"jobs": "TableNotFoundError: Requested resource not found: Table: jobs not found"}
    assert stage.bounds(orders) == PLANNED
    again = {"highwater": "tables", "tables": ["jobs"], "attempt": attempt + 1, "time": NOW.isoformat()}
    assert stage.handed_on == [again]


def test_table_that_fails_for_the_third_time_ends_in_the_dead_letter_queue(stage: Stage, jobs: TargetName) -> None:
    del stage.account.tables[jobs.table]
    with pytest.raises(TablesFailedError, match=r"^jobs: TableNotFoundError: Requested resource not found: Table: "):
        stage.run("jobs", attempt=2)


def test_tables_without_time_are_handed_on_and_left_as_they_are(stage: Stage, orders: TargetName) -> None:
    outcome = stage.serve({"highwater": "tables", "tables": ["orders"]}, seconds=15.0)
    assert (outcome.left, [event["tables"] for event in stage.handed_on]) == (["orders"], [["orders"]])
    assert stage.bounds(orders) == BY_HAND
    stage.serve(stage.handed_on.pop())
    assert stage.bounds(orders) == PLANNED


@pytest.mark.parametrize(
    ("operation", "note"),
    [
        ("DescribeAlarms", "no alarms could be read: ClientError: "),
        ("GetMetricData", "no metrics could be read: ClientError: "),
    ],
)
def test_floors_reach_their_plan_without_alarms_and_without_metrics(
    stage: Stage, orders: TargetName, operation: str, note: str
) -> None:
    stage.wire.fault = each(THROTTLED, operation)
    outcome = stage.run("orders")
    assert stage.bounds(orders) == PLANNED
    error = f"An error occurred (ThrottlingException) when calling the {operation} operation: Rate exceeded"
    assert outcome.notes == [note + error]


# DIRECT mode, and times


def test_direct_mode_sets_both_dimensions_in_one_call(stage: Stage) -> None:
    clicks = stage.table("clicks", mode=Mode.DIRECT, units=(7, 3))
    stage.consume(replace(clicks, dimension=Dimension.READ), 58)
    stage.consume(clicks, 97)
    outcome = stage.run("clicks")
    assert stage.capacity("clicks") == Units(60, 100)
    assert stage.wire.operations.count("UpdateTable") == 1
    assert outcome.counts[ScalerMetric.CAPACITIES_SET] == 1


def test_direct_mode_moves_capacity_itself_and_never_beside_auto_scaling(stage: Stage) -> None:
    clicks = stage.table("clicks", mode=Mode.DIRECT, units=(7, 500))
    stage.wait_for_minute(53)
    stage.run("clicks")
    assert stage.capacity("clicks") == Units(7, 12)
    stage.register(clicks, 2, 900)
    stage.provision("clicks", Units(7, 450))
    stage.run("clicks")
    assert stage.capacity("clicks") == Units(7, 450)


def test_old_event_is_decided_for_the_time_of_aws(stage: Stage, orders: TargetName) -> None:
    day = f"{NOW - timedelta(days=7):%Y-%m-%d}"
    window = Window.once("load", start=f"{day}T10:00", end=f"{day}T11:00", timezone="UTC", write_min=333)
    stage.store("orders", ScaledPlan(table="orders", mode=Mode.FLOOR, plan=replace(PLAN, windows=(window,))).to_json())
    outcome = stage.run("orders", time=(NOW - timedelta(days=7)).isoformat())
    assert stage.bounds(orders) == PLANNED, "not the floor of last week's window"
    assert outcome.notes == [
        "the event is of 2027-02-25 10:20:40 UTC, AWS's time is 2027-03-04 10:20:40: the scaler decides for AWS's time"
    ]


# What is called


def test_tick_reads_nothing_of_tables_that_are_not_due(stage: Stage, orders: TargetName) -> None:
    stage.advance(MINUTE)
    assert not is_full_tick("orders", stage.account.now // 60)
    assert stage.tick().figures["TargetsDue"] == 0
    assert stage.bounds(orders) == BY_HAND, "it is not its minute"
    assert stage.wire.operations == ["GetParametersByPath", "DescribeAlarms"]
    stage.put_alarm(orders, StateValue="ALARM")
    stage.tick()
    assert stage.bounds(orders) == PLANNED


def test_event_of_one_table_asks_for_nothing_of_the_others(stage: Stage, orders: TargetName, jobs: TargetName) -> None:
    """13: a storm of alarms would exceed the rates of Systems Manager and CloudWatch."""
    stage.run(orders.table)
    assert stage.wire.bodies("GetParameters") == [{"Names": [stage.parameter("orders")]}]
    alarms = [TargetName("orders", None, dimension).alarm for dimension in Dimension]
    assert stage.wire.bodies("DescribeAlarms")[0]["AlarmNames"] == alarms
    assert "jobs" not in json.dumps([call.body for call in stage.wire.calls], default=str)
    assert stage.bounds(jobs) == BY_HAND


@pytest.mark.parametrize(("status", "registers"), [("", True), ("UPDATING", False)], ids=["active", "being-changed"])
def test_capacity_below_its_floor_is_repaired_once_nothing_changes_the_table(
    stage: Stage, status: str, registers: bool
) -> None:
    """8: Application Auto Scaling looks at bounds only when a target is registered, and may miss one of several."""
    orders = stage.table("orders")
    stage.provision("orders", Units(7, 11))
    stage.account.tables["orders"].lasting_status = status
    stage.run("orders")
    assert stage.capacity("orders") == Units(7, 12 if registers else 11)
    assert stage.bounds(orders) == PLANNED


FIXED = replace(
    PLAN, read=Capacity.fixed(units=70), indexes=(IndexCapacity(index_name="by_day", write=Capacity.fixed(units=33)),)
)
RESET, WHOLE = Units(1, 1), {None: Units(70, 12), "by_day": Units(70, 33)}


def _reset(stage: Stage) -> None:
    stage.table("orders", FIXED, units=(70, 33))
    for index in WHOLE:
        stage.account.tables["orders"].resources[index] = CapacityControl(dict.fromkeys(Dimension, 1))


def _units(stage: Stage) -> dict[str | None, Units]:
    resources = stage.account.tables["orders"].resources
    return {index: Units(*(each.granted[dimension] for dimension in Dimension)) for index, each in resources.items()}


def test_fixed_capacity_that_a_deploy_reset_is_raised_to_its_floor_without_any_metric(stage: Stage) -> None:
    """Nothing else looks at it: it has no policy, no alarm, and its floor stays. Bounds and suspension stay, too."""
    _reset(stage)
    outcome = stage.run("orders")
    assert _units(stage) == WHOLE
    registered = [call.body for call in stage.wire.calls if call.operation == "RegisterScalableTarget"]
    alone = [body for body in registered if "MinCapacity" not in body]
    assert [(body["ResourceId"], body["ScalableDimension"]) for body in alone] == [
        ("table/orders", "dynamodb:table:ReadCapacityUnits"),
        ("table/orders/index/by_day", "dynamodb:index:ReadCapacityUnits"),
        ("table/orders/index/by_day", "dynamodb:index:WriteCapacityUnits"),
    ]
    assert not any("SuspendedState" in body for body in alone)
    asked = json.dumps(stage.wire.bodies("GetMetricData"), default=str)
    assert "ConsumedReadCapacityUnits" not in asked
    assert "by_day" not in asked
    assert outcome.notes == [
        f"{TargetName('orders', *key)}: its fixed capacity was below its floor, so it is registered again"
        for key in [(None, Dimension.READ), ("by_day", Dimension.READ), ("by_day", Dimension.WRITE)]
    ]
    stage.wire.reset()
    assert stage.run("orders").notes == []
    assert stage.changes() == []


@pytest.mark.parametrize(
    ("status", "paused", "expected"),
    [
        pytest.param("UPDATING", [], {None: RESET, "by_day": RESET}, id="being-changed"),
        pytest.param("", [None], {None: Units(1, 12), "by_day": Units(70, 33)}, id="paused-by-an-operator"),
    ],
)
def test_fixed_capacity_is_left_alone(
    stage: Stage, status: str, paused: list[str | None], expected: dict[str | None, Units]
) -> None:
    _reset(stage)
    stage.account.tables["orders"].lasting_status = status
    for index in paused:
        stage.pause(TargetName("orders", index, Dimension.READ))
    stage.run("orders")
    assert _units(stage) == expected


def test_fixed_capacity_is_left_alone_in_a_dry_run(stage: Stage) -> None:
    stage.options = Options(dry_run=True)
    _reset(stage)
    stage.run("orders")
    assert _units(stage) == {None: RESET, "by_day": RESET}


def test_floors_come_before_alarms_and_a_refused_alarm_is_left_to_the_next_run(
    stage: Stage, orders: TargetName, jobs: TargetName
) -> None:
    """9: CloudWatch takes about three changes of alarms a second."""
    stage.wire.fault = each(THROTTLED, "PutMetricAlarm")
    outcome = stage.run("orders", "jobs")
    assert (stage.bounds(orders), stage.bounds(jobs)) == (PLANNED, PLANNED)
    assert (outcome.failed, stage.handed_on) == ({}, [])
    assert stage.wire.operations.count("PutMetricAlarm") == 3, "more refusals would only take the rate from others"
    refusals = "; ".join(["TableBusyError: Rate exceeded"] * 3)
    assert outcome.notes == [f"thresholds of 4 alarms are left to the next runs: {refusals}"]
    stage.wire.reset()
    assert stage.run("orders", "jobs").figures["AlarmsMoved"] == 4


def _many_tables(stage: Stage, number: int) -> list[TargetName]:
    """Tables with two targets each, of which one consumes 190 units a second."""
    names = [stage.table(f"more-{each}") for each in range(number)]
    for name in names:
        stage.consume(name, 190)
    return names


def test_run_moves_a_limited_number_of_alarms(stage: Stage) -> None:
    """9: the schedule starts the next run a minute later."""
    outcome = stage.run(*(name.table for name in _many_tables(stage, 60)))
    assert (outcome.figures["AlarmsMoved"], outcome.failed) == (100, {})
    assert outcome.notes == ["thresholds of 20 alarms are left to the next runs"]


def test_alarms_that_are_refused_for_good_leave_the_others_to_follow(stage: Stage) -> None:
    """9: somebody has changed some alarms by hand, so that CloudWatch refuses to put them again."""
    refused = refusal("ValidationError", "Period must be 60")
    broken = iter(range(4))
    stage.wire.fault = each(lambda call: refused(call) if next(broken, None) is not None else None, "PutMetricAlarm")
    outcome = stage.run(*(name.table for name in _many_tables(stage, 4)))
    assert outcome.figures["AlarmsMoved"] == 4
    refusals = "; ".join(["TableRefusedError: Period must be 60"] * 4)
    assert outcome.notes == [f"thresholds of 4 alarms are left to the next runs: {refusals}"]


def test_run_that_an_alarm_started_moves_its_tables_floors_and_leaves_alarms_to_ticks(
    stage: Stage, orders: TargetName, jobs: TargetName
) -> None:
    """13: a run for each of 200 tables would ask for many more changes of alarms than CloudWatch takes."""
    stage.consume(orders, 190)
    outcome = stage.alarm(orders)
    assert (stage.bounds(orders), stage.bounds(jobs)) == (Bounds(190, 400), BY_HAND)
    assert ("PutMetricAlarm" in stage.wire.operations, outcome.notes) == (False, [])
    stage.put_alarm(orders, StateValue="ALARM")
    stage.advance(MINUTE)
    stage.tick()
    assert stage.threshold(orders) == alarm_threshold(190)


def test_alarm_stays_where_its_threshold_is_nearly_right(stage: Stage, orders: TargetName) -> None:
    stage.consume(orders, 190)
    stage.run("orders")
    assert stage.threshold(orders) == alarm_threshold(190)
    stage.wire.reset()
    stage.consume(orders, 205)
    stage.run("orders")
    assert (stage.bounds(orders).min, stage.threshold(orders)) == (205, alarm_threshold(190))
    assert "PutMetricAlarm" not in stage.wire.operations
    stage.put_alarm(orders, StateValue="ALARM", Threshold=float(alarm_threshold(190)))
    stage.run("orders")
    assert stage.threshold(orders) == alarm_threshold(205)


@pytest.mark.parametrize("crossed", ["the end", "the start"])
def test_run_that_read_before_a_windows_edge_sets_nothing_after_it(crossed: str) -> None:
    """A scheduled action sets the bounds of the next minute; the run's are of the one before."""
    window = Window.daily("load", start="10:00", end="11:00", timezone="UTC", write_min=300, lead=0 * MINUTE)
    stage = Stage()
    orders = stage.table("orders", replace(PLAN, windows=(window,)))
    stage.wait_for_minute(59)
    hour = 11 if crossed == "the end" else 10
    while stage.now().hour != hour - 1:
        stage.advance(60 * MINUTE)
    inside, outside = Bounds(300, 400), Bounds(12, 400)
    before, after = (inside, outside) if crossed == "the end" else (outside, inside)
    # by hand, so that the run has something to set
    stage.register(orders, before.min + 1, 400)

    def at_the_edge(call: Call) -> Any:
        stage.advance(MINUTE)
        stage.register(orders, after.min, after.max)
        return call.send()

    stage.wire.fault = at(2, at_the_edge, "DescribeScalableTargets")
    outcome = stage.run("orders")
    assert (stage.now().hour, stage.now().minute) == (hour, 0)
    assert stage.bounds(orders) == after
    assert outcome.notes == [f"{orders}: a window begins or ends in this minute; the next run sets the floor"]
    stage.wire.reset()
    stage.run("orders")
    assert stage.bounds(orders) == after


def test_one_call_for_metrics_that_is_refused_leaves_the_others_what_they_were_told(stage: Stage) -> None:
    """11: CloudWatch grants an account so many datapoints a second, and others ask for some of them."""
    names = _many_tables(stage, 130)
    stage.wire.fault = at(1, THROTTLED, "GetMetricData")
    outcome = stage.run(*(name.table for name in names))
    raised = [name for name in names if stage.bounds(name).min == 190]
    # 260 targets, whose eight hours are read in two calls
    assert outcome.counts[ScalerMetric.METRICS_MISSING] == 210
    assert len(raised) == 25
    assert outcome.notes[0].startswith("no metrics could be read: ClientError: ")


def test_minutes_of_more_tables_are_read_when_most_tables_before_them_are_decided(stage: Stage) -> None:
    """A run of thousands of targets has no memory for the minutes of all of them."""
    names = _many_tables(stage, 130)
    stage.run(*(name.table for name in names))
    calls = [(call.operation, len(call.body.get("MetricDataQueries", ()))) for call in stage.wire.calls]
    first, second = calls.index(("GetMetricData", 210)), calls.index(("GetMetricData", 50))
    described = [operation for operation, _ in calls[first:second]].count("DescribeTable")
    # 105 tables have 210 targets; eight threads may still have a table each, of which seven can be undecided
    assert 105 - 7 <= described <= 105
    assert all(stage.bounds(name).min == 190 for name in names)


def test_metrics_are_not_asked_for_again_and_again_while_cloudwatch_does_not_answer(stage: Stage) -> None:
    names = _many_tables(stage, 130)
    stage.wire.fault = each(THROTTLED, "GetMetricData")
    outcome = stage.run(*(name.table for name in names))
    sizes = [len(body["MetricDataQueries"]) for body in stage.wire.bodies("GetMetricData")]
    assert [size for size in sizes if size > 2] == [210, 50], "throttles are asked for table by table"
    assert outcome.counts[ScalerMetric.METRICS_MISSING] >= 260


# What others do to the tables


def test_table_whose_alarm_starts_another_scaler_is_told(stage: Stage, orders: TargetName, jobs: TargetName) -> None:
    """1: two scalers on one table set each other's floors."""
    function = "arn:aws:lambda:us-east-1:111122223333:function:"
    stage.put_alarm(orders, AlarmActions=[f"{function}other-scaler", "arn:aws:sns:us-east-1:111122223333:ops"])
    stage.put_alarm(jobs, AlarmActions=[f"{function}my-scaler"])
    event = {"highwater": "tables", "tables": ["orders", "jobs"]}
    assert stage.serve(event, options=Options(function="my-scaler")).notes == [
        "orders: another scaler manages this table too, with the function other-scaler; remove the table from one of "
        "the two"
    ]


def test_table_that_idles_and_bursts_is_noted_once_a_day(stage: Stage) -> None:
    orders = stage.table("orders")
    minutes = (NOW + timedelta(days=1) + n * MINUTE for n in range(1_440))
    daily = next(at for at in minutes if is_daily_tick("orders", int(at.timestamp()) // 60)).replace(second=5)
    # an hour before it a burst; the other hours have nothing
    stage.advance(daily - NOW - 60 * MINUTE)
    stage.surge(orders, 30 * 98)
    stage.advance(daily - stage.now() - MINUTE)
    assert ScalerMetric.CHEAPER_ON_DEMAND not in stage.run("orders").counts
    stage.advance(MINUTE)
    answer = stage.run("orders")
    assert answer.counts[ScalerMetric.CHEAPER_ON_DEMAND] == 1
    assert answer.notes == [
        "orders: on demand, its last day would have cost 4 % of the least that provisioned capacity can cost, as "
        "it idles and bursts; use on-demand, or ask highwater recommend"
    ]


def test_index_that_the_plan_leaves_out_is_counted_in_every_five_minutes_and_named(stage: Stage) -> None:
    whole = PLAN.with_indexes(["by_day", "by_owner"])
    stage.table("orders", whole)
    stage.store("orders", ScaledPlan(table="orders", mode=Mode.FLOOR, plan=PLAN).to_json())
    told = []
    for _ in range(10):
        outcome = stage.tick()
        told.append(outcome.counts.get(ScalerMetric.UNMANAGED_INDEXES, 0))
        if told[-1]:
            assert outcome.notes == [
                "orders: index 'by_day', 'by_owner' is not in the plan, so nothing scales it: name it in indexes= and "
                "deploy"
            ]
        stage.advance(MINUTE)
    assert sorted(told) == [0] * 8 + [2] * 2
    stage.store("orders", ScaledPlan(table="orders", mode=Mode.FLOOR, plan=whole).to_json())
    for _ in range(5):
        assert ScalerMetric.UNMANAGED_INDEXES not in stage.tick().counts
        stage.advance(MINUTE)


def test_spike_of_each_hour_is_served_by_the_burst_that_the_table_has_shown(stage: Stage, orders: TargetName) -> None:
    stage.wait_for_minute(0)
    for _ in range(3):
        # 12 units/s have been provisioned: 1,440 units above them are 120 seconds
        stage.surge(orders, 12 * 60 + 1_440)
        stage.advance(55 * MINUTE)
    stage.surge(orders, 12 * 60 + 1_440)
    decision = _of_writes(stage.run("orders"))
    assert decision["granted"] == 12, "36 units/s in the newest minute"
    reason = "peak of 36 units/s in the last 30 minutes, spikes served by 240 s of burst"
    assert decision["reason"] == reason
    assert stage.wire.bodies("GetMetricData")[-1]["MetricDataQueries"][2]["MetricStat"] == {
        "Metric": {
            "Namespace": "AWS/DynamoDB",
            "MetricName": "ProvisionedWriteCapacityUnits",
            "Dimensions": [{"Name": "TableName", "Value": "orders"}],
        },
        "Period": 60,
        "Stat": "Maximum",
    }


def test_burst_that_cannot_be_read_is_taken_for_a_minute(stage: Stage, orders: TargetName) -> None:
    stage.wait_for_minute(0)
    stage.surge(orders, 12 * 60 + 1_440)
    # the third call, after consumption and throttles
    stage.wire.fault = at(3, THROTTLED, "GetMetricData")
    outcome = stage.run("orders")
    assert [note for note in outcome.notes if note.startswith("orders: the last day of ")] == [
        "orders: the last day of table/orders write could not be read: An error occurred (ThrottlingException) when "
        "calling the GetMetricData operation: Rate exceeded"
    ]
    assert outcome.counts[ScalerMetric.METRICS_MISSING] == 1
    assert _of_writes(outcome)["granted"] > 12


def test_spike_is_not_bought_where_the_last_day_cost_more_than_it_is_worth(stage: Stage, orders: TargetName) -> None:
    stage.provision("orders", Units(7, 60))
    stage.consume(orders, 14)
    stage.advance(180 * MINUTE)
    stage.surge(orders, 36 * 60)
    outcome = stage.run("orders")
    decision = _of_writes(outcome)
    # 14 units/s are 20 at 70 %; four hours at 60
    assert (decision["wanted"], decision["granted"]) == (36, 20)
    assert [limit["sentence"] for limit in decision["limits"] if limit["code"] == "regret"] == [
        "the last day cost 200 % more than target tracking at 70 %, which would have throttled 0 units: more is not "
        "worth its price"
    ]
    assert outcome.counts[ScalerMetric.COSTS_MORE_THAN_TRACKING] == 1
    asked = stage.wire.bodies("GetMetricData")[-1]
    assert asked["EndTime"] - asked["StartTime"] == timedelta(days=1)


def test_day_that_was_read_already_is_not_read_again(stage: Stage) -> None:
    """In DIRECT mode, which looks at yesterday."""
    orders = stage.table("orders", mode=Mode.DIRECT)
    stage.surge(orders, 36 * 60)
    stage.run("orders")
    queries = stage.wire.bodies("GetMetricData")[-1]["MetricDataQueries"]
    names = [query["MetricStat"]["Metric"]["MetricName"] for query in queries]
    assert names == ["WriteProvisionedThroughputThrottleEvents", "ProvisionedWriteCapacityUnits"]
