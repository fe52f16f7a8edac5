"""What CloudWatch has of a target: minutes that are known, minutes still to come, and how old the newest is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from highwater.core.scaler import Observation

# 25 seconds into minute 1,000 since 1970
NOW = datetime(1970, 1, 1, 16, 40, 25, tzinfo=UTC)
AGE = timedelta(minutes=12, seconds=25)


def seen(*consumed: int | None, newest: int = 990) -> Observation:
    return Observation.of(newest, consumed, (0,) * len(consumed))


def test_minutes_without_a_datapoint_at_the_end_are_still_to_come() -> None:
    observation = seen(4, None, 7, None, None, None)
    assert observation.pending_minutes == 3
    assert observation.known_units == (4, None, 7)
    assert not observation.is_empty


def test_age_is_counted_from_the_end_of_the_newest_minute_with_a_datapoint() -> None:
    assert seen(4, 7, None, None, None).age(NOW) == AGE, "minute 987 ended with minute 988's beginning"
    assert seen(4, 7, newest=987).age(NOW) == AGE


def test_age_is_never_below_zero() -> None:
    assert seen(4, newest=999).age(NOW) == timedelta(seconds=25)
    assert seen(4, newest=1_000).age(NOW) == timedelta(0), "the machine's clock is behind that of CloudWatch"


@pytest.mark.parametrize("observation", [Observation.nothing(), seen(), seen(None, None)])
def test_observation_without_a_datapoint_is_empty_and_as_old_as_can_be(observation: Observation) -> None:
    assert observation.is_empty
    assert observation.known_units == ()
    assert observation.pending_minutes == len(observation.consumed_units)
    assert observation.age(NOW) == timedelta.max


def test_minutes_of_nothing_and_without_throttles_are_accepted() -> None:
    assert Observation.of(990, (0, None), (0, 0)).known_units == (0,)
    assert Observation.nothing() == Observation.of(0, (), ())


@pytest.mark.parametrize(
    ("consumed", "throttled", "message"),
    [
        pytest.param((1,), (1, 2), "1 minutes consumed and 2 throttled", id="more throttled"),
        pytest.param((1, -2), (1, 1), "units below zero", id="consumed"),
        pytest.param((1, None), (-1, 1), "units below zero", id="throttled"),
    ],
)
def test_series_that_cannot_be_are_refused(consumed: tuple[int | None], throttled: tuple[int], message: str) -> None:
    with pytest.raises(ValueError, match=rf"\A{message}\Z"):
        Observation.of(7, consumed, throttled)
