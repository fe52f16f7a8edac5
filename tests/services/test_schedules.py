"""Schedule expressions, against the worked examples of the EventBridge cron reference."""

from __future__ import annotations

import contextlib
import pickle
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater_lab.services.schedules import parse_expression
from tests.core.examples import examples

_UTC = ZoneInfo("UTC")
_NEW_YORK = ZoneInfo("America/New_York")
# a Friday
_START = datetime(2027, 1, 1, 0, 0, 30, tzinfo=UTC)


def _runs(text: str, count: int, after: datetime = _START, zone: ZoneInfo = _UTC) -> list[str]:
    expression = parse_expression(text, zone, after)
    found = []
    for _ in range(count):
        at = expression.next_run(after)
        if at is None:
            break
        found.append(f"{at.astimezone(zone):%a %Y-%m-%d %H:%M}")
        after = at
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("cron(0 10 * * ? *)", ["Fri 2027-01-01 10:00", "Sat 2027-01-02 10:00"], id="at-ten-every-day"),
        pytest.param("cron(15 12 * * ? *)", ["Fri 2027-01-01 12:15", "Sat 2027-01-02 12:15"], id="a-quarter-past-noon"),
        pytest.param(
            "cron(0 18 ? * MON-FRI *)", ["Fri 2027-01-01 18:00", "Mon 2027-01-04 18:00"], id="at-six-on-workdays"
        ),
        pytest.param("cron(0 8 1 * ? *)", ["Fri 2027-01-01 08:00", "Mon 2027-02-01 08:00"], id="first-of-the-month"),
        pytest.param(
            "cron(0/15 * * * ? *)", ["Fri 2027-01-01 00:15", "Fri 2027-01-01 00:30"], id="every-fifteen-minutes"
        ),
        pytest.param(
            "cron(1/10 * * * ? *)",
            ["Fri 2027-01-01 00:01", "Fri 2027-01-01 00:11", "Fri 2027-01-01 00:21", "Fri 2027-01-01 00:31"],
            id="every-tenth-minute-from-the-first-on",
        ),
        pytest.param(
            "cron(0/5 8-17 ? * MON-FRI *)",
            ["Fri 2027-01-01 08:00", "Fri 2027-01-01 08:05"],
            id="every-five-minutes-of-office-hours",
        ),
        pytest.param(
            "cron(0/30 20-2 ? * MON-FRI *)",
            [
                "Fri 2027-01-01 00:30",
                "Fri 2027-01-01 01:00",
                "Fri 2027-01-01 01:30",
                "Fri 2027-01-01 02:00",
                "Fri 2027-01-01 02:30",
                "Fri 2027-01-01 20:00",
            ],
            id="hours-over-midnight",
        ),
        pytest.param("cron(0 9 ? * 2#1 *)", ["Mon 2027-01-04 09:00", "Mon 2027-02-01 09:00"], id="first-monday"),
        pytest.param("cron(0 9 ? * 3#2 *)", ["Tue 2027-01-12 09:00", "Tue 2027-02-09 09:00"], id="second-tuesday"),
        pytest.param("cron(0 9 ? * FRI#5 *)", ["Fri 2027-01-29 09:00", "Fri 2027-04-30 09:00"], id="fifth-friday"),
        pytest.param(
            "cron(15 10 ? * 6L 2027-2028)", ["Fri 2027-01-29 10:15", "Fri 2027-02-26 10:15"], id="last-friday"
        ),
        pytest.param("cron(0 9 ? * SUNL *)", ["Sun 2027-01-31 09:00", "Sun 2027-02-28 09:00"], id="last-sunday"),
        pytest.param("cron(0 9 ? * L *)", ["Sat 2027-01-02 09:00", "Sat 2027-01-09 09:00"], id="last-day-of-the-week"),
        pytest.param("cron(0 9 L * ? *)", ["Sun 2027-01-31 09:00", "Sun 2027-02-28 09:00"], id="last-of-the-month"),
        pytest.param("cron(0 9 L 2 ? 2028)", ["Tue 2028-02-29 09:00"], id="last-of-a-leap-february"),
        pytest.param("cron(0 9 29 2 ? *)", ["Tue 2028-02-29 09:00", "Sun 2032-02-29 09:00"], id="leap-days"),
        pytest.param(
            "cron(0 9 3W * ? *)",
            ["Mon 2027-01-04 09:00", "Wed 2027-02-03 09:00", "Wed 2027-03-03 09:00", "Fri 2027-04-02 09:00"],
            id="workday-nearest-the-third",
        ),
        pytest.param("cron(0 9 1W 5 ? 2027)", ["Mon 2027-05-03 09:00"], id="first-on-a-saturday-stays-in-the-month"),
        pytest.param("cron(0 9 31W 1 ? 2027)", ["Fri 2027-01-29 09:00"], id="last-on-a-sunday-stays-in-the-month"),
        pytest.param(
            "cron(0 9 ? * FRI-MON *)",
            [
                "Fri 2027-01-01 09:00",
                "Sat 2027-01-02 09:00",
                "Sun 2027-01-03 09:00",
                "Mon 2027-01-04 09:00",
                "Fri 2027-01-08 09:00",
            ],
            id="days-over-the-weekend",
        ),
        pytest.param(
            "cron(0 9 ? * 7-1 *)",
            ["Sat 2027-01-02 09:00", "Sun 2027-01-03 09:00", "Sat 2027-01-09 09:00"],
            id="saturday-to-sunday-in-numbers",
        ),
        pytest.param(
            "cron(5,35 6,18 ? * TUE,THU *)",
            [
                "Tue 2027-01-05 06:05",
                "Tue 2027-01-05 06:35",
                "Tue 2027-01-05 18:05",
                "Tue 2027-01-05 18:35",
                "Thu 2027-01-07 06:05",
            ],
            id="lists",
        ),
        pytest.param(
            "cron(0 9 1 jan,MAR,Oct-nov ? *)",
            ["Fri 2027-01-01 09:00", "Mon 2027-03-01 09:00", "Fri 2027-10-01 09:00", "Mon 2027-11-01 09:00"],
            id="months-by-name-in-any-case",
        ),
        pytest.param(
            "cron(0 9 1 NOV-FEB ? *)",
            ["Fri 2027-01-01 09:00", "Mon 2027-02-01 09:00", "Mon 2027-11-01 09:00"],
            id="months-over-the-year",
        ),
        pytest.param(
            "cron(10-40/15 9 1 1 ? 2027)",
            ["Fri 2027-01-01 09:10", "Fri 2027-01-01 09:25", "Fri 2027-01-01 09:40"],
            id="steps-in-a-range",
        ),
        pytest.param(
            "cron(0 0/8 1/15 1 ? 2027)",
            ["Fri 2027-01-01 08:00", "Fri 2027-01-01 16:00", "Sat 2027-01-16 00:00"],
            id="steps-of-hours-and-days",
        ),
        pytest.param(
            "cron(0 9 1 1 ? 2026-2030/2)", ["Sat 2028-01-01 09:00", "Tue 2030-01-01 09:00"], id="every-second-year"
        ),
        pytest.param("cron(30 0 9 ? * MON *)", ["Mon 2027-01-04 09:00"], id="seven-fields-forget-the-seconds"),
        pytest.param("cron( 0  10 * * ?   * )", ["Fri 2027-01-01 10:00"], id="any-white-space"),
        pytest.param("cron(0 9 1 1 ? 2020)", [], id="years-gone-by"),
        pytest.param("cron(0 9 31 2 ? *)", [], id="a-day-that-never-comes"),
        pytest.param("at(2027-03-04T05:06:00)", ["Thu 2027-03-04 05:06"], id="at-runs-once"),
        pytest.param("at(2026-12-31T23:59:59)", [], id="at-in-the-past"),
        pytest.param("rate(5 minutes)", ["Fri 2027-01-01 00:05", "Fri 2027-01-01 00:10"], id="rate-in-minutes"),
        pytest.param("rate(1 hour)", ["Fri 2027-01-01 01:00", "Fri 2027-01-01 02:00"], id="rate-in-hours"),
        pytest.param("rate(1 day)", ["Sat 2027-01-02 00:00", "Sun 2027-01-03 00:00"], id="rate-in-days"),
    ],
)
def test_runs_of_an_expression_are_those_of_the_reference(text: str, expected: list[str]) -> None:
    # one more is asked for than expected where the schedule ends
    ends = len(expected) if expected else 1
    assert _runs(text, ends) == expected


@pytest.mark.parametrize("wanted", [1, 2, 3, 15, 28, 29, 30, 31])
def test_nearest_workday_is_a_workday_no_more_than_two_days_off(wanted: int) -> None:
    expression, at = parse_expression(f"cron(0 9 {wanted}W * ? *)", _UTC, _START), _START
    for _ in range(60):
        run = expression.next_run(at)
        assert run is not None
        assert run.isoweekday() <= 5, f"{run:%A %Y-%m-%d} is no workday"
        assert abs(run.day - wanted) <= 2
        at = run


@pytest.mark.parametrize(
    ("text", "after", "expected", "why"),
    [
        pytest.param(
            "cron(30 2 * * ? *)",
            datetime(2027, 3, 13, 12, tzinfo=UTC),
            ["Mon 2027-03-15 02:30", "Tue 2027-03-16 02:30"],
            "half past two does not come on the 14th",
            id="a-time-that-the-clocks-skip",
        ),
        pytest.param(
            "cron(30 1 * * ? *)",
            datetime(2027, 11, 6, 12, tzinfo=UTC),
            ["Sun 2027-11-07 01:30", "Mon 2027-11-08 01:30"],
            "half past one comes twice on the 7th",
            id="a-time-that-comes-twice",
        ),
        pytest.param(
            "cron(0 3 * * ? *)",
            datetime(2027, 3, 13, 12, tzinfo=UTC),
            ["Sun 2027-03-14 03:00", "Mon 2027-03-15 03:00"],
            "three o'clock is the first time after the gap",
            id="the-end-of-the-gap",
        ),
    ],
)
def test_runs_at_clock_changes_are_skipped_or_run_once(
    text: str, after: datetime, expected: list[str], why: str
) -> None:
    assert _runs(text, 2, after, _NEW_YORK) == expected, why


def test_repeated_time_runs_at_its_first_coming() -> None:
    at = parse_expression("cron(30 1 * * ? *)", _NEW_YORK, _START).next_run(datetime(2027, 11, 7, tzinfo=UTC))
    assert at == datetime(2027, 11, 7, 5, 30, tzinfo=UTC)


_BAD = [
    "",
    " ",
    "cron",
    "cron()",
    "cron( )",
    "cron(* * * * *)",
    "cron(0 0 * * ? * * *)",
    "cron(0 0 * * * *)",
    "cron(0 0 1 * MON *)",
    "cron(61 * * * ? *)",
    "cron(60 * * * ? *)",
    "cron(-1 * * * ? *)",
    "cron(* 24 * * ? *)",
    "cron(0 0 0 * ? *)",
    "cron(0 0 32 * ? *)",
    "cron(0 0 * 13 ? *)",
    "cron(0 0 * 0 ? *)",
    "cron(0 0 * FOO ? *)",
    "cron(0 0 ? * 0 *)",
    "cron(0 0 ? * 8 *)",
    "cron(0 0 ? * XYZ *)",
    "cron(0 0 ? * 3#6 *)",
    "cron(0 0 ? * 3#0 *)",
    "cron(0 0 ? * 3#1,6#3 *)",
    "cron(0 0 ? * #1 *)",
    "cron(0 0 * * ? 1969)",
    "cron(0 0 * * ? 2200)",
    "cron(*/0 * * * ? *)",
    "cron(*/-5 * * * ? *)",
    "cron(*/x * * * ? *)",
    "cron(1,,2 * * * ? *)",
    "cron(1- 0 * * ? *)",
    "cron(, * * * ? *)",
    "cron(1.5 * * * ? *)",
    "cron(99999999999999999999 * * * ? *)",
    "cron(*/99999999999999999999x * * * ? *)",
    "cron(" + "9" * 5000 + " * * * ? *)",
    "rate()",
    "rate(0 minutes)",
    "rate(-1 minutes)",
    "rate(1.5 hours)",
    "rate(5)",
    "rate(5 weeks)",
    "rate(5 seconds)",
    "rate(minutes)",
    "at()",
    "at(now)",
    "at(2027-13-01T00:00:00)",
    "at(2027-02-30T00:00:00)",
    "at(2027-01-01)",
    "at(2027-01-01T25:00:00)",
    "at(10000-01-01T00:00:00)",
    "every day",
    "cron(0 0 * * ? *",
    "(0 0 * * ? *)",
    "\x00",
]
# what an earlier reading took, or answered with another exception
_SLY = [
    "rate(99999999999999999999 days)",
    "rate(99999999999999 minutes)",
    "cron(5/ * * * ? *)",
    "cron(? * * * ? *)",
    "cron(0 ? * * ? *)",
    "cron(0 0 * ? ? *)",
    "cron(0 0 * * ? ?)",
    "cron(0 0 ? * ? *)",
    "cron(0 0 0W * ? *)",
    "cron(0 0 32W * ? *)",
    "cron(0 0 99W * ? *)",
    "cron(0 0 ? * 0L *)",
    "cron(0 0 ? * 8L *)",
    "cron(0 0 ? * 9#2 *)",
    "cron(0 0 ? * 0#2 *)",
    "cron(0-30- 0 * * ? *)",
    "cron(5/5/5 * * * ? *)",
    "cron(*-5 * * * ? *)",
]


@pytest.mark.parametrize("text", [*_BAD, *_SLY], ids=lambda text: text[:40] or "nothing")
def test_expression_that_cannot_be_read_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the service words the refusal
        parse_expression(text, _UTC, _START)


@pytest.mark.parametrize(
    "text",
    [
        "rate(999999999 days)",
        "rate(4000000 days)",
        "at(0001-01-01T00:00:00)",
        "at(9999-12-31T23:59:59)",
        "cron(0 0 31W * ? *)",
        "cron(0 0 1W * ? 2199)",
    ],
)
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "UTC", "America/New_York"])
def test_expression_at_the_ends_of_time_is_refused_or_runs_without_other_errors(text: str, zone: str) -> None:
    with contextlib.suppress(ValueError):
        expression = parse_expression(text, ZoneInfo(zone), _START)
        assert (at := expression.next_run(_START)) is None or at > _START


_SMALL = st.integers(0, 70).map(str)
_PIECE = st.one_of(
    _SMALL,
    st.sampled_from(
        ["*", "?", "L", "W", "1W", "15W", "0W", "MON", "SUN", "FRI-MON", "JAN", "6L", "2#1", "9#9", "0/15", "*/7"]
    ),
    st.tuples(_SMALL, st.sampled_from("-/,#"), _SMALL).map("".join),
    st.text("0123456789*?/-,#LWSUNMO ", max_size=6),
)


@settings(max_examples=examples(300))
@given(st.permutations(["0", "9", "?", "*", "MON", "*"]), st.integers(0, 5), _PIECE, st.booleans())
def test_any_cron_text_is_refused_with_value_error_or_runs_later_than_asked(
    shuffled: list[str], place: int, piece: str, in_order: bool
) -> None:
    fields = (
        (["0", "9", "?", "*", "?", "*"] if place in (2, 4) else ["0", "9", "1", "*", "?", "*"])
        if in_order
        else shuffled
    )
    fields[place] = piece
    try:
        expression = parse_expression(f"cron({' '.join(fields)})", _NEW_YORK, _START)
    except ValueError:
        return
    at = expression.next_run(_START)
    assert at is None or at > _START


@settings(max_examples=examples(150))
@given(st.text(max_size=30))
def test_any_text_is_refused_with_value_error_or_read(text: str) -> None:
    for whole in (text, f"at({text})", f"rate({text})", f"cron({text})"):
        with contextlib.suppress(ValueError):
            parse_expression(whole, _UTC, _START)


_SCHEDULES = st.sampled_from(
    [
        "cron(30 2 * * ? *)",
        "cron(30 1 ? * SUN *)",
        "cron(0/20 0-3 * * ? *)",
        "cron(5 9 15W * ? *)",
        "cron(5 9 L * ? *)",
        "cron(0 8 ? * 2#1 *)",
        "cron(0 8 ? * 6L *)",
        "rate(7 minutes)",
        "rate(3 days)",
        "at(2028-03-12T02:30:00)",
    ]
)
_ZONES = st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Santiago"])
_INSTANTS = st.datetimes(datetime(2027, 1, 1), datetime(2032, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(max_examples=examples(80))
@given(_SCHEDULES, _ZONES, st.lists(_INSTANTS, min_size=2, max_size=5))
def test_next_run_is_later_than_asked_and_never_goes_back(text: str, zone: str, instants: list[datetime]) -> None:
    expression = parse_expression(text, ZoneInfo(zone), _START)
    runs = [(after, expression.next_run(after)) for after in sorted(instants)]
    for after, at in runs:
        assert at is None or at > after
        if at is not None:
            assert expression.next_run(at - timedelta(microseconds=1)) == at, "nothing may lie between"
    for (_, earlier), (_, later) in pairwise(runs):
        assert later is None or (earlier is not None and earlier <= later)


@pytest.mark.parametrize("text", ["cron(0/5 8-17 ? * MON#2 *)", "cron(15 10 L * ? 2027)", "rate(2 hours)"])
def test_equal_schedules_are_equal_and_go_to_another_process(text: str) -> None:
    one, other = (parse_expression(text, _NEW_YORK, _START) for _ in range(2))
    assert one == other
    copied = pickle.loads(pickle.dumps(one))  # noqa: S301 - made right here
    assert (copied, copied.next_run(_START)) == (one, one.next_run(_START))
