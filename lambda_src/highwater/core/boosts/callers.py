"""Who may boost what: callers as AWS names them, and what was granted to each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from highwater.core.names import table_of_label
from highwater.core.units import Dimension

# An assumed role, with the session's name after it, which whoever assumes the role chooses
_SESSION: Final = re.compile(r"arn:[^:]+:sts::(\d{12}):assumed-role/([^/]+)/(.+)")
_PRINCIPAL: Final = re.compile(r"arn:[^:]+:iam::(\d{12}):(role|user)/(?:.*/)?([^/]+)")
_EVENTS: Final = "events"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for a boost.

    Attributes:
        name: `role/Name` or `user/Name` with the account in front, or `events/source`: AWS has authenticated it.
        session: What the caller calls itself, such as the name of a Lambda function; for the log alone.
    """

    name: str
    session: str = ""

    @classmethod
    def of_arn(cls, arn: str) -> Caller | None:
        """Return the caller with the ARN that AWS gives to a function behind a URL; `None` for the account's root."""
        session = _SESSION.fullmatch(arn)
        if session is not None:
            return cls(f"{session[1]}:role/{session[2]}", session[3])
        principal = _PRINCIPAL.fullmatch(arn)
        return None if principal is None else cls(f"{principal[1]}:{principal[2]}/{principal[3]}")

    @classmethod
    def of_events(cls, source: str) -> Caller:
        """Return the caller that events with this source stand for; IAM policies say who may send them."""
        return cls(f"{_EVENTS}/{source}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostCap:
    """What one caller may boost.

    Attributes:
        caller: The caller's name, as `Caller.name`.
        max_read: The most units per second of reads, with all boosts of one table or index that are live at once.
        max_write: Likewise of writes. 0 for none.
        tables: Labels of the tables, `None` for all that the coordinator has.
    """

    caller: str
    max_read: int
    max_write: int
    tables: tuple[str, ...] | None = None

    @classmethod
    def from_json(cls, text: str) -> BoostCap:
        """Read what the constructs wrote; raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        document = json.loads(text)
        caller = document["caller"]
        found = Caller.of_arn(caller)
        tables = document.get("tables")
        return cls(
            caller=caller if found is None else found.name,
            max_read=int(document["max_read"]),
            max_write=int(document["max_write"]),
            tables=None if tables is None else tuple(tables),
        )

    def covers(self, table: str) -> bool:
        """Whether the table with that label is one of its tables."""
        return self.tables is None or table in self.tables or table_of_label(table)[0] in self.tables

    def of(self, dimension: Dimension) -> int:
        """Return the most units per second in one dimension."""
        return self.max_read if dimension is Dimension.READ else self.max_write


def find_cap(caps: Iterable[BoostCap], caller: Caller, table: str) -> BoostCap | None:
    """Return what *caller* may boost of a table, `None` for nothing; of several grants the highest figures count."""
    found = [cap for cap in caps if cap.caller == caller.name and cap.covers(table)]
    if not found:
        return None
    return BoostCap(
        caller=caller.name,
        max_read=max(cap.max_read for cap in found),
        max_write=max(cap.max_write for cap in found),
        tables=(table,),
    )
