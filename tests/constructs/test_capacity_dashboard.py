"""The dashboard and the alarms on a table's capacity."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_sns as sns

from cdk_highwater import (
    Capacity,
    CapacityAlarms,
    CapacityDashboard,
    GlobalSecondaryIndex,
    HighWaterTable,
    ThrottleAwareScaler,
    Window,
)
from tests.constructs.template_view import TemplateView, key, new_stack, scalable_table, watched_metric

NIGHT = Window.weekly(
    "night", days="MON-FRI", start="23:00", end="02:00", timezone="Europe/Berlin", read_min=700, write_min=900
)


def _table(stack: cdk.Stack, **more: Any) -> HighWaterTable:
    return scalable_table(stack, read=Capacity.autoscaled(min_capacity=3, max_capacity=3_001), **more)


def widgets_of(stack: cdk.Stack) -> list[dict[str, Any]]:
    """The dashboard's widgets, with a name in the place of each reference."""
    body = TemplateView(stack).properties_of("AWS::CloudWatch::Dashboard")["DashboardBody"]
    parts = (part if isinstance(part, str) else f"<{next(iter(part.values()))}>" for part in body["Fn::Join"][1])
    widgets: list[dict[str, Any]] = json.loads("".join(parts))["widgets"]
    return widgets


def test_every_target_has_its_units_and_its_throttles() -> None:
    stack = new_stack()
    index = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"))
    CapacityDashboard(stack, "Dashboard", tables=[_table(stack, indexes=[index])])
    text, *graphs = widgets_of(stack)
    assert text["properties"]["markdown"].startswith("# <Jobs")
    titles = [graph["properties"]["title"] for graph in graphs]
    assert titles == [
        f"{target}: {what}"
        for target in ("table read", "table write", "index 'by-day' read", "index 'by-day' write")
        for what in ("units per second", "throttle events")
    ]
    units, throttles = (graph["properties"] for graph in graphs[6:8])
    expression, consumed, provisioned = units["metrics"]
    assert expression[0]["expression"] == "consumed / PERIOD(consumed)"
    assert consumed[:2] == ["AWS/DynamoDB", "ConsumedWriteCapacityUnits"]
    assert consumed[2:6] == ["GlobalSecondaryIndexName", "by-day", "TableName", consumed[5]]
    assert (consumed[6]["stat"], consumed[6]["period"], consumed[6]["visible"]) == ("Sum", 60, False)
    assert provisioned[1] == "ProvisionedWriteCapacityUnits"
    assert [(each["label"], each["value"]) for each in units["annotations"]["horizontal"]] == [
        ("floor", 41),
        ("ceiling", 4_000),
    ]
    assert [metric[1] for metric in throttles["metrics"]] == [
        "WriteProvisionedThroughputThrottleEvents",
        "WriteKeyRangeThroughputThrottleEvents",
        "WriteAccountLimitThrottleEvents",
    ]


def test_windows_stand_under_the_name() -> None:
    stack = new_stack()
    CapacityDashboard(stack, "Dashboard", tables=[_table(stack, windows=[NIGHT])])
    assert widgets_of(stack)[0]["properties"]["markdown"].split("\n")[1:] == [
        "- **night** MON-FRI 23:00 to 02:00 Europe/Berlin: read floor 700, write floor 900"
    ]


def test_monthly_windows_have_their_day_beside_the_name() -> None:
    payday = Window.monthly("payday", day="last", start="06:00", end="20:00", timezone="Europe/Berlin", write_min=900)
    stack = new_stack()
    CapacityDashboard(stack, "Dashboard", tables=[_table(stack, windows=[payday])])
    assert widgets_of(stack)[0]["properties"]["markdown"].split("\n")[1:] == [
        "- **payday** last day of the month 06:00 to 20:00 Europe/Berlin: write floor 900"
    ]


def test_scaler_shows_what_it_did_and_decided() -> None:
    stack = new_stack()
    table = _table(stack)
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(table)
    CapacityDashboard(stack, "Dashboard", tables=[table], scaler=scaler, name="jobs")
    told, decisions = (widget["properties"] for widget in widgets_of(stack)[-2:])
    # as the function's own alarms name them
    alarmed = {
        alarm["Properties"]["MetricName"]
        for alarm in TemplateView(stack).of_type("AWS::CloudWatch::Alarm")
        if alarm["Properties"].get("Namespace") == "Highwater"
    }
    assert {metric[1] for metric in told["metrics"]} - alarmed == {"FloorsSet", "CapacitiesSet"}
    assert decisions["query"].startswith("SOURCE '<ScalerFunctionLogs")
    assert 'filter message = "decision"' in decisions["query"]


def test_alarms_of_a_target_go_to_the_topic() -> None:
    stack = new_stack()
    sale = Window.daily("sale", start="08:00", end="09:00", timezone="UTC", write_min=4_100, write_max=5_000)
    table = _table(stack, windows=[sale])
    made = CapacityAlarms(stack, "Alarms", table=table, topic=sns.Topic(stack, "Topic"))
    assert len(made.alarms) == 6
    alarms = {
        (watched_metric(alarm["Properties"]), alarm["Properties"]["Threshold"]): alarm["Properties"]
        for alarm in TemplateView(stack).of_type("AWS::CloudWatch::Alarm")
    }
    assert set(alarms) == {
        ("ReadProvisionedThroughputThrottleEvents", 0),
        ("ReadKeyRangeThroughputThrottleEvents", 0),
        ("ConsumedReadCapacityUnits", 3_001 * 54),
        ("WriteProvisionedThroughputThrottleEvents", 0),
        ("WriteKeyRangeThroughputThrottleEvents", 0),
        # of the highest ceiling, a window's
        ("ConsumedWriteCapacityUnits", 5_000 * 54),
    }
    assert all(alarm["AlarmActions"] for alarm in alarms.values())
    near = alarms["ConsumedWriteCapacityUnits", 5_000 * 54]
    assert (near["DatapointsToAlarm"], near["EvaluationPeriods"], near["Period"]) == (10, 15, 60)
    assert near["AlarmDescription"] == "Highwater: table write: consumption is above 90 % of the ceiling, 5,000"
    hot = alarms["ReadKeyRangeThroughputThrottleEvents", 0]
    assert (hot["DatapointsToAlarm"], hot["EvaluationPeriods"], hot["TreatMissingData"]) == (3, 5, "notBreaching")
    assert hot["Metrics"][0]["Expression"] == "FILL(throttled, 0)", "15: such an alarm might never leave ALARM"
    statistic = hot["Metrics"][1]["MetricStat"]
    assert (statistic["Period"], statistic["Stat"]) == (60, "Sum")


def test_fixed_capacity_has_no_ceiling_to_come_near_to() -> None:
    stack = new_stack()
    CapacityAlarms(stack, "Alarms", table=scalable_table(stack, read=Capacity.fixed(5)))
    watched = [watched_metric(each["Properties"]) for each in TemplateView(stack).of_type("AWS::CloudWatch::Alarm")]
    assert [metric for metric in watched if metric.startswith("Consumed")] == ["ConsumedWriteCapacityUnits"]
