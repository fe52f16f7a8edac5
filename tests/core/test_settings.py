"""Settings of the scaler: what a user may choose, and what follows from it."""

from __future__ import annotations

import pytest

from highwater.core.scaler import Mode, ScalerSettings


def test_price_of_a_throttled_unit_out_of_range_is_refused() -> None:
    for price in (0, 1_000_000):
        assert ScalerSettings(throttle_price_requests=price).throttle_price_requests == price
    with pytest.raises(ValueError, match=r"\Athrottle_price_requests must be from 0 to 1,000,000, got -1\Z"):
        ScalerSettings(throttle_price_requests=-1)
    with pytest.raises(ValueError, match=r"\Athrottle_price_requests must be from 0 to 1,000,000, got 1,000,001\Z"):
        ScalerSettings(throttle_price_requests=1_000_001)


def test_defaults_move_floors_and_price_a_throttled_unit_at_a_hundred_requests() -> None:
    assert (ScalerSettings().mode, ScalerSettings().throttle_price_requests) == (Mode.FLOOR, 100)


@pytest.mark.parametrize(
    ("price", "percent"), [(0, 90), (9, 90), (10, 80), (99, 80), (100, 70), (999, 70), (1_000, 60), (1_000_000, 30)]
)
def test_ten_times_the_price_of_a_throttle_buys_ten_percent_more_headroom(price: int, percent: int) -> None:
    assert ScalerSettings(throttle_price_requests=price).cautious_percent == percent
