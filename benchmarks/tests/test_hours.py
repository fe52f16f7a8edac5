"""The hours on demand that save the most, beside all there are."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.hours import Weekly, best_of_each_day, best_weekly, best_window, gains_of

# of the hour before a window and of the one after it, what is billed on demand
_BEFORE, _AFTER = 180 / 3600, 7 / 3600
_usd = st.integers(0, 40).map(float)
_hours = st.lists(st.tuples(_usd, _usd), min_size=1, max_size=7)


# of a window whose neighbours cost 2 on demand
_SWITCHES_USD = 2 * (_BEFORE + _AFTER)


def _usd_of(hours: list[tuple[float, float]], chosen: set[int]) -> float:
    """What hours cost of which some are on demand, and with each window its switches before and after it."""
    total = sum(other if hour in chosen else own for hour, (own, other) in enumerate(hours))
    # an hour between two windows is billed for the switch of each
    for hour in chosen:
        for edge, share in ((hour - 1, _BEFORE), (hour + 1, _AFTER)):
            if edge not in chosen and 0 <= edge < len(hours):
                total += share * hours[edge][1]
    return total


@settings(max_examples=200, deadline=None)
@given(_hours)
def test_best_hours_of_a_day_are_the_cheapest_of_all_choices(hours: list[tuple[float, float]]) -> None:
    places = range(len(hours))
    choices = (set(chosen) for count in range(len(hours) + 1) for chosen in combinations(places, count))
    least = min(_usd_of(hours, chosen) for chosen in choices if _windows(chosen) <= 4)
    assert best_of_each_day([own for own, _ in hours], [other for _, other in hours]) == pytest.approx(least)


def _windows(chosen: set[int]) -> int:
    return sum(hour - 1 not in chosen for hour in chosen)


def test_one_window_is_the_same_on_all_days() -> None:
    on_demand = [2.0] * 48
    provisioned = [10.0 if hour % 24 in (6, 7, 8) else 1.0 for hour in range(48)]
    # three hours of 8 less, and the switches, on two days
    usd, window = best_window(provisioned, on_demand)
    assert usd == pytest.approx(sum(provisioned) - 2 * (3 * 8 - _SWITCHES_USD))
    assert window == "3 h from hour 6"


def test_window_on_weekdays_opens_only_where_it_saves() -> None:
    on_demand = [2.0] * (24 * 14)
    provisioned = [1.0] * (24 * 14)
    for day in (2, 9, 12):
        for hour in (6, 7, 8):
            provisioned[24 * day + hour] = 10.0
    usd, weekly = best_weekly(provisioned, on_demand)
    # day 12's only opening pays as well as those of day 2 and 9, and its other one loses
    assert weekly == Weekly(6, 3, (2, 5))
    pays, loses = 24 - _SWITCHES_USD, -3 - _SWITCHES_USD
    assert gains_of(weekly, provisioned, on_demand) == pytest.approx([pays, loses, pays, pays])
    assert usd == pytest.approx(sum(provisioned) - 3 * pays - loses)
    assert weekly.text(datetime(2026, 11, 2, tzinfo=UTC)) == "Wed Sat, 3 h from hour 6"
    assert Weekly(0, 0, ()).text(datetime(2026, 11, 2, tzinfo=UTC)) == "none"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(_usd, _usd), min_size=30, max_size=24 * 9))
def test_no_other_weekdays_save_more_in_the_hours_that_are_chosen(hours: list[tuple[float, float]]) -> None:
    own, other = [each for each, _ in hours], [each for _, each in hours]
    usd, weekly = best_weekly(own, other)
    choices = [days for count in range(8) for days in combinations(range(7), count)]
    least = min(sum(own) - sum(gains_of(Weekly(weekly.start, weekly.length, days), own, other)) for days in choices)
    assert usd == pytest.approx(least)
