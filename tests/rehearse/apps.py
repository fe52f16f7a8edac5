"""A rehearsed app of five tables in two stages: changed, unchanged, added, removed, and unknown."""

from __future__ import annotations

from highwater.core.tracking import TargetTracking
from highwater_lab.rehearse import (
    AppRehearsal,
    Outcome,
    TableChange,
    TableRehearsal,
)
from highwater_lab.simulation import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.traffic import scenario

STEP = scenario("step")


def setup_of(floor: int, *indexes: str, notes: tuple[str, ...] = ()) -> TableSetup:
    write = TargetSetup(units=floor, min=floor, max=9_000, tracking=TargetTracking(target_percent=70))
    resources = [ResourceSetup(index=index, read=TargetSetup.fixed(5), write=write) for index in (None, *indexes)]
    return TableSetup(name="", resources=tuple(resources), region="eu-west-1", notes=notes)


def outcome(cost: float, throttled: float, minutes: int = 0) -> Outcome:
    return Outcome(
        cost_per_month=cost,
        warm_up=0.0,
        demanded_units=1e6,
        throttled_units=throttled * 1e4,
        throttled_minutes=minutes,
        worst_at=STEP.start if minutes else None,
    )


ORDERS = TableRehearsal(
    name="Prod/Shop/Orders",
    stage="Prod",
    change=TableChange.CHANGED,
    before=outcome(588.4, 5.06, 90),
    after=outcome(701.2, 0.09, 9),
    setup_before=setup_of(300),
    setup_after=setup_of(900),
    on_demand=outcome(1_039.0, 0.0),
    notes=("a | b",),
)
CARTS = TableRehearsal(
    name="Beta/Shop/Carts", stage="Beta", change=TableChange.UNCHANGED, before=ORDERS.before, after=ORDERS.before
)
NEW = TableRehearsal(
    name="Beta/Shop/New_1",
    stage="Beta",
    change=TableChange.ADDED,
    after=outcome(9.5, 0.002, 1),
    setup_after=setup_of(300),
)
GONE = TableRehearsal(name="Prod/Shop/Gone", stage="Prod", change=TableChange.REMOVED, before=outcome(12.0, 0.0))
LOST = TableRehearsal(name="Prod/Shop/Lost", stage="Prod", change=TableChange.UNCHANGED, unknown="no traffic")
APP = AppRehearsal(
    tables=(CARTS, NEW, GONE, LOST, ORDERS), against="main", traffic="14.0 days", prices="prices of eu-west-1"
)
