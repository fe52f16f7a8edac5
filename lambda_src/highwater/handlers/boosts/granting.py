"""Whether a boost can be granted, or go on, as the table stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from highwater.aws.leases import TableLeases
from highwater.core.boosts import BoostCap, Grant, Lease, grant
from highwater.handlers.boosts.refusal import RefusedError
from highwater.handlers.boosts.state import TableState


def read_table(document: dict[str, Any]) -> str:
    """Return the table that a call is about; raises `RefusedError` for none."""
    table = document.get("table")
    if not isinstance(table, str) or not table:
        raise RefusedError(400, f"boost: table is {str(table)[:60]!r}; allowed: a table's name")
    return table


def grant_of(asked: Lease, known: TableLeases, cap: BoostCap, state: TableState) -> Grant:
    """Return what a lease gets beside those that are known."""
    return grant(
        asked,
        state.target(asked.key),
        known.leases,
        demand_units=state.demand(asked.key, known.boosted.get(asked.key, 0)),
        quota_units=state.scaled.plan.table_quota_units,
        cap_units=cap.of(asked.dimension),
    )


def grant_of_known(lease: Lease, known: TableLeases, cap: BoostCap, state: TableState) -> Grant:
    """Return what a lease got before, for a request that arrives again; its limits as they are now."""
    if lease.asked is None:
        return Grant(lease, lease.units)
    asked = replace(lease, units=lease.asked, asked=None)
    return Grant(asked, lease.units, grant_of(asked, known, cap, state).limits)


def check_room(more: Lease, known: TableLeases, cap: BoostCap, state: TableState) -> None:
    """Raise `RefusedError` unless a lease may go on for that time: others may have booked it, or the cap be lower."""
    found = grant_of(more, known, cap, state)
    if not found.is_whole:
        why = "; ".join(sentence for _, sentence in found.limits)
        raise RefusedError(409, f"{more.label}: boost {more.id} cannot be renewed: {why}")
