"""Local time and instants around clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from highwater.core.plan.zones import (
    Gap,
    aware,
    changes,
    constant_shift,
    find_zone,
    gaps,
    instant,
    latest_shown,
    similar_zone,
)


@pytest.mark.parametrize(
    ("timezone", "wall", "expected"),
    [
        pytest.param("UTC", "2027-03-28T02:30", "2027-03-28T02:30", id="UTC never changes"),
        pytest.param("Asia/Kolkata", "2027-03-28T02:30", "2027-03-27T21:00", id="Kolkata is 5:30 ahead"),
        pytest.param("Europe/Berlin", "2027-03-28T01:59", "2027-03-28T00:59", id="Berlin, before the gap"),
        pytest.param("Europe/Berlin", "2027-03-28T02:00", "2027-03-28T01:00", id="Berlin, the gap begins"),
        pytest.param("Europe/Berlin", "2027-03-28T02:59", "2027-03-28T01:00", id="Berlin, the gap ends"),
        pytest.param("Europe/Berlin", "2027-03-28T03:00", "2027-03-28T01:00", id="Berlin, after the gap"),
        pytest.param("Europe/Berlin", "2027-10-31T02:00", "2027-10-31T00:00", id="Berlin, first coming, not second"),
        pytest.param("Europe/Berlin", "2027-10-31T02:59", "2027-10-31T00:59", id="Berlin, end of the first coming"),
        pytest.param("Europe/Berlin", "2027-10-31T03:00", "2027-10-31T02:00", id="Berlin, after both comings"),
        pytest.param("Europe/Berlin", "2027-03-27T05:00:29", "2027-03-27T04:00:29", id="Berlin, with seconds"),
        pytest.param("Europe/Berlin", "2027-10-31T02:00:29", "2027-10-31T00:00:29", id="Berlin, first coming, seconds"),
        pytest.param("Europe/Berlin", "2027-03-28T02:30:00.000007", "2027-03-28T01:00", id="Berlin, gap, microseconds"),
        pytest.param("America/New_York", "2027-03-14T02:30", "2027-03-14T07:00", id="New York, skipped"),
        pytest.param("America/New_York", "2027-11-07T01:30", "2027-11-07T05:30", id="New York, repeated"),
        pytest.param("Australia/Lord_Howe", "2027-10-03T02:00", "2027-10-02T15:30", id="Lord Howe, the gap begins"),
        pytest.param("Australia/Lord_Howe", "2027-10-03T02:29", "2027-10-02T15:30", id="Lord Howe, the gap ends"),
        pytest.param("Australia/Lord_Howe", "2027-10-03T02:30", "2027-10-02T15:30", id="Lord Howe, half an hour on"),
        pytest.param("Australia/Lord_Howe", "2027-10-03T02:31", "2027-10-02T15:31", id="Lord Howe, a minute later"),
        pytest.param("Australia/Lord_Howe", "2027-04-04T01:45", "2027-04-03T14:45", id="Lord Howe, repeated"),
        pytest.param("Australia/Lord_Howe", "2027-04-04T02:00", "2027-04-03T15:30", id="Lord Howe, after both"),
        pytest.param("Africa/Cairo", "2027-04-30T00:00", "2027-04-29T22:00", id="Cairo, midnight is skipped"),
        pytest.param("Africa/Cairo", "2027-04-30T00:59", "2027-04-29T22:00", id="Cairo, the hour after midnight"),
        pytest.param("Africa/Cairo", "2027-10-28T23:30", "2027-10-28T20:30", id="Cairo, repeated before midnight"),
        pytest.param("America/Havana", "2028-03-12T00:30", "2028-03-12T05:00", id="Havana, midnight is skipped"),
        pytest.param("America/Havana", "2028-11-05T00:30", "2028-11-05T04:30", id="Havana, midnight twice"),
        pytest.param("America/Santiago", "2027-09-05T00:00", "2027-09-05T04:00", id="Santiago, midnight is skipped"),
        pytest.param("Antarctica/Troll", "2027-03-28T02:30", "2027-03-28T01:00", id="Troll, a gap of two hours"),
        pytest.param("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00", id="Apia, a day is skipped"),
    ],
)
def test_instant_of_a_local_time_follows_the_rule(timezone: str, wall: str, expected: str) -> None:
    at = instant(datetime.fromisoformat(wall), ZoneInfo(timezone))
    assert at == datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("second", [1, 29, 59])
def test_instant_of_a_skipped_time_with_seconds_is_the_moment_of_the_change(second: int) -> None:
    """Scheduled actions have seconds: `at(2027-03-28T02:00:29)`."""
    for minute in (0, 1, 58, 59):
        wall = datetime(2027, 3, 28, 2, minute, second)  # noqa: DTZ001 - local
        assert instant(wall, ZoneInfo("Europe/Berlin")) == datetime(2027, 3, 28, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("timezone", "at", "expected"),
    [
        pytest.param("Asia/Kolkata", "2027-03-27T21:00:59", "2027-03-28T02:30", id="what the clock shows, in minutes"),
        pytest.param("Europe/Berlin", "2027-03-27T05:07:09.000011", "2027-03-27T06:07", id="Berlin, a whole minute"),
        pytest.param("Europe/Berlin", "2027-03-28T00:59", "2027-03-28T01:59", id="Berlin, before the gap"),
        pytest.param("Europe/Berlin", "2027-03-28T01:00", "2027-03-28T03:00", id="Berlin, after the gap"),
        pytest.param("Europe/Berlin", "2027-10-31T00:30", "2027-10-31T02:30", id="Berlin, first coming"),
        pytest.param("Europe/Berlin", "2027-10-31T00:59", "2027-10-31T02:59", id="Berlin, end of the first coming"),
        pytest.param("Europe/Berlin", "2027-10-31T01:00", "2027-10-31T02:59", id="Berlin, second coming"),
        pytest.param("Europe/Berlin", "2027-10-31T01:59:59", "2027-10-31T02:59", id="Berlin, end of the second coming"),
        pytest.param("Europe/Berlin", "2027-10-31T02:00", "2027-10-31T03:00", id="Berlin, after both comings"),
        pytest.param("Australia/Lord_Howe", "2027-04-03T15:10", "2027-04-04T01:59", id="Lord Howe, half an hour twice"),
        pytest.param("America/Havana", "2027-11-07T05:20", "2027-11-07T00:59", id="Havana, the hour after midnight"),
        pytest.param("Africa/Cairo", "2027-10-28T21:40", "2027-10-28T23:59", id="Cairo, the hour before midnight"),
    ],
)
def test_latest_local_time_shown_stands_still_while_clocks_repeat(timezone: str, at: str, expected: str) -> None:
    shown = latest_shown(datetime.fromisoformat(at).replace(tzinfo=UTC), ZoneInfo(timezone))
    assert shown == datetime.fromisoformat(expected)


def test_aware_time_is_told_in_utc() -> None:
    at = aware(datetime(2027, 3, 27, 5, 7, tzinfo=ZoneInfo("Asia/Kolkata")))
    assert at.isoformat() == "2027-03-26T23:37:00+00:00"


@pytest.mark.parametrize(
    ("timezone", "expected"),
    [
        pytest.param("UTC", (), id="none"),
        pytest.param("Europe/Berlin", (Gap(6 * 1440 + 120, 6 * 1440 + 180),), id="Sunday 02:00 to 03:00"),
        pytest.param("Australia/Lord_Howe", (Gap(6 * 1440 + 120, 6 * 1440 + 150),), id="Sunday 02:00 to 02:30"),
        pytest.param("Africa/Cairo", (Gap(4 * 1440, 4 * 1440 + 60),), id="Friday 00:00 to 01:00"),
        pytest.param("America/Havana", (Gap(6 * 1440, 6 * 1440 + 60),), id="Sunday 00:00 to 01:00"),
    ],
)
def test_gaps_of_a_zone_are_what_its_clocks_skip(timezone: str, expected: tuple[Gap, ...]) -> None:
    assert gaps(ZoneInfo(timezone)) == expected


def test_changes_of_a_year_tell_instant_and_both_offsets() -> None:
    hour = timedelta(hours=1)
    assert [change for change in changes(ZoneInfo("Europe/Berlin")) if change[0].year == 2027] == [
        (datetime(2027, 3, 28, 1, tzinfo=UTC), hour, 2 * hour),
        (datetime(2027, 10, 31, 1, tzinfo=UTC), 2 * hour, hour),
    ]


@pytest.mark.parametrize(
    ("zone", "reference", "minutes"),
    [
        pytest.param("Europe/Berlin", "Europe/London", 60, id="an hour ahead all year"),
        pytest.param("Europe/London", "Europe/Berlin", -60, id="an hour behind all year"),
        pytest.param("Asia/Kolkata", "UTC", 330, id="neither ever changes"),
        pytest.param("Europe/Berlin", "Europe/Paris", 0, id="the same clock"),
        pytest.param("Europe/Berlin", "America/New_York", None, id="changes on other days"),
        pytest.param("America/Havana", "America/New_York", None, id="changes two hours earlier"),
        pytest.param("Australia/Lord_Howe", "Australia/Sydney", None, id="changes by half as much"),
        pytest.param("Europe/Berlin", "UTC", None, id="only one of them changes"),
    ],
)
def test_constant_shift_is_told_only_where_it_never_changes(zone: str, reference: str, minutes: int | None) -> None:
    expected = None if minutes is None else timedelta(minutes=minutes)
    assert constant_shift(ZoneInfo(zone), ZoneInfo(reference)) == expected


@pytest.mark.parametrize("name", ["", "Mars/Base", "../UTC", "/etc/localtime", "Europe", "a\0b", "Europe/Berlin "])
def test_find_zone_of_what_is_no_zone_is_none(name: str) -> None:
    assert find_zone(name) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("Europe/Belrin", "Europe/Berlin", id="letters swapped"),
        pytest.param("Asia/Calcuta", "Asia/Calcutta", id="letter left out"),
        pytest.param("utc", "UTC", id="small letters"),
        pytest.param("New York", "America/New_York", id="place alone"),
        pytest.param("PST", "UTC", id="abbreviation, which is no name"),
        pytest.param("San Juan", "America/Argentina/San_Juan", id="place alone, of a longer name"),
        pytest.param("Buenos Aires", "America/Argentina/Buenos_Aires", id="the first of two names of a place"),
        pytest.param("Japna", "UTC", id="as short as an abbreviation"),
        pytest.param("Asia/Bombey", "UTC", id="not near enough"),
        pytest.param("???", "UTC", id="an example where nothing is near"),
    ],
)
def test_similar_zone_is_the_nearest_name(name: str, expected: str) -> None:
    assert similar_zone(name) == expected
