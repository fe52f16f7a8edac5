"""What a simulated fleet has told when a policy looks: whole slots, and of a calm minute its first half."""

from __future__ import annotations

from dataclasses import replace

from highwater.core.pulses import SLOT_SECONDS, Slots
from highwater_lab.services.timing import PHASES, Timing
from highwater_lab.simulation import simulate
from highwater_lab.simulation.fleet import Pulses
from highwater_lab.simulation.policy import Calls, Policy, Seen
from tests.simulation.tables import START, table, tracked, writes

_START_SLOT = int(START.timestamp()) // SLOT_SECONDS


class _Looks(Policy):
    """Looks once a minute, and notes what was told of the writes."""

    name = "looks"
    period_seconds = 60

    def __init__(self, pulses: Pulses) -> None:
        self.pulses = pulses
        self.told: list[Slots] = []

    def poll(self, seen: Seen, calls: Calls) -> int:  # noqa: ARG002 - it changes nothing
        told = seen.resources[0].write.pulses(9)
        assert told is not None
        self.told.append(told)
        return 0


def looked(
    *units_per_second: int, delay: int = 5, coverage: int = 100, offset: int = 40, silent: frozenset[int] = frozenset()
) -> list[tuple[int, ...]]:
    """The newest slot of each look, counted from the start, and the amounts of up to nine slots."""
    policy = _Looks(Pulses(coverage_percent=coverage, delay_seconds=delay, silent_minutes=silent))
    timing = Timing(phase=replace(PHASES[0], tick=offset))
    simulate(table(tracked(low=100, high=100)), writes(*units_per_second), policy, timing=timing)
    return [(told.newest - _START_SLOT, *(units or 0 for units in told.consumed_units)) for told in policy.told]


def test_first_half_of_a_calm_minute_is_told_at_its_half() -> None:
    assert looked(30, 50, 40)[:3] == [
        (2, *[300] * 3),
        (8, *[300] * 6, *[500] * 3),
        (14, *[500] * 6, *[400] * 3),
    ]
    assert looked(30, 50, coverage=50)[1] == (8, *[150] * 6, *[250] * 3)


def test_before_the_half_of_a_calm_minute_only_the_minutes_before_are_told() -> None:
    assert looked(30, 50, offset=34)[1] == (5, *[300] * 6)
    assert looked(30, 50, delay=25)[1] == (5, *[300] * 6)


def test_each_slot_is_told_where_one_asks_for_more_than_the_capacity() -> None:
    assert looked(30, 120, 40, offset=35)[1:] == [
        (8, *[300] * 6, *[1_200] * 3),
        (14, *[1_200] * 6, *[400] * 3),
    ]
    assert looked(30, 120, offset=25)[1] == (7, *[300] * 6, *[1_200] * 2)


def test_nothing_is_told_of_a_minute_in_which_the_fleet_is_silent() -> None:
    assert looked(30, 50, 40, silent=frozenset({1}))[:3] == [
        (2, *[300] * 3),
        (5, *[300] * 6),
        (14, *[0] * 6, *[400] * 3),
    ]
