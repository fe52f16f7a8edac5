"""Windows by the month: their days, and the laws of their actions over the ten years from 2026.

The days, the local clocks and the runs of actions are read a second time here, in the calendar's own terms.
"""

from __future__ import annotations

import calendar
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Bounds, Capacity, Plan, PlanError, ScheduledAction, Target, Window, check, compile_actions
from highwater.core.plan.month_days import MonthDay
from highwater.core.scaler import Mode, ScaledPlan, due_targets
from highwater.core.schedule.bounds import bounds_at, timeline
from highwater.core.schedule.cron_days import DAY_COUNT, FIRST_DAY, CronDays, _nameable, day_in, days_of_cron, moved
from tests.core.aas_model import DAY, Change, changes_only, day_minute, instant_at, walls_of_cron
from tests.core.random_plans import DAYS, clock_minutes, law, wall_of

ZERO = timedelta(0)
FIRST, LAST = date(2026, 1, 1), date(2036, 1, 1)
YEARS = day_minute(FIRST), day_minute(LAST)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "America/Havana", "Australia/Lord_Howe", "UTC")
BASE = {"low": 100, "high": 20_000}


def writes(*windows: Window) -> Target:
    capacity = Capacity.autoscaled(min_capacity=BASE["low"], max_capacity=BASE["high"])
    return Plan(read=capacity, write=capacity, windows=windows).targets()[1]


def monthly(name: str = "payday", start: str = "08:00", end: str = "18:00", units: int = 900, **more: Any) -> Window:
    fields = {"timezone": "Europe/Berlin", "write_min": units, "lead": ZERO, **more}
    return Window.monthly(name, start=start, end=end, **fields)


def office(units: int = 400, **more: Any) -> Window:
    fields = {"days": "MON-FRI", "start": "08:00", "end": "18:00", "timezone": "Europe/Berlin", "lead": ZERO, **more}
    return Window.weekly("office", write_min=units, **fields)


# --- a second reading of days, clocks and windows --------------------------------------------------------------------


def day_of(month_day: MonthDay, year: int, month: int) -> date:
    """The day in a month, from the month's sheet of weeks."""
    weeks = calendar.monthcalendar(year, month)
    if month_day.weekday is None:
        return date(year, month, min(31 if month_day.day == "last" else int(month_day.day or 0), max(weeks[-1])))
    of_that_weekday = [week[DAYS.index(month_day.weekday)] for week in weeks if week[DAYS.index(month_day.weekday)]]
    return date(year, month, of_that_weekday[-1 if month_day.nth == "last" else int(month_day.nth or 0) - 1])


@lru_cache(maxsize=200_000)
def reached(timezone: str, wall: int) -> tuple[int, bool]:
    """The minute at which the zone's clock shows *wall* first or jumps over it, and whether it shows it."""
    zone, local = ZoneInfo(timezone), datetime(1970, 1, 1) + timedelta(minutes=wall)  # noqa: DTZ001 - local time
    at = local.replace(tzinfo=zone).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None) == local:
        return int(at.timestamp()) // 60, True
    while (at - timedelta(minutes=1)).astimezone(zone).replace(tzinfo=None) > local:
        at -= timedelta(minutes=1)
    return int(at.timestamp()) // 60, False


def starts(window: Window) -> Iterator[date]:
    months = itertools.product(range(FIRST.year - 1, LAST.year + 1), range(1, 13))
    if window.month_day is not None:
        yield from (day_of(window.month_day, *month) for month in months)
        return
    days = (FIRST + timedelta(days=number) for number in range(-9, (LAST - FIRST).days + 9))
    names = "MON,TUE,WED,THU,FRI" if window.days == "MON-FRI" else str(window.days)
    yield from (day for day in days if DAYS[day.weekday()] in names)


def openings_of(window: Window) -> Iterator[tuple[int, int]]:
    lead = int(window.lead.total_seconds()) // 60
    if not window.is_recurring:
        walls = [(wall_of(window.start) - lead, wall_of(window.end))]
    else:
        opens, closes = clock_minutes(window.start), clock_minutes(window.end)
        closes += DAY if closes <= opens else 0
        walls = [(day_minute(day) + opens - lead, day_minute(day) + closes) for day in starts(window)]
    for first, last in walls:
        yield reached(window.timezone, first)[0], reached(window.timezone, last)[0]


def reading(target: Target) -> tuple[Change, ...]:
    """The bounds of the ten years, from the windows."""
    spans = [(*span, each.min, each.max) for each in target.windows for span in openings_of(each.window)]
    begin, end = YEARS
    edges = sorted({begin, *(at for span in spans for at in span[:2] if begin <= at < end)})
    waiting, opened, steps = sorted(spans, key=lambda span: span[0], reverse=True), [], []
    for at in edges:
        while waiting and waiting[-1][0] <= at:
            opened.append(waiting.pop())
        opened = [span for span in opened if at < span[1]]
        floors = [span[2] for span in opened if span[2] is not None]
        ceilings = [span[3] for span in opened if span[3] is not None]
        steps.append((at, Bounds(max([BASE["low"], *floors]), max([BASE["high"], *ceilings]))))
    return changes_only(steps)


def played(actions: Iterable[ScheduledAction], initial: Bounds, begin: int = YEARS[0]) -> tuple[Change, ...]:
    """The bounds of the ten years, from the actions. No two of them run in the same minute."""
    runs: dict[int, ScheduledAction] = {}
    for action in actions:
        if action.schedule.startswith("at("):
            minutes = {wall_of(action.schedule[3:19])}
        else:
            walls = walls_of_cron(action.schedule, FIRST - timedelta(days=2), LAST + timedelta(days=2))
            minutes = {at for wall in walls for at, is_shown in [reached(action.timezone, wall)] if is_shown}
        for minute in minutes:
            is_after = action.start is None or instant_at(minute) >= action.start
            if begin <= minute < YEARS[1] and is_after and (action.end is None or instant_at(minute) <= action.end):
                assert runs.setdefault(minute, action) is action, f"{runs[minute].name!r} and {action.name!r}"
    return changes_only([(begin, initial), *((minute, runs[minute].bounds) for minute in sorted(runs))])


def assert_held(*windows: Window) -> tuple[ScheduledAction, ...]:
    """For ten years, the actions set the bounds that the windows ask for, at every minute; return the actions."""
    target = writes(*windows)
    expected, actions = reading(target), compile_actions(target)
    assert played(actions, expected[0][1]) == expected, actions
    line = timeline(target, instant_at(YEARS[0]), instant_at(YEARS[1]))
    assert tuple((int(at.timestamp()) // 60, bounds) for at, bounds in line) == expected
    return actions


# --- days -----------------------------------------------------------------------------------------------------------

MONTH_DAYS = (
    *(MonthDay(day=day) for day in (1, 2, 15, 27, 28, 29, 30, 31, "last")),
    *(MonthDay(weekday=weekday, nth=nth) for weekday in DAYS for nth in (1, 2, 3, 4, "last")),
)


@pytest.mark.parametrize("month_day", MONTH_DAYS, ids=str)
def test_day_is_the_one_on_the_months_sheet(month_day: MonthDay) -> None:
    for year, month in itertools.product(range(2026, 2036), range(1, 13)):
        assert month_day.of(year, month) == day_of(month_day, year, month)


def test_day_that_a_month_lacks_is_its_last_one() -> None:
    days = [MonthDay(day=31).of(2027, month).day for month in range(1, 13)]
    assert days == [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    assert MonthDay(day=30).of(2028, 2) == MonthDay(day="last").of(2028, 2) == date(2028, 2, 29)


def test_days_are_told_in_words() -> None:
    told = [str(day) for day in (MonthDay(day=3), MonthDay(day="last"), MonthDay(weekday="fri", nth="last"))]
    assert told == ["day 3 of the month", "last day of the month", "last FRI of the month"]
    assert str(MonthDay(weekday="MON", nth=1)) == "first MON of the month"


def test_monthly_window_has_the_bounds_and_the_lead_that_it_is_given() -> None:
    bounds: dict[str, Any] = {"read_min": 11, "write_min": 22, "read_max": 33, "write_max": 44}
    made = Window.monthly(
        "payday", day=3, start="08:00", end="18:00", timezone="Asia/Tokyo", lead=timedelta(minutes=7), **bounds
    )
    assert {name: getattr(made, name) for name in bounds} == bounds
    assert (made.start, made.end, made.timezone, made.lead) == ("08:00", "18:00", "Asia/Tokyo", timedelta(minutes=7))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (monthly(day=3), "day 3 of the month"),
        (monthly(day="last"), "last day of the month"),
        (monthly(weekday="fri", nth=1), "first FRI of the month"),
        (monthly(weekday="FRI", nth="last"), "last FRI of the month"),
        (office(), "MON-FRI"),
        (office(days=["MON", "WED"]), "MON,WED"),
        (Window.once("sale", start="2027-11-26T00:00", end="2027-11-27T00:00", timezone="UTC", write_min=5), ""),
    ],
)
def test_days_of_a_window_as_text(made: Window, text: str) -> None:
    assert made.days_text == text


def test_plan_with_monthly_windows_is_read_as_it_was_written() -> None:
    fixed = Capacity.fixed(units=7)
    plan = Plan(read=fixed, write=fixed, windows=(monthly(day=3), monthly("w", weekday="FRI", nth="last")))
    assert Plan.from_json(plan.to_json()) == plan
    assert [each.get("month_day") for each in plan.to_document()["windows"]] == [
        {"day": 3},
        {"weekday": "FRI", "nth": "last"},
    ]


# --- the days that cron names ---------------------------------------------------------------------------------------


def test_each_set_of_days_is_that_of_its_cron_fields() -> None:
    last = FIRST_DAY + timedelta(days=DAY_COUNT)
    for rule, days in _nameable()[::7]:
        walls = walls_of_cron(f"cron(0 0 {rule.fields})", FIRST_DAY, last)
        numbers = {(wall - day_minute(FIRST_DAY)) // DAY for wall in walls}
        assert sum(1 << number for number in numbers) == days, rule
        assert all(rule.has(FIRST_DAY + timedelta(days=number)) == (number in numbers) for number in range(1500))


def test_days_are_named_alone_if_cron_can_and_with_permitted_ones_otherwise() -> None:
    sets = dict(_nameable())
    fridays = sets[CronDays(of_week=(4,), nth=-1)]
    assert days_of_cron(fridays, fridays | sets[CronDays(of_week=(5,))]) == ((CronDays(of_week=(4,), nth=-1),), 0)
    after = moved(fridays, 1)
    assert days_of_cron(after, sets[CronDays(of_week=(5,))]) == ((CronDays(of_week=(5,)),), 0)
    rules, unnamed = days_of_cron(after, after)
    assert (rules, day_in(unnamed)) == ((), date(2027, 2, 27))


# --- laws over ten years --------------------------------------------------------------------------------------------


# hours that clocks skip or repeat, over midnight, whole days and longer with the lead
TIMES = (
    ("Europe/Berlin", "00:00", "24:00", 5),
    ("Europe/Berlin", "02:15", "02:45", 0),
    ("America/New_York", "22:00", "03:00", 30),
    ("America/Havana", "00:00", "01:00", 90),
    ("Australia/Lord_Howe", "06:00", "06:00", 1440),
    ("UTC", "08:00", "18:00", 5),
)


@pytest.mark.parametrize(("timezone", "start", "end", "lead"), TIMES)
def test_window_on_a_day_of_the_month_is_never_refused_and_held_for_ten_years(
    timezone: str, start: str, end: str, lead: int
) -> None:
    for day in (1, 15, 28, 29, 30, "last"):
        assert_held(monthly(day=day, start=start, end=end, lead=timedelta(minutes=lead), timezone=timezone))


@pytest.mark.parametrize("timezone", ZONES)
@pytest.mark.parametrize(("start", "end"), [("01:30", "02:30"), ("23:30", "02:30")])
def test_window_on_a_weekday_of_the_month_is_held_for_ten_years(timezone: str, start: str, end: str) -> None:
    """On Sundays, on which most clocks change, and over the midnight after a month's last Friday."""
    for weekday, nth in (("SUN", 2), ("SUN", "last"), ("SUN", 1), ("FRI", "last")):
        assert_held(monthly(weekday=weekday, nth=nth, start=start, end=end, timezone=timezone))


def test_day_31_is_the_last_day() -> None:
    assert assert_held(monthly(day=31)) == assert_held(monthly(day="last"))


@pytest.mark.parametrize(
    "windows",
    [
        pytest.param((office(), monthly(day=1, start="20:00", end="23:00")), id="one after the other"),
        pytest.param((office(), monthly(day=1, start="18:00", end="22:00")), id="one opens as the other closes"),
        pytest.param((office(), monthly(weekday="FRI", nth=1, start="06:00", end="22:00")), id="over the first Friday"),
        pytest.param((monthly(day=1), monthly("again", day=1, start="09:00", end="12:00", units=5_000)), id="nested"),
        pytest.param((monthly(day=1), monthly("mid", day=15), monthly("end", day="last")), id="three a month"),
        pytest.param(
            (monthly(day=10), Window.once("sale", start="2028-02-10T12:00", end="2028-05-03T00:00", timezone="UTC",
                                          write_min=2_000, lead=ZERO)),
            id="a one-off window that ends between two openings",
        ),
        pytest.param(
            (monthly(day=1), monthly("kolkata", day=15, timezone="Asia/Kolkata", units=700)),
            id="zones that change apart, on different days",
        ),
        pytest.param(
            (monthly(day=1, start="00:30"), monthly("london", day=1, timezone="Europe/London")),
            id="zones that change alike",
        ),
    ],
)  # fmt: skip
def test_windows_by_the_month_and_others_are_held_for_ten_years(windows: tuple[Window, ...]) -> None:
    assert_held(*windows)


@st.composite
def random_windows(draw: st.DrawFn) -> tuple[Window, ...]:
    """One to three windows of one zone, at least one of them monthly."""
    zone = draw(st.sampled_from(ZONES))
    clock = st.sampled_from(["00:00", "01:30", "02:00", "02:30", "03:00", "08:00", "18:00", "23:30"])
    windows = []
    for number in range(draw(st.integers(1, 3))):
        times: dict[str, Any] = {
            "start": draw(clock),
            "end": draw(clock | st.just("24:00")),
            "timezone": zone,
            "write_min": draw(st.sampled_from([300, 500, 900])),
            "lead": timedelta(minutes=draw(st.sampled_from([0, 0, 5, 90]))),
        }
        if number and draw(st.booleans()):
            windows.append(Window.weekly(f"w{number}", days=draw(st.sampled_from([*DAYS, "MON-FRI"])), **times))
        else:
            day = draw(st.sampled_from(MONTH_DAYS))
            windows.append(Window.monthly(f"m{number}", day=day.day, weekday=day.weekday, nth=day.nth, **times))
    return tuple(windows)


@law(100)
@given(random_windows())
def test_windows_are_held_for_ten_years_or_refused(windows: tuple[Window, ...]) -> None:
    try:
        compile_actions(writes(*windows))
    except PlanError as refused:
        assert [finding.id for finding in refused.findings] == ["highwater:daysNotInCron"]  # noqa: PT017
    else:
        assert_held(*windows)


@law(40)
@given(random_windows(), st.integers(0, 9 * 365), st.sampled_from([-1, 0, 1]))
def test_deploys_near_an_edge_end_with_the_bounds_from_then_on(
    windows: tuple[Window, ...], days: int, minutes: int
) -> None:
    """A deploy sets the bounds of its time, and compiles what comes after: near the first edge after some day."""
    target = writes(*windows)
    expected = reading(target)
    later = [at for at, _ in expected if at > YEARS[0] + days * DAY]
    as_of = (later[0] if later else YEARS[0] + days * DAY) + minutes
    try:
        actions = compile_actions(target, instant_at(as_of))
    except PlanError:
        return
    now = bounds_at(target, instant_at(as_of))
    assert played(actions, now, as_of) == changes_only([(as_of, now), *(step for step in expected if step[0] > as_of)])


@law(40)
@given(random_windows())
def test_scaler_finds_each_edge(windows: tuple[Window, ...]) -> None:
    """Also of what actions cannot express: the target is due in the minute of each change, and its bounds are right."""
    target = writes(*windows)
    capacity = target.capacity
    scaled = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=Plan(read=capacity, write=capacity, windows=windows))
    for at, bounds in reading(target)[1:]:
        assert bounds_at(target, instant_at(at)) == bounds
        due = due_targets(scaled, instant_at(at), lambda _: False)
        assert [each.label for each in due if each.windows] == ["table write"]


# --- what no schedule can say ---------------------------------------------------------------------------------------

HELP = (
    "let a window on a weekday of the month open, lead included, on the day of its start, and leave time between a "
    "monthly window and others, or let a ThrottleAwareScaler open and close the windows with windows_held_by= "
    "[highwater:daysNotInCron]"
)


@pytest.mark.parametrize(
    ("windows", "problem"),
    [
        pytest.param(
            (monthly(weekday="FRI", nth="last", start="00:00", lead=timedelta(minutes=5)),),
            "window 'payday' of table write: at 23:55 Europe/Berlin on 2027-01-28 and other days an action has to set "
            "min 900 and max 20000, and no cron schedule of Application Auto Scaling names these days without others",
            id="the day before the last Friday",
        ),
        pytest.param(
            (office(), monthly(day=1, start="06:00", end="22:00")),
            "windows 'office', 'payday' of table write: at 08:00 Europe/Berlin on 2027-01-04 and other days an action "
            "has to set min 400 and max 20000, and no cron schedule of Application Auto Scaling names these days "
            "without others",
            id="days of the week without those that are the first of a month",
        ),
    ],
)
def test_days_that_cron_cannot_name_are_refused_with_what_can_hold_them(
    windows: tuple[Window, ...], problem: str
) -> None:
    target = writes(*windows)
    plan = Plan(read=Capacity.fixed(units=7), write=target.capacity, windows=windows)
    assert [finding.text("Shop/Orders") for finding in check(plan)] == [f"Shop/Orders: {problem}; {HELP}"]
    assert not check(plan, has_actions=False)


def test_windows_of_zones_that_change_apart_are_refused_where_they_meet_in_some_year_only() -> None:
    """The first Friday and the sixth day are one day in some months."""
    windows = (monthly(day=6), monthly("new york", weekday="FRI", nth=1, timezone="America/New_York"))
    with pytest.raises(PlanError, match="highwater:windowsAcrossZones"):
        compile_actions(writes(*windows))
    assert_held(windows[0], replace(windows[1], month_day=MonthDay(weekday="FRI", nth=3)))
