"""`HighWaterTable`: what comes out in the template."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterMark, HighWaterTable, Window
from tests.constructs.template_view import EVERY_TABLE_SAYS, TemplateView, key, new_stack, scalable_table

READ = Capacity.autoscaled(min_capacity=11, max_capacity=1_100)
WRITE = Capacity.autoscaled(min_capacity=22, max_capacity=22_000)
BULK = Window.weekly(
    "bulk-load", days="MON-FRI", start="05:00", end="06:30", timezone="America/New_York", write_min=18_000
)


def _table(stack: cdk.Stack, **changes: Any) -> HighWaterTable:
    return scalable_table(stack, "Orders", **{"read": READ, "write": WRITE, **changes})


def _view(**changes: Any) -> TemplateView:
    stack = new_stack()
    _table(stack, **changes)
    return TemplateView(stack)


@lru_cache
def _plain() -> TemplateView:
    return _view()


@lru_cache
def _with_bulk_load() -> TemplateView:
    return _view(windows=[BULK])


@lru_cache
def _with_index() -> TemplateView:
    return _view(windows=[BULK], indexes=[GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"))])


def test_table_by_default_is_protected_recoverable_and_kept() -> None:
    (table,) = _plain().of_type("AWS::DynamoDB::Table")
    assert table["Properties"]["DeletionProtectionEnabled"] is True
    assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["DeletionPolicy"] == "Retain"


def test_targets_have_the_declared_bounds_and_policies_the_declared_utilization() -> None:
    view = _view(
        read=Capacity.autoscaled(min_capacity=11, max_capacity=1_100, target_utilization_percent=55),
        write=Capacity.autoscaled(
            min_capacity=22,
            max_capacity=22_000,
            target_utilization_percent=66,
            scale_in_cooldown=timedelta(seconds=77),
            scale_out_cooldown=timedelta(seconds=88),
            disable_scale_in=True,
        ),
    )
    assert {name: target.bounds for name, target in view.targets.items()} == {
        "table read": (11, 1_100),
        "table write": (22, 22_000),
    }
    assert view.policies == [
        {
            "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBReadCapacityUtilization"},
            "TargetValue": 55,
        },
        {
            "DisableScaleIn": True,
            "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"},
            "ScaleInCooldown": 77,
            "ScaleOutCooldown": 88,
            "TargetValue": 66,
        },
    ]


def test_template_capacity_stays_one_unit_whatever_the_floors_are() -> None:
    """A change of it would make CloudFormation reset the live capacity."""
    properties = _with_index().properties_of("AWS::DynamoDB::Table")
    one = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    assert properties["ProvisionedThroughput"] == one
    assert properties["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == one


def test_window_becomes_scheduled_actions_of_its_dimension_only() -> None:
    targets = _with_bulk_load().targets
    assert targets["table write"].actions == {
        "cron(55 4 ? * MON-FRI *) America/New_York": (18_000, 22_000),
        "cron(30 6 ? * MON-FRI *) America/New_York": (22, 22_000),
    }
    assert targets["table read"].actions == {}


def test_deploy_inside_a_window_that_raises_the_ceiling_does_not_register_a_lower_one() -> None:
    """Application Auto Scaling would lower the capacity at once, by one of the day's few decreases."""
    sale = Window.once("sale", start="2027-05-03T00:00", end="2027-05-04T00:00", timezone="UTC", write_max=31_000)
    view = _view(windows=[BULK, sale])
    assert view.targets["table write"].bounds == (22, 31_000)
    assert set(view.targets["table write"].actions.values()) == {
        (18_000, 22_000),
        (22, 22_000),
        (22, 31_000),
        (18_000, 31_000),
    }
    assert view.plan["write"]["max"] == 22_000, "the floors' resource sets the ceiling that applies at the deploy"


def test_fixed_capacity_with_windows_is_registered_with_room_for_them() -> None:
    targets = _view(read=Capacity.fixed(units=13), write=Capacity.fixed(units=14), windows=[BULK]).targets
    assert (targets["table read"].bounds, targets["table write"].bounds) == ((13, 13), (14, 18_000))


def test_index_by_default_follows_capacity_and_windows() -> None:
    targets = _with_index().targets
    assert targets["by-day write"].bounds == targets["table write"].bounds
    assert targets["by-day write"].actions == targets["table write"].actions
    assert targets["by-day read"].bounds == targets["table read"].bounds
    assert targets["by-day write"].properties["ScalableDimension"] == "dynamodb:index:WriteCapacityUnits"


def test_index_differs_where_it_says_so() -> None:
    own = Window.daily("reports", start="07:00", end="08:00", timezone="UTC", read_min=333)
    differs = GlobalSecondaryIndex(
        index_name="by-day",
        partition_key=key("day"),
        sort_key=key("hour"),
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=["total"],
        read=Capacity.autoscaled(min_capacity=33, max_capacity=3_300),
        windows=[BULK, own],
    )
    view = _view(windows=[BULK], indexes=[differs])
    assert view.targets["by-day read"].bounds == (33, 3_300)
    assert view.targets["by-day read"].actions == {
        "cron(55 6 * * ? *) UTC": (333, 3_300),
        "cron(0 8 * * ? *) UTC": (33, 3_300),
    }
    index = view.properties_of("AWS::DynamoDB::Table")["GlobalSecondaryIndexes"][0]
    assert index["KeySchema"] == [
        {"AttributeName": "day", "KeyType": "HASH"},
        {"AttributeName": "hour", "KeyType": "RANGE"},
    ]
    assert index["Projection"] == {"NonKeyAttributes": ["total"], "ProjectionType": "INCLUDE"}


def test_keys_of_an_index_may_have_several_attributes() -> None:
    several = GlobalSecondaryIndex(
        index_name="by-shard", partition_keys=[key("tenant"), key("shard")], sort_keys=[key("day"), key("hour")]
    )
    index = _view(indexes=[several]).properties_of("AWS::DynamoDB::Table")["GlobalSecondaryIndexes"][0]
    assert [(each["AttributeName"], each["KeyType"]) for each in index["KeySchema"]] == [
        ("tenant", "HASH"),
        ("shard", "HASH"),
        ("day", "RANGE"),
        ("hour", "RANGE"),
    ]


def test_fixed_capacity_has_a_target_without_a_policy() -> None:
    view = _view(read=Capacity.fixed(units=44))
    assert view.targets["table read"].bounds == (44, 44)
    assert len(view.policies) == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({}, (11, 18_000), id="by-default-the-highest-floor"),
        pytest.param({"high_water_mark": HighWaterMark.to_ceiling()}, (1_100, 22_000), id="to-the-ceiling"),
        pytest.param({"high_water_mark": HighWaterMark.units(read=99, write=999)}, (99, 999), id="in-units"),
    ],
)
def test_mark_is_as_declared(arguments: dict[str, Any], expected: tuple[int, int]) -> None:
    assert _view(windows=[BULK], **arguments).marks == {None: expected}


def test_table_without_windows_is_looked_after_during_deploys_and_has_no_mark_to_raise() -> None:
    """Of targets that are registered at once, auto scaling may leave one below its floor."""
    assert _plain().plan["windows"] == []
    assert _plain().of_type("Custom::HighwaterMarks") == []


def test_mark_none_raises_nothing() -> None:
    view = _view(windows=[BULK], high_water_mark=HighWaterMark.none())
    assert view.of_type("Custom::HighwaterMarks") == []
    assert [text for text in view.messages("info") if not text.endswith(EVERY_TABLE_SAYS)] == []


def test_drift_resources_and_charges_are_told_with_their_arithmetic() -> None:
    assert _with_bulk_load().messages("info") == [
        "Shop: the stack: there always is drift, as capacity and floors change without a deploy; a revert (cdk deploy "
        "--revert-drift) closes open windows, and may set capacity to the units in the template: Shop/Orders 1 RCU and "
        "1 WCU; do not revert it; docs/drift.md tells what to ignore and how to recover [highwater:drift]",
        "Shop: the stack: managed tables and scalers add 16 resources, and target tracking makes 8 alarms of its own; "
        "each alarm costs 0.10 USD a month; where AWS Config records continuously, each change of capacity is an item "
        "of the table, and two of each alarm of target tracking: highwater rehearse counts them, and docs/cost.md "
        "tells what to leave out [highwater:added]",
        "Shop/Orders/Capacity: declared capacity: at least $773.14 a month at us-east-1 prices, $761.66 of them for "
        "windows, for floors of 11 RCU and 22 WCU; what traffic, boosts and a scaler need above that comes to it; "
        "lower min_capacity or the windows to pay less [highwater:leastCharge]",
        "Shop/Orders/Capacity: high-water mark: table 11 RCU and 18,000 WCU; charged once when it is raised, at "
        "us-east-1 prices at most about 17,978 WCU x $0.00065 = $11.69; a mark that the table already has is not "
        "charged again; HighWaterMark.none() does not raise marks [highwater:warmUpCharge]",
    ]


def test_tables_of_a_stack_share_one_function() -> None:
    stack = new_stack()
    for name in ("First", "Second", "Third"):
        scalable_table(stack, name, windows=[BULK], write=WRITE)
    view = TemplateView(stack)
    assert len(view.of_type("AWS::Lambda::Function")) == 1
    assert len(view.of_type("Custom::HighwaterFloors")) == 3


def test_every_property_of_table_is_passed_on() -> None:
    stack = new_stack()
    readers = iam.PolicyStatement(
        actions=["dynamodb:GetItem"], principals=[iam.AccountRootPrincipal()], resources=["*"]
    )
    _table(
        stack,
        sort_key=key("sk"),
        table_name="orders-7",
        deletion_protection=False,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True, recovery_period_in_days=9
        ),
        removal_policy=cdk.RemovalPolicy.DESTROY,
        encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED,
        encryption_key=kms.Key(stack, "Key"),
        stream=dynamodb.StreamViewType.KEYS_ONLY,
        kinesis_stream=kinesis.Stream(stack, "Stream"),
        kinesis_precision_timestamp=dynamodb.ApproximateCreationDateTimePrecision.MILLISECOND,
        time_to_live_attribute="expires",
        table_class=dynamodb.TableClass.STANDARD_INFREQUENT_ACCESS,
        contributor_insights_specification=dynamodb.ContributorInsightsSpecification(
            enabled=True, mode=dynamodb.ContributorInsightsMode.THROTTLED_KEYS
        ),
        resource_policy=iam.PolicyDocument(statements=[readers]),
        initial_read_units=5,
        initial_write_units=6,
    )
    table = TemplateView(stack).of_type("AWS::DynamoDB::Table")[0]
    properties = table["Properties"]
    assert table["DeletionPolicy"] == "Delete"
    assert properties["TableName"] == "orders-7"
    assert properties["DeletionProtectionEnabled"] is False
    assert properties["PointInTimeRecoverySpecification"] == {
        "PointInTimeRecoveryEnabled": True,
        "RecoveryPeriodInDays": 9,
    }
    assert properties["SSESpecification"]["SSEType"] == "KMS"
    assert properties["StreamSpecification"] == {"StreamViewType": "KEYS_ONLY"}
    assert properties["KinesisStreamSpecification"]["ApproximateCreationDateTimePrecision"] == "MILLISECOND"
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert properties["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert properties["ContributorInsightsSpecification"] == {"Enabled": True, "Mode": "THROTTLED_KEYS"}
    assert properties["ResourcePolicy"]["PolicyDocument"]["Statement"][0]["Action"] == "dynamodb:GetItem"
    assert properties["ProvisionedThroughput"] == {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}
    assert properties["KeySchema"][1] == {"AttributeName": "sk", "KeyType": "RANGE"}


def test_it_is_a_table_so_grants_and_metrics_work() -> None:
    stack = new_stack()
    table = _table(stack)
    table.grant_read_data(iam.User(stack, "Reader"))
    assert isinstance(table, dynamodb.Table)
    assert table.metric_consumed_read_capacity_units().metric_name == "ConsumedReadCapacityUnits"
    assert any("dynamodb:Query" in statement["Action"] for statement in TemplateView(stack).statements())


def test_parameter_numbers_are_accepted_where_no_window_compares_them() -> None:
    stack = new_stack()
    floor = cdk.CfnParameter(stack, "Floor", type="Number", default=7)
    _table(stack, read=Capacity.autoscaled(min_capacity=floor.value_as_number, max_capacity=700), windows=[BULK])
    view = TemplateView(stack)
    assert view.targets["table read"].properties["MinCapacity"] == {"Ref": "Floor"}
    plan = view.properties_of("Custom::HighwaterFloors")["Plan"]
    assert {"Ref": "Floor"} in plan["Fn::Join"][1], "the number travels into the plan's JSON"


def test_once_window_travels_with_start_and_end_of_the_recurring_ones() -> None:
    sale = Window.once("sale", start="2027-03-05T00:00", end="2027-03-06T00:00", timezone="UTC", write_min=20_000)
    actions = _view(windows=[BULK, sale]).targets["table write"].properties["ScheduledActions"]
    opening = [action for action in actions if action["Schedule"] == "at(2027-03-04T23:55:00)"]
    assert opening[0]["ScalableTargetAction"] == {"MinCapacity": 20_000, "MaxCapacity": 22_000}
    before = [action for action in actions if "EndTime" in action]
    after = [action for action in actions if "StartTime" in action]
    assert {action["EndTime"] for action in before} == {"2027-03-04T23:54:30Z"}
    assert {action["StartTime"] for action in after} == {"2027-03-08T09:55:00Z", "2027-03-08T11:30:00Z"}


def test_same_plan_written_otherwise_gives_the_same_template() -> None:
    def synthesized(windows: list[Window]) -> dict[str, Any]:
        return {name: target.properties for name, target in _view(windows=windows).targets.items()}

    rush = Window.daily("rush", start="09:00", end="10:00", timezone="America/New_York", write_min=500)
    renamed = Window.weekly(
        "other-name", days="MON-SUN", start="09:00", end="10:00", timezone="America/New_York", write_min=500
    )
    assert synthesized([BULK, rush]) == synthesized([renamed, BULK])


def test_index_listed_twice_is_a_finding_and_no_traceback() -> None:
    index = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"))
    assert _view(indexes=[index, index]).messages("error") == [
        "Shop/Orders: index 'by-day': the index is listed twice; merge the two entries [highwater:duplicateIndex]"
    ]


def test_window_that_is_over_is_warned_of_and_buys_no_mark() -> None:
    over = Window.once("sale", start="2026-11-27T00:00", end="2026-11-28T00:00", timezone="UTC", write_min=9_000)
    view = _view(windows=[over])
    assert view.messages("warning") == [
        "Shop/Orders: window 'sale' end: got '2026-11-28T00:00', allowed: later than 2027-02-03 04:05 UTC; remove the "
        "window: it has ended and has no effect any more [highwater:pastWindow]"
    ]
    assert view.targets["table write"].actions == {}
    assert view.of_type("Custom::HighwaterMarks") == []


def test_new_value_of_the_context_changes_what_sets_the_floors_and_nothing_else() -> None:
    """CloudFormation calls a custom resource when a property of it has changed."""
    before, after = new_stack(), new_stack()
    after.node.set_context("highwater:setFloors", "2026-11-28")
    for stack in (before, after):
        _table(stack)
    resources = [TemplateView(stack).template["Resources"] for stack in (before, after)]
    changed = {name for name, each in resources[1].items() if each != resources[0][name]}
    assert {resources[1][name]["Type"] for name in changed} == {"Custom::HighwaterAftermath", "Custom::HighwaterFloors"}
    assert {resources[1][name]["Properties"]["SetFloors"] for name in changed} == {"2026-11-28"}


def test_drift_is_told_once_for_a_stack_with_the_lowest_units_of_each_table() -> None:
    stack = new_stack()
    by_day = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), initial_read_units=3)
    _table(stack, initial_read_units=40, initial_write_units=50, indexes=[by_day])
    scalable_table(stack, "Jobs", table_name="jobs")
    (told,) = [text for text in TemplateView(stack).messages("info") if text.endswith("[highwater:drift]")]
    assert "units in the template: Shop/Orders 3 RCU and 50 WCU, jobs 1 RCU and 1 WCU; do not" in told


BY_DAY = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), initial_write_units=500)


def test_index_can_be_added_with_nothing_else_in_the_deploy_and_is_managed_by_the_next() -> None:
    """AWS's advice: if such an update fails and is rolled back, the index has to be deleted by hand."""

    def changed(before: TemplateView, after: TemplateView) -> set[str]:
        old, new = before.template["Resources"], after.template["Resources"]
        return {each["Type"] for name, each in new.items() if old.get(name) != each}

    without = _view(windows=[BULK])
    added = _view(windows=[BULK], indexes=[replace(BY_DAY, is_managed=False)])
    managed = _view(windows=[BULK], indexes=[BY_DAY])
    assert changed(without, added) == {"AWS::DynamoDB::Table"}
    assert "AWS::DynamoDB::Table" not in changed(added, managed)
    assert set(managed.targets) == {"table read", "table write", "by-day read", "by-day write"}
    assert added.messages("warning") == [
        "Shop/Orders: index 'by-day': nothing scales it, and it keeps its initial units while the table's traffic "
        "grows; once it is there, leave out is_managed=False and deploy [highwater:indexUnmanaged]"
    ]
    assert managed.messages("warning") == []
