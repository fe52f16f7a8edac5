"""Scheduled actions on the cloud's clock: when they run, in which order, and when not.

Each runs less than a minute late; how late depends on its name, its target and the time alone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.local.world import DAY, HOUR, LATE, MINUTE, READ, SECOND, WRITE, World, at_expression, next_change

_NEW_YORK = ZoneInfo("America/New_York")


def _scaled(world: World, read: int = 10, write: int = 11) -> str:
    """A table whose reads are a target from 5 to 500."""
    table = world.table(read, write)
    world.register(f"table/{table}", 5, 500)
    return table


@pytest.fixture
def table(world: World) -> str:
    return _scaled(world)


@pytest.fixture
def resource(table: str) -> str:
    return f"table/{table}"


def _minute_ahead(world: World, minutes: int) -> datetime:
    return world.now().replace(second=0) + minutes * MINUTE


def test_action_at_an_instant_runs_then_and_not_before(world: World, table: str, resource: str) -> None:
    at = _minute_ahead(world, 12)
    world.put_action(resource, "once", at_expression(at), 30)
    world.advance_to(at - 2 * SECOND)
    assert (world.bounds(resource), world.capacity(table)) == ((5, 500), (10, 11))
    world.advance_to(at + LATE)
    assert (world.bounds(resource), world.capacity(table)) == ((30, 500), (30, 11))


def test_action_leaves_a_record_of_its_own_and_one_of_the_change(world: World, table: str, resource: str) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/activity_lifecycle."""
    del table
    at = _minute_ahead(world, 12)
    world.put_action(resource, "once", at_expression(at), 30, 400)
    world.advance_to(at + LATE)
    change, own = world.activities(resource)
    told = ("Description", "Cause", "StatusMessage", "StatusCode")
    assert [own[member] for member in told] == [
        "Setting min capacity to 30 and max capacity to 400",
        "scheduled action name once was triggered",
        "Successfully set min capacity to 30 and max capacity to 400",
        "Successful",
    ]
    assert [change[member] for member in told] == [
        "Setting read capacity units to 30.",
        "minimum capacity was set to 30",
        "Successfully set read capacity units to 30. Change successfully fulfilled by dynamodb.",
        "Successful",
    ]
    assert (own["EndTime"] - own["StartTime"]) == timedelta(milliseconds=5)
    assert (change["StartTime"] - own["StartTime"]) == timedelta(milliseconds=200)


def test_actions_run_late_by_a_spread_of_less_than_a_minute(world: World, table: str, resource: str) -> None:
    """None at once, none after 48 s, and all over what is between, as 43 were recorded.

    How late an action is follows from its name and its time, and so from the day of the test: what is held against
    is wide enough that one in 100,000 days would miss it.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/activity_lifecycle.
    """
    del table
    at = _minute_ahead(world, 12)
    for number in range(50):
        world.put_action(resource, f"page-{number}", at_expression(at), 5, 500)
    world.advance_to(at + LATE)
    found = world.activities(resource)
    late = [(one["StartTime"].astimezone(UTC) - at).total_seconds() for one in found]
    assert len(late) == 50
    assert 3 <= min(late) < 13
    assert 37 < max(late) < 48


def test_action_at_an_instant_in_a_zone_runs_at_local_time(world: World, table: str, resource: str) -> None:
    at = _minute_ahead(world, 25)
    local = at.astimezone(ZoneInfo("Asia/Kolkata"))
    world.put_action(resource, "once", f"at({local:%Y-%m-%dT%H:%M:%S})", 30, Timezone="Asia/Kolkata")
    world.advance_to(at - 2 * SECOND)
    assert world.capacity(table) == (10, 11)
    world.advance_to(at + LATE)
    assert world.capacity(table) == (30, 11)


def test_rate_runs_each_time_that_it_falls_due(world: World, resource: str) -> None:
    world.put_action(resource, "often", "rate(20 minutes)", 30)
    world.cloud.advance(LATE)
    for _ in range(3):
        world.register(resource, 5, 500)
        world.cloud.advance(19 * MINUTE - SECOND)
        assert world.bounds(resource) == (5, 500)
        world.cloud.advance(MINUTE + SECOND)
        assert world.bounds(resource) == (30, 500)


def test_rate_with_a_start_counts_from_it(world: World, resource: str) -> None:
    start = world.start_a_day() + timedelta(minutes=33)
    world.put_action(resource, "often", "rate(20 minutes)", 30, StartTime=start)
    ran = []
    for minute in range(1, 80):
        world.register(resource, 5, 500)
        world.cloud.advance(MINUTE)
        if world.bounds(resource) == (30, 500):
            ran.append(minute)
    assert ran == [34, 54, 74]


def test_cron_weeks_ahead_runs_each_action_at_its_own_time(world: World, table: str, resource: str) -> None:
    start = world.start_a_day().replace(hour=0)
    first, second, third = (start + days * DAY for days in (9, 16, 23))
    for name, day, units in (("a", third, 70), ("b", first, 30), ("c", second, 50)):
        world.put_action(resource, name, f"cron(30 7 {day.day} {day.month} ? {day.year})", units)
    world.advance_to(start + 30 * DAY)
    assert world.capacity(table) == (70, 11)
    found = [
        (activity["Cause"], activity["StartTime"].astimezone(UTC).replace(second=0, microsecond=0))
        for activity in reversed(world.activities(resource))
    ]
    assert found == [
        (cause, day + timedelta(hours=7, minutes=30))
        for name, day, units in (("b", first, 30), ("c", second, 50), ("a", third, 70))
        for cause in (f"scheduled action name {name} was triggered", f"minimum capacity was set to {units}")
    ]


def test_advance_over_many_days_runs_as_many_small_ones_do(world: World) -> None:
    tables = [_scaled(world), _scaled(world)]
    start = world.start_a_day()
    for table in tables[:1]:
        world.put_action(f"table/{table}", "up", "cron(0 8 * * ? *)", 30, 500)
        world.put_action(f"table/{table}", "down", "cron(0 18 * * ? *)", 5, 20)
    world.advance_to(start + 3 * DAY)
    causes = [activity["Cause"] for activity in reversed(world.activities(f"table/{tables[0]}"))]
    up = ["scheduled action name up was triggered", "minimum capacity was set to 30"]
    down = ["scheduled action name down was triggered", "maximum capacity was set to 20"]
    assert causes == [*up, *down] * 3
    assert world.activities(f"table/{tables[1]}") == []


def test_cron_in_a_zone_when_the_clocks_skip_its_time_does_not_run_that_day(world: World, resource: str) -> None:
    change = next_change(world.now() + 3 * DAY, _NEW_YORK, forward=True)
    world.advance_to(change - 6 * HOUR)
    world.put_action(resource, "at-half-past-two", "cron(30 2 * * ? *)", 30, Timezone="America/New_York")
    world.advance_to(change + 12 * HOUR)
    assert world.bounds(resource) == (5, 500), "half past two did not come that day"
    world.advance_to(change + 23 * HOUR + 35 * MINUTE)
    assert world.bounds(resource) == (30, 500)


def test_cron_in_a_zone_when_its_time_comes_twice_runs_the_first_time_only(world: World, resource: str) -> None:
    change = next_change(world.now() + 3 * DAY, _NEW_YORK, forward=False)
    world.advance_to(change - 6 * HOUR)
    world.put_action(resource, "at-half-past-one", "cron(30 1 * * ? *)", 30, Timezone="America/New_York")
    world.advance_to(change - 31 * MINUTE)
    assert world.bounds(resource) == (5, 500)
    world.advance_to(change - 29 * MINUTE)
    assert world.bounds(resource) == (30, 500)
    world.register(resource, 6, 500)
    world.advance_to(change + 12 * HOUR)
    assert world.bounds(resource) == (6, 500), "the second half past one must not run it again"


@pytest.mark.parametrize("forward", [True, False], ids=["clocks-forward", "clocks-back"])
def test_cron_in_a_zone_keeps_its_local_hour_over_a_clock_change(world: World, resource: str, forward: bool) -> None:
    change = next_change(world.now() + 3 * DAY, _NEW_YORK, forward=forward)
    world.advance_to(change - 30 * HOUR)
    world.put_action(resource, "up", "cron(0 9 * * ? *)", 30, 500, Timezone="America/New_York")
    world.put_action(resource, "down", "cron(0 10 * * ? *)", 5, 20, Timezone="America/New_York")
    world.advance_to(change + 44 * HOUR)
    hours = {activity["StartTime"].astimezone(_NEW_YORK).strftime("%H:%M") for activity in world.activities(resource)}
    assert hours == {"09:00", "10:00"}
    assert len(world.activities(resource)) == 12


def test_start_time_runs_a_recurring_action_at_its_start_and_then_by_schedule(world: World, resource: str) -> None:
    day = world.start_a_day()
    start = day.replace(hour=5, minute=17)
    world.put_action(resource, "daily", "cron(0 4 * * ? *)", 30, StartTime=start)
    world.advance_to(start - MINUTE)
    assert world.bounds(resource) == (5, 500), "four o'clock lies before the start"
    world.advance_to(start + MINUTE)
    assert world.bounds(resource) == (30, 500)
    world.register(resource, 6, 500)
    world.advance_to(day.replace(hour=4) + DAY - MINUTE)
    assert world.bounds(resource) == (6, 500)
    world.advance_to(day.replace(hour=4) + DAY + MINUTE)
    assert world.bounds(resource) == (30, 500)


def test_end_time_stops_an_action_and_reverts_nothing(world: World, table: str, resource: str) -> None:
    day = world.start_a_day()
    world.put_action(resource, "daily", "cron(0 4 * * ? *)", 30, EndTime=day.replace(hour=12))
    world.advance_to(day.replace(hour=4, minute=1))
    assert world.bounds(resource) == (30, 500)
    world.advance_to(day.replace(hour=13))
    assert (world.bounds(resource), world.capacity(table)) == ((30, 500), (30, 11))
    world.register(resource, 6, 500)
    world.advance_to(day + 3 * DAY)
    assert world.bounds(resource) == (6, 500)


def test_action_put_again_without_its_end_time_runs_on(world: World, resource: str) -> None:
    day = world.start_a_day()
    world.put_action(resource, "daily", "cron(0 4 * * ? *)", 30, EndTime=day.replace(hour=3))
    world.put_action(resource, "daily", None)
    world.advance_to(day.replace(hour=4, minute=1))
    assert world.bounds(resource) == (30, 500)


def test_actions_due_at_the_same_instant_all_run_and_the_bounds_end_consistent(
    world: World, table: str, resource: str
) -> None:
    at = _minute_ahead(world, 8)
    world.put_action(resource, "b", at_expression(at), 60)
    world.put_action(resource, "a", at_expression(at), None, 80)
    world.register(resource, 7, 400, WRITE)
    world.put_action(resource, "c", at_expression(at), 44, dim=WRITE)
    world.advance_to(at + LATE)
    assert world.bounds(resource) == (60, 80)
    assert world.bounds(resource, WRITE) == (44, 400)
    assert world.capacity(table) == (60, 44)


def test_actions_of_one_target_at_the_same_instant_run_in_any_order_and_all_run(
    world: World, table: str, resource: str
) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/activity_lifecycle."""
    at = _minute_ahead(world, 8)
    for name, units in (("2-more", 70), ("1-less", 40), ("3-most", 90)):
        world.put_action(resource, name, at_expression(at), units)
    world.advance_to(at + LATE)
    causes = [activity["Cause"] for activity in world.activities(resource)]
    own = [cause for cause in causes if cause.startswith("scheduled")]
    assert sorted(own) == [f"scheduled action name {name} was triggered" for name in ("1-less", "2-more", "3-most")]
    # a minimum below the capacity changes nothing
    assert world.capacity(table) == (90, 11)


def test_action_that_lowers_the_maximum_below_capacity_uses_a_decrease(world: World) -> None:
    world.start_a_day()
    table = _scaled(world, 100, 11)
    at = _minute_ahead(world, 8)
    world.put_action(f"table/{table}", "cap", at_expression(at), None, 60)
    world.advance_to(at + LATE)
    assert (world.capacity(table), world.decreases(table)) == ((60, 11), 1)
    assert world.bounds(f"table/{table}") == (5, 60)


def test_action_when_capacity_is_inside_its_bounds_changes_bounds_only(world: World, table: str, resource: str) -> None:
    at = _minute_ahead(world, 8)
    world.put_action(resource, "wide", at_expression(at), 8, 200)
    world.advance_to(at + LATE)
    assert (world.bounds(resource), world.capacity(table)) == ((8, 200), (10, 11))
    (own,) = world.activities(resource)
    assert own["Description"] == "Setting min capacity to 8 and max capacity to 200"


def test_action_whose_minimum_crosses_the_maximum_leaves_bounds_and_capacity(world: World) -> None:
    table = world.table(10, 11)
    world.register(f"table/{table}", 5, 20)
    at = _minute_ahead(world, 8)
    world.put_action(f"table/{table}", "too-much", at_expression(at), 30)
    world.advance_to(at + LATE)
    assert (world.bounds(f"table/{table}"), world.capacity(table)) == ((5, 20), (10, 11))
    assert world.activities(f"table/{table}")[0]["StatusCode"] == "Failed"


def test_action_when_decreases_are_used_up_fails_keeps_its_bounds_and_is_not_tried_again(world: World) -> None:
    world.start_a_day()
    table = _scaled(world, 100, 11)
    world.use_decreases(table)
    at = _minute_ahead(world, 8)
    world.put_action(f"table/{table}", "cap", at_expression(at), None, 60)
    world.cloud.advance(3 * HOUR)
    assert world.bounds(f"table/{table}") == (5, 60)
    assert world.capacity(table) == (96, 11)
    found = [(activity["StatusCode"], activity["Cause"]) for activity in world.activities(f"table/{table}")]
    assert found == [
        ("Failed", "maximum capacity was set to 60"),
        ("Successful", "scheduled action name cap was triggered"),
    ]


def test_actions_when_scheduled_scaling_is_suspended_are_missed_for_good(
    world: World, table: str, resource: str
) -> None:
    """Recorded: radkawar/stackd 9dc356f, applicationautoscaling/scaling."""
    missed, kept = _minute_ahead(world, 8), _minute_ahead(world, 40)
    world.put_action(resource, "missed", at_expression(missed), 30)
    world.put_action(resource, "kept", at_expression(kept), None, 400)
    world.register(resource, None, None, SuspendedState={"ScheduledScalingSuspended": True})
    world.advance_to(missed + MINUTE)
    world.register(resource, None, None, SuspendedState={"ScheduledScalingSuspended": False})
    world.advance_to(missed + 10 * MINUTE)
    assert (world.bounds(resource), world.capacity(table)) == ((5, 500), (10, 11))
    world.advance_to(kept + LATE)
    assert world.bounds(resource) == (5, 400)


def test_deleted_action_and_deregistered_target_run_nothing(world: World) -> None:
    tables = [_scaled(world), _scaled(world)]
    at = _minute_ahead(world, 8)
    for table in tables:
        world.put_action(f"table/{table}", "once", at_expression(at), 30)
    members = {"ServiceNamespace": "dynamodb", "ResourceId": f"table/{tables[0]}", "ScalableDimension": READ}
    world.autoscaling.delete_scheduled_action(**members, ScheduledActionName="once")
    members["ResourceId"] = f"table/{tables[1]}"
    world.autoscaling.deregister_scalable_target(**members)
    world.advance_to(at + LATE)
    assert [world.capacity(table) for table in tables] == [(10, 11), (10, 11)]


def test_action_when_its_table_is_gone_disturbs_no_other(world: World) -> None:
    tables = [_scaled(world), _scaled(world)]
    at = _minute_ahead(world, 8)
    for table in tables:
        world.put_action(f"table/{table}", "once", at_expression(at), 30)
    world.dynamodb.delete_table(TableName=tables[0])
    world.advance_to(at + LATE)
    assert world.capacity(tables[1]) == (30, 11)


def test_action_runs_in_its_second_as_the_clock_is_stepped(world: World, table: str, resource: str) -> None:
    at = world.now().replace(second=0) + 2 * MINUTE
    world.put_action(resource, "once", at_expression(at), 30)
    world.advance_to(at - SECOND)
    while world.capacity(table) == (10, 11):
        world.cloud.step(1)
    assert world.activities(resource)[1]["StartTime"].astimezone(UTC) == world.now() < at + LATE


def test_action_that_is_put_after_its_time_does_not_run_late_for_it(world: World, resource: str) -> None:
    at = _minute_ahead(world, 2)
    world.advance_to(at + SECOND)
    world.put_action(resource, "late", f"cron({at.minute} {at.hour} * * ? *)", 30)
    world.cloud.advance(2 * LATE)
    assert world.bounds(resource) == (5, 500)
