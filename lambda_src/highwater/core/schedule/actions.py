"""The scheduled actions of Application Auto Scaling (AAS) that a plan compiles to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from highwater.core.plan.windows import DAYS
from highwater.core.schedule.bounds import Bounds


@dataclass(frozen=True, slots=True)
class ScheduledAction:
    """One AAS scheduled action. It sets both bounds, so that its result does not depend on earlier actions.

    Attributes:
        name: Unique within the target, made from the times and bounds only, so that two plans with the same effect have
            the same action names.
        schedule: `cron(...)` with six fields, or `at(...)`.
        timezone: IANA name of the time zone of the schedule.
        bounds: Floor and ceiling that the action sets.
        start: The first run of a recurring action that begins later, an aware instant. AAS runs an action at its start
            and then by its schedule, so the start is always a time that matches the schedule.
        end: The aware instant after which a recurring action does not run any more.
    """

    name: str
    schedule: str
    timezone: str
    bounds: Bounds
    start: datetime | None = None
    end: datetime | None = None


def recurring_action(
    days: tuple[int, ...],
    minute_of_day: int,
    timezone: str,
    bounds: Bounds,
    start: datetime | None = None,
    end: datetime | None = None,
) -> ScheduledAction:
    """Create the action for *minute_of_day* on *days* (Monday is 0), both local to *timezone*."""
    hour, minute = divmod(minute_of_day, 60)
    names = _days_text(days)
    schedule = f"cron({minute} {hour} * * ? *)" if len(days) == 7 else f"cron({minute} {hour} ? * {names} *)"
    name = f"{'daily' if len(days) == 7 else names} {hour:02}{minute:02} {_zone_text(timezone)} {_bounds_text(bounds)}"
    if start is not None:
        name += f" from {_instant_text(start)}"
    elif end is not None:
        name += f" until {_instant_text(end)}"
    return ScheduledAction(name, schedule, timezone, bounds, start, end)


def single_action(at: datetime, bounds: Bounds) -> ScheduledAction:
    """Create the action for one instant, scheduled in UTC, which has no clock changes."""
    at = at.astimezone(UTC)
    return ScheduledAction(
        f"once {_instant_text(at)} {_bounds_text(bounds)}", f"at({at:%Y-%m-%dT%H:%M:%S})", "UTC", bounds
    )


def _days_text(days: tuple[int, ...]) -> str:
    """Return days in cron syntax: three or more consecutive days as a range."""
    parts: list[str] = []
    run: list[int] = []
    for day in (*days, 99):
        if run and day != run[-1] + 1:
            parts.extend([f"{DAYS[run[0]]}-{DAYS[run[-1]]}"] if len(run) > 2 else [DAYS[d] for d in run])
            run = []
        run.append(day)
    return ",".join(parts)


def _bounds_text(bounds: Bounds) -> str:
    return f"min {bounds.min} max {bounds.max}"


def _instant_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H%M} UTC"


def _zone_text(timezone: str) -> str:
    # AAS refuses ':', '/' and '|' in names of scheduled actions
    return timezone.replace("/", ".")
