"""Windows: each sentence of the docstring, and the parsers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from highwater.core import Capacity, Plan, Window, baseline
from highwater.core.plan.month_days import DAYS
from highwater.core.plan.windows import (
    is_open,
    openings,
    parse_days,
    parse_local,
    parse_time_of_day,
    weekly_spans,
)

ZERO = timedelta(0)
# a Wednesday without clock changes near
WEDNESDAY = datetime(2027, 1, 13, tzinfo=UTC)


def daily(**changes: Any) -> Window:
    fields = {"name": "load", "start": "05:00", "end": "06:30", "timezone": "UTC", "write_min": 33, "lead": ZERO}
    return Window.daily(**{**fields, **changes})


def once(**changes: Any) -> Window:
    fields = {"name": "sale", "timezone": "Europe/Berlin", "write_min": 33, "lead": ZERO}
    return Window.once(**{**fields, **changes})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def spans(window: Window, start: str, end: str) -> list[tuple[str, str]]:
    """Openings as texts in UTC."""
    found = openings(window, at(start), at(end))
    return [(f"{opens:%Y-%m-%dT%H:%M}", f"{closes:%Y-%m-%dT%H:%M}") for opens, closes in found]


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        pytest.param(time(4, 49), False, id="before the lead"),
        pytest.param(time(4, 50), True, id="from start less lead"),
        pytest.param(time(6, 29, 59), True, id="up to the end"),
        pytest.param(time(6, 30), False, id="not including the end"),
    ],
)
def test_window_is_open_from_start_less_lead_up_to_its_end(clock: time, expected: bool) -> None:
    window = daily(lead=timedelta(minutes=10))
    assert is_open(window, datetime.combine(WEDNESDAY, clock, UTC)) is expected


def test_lead_by_default_is_five_minutes() -> None:
    window = Window.daily("load", start="05:00", end="06:00", timezone="UTC", write_min=33)
    assert spans(window, "2027-01-13T00:00", "2027-01-14T00:00") == [("2027-01-13T04:55", "2027-01-13T06:00")]


def test_overlapping_windows_ask_for_the_highest_in_any_order() -> None:
    windows = (daily(write_min=33), daily(name="b", write_min=55), daily(name="c", write_min=44))
    for order in (windows, windows[::-1]):
        plan = Plan(read=Capacity.fixed(1), write=Capacity.autoscaled(min_capacity=22, max_capacity=99), windows=order)
        assert baseline(plan.targets()[1], at("2027-01-13T05:30")) == 55
        assert baseline(plan.targets()[1], at("2027-01-13T06:30")) == 22


@pytest.mark.parametrize(
    ("end", "closes"),
    [
        pytest.param("22:59", "2027-01-14T22:59", id="an end before the start is on the next day"),
        pytest.param("23:00", "2027-01-14T23:00", id="the same time twice is a whole day"),
        pytest.param("23:01", "2027-01-13T23:01", id="an end after the start is on the same day"),
        pytest.param("24:00", "2027-01-14T00:00", id="24:00 is the end of the day"),
        pytest.param("00:00", "2027-01-14T00:00", id="so is 00:00 of the next"),
    ],
)
def test_window_whose_end_is_not_later_than_its_start_closes_on_the_next_day(end: str, closes: str) -> None:
    window = replace(daily(start="23:00", end=end), days="WED")
    assert spans(window, "2027-01-11T00:00", "2027-01-18T00:00") == [("2027-01-13T23:00", closes)]


def test_lead_is_counted_on_the_wall_clock() -> None:
    """02:00 is skipped: from 03:30 less two hours to 03:30 is one hour of real time."""
    window = daily(timezone="Europe/Berlin", start="03:30", end="04:00", lead=timedelta(hours=2))
    assert spans(window, "2027-03-28T00:00", "2027-03-28T12:00") == [("2027-03-28T00:30", "2027-03-28T02:00")]


def test_lead_of_a_day_opens_on_the_day_before() -> None:
    window = replace(daily(lead=timedelta(hours=24)), days="MON")
    assert spans(window, "2027-01-11T00:00", "2027-01-18T00:00") == [
        ("2027-01-10T05:00", "2027-01-11T06:30"),
        ("2027-01-17T05:00", "2027-01-18T06:30"),
    ]


def test_skipped_local_time_means_the_moment_of_the_change() -> None:
    opening = daily(timezone="Europe/Berlin", start="02:30", end="04:00")
    closing = daily(timezone="Europe/Berlin", start="01:30", end="02:30")
    assert spans(opening, "2027-03-28T00:00", "2027-03-28T12:00") == [("2027-03-28T01:00", "2027-03-28T02:00")]
    assert spans(closing, "2027-03-28T00:00", "2027-03-28T12:00") == [("2027-03-28T00:30", "2027-03-28T01:00")]


def test_repeated_local_time_means_its_first_coming() -> None:
    opening = daily(timezone="Europe/Berlin", start="02:30", end="03:30")
    closing = daily(timezone="Europe/Berlin", start="01:30", end="02:30")
    assert spans(opening, "2027-10-31T00:00", "2027-10-31T12:00") == [("2027-10-31T00:30", "2027-10-31T02:30")]
    assert spans(closing, "2027-10-30T12:00", "2027-10-31T12:00") == [("2027-10-30T23:30", "2027-10-31T00:30")]


def test_once_opens_a_single_time() -> None:
    window = once(start="2027-11-26T00:00", end="2027-11-27T12:00", lead=timedelta(minutes=30))
    assert spans(window, "2020-01-01T00:00", "2040-01-01T00:00") == [("2027-11-25T22:30", "2027-11-27T11:00")]


def test_openings_come_in_order() -> None:
    found = spans(replace(daily(lead=timedelta(hours=24)), days="SUN,MON,WED"), "2027-01-01T00:00", "2027-02-01T00:00")
    assert found == sorted(found)
    assert len(spans(daily(), "2027-01-13T06:29", "2027-01-14T05:01")) == 2, "a minute of each"


def test_times_may_be_given_as_objects() -> None:
    assert daily(start=time(5), end=time(6, 30)) == daily()
    assert once(start=datetime.fromisoformat("2027-11-26T05:00"), end="2027-11-27T00:00") == once(
        start="2027-11-26T05:00", end="2027-11-27T00:00"
    )


def test_local_time_with_an_offset_or_on_its_second_coming_is_kept_for_the_check_to_tell() -> None:
    second = datetime(2027, 10, 31, 2, 30, fold=1)  # noqa: DTZ001 - local
    assert once(start=at("2027-11-26T05:00"), end="2027-11-27T00:00").start == "2027-11-26T05:00:00+00:00"
    assert once(start=second, end="2027-11-27T00:00").start == "2027-10-31T02:30:00 (fold=1)"


def test_zone_of_an_unknown_name_raises() -> None:
    with pytest.raises(ValueError, match=r"^unknown timezone 'Mars/Base'$"):
        _ = daily(timezone="Mars/Base").zone


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param("MON", (0,), id="one"),
        pytest.param("MON-FRI", (0, 1, 2, 3, 4), id="a range"),
        pytest.param("SUN,SAT", (5, 6), id="a list, sorted"),
        pytest.param("FRI-MON", (0, 4, 5, 6), id="a range past the weekend"),
        pytest.param("mon, wed-thu ,SUN", (0, 2, 3, 6), id="small letters and spaces"),
        pytest.param(("TUE", "MON-TUE"), (0, 1), id="a sequence with repeats"),
        pytest.param("WED-WED", (2,), id="a range of one day"),
    ],
)
def test_parse_days_reads_numbers_from_monday(days: str | tuple[str, ...], expected: tuple[int, ...]) -> None:
    assert parse_days(days) == expected


def _raised(parse: Callable[[Any], object], given: object) -> str:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the tests compare the whole text
        parse(given)
    return str(refused.value)


@pytest.mark.parametrize("days", ["", " ", "MONDAY", "-FRI", "1-5", "MON-TUE-WED"])
def test_parse_days_of_what_is_no_day_raises_with_it(days: str) -> None:
    assert _raised(parse_days, days) == days


@pytest.mark.parametrize(
    ("days", "part"), [("MON,MON-FRY", "MON-FRY"), ("MON,,TUE", ""), ((), ""), (("MON", ""), ""), (("MON", 2), "2")]
)
def test_parse_days_of_a_list_raises_with_the_part_that_is_no_day(days: object, part: str) -> None:
    assert _raised(parse_days, days) == part


@pytest.mark.parametrize(
    ("text", "expected"), [("00:00", 0), ("5:07", 307), ("05:07", 307), ("23:59", 1439), ("24:00", 1440)]
)
def test_parse_time_of_day_reads_minutes_from_midnight(text: str, expected: int) -> None:
    assert parse_time_of_day(text) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "24:01", "25:00", "12:60", "-1:00", "12:5", "12:00:00", "12:00\n", " 12:00", "5pm"]
)
def test_parse_time_of_day_of_what_is_no_time_raises_with_it(text: str) -> None:
    assert _raised(parse_time_of_day, text) == text


def test_window_starts_before_the_end_of_the_day() -> None:
    assert weekly_spans(daily(start="23:59", end="24:00"))[0] == (1439, 1)
    assert _raised(weekly_spans, daily(start="24:00", end="05:00")) == "24:00"


def test_parse_local_reads_a_naive_time() -> None:
    assert f"{parse_local('2027-11-26T05:07'):%Y-%m-%d %H:%M}" == "2027-11-26 05:07"
    assert parse_local("2027-11-26T05:07").tzinfo is None


@pytest.mark.parametrize(
    "window",
    [
        pytest.param(daily(), id="daily"),
        pytest.param(once(start="2027-01-13T06:00", end="2027-01-13T07:30"), id="one-off"),
    ],
)
def test_openings_are_those_that_overlap_the_time_without_its_end(window: Window) -> None:
    opening = [("2027-01-13T05:00", "2027-01-13T06:30")]
    assert spans(window, "2027-01-13T04:00", "2027-01-13T05:00") == []
    assert spans(window, "2027-01-13T04:00", "2027-01-13T05:01") == opening
    assert spans(window, "2027-01-13T06:29", "2027-01-13T07:00") == opening
    assert spans(window, "2027-01-13T06:30", "2027-01-13T07:00") == []


@pytest.mark.parametrize(
    "window",
    [
        pytest.param(daily(start="02:10", end="02:50", timezone="Europe/Berlin"), id="daily"),
        pytest.param(once(start="2027-03-28T02:10", end="2027-03-28T02:50"), id="one-off"),
    ],
)
def test_window_that_the_clocks_skip_whole_does_not_open(window: Window) -> None:
    assert spans(window, "2027-03-27T12:00", "2027-03-28T12:00") == []


@pytest.mark.parametrize(("year", "is_read"), [(1999, False), (2000, True), (2199, True), (2200, False)])
def test_parse_local_reads_the_years_2000_to_2199(year: int, is_read: bool) -> None:
    text = f"{year}-11-26T05:07"
    if is_read:
        assert parse_local(text).year == year
    else:
        assert _raised(parse_local, text) == text


@pytest.mark.parametrize("text", ["", "05:00", "2027-11-26T05:00Z", "2027-11-26T05:00:01", "26.11.2027"])
def test_parse_local_of_what_is_no_local_time_raises_with_it(text: str) -> None:
    assert _raised(parse_local, text) == text


def test_parse_local_of_a_day_that_no_month_has_raises() -> None:
    # in Python's words, which differ between its versions
    assert _raised(parse_local, "2027-02-30T05:00").startswith("day ")


UNITS = {"read_min": 11, "write_min": 22, "read_max": 33, "write_max": 44}
LEAD = timedelta(minutes=17)


def test_each_factory_keeps_every_field_apart() -> None:
    fields: dict[str, Any] = {"start": "05:00", "end": "06:30", "timezone": "UTC", "lead": LEAD} | UNITS
    assert Window.weekly("load", days="SAT", **fields) == Window(name="load", days="SAT", **fields)
    all_days = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
    assert all_days == DAYS
    every_day = Window.daily("load", **fields)
    assert every_day == Window(name="load", days=all_days, **fields)
    fields |= {"start": "2027-11-26T05:00", "end": "2027-11-27T06:30"}
    single = Window.once("sale", **fields)
    assert single == Window(name="sale", days=None, **fields)
    assert (every_day.is_recurring, single.is_recurring) == (True, False)
