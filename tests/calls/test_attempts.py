"""Pauses between attempts, rests of what failed, and the attempts that botocore makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.calls.attempts import (
    COORDINATOR_REQUEST,
    LOST_WRITE,
    PAID_REQUEST,
    RARE,
    Pauses,
    Rest,
    client_config,
)


@pytest.mark.parametrize(
    ("pauses", "longest"),
    [
        pytest.param(PAID_REQUEST, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20.0, 20.0], id="a request that is paid"),
        pytest.param(COORDINATOR_REQUEST, [1, 2, 4, 8, 16, 16], id="a coordinator"),
        pytest.param(LOST_WRITE, [0.04, 0.08, 0.16, 0.32, 0.5, 0.5], id="a lost write"),
    ],
)
def test_pauses_double_up_to_the_longest(pauses: Pauses, longest: list[float]) -> None:
    for attempt, most in enumerate(longest, start=1):
        found = [pauses.seconds(attempt) for _ in range(20)]
        assert most * pauses.least <= min(found) < max(found) <= most


@given(st.integers(1, 10**9))
def test_pause_is_never_longer_than_the_longest(attempt: int) -> None:
    assert 10.0 <= PAID_REQUEST.seconds(attempt + 10) <= 20.0


def test_rests_double_up_to_a_quarter_of_an_hour_and_end_with_a_success_or_a_clock_that_is_set_back() -> None:
    rest = Rest()
    for number, seconds in enumerate([15, 30, 60, 120, 240, 480, 900, 900]):
        now = 1_000.0 * number
        assert seconds * 0.75 <= rest.fail(now) <= seconds * 1.25
        assert rest.is_resting(rest.ends_at - 1)
        assert not rest.is_resting(rest.ends_at)
        assert not rest.is_resting(now - 1)
    rest.succeed()
    assert not rest.is_resting(7_000.0)
    assert rest.fail(9_000.0) <= 15 * 1.25


def test_client_sends_a_request_as_often_as_its_purpose_says() -> None:
    config: Any = client_config(RARE, (2, 3), max_pool_connections=7)
    assert config.retries == {"mode": "standard", "total_max_attempts": 8}
    assert (config.connect_timeout, config.read_timeout, config.max_pool_connections) == (2, 3, 7)
