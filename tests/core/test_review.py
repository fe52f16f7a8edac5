"""One turn of the scaler, in memory: what is seen of a table goes in, the review comes out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Bounds, Capacity, DecreaseBudget, Dimension, IndexCapacity, Plan, Target, Units, Window
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import Slots, slot_at
from highwater.core.scaler import (
    Clock,
    LimitCode,
    Mode,
    Observation,
    ScaledPlan,
    SeenResource,
    SeenTable,
    SeenTarget,
    SkipReason,
    TableReview,
    review,
)
from highwater.core.scaler.attention import is_daily_tick

MINUTE = timedelta(minutes=1)
NOW = datetime(2027, 3, 4, 10, 3, 40, tzinfo=UTC)
LATE = NOW.replace(minute=58)
READ, WRITE = (None, Dimension.READ), (None, Dimension.WRITE)
PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=7, max_capacity=900),
    write=Capacity.autoscaled(min_capacity=12, max_capacity=400),
)


def observed(units: int, at: datetime = NOW, minutes: int = 500) -> Observation:
    """So many units a second for all minutes, the newest of which ended 160 seconds ago."""
    newest = (int(at.timestamp()) - 160) // 60 - 1
    return Observation.of(newest, (units * 60,) * minutes, (0,) * minutes)


def looked(
    units: int = 0, registered: tuple[int, int] | None = (12, 400), at: datetime = NOW, **more: Any
) -> SeenTarget:
    bounds = None if registered is None else Bounds(*registered)
    return SeenTarget(registered=bounds, observation=observed(units, at), **more)


def reviewed(
    targets: dict[Any, SeenTarget],
    plan: Plan = PLAN,
    mode: Mode = Mode.FLOOR,
    at: datetime = NOW,
    resources: Any = None,
    capacity: tuple[int, int] = (7, 12),
    lacks_leases: bool = False,
    **more: Any,
) -> TableReview:
    """A turn for one table; *capacity* and *more* are what is seen of it, unless there are *resources*."""
    resources = resources or {None: SeenResource(provisioned=Units(*capacity), **more)}
    clock = Clock(int(at.timestamp()) // 60, at)
    return review(
        ScaledPlan(table="orders", mode=mode, plan=plan),
        SeenTable(resources, targets, lacks_leases=lacks_leases),
        clock,
    )


def test_floor_follows_demand_and_the_ceiling_is_the_plans() -> None:
    (write,) = reviewed({WRITE: looked(190)}).targets
    assert (write.decision.current, write.decision.granted) == (12, 190)
    assert write.bounds == Bounds(190, 400)
    assert write.alarm_threshold == 190 * 60 * 97 // 100


def test_alarm_is_set_by_capacity_where_that_is_above_the_floor() -> None:
    (write,) = reviewed({WRITE: looked(190)}, capacity=(7, 300)).targets
    assert write.alarm_threshold == 300 * 60 * 97 // 100


def test_open_window_is_the_baseline_and_may_lift_the_ceiling() -> None:
    times: Any = {"start": "2027-03-04T10:00", "end": "2027-03-04T11:00", "timezone": "UTC"}
    window = Window.once("load", **times, write_min=333, write_max=1_700)
    plan = replace(PLAN, windows=(window,))
    assert reviewed({WRITE: looked()}, plan).targets[0].bounds == Bounds(333, 1_700)
    at = NOW + timedelta(hours=2)
    assert reviewed({WRITE: looked(at=at)}, plan, at=at).targets[0].bounds == Bounds(12, 400)


def test_only_targets_that_are_looked_at_are_decided_for_in_the_order_of_the_plan() -> None:
    assert [d.label for d in reviewed({WRITE: looked()}).decisions] == ["table write"]
    assert [d.label for d in reviewed({WRITE: looked(), READ: looked()}).decisions] == ["table read", "table write"]


def test_floor_is_never_above_the_quota_of_the_plan() -> None:
    def with_quota(low: int, quota: int) -> Plan:
        write = Capacity.autoscaled(min_capacity=low, max_capacity=85_000)
        return replace(PLAN, write=write, table_quota_units=quota)

    found = reviewed({WRITE: looked(registered=(1, 85_000))}, with_quota(50_000, 90_000))
    assert found.targets[0].bounds == Bounds(50_000, 85_000)
    (write,) = reviewed({WRITE: looked(70_000, (12, 85_000))}, with_quota(12, 61_000)).targets
    assert write.decision.granted == 61_000
    assert write.decision.limited_by(LimitCode.QUOTA)


@pytest.mark.parametrize(
    ("target", "mode", "resource", "reason"),
    [
        (looked(registered=None), Mode.FLOOR, {}, SkipReason.NOT_REGISTERED),
        (looked(is_suspended=True), Mode.FLOOR, {}, SkipReason.PAUSED),
        (looked(), Mode.DIRECT, {}, SkipReason.LEFT_TO_AUTO_SCALING),
        (looked(), Mode.FLOOR, {"capacity": (0, 0)}, SkipReason.ON_DEMAND),
        (looked(registered=None), Mode.DIRECT, {"is_active": False}, SkipReason.BEING_CHANGED),
    ],
)
def test_target_that_cannot_be_moved_is_skipped_with_its_reason(
    target: SeenTarget, mode: Mode, resource: dict[str, Any], reason: SkipReason
) -> None:
    found = reviewed({WRITE: target}, mode=mode, **resource)
    assert found.targets == ()
    assert [(skip.target.label, skip.reason) for skip in found.skips] == [("table write", reason)]


def test_floor_is_set_while_the_table_is_being_changed() -> None:
    assert [d.granted for d in reviewed({WRITE: looked(registered=(2, 400))}, is_active=False).decisions] == [12]


def test_index_that_the_table_has_no_more_is_skipped_and_the_table_is_not() -> None:
    plan = indexes("by-day")
    found = reviewed({WRITE: looked(), ("by-day", Dimension.WRITE): looked()}, plan)
    assert [d.label for d in found.decisions] == ["table write"]
    assert [(skip.target.label, skip.reason) for skip in found.skips] == [("index 'by-day' write", SkipReason.NO_INDEX)]


def indexes(*names: str) -> Plan:
    return PLAN.with_indexes(names)


def labels_of_skips(found: TableReview) -> list[tuple[str, SkipReason]]:
    return [(skip.target.label, skip.reason) for skip in found.skips]


def test_indexes_after_one_that_is_gone_are_decided_for() -> None:
    resources = {name: SeenResource(provisioned=Units(7, 12)) for name in (None, "by-week")}
    targets = {
        WRITE: looked(registered=None),
        ("by-day", Dimension.WRITE): looked(),
        ("by-week", Dimension.WRITE): looked(190),
    }
    found = reviewed(targets, indexes("by-day", "by-week"), resources=resources)
    assert [d.label for d in found.decisions] == ["index 'by-week' write"]
    assert labels_of_skips(found) == [
        ("table write", SkipReason.NOT_REGISTERED),
        ("index 'by-day' write", SkipReason.NO_INDEX),
    ]


def test_floor_that_is_registered_is_the_current_value_and_not_the_capacity() -> None:
    (write,) = reviewed({WRITE: looked(190, (31, 400))}, capacity=(80, 300)).decisions
    assert (write.current, write.granted) == (31, 190)
    (write,) = reviewed({WRITE: looked(190, None)}, mode=Mode.DIRECT, capacity=(80, 300)).decisions
    assert write.current == 300


def test_alarm_is_set_by_the_capacity_of_its_own_dimension() -> None:
    read, write = reviewed({WRITE: looked(20), READ: looked(20)}, capacity=(80, 300)).targets
    assert (read.alarm_threshold, write.alarm_threshold) == (80 * 60 * 97 // 100, 300 * 60 * 97 // 100)


def test_alarm_of_a_fleet_that_tells_what_it_asks_for_is_above_capacity_unless_it_throttles() -> None:
    told = Slots(slot_at(NOW) - 1, (200,) * 90, (0,) * 90)
    few = Slots(slot_at(NOW) - 1, (20,) * 90, (0,) * 90)
    calm = looked(20)
    throttled = replace(calm.observation, throttled_units=(0,) * 480 + (3,) + (0,) * 19)
    thresholds = [
        reviewed({WRITE: replace(calm, observation=replace(seen, pulses=pulses))}, capacity=(7, 300))
        .targets[0]
        .alarm_threshold
        for seen, pulses in ((calm.observation, told), (calm.observation, few), (throttled, told))
    ]
    assert thresholds == [300 * 60 * 110 // 100, 300 * 60 * 97 // 100, 300 * 60 * 97 // 100]


def test_review_tells_its_table_and_the_time_of_its_turn() -> None:
    found = reviewed({WRITE: looked()})
    assert found.scaled.table == "orders"
    assert found.clock == Clock(int(NOW.timestamp()) // 60, NOW)


def test_direct_mode_moves_capacity_of_table_and_index_each_in_one_call() -> None:
    resources = {None: SeenResource(provisioned=Units(7, 12)), "by-day": SeenResource(provisioned=Units(9, 12))}
    of_index = {("by-day", Dimension.READ): looked(5, None), ("by-day", Dimension.WRITE): looked(97, None)}
    targets = {READ: looked(58, None), WRITE: looked(194, None)} | of_index
    found = reviewed(targets, indexes("by-day"), Mode.DIRECT, resources=resources)
    assert dict(found.capacity_changes()) == {
        None: {Dimension.READ: 60, Dimension.WRITE: 200},
        "by-day": {Dimension.WRITE: 100},
    }


def test_floor_mode_never_calls_update_table() -> None:
    assert list(reviewed({WRITE: looked(190)}).capacity_changes()) == []


def test_direct_mode_lowers_nothing_beside_a_raise() -> None:
    targets = {READ: looked(7, None, at=LATE), WRITE: looked(194, None, at=LATE)}
    found = reviewed(targets, mode=Mode.DIRECT, at=LATE, capacity=(300, 12))
    assert dict(found.capacity_changes()) == {None: {Dimension.WRITE: 200}}


def test_direct_mode_leaves_capacity_that_was_raised_after_it_looked() -> None:
    targets = {READ: looked(5, None, at=LATE), WRITE: looked(10, None, at=LATE)}
    after = LATE + timedelta(seconds=3)
    found = reviewed(targets, mode=Mode.DIRECT, at=LATE, capacity=(7, 250), last_increase=after)
    assert labels_of_skips(found) == [
        ("table read", SkipReason.RAISED_MEANWHILE),
        ("table write", SkipReason.RAISED_MEANWHILE),
    ]
    assert list(found.capacity_changes()) == []
    found = reviewed(targets, mode=Mode.DIRECT, at=LATE, capacity=(7, 250), last_increase=LATE)
    assert dict(found.capacity_changes()) == {None: {Dimension.WRITE: 12}}
    found = reviewed(targets, mode=Mode.DIRECT, at=LATE, last_increase=after)
    assert (found.skips, [d.granted for d in found.decisions]) == ((), [7, 12]), "nothing would be lowered"


def test_raise_of_one_index_meanwhile_leaves_the_others_to_the_scaler() -> None:
    targets = {(index, Dimension.WRITE): looked(10, None, at=LATE) for index in (None, "by-day", "by-week")}
    targets[None, Dimension.READ] = looked(10, at=LATE)
    resources = {
        None: SeenResource(provisioned=Units(7, 250)),
        "by-day": SeenResource(provisioned=Units(7, 260), last_increase=LATE + timedelta(seconds=3)),
        "by-week": SeenResource(provisioned=Units(7, 270)),
    }
    found = reviewed(targets, indexes("by-day", "by-week"), Mode.DIRECT, LATE, resources)
    assert dict(found.capacity_changes()) == {None: {Dimension.WRITE: 12}, "by-week": {Dimension.WRITE: 12}}
    assert labels_of_skips(found) == [
        ("table read", SkipReason.LEFT_TO_AUTO_SCALING),
        ("index 'by-day' write", SkipReason.RAISED_MEANWHILE),
    ]


def test_direct_mode_keeps_within_the_days_decreases_of_the_resource() -> None:
    targets = {WRITE: looked(10, None, at=LATE)}
    spent = DecreaseBudget(4, LATE - 9 * MINUTE)
    found = reviewed(targets, mode=Mode.DIRECT, at=LATE, capacity=(7, 250), budget=spent)
    assert found.decisions[0].limited_by(LimitCode.DECREASE_BUDGET)
    assert list(found.capacity_changes()) == []


@pytest.mark.parametrize("mode", [Mode.FLOOR, Mode.DIRECT])
def test_provisioned_indexes_that_the_plan_leaves_out_are_told_at_full_ticks(mode: Mode) -> None:
    resources = {None: Units(7, 12), "by_day": Units(3, 5), "made": Units(0, 2), "b": Units(6, 1), "free": Units(0, 0)}
    seen = SeenTable({index: SeenResource(provisioned=units) for index, units in resources.items()}, {})
    scaled = ScaledPlan(table="orders", mode=mode, plan=indexes("by_day", "gone"))
    minutes = [Clock(int(NOW.timestamp()) // 60 + number, NOW) for number in range(10)]
    told = [review(scaled, seen, clock).unmanaged for clock in minutes]
    assert sorted(told) == [()] * 8 + [("b", "made")] * 2
    assert {review(replace(scaled, is_tagged=True), seen, clock).unmanaged for clock in minutes} == {()}


def test_table_is_compared_with_on_demand_once_a_day_and_only_whole() -> None:
    daily = next(NOW + n * MINUTE for n in range(1440) if is_daily_tick("orders", int(NOW.timestamp()) // 60 + n))
    whole = {key: SeenTarget(registered=Bounds(7, 400), observation=observed(40, daily, 1445)) for key in (READ, WRITE)}
    assert reviewed(whole, at=daily).on_demand_percent == 347
    assert reviewed({WRITE: whole[WRITE]}, at=daily).on_demand_percent is None
    assert reviewed(whole, at=daily + MINUTE).on_demand_percent is None


def pulsing(pulses: Slots, ceiling: int, mode: Mode) -> SeenTarget:
    """A target of 120 units a second, whose fleet tells what it asks for."""
    bounds = None if mode is Mode.DIRECT else Bounds(12, ceiling)
    return SeenTarget(registered=bounds, observation=replace(observed(120), pulses=pulses))


@pytest.mark.parametrize("mode", list(Mode))
def test_fleet_is_given_a_hint_where_demand_is_followed(mode: Mode) -> None:
    newest = int(NOW.timestamp()) // 10 - 1
    pulses = Slots(newest, (1_200,) * 120, (0,) * 120)
    (write,) = reviewed({WRITE: pulsing(pulses, 400, mode)}, mode=mode).targets
    if not mode.follows_demand:
        assert write.hint is None
        return
    assert write.hint is not None
    assert (write.hint.slot, write.hint.capacity_units) == (newest, write.decision.granted)
    assert not write.hint.is_most


@pytest.mark.parametrize("mode", [Mode.FLOOR, Mode.DIRECT])
@pytest.mark.parametrize(("ceiling", "is_most"), [(400, False), (150, True)])
def test_fleet_is_told_that_no_more_is_to_be_had(mode: Mode, ceiling: int, is_most: bool) -> None:
    newest = int(NOW.timestamp()) // 10 - 1
    pulses = Slots(newest, (*(1_200,) * 118, 3_000, 3_000), (*(0,) * 119, 500))
    seen = pulsing(pulses, ceiling, mode)
    plan = replace(PLAN, write=Capacity.autoscaled(min_capacity=12, max_capacity=ceiling))
    (write,) = reviewed({WRITE: seen}, plan, mode, capacity=(7, 130)).targets
    assert write.hint is not None
    assert write.hint.is_most is (write.decision.granted == ceiling)
    if ceiling == 150:
        assert is_most
        assert write.hint.is_most


FIXED = Plan(
    read=Capacity.fixed(units=70),
    write=Capacity.autoscaled(min_capacity=12, max_capacity=400),
    indexes=(IndexCapacity(index_name="by_day", write=Capacity.fixed(units=33)),),
)
BY_DAY_READ, BY_DAY_WRITE = ("by_day", Dimension.READ), ("by_day", Dimension.WRITE)
FIXED_FLOORS = {READ: 70, BY_DAY_READ: 70, BY_DAY_WRITE: 33}


@pytest.mark.parametrize(
    ("of_table", "of_index", "floors", "mode", "expected"),
    [
        pytest.param((70, 12), (70, 33), FIXED_FLOORS, Mode.FLOOR, [], id="at-their-floors"),
        pytest.param(
            (1, 1), (1, 1), FIXED_FLOORS, Mode.FLOOR, [READ, BY_DAY_READ, BY_DAY_WRITE], id="reset-by-a-deploy"
        ),
        pytest.param((69, 12), (70, 34), FIXED_FLOORS, Mode.BOOSTS, [READ], id="one-below"),
        pytest.param((1, 1), (1, 1), {BY_DAY_READ: 70}, Mode.FLOOR, [BY_DAY_READ], id="only-what-is-registered"),
        pytest.param((0, 0), (0, 0), FIXED_FLOORS, Mode.FLOOR, [], id="on-demand"),
        pytest.param((1, 1), (1, 1), FIXED_FLOORS, Mode.DIRECT, [], id="no-floors-in-direct-mode"),
        pytest.param((1, 1), None, FIXED_FLOORS, Mode.FLOOR, [READ], id="index-that-is-gone"),
        pytest.param(
            (65, 12), (65, 33), {READ: 60, BY_DAY_READ: 66}, Mode.FLOOR, [BY_DAY_READ], id="live-floors-count"
        ),
    ],
)
def test_fixed_capacity_below_its_floor_is_registered_again(
    of_table: tuple[int, int],
    of_index: tuple[int, int] | None,
    floors: dict[TargetKey, int],
    mode: Mode,
    expected: list[TargetKey],
) -> None:
    """Its floor is never moved, and Application Auto Scaling looks at it only when the target is registered."""
    resources: dict[str | None, SeenResource] = {None: SeenResource(provisioned=Units(*of_table))}
    if of_index is not None:
        resources["by_day"] = SeenResource(provisioned=Units(*of_index))
    assert [target.key for target in _below(resources, floors, mode)] == expected


@pytest.mark.parametrize("busy", [None, "by_day"], ids=["table-changes", "index-is-built"])
def test_fixed_capacity_waits_until_nothing_changes_the_table(busy: str | None) -> None:
    resources = {index: SeenResource(provisioned=Units(1, 1), is_active=index != busy) for index in (None, "by_day")}
    assert _below(resources, FIXED_FLOORS) == ()


@given(
    units=st.dictionaries(st.sampled_from([None, "by_day"]), st.builds(Units, *[st.integers(0, 90)] * 2)),
    floors=st.dictionaries(st.sampled_from([READ, BY_DAY_READ, BY_DAY_WRITE]), st.integers(1, 90)),
)
def test_registering_fixed_capacity_again_leaves_nothing_to_register(
    units: dict[str | None, Units], floors: dict[TargetKey, int]
) -> None:
    resources = {index: SeenResource(provisioned=each) for index, each in units.items()}
    for index, dimension in [target.key for target in _below(resources, floors)]:
        before = resources[index]
        raised = before.provisioned.with_units({dimension: floors[index, dimension]})
        assert raised.covers(before.provisioned)
        resources[index] = replace(before, provisioned=raised)
    assert _below(resources, floors) == ()


def _below(
    resources: dict[str | None, SeenResource], floors: dict[TargetKey, int], mode: Mode = Mode.FLOOR
) -> tuple[Target, ...]:
    scaled = ScaledPlan(table="orders", mode=mode, plan=FIXED)
    seen = SeenTable(resources, {}, fixed_floors=floors)
    return review(scaled, seen, Clock(int(NOW.timestamp()) // 60, NOW)).fixed_below_floor
