"""Compilation of windows to scheduled actions.

Every action sets both bounds to the values that the plan asks for from the action's time on. So no action depends on
an earlier one having run.

1. Recurring windows make a week that repeats in local time. Windows of zones with a constant difference share a week,
   in one of these zones. Windows of zones with different clock changes must not overlap or touch, because no weekly
   schedule can express their combination.
2. Each minute of the week at which the bounds change becomes an action. Days with the same time and bounds share an
   action. Where a clock change may skip such a minute, the end of the skipped hour gets an action too.
3. One-off windows divide time into sections. In each section, the week is compiled again with the bounds of the open
   one-off windows added, and a single action at the start of the section.
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

# AAS may run an action some seconds late. A recurring action ends this long before the next section starts, so that a
# late run cannot overwrite the bounds of the next section.
_BEFORE_SECTION_END = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class _Section:
    """A time interval with the same one-off windows open. `None` means that the interval has no start or no end."""

    start: datetime | None
    end: datetime | None
    open_windows: tuple[TargetWindow, ...]


def compile_actions(target: Target, as_of: datetime | None = None) -> tuple[ScheduledAction, ...]:
    """Return the scheduled actions that apply the planned bounds of *target*, sorted by name.

    Args:
        target: The target; its windows must have passed `check`.
        as_of: Omit actions for the time before this instant. By default, nothing is omitted.

    Raises:
        PlanError: Windows of zones with different clock changes overlap or touch, or the target needs more than 200
            actions.
    """
    try:
        # without the index name, so that indexes that follow their table share its cache entry
        return _compiled(replace(target, index=None), None if as_of is None else aware(as_of))
    except WindowsMeetError as meeting:
        raise PlanError((_inexpressible(target, meeting),)) from None
    except _TooManyActionsError as many:
        raise PlanError((_too_many(target, many.count),)) from None


class _TooManyActionsError(Exception):
    """The target needs more scheduled actions than AAS allows."""

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
        if sections and _bounds_of_section(target, sections[-1]) == bounds_with(target, open_windows):
            sections[-1] = _Section(sections[-1].start, end, sections[-1].open_windows)
            continue
        starts_later = start is not None and (as_of is None or start > as_of)
        sections.append(_Section(start if starts_later else None, end, open_windows))
    return tuple(sections)


def _bounds_of_section(target: Target, section: _Section) -> Bounds:
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
        return recurring  # each week has at least one change, so single actions would be more
    changes = timeline(target, section.start, section.end)[1:]
    if len(changes) <= len(recurring):
        return tuple(single_action(at, bounds) for at, bounds in changes)
    return recurring


def _steady_actions(target: Target, section: _Section, weeks: tuple[Week, ...]) -> tuple[ScheduledAction, ...]:
    """A daily action for bounds that never change but differ from the base, which otherwise no action would set."""
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
    """The first instant after *after* at which the schedule runs, in UTC, without days that skip the time of day."""
    # no zone is behind UTC by more than a day
    day = after.date() - timedelta(days=1)
    while True:
        wall = datetime.combine(day, time()) + timedelta(minutes=minute_of_day)
        at = instant(wall, zone)
        # the schedule does not run at a local time that the clock change skips
        if day.weekday() in days and at > after and at.astimezone(zone).replace(tzinfo=None) == wall:
            return at
        day += timedelta(days=1)


def _inexpressible(target: Target, meeting: WindowsMeetError) -> Finding:
    first, second = meeting.first, meeting.second
    return conflict(
        "windowsAcrossZones",
        f"windows {first.name!r} and {second.name!r} of {target.label}",
        f"the windows overlap or touch, but the clock changes of {first.timezone} and {second.timezone} differ, and a "
        "scheduled action has a single time zone",
        "give both windows the same timezone, or leave time between them",
    )


def _too_many(target: Target, count: int) -> Finding:
    return error(
        "tooManyActions",
        f"windows of {target.label}",
        f"{count} scheduled actions",
        f"at most {MAX_SCHEDULED_ACTIONS_PER_TARGET} on a scalable target, a fixed quota",
        "merge windows, let them start and end at the same times, or remove one-off windows that have ended",
    )
