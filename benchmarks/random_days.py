"""Simulates days of random traffic, and prints the scaler's cost and throttles beside native target tracking.

Traces are few and a grid is regular, so both may miss what serves some traffic badly. Each number is a day of one of
fifteen families, made at random, the same on every machine. Run it with `make benchmark NAME=random`; a hundred days
take about four minutes. Below the table are the days that a mode serves worst: that throttle more than native, or
cost more than 1.15 of it where native throttles nothing. It prints findings to look at, and always returns 0.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from typing import Final, TypeAlias

from benchmarks.batches import POLICIES, Result, results_of
from highwater.core import Dimension
from highwater.core.pulses import SLOT_SECONDS
from highwater_lab.traffic import Traffic
from highwater_lab.traffic.series import Stream

DAY: Final = 86_400
_HOUR: Final = 3_600
_START: Final = datetime(2026, 1, 5, tzinfo=UTC)
_WORST: Final = 5

# Units per second, for each second of the day
Rates: TypeAlias = list[float]
Family: TypeAlias = Callable[[random.Random, float], Rates]


def _flat(_: random.Random, base: float) -> Rates:
    return [base] * DAY


def _waves(draw: random.Random, base: float) -> Rates:
    """A day's wave, from 0.4 to 1.6 times the base."""
    phase = draw.uniform(0, 2 * math.pi)
    return [base * (1 + 0.6 * math.sin(2 * math.pi * second / DAY + phase)) for second in range(DAY)]


def _growth(draw: random.Random, base: float) -> Rates:
    """A steady climb to up to six times the base."""
    times = draw.uniform(1.2, 6)
    return [base * times ** (second / DAY) for second in range(DAY)]


def _steps(draw: random.Random, base: float) -> Rates:
    """A new level at each hour, hour and a half, or two hours."""
    every = draw.choice([3_600, 5_400, 7_200])
    levels = [base * draw.choice([0.5, 1, 1.5, 2, 3]) for _ in range(-(-DAY // every))]
    return [levels[second // every] for second in range(DAY)]


def _idle(draw: random.Random, base: float) -> Rates:
    """Nearly idle, but for some hours at the base."""
    begins, hours = draw.randrange(1, 20), draw.randint(1, 4)
    return [base if begins <= second // _HOUR < begins + hours else base / 50 for second in range(DAY)]


def _ramps(draw: random.Random, base: float) -> Rates:
    """Climbs of an hour or two to some times the base, each with a cliff at its end."""
    every, times = draw.choice([_HOUR, 2 * _HOUR]), draw.uniform(2, 6)
    return [base * (1 + (times - 1) * (second % every) / every) for second in range(DAY)]


def _switches(draw: random.Random, base: float) -> Rates:
    """On and off: some times the base for a part of each period of minutes."""
    every, times, share = draw.choice([4, 10, 20, 40, 120]) * 60, draw.uniform(2, 8), draw.uniform(0.1, 0.6)
    return [base * (times if second % every < share * every else 1) for second in range(DAY)]


def _with_spikes(draw: random.Random, rates: Rates, jitter: float = 0.0) -> Rates:
    """Add spikes of seconds to minutes every 5 to 90 minutes; *jitter* is by how much they vary, from 0 to 1."""
    every = draw.choice([5, 7, 10, 12, 15, 20, 25, 30, 45, 52, 60, 90]) * 60
    seconds, times = draw.choice([5, 10, 20, 30, 45, 60, 90, 120, 240]), draw.uniform(1.5, 12)
    spiky, at = rates[:], draw.uniform(0, every)
    while at < DAY:
        height = times * draw.uniform(1 - jitter, 1 + jitter)
        begins = int(max(0, at + jitter * draw.uniform(-every, every)))
        for second in range(begins, min(DAY, begins + seconds)):
            spiky[second] = max(spiky[second], rates[second] * height)
        at += every
    return spiky


def _with_crowds(draw: random.Random, rates: Rates) -> Rates:
    """Add one to eight flash crowds of a minute to an hour and a half."""
    crowded = rates[:]
    for _ in range(draw.randint(1, 8)):
        begins, seconds = draw.randrange(_HOUR, DAY), draw.choice([60, 180, 600, 1_800, 5_400])
        times = draw.uniform(2, 12)
        for second in range(begins, min(DAY, begins + seconds)):
            crowded[second] = rates[second] * times
    return crowded


def _with_noise(draw: random.Random, rates: Rates, seconds: int) -> Rates:
    """Vary stretches of so many seconds at random: lognormal, with a deviation of 0.1 to 1."""
    deviation, noisy = draw.uniform(0.1, 1), rates[:]
    for begins in range(0, DAY, seconds):
        factor = draw.lognormvariate(-(deviation**2) / 2, deviation)
        for second in range(begins, min(DAY, begins + seconds)):
            noisy[second] *= factor
    return noisy


FAMILIES: Final[Mapping[str, Family]] = {
    "spikes": lambda draw, base: _with_spikes(draw, _flat(draw, base)),
    "spikes that vary": lambda draw, base: _with_spikes(draw, _flat(draw, base), jitter=0.3),
    "flash crowds": lambda draw, base: _with_crowds(draw, _flat(draw, base)),
    "steps": _steps,
    "slots vary": lambda draw, base: _with_noise(draw, _flat(draw, base), SLOT_SECONDS),
    "minutes vary": lambda draw, base: _with_noise(draw, _flat(draw, base), 60),
    "wave": _waves,
    "wave with spikes": lambda draw, base: _with_spikes(draw, _waves(draw, base)),
    "wave, slots vary": lambda draw, base: _with_noise(draw, _waves(draw, base), SLOT_SECONDS),
    "wave with crowds": lambda draw, base: _with_crowds(draw, _waves(draw, base)),
    "growth with spikes": lambda draw, base: _with_spikes(draw, _growth(draw, base)),
    "all of it": lambda draw, base: _with_spikes(draw, _with_crowds(draw, _waves(draw, base)), jitter=0.3),
    "idle": _idle,
    "ramps": _ramps,
    "on and off": _switches,
}


def day(number: int) -> tuple[str, Traffic]:
    """Return the family and the traffic of the day *number*: families take turns, the rest is drawn at random."""
    draw = random.Random(number)  # noqa: S311 - no secret
    family = list(FAMILIES)[number % len(FAMILIES)]
    rates = FAMILIES[family](draw, draw.choice([50, 300, 1_000, 3_000]))
    counts = {Stream(None, Dimension.WRITE): rates}
    return family, Traffic.from_counts(f"{family} {number}", counts, bin_seconds=1, start=_START)


def run(number: int) -> tuple[int, str, tuple[Result, ...]]:
    """Simulate all policies on the day *number*; its number, its family, and a result for each."""
    family, traffic = day(number)
    return number, family, results_of("random", traffic)


def lines_of(policies: Sequence[str], found: Sequence[tuple[int, str, tuple[Result, ...]]]) -> list[str]:
    """Return the table: a line for each policy but the first, which is native; then the worst days of each."""
    lines = [f"{'':24} {'cost':>6} {'throttled':>10} {'more':>5} {'dear':>5}"]
    worst: list[str] = []
    throttled = sum(results[0].throttled for _, _, results in found)
    for at, policy in enumerate(policies[1:], 1):
        pairs = [(results[at], results[0], number, family) for number, family, results in found]
        cost = math.exp(sum(math.log(one.cost / native.cost) for one, native, _, _ in pairs) / len(pairs))
        share = sum(one.throttled for one, _, _, _ in pairs) / max(throttled, 1)
        more = sum(one.throttles_more(native) for one, native, _, _ in pairs)
        dear = sum(one.is_dear(native) for one, native, _, _ in pairs)
        bad = [pair for pair in pairs if pair[0].is_marked(pair[1])]
        lines.append(f"{policy:24} {cost:6.3f} {share:10.3f} {more:5} {dear:5}")
        bad.sort(key=lambda pair: (pair[0].throttled - pair[1].throttled, pair[0].cost / pair[1].cost), reverse=True)
        worst += [
            f"{policy}: day {number}, {family}: {one.throttled:,.0f} per million at {one.cost / native.cost:.2f}, "
            f"native {native.throttled:,.0f}"
            for one, native, number, family in bad[:_WORST]
        ]
    return lines + worst


def main(arguments: Sequence[str]) -> int:
    """Print a line for each policy and its worst days; return 0."""
    parser = argparse.ArgumentParser(prog="random", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the number of the first day (default %(default)s)")
    parser.add_argument("--days", type=int, default=100, help="how many days (default %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    options = parser.parse_args(arguments)
    if options.days < 1 or options.first < 0:
        parser.error(f"days: got {options.days} from number {options.first} on; give one or more, from 0 on")
    numbers = range(options.first, options.first + options.days)
    with ProcessPoolExecutor(options.processes) as pool:
        found = list(pool.map(run, numbers))
    print(f"{options.days} days from number {options.first} on, relative to native target tracking at 70 %")
    for line in lines_of(POLICIES, found):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
