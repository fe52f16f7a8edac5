"""Compilation of windows to the scheduled actions of Application Auto Scaling (AAS).

A target's windows are read as a week that repeats in local time; those without an effect are left out; what remains
becomes actions with absolute floors and ceilings (docs/decisions/0004).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from itertools import product
from zoneinfo import ZoneInfo

from highwater.core.errors import PlanError
from highwater.core.findings import Finding, conflict, error
from highwater.core.limits import MAX_SCHEDULED_ACTIONS_PER_TARGET
from highwater.core.plan.plan import Target, TargetWindow
from highwater.core.plan.windows import DAYS, Window, covers_minute, once_span, openings, weekly_spans
from highwater.core.plan.zones import MINUTES_PER_DAY, MINUTES_PER_WEEK, aware, changes, constant_shift, gaps, instant
from highwater.core.schedule.bounds import Bounds, bounds_at, bounds_with, timeline


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
    # AAS rejects ':', '/' and '|' in names of scheduled actions
    return timezone.replace("/", ".")


# Two years stand for all: recurring windows and clock changes are rules that repeat every year
_SAMPLE_YEARS = (2026, 2032)
# Between two clock changes all weeks are alike. These days contain a whole week of openings on either side.
_AROUND_CHANGE = timedelta(days=10)


class WindowsMeetError(Exception):
    """Two windows of zones with different clock changes overlap or touch."""

    def __init__(self, first: Window, second: Window) -> None:
        self.first = first
        self.second = second
        super().__init__(first.name, second.name)


@dataclass(frozen=True, slots=True)
class Week:
    """Recurring windows of zones with a constant difference.

    Attributes:
        timezone: IANA name of the zone in which the week is expressed.
        zone: The zone of that name.
        windows: The windows, each with the minutes by which its own zone is ahead of *zone*.
    """

    timezone: str
    zone: ZoneInfo
    windows: tuple[tuple[TargetWindow, int], ...]

    def open_at(self, minute: int) -> tuple[TargetWindow, ...]:
        """Return the windows that are open at *minute* of a week without clock change."""
        return tuple(w for w, shift in self.windows if covers_minute(w.window, minute % MINUTES_PER_WEEK, shift))


def weeks_of(target: Target) -> tuple[Week, ...]:
    """Return the target's recurring windows, one week for each group of zones with a constant difference.

    A week is expressed in the zone of its group that is first in the alphabet.
    """
    by_zone: dict[str, list[tuple[TargetWindow, int]]] = {}
    recurring = [w for w in target.windows if w.window.is_recurring]
    for target_window in sorted(recurring, key=lambda w: w.window.timezone):
        zone = target_window.window.zone
        for reference in by_zone:
            shift = constant_shift(zone, ZoneInfo(reference))
            if shift is not None:
                by_zone[reference].append((target_window, shift // timedelta(minutes=1)))
                break
        else:
            by_zone[target_window.window.timezone] = [(target_window, 0)]
    return tuple(Week(name, ZoneInfo(name), tuple(windows)) for name, windows in by_zone.items())


def changes_of_week(
    target: Target, open_windows: tuple[TargetWindow, ...], week: Week
) -> tuple[tuple[int, Bounds], ...]:
    """Return the minutes of the week at which actions must run, each with the bounds from then on.

    These are the minutes at which the bounds change, and, where a clock change may skip such a minute, the end of the
    skipped time.
    """

    def bounds_from(minute: int) -> Bounds:
        return bounds_with(target, (*open_windows, *week.open_at(minute)))

    edges = {edge for target_window, shift in week.windows for edge in edges_of(target_window, shift)}
    minutes = {minute for minute in edges if bounds_from(minute) != bounds_from(minute - 1)}
    for gap in gaps(week.zone):
        length = gap.end_minute - gap.start_minute
        if any((minute - gap.start_minute) % MINUTES_PER_WEEK < length for minute in minutes):
            # AAS may run an action of a skipped time late, by the length of the gap: a second action then corrects it
            minutes |= {(gap.end_minute + delay) % MINUTES_PER_WEEK for delay in (0, length)}
    return tuple((minute, bounds_from(minute)) for minute in sorted(minutes))


def edges_of(target_window: TargetWindow, shift: int) -> tuple[int, ...]:
    """Return the minutes of the week at which the window opens or closes, in a zone *shift* minutes behind its own."""
    return tuple(
        (minute - shift) % MINUTES_PER_WEEK
        for opens, length in weekly_spans(target_window.window)
        for minute in (opens, opens + length)
    )


def refuse_meeting_windows(target: Target, weeks: tuple[Week, ...]) -> None:
    """Raise `WindowsMeetError` if windows of different weeks overlap or touch: their actions would reset each other."""
    if len(weeks) < 2:
        return
    clock_changes = {at for week in weeks for at, _, _ in changes(week.zone) if at.year in _SAMPLE_YEARS}
    spans = [span for week in weeks for span in _spans_around(target, week, clock_changes)]
    latest: dict[str, tuple[datetime, TargetWindow]] = {}
    for opens, closes, timezone, target_window in sorted(spans, key=lambda span: span[:3]):
        for other, (other_closes, other_window) in latest.items():
            if other != timezone and other_closes >= opens:
                raise WindowsMeetError(other_window.window, target_window.window)
        if timezone not in latest or latest[timezone][0] < closes:
            latest[timezone] = (closes, target_window)


def _spans_around(
    target: Target, week: Week, clock_changes: Iterable[datetime]
) -> Iterator[tuple[datetime, datetime, str, TargetWindow]]:
    """Yield the openings of the week's windows around clock changes, and the runs of its actions, of length 0.

    The runs matter for the action at the end of a skipped hour: it runs in every week, also when no window opens then.
    """
    runs = [(minute, _owner(week, minute)) for minute, _ in changes_of_week(target, (), week)]
    for change in clock_changes:
        start, end = change - _AROUND_CHANGE, change + _AROUND_CHANGE
        for target_window, _ in week.windows:
            for opens, closes in openings(target_window.window, start, end):
                yield opens, closes, week.timezone, target_window
        first_day = start.astimezone(week.zone).date()
        midnight = datetime.combine(first_day - timedelta(days=first_day.weekday()), time())
        # the Monday before the first day, and those after it that the days may reach
        for days, (minute, owner) in product((0, 7, 14, 21), runs):
            at = instant(midnight + timedelta(days=days, minutes=minute), week.zone)
            yield at, at, week.timezone, owner


def _owner(week: Week, minute: int) -> TargetWindow:
    """The window that needs the action at *minute*: it opens or closes then, or in the skipped time before."""
    intervals = [(minute, 1)]
    for gap in gaps(week.zone):
        length = gap.end_minute - gap.start_minute
        if (minute - gap.end_minute) % MINUTES_PER_WEEK in (0, length):
            intervals.append((gap.start_minute, length))
    return next(
        target_window
        for first, length in intervals
        for target_window, shift in week.windows
        if any((edge - first) % MINUTES_PER_WEEK < length for edge in edges_of(target_window, shift))
    )


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
    with_window = [*comparable, (target_window, 0)]
    minutes = {edge for w, shift in with_window for edge in edges_of(w, shift)}
    return all(
        _bounds_of_minute(target, comparable, minute) == _bounds_of_minute(target, with_window, minute)
        for minute in minutes
    )


def _bounds_of_minute(target: Target, windows: list[tuple[TargetWindow, int]], minute: int) -> Bounds:
    return bounds_with(target, tuple(w for w, shift in windows if covers_minute(w.window, minute, shift)))


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
