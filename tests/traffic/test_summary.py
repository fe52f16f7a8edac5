"""The numbers that a series of traffic is told by, and which minutes they leave out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater_lab.traffic import Stream, Traffic, summarize

STREAM = Stream(None, Dimension.WRITE)
START = datetime(2026, 11, 2, tzinfo=UTC)


def _traffic(units: list[int], seconds: int = 60) -> Traffic:
    return Traffic.from_counts("made", {STREAM: map(float, units)}, bin_seconds=seconds, start=START)


def test_mean_percentile_and_peak_of_minutes() -> None:
    summary = summarize(_traffic([60 * number for number in range(1, 201)]), STREAM, width=4)
    assert (summary.mean, summary.p99, summary.peak, summary.units) == (100.5, 198, 200, 60 * 20_100)
    assert summary.peak_to_mean == 200 / 100.5
    assert summary.shape == (0.25, 0.5, 0.75, 1.0)


def test_gaps_are_left_out_whatever_the_length_of_a_bin() -> None:
    for seconds in (60, 300, 20):
        units = [6 * seconds, 0, 0, 0, 0, 0, 3 * seconds, 3 * seconds, 3 * seconds]
        summary = summarize(replace(_traffic(units, seconds), gaps=((1, 5),)), STREAM, width=100)
        # of twenty seconds each, the first is alone in its minute and the third minute is whole
        assert (summary.mean, summary.peak) == ((4.5, 6) if seconds == 20 else (3.75, 6))
        assert (None in summary.shape) is True


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=100), st.integers(1, 120))
def test_no_number_is_out_of_order(units: list[int], width: int) -> None:
    summary = summarize(_traffic(units), STREAM, width=width)
    assert 0 <= summary.p99 <= summary.peak
    assert summary.mean <= summary.peak * 1.000001
    assert len(summary.shape) == min(width, len(units))
    assert max(level for level in summary.shape if level is not None) == (1.0 if any(units) else 0.0)
    assert (summary.peak_to_mean is None) is not any(units)
