"""Recurring windows as a week that repeats in local time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import product
from zoneinfo import ZoneInfo

from highwater.core.plan.plan import Target, TargetWindow
from highwater.core.plan.windows import Window, covers_minute, openings, weekly_spans
from highwater.core.plan.zones import MINUTES_PER_WEEK, changes, constant_shift, gaps, instant
from highwater.core.schedule.bounds import Bounds, bounds_with

# Two years stand for all: recurring windows and clock changes are rules that repeat every year
_SAMPLE_YEARS = (2026, 2032)
# Between two clock changes every week is like the others. These days hold a whole week of openings on either side.
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
