"""Activities of target tracking on a cloud whose changes take time: when they begin and end, and what is not scaled."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.local.world import IDLE, INDEX_READ, INDEX_WRITE, MINUTE, READ, SECOND, WRITE, World, key, refused, wording

CLOUD = {"has_instant_updates": False}
UNSCALABLE = [{"Code": "TargetServicePutResourceAsUnscalable"}]


@pytest.fixture(autouse=True)
def calm(world: World) -> Iterator[None]:
    """Let changes come to their end: a table is not deleted meanwhile."""
    yield
    world.cloud.advance(10 * MINUTE)


def _seconds(at: datetime) -> float:
    return at.astimezone(UTC).timestamp()


def _all(world: World, resource: str) -> list[dict[str, Any]]:
    return world.activities(resource, IncludeNotScaledActivities=True)


def _reasons(world: World, resource: str) -> list[list[dict[str, Any]]]:
    return [one["NotScaledReasons"] for one in _all(world, resource) if "NotScaledReasons" in one]


@pytest.fixture
def table(world: World) -> str:
    made = world.table(40, 41)
    world.cloud.advance(MINUTE)
    return made


def _until_scaled(world: World, resource: str) -> dict[str, Any]:
    """Move the clock, second by second, to where an activity begins."""
    while not world.activities(resource):
        world.cloud.step(1)
    return world.activities(resource)[0]


def test_activity_begins_with_its_alarms_action_and_ends_half_a_minute_after_the_capacity(
    world: World, table: str
) -> None:
    """The capacity is there after 1.7 s, that is in the second whole second; the activity lasts 32 to 36 s.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
    """
    resource = f"table/{table}"
    world.register(resource, 7, 900)
    world.put_policy(resource, "tracking")
    world.cloud.advance(15 * MINUTE)
    activity = _until_scaled(world, resource)
    began = _seconds(activity["StartTime"])
    assert began % 1 == 0.5
    assert _seconds(world.now()) - began < 1
    assert (activity["StatusCode"], "EndTime" in activity) == ("InProgress", False)
    waits = "Successfully set read capacity units to 7. Waiting for change to be fulfilled by dynamodb."
    assert activity["StatusMessage"] == waits
    assert world.capacity(table) == (40, 41)
    world.cloud.step(2)
    assert world.capacity(table) == (7, 41)
    world.cloud.step(40)
    (activity,) = world.activities(resource)
    assert activity["StatusCode"] == "Successful"
    assert activity["StatusMessage"].endswith("Change successfully fulfilled by dynamodb.")
    assert 32 <= _seconds(activity["EndTime"]) - began <= 36


def test_change_while_the_table_is_changed_is_refused_and_tried_at_the_alarms_next_repeat(
    world: World, table: str
) -> None:
    """Shown among what is not scaled alone, without an end and a message.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
    """
    resource = f"table/{table}"
    world.register(resource, 7, 900)
    world.put_policy(resource, "tracking")
    # the alarm acts each minute, and nothing is allowed to happen
    world.register(resource, None, None, SuspendedState={"DynamicScalingInSuspended": True})
    world.cloud.advance(IDLE)
    low = next(alarm for alarm in world.policies(resource)["tracking"]["Alarms"] if "-AlarmLow-" in alarm["AlarmName"])
    world.register(resource, None, None, SuspendedState={"DynamicScalingInSuspended": False})
    # a change that lasts for several of the alarm's actions
    world.change(table, 20_000, 41)
    world.cloud.step(63)
    assert world.activities(resource) == []
    (refusal,) = _all(world, resource)
    assert refusal["NotScaledReasons"] == UNSCALABLE
    told = {name: refusal.get(name) for name in ("StatusCode", "Description", "Cause", "EndTime", "StatusMessage")}
    assert told == {
        "StatusCode": "Failed",
        "Description": "Attempting to scale due to alarm triggered",
        "Cause": f"monitor alarm {low['AlarmName']} in state ALARM triggered policy tracking",
        "EndTime": None,
        "StatusMessage": None,
    }
    success = _until_scaled(world, resource)
    waited = _seconds(success["StartTime"]) - _seconds(refusal["StartTime"])
    # the same reason was recorded once
    assert (waited % 60, len(_all(world, resource))) == (0, 2)


def test_index_is_not_scaled_while_its_table_is_changed(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance."""
    table = world.table(40, 41, {"by-city": (40, 41)})
    world.cloud.advance(MINUTE)
    index = f"table/{table}/index/by-city"
    for resource, dims in ((f"table/{table}", (READ, WRITE)), (index, (INDEX_READ, INDEX_WRITE))):
        for dim in dims:
            world.register(resource, 7, 900, dim)
    world.put_policy(index, "tracking", 70, INDEX_READ)
    world.register(index, None, None, INDEX_READ, SuspendedState={"DynamicScalingInSuspended": True})
    world.cloud.advance(IDLE)
    world.register(index, None, None, INDEX_READ, SuspendedState={"DynamicScalingInSuspended": False})
    world.change(table, 20_000, 41)
    world.cloud.step(60)
    assert _reasons(world, index) == [UNSCALABLE]
    assert world.capacity(table, "by-city") == (40, 41)


def test_alarm_at_the_minimum_is_recorded_once_after_the_activity_and_its_cooldown(world: World, table: str) -> None:
    """An action during the activity and during the cooldown, which counts from its end, leaves nothing.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance and activity_suppression.
    """
    resource = f"table/{table}"
    world.register(resource, 7, 900)
    world.put_policy(resource, "tracking", ScaleInCooldown=60)
    world.cloud.advance(IDLE + 30 * MINUTE)
    noted, change = _all(world, resource)
    assert noted["NotScaledReasons"] == [{"Code": "AlreadyAtMinCapacity", "MinCapacity": 7}]
    assert (noted["StatusCode"], change["StatusCode"]) == ("Failed", "Successful")
    after = noted["StartTime"] - change["EndTime"]
    assert MINUTE <= after <= 2 * MINUTE + 30 * SECOND
    # across deregistration too
    world.autoscaling.deregister_scalable_target(**key(resource))
    world.register(resource, 7, 900)
    world.put_policy(resource, "tracking")
    world.cloud.advance(10 * MINUTE)
    assert _all(world, resource) == [noted, change]


def _write(world: World, table: str, seconds: int) -> None:
    """Consume 40 write units a second."""
    for _ in range(seconds):
        world.dynamodb.put_item(TableName=table, Item={"id": {"S": "p"}, "fill": {"S": "x" * 40_900}})
        world.cloud.step(1)


def test_busy_table_is_scaled_out_to_its_maximum_and_that_is_recorded(world: World, table: str) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/scaling."""
    resource = f"table/{table}"
    world.register(resource, 7, 45, WRITE)
    world.put_policy(resource, "tracking", 50, WRITE)
    _write(world, table, 400)
    world.cloud.advance(3 * MINUTE)
    at_most, change = _all(world, resource)
    assert change["Description"] == "Setting write capacity units to 45."
    assert at_most["NotScaledReasons"] == [{"Code": "AlreadyAtMaxCapacity", "MaxCapacity": 45}]
    assert (at_most["StatusCode"], world.capacity(table)) == ("Failed", (40, 45))


def test_alarm_in_alarm_while_scaling_was_suspended_scales_after_it_without_a_new_state(
    world: World, table: str
) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/scaling."""
    resource = f"table/{table}"
    world.register(resource, 7, 900, SuspendedState={"DynamicScalingInSuspended": True})
    world.put_policy(resource, "tracking")
    world.cloud.advance(IDLE)
    assert _all(world, resource) == []
    world.register(resource, None, None, SuspendedState={"DynamicScalingInSuspended": False})
    world.cloud.advance(MINUTE + 3 * SECOND)
    assert world.capacity(table) == (7, 41)


@pytest.mark.parametrize(("asked", "found"), [(1, 1), (50, 50), (51, 50), (100, 50), (0, 0), (-1, 0)])
def test_activities_come_in_pages_of_fifty_at_most_and_none_for_less_than_one(
    world: World, table: str, asked: int, found: int
) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/activity_lifecycle."""
    resource = f"table/{table}"
    world.register(resource, 7, 900)
    for units in range(41, 93):
        world.register(resource, units, 900)
    page = world.autoscaling.describe_scaling_activities(
        ServiceNamespace="dynamodb", ResourceId=resource, MaxResults=asked
    )
    assert len(page["ScalingActivities"]) == found
    assert ("NextToken" in page) is (found > 0)


def test_table_on_demand_cannot_be_a_target(world: World) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/controls."""
    table = world.table(5, 6, BillingMode="PAY_PER_REQUEST", ProvisionedThroughput=None)
    text = "Validation failed for scalable target. Reason: PAY_PER_REQUEST table mode is not scalable."
    with refused("ValidationException", text):
        world.register(f"table/{table}", 7, 900)


def test_target_outlives_its_table(world: World, table: str) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/controls."""
    resource = f"table/{table}"
    world.register(resource, 7, 900, WRITE)
    world.put_policy(resource, "tracking", 70, WRITE)
    world.dynamodb.delete_table(TableName=table)
    world.cloud.advance(IDLE + timedelta(minutes=5))
    assert world.bounds(resource, WRITE) == (7, 900)
    world.autoscaling.deregister_scalable_target(**key(resource, WRITE))
    with refused("ObjectNotFoundException", f"No scalable target found for {wording(resource, WRITE)}"):
        world.autoscaling.deregister_scalable_target(**key(resource, WRITE))
