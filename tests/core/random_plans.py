"""Random plans whose edges like to fall into hours that clock changes skip or repeat, and a reading of their windows.

Everything here is told in minutes of 1970, see `aas_model`; the windows are read by this module's own few lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from highwater.core import Bounds, Capacity, Plan, ScheduledAction, Target, Window, compile_actions
from tests.core.aas_model import DAY, FIRST, Change, changes_only, clock_changes, clock_of, day_minute, instant_at
from tests.core.examples import examples

DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
SIXTY_DAYS = 60 * DAY
ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",  # by half an hour
    "Asia/Kolkata",
    "UTC",
    "America/Havana",  # skips the hour after midnight
    "Africa/Cairo",  # likewise, and repeats the one before
    "America/Santiago",
)
ALIKE = (("Europe/Berlin", "Europe/London"), ("Asia/Kolkata", "UTC"), ("America/New_York", "America/Toronto"))
UNLIKE = (
    ("Europe/Berlin", "America/New_York"),
    ("Africa/Cairo", "UTC"),
    ("Australia/Lord_Howe", "America/Santiago"),
    ("America/Havana", "America/New_York"),
)
ZERO = timedelta(0)
READ, WRITE = Capacity.fixed(7), Capacity.autoscaled(min_capacity=5, max_capacity=60)


def law(count: int) -> settings:
    return settings(
        max_examples=examples(count),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


# --- an independent reading of windows ------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def openings_of(window: Window, first: int, last: int) -> list[tuple[int, int]]:
    """First minute and the minute after the last of each opening, by the sentences of `Window`'s docstring.

    Those of recurring windows on the local days from *first* to *last*.
    """
    clock, lead = clock_of(window.timezone), int(window.lead.total_seconds()) // 60
    if window.days is None:
        walls = [(wall_of(window.start) - lead, wall_of(window.end))]
    else:
        names = window.days.split(",") if isinstance(window.days, str) else window.days
        opens, closes = clock_minutes(window.start), clock_minutes(window.end)
        if closes <= opens:
            closes += DAY
        walls = [
            (midnight + opens - lead, midnight + closes)
            for midnight in range(first, last, DAY)
            if DAYS[(midnight // DAY + 3) % 7] in names
        ]
    return [(clock.when(opens), clock.when(closes)) for opens, closes in walls]


def clock_minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def wall_of(text: str) -> int:
    return day_minute(date.fromisoformat(text[:10])) + clock_minutes(text[11:])


def reading(target: Target, start: int, end: int) -> tuple[Change, ...]:
    """Floor and ceiling at *start* and at every change before *end*: the highest of the base and the open windows."""
    # an opening lasts two days at most, a lead one, and no clock is further from UTC than one
    days = (start // DAY - 4) * DAY, (end // DAY + 4) * DAY
    spans = [(opens, closes, w.min, w.max) for w in target.windows for opens, closes in openings_of(w.window, *days)]
    spans = [span for span in spans if span[0] < end and span[1] > start]
    edges = {start, *(at for span in spans for at in span[:2] if start <= at < end)}
    waiting, opened, steps = sorted(spans, key=itemgetter(0), reverse=True), [], []
    for at in sorted(edges):
        while waiting and waiting[-1][0] <= at:
            opened.append(waiting.pop())
        opened = [span for span in opened if at < span[1]]
        floor = max([int(target.capacity.min_capacity), *(span[2] for span in opened if span[2] is not None)])
        ceiling = max([int(target.capacity.max_capacity), *(span[3] for span in opened if span[3] is not None)])
        steps.append((at, Bounds(floor, ceiling if target.capacity.is_autoscaled else floor)))
    return changes_only(steps)


def value_at(changes: Sequence[Change], minute: int) -> Bounds:
    return changes[bisect_right(changes, minute, key=itemgetter(0)) - 1][1]


# --- random plans ---------------------------------------------------------------------------------------------------


@lru_cache
def change_minutes(timezone: str) -> list[int]:
    """The minutes of 2027 at which the zone's clocks change; two days of New York's for a zone without."""
    year = range(day_minute(date(2027, 1, 1)), day_minute(date(2028, 1, 1)))
    return [at for at, _, _ in clock_changes(timezone) if at in year] or change_minutes("America/New_York")


@lru_cache
def touchy_walls(timezone: str) -> list[tuple[int, int]]:
    """The stretches of local time of 2027 that the clocks skip or repeat, a little more on both sides."""
    found = []
    for at, expected, shown in clock_changes(timezone) or clock_changes("America/New_York"):
        if at in range(day_minute(date(2027, 1, 1)), day_minute(date(2028, 1, 1))):
            found.append((min(expected, shown) - 10, max(expected, shown) + 10))
    return found


@lru_cache
def touchy_times(timezone: str) -> SearchStrategy[int]:
    """Minutes of a day in or close to a stretch that is skipped or repeated, round ones before others."""
    times = sorted({wall % DAY for low, high in touchy_walls(timezone) for wall in range(low, high + 1)})
    return st.sampled_from([t for t in times if t % 30 == 0]) | st.sampled_from(times)


@lru_cache
def times_of_day(timezone: str) -> SearchStrategy[int]:
    return touchy_times(timezone) | st.sampled_from(range(0, DAY, 30)) | st.integers(0, DAY - 1)


@lru_cache
def day_sets(timezone: str) -> SearchStrategy[tuple[str, ...]]:
    """Days of the week, above all those of the changes and their neighbours."""
    touchy = {(wall // DAY + 3 + step) % 7 for span in touchy_walls(timezone) for wall in span for step in (-1, 0, 1)}
    few = st.sets(st.sampled_from(sorted(touchy)), min_size=1, max_size=3)
    return (few | st.sets(st.integers(0, 6), min_size=1) | st.just(set(range(7)))).map(
        lambda days: tuple(DAYS[day] for day in sorted(days))
    )


# made once each: Hypothesis examines a strategy anew for every one that it is handed
NAMES = st.sampled_from("abcdefgh")
LEADS = st.sampled_from([0, 0, 5, 30, 60, 90, 240, 1440]) | st.integers(0, 400)
LENGTHS = st.sampled_from([30, 60, 90, 600, DAY, 3 * DAY, 14 * DAY, 40 * DAY]) | st.integers(1, 400)
DIMENSIONS = st.sampled_from([("write",), ("read",), ("read", "write")])
FLOORS = st.sampled_from([None, 3, 10, 20, 20, 40, 60, 80])
CEILINGS = st.sampled_from([None, None, 30, 70, 90])


@lru_cache
def sampled(values: Sequence[Any]) -> SearchStrategy[Any]:
    return st.sampled_from(values)


@lru_cache
def whole_numbers(low: int, high: int) -> SearchStrategy[int]:
    return st.integers(low, high)


@st.composite
def units(draw: DrawFn) -> dict[str, int]:
    """Bounds that pass the checks: a floor above the ceiling brings a ceiling of its own."""
    given_units: dict[str, int] = {}
    for dimension in draw(DIMENSIONS):
        floor, ceiling = draw(FLOORS), draw(CEILINGS)
        if floor is not None:
            given_units[f"{dimension}_min"] = floor
        if ceiling is None and dimension == "write" and (floor or 0) > 60:
            ceiling = 100
        if ceiling is not None or floor is None:
            given_units[f"{dimension}_max"] = max(ceiling or 65, floor or 0)
    return given_units


UNITS = units()


@lru_cache
def ends_of_day(timezone: str) -> SearchStrategy[tuple[bool, int]]:
    """Minutes of a day, or how long after the start: whether it is the latter, and the minutes."""
    at = times_of_day(timezone) | st.just(DAY)
    return st.tuples(st.just(False), at) | st.tuples(st.just(True), st.integers(1, 90))


@lru_cache
@st.composite
def recurring_windows(draw: DrawFn, timezone: str) -> Window:
    start = draw(times_of_day(timezone))
    is_length, end = draw(ends_of_day(timezone))
    return Window.weekly(
        draw(NAMES),
        days=draw(day_sets(timezone)),
        start=hh_mm(start),
        end=hh_mm((start + end) % DAY if is_length else end),
        timezone=timezone,
        lead=timedelta(minutes=draw(LEADS)),
        **draw(UNITS),
    )


@lru_cache
def recurring_lists(timezone: str, most: int) -> SearchStrategy[list[Window]]:
    return st.lists(recurring_windows(timezone), max_size=most)


@lru_cache
def starts_around(timezone: str) -> SearchStrategy[tuple[bool, int]]:
    """Minutes of 1970 in or at a stretch that is skipped or repeated, or from some day on: whether it is the latter."""
    touchy = st.sampled_from([wall for low, high in touchy_walls(timezone) for wall in range(low, high + 1)])
    anywhere = st.builds(lambda days, minute: days * DAY + minute, st.integers(-35, 35), times_of_day(timezone))
    return st.tuples(st.just(False), touchy) | st.tuples(st.just(True), anywhere)


@lru_cache
@st.composite
def one_off_windows(draw: DrawFn, timezone: str, around: int) -> Window:
    is_from_day, start = draw(starts_around(timezone))
    start += around // DAY * DAY if is_from_day else 0
    return Window.once(
        draw(NAMES),
        start=iso(start),
        end=iso(start + draw(LENGTHS)),
        timezone=timezone,
        lead=timedelta(minutes=draw(LEADS)),
        **draw(UNITS),
    )


@lru_cache
def one_off_lists(timezone: str, around: int, least: int, most: int) -> SearchStrategy[list[Window]]:
    return st.lists(one_off_windows(timezone, around), min_size=least, max_size=most)


def hh_mm(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def iso(wall: int) -> str:
    return f"{instant_at(wall):%Y-%m-%dT%H:%M}"


@st.composite
def spans(draw: DrawFn, timezone: str) -> int:
    """The first of sixty days that hold a clock change of the zone, near or far."""
    change: int = draw(sampled(tuple(change_minutes(timezone))))
    days: int = draw(sampled((0, 1, 2, 7, 30, 58)))
    return change - days * DAY - draw(whole_numbers(0, DAY - 1))


def named_apart(windows: Sequence[Window]) -> tuple[Window, ...]:
    return tuple(replace(window, name=f"{window.name}{number}") for number, window in enumerate(windows))


@st.composite
def schedules(draw: DrawFn, zones: Sequence[str] = ZONES, most: int = 4) -> tuple[Plan, int]:
    """A plan with windows in one zone, and the first of sixty days to look at it."""
    timezone = draw(sampled(zones))
    start = draw(spans(timezone))
    recurring = draw(recurring_lists(timezone, most))
    windows = [*recurring, *draw(one_off_lists(timezone, start // DAY * DAY + 30 * DAY, 0 if recurring else 1, 2))]
    return Plan(read=READ, write=WRITE, windows=named_apart(draw(st.permutations(windows)))), start


@lru_cache
def few_days(day: int) -> SearchStrategy[set[int]]:
    """A day of the week, those beside it, or several of these."""
    return st.sets(st.sampled_from([(day + step) % 7 for step in (-1, 0, 1)]), min_size=1)


@st.composite
def crowded_schedules(draw: DrawFn) -> tuple[Plan, int]:
    """A plan whose windows share a few edges, most of them in or at a stretch that is skipped or repeated."""
    timezone = draw(sampled(ZONES))
    change = draw(sampled(tuple(change_minutes(timezone))))
    local_day = clock_of(timezone).walls[change - FIRST] // DAY
    times = sorted(
        {wall % DAY for low, high in touchy_walls(timezone) for wall in range(low, high + 1) if wall % 30 == 0}
    )
    clock, lead = sampled((*times, (times[-1] + 90) % DAY)), sampled((0, 0, 30, 60))
    days = few_days((local_day + 3) % 7)
    windows = []
    for _ in range(draw(whole_numbers(1, 3))):
        names = tuple(DAYS[day] for day in sorted(draw(days)))
        start, end, minutes = hh_mm(draw(clock)), hh_mm(draw(clock)), timedelta(minutes=draw(lead))
        windows.append(
            Window.weekly("w", days=names, start=start, end=end, timezone=timezone, lead=minutes, **draw(UNITS))
        )
    for _ in range(draw(whole_numbers(0, 2))):
        opens = (local_day + draw(sampled((-8, -7, -1, 0, 1)))) * DAY + draw(clock)
        closes = (local_day + draw(sampled((-6, -1, 0, 1, 7, 14)))) * DAY + draw(clock)
        minutes = timedelta(minutes=draw(lead))
        if closes > opens:
            start, end = iso(opens), iso(closes)
            windows.append(Window.once("o", start=start, end=end, timezone=timezone, lead=minutes, **draw(UNITS)))
    return Plan(read=READ, write=WRITE, windows=named_apart(windows)), change - draw(sampled((2, 10, 30))) * DAY


@st.composite
def mixed_schedules(draw: DrawFn, pairs: Sequence[tuple[str, str]]) -> tuple[Plan, int]:
    """Like `schedules`, with recurring and one-off windows of two zones."""
    pair = draw(sampled(pairs))
    start = draw(spans(draw(sampled(pair))))
    windows = [draw(recurring_windows(timezone)) for timezone in pair]
    for timezone in pair:
        windows += draw(recurring_lists(timezone, 1))
        windows += draw(one_off_lists(timezone, start // DAY * DAY + 30 * DAY, 0, 1))
    return Plan(read=READ, write=WRITE, windows=named_apart(draw(st.permutations(windows)))), start


def compiled(plan: Plan, as_of: datetime | None = None) -> list[tuple[Target, tuple[ScheduledAction, ...]]]:
    return [(target, compile_actions(target, as_of)) for target in plan.targets()]


def moments_near_changes(changes: Sequence[Change], start: int, end: int) -> list[int]:
    """Minutes at, before and after each change, that lie within [*start*, *end*)."""
    near = {at + step for at, _ in changes for step in (-1, 0, 1)}
    return sorted(at for at in near if start <= at < end)
