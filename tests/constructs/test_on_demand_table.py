"""A table on demand: its maxima, its alarms, and what it refuses."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest

from cdk_highwater import Capacity, CapacityAlarms, HighWaterTable, OnDemandTable
from highwater.core import Dimension
from tests.constructs.template_view import TemplateView, key, new_stack, refused, watched_metric

KEY, DAY = key("click_id"), key("day")


def _table(stack: cdk.Stack) -> dict[str, Any]:
    return TemplateView(stack).properties_of("AWS::DynamoDB::Table")


def _alarms(stack: cdk.Stack) -> dict[str, tuple[str, float, int, int]]:
    alarms = [resource["Properties"] for resource in TemplateView(stack).of_type("AWS::CloudWatch::Alarm")]
    return {
        alarm["AlarmDescription"].removeprefix("Highwater: "): (
            watched_metric(alarm),
            alarm["Threshold"],
            alarm["DatapointsToAlarm"],
            alarm["EvaluationPeriods"],
        )
        for alarm in alarms
    }


@pytest.fixture
def stack() -> cdk.Stack:
    return new_stack()


def test_table_and_indexes_have_the_maxima_and_the_defaults_of_a_planned_table(stack: cdk.Stack) -> None:
    table = OnDemandTable(
        stack, "Clicks", partition_key=KEY, capacity=Capacity.on_demand(max_read=4_000, max_write=2_000)
    )
    table.add_global_secondary_index(index_name="by-day", partition_key=DAY)
    table.add_global_secondary_index(index_name="by-key", partition_key=DAY, max_write_request_units=700)
    made = _table(stack)
    assert made["BillingMode"] == "PAY_PER_REQUEST"
    assert "ProvisionedThroughput" not in made
    assert made["OnDemandThroughput"] == {"MaxReadRequestUnits": 4_000, "MaxWriteRequestUnits": 2_000}
    assert made["DeletionProtectionEnabled"]
    assert made["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert [index["OnDemandThroughput"] for index in made["GlobalSecondaryIndexes"]] == [
        {"MaxReadRequestUnits": 4_000, "MaxWriteRequestUnits": 2_000},
        {"MaxReadRequestUnits": 4_000, "MaxWriteRequestUnits": 700},
    ]


def test_table_without_maxima_has_none(stack: cdk.Stack) -> None:
    table = OnDemandTable(stack, "Clicks", partition_key=KEY, deletion_protection=False, sort_key=DAY)
    assert (table.maximum.of(Dimension.READ), table.maximum.of(Dimension.WRITE)) == (None, None)
    made = _table(stack)
    assert "OnDemandThroughput" not in made
    assert not made["DeletionProtectionEnabled"]
    assert [each["AttributeName"] for each in made["KeySchema"]] == ["click_id", "day"]


def test_alarms_watch_keys_and_what_comes_near_a_maximum(stack: cdk.Stack) -> None:
    table = OnDemandTable(stack, "Clicks", partition_key=KEY, capacity=Capacity.on_demand(max_write=2_000))
    table.add_global_secondary_index(index_name="by-day", partition_key=DAY)
    alarms = CapacityAlarms(stack, "Alarms", table=table)
    assert len(alarms.alarms) == 8
    hot = "a single partition throttles requests; more capacity does not help, spread the key or cache it"
    found = _alarms(stack)
    for place in ("table", "index 'by-day'"):
        assert found[f"{place} read: {hot}"] == ("ReadKeyRangeThroughputThrottleEvents", 0, 3, 5)
        assert found[f"{place} write: {hot}"] == ("WriteKeyRangeThroughputThrottleEvents", 0, 3, 5)
        throttled = f"{place} write: requests are throttled because of the maximum of 2,000 units/s"
        assert found[throttled] == ("WriteMaxOnDemandThroughputThrottleEvents", 0, 5, 15)
        near = f"{place} write: consumption is above 90 % of the maximum, 2,000"
        assert found[near] == ("ConsumedWriteCapacityUnits", 108_000, 10, 15)


def test_mode_changes_without_another_logical_id(stack: cdk.Stack) -> None:
    other = new_stack("Other")
    OnDemandTable(stack, "Clicks", partition_key=KEY)
    HighWaterTable(other, "Clicks", partition_key=KEY, read=Capacity.fixed(5), write=Capacity.fixed(7))
    ids = [list(TemplateView(each).named("AWS::DynamoDB::Table")) for each in (stack, other)]
    assert ids[0] == ids[1]


def test_provisioned_capacity_is_refused(stack: cdk.Stack) -> None:
    told = r"^capacity must be the result of Capacity.on_demand, got Capacity\(.*; for provisioned capacity use "
    with pytest.raises(TypeError, match=f"{told}HighWaterTable$"):
        OnDemandTable(stack, "Clicks", partition_key=KEY, capacity=Capacity.fixed(5))  # type: ignore[arg-type]
    told = "OnDemandTable has no argument read_capacity; give capacity=Capacity.on_demand(max_read=, max_write=)"
    with refused(TypeError, told):
        OnDemandTable(stack, "Clicks", partition_key=KEY, read_capacity=5)
