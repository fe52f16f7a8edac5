"""What a stage may look at: demand of the newest minutes, and the share of it that a fleet tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from highwater.core.pulses import SLOTS_PER_MINUTE, Slots
from highwater.core.scaler import Mode, Observation, ScalerSettings, decide
from highwater.core.scaler.facts import Facts, Source
from highwater.core.scaler.fleet import COVERAGE_MINUTES, FleetDemand, coverage_percent, fleet_demand
from highwater.core.scaler.regret import Regret
from tests.core.decisions_to_make import NOW, seen, state

SILENT = FleetDemand(0, 0, 0, 0, (), was_refused=False, is_refused=False, burst_seconds=60)
TELLS = replace(SILENT, coverage_percent=100, minutes=(41, 43))


def facts(observation: Observation, fleet: FleetDemand, mode: Mode = Mode.FLOOR) -> Facts:
    return Facts(observation, ScalerSettings(mode=mode), state(7), fleet, NOW)


def told(newest_minute: int, *by_minute: int) -> Slots:
    """Slots of whole minutes up to *newest_minute*, each with a sixth of the minute's units."""
    slots = tuple(units // SLOTS_PER_MINUTE for units in by_minute for _ in range(SLOTS_PER_MINUTE))
    return Slots(newest_minute * SLOTS_PER_MINUTE + SLOTS_PER_MINUTE - 1, slots, (0,) * len(slots))


@pytest.mark.parametrize(
    ("mode", "fleet", "source"),
    [
        (Mode.FLOOR, SILENT, Source.CLOUDWATCH),
        (Mode.DIRECT, TELLS, Source.PULSES),
        (Mode.BOOSTS, TELLS, Source.PLAN),
    ],
)
def test_target_is_sized_from_pulses_where_they_cover_enough_and_demand_is_followed(
    mode: Mode, fleet: FleetDemand, source: Source
) -> None:
    assert facts(seen([60]), fleet, mode).source is source


def test_newest_demand_ends_with_the_minutes_that_only_pulses_have() -> None:
    observation = seen([11, 13, 17, 19, None, None], [0, 0, 0, 2, 0, 0])
    assert facts(observation, TELLS).newest_demand(3) == [13, 17, 21, 41, 43]
    assert facts(observation, replace(TELLS, coverage_percent=0)).newest_demand(3) == [13, 17, 21]
    assert facts(observation, SILENT).newest_demand(9) == [11, 13, 17, 21]


def test_most_that_may_be_asked_for_is_twenty_times_the_busiest_minute_of_the_hours_or_of_the_day() -> None:
    busy = seen([600_000, 7])
    assert facts(busy, SILENT).step_units == 200_000
    day = replace(busy, regret=Regret(1, 1, 1, 0, highest_units=900_000))
    assert facts(day, SILENT).step_units == 300_000
    # an idle table: what a partition serves
    assert facts(seen([0]), SILENT).step_units == 1_000


def test_coverage_is_of_the_last_fifteen_minutes_that_cloudwatch_has() -> None:
    late = [600] * (COVERAGE_MINUTES + 3) + [None, None]
    observation = seen(late)
    known = observation.newest - 2
    # half of the older minutes, and a third of the last fifteen
    assert coverage_percent(told(known, *[300] * 3, *[198] * COVERAGE_MINUTES), observation) == 33
    # those after what CloudWatch has do not count
    assert coverage_percent(told(known + 2, *[300] * COVERAGE_MINUTES, 6, 6), observation) == 50
    # nor do those before the first slot, and minutes without consumption
    assert coverage_percent(told(known, 480, 480), observation) == 80
    assert coverage_percent(told(known, 480, 480), seen([600, 0, 0, None, None])) == 0


def test_level_counts_what_cloudwatch_has_before_the_slots_and_what_they_ask_for() -> None:
    observation = seen([6_000] * 30)
    # full at the start of an hour's look back, and as much is taken as there is
    calm = replace(observation, pulses=told(observation.newest, *[6_000] * 4))
    assert fleet_demand(calm, capacity_units=100, last_increase=None).level_units == 100 * 60
    above = replace(observation, pulses=told(observation.newest, *[6_600] * 4))
    # 10 a second more for four minutes
    assert fleet_demand(above, capacity_units=100, last_increase=None).level_units == 100 * 60 - 10 * 240
    # before the slots, CloudWatch counted 5 a second more than there is for 26 minutes
    before = fleet_demand(calm, capacity_units=95, last_increase=None)
    assert before.level_units == 0


def test_plan_alone_is_asked_for_where_demand_is_left_to_target_tracking() -> None:
    decision = decide(ScalerSettings(mode=Mode.BOOSTS), state(7, baseline=31), seen([600_000]), now=NOW)
    assert (decision.granted, decision.reason) == (31, "the plan's floor")
