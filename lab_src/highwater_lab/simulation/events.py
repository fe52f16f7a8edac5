"""What happened, and why: the events of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from highwater.core import Dimension


class EventKind(StrEnum):
    """What an event is."""

    SCALE_OUT = "scale-out"
    SCALE_IN = "scale-in"
    BOUNDS = "bounds"
    REFUSED = "refused"
    SPLIT = "split"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that explains a change, or why none came.

    Attributes:
        at: Seconds from the start of the traffic.
        index: Name of the index, `None` for the table.
        dimension: READ or WRITE, `None` for what concerns both.
        kind: What it is.
        text: The sentence for a person.
        before: Units per second before; with `after` for capacity events only.
        after: Units per second after.
    """

    at: int
    index: str | None
    dimension: Dimension | None
    kind: EventKind
    text: str
    before: int | None = None
    after: int | None = None
