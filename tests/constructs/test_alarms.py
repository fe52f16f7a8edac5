"""What an operator relies on: each alarm says what to do, goes off in time, tells somebody, and is on the page."""

from __future__ import annotations

import re
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

from benchmarks import scaler_cost
from cdk_highwater import (
    BoostCoordinator,
    Capacity,
    CapacityAlarms,
    CapacityDashboard,
    GlobalSecondaryIndex,
    OnDemandTable,
    ThrottleAwareScaler,
)
from tests.cdk_cli import ROOT
from tests.constructs.template_view import TemplateView, key, new_stack, scalable_table
from tests.constructs.test_capacity_dashboard import widgets_of

# minutes at the threshold until an alarm goes off: of a scaler, of its coordinator, and where a fleet pulses
OF_SCALER = {
    "Errors": 15,
    "Throttles": 10,
    "Heartbeat": 10,
    "DeadLetters": 1,
    "TablesFailed": 15,
    "UnreadablePlans": 15,
    "MetricsMissing": 15,
    "AtCeiling": 5,
    "HotKeys": 5,
    "DecreaseBudgetExhausted": 60,
    "UnmanagedIndexes": 60,
    "Paused": 1_440,
}
OF_BOOSTS = {"LeasesMissing": 15, "BoostsRefused": 5}
OF_PULSES = {"PulsesDisagree": 15}
# and of the function of a coordinator without a scaler
OF_FLOORS = {name: OF_SCALER[name] for name in ("Errors", "Throttles", "Heartbeat", "DeadLetters")} | {
    name: OF_SCALER[name] for name in ("TablesFailed", "UnreadablePlans")
}
OF_TABLE = {"Throttled": 5, "HotKey": 3, "NearCeiling": 10}
OF_ON_DEMAND = {"HotKey": 3, "AtMaximum": 5, "NearMaximum": 10}


def _alarms(stack: cdk.Stack) -> dict[str, dict[str, Any]]:
    """The alarms that are for people, by the id of their construct."""
    resources = TemplateView(stack).named("AWS::CloudWatch::Alarm")
    found = {}
    for each in stack.node.find_all():
        if isinstance(each, cdk.aws_cloudwatch.CfnAlarm) and str(each.alarm_description).startswith("Highwater: "):
            scope = each.node.scope
            assert scope is not None
            found[scope.node.id] = resources[stack.resolve(each.logical_id)]["Properties"]
    return found


def _minutes(alarm: dict[str, Any]) -> int:
    periods = [each["MetricStat"]["Period"] for each in alarm.get("Metrics", ()) if "MetricStat" in each]
    period = alarm.get("Period") or periods[0]
    return int(period * (alarm.get("DatapointsToAlarm") or alarm["EvaluationPeriods"])) // 60


def _stack_with_everything() -> tuple[cdk.Stack, sns.Topic]:
    stack = new_stack()
    topic = sns.Topic(stack, "OnCall")
    table = scalable_table(stack)
    scaler = ThrottleAwareScaler(stack, "Scaler", topic=topic)
    scaler.add_table(table)
    BoostCoordinator(stack, "Boosts", scaler=scaler).grant_pulse(iam.User(stack, "Service"), tables=[table])
    return stack, topic


def test_alarms_go_off_after_the_minutes_that_an_operator_expects() -> None:
    stack, _ = _stack_with_everything()
    assert {id: _minutes(alarm) for id, alarm in _alarms(stack).items()} == OF_SCALER | OF_BOOSTS | OF_PULSES


def test_coordinator_without_a_scaler_has_the_alarms_of_what_it_does() -> None:
    stack = new_stack()
    BoostCoordinator(stack, "Boosts").add_table(scalable_table(stack))
    assert {id: _minutes(alarm) for id, alarm in _alarms(stack).items()} == OF_FLOORS | OF_BOOSTS


def test_every_alarm_tells_the_topic_and_only_a_heartbeat_counts_silence() -> None:
    stack, topic = _stack_with_everything()
    alarms = _alarms(stack)
    assert {str(alarm["AlarmActions"]) for alarm in alarms.values()} == {str([stack.resolve(topic.topic_arn)])}
    silence = {id: alarm["TreatMissingData"] for id, alarm in alarms.items()}
    assert silence == dict.fromkeys(alarms, "notBreaching") | {"Heartbeat": "breaching"}


def test_one_event_is_enough_but_for_a_heartbeat() -> None:
    stack, _ = _stack_with_everything()
    thresholds = {id: (alarm["ComparisonOperator"], alarm["Threshold"]) for id, alarm in _alarms(stack).items()}
    expected = dict.fromkeys(thresholds, ("GreaterThanOrEqualToThreshold", 1))
    assert thresholds == expected | {"Heartbeat": ("LessThanThreshold", 1)}


def _pages_alarms() -> set[str]:
    """The alarms that the page of operations has a row for."""
    tables = re.findall(r"^\| alarm \|.*?\n\n", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE | re.DOTALL)
    return {name for table in tables for name in re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)}


def test_page_says_what_to_do_about_every_alarm_and_about_no_other() -> None:
    alarms = {*OF_SCALER, *OF_BOOSTS, *OF_PULSES, *OF_TABLE, *OF_ON_DEMAND}
    assert alarms - _pages_alarms() == set()
    assert _pages_alarms() - alarms == set()


def test_price_of_a_scaler_and_a_coordinator_counts_their_alarms() -> None:
    priced = (
        scaler_cost.OWN_ALARMS,
        scaler_cost.COORDINATOR_ALARMS,
        scaler_cost.SHARED_ALARMS,
        scaler_cost.CAPACITY_ALARMS,
    )
    assert priced == (len(OF_SCALER), len(OF_FLOORS | OF_BOOSTS), len(OF_BOOSTS), len(OF_TABLE))


def test_alarms_of_a_table_are_three_for_each_target_that_may_grow() -> None:
    stack = new_stack()
    index = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), read=Capacity.fixed(7))
    CapacityAlarms(stack, "Alarms", table=scalable_table(stack, indexes=[index]))
    expected = {
        f"{place}{name}": minutes
        for place in ("Read", "Write", "by-day-Read", "by-day-Write")
        for name, minutes in OF_TABLE.items()
        # fixed capacity has no ceiling to come near to
        if (place, name) != ("by-day-Read", "NearCeiling")
    }
    assert {id: _minutes(alarm) for id, alarm in _alarms(stack).items()} == expected


def test_alarms_on_demand_watch_the_maximum_where_there_is_one() -> None:
    stack = new_stack()
    table = OnDemandTable(stack, "Events", partition_key=key(), capacity=Capacity.on_demand(max_write=170))
    CapacityAlarms(stack, "Alarms", table=table)
    alarms = _alarms(stack)
    expected = {"ReadHotKey": 3} | {f"Write{name}": minutes for name, minutes in OF_ON_DEMAND.items()}
    assert {id: _minutes(alarm) for id, alarm in alarms.items()} == expected
    near = alarms["WriteNearMaximum"]
    assert (near["Threshold"], near["ComparisonOperator"]) == (170 * 60 * 90 // 100, "GreaterThanThreshold")
    assert near["AlarmDescription"] == "Highwater: table write: consumption is above 90 % of the maximum, 170"


def test_alarms_without_a_topic_have_no_action() -> None:
    stack = new_stack()
    made = CapacityAlarms(stack, "Alarms", table=scalable_table(stack))
    assert [alarm.get("AlarmActions") for alarm in _alarms(stack).values()] == [None] * 6
    assert len(made.alarms) == 6


def test_dashboard_has_a_place_for_each_widget() -> None:
    stack = new_stack()
    table = scalable_table(stack)
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(table)
    boosts = BoostCoordinator(stack, "Boosts", scaler=scaler)
    CapacityDashboard(stack, "Dashboard", tables=[table], scaler=scaler, coordinator=boosts)
    widgets = widgets_of(stack)
    cells = [
        (column, row)
        for each in widgets
        for column in range(each["x"], each["x"] + each["width"])
        for row in range(each["y"], each["y"] + each["height"])
    ]
    assert len(cells) == len(set(cells)), "no widget covers another"
    assert max(column for column, _ in cells) < 24, "CloudWatch has 24 columns"
    assert [each["type"] for each in widgets] == ["text", *["metric"] * 5, "log", "log"]
    assert widgets[-1]["properties"]["title"] == "the last boosts"


def test_dashboard_draws_no_bounds_that_only_the_deployment_knows() -> None:
    stack = new_stack()
    floor = cdk.CfnParameter(stack, "Floor", type="Number").value_as_number
    table = scalable_table(
        stack, read=Capacity.autoscaled(min_capacity=floor, max_capacity=800), write=Capacity.fixed(9)
    )
    CapacityDashboard(stack, "Dashboard", tables=[table])
    _, of_read, _, of_write, _ = (widget["properties"] for widget in widgets_of(stack))
    assert "annotations" not in of_read
    assert [(each["label"], each["value"]) for each in of_write["annotations"]["horizontal"]] == [("floor", 9)]
