"""What is left of tables that are gone, and what differs from its declaration: whole sentences, with their commands."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from highwater.core import Capacity, Dimension, Plan, Window
from highwater.core.names import TargetName
from highwater.core.scaler import Mode, ScaledPlan
from highwater.core.tracking import TargetTracking
from highwater_lab.audit.account import LiveScaling
from highwater_lab.audit.deviations import (
    DeclaredTarget,
    Deviation,
    LiveTarget,
    SeenAlarm,
    SeenQueue,
    drift_of,
    left_alarms,
    left_plans,
    left_queues,
    left_targets,
)
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.prices import load_prices
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation import TargetSetup

PRICES = load_prices("eu-west-1")
WRITE = TargetName("orders", None, Dimension.WRITE)
OF_INDEX = TargetName("orders", "by owner", Dimension.READ)
NOON = datetime(2026, 11, 4, 12, tzinfo=UTC)
AT_73 = TargetTracking(target_percent=73)
TABLES = {"orders": frozenset({"by owner"}), "events": frozenset[str]()}
AUTOSCALING = "aws application-autoscaling"
OF_WRITES = (
    "--region eu-west-1 --service-namespace dynamodb --resource-id table/orders "
    "--scalable-dimension dynamodb:table:WriteCapacityUnits"
)
REGISTER = f"{AUTOSCALING} register-scalable-target {OF_WRITES} --min-capacity 34 --max-capacity 340"


def _action(name: str, low: int | None = None, high: int | None = None) -> ScheduledChange:
    return ScheduledChange(
        name=name,
        expression=parse_expression("rate(1 day)", ZoneInfo("UTC"), NOON),
        min=low,
        max=high,
        start=None,
        end=None,
    )


def _scaling(low: int = 34, high: int = 340, **more: Any) -> LiveScaling:
    usual: dict[str, Any] = {"is_suspended": False, "tracking": AT_73, "policies": ("target-tracking",)}
    return LiveScaling(min=low, max=high, **usual | more)


DECLARED = DeclaredTarget(
    name=WRITE, floors=(34, 34), ceilings=(340, 340), tracking=AT_73, actions=frozenset({"opens"}), mark=5_000
)
AS_DECLARED = LiveTarget(units=56, mark=5_000, scaling=_scaling(actions=(_action("opens"),)))


def _drift(live: LiveTarget, declared: DeclaredTarget = DECLARED) -> list[Deviation]:
    return list(drift_of(declared, live, PRICES.throughput(), "eu-west-1"))


def _is(found: list[Deviation], text: str, command: str, *, can_throttle: bool) -> bool:
    (only,) = found
    assert (only.text, only.command, only.can_throttle) == (text, command, can_throttle)
    return True


def test_what_is_as_declared_is_no_drift() -> None:
    assert _drift(AS_DECLARED) == []


@pytest.mark.parametrize(
    ("scaling", "text", "can_throttle"),
    [
        pytest.param(_scaling(12), "has a floor of 12, declared for now: 34", True, id="floor-below"),
        pytest.param(
            _scaling(234),
            # 200 write units for 730 hours
            "has a floor of 234, declared for now: 34, 107.31 USD a month",
            False,
            id="floor-above",
        ),
        pytest.param(_scaling(34, 99), "has a ceiling of 99, declared for now: 340", True, id="ceiling-below"),
        pytest.param(_scaling(34, 999), "has a ceiling of 999, declared for now: 340", False, id="ceiling-above"),
    ],
)
def test_bounds_that_differ_are_registered_again(scaling: LiveScaling, text: str, can_throttle: bool) -> None:
    units = max(56, scaling.min)
    scaling.actions = (_action("opens"),)
    found = _drift(replace(AS_DECLARED, units=units, scaling=scaling))
    assert _is(found, f"target table/orders write {text}", REGISTER, can_throttle=can_throttle)


def test_target_that_is_gone_is_registered_again() -> None:
    text = "target table/orders write is not registered, declared: 34 to 340"
    assert _is(_drift(replace(AS_DECLARED, scaling=None)), text, REGISTER, can_throttle=True)


def test_capacity_below_its_floor_is_moved_by_registering_the_same_bounds() -> None:
    """As after `cdk deploy --revert-drift`, which sets the template's one unit."""
    text = "target table/orders write has a capacity of 1, below its floor of 34"
    assert _is(_drift(replace(AS_DECLARED, units=1)), text, REGISTER, can_throttle=True)


def test_paused_target_is_resumed_and_its_capacity_is_not_judged() -> None:
    scaling = _scaling(is_suspended=True, actions=(_action("opens"),))
    text = "target table/orders write is paused: its scaling is suspended"
    found = _drift(replace(AS_DECLARED, units=1, scaling=scaling))
    assert _is(found, text, "highwater resume orders --region eu-west-1", can_throttle=False)


def test_mark_below_the_declared_one_is_raised_unless_it_rises() -> None:
    text = (
        "target table/orders write has a high-water mark of 4,000 units/s, declared: 5,000; raising it is charged once"
    )
    command = (
        "aws dynamodb update-table --region eu-west-1 --table-name orders --warm-throughput WriteUnitsPerSecond=5000"
    )
    assert _is(_drift(replace(AS_DECLARED, mark=4_000)), text, command, can_throttle=True)
    assert _drift(replace(AS_DECLARED, mark=4_000, is_warming=True)) == []
    # a table whose throughput changes reports none for a while
    assert _drift(replace(AS_DECLARED, mark=0)) == []
    assert _drift(replace(AS_DECLARED, mark=9_000)) == []


def test_mark_of_an_index_is_raised_by_an_update_of_the_index() -> None:
    declared = DeclaredTarget(name=OF_INDEX, floors=None, mark=77)
    (found,) = _drift(LiveTarget(units=5, mark=66), declared)
    assert found.command == (
        "aws dynamodb update-table --region eu-west-1 --table-name orders --global-secondary-index-updates "
        """'[{"Update": {"IndexName": "by owner", "WarmThroughput": {"ReadUnitsPerSecond": 77}}}]'"""
    )


def test_policy_that_is_gone_or_differs_is_put_again() -> None:
    put = (
        f"{AUTOSCALING} put-scaling-policy {OF_WRITES} --policy-name target-tracking "
        "--policy-type TargetTrackingScaling --target-tracking-scaling-policy-configuration "
        """'{"TargetValue": 73, "PredefinedMetricSpecification": """
        """{"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"}, "ScaleInCooldown": 0, """
        """"ScaleOutCooldown": 0, "DisableScaleIn": false}'"""
    )
    opens = (_action("opens"),)
    gone = _scaling(tracking=None, policies=(), actions=opens)
    text = "target table/orders write has no target tracking, declared: 73 %"
    assert _is(_drift(replace(AS_DECLARED, scaling=gone)), text, put, can_throttle=True)
    slower = TargetTracking(target_percent=61, scale_in_cooldown=62, scale_out_cooldown=63, disable_scale_in=True)
    differs = _scaling(tracking=slower, policies=("by-hand",), actions=opens)
    text = (
        "target table/orders write has target tracking at 61 % with cooldowns of 62 s in and 63 s out and no scale-in, "
        "declared: 73 %"
    )
    put = put.replace("--policy-name target-tracking", "--policy-name by-hand")
    assert _is(_drift(replace(AS_DECLARED, scaling=differs)), text, put, can_throttle=False)


def test_policies_and_actions_that_are_not_declared_are_deleted() -> None:
    scaling = _scaling(policies=("target-tracking", "steps"), actions=(_action("opens"), _action("by hand")))
    policy, action = _drift(replace(AS_DECLARED, scaling=scaling))
    text = "target table/orders write has the scaling policy 'steps', which is not declared"
    command = f"{AUTOSCALING} delete-scaling-policy {OF_WRITES} --policy-name steps"
    assert _is([policy], text, command, can_throttle=False)
    text = "target table/orders write has the scheduled action 'by hand', which is not declared"
    command = f"{AUTOSCALING} delete-scheduled-action {OF_WRITES} --scheduled-action-name 'by hand'"
    assert _is([action], text, command, can_throttle=False)


def test_scheduled_action_that_is_gone_is_deployed_again() -> None:
    text = "target table/orders write lacks the scheduled action 'opens'"
    fix = "change the window and deploy, as CloudFormation puts only what changed"
    assert _is(_drift(replace(AS_DECLARED, scaling=_scaling())), text, fix, can_throttle=True)


def test_table_on_demand_and_a_table_without_targets_have_no_drift() -> None:
    assert _drift(LiveTarget(units=0, mark=5_000)) == []
    assert _drift(LiveTarget(units=3, mark=5_000), replace(DECLARED, floors=None)) == []


def _plan(**more: Any) -> Plan:
    write = Capacity.autoscaled(min_capacity=34, max_capacity=340, target_utilization_percent=73, **more)
    window = Window.daily("noon", start="11:00", end="13:00", timezone="UTC", write_min=90, write_max=900)
    return Plan(read=Capacity.fixed(units=5), write=write, windows=(window,))


def _of_plan(plan: Plan, scaled: ScaledPlan | None = None, at: datetime = NOON) -> DeclaredTarget:
    (target,) = (each for each in plan.targets() if each.dimension is Dimension.WRITE)
    return DeclaredTarget.of_plan(WRITE, target, scaled, 0, at)


def test_plan_declares_the_bounds_of_the_windows_that_are_open() -> None:
    declared = _of_plan(_plan())
    assert (declared.floors, declared.ceilings, declared.tracking) == ((90, 90), (900, 900), AT_73)
    closed = _of_plan(_plan(), at=NOON.replace(hour=13))
    assert (closed.floors, closed.ceilings) == ((34, 34), (340, 340))


def test_scaler_may_raise_floors_up_to_what_boosts_reach_and_lower_ceilings_to_the_floor() -> None:
    plan = _plan(max_with_boosts=2_000)
    declared = _of_plan(plan, ScaledPlan(table="orders", mode=Mode.FLOOR, plan=plan))
    assert (declared.floors, declared.ceilings) == ((90, 2_000), (90, 2_000))
    direct = _of_plan(plan, ScaledPlan(table="orders", mode=Mode.DIRECT, plan=plan))
    assert direct.floors is None


def test_template_declares_any_bounds_that_one_of_its_actions_sets() -> None:
    setup = TargetSetup(units=1, min=34, max=340, tracking=AT_73, actions=(_action("up", 90), _action("down", 7, 70)))
    declared = DeclaredTarget.of_setup(WRITE, setup, 5)
    assert (declared.floors, declared.ceilings) == ((7, 90), (70, 340))
    assert (declared.actions, declared.mark) == (frozenset({"up", "down"}), 5)
    assert DeclaredTarget.of_setup(WRITE, TargetSetup.fixed(8), 0).floors is None


def test_targets_of_tables_and_indexes_that_are_gone_are_left() -> None:
    gone = TargetName("old orders", None, Dimension.WRITE)
    of_gone_index = TargetName("events", "by-day", Dimension.READ)
    targets = {
        WRITE: _scaling(),
        OF_INDEX: _scaling(),
        gone: _scaling(actions=(_action("opens"), _action("closes"))),
        of_gone_index: _scaling(policies=()),
    }
    first, second = left_targets(targets, TABLES, PRICES)
    assert first.text == (
        "target table/old orders write is registered, and the table is gone; it has 4 alarms and 2 scheduled actions, "
        "0.40 USD a month"
    )
    assert first.command == (
        f"{AUTOSCALING} deregister-scalable-target --region eu-west-1 --service-namespace dynamodb "
        "--resource-id 'table/old orders' --scalable-dimension dynamodb:table:WriteCapacityUnits"
    )
    assert second.text == "target table/events/index/by-day read is registered, and the index is gone"


def test_alarms_of_tables_that_are_gone_are_left_but_those_that_go_with_a_target() -> None:
    alarms = [
        SeenAlarm("Highwater orders write", "orders", None),
        SeenAlarm("Highwater old write", "old", None),
        SeenAlarm("TargetTracking-table/older-AlarmHigh-1", "older", None),
        SeenAlarm("TargetTracking-table/oldest-AlarmHigh-2", "oldest", None),
        SeenAlarm("Highwater orders/gone read", "orders", "gone"),
    ]
    targets = {TargetName("older", None, Dimension.READ)}
    found = [(each.text, each.command) for each in left_alarms(alarms, targets, TABLES, PRICES)]
    delete = "aws cloudwatch delete-alarms --region eu-west-1 --alarm-names"
    assert found == [
        (
            "alarm 'Highwater old write' watches a table that is gone, 0.10 USD a month",
            f"{delete} 'Highwater old write'",
        ),
        (
            "alarm 'TargetTracking-table/oldest-AlarmHigh-2' watches a table that is gone, 0.10 USD a month",
            f"{delete} TargetTracking-table/oldest-AlarmHigh-2",
        ),
        (
            "alarm 'Highwater orders/gone read' watches an index that is gone, 0.10 USD a month",
            f"{delete} 'Highwater orders/gone read'",
        ),
    ]


def test_plans_of_tables_that_are_gone_are_left_but_not_those_of_other_regions() -> None:
    plan = _plan()
    own, gone, there, elsewhere, tagged = (
        ScaledPlan(table=table, mode=Mode.FLOOR, plan=plan, region=region, scaler="Shop", is_tagged=is_tagged)
        for table, region, is_tagged in (
            ("orders", None, False),
            ("old", None, False),
            ("older", "eu-west-1", False),
            ("old", "us-east-1", False),
            ("oldest", None, True),
        )
    )
    found = [each.text for each in left_plans((own, gone, there, elsewhere, tagged), TABLES, "eu-west-1")]
    assert found == [
        "parameter /highwater/plans/Shop/old is the plan of table old, which is gone; the scaler looks for it in "
        "every run",
        "parameter /highwater/plans/Shop/eu-west-1/older is the plan of table older, which is gone; the scaler looks "
        "for it in every run",
    ]
    (one,) = left_plans((gone,), TABLES, "eu-west-1")
    assert one.command == "aws ssm delete-parameter --region eu-west-1 --name /highwater/plans/Shop/old"


def test_queues_of_tables_that_are_gone_or_that_nothing_reads_are_left() -> None:
    place = "https://sqs.eu-west-1.amazonaws.com/111122223333"
    queues = (
        SeenQueue(f"{place}/read", "orders", 9, True),
        SeenQueue(f"{place}/unread", "orders", 0, False),
        SeenQueue(f"{place}/gone", "old", 1_234, True),
    )
    first, second = left_queues(queues, TABLES, "eu-west-1")
    assert first.text == "queue unread is read by no function any more"
    assert first.command == f"aws sqs delete-queue --region eu-west-1 --queue-url {place}/unread"
    assert second.text == (
        "queue gone buffers for table old, which is gone; 1,234 messages are in it, which the command deletes too"
    )


def test_deviation_is_a_document_for_machines() -> None:
    (found,) = _drift(replace(AS_DECLARED, units=1))
    assert found.document() == {
        "kind": "drift",
        "subject": "target table/orders write",
        "problem": "has a capacity of 1, below its floor of 34",
        "command": REGISTER,
        "usd_month": 0.0,
        "can_throttle": True,
    }
