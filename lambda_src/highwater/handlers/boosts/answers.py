"""The coordinator's answers: what was granted, what limited it, what it costs, and whether it is there yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from highwater.core.boosts import Grant, Lease
from highwater.core.boosts.documents import described_lease
from highwater.core.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS
from highwater.core.plan.plan import TargetKey
from highwater.core.prices import unit_hour_micro_usd
from highwater.core.units import Units
from highwater.handlers.boosts.state import TableState

_MICRO = 1_000_000
# the least that a table can do without growth
_PARTITION = Units(PARTITION_READ_UNITS, PARTITION_WRITE_UNITS)
# DynamoDB does not say how long it adds partitions; docs/decisions/0009 has what is known.
_GROWTH = "DynamoDB adds partitions first, which takes minutes; a high-water mark in the plan has them added before"


def outcome_of(grants: Sequence[Grant]) -> str:
    """Return `whole`, `part` or `refused`."""
    if not any(each.units for each in grants):
        return "refused"
    return "whole" if all(each.is_whole for each in grants) else "part"


def grant_documents(grants: Iterable[Grant], state: TableState, region: str) -> list[dict[str, Any]]:
    """Return what each target of a request gets, with the limits and the price of an hour in US dollars."""
    found = []
    for each in grants:
        price = unit_hour_micro_usd(
            region, each.asked.dimension, is_infrequent_access=state.described.is_infrequent_access
        )
        found.append(
            described_lease(each.asked)
            | {
                "asked": each.asked.units,
                "units": each.units,
                "limits": [{"code": str(code), "sentence": sentence} for code, sentence in each.limits],
                "usd_per_hour": None if price is None else price * each.units / _MICRO,
            }
        )
    return found


def notes_on(keys: Iterable[TargetKey], leases: Sequence[Lease], state: TableState) -> list[str]:
    """Return what a job should know of the targets that it boosts: growth that comes first, and scaling that rests."""
    notes = []
    for key in keys:
        label, wanted = state.target(key).label, state.wanted(key, leases)
        mark = state.described.marks.get(key[0])
        if mark is not None and wanted > max(mark.of(key[1]), _PARTITION.of(key[1])):
            notes.append(f"{label}: {wanted:,} units/s is above the high-water mark of {mark.of(key[1]):,}; {_GROWTH}")
        if state.is_paused(key):
            notes.append(f"{label}: scaling is suspended, so no floor is set; highwater resume {state.scaled.table}")
    return notes


def target_documents(keys: Iterable[TargetKey], leases: Sequence[Lease], state: TableState) -> list[dict[str, Any]]:
    """Return how far each target is: what it is to have now, its floor and its capacity in units per second."""
    return [
        {
            "target": state.target(key).label,
            "wanted": state.wanted(key, leases),
            "floor": state.floor(key),
            "provisioned": state.provisioned(key),
            "is_ready": state.is_ready(key, leases),
        }
        for key in keys
    ]
