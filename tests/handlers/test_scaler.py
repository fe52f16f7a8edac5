"""The scaler's function against the local cloud: real boto3 over HTTP, real metrics of real writes."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest

from highwater.aws.region import AwsRegion
from highwater.core import Dimension, Plan, Window
from highwater.core.names import TargetName
from highwater.core.scaler.attention import is_daily_tick, is_full_tick
from highwater.handlers.scaler.event import ScalerEvent
from highwater.handlers.scaler.handler import TablesFailedError
from highwater.handlers.scaler.plan_cache import PlanCache
from highwater.handlers.scaler.run import Options
from tests.handlers.stage import MINUTE, PLAN, Stage

pytestmark = pytest.mark.xdist_group("cloud-scaler")


def test_surge_raises_the_floor_holds_it_and_lets_it_fall_to_the_plan(stage: Stage) -> None:
    table = stage.table()
    stage.cloud.advance(40 * MINUTE)
    stage.write(table, 30)
    stage.cloud.advance(4 * MINUTE)
    answer = stage.run(table)
    assert stage.bounds(table) == (73, 400), "30 x 98 units in a minute at 68 %"
    assert stage.capacity(table) == (7, 73)
    assert [(d["target"], d["current"], d["granted"]) for d in answer.decisions] == [("table write", 12, 73)]
    reason = "peak of 49 units/s in the last 15 minutes at 68 %, cautious after 1 jump"
    assert answer.decisions[0]["reason"] == reason
    stage.cloud.advance(20 * MINUTE)
    stage.run(table)
    assert stage.bounds(table) == (73, 400), "the hour is paid for"
    stage.wait_for_minute(51)
    stage.run(table)
    assert stage.bounds(table) == (12, 400)


def test_run_again_changes_nothing(stage: Stage) -> None:
    table = stage.table()
    stage.cloud.advance(40 * MINUTE)
    stage.write(table, 20)
    stage.cloud.advance(4 * MINUTE)
    first, second = stage.run(table), stage.run(table)
    assert first.counts["FloorsSet"] == 1
    assert "FloorsSet" not in second.counts
    assert [told for told in second.decisions if told["current"] != told["granted"]] == []


def test_throttles_from_before_a_raise_count_on(stage: Stage) -> None:
    table = stage.table()
    stage.cloud.advance(40 * MINUTE)
    # a bucket of 300 s of 12 units holds 36 of 60; eight a second, as a partition takes no more
    throttled = stage.write_paced(table, 60, a_second=8)
    assert 15 <= throttled <= 25
    stage.cloud.advance(4 * MINUTE)
    stage.run(table)
    raised = stage.bounds(table)
    assert raised[0] > (60 - throttled) * 98 / 60 / 0.68, "more than what was consumed asks for"
    # consumption is far below the new capacity, and still the throttles are known
    assert stage.run(table).counts.get("FloorsSet", 0) == 0
    assert stage.bounds(table) == raised


def test_floor_and_ceiling_that_somebody_changed_by_hand_are_healed(stage: Stage) -> None:
    table = stage.table()
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 77)
    stage.run(table)
    assert stage.bounds(table) == (12, 400)


def test_open_window_is_the_baseline(stage: Stage) -> None:
    begun = stage.now() - 10 * MINUTE
    window = Window.once(
        "load",
        start=f"{begun:%Y-%m-%dT%H:%M}",
        end=f"{begun + 60 * MINUTE:%Y-%m-%dT%H:%M}",
        timezone="UTC",
        write_min=333,
    )
    plan = Plan(read=PLAN.read, write=PLAN.write, windows=(window,))
    table = stage.table(plan)
    stage.run(table)
    assert stage.bounds(table) == (333, 400)
    assert stage.capacity(table) == (7, 333)


def test_paused_target_is_left_alone(stage: Stage) -> None:
    table = stage.table()
    state = {"DynamicScalingInSuspended": True, "DynamicScalingOutSuspended": True, "ScheduledScalingSuspended": True}
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 400, SuspendedState=state)
    answer = stage.run(table)
    assert stage.bounds(table) == (2, 400)
    assert answer.counts["Paused"] == 1


def test_alarm_follows_the_capacity_and_keeps_all_else(stage: Stage) -> None:
    table = stage.table()
    before = _alarm(stage, table)
    stage.run(table)
    after = _alarm(stage, table)
    assert after["Threshold"] == 12 * 60 * 97 // 100
    changing = ("Threshold", "AlarmConfigurationUpdatedTimestamp", "StateUpdatedTimestamp", "StateReason", "StateValue")
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }


def _alarm(stage: Stage, table: str) -> dict[str, Any]:
    name = TargetName(table, None, Dimension.WRITE).alarm
    found = stage.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return dict(found[0])


def test_alarm_event_looks_at_its_table_alone(stage: Stage) -> None:
    one, other = stage.table(), stage.table()
    for table in (one, other):
        stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    metric = {
        "namespace": "AWS/DynamoDB",
        "name": "ConsumedWriteCapacityUnits",
        "dimensions": {"TableName": one},
    }
    event = {
        "source": "aws.cloudwatch",
        "alarmArn": "arn:aws:cloudwatch:us-east-1:000000000000:alarm:Highwater",
        "time": stage.now().strftime("%Y-%m-%dT%H:%M:%S.000+0000"),
        "alarmData": {"configuration": {"metrics": [{"id": "m1", "metricStat": {"metric": metric}}]}},
    }
    stage.serve(event)
    assert (stage.bounds(one), stage.bounds(other)) == ((12, 400), (2, 400))


def test_tick_looks_at_targets_in_their_minute_and_at_those_in_alarm(stage: Stage) -> None:
    table = stage.table()
    name = TargetName(table, None, Dimension.WRITE)
    stage.run(table)
    stage.cloud.advance(10 * MINUTE)
    minute = next(
        at
        for at in (stage.now() + number * MINUTE for number in range(10))
        if not is_full_tick(table, int(at.timestamp()) // 60)
    )
    stage.register(name, 2, 400)
    stage.serve({"highwater": "tick", "time": minute.isoformat()})
    assert stage.bounds(table) == (2, 400), "it is not its minute"
    stage.client("cloudwatch").set_alarm_state(AlarmName=name.alarm, StateValue="ALARM", StateReason="a test")
    stage.serve({"highwater": "tick", "time": minute.isoformat()})
    assert stage.bounds(table) == (12, 400)


def test_direct_mode_moves_capacity_itself_and_never_beside_auto_scaling(stage: Stage) -> None:
    table = stage.table(mode="direct", units=(7, 500))
    stage.cloud.advance(40 * MINUTE)
    now = stage.now()
    stage.cloud.advance((now + 60 * MINUTE).replace(minute=53, second=0) - now)
    stage.run(table)
    assert stage.capacity(table) == (7, 12)
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 900)
    stage.client("dynamodb").update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 450}
    )
    stage.run(table)
    assert stage.capacity(table) == (7, 450)


def test_failing_table_goes_alone_into_another_run_and_then_to_the_queue(stage: Stage) -> None:
    whole, gone = stage.table(), stage.table()
    stage.register(TargetName(whole, None, Dimension.WRITE), 2, 400)
    stage.client("dynamodb").delete_table(TableName=gone)
    answer = stage.run(whole, gone)
    assert stage.bounds(whole) == (12, 400)
    assert answer.failed == {gone: f"TableNotFoundError: Requested resource not found: Table: {gone} not found"}
    again = stage.handed_on.pop()
    assert (again["tables"], again["attempt"]) == ([gone], 1)
    stage.serve(again)
    last = stage.handed_on.pop()
    with pytest.raises(TablesFailedError, match=f"^{gone}: TableNotFoundError: Requested resource not found"):
        stage.serve(last)
    stage.client("dynamodb").create_table(
        TableName=gone,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def test_what_does_not_fit_into_the_time_is_handed_on(stage: Stage) -> None:
    table = stage.table()
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    answer = stage.run(table, seconds=14.0)
    assert (answer.left, stage.bounds(table)) == ([table], (2, 400))
    stage.serve(stage.handed_on.pop())
    assert stage.bounds(table) == (12, 400)


def test_dry_run_says_what_it_would_do(stage: Stage) -> None:
    table = stage.table()
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    answer = stage.run(table, scaler=stage.scaler(options=Options(dry_run=True)))
    assert stage.bounds(table) == (2, 400)
    assert [(d["granted"], d["dry_run"]) for d in answer.decisions] == [(12, True)]


_PLAN = PLAN.to_document()


def _stored(**changes: Any) -> str:
    return json.dumps({"mode": "floor", "plan": _PLAN | changes})


def _with_window(**changes: Any) -> str:
    window = {"name": "w", "start": "01:00", "end": "02:00", "timezone": "UTC", "days": "MON", "lead_minutes": 5}
    return _stored(windows=[window | {"write_min": 9} | changes])


POISONED = {
    "mode": '{"mode": "sideways"}',
    "list": json.dumps({"mode": "floor", "plan": []}),
    "no-object": "7",
    "deep": f'{{"mode": "floor", "plan": {"[" * 2_000}',
    "infinite-lead": _with_window(lead_minutes=math.inf),
    "infinite-floor": _stored(read={"min": math.inf, "max": 8}),
    "unknown-zone": _with_window(timezone="Mars/Base"),
    "unknown-day": _with_window(days="SOMEDAY"),
    "days-of-numbers": _with_window(days=7),
    "windows-of-text": _stored(windows="none"),
    "capacity-of-text": _stored(read="many"),
    "index-of-a-list": _stored(indexes=[{"name": []}]),
}


@pytest.mark.parametrize("poisoned", POISONED.values(), ids=list(POISONED))
@pytest.mark.parametrize("kind", ["tick", "tables"])
def test_one_bad_plan_fails_alone_and_is_counted(stage: Stage, kind: str, poisoned: str) -> None:
    """19: no plan, whatever is in it, stops the scaler for the others."""
    table, broken = stage.table(), stage.table()
    stage.store(broken, poisoned)
    stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    at = stage.now().replace(second=0, microsecond=0)
    # the next minutes in which the good table, and the bad one, are due
    for minute in range(5):
        answer = stage.serve({"highwater": kind, "time": (at + minute * MINUTE).isoformat()})
        assert answer.failed == {}
        assert answer.counts["UnreadablePlans"] == 1, answer.notes
        assert any(broken in note for note in answer.notes)
    assert stage.bounds(table) == (12, 400)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({}, "event must be an alarm or say highwater: tick or tables, got {}"),
        ({"highwater": "tick", "time": "noon"}, "time must be an instant such as 2027-03-04T05:06:07Z, got 'noon'"),
        ({"highwater": "tick", "time": "2027-03-04T05:06:07"}, "time must have a zone, got '2027-03-04T05:06:07'"),
        ({"highwater": "tables", "tables": "orders"}, "tables must be a list of names, got 'orders'"),
        ({"highwater": "tables", "attempt": "1"}, "attempt must be a whole number, got '1'"),
        (
            {"source": "aws.cloudwatch", "alarmArn": "arn:of-another"},
            "alarm 'arn:of-another' is on no consumption of a table or index",
        ),
    ],
)
def test_event_that_is_none_is_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole message is below
        ScalerEvent.read(event)
    assert str(refused.value) == message


def test_many_plans_are_kept_for_five_minutes_and_few_never(stage: Stage) -> None:
    home = AwsRegion()
    cache, now = PlanCache(most_read_always=0), stage.now()
    first = stage.table()
    assert [plan.table for plan in cache.read(home, "scaler", now).plans] == [first]
    second = stage.table()
    assert len(cache.read(home, "scaler", now + 4 * MINUTE).plans) == 1
    assert {plan.table for plan in cache.read(home, "scaler", now + 5 * MINUTE).plans} == {first, second}
    third = stage.table()
    assert len(cache.read(home, "scaler", now).plans) == 3, "an event from before"
    fourth = stage.table()
    assert {plan.table for plan in cache.read(home, "scaler", None).plans} == {first, second, third, fourth}
    assert len(PlanCache().read(home, "scaler", now).plans) == 4
    always = PlanCache()
    always.read(home, "scaler", now)
    stage.table()
    assert len(always.read(home, "scaler", now).plans) == 5


def test_tables_found_by_tag_are_scaled_with_their_indexes(stage: Stage) -> None:
    tagged, plain, wrong = (stage.table(plan=None) for _ in range(3))
    for table in (tagged, plain, wrong):
        stage.register(TargetName(table, None, Dimension.WRITE), 2, 400)
    bounds = {"read_min": "7", "read_max": "900", "write_min": "21", "write_max": "500"}
    stage.tag(tagged, managed="floor", **bounds)
    stage.tag(wrong, managed="floor", **(bounds | {"write_max": "20"}))
    stage.add_index(tagged, "by-day")
    stage.register(TargetName(tagged, "by-day", Dimension.WRITE), 4, 400)
    answer = stage.run(tagged, plain, wrong, scaler=stage.scaler(options=Options(sees_tags=True)))
    assert stage.bounds(tagged) == (21, 500)
    assert stage.bounds(tagged, index="by-day") == (21, 500)
    assert (stage.bounds(plain), stage.bounds(wrong)) == ((2, 400), (2, 400))
    assert answer.counts["UnreadablePlans"] == 1


def test_table_that_idles_and_bursts_is_noted_once_a_day(stage: Stage) -> None:
    bursting = stage.table()
    tomorrow = stage.now() + timedelta(days=1)
    minutes = (tomorrow + n * MINUTE for n in range(1_440))
    daily = next(at for at in minutes if is_daily_tick(bursting, int(at.timestamp()) // 60)).replace(second=5)
    # an hour before it a burst; the other hours have nothing
    stage.cloud.advance(daily - stage.now() - 60 * MINUTE)
    stage.write(bursting, 30)
    stage.cloud.advance(daily - stage.now() - MINUTE)
    assert "CheaperOnDemand" not in stage.run(bursting).counts
    stage.cloud.advance(MINUTE)
    answer = stage.run(bursting)
    assert answer.counts["CheaperOnDemand"] == 1
    assert answer.notes == [
        f"{bursting}: on demand, its last day would have cost 4 % of the least that provisioned capacity can cost, as "
        "it idles and bursts; use on-demand, or ask highwater recommend"
    ]
