"""Scenarios: synthetic traffic, identical for the same seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from highwater.core import Dimension
from highwater.core.errors import did_you_mean
from highwater_lab.traffic.series import DEFAULT_START, Stream, Traffic, TrafficError

# Random jitter of the figures and of the daily curve, as a share of the mean: plus or minus 8 %
_JITTER: Final = 0.08
_HOUR: Final = 3600

# Returns the mean units of a second, given the number of the second
_Shape = Callable[[int], float]


def scenario(
    name: str, *, seed: int = 1, start: datetime | None = None, dimension: Dimension = Dimension.WRITE
) -> Traffic:
    """Return one of `SCENARIOS` as traffic for one dimension of a table, with one-second bins.

    *seed* determines the random jitter. *start* is Monday 2026-11-02 00:00 UTC by default. Raises `TrafficError` for
    an unknown name.
    """
    if name not in _SHAPES:
        known = ", ".join(SCENARIOS) + did_you_mean(name, SCENARIOS)
        raise TrafficError(f"unknown scenario {name!r}; the scenarios are {known}")
    seconds, jitter, shape = _SHAPES[name]
    counts = _jittered(seconds, shape, jitter, random.Random(f"{name} {seed}"))  # noqa: S311 - no secret
    return Traffic.from_counts(name, {Stream(None, dimension): counts}, bin_seconds=1, start=start or DEFAULT_START)


def _jittered(seconds: int, shape: _Shape, jitter: float, generator: random.Random) -> Iterator[float]:
    for second in range(seconds):
        yield shape(second) * (1 + jitter * (2 * generator.random() - 1))


def _figure(base: int, steps: tuple[tuple[int, int], ...], end: int) -> _Shape:
    """Return a shape of *base* units that changes at each step (minute, units) and returns to the base at *end*."""

    def shape(second: int) -> float:
        minute = second / 60
        units = base
        for at, level in steps:
            if minute >= at:
                units = level
        return units if minute < end else base

    return shape


def _daily(second: int) -> float:
    """Return the units of a daily cosine: lowest with 200 at 08:00, highest with 1,800 at 20:00."""
    return 1_000 - 800 * math.cos(2 * math.pi * (second / _HOUR - 8) / 24)


def _ramp(second: int) -> float:
    return 1_000 + 4_000 * min(1.0, max(0.0, (second - 1_800) / 3_600))


_SHAPES: Final[dict[str, tuple[int, float, _Shape]]] = {
    "constant": (4 * _HOUR, 0.0, lambda _: 1_000.0),
    "step": (4 * _HOUR, 0.0, _figure(1_000, ((60, 4_000),), 120)),
    "ramp": (4 * _HOUR, 0.0, _ramp),
    "daily": (7 * 24 * _HOUR, _JITTER, _daily),
    # Figures 2 to 7 of the AWS Database Blog post "Handle traffic spikes with Amazon DynamoDB provisioned capacity";
    # here the surge begins at minute 30 and lasts for 20 minutes
    "figure-2": (100 * 60, _JITTER, _figure(4_500, ((30, 18_000),), 50)),
    "figure-3": (100 * 60, _JITTER, _figure(4_500, ((30, 17_000),), 50)),
    "figure-4": (100 * 60, _JITTER, _figure(4_500, ((30, 18_000),), 50)),
    "figure-5": (100 * 60, _JITTER, _figure(4_500, ((30, 14_000),), 50)),
    "figure-6": (100 * 60, _JITTER, _figure(4_500, ((30, 9_000), (34, 14_000), (37, 18_000)), 57)),
    "figure-7": (100 * 60, _JITTER, _figure(4_500, ((30, 18_000),), 50)),
    # the figures' traffic without the surge
    "figures-calm": (100 * 60, _JITTER, _figure(4_500, (), 100)),
}

SCENARIOS: Final = tuple(_SHAPES)
