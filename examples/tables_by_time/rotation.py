"""The rotation of tables by time: what is made, raised, lowered, exported and deleted, given the tables that exist.

It is level-triggered: each turn looks at the tables as they are, and a turn that failed or never ran is made up for by
the next one. Nothing here knows a clock or a client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from periods import PeriodError, Periods

# How long before its period a table has its whole capacity: turns may fail for that long
READY: Final = timedelta(days=2)
# Amazon DynamoDB Developer Guide, "Point-in-time recovery" (read 2026-11): the latest restorable time is typically five
# minutes ago; an export is of twice as long ago
_EXPORT_AGE: Final = timedelta(minutes=10)
Kind = Literal["make", "raise", "lower", "recover", "export", "unprotect", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodTable:
    """A table of a time series as it is.

    Attributes:
        read: Provisioned read units per second.
        write: Provisioned write units per second.
        is_active: Whether its status is `ACTIVE`; any other table is left alone until it is.
        is_protected: Whether it has deletion protection.
        has_recovery: Whether point-in-time recovery is on, without which a table cannot be exported.
        exports: The status of each full export of this table, and the instant whose items it has. By default none.
    """

    read: int
    write: int
    is_active: bool
    is_protected: bool
    has_recovery: bool
    exports: Sequence[tuple[str, datetime]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationStep:
    """One thing to do with one table.

    Attributes:
        kind: `make` the table, with deletion protection; `raise` or `lower` its capacity; turn on its point-in-time
            recovery (`recover`); begin its `export`; turn off its deletion protection (`unprotect`); `delete` it.
        table: The table's name.
        read: For `make`, `raise` and `lower`: the read units that it gets.
        write: The same, of writes.
        at: For `export`: the instant whose items are exported.
        why: The reason, as a sentence for the log.
    """

    kind: Kind
    table: str
    why: str
    read: int = 0
    write: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """What the tables of a time series have before, in and after their periods.

    A table is made two periods ahead, with the capacity of past ones and the warm throughput of the current one. It has
    its whole capacity from two days before its period until no writer writes to it any more. The capacity of a current
    or future table is never lowered.

    Attributes:
        periods: The declaration of the tables.
        read: Read units per second of the current table, 1 or more.
        write: Write units per second of the current table, 1 or more.
        past_read: Read units per second of a past table, 1 to *read*. By default 1.
        past_write: Write units per second of a past table, 1 to *write*. By default 1.
        retention: How long after the end of its period a table is kept, at least `periods.late` and an hour. Then it is
            exported, and deleted when the export is complete. By default tables are kept for ever.

    Raises:
        PeriodError: A value is not valid.

    Example:
        ```python
        rotation = Rotation(
            periods=Periods("events"), read=50, write=400, past_read=10, retention=timedelta(days=90)
        )
        ```
    """

    periods: Periods
    read: int
    write: int
    past_read: int = 1
    past_write: int = 1
    retention: timedelta | None = None

    def __post_init__(self) -> None:
        """Check the declaration."""
        for name, most in (("read", None), ("write", None), ("past_read", self.read), ("past_write", self.write)):
            units = getattr(self, name)
            if not isinstance(units, int) or units < 1 or (most is not None and units > most):
                allowed = "1 or more" if most is None else f"1 to {most:,}, the units of the current table"
                raise PeriodError(f"rotation: {name}: got {units!r}, allowed: whole numbers, {allowed}")
        least = self.periods.late + timedelta(hours=1)
        if self.retention is not None and self.retention < least:
            raise PeriodError(
                f"rotation: retention: got {self.retention}, allowed: {least} or more, an hour more than the periods' "
                "late; None keeps tables for ever"
            )

    def is_expired(self, start: datetime, now: datetime) -> bool:
        """Whether the table of the period that begins at *start* is to be exported and deleted."""
        return self.retention is not None and now >= self.periods.next_period(start) + self.retention

    def steps(self, seen: Mapping[str, PeriodTable], now: datetime) -> Sequence[RotationStep]:
        """Return what is to be done now, at most one step for each table, the most urgent first.

        Args:
            seen: The tables that exist, by name; others than those of the periods are ignored.
            now: The present time, with a time zone.
        """
        starts = self.periods.upcoming(now)
        found = [step for start in starts if (step := self._before_end(start, seen, now)) is not None]
        past = sorted(
            (start, name)
            for name in seen
            if (start := self.periods.start_of(name)) is not None and start < starts[0] and seen[name].is_active
        )
        return (*found, *(step for start, name in past for step in self._after_end(start, name, seen[name], now)))

    def _before_end(self, start: datetime, seen: Mapping[str, PeriodTable], now: datetime) -> RotationStep | None:
        """Return the step for a current or future table."""
        name = self.periods.name_for(start)
        is_ready = start - READY <= now
        table = seen.get(name)
        if table is None:
            read, write = (self.read, self.write) if is_ready else (self.past_read, self.past_write)
            why = f"the period begins at {start:%Y-%m-%d} UTC"
            return RotationStep(kind="make", table=name, read=read, write=write, why=why)
        if not table.is_active:
            return None
        if is_ready and (table.read < self.read or table.write < self.write):
            # what somebody raised by hand stays
            read, write = max(table.read, self.read), max(table.write, self.write)
            why = f"the period begins at {start:%Y-%m-%d} UTC, and the capacity is {table.read}/{table.write}"
            return RotationStep(kind="raise", table=name, read=read, write=write, why=why)
        if not table.has_recovery:
            return RotationStep(kind="recover", table=name, why="point-in-time recovery is off")
        return None

    def _after_end(self, start: datetime, name: str, table: PeriodTable, now: datetime) -> Iterator[RotationStep]:
        """Yield the step for a past table, if there is one."""
        closes = self.periods.closes(start)
        if now < closes:
            return
        is_expired = self.is_expired(start, now)
        complete = [at for status, at in table.exports if status == "COMPLETED" and at >= closes]
        if table.read > self.past_read or table.write > self.past_write:
            read, write = min(table.read, self.past_read), min(table.write, self.past_write)
            why = f"nobody writes to it since {closes:%Y-%m-%d %H:%M} UTC"
            yield RotationStep(kind="lower", table=name, read=read, write=write, why=why)
        elif not table.has_recovery:
            yield RotationStep(kind="recover", table=name, why="point-in-time recovery is off")
        elif not is_expired:
            return
        elif complete:
            why = f"its retention is over, and the export of {max(complete):%Y-%m-%d %H:%M} UTC is complete"
            yield RotationStep(kind="unprotect" if table.is_protected else "delete", table=name, why=why)
        elif not any(status == "IN_PROGRESS" and at >= closes for status, at in table.exports):
            # a retention is long enough that nobody wrote to the table since then
            yield RotationStep(kind="export", table=name, at=now - _EXPORT_AGE, why="its retention is over")
