"""Leases as JSON-ready values: as the coordinator keeps them, and as it answers them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from highwater.core.boosts.lease import Lease
from highwater.core.names import target_label
from highwater.core.plan.plan import TargetKey
from highwater.core.units import Dimension


def lease_document(lease: Lease) -> dict[str, Any]:
    """Return the lease as JSON-ready values; `lease_of_document` reads them."""
    return {
        "id": lease.id,
        "table": lease.table,
        "index": lease.index,
        "dimension": str(lease.dimension),
        "units": lease.units,
        "is_total": lease.is_total,
        "start": _text(lease.start),
        "end": _text(lease.end),
        "owner": lease.owner,
        "reason": lease.reason,
        "asked": lease.asked,
        "released": None if lease.released is None else _text(lease.released),
    }


def lease_of_document(document: dict[str, Any]) -> Lease:
    """Read what `lease_document` wrote; raises `KeyError`, `TypeError` or `ValueError` for anything else."""
    released = document["released"]
    return Lease(
        id=document["id"],
        table=document["table"],
        index=document["index"],
        dimension=Dimension(document["dimension"]),
        units=document["units"],
        is_total=document["is_total"],
        start=datetime.fromisoformat(document["start"]),
        end=datetime.fromisoformat(document["end"]),
        owner=document["owner"],
        reason=document["reason"],
        asked=document.get("asked"),
        released=None if released is None else datetime.fromisoformat(released),
    )


def target_text(key: TargetKey) -> str:
    """Return a target as the key of a JSON object: `write`, `by_status/write`."""
    index, dimension = key
    return str(dimension) if index is None else f"{index}/{dimension}"


def target_of_text(text: str) -> TargetKey:
    """Return the target that `target_text` wrote; raises `ValueError` for any other text."""
    index, _, dimension = text.rpartition("/")
    return index or None, Dimension(dimension)


def described_lease(lease: Lease) -> dict[str, Any]:
    """Return the lease as answers and the command show it, with the target's name in words."""
    return lease_document(lease) | {"target": target_label(lease.index, lease.dimension)}


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
