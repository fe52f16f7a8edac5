"""From windows to scheduled actions.

Every action sets both bounds to what the plan asks for from its time on, so none depends on another having run.

1. Recurring windows make a week that repeats, told in local time. Zones whose clocks always differ by the same are
   told in one of them; windows of zones with different rules must never meet, as no weekly schedule could say what
   holds where they do.
2. Each minute of that week at which the bounds change becomes an action; equal times and bounds on several days
   share one. Where a clock change may skip such a minute, the end of the skipped hour gets an action too.
3. One-off windows cut time into sections. In each the week is compiled anew with the one-off's bounds under it, and
   the section's beginning gets a single action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from highwater.core.errors import PlanError
from highwater.core.findings import Finding, conflict, error
from highwater.core.limits import MAX_SCHEDULED_ACTIONS_PER_TARGET
from highwater.core.plan.plan import Target, TargetWindow
from highwater.core.plan.windows import once_span
from highwater.core.plan.zones import MINUTES_PER_DAY, aware, instant
from highwater.core.schedule.actions import ScheduledAction, recurring_action, single_action
from highwater.core.schedule.bounds import Bounds, bounds_at, bounds_with, timeline
from highwater.core.schedule.effective import effective
from highwater.core.schedule.weeks import Week, WindowsMeetError, changes_of_week, refuse_meeting_windows, weeks_of

# AAS may run an action some seconds late: an end half a minute before the next section keeps the last run in
_BEFORE_SECTION_END = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class _Section:
    """A stretch of time with the same one-off windows open; `None` is the beginning or end of time."""

    start: datetime | None
    end: datetime | None
    open_windows: tuple[TargetWindow, ...]


def compile_actions(target: Target, as_of: datetime | None = None) -> tuple[ScheduledAction, ...]:
    """The scheduled actions that keep *target* at its bounds, in the order of their names.

    Args:
        target: The target; its windows must have passed `check`.
        as_of: Leave out what lies before this instant. By default nothing is left out.

    Raises:
        PlanError: Windows of zones with different clock rules meet, or more than 200 actions would be needed.
    """
    try:
        # indexes that follow their table have its actions
        return _compiled(replace(target, index=None), None if as_of is None else aware(as_of))
    except WindowsMeetError as meeting:
        raise PlanError((_inexpressible(target, meeting),)) from None
    except _TooManyActionsError as many:
        raise PlanError((_too_many(target, many.count),)) from None


class _TooManyActionsError(Exception):
    """More actions than a target takes."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(count)


@lru_cache(maxsize=1024)
def _compiled(target: Target, as_of: datetime | None) -> tuple[ScheduledAction, ...]:
    target = effective(target)
    if not target.windows:
        return ()
    weeks = weeks_of(target)
    refuse_meeting_windows(target, weeks)
    actions: dict[str, ScheduledAction] = {}
    for section in _sections(target, as_of):
        if section.start is not None:
            action = single_action(section.start, bounds_at(target, section.start))
            actions[action.name] = action
        for action in _section_actions(target, section, weeks, as_of):
            actions[action.name] = action
    if len(actions) > MAX_SCHEDULED_ACTIONS_PER_TARGET:
        raise _TooManyActionsError(len(actions))
    return tuple(actions[name] for name in sorted(actions))


def _sections(target: Target, as_of: datetime | None) -> tuple[_Section, ...]:
    spans = {w: once_span(w.window) for w in target.windows if not w.window.is_recurring}
    cuts = sorted({at for span in spans.values() for at in span})
    sections: list[_Section] = []
    for start, end in zip([None, *cuts], [*cuts, None], strict=True):
        if as_of is not None and end is not None and end <= as_of:
            continue
        open_windows = tuple(
            w for w, (opens, closes) in spans.items() if start is not None and opens <= start and closes > start
        )
        if sections and _underlying(target, sections[-1]) == bounds_with(target, open_windows):
            sections[-1] = _Section(sections[-1].start, end, sections[-1].open_windows)
            continue
        starts_later = start is not None and (as_of is None or start > as_of)
        sections.append(_Section(start if starts_later else None, end, open_windows))
    return tuple(sections)


def _underlying(target: Target, section: _Section) -> Bounds:
    return bounds_with(target, section.open_windows)


def _section_actions(
    target: Target, section: _Section, weeks: tuple[Week, ...], as_of: datetime | None
) -> tuple[ScheduledAction, ...]:
    recurring = tuple(action for week in weeks for action in _week_actions(target, section, week, as_of))
    if section.start is None and weeks and not any(changes_of_week(target, section.open_windows, w) for w in weeks):
        recurring = _steady_actions(target, section, weeks)
    if section.start is None or section.end is None:
        return recurring
    if recurring and section.end - section.start > timedelta(weeks=len(recurring) + 1):
        return recurring  # each week has a change at least, so single actions would be more
    changes = timeline(target, section.start, section.end)[1:]
    if len(changes) <= len(recurring):
        return tuple(single_action(at, bounds) for at, bounds in changes)
    return recurring


def _steady_actions(target: Target, section: _Section, weeks: tuple[Week, ...]) -> tuple[ScheduledAction, ...]:
    """A daily action for bounds that never change: windows lift them over the base, and nothing else would set them."""
    bounds = bounds_with(target, (*section.open_windows, *(w for week in weeks for w in week.open_at(0))))
    end = None if section.end is None else section.end - _BEFORE_SECTION_END
    return (recurring_action(tuple(range(7)), 0, "UTC", bounds, None, end),)


def _week_actions(target: Target, section: _Section, week: Week, as_of: datetime | None) -> tuple[ScheduledAction, ...]:
    days_of: dict[tuple[int, Bounds], list[int]] = {}
    for minute, bounds in changes_of_week(target, section.open_windows, week):
        day, minute_of_day = divmod(minute, MINUTES_PER_DAY)
        days_of.setdefault((minute_of_day, bounds), []).append(day)
    actions = []
    for (minute_of_day, bounds), days in days_of.items():
        start = end = None
        if section.start is not None:
            start = _first_run(days, minute_of_day, week.zone, section.start)
        if section.end is not None:
            end = section.end - _BEFORE_SECTION_END
            if (start or _first_run(days, minute_of_day, week.zone, as_of or _LONG_AGO)) >= end:
                continue
        actions.append(recurring_action(tuple(sorted(days)), minute_of_day, week.timezone, bounds, start, end))
    return tuple(actions)


_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def _first_run(days: list[int], minute_of_day: int, zone: ZoneInfo, after: datetime) -> datetime:
    """The first time later than *after*, told in UTC, at which a schedule on those days really runs."""
    # no zone is behind UTC by more than a day
    day = after.date() - timedelta(days=1)
    while True:
        wall = datetime.combine(day, time()) + timedelta(minutes=minute_of_day)
        at = instant(wall, zone)
        # a skipped time has no run of its own
        if day.weekday() in days and at > after and at.astimezone(zone).replace(tzinfo=None) == wall:
            return at
        day += timedelta(days=1)


def _inexpressible(target: Target, meeting: WindowsMeetError) -> Finding:
    first, second = meeting.first, meeting.second
    return conflict(
        "windowsAcrossZones",
        f"windows {first.name!r} and {second.name!r} of {target.label}",
        f"they overlap or touch, but the clocks of {first.timezone} and {second.timezone} do not change alike, and a "
        "scheduled action knows one clock",
        "give both the same timezone, or keep them apart; with windows_held_by= a ThrottleAwareScaler holds any mix",
    )


def _too_many(target: Target, count: int) -> Finding:
    return error(
        "tooManyActions",
        f"windows of {target.label}",
        f"{count} scheduled actions",
        f"at most {MAX_SCHEDULED_ACTIONS_PER_TARGET} on a scalable target, a fixed quota",
        "merge windows, let them start and end at the same times, or take out one-off windows that are over; with "
        "windows_held_by= a ThrottleAwareScaler holds more",
    )
