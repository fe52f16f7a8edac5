"""Target tracking at 70 % with jobs that know what is coming: a boost two minutes before each jump of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

from highwater.core import Dimension
from highwater.core.boosts import Lease, units_for_rate
from highwater.core.tracking import TargetTracking
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.policies.declared import Declared
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Run, TableSetup, simulate
from highwater_lab.traffic import Stream, Traffic

NAME: Final = "native:70, boosted"
_TARGET_PERCENT: Final = 70
_AHEAD, _LEASE = timedelta(minutes=2), timedelta(minutes=30)
# A jump is half as much again as the ten minutes before, and stays for five.
_JUMP_PERCENT, _BEFORE, _STAYS = 150, 10, 5
_WRITE: Final = Dimension.WRITE


def jumps(traffic: Traffic) -> Iterator[tuple[int, int]]:
    """Yield the minute of each jump of the table's writes, and how many units per second it adds."""
    rates = traffic.rates.get(Stream(None, _WRITE), ())
    step = 60 // traffic.bin_seconds
    minutes = [-(-max(rates[at : at + step]) // QUANTA_PER_UNIT) for at in range(0, len(rates), step)]
    quiet_until = 0
    for minute in range(1, len(minutes) - _STAYS):
        before = max(minutes[max(0, minute - _BEFORE) : minute])
        after = minutes[minute : minute + _STAYS]
        if minute >= quiet_until and min(after) * 100 >= before * _JUMP_PERCENT:
            quiet_until = minute + int(_LEASE.total_seconds()) // 60
            # what comes while the lease lasts, as the job knows it
            yield minute, max(minutes[minute:quiet_until]) - before


def _lease(traffic: Traffic, table: str, minute: int, added: int) -> Lease:
    """A lease for a jump, of what it adds, from two minutes before it for half an hour."""
    start = max(traffic.start, traffic.start + timedelta(minutes=minute) - _AHEAD)
    return Lease(
        id=f"jump at {minute}",
        table=table,
        index=None,
        dimension=_WRITE,
        units=units_for_rate(added, _TARGET_PERCENT),
        start=start,
        end=start + _LEASE,
        owner="job",
    )


def run_boosted(
    setup: TableSetup, traffic: Traffic, known: Iterable[tuple[int, int]] | None = None, timing: Timing | None = None
) -> Run:
    """Simulate target tracking at 70 % with boosts of jumps that jobs know: by default all of the traffic."""
    table = setup.resources[0]
    tracked = replace(table.write, tracking=TargetTracking(target_percent=_TARGET_PERCENT))
    resources = (table.with_targets(table.read, tracked), *setup.resources[1:])
    leases = tuple(_lease(traffic, setup.name, *jump) for jump in (jumps(traffic) if known is None else known))
    return simulate(replace(setup, resources=resources, leases=leases), traffic, Declared(), timing=timing)
