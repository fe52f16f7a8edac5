"""Tables by time: the table of an instant and of a span, and where an item is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from periods import CLOCKS_APART, PeriodError, Periods

MONTHS, DAYS = Periods("events"), Periods("ev.a", every="day", late=timedelta(hours=3))
ANOTHER: Any = "week"
EITHER = st.sampled_from([MONTHS, DAYS])
INSTANTS = st.timedeltas(timedelta(days=365), timedelta(days=365 * 8_000)).map(
    lambda since: datetime(1970, 1, 1, tzinfo=UTC) + since
)


def _refused(call: Any) -> str:
    with pytest.raises(PeriodError) as error:
        call()
    assert isinstance(error.value, ValueError)
    return str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Periods("e v"),
            "periods: prefix: got 'e v', allowed: 2 to 240 letters, digits, '_', '.' and '-'; give the beginning of "
            "the tables' names, such as 'events'",
        ),
        (lambda: Periods("events", every=ANOTHER), "periods: every: got 'week', allowed: 'day', 'month'"),
        (
            lambda: Periods("events", late=timedelta(days=32)),
            "periods: late: got 32 days, 0:00:00, allowed: 0 to 31 days",
        ),
        (
            lambda: MONTHS.name_for(datetime(2026, 3, 1)),  # noqa: DTZ001 - without a zone
            "periods: at: got datetime.datetime(2026, 3, 1, 0, 0), allowed: a datetime with a time zone, such as UTC",
        ),
        (
            lambda: MONTHS.name_for(datetime.max.replace(tzinfo=UTC)),
            "periods: at: got 9999-12-31T23:59:59.999999+00:00, allowed: years 1970 to 9998 in UTC",
        ),
        (
            lambda: MONTHS.name_for(datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=2)))),
            "periods: at: got 1970-01-01T00:00:00+02:00, allowed: years 1970 to 9998 in UTC",
        ),
    ],
)
def test_what_is_not_valid_is_refused_in_one_line(call: Any, message: str) -> None:
    assert _refused(call) == message


def test_table_is_named_by_month_or_day_in_utc() -> None:
    at = datetime(2026, 3, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))
    assert MONTHS.name_for(at) == "events-2026-02"
    assert DAYS.name_for(at) == "ev.a-2026-02-28"
    assert (MONTHS.default, DAYS.default) == ("events-default", "ev.a-default")


@pytest.mark.parametrize(
    "name",
    ["events", "events-default", "events-2026-13", "events-2026-3", "events-2026-03-14", "events-0000-01", "x-2026-03"],
)
def test_other_tables_have_no_period(name: str) -> None:
    assert MONTHS.start_of(name) is None


@given(EITHER, INSTANTS)
def test_period_of_a_name_contains_the_instant_that_it_was_named_by(periods: Periods, at: datetime) -> None:
    start = periods.start_of(periods.name_for(at))
    assert start is not None
    assert start <= at < periods.next_period(start)
    assert periods.name_for(periods.next_period(start) - timedelta(microseconds=1)) == periods.name_for(at)


@given(EITHER, INSTANTS, st.timedeltas(timedelta(0), timedelta(days=400)), st.data())
def test_tables_of_a_span_are_those_of_its_instants_in_order(
    periods: Periods, start: datetime, length: timedelta, data: st.DataObject
) -> None:
    names = list(periods.names(start, start + length))
    assert names == sorted(set(names))
    assert list(periods.names(start, start + length, is_forward=False)) == names[::-1]
    assert bool(names) is bool(length)
    if length:
        inside = data.draw(st.timedeltas(timedelta(0), length - timedelta(microseconds=1)))
        assert periods.name_for(start + inside) in names
        assert names[0] == periods.name_for(start)
        assert names[-1] == periods.name_for(start + length - timedelta(microseconds=1))


@given(EITHER, INSTANTS, st.timedeltas(timedelta(days=-90), timedelta(days=90)))
def test_item_goes_to_the_table_of_its_time_or_to_none_and_never_to_a_closed_one(
    periods: Periods, now: datetime, age: timedelta
) -> None:
    at = now - age
    home = periods.home_of(at, now)
    assert home in (None, periods.name_for(at))
    start = periods.start_of_period(at)
    if home is not None:
        # even if the writer's clock is late by as much as clocks may be apart
        assert now + CLOCKS_APART < periods.closes(start)
        assert start <= periods.upcoming(now)[-1]
    if start == periods.start_of_period(now):
        assert home == periods.name_for(now), "the present always has a table"


def test_late_item_goes_to_its_table_until_the_period_is_over_for_so_long() -> None:
    at, end = datetime(2026, 2, 28, 23, 59, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
    assert MONTHS.home_of(at, end + timedelta(hours=23)) == "events-2026-02"
    assert MONTHS.home_of(at, end + timedelta(hours=24)) is None
    assert MONTHS.closes(datetime(2026, 2, 1, tzinfo=UTC)) == end + timedelta(hours=24, minutes=5)
    assert MONTHS.home_of(datetime(2026, 5, 31, tzinfo=UTC), end) == "events-2026-05"
    assert MONTHS.home_of(datetime(2026, 6, 1, tzinfo=UTC), end) is None, "no rotation has made it yet"
