"""Compilation of windows to the scheduled actions of Application Auto Scaling (AAS).

A target's windows are read as kinds of local days that repeat (`calendars`); those without an effect are left out; what
remains becomes actions with absolute floors and ceilings (docs/decisions/0004), on days that cron can name (0047).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from highwater.core.errors import PlanError
from highwater.core.findings import Finding, conflict, error
from highwater.core.limits import MAX_SCHEDULED_ACTIONS_PER_TARGET
from highwater.core.plan.plan import Target, TargetWindow
from highwater.core.plan.windows import Window, once_span, openings
from highwater.core.plan.zones import aware, changes, constant_shift, instant
from highwater.core.schedule.bounds import Bounds, bounds_at, bounds_with, timeline
from highwater.core.schedule.calendars import Calendar, DayChange, calendars_of, changes_of, day_kinds, days_with
from highwater.core.schedule.cron_days import CronDays, DaySet, day_in, days_of_cron, number_of


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
    days: CronDays,
    minute_of_day: int,
    timezone: str,
    bounds: Bounds,
    start: datetime | None = None,
    end: datetime | None = None,
) -> ScheduledAction:
    """Create the action for *minute_of_day* on *days*, both local to *timezone*."""
    hour, minute = divmod(minute_of_day, 60)
    name = f"{days} {hour:02}{minute:02} {_zone_text(timezone)} {_bounds_text(bounds)}"
    if start is not None:
        name += f" from {_instant_text(start)}"
    elif end is not None:
        name += f" until {_instant_text(end)}"
    return ScheduledAction(name, f"cron({minute} {hour} {days.fields})", timezone, bounds, start, end)


def single_action(at: datetime, bounds: Bounds) -> ScheduledAction:
    """Create the action for one instant, scheduled in UTC, which has no clock changes."""
    at = at.astimezone(UTC)
    return ScheduledAction(
        f"once {_instant_text(at)} {_bounds_text(bounds)}", f"at({at:%Y-%m-%dT%H:%M:%S})", "UTC", bounds
    )


def _bounds_text(bounds: Bounds) -> str:
    return f"min {bounds.min} max {bounds.max}"


def _instant_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H%M} UTC"


def _zone_text(timezone: str) -> str:
    # AAS rejects ':', '/' and '|' in names of scheduled actions
    return timezone.replace("/", ".")


_DAY = timedelta(days=1)
# Two years stand for all: weekly windows and clock changes are rules that repeat every year
_SAMPLE_YEARS = (2026, 2032)
# Between two clock changes all weeks are alike. These days contain a whole week of openings on either side.
_AROUND_CHANGE = timedelta(days=10)
# With a monthly window no week is like another, until days of the week and of months repeat
_ALL_YEARS = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2054, 1, 1, tzinfo=UTC))
# From a month's first Monday to the next one's: bounds that change every month do so at least once in this time
_BETWEEN_CHANGES = timedelta(days=35)


class WindowsMeetError(Exception):
    """Two windows of zones with different clock changes overlap or touch."""

    def __init__(self, first: Window, second: Window) -> None:
        self.first = first
        self.second = second
        super().__init__(first.name, second.name)


class _UnnamedDaysError(Exception):
    """No cron schedule can name the days on which bounds must be set at a minute of the day."""

    def __init__(self, calendar: Calendar, change: DayChange, days: DaySet) -> None:
        self.calendar = calendar
        self.change = change
        self.days = days
        super().__init__(calendar.timezone)


@dataclass(frozen=True, slots=True)
class _Run:
    """When actions of a calendar run, each day at most once, and the bounds that they set.

    Attributes:
        minute: The minute of the day.
        bounds: The bounds.
        days: The days, one set for each action.
        changes: The changes for which they run.
    """

    minute: int
    bounds: Bounds
    days: tuple[CronDays, ...]
    changes: tuple[DayChange, ...]


def _runs(target: Target, open_windows: tuple[TargetWindow, ...], calendar: Calendar) -> tuple[_Run, ...]:
    """Return the runs of a calendar's actions while *open_windows* are open too; raises `_UnnamedDaysError`.

    An action runs on each day on which its bounds must be set at its time. If no schedule can name these days alone, it
    also runs on days on which those bounds are in force at that time anyway.
    """
    grouped: dict[tuple[int, Bounds], list[DayChange]] = {}
    for change in changes_of(target, open_windows, calendar):
        grouped.setdefault((change.minute, change.bounds), []).append(change)
    runs = []
    for (minute, bounds), together in grouped.items():
        needed = 0
        for change in together:
            needed |= change.days
        days, unnamed = days_of_cron(needed, days_with(target, open_windows, calendar, minute, bounds))
        if unnamed:
            raise _UnnamedDaysError(calendar, next(each for each in together if each.days & unnamed), unnamed)
        runs.append(_Run(minute, bounds, days, tuple(together)))
    return tuple(runs)


def refuse_meeting_windows(target: Target, calendars: tuple[Calendar, ...]) -> None:
    """Raise `WindowsMeetError` if windows of different calendars overlap or touch: their actions reset each other."""
    if len(calendars) < 2:
        return
    if any(calendar.has_months for calendar in calendars):
        stretches = [_ALL_YEARS]
    else:
        at_changes = {at for each in calendars for at, _, _ in changes(each.zone) if at.year in _SAMPLE_YEARS}
        stretches = [(at - _AROUND_CHANGE, at + _AROUND_CHANGE) for at in at_changes]
    spans = [span for calendar in calendars for span in _spans_in(target, calendar, stretches)]
    latest: dict[str, tuple[datetime, TargetWindow]] = {}
    for opens, closes, timezone, target_window in sorted(spans, key=lambda span: span[:3]):
        for other, (other_closes, other_window) in latest.items():
            if other != timezone and other_closes >= opens:
                raise WindowsMeetError(other_window.window, target_window.window)
        if timezone not in latest or latest[timezone][0] < closes:
            latest[timezone] = (closes, target_window)


def _spans_in(
    target: Target, calendar: Calendar, stretches: Iterable[tuple[datetime, datetime]]
) -> Iterator[tuple[datetime, datetime, str, TargetWindow]]:
    """Yield the openings of the calendar's windows in stretches of time, and the runs of its actions, of length 0.

    The runs matter for actions on days without a change, such as the one at the end of an hour that is skipped.
    """
    runs = _runs(target, (), calendar)
    for start, end in stretches:
        for target_window, _ in calendar.windows:
            for opens, closes in openings(target_window.window, start, end):
                yield opens, closes, calendar.timezone, target_window
        day, last = start.date() - _DAY, end.date() + _DAY
        while day <= last:
            for run in runs:
                if any(days.has(day) for days in run.days):
                    at = instant(datetime.combine(day, time()) + timedelta(minutes=run.minute), calendar.zone)
                    owners = [change.owner for change in run.changes if change.days >> number_of(day) & 1]
                    yield at, at, calendar.timezone, (owners or [run.changes[0].owner])[0]
            day += _DAY


def effective(target: Target) -> Target:
    """Return the target without windows that raise no bound, so that they add no scheduled actions and no time zone.

    A window raises no bound if it is not higher than the base. A recurring window also raises none if, whenever it is
    open, other recurring windows with the same clock changes are open and at least as high.
    """
    if not target.windows:
        return target
    base = bounds_with(target, ())
    kept = [w for w in target.windows if bounds_with(target, (w,)) != base]
    # of two windows with the same effect, remove the one whose zone is later in the alphabet
    for target_window in sorted(kept, key=_from_low_to_high):
        others = tuple(w for w in kept if w is not target_window)
        if _is_hidden(target, target_window, others):
            kept = list(others)
    return replace(target, windows=tuple(w for w in target.windows if w in kept))


def _from_low_to_high(target_window: TargetWindow) -> tuple[object, ...]:
    window = target_window.window
    descending_zone = tuple(-ord(letter) for letter in window.timezone)
    return (target_window.min or 0, target_window.max or 0, descending_zone, window.start, window.end, window.name)


def _is_hidden(target: Target, target_window: TargetWindow, others: tuple[TargetWindow, ...]) -> bool:
    """Whether other recurring windows with the same clock changes are open and as high whenever this one is open."""
    window = target_window.window
    if not window.is_recurring:
        return False
    # windows with other clock changes may cover this one in summer and not in winter
    comparable = [
        (w, shift // timedelta(minutes=1))
        for w in others
        if w.window.is_recurring and (shift := constant_shift(w.window.zone, window.zone)) is not None
    ]
    return all(
        bounds_with(target, tuple(w for w in kind.open_at(minute) if w != target_window))
        == bounds_with(target, kind.open_at(minute))
        for kind in day_kinds((*comparable, (target_window, 0)))
        for minute in kind.edges
    )


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
        PlanError: Windows of zones with different clock changes overlap or touch, no schedule can name the days of a
            change, or the target needs more than 200 actions.
    """
    try:
        # without the index name, so that indexes that follow their table share its cache entry
        return _compiled(replace(target, index=None), None if as_of is None else aware(as_of))
    except WindowsMeetError as meeting:
        raise PlanError((_inexpressible(target, meeting),)) from None
    except _TooManyActionsError as many:
        raise PlanError((_too_many(target, many.count),)) from None
    except _UnnamedDaysError as unnamed:
        raise PlanError((_unnamed(target, unnamed),)) from None


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
    calendars = calendars_of(target)
    refuse_meeting_windows(target, calendars)
    actions: dict[str, ScheduledAction] = {}
    for section in _sections(target, as_of):
        if section.start is not None:
            action = single_action(section.start, bounds_at(target, section.start))
            actions[action.name] = action
        for action in _section_actions(target, section, calendars, as_of):
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
    target: Target, section: _Section, calendars: tuple[Calendar, ...], as_of: datetime | None
) -> tuple[ScheduledAction, ...]:
    runs = [(calendar, run) for calendar in calendars for run in _runs(target, section.open_windows, calendar)]
    recurring = tuple(
        action
        for calendar, run in runs
        for action in _actions_of(section, calendar.timezone, calendar.zone, run, as_of)
    )
    if section.start is None and calendars and not runs:
        recurring = _steady_actions(target, section, calendars)
    if section.start is None or section.end is None:
        return recurring
    if recurring and section.end - section.start > _BETWEEN_CHANGES * (len(recurring) + 1):
        return recurring  # single actions would be more
    changes = timeline(target, section.start, section.end)[1:]
    if len(changes) <= len(recurring):
        return tuple(single_action(at, bounds) for at, bounds in changes)
    return recurring


def _steady_actions(target: Target, section: _Section, calendars: tuple[Calendar, ...]) -> tuple[ScheduledAction, ...]:
    """A daily action for bounds that never change but differ from the base, which otherwise no action would set."""
    always = tuple(w for calendar in calendars for w in day_kinds(calendar.windows)[0].open_at(0))
    bounds = bounds_with(target, (*section.open_windows, *always))
    end = None if section.end is None else section.end - _BEFORE_SECTION_END
    return (recurring_action(CronDays(of_week=tuple(range(7))), 0, "UTC", bounds, None, end),)


def _actions_of(
    section: _Section, timezone: str, zone: ZoneInfo, run: _Run, as_of: datetime | None
) -> Iterator[ScheduledAction]:
    for days in run.days:
        start = end = None
        if section.start is not None:
            start = _first_run(days, run.minute, zone, section.start)
        if section.end is not None:
            end = section.end - _BEFORE_SECTION_END
            if (start or _first_run(days, run.minute, zone, as_of or _LONG_AGO)) >= end:
                continue
        yield recurring_action(days, run.minute, timezone, run.bounds, start, end)


_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def _first_run(days: CronDays, minute_of_day: int, zone: ZoneInfo, after: datetime) -> datetime:
    """The first instant after *after* at which the schedule runs, in UTC, without days that skip the time of day."""
    # no zone is behind UTC by more than a day
    day = after.date() - _DAY
    while True:
        if days.has(day):
            wall = datetime.combine(day, time()) + timedelta(minutes=minute_of_day)
            at = instant(wall, zone)
            # the schedule does not run at a local time that the clock change skips
            if at > after and at.astimezone(zone).replace(tzinfo=None) == wall:
                return at
        day += _DAY


def _inexpressible(target: Target, meeting: WindowsMeetError) -> Finding:
    first, second = meeting.first, meeting.second
    return conflict(
        "windowsAcrossZones",
        f"windows {first.name!r} and {second.name!r} of {target.label}",
        f"the windows overlap or touch, but the clock changes of {first.timezone} and {second.timezone} differ, and a "
        "scheduled action has a single time zone",
        "give both windows the same timezone, or leave time between them",
    )


def _unnamed(target: Target, unnamed: _UnnamedDaysError) -> Finding:
    change, day = unnamed.change, day_in(unnamed.days)
    names = [w.window.name for w, _ in unnamed.calendar.windows if w.window.weeks_differ or w == change.owner]
    return conflict(
        "daysNotInCron",
        f"{'windows' if len(names) > 1 else 'window'} {', '.join(map(repr, names))} of {target.label}",
        f"at {change.minute // 60:02}:{change.minute % 60:02} {unnamed.calendar.timezone} on {day} and other days an "
        f"action has to set min {change.bounds.min} and max {change.bounds.max}, and no cron schedule of Application "
        "Auto Scaling names these days without others",
        "let a window on a weekday of the month open, lead included, on the day of its start, and leave time between a "
        "monthly window and others",
    )


def _too_many(target: Target, count: int) -> Finding:
    return error(
        "tooManyActions",
        f"windows of {target.label}",
        f"{count} scheduled actions",
        f"at most {MAX_SCHEDULED_ACTIONS_PER_TARGET} on a scalable target, a fixed quota",
        "merge windows, let them start and end at the same times, or remove one-off windows that have ended",
    )
