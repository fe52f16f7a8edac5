"""A hazard: a part of a change that AWS refuses, that destroys something, or whose effect is not known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HazardKind(StrEnum):
    """The subject of a hazard, as `--accept KIND=TABLE` names it."""

    REMOVED = "removed"
    REPLACED = "replaced"
    MOVED = "moved"
    MARK_LOWERED = "mark-lowered"
    TWO_TARGETS = "two-targets"
    OWNER_CHANGED = "owner-changed"
    INDEXES = "indexes"
    REPLICA = "replica"
    CAPACITY = "capacity"
    UNKNOWN = "unknown"


class Consequence(StrEnum):
    """The effect of a hazard.

    REFUSED: AWS refuses the deploy. DESTROYED: a table, replica or target is lost. INTERRUPTED: requests fail for a
    while. KEPT: nothing is lost. UNKNOWN: it depends on a value that is not known before the deploy.
    """

    REFUSED = "refused"
    DESTROYED = "destroyed"
    INTERRUPTED = "interrupted"
    KEPT = "kept"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TableHazard:
    """A hazard of one table.

    Attributes:
        kind: Its subject.
        consequence: Its effect.
        what: The change and its effect, in words.
        fix: The steps that avoid it; empty if there are none.
        subject: The change, as `its name changes`, for a line that says that it is not known; empty for the kind's.
    """

    kind: HazardKind
    consequence: Consequence
    what: str
    fix: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Hazard:
    """A hazard with its table.

    Attributes:
        kind: Its subject.
        table: The table's name in reports.
        stage: The table's stage, empty for none.
        consequence: Its effect.
        what: The change and its effect, in words.
        fix: The steps that avoid it; empty if there are none.
        is_accepted: Whether the user has accepted it.
    """

    kind: HazardKind
    table: str
    stage: str
    consequence: Consequence
    what: str
    fix: str = ""
    is_accepted: bool = False

    @property
    def is_finding(self) -> bool:
        """Whether it makes the exit status 1: unless it is accepted, or each table stays in use with its data."""
        is_harmless = self.consequence in (Consequence.KEPT, Consequence.UNKNOWN)
        return not self.is_accepted and (self.kind is HazardKind.REPLACED or not is_harmless)

    @property
    def is_unknown(self) -> bool:
        """Whether its effect is not known, and the user has not accepted it."""
        return self.consequence is Consequence.UNKNOWN and not self.is_accepted

    @property
    def key(self) -> str:
        """Its kind and table, as `--accept` takes them: `removed=Prod/Shop/Orders`."""
        return f"{self.kind}={self.table}"

    @property
    def text(self) -> str:
        """The whole hazard on one line."""
        return f"{self.table}: {self.what}{f'; {self.fix}' if self.fix else ''}"
