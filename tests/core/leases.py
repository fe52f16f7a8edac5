"""A lease as tests want it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from highwater.core import Dimension
from highwater.core.boosts import Lease

NOW = datetime(2027, 3, 4, 2, 0, 30, tzinfo=UTC)


def lease(**changed: Any) -> Lease:
    """A boost of the table's writes by 800 for half an hour from NOW on, with these changes."""
    given: dict[str, Any] = {
        "id": "nightly-1",
        "table": "orders",
        "index": None,
        "dimension": Dimension.WRITE,
        "units": 800,
        "start": NOW,
        "end": NOW + timedelta(minutes=30),
        "owner": "arn:aws:sts::123456789012:assumed-role/Loader/job",
        "reason": "nightly load",
    }
    return Lease(**(given | changed))
