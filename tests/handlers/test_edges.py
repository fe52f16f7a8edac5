"""A law of turns that read before a window's edge and write after it, in zones of whole and of half hours."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from highwater.core import Dimension, Window
from highwater.core.schedule.bounds import bounds_at
from tests.memory_aws.account import Account
from tests.memory_aws.stage import MINUTE, PLAN, Stage
from tests.memory_aws.wire import Call, at

ZONES = ("UTC", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "Europe/Berlin")
# an ordinary day, and those on which Lord Howe's clocks change by half an hour, and Berlin's by an hour
DAYS = ((2027, 3, 4), (2027, 4, 3), (2027, 10, 2), (2027, 3, 27), (2027, 10, 30))
DAY = 24 * 60


@st.composite
def _windows(draw: st.DrawFn) -> Window:
    start, minutes = draw(st.integers(0, DAY - 1)), draw(st.integers(30, 600))
    first, last = (f"{at // 60:02}:{at % 60:02}" for at in (start, (start + minutes) % DAY))
    floor, lead = draw(st.integers(20, 390)), timedelta(minutes=draw(st.sampled_from([0, 5, 17])))
    zone = draw(st.sampled_from(ZONES))
    return Window.daily("load", start=first, end=last, timezone=zone, write_min=floor, lead=lead)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    window=_windows(),
    day=st.sampled_from(DAYS),
    number=st.integers(0, 1),
    before=st.integers(1, 59),
    after=st.integers(0, 90),
    by_hand=st.integers(-3, 3),
    has_acted=st.booleans(),
)
def test_what_a_turn_writes_behind_an_edge_is_the_plans_of_that_time(
    window: Window, day: tuple[int, int, int], number: int, before: int, after: int, by_hand: int, *, has_acted: bool
) -> None:
    plan = replace(PLAN, windows=(window,))
    target = next(each for each in plan.targets() if each.key == (None, Dimension.WRITE))
    noon = datetime(*day, 12, tzinfo=UTC)
    minutes = [noon + minute * MINUTE for minute in range(2 * DAY)]
    edges = [later for one, later in itertools.pairwise(minutes) if bounds_at(target, one) != bounds_at(target, later)]
    edge = edges[number]
    stage = Stage(account=Account(int(edge.timestamp()) - before))
    orders = stage.table("orders", plan)
    old = bounds_at(target, stage.now())
    left = [(old.min + by_hand, old.max)]
    stage.register(orders, *left[0])

    def cross(call: Call) -> Any:
        stage.advance(timedelta(seconds=before + after))
        if has_acted:
            new = bounds_at(target, stage.now())
            left[0] = (new.min, new.max)
            stage.register(orders, *left[0])
        return call.send()

    stage.wire.fault = at(2, cross, "DescribeScalableTargets")
    stage.run("orders")
    planned, found = bounds_at(target, stage.now()), stage.bounds(orders)
    assert (found.min, found.max) in ((planned.min, planned.max), left[0])
    written = [
        (body["MinCapacity"], body["MaxCapacity"])
        for body in stage.wire.bodies("RegisterScalableTarget")
        if body["ScalableDimension"] == orders.scalable_dimension and stage.now() >= edge
    ]
    assert set(written) <= {(planned.min, planned.max)}
