"""Traffic in Python: scaling, moving, scenarios."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater_lab.traffic import SCENARIOS, Stream, Traffic, TrafficError, read_traffic, scenario, write_traffic

START = datetime(2026, 11, 3, 10, 0, 59, tzinfo=UTC)
STREAM = Stream(None, Dimension.WRITE)


@given(
    st.lists(st.floats(0, 5e5), min_size=1, max_size=60),
    st.sampled_from([60, 300, 1800]),
    st.floats(0.001, 1_000),
)
def test_totals_stay_to_half_a_unit(values: list[float], seconds: int, scale: float) -> None:
    traffic = Traffic.from_counts("made", {STREAM: values}, bin_seconds=seconds, start=START, scale=scale)
    assert traffic.total_units(STREAM) == pytest.approx(sum(values) * scale, abs=0.51, rel=1e-12)
    assert all(rate >= 0 for rate in traffic.rates[STREAM])


@given(st.lists(st.integers(0, 100_000), min_size=60, max_size=240), st.floats(0.01, 50))
def test_scaling_keeps_totals_to_half_a_unit(values: list[int], factor: float) -> None:
    for seconds in (1, 60):
        traffic = Traffic.from_counts("made", {STREAM: map(float, values)}, bin_seconds=seconds, start=START)
        assert traffic.scaled(factor).total_units(STREAM) == pytest.approx(
            traffic.total_units(STREAM) * factor, abs=0.51, rel=1e-12
        )


@given(st.lists(st.integers(0, 90_000), min_size=1, max_size=12), st.floats(0, 3), st.integers(0, 9))
def test_noise_keeps_each_minute_and_is_the_same_for_its_seed(values: list[int], deviation: float, seed: int) -> None:
    index = Stream("by_day", Dimension.WRITE)
    counts = {STREAM: map(float, values), index: (value / 2 for value in values)}
    minutes = Traffic.from_counts("made", counts, bin_seconds=60, start=START)
    noisy = minutes.with_noise(deviation, seed=seed)
    assert (noisy.bin_seconds, noisy.source_bin_seconds, noisy.start) == (1, 60, minutes.start)
    for stream, rates in minutes.rates.items():
        found = noisy.rates[stream]
        assert [sum(found[at : at + 60]) for at in range(0, len(found), 60)] == [rate * 60 for rate in rates]
    assert noisy.rates == minutes.with_noise(deviation, seed=seed).rates
    assert noisy.notes == (f"made: the seconds within minutes are drawn at random: noise {deviation:g}, seed {seed}",)


def test_noise_makes_slots_of_ten_seconds_differ_by_its_deviation() -> None:
    minutes = Traffic.from_counts("made", {STREAM: [60_000.0] * 500}, bin_seconds=60, start=START)

    def deviation_of(noise: float) -> float:
        rates = minutes.with_noise(noise).rates[STREAM]
        return statistics.stdev(math.log(sum(rates[at : at + 10])) for at in range(0, len(rates), 10))

    assert minutes.with_noise(0).rates[STREAM].tolist() == [1_000 * 60] * 30_000
    assert [round(deviation_of(noise), 1) for noise in (0.3, 0.6, 1.0)] == [0.3, 0.6, 1.0]
    seconds = minutes.with_noise(0.3)
    with pytest.raises(TrafficError, match=r"^made: has seconds already; noise is for traffic with minutes alone$"):
        seconds.with_noise(0.3)


def test_noise_is_saved_and_scaled_with_the_rates_that_it_has(tmp_path: Path) -> None:
    minutes = replace(Traffic.from_counts("made", {STREAM: [6_000.5] * 5}, bin_seconds=60, start=START), gaps=((1, 2),))
    noisy = minutes.with_noise(0.5)
    assert (noisy.counts, noisy.gaps) == (None, ((1, 2),))
    doubled = noisy.scaled(2)
    assert (doubled.minutes, doubled.source_bin_seconds, doubled.gaps) == (5, 60, ((1, 2),))
    assert doubled.mean_units_per_second() == pytest.approx(200, rel=1e-3)
    write_traffic(noisy, tmp_path / "noisy.csv")
    found = read_traffic(tmp_path / "noisy.csv")
    assert (found.minutes, found.bin_seconds, found.gaps) == (5, 1, ((60, 120),))
    kept = [*range(60), *range(180, 300)]
    assert [found.rates[STREAM][at] for at in kept] == [noisy.rates[STREAM][at] for at in kept]


def test_mean_start_and_length() -> None:
    traffic = Traffic.from_counts("made", {STREAM: [600.0, 1_800.0]}, bin_seconds=60, start=START)
    assert traffic.mean_units_per_second() == 20
    assert traffic.with_mean(1_000).mean_units_per_second() == 1_000
    assert traffic.start == START.replace(second=0)


def test_invalid_scale_is_refused() -> None:
    idle = Traffic.from_counts("idle", {STREAM: [0.0]}, bin_seconds=60, start=START)
    with pytest.raises(TrafficError, match=r"^idle: has no requests, so it cannot be scaled to a mean rate$"):
        idle.with_mean(5)
    for factor, text in ((0, "0"), (-2, "-2"), (float("nan"), "nan"), (float("inf"), "inf")):
        with pytest.raises(TrafficError, match=rf"^the scale must be above 0, got {text}$"):
            idle.scaled(factor)
    with pytest.raises(TrafficError) as refused:
        Traffic.from_counts("huge", {STREAM: [1e30]}, bin_seconds=60, start=START)
    assert str(refused.value) == (
        "huge: bin 0 has 1e+30 writes after scaling, allowed: 0 to 10,000,000 units per second"
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_is_the_same_for_the_same_seed(name: str) -> None:
    assert scenario(name).rates == scenario(name).rates
    is_random = name == "daily" or name.startswith("figure")
    assert (scenario(name, seed=2).rates != scenario(name, seed=3).rates) is is_random


@pytest.mark.parametrize(("name", "meant"), [("storm", ""), ("dayly", "; did you mean daily?")])
def test_unknown_scenario_is_refused(name: str, meant: str) -> None:
    with pytest.raises(TrafficError) as refused:
        scenario(name)
    assert str(refused.value) == (
        f"unknown scenario '{name}'; the scenarios are constant, step, ramp, daily, figure-2, figure-3, figure-4, "
        f"figure-5, figure-6, figure-7, figures-calm{meant}"
    )


def test_busiest_minute_is_in_units_per_second() -> None:
    by_minute = Traffic.from_counts("made", {STREAM: [600.0, 4_200.0, 60.0]}, bin_seconds=60, start=START)
    assert by_minute.busiest_minute(STREAM) == 70
    seconds = [5.0] * 60 + [0.0] * 59 + [540.0]
    by_second = Traffic.from_counts("made", {STREAM: seconds}, bin_seconds=1, start=START)
    assert by_second.busiest_minute(STREAM) == 9
