"""Events that start the scaler: a tick, an alarm, a boost, tables handed on by another run, or a call by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from highwater.aws.cloudwatch import target_of_event

TICK = "tick"
ALARM = "alarm"
TABLES = "tables"
BOOST = "boost"


@dataclass(frozen=True, slots=True)
class ScalerEvent:
    """One parsed event.

    Attributes:
        kind: `tick`, `alarm`, `tables`, or `boost` if a job waits for the answer.
        now: The event's time, in UTC; `None` for a call by hand without a time, for which AWS's time is used.
        tables: The tables to review, empty for all.
        attempt: The number of earlier runs for these tables.
    """

    kind: str
    now: datetime | None
    tables: tuple[str, ...] = ()
    attempt: int = 0

    @classmethod
    def read(cls, event: Any) -> ScalerEvent:
        """Parse an event; raises `ValueError` with the event if it is not one of the scaler's."""
        if not isinstance(event, dict):
            message = f"event must be a JSON object, got {_shown(event)}"
            raise ValueError(message)
        if event.get("source") == "aws.cloudwatch":
            target = target_of_event(event)
            if target is None:
                message = f"alarm {event.get('alarmArn')!r} is on no consumption of a table or index"
                raise ValueError(message)
            return cls(ALARM, _instant(event.get("time")), (target.table,))
        kind = event.get("highwater")
        if kind not in (TICK, TABLES, BOOST):
            message = f"event must be an alarm or say highwater: {TICK} or {TABLES}, got {_shown(event)}"
            raise ValueError(message)
        tables = event.get("tables", [])
        if not isinstance(tables, list) or any(not isinstance(name, str) for name in tables):
            message = f"tables must be a list of names, got {_shown(tables)}"
            raise ValueError(message)
        attempt = event.get("attempt", 0)
        if not isinstance(attempt, int) or attempt < 0:
            message = f"attempt must be a whole number, got {_shown(attempt)}"
            raise ValueError(message)
        return cls(kind, _instant(event.get("time")), tuple(tables), attempt)

    def again(self, tables: list[str], attempt: int) -> dict[str, Any]:
        """Return the event for a run for just these tables, with the same time."""
        event: dict[str, Any] = {"highwater": TABLES, "tables": tables, "attempt": attempt}
        return event if self.now is None else event | {"time": self.now.isoformat()}


def _instant(text: object) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        message = f"time must be an instant such as 2027-03-04T05:06:07Z, got {_shown(text)}"
        raise ValueError(message) from None
    if at.tzinfo is None:
        message = f"time must have a zone, got {_shown(text)}"
        raise ValueError(message)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        message = f"time must be within the calendar in UTC, got {_shown(text)}"
        raise ValueError(message) from None


def _shown(value: object) -> str:
    return repr(value)[:120]
