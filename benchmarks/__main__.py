"""Runs a measurement by its name: `make benchmark NAME=jumps`, or `python -m benchmarks jumps`.

Without a name it lists them. What follows the name goes to the measurement, whose `--help` says what it takes. Exit
status: that of the measurement; 2 for a name that is unknown, and for arguments where none are taken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from highwater.core.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A measurement.

    Attributes:
        command: What Python is started with: usually `-m` and a module of this package.
        title: What it measures, in a line.
        takes: How long it takes on two processors, and what else it needs; in words.
        arguments: Arguments that it may be given, as for `make`; empty if it takes none.
        environment: Environment variables that it needs.
    """

    command: tuple[str, ...]
    title: str
    takes: str
    arguments: str = ""
    environment: tuple[tuple[str, str], ...] = ()


def _module(module: str, title: str, takes: str, arguments: str = "") -> Benchmark:
    return Benchmark(("-m", *f"benchmarks.{module}".split()), title, takes, arguments)


_PYTEST: Final = ("-m", "pytest", "--numprocesses", "0")
_TRACES: Final = "TRACES=folder"

BENCHMARKS: Final[dict[str, Benchmark]] = {
    "scoreboard": _module(
        "scoreboard", "every policy over every trace; writes docs/benchmarks.md", "10 minutes", _TRACES
    ),
    "worlds": _module(
        "worlds",
        "the scaler where AWS differs from what is taken to be true; writes docs/worlds.md",
        "an hour; goes on where it was stopped",
        f'{_TRACES}, ARGS="--days 7 --world burst"',
    ),
    "advice": _module(
        "advice",
        "the advice of recommend on days that it has not seen; writes docs/advice.md",
        "a minute",
        f'{_TRACES}, ARGS="--swapped"',
    ),
    "simulate": _module("simulate", "speed and memory of the simulator", "3 minutes", 'ARGS="--tables 100"'),
    "month": _module(
        "simulate --modes", "processor time of a table-month with the scaler, in each of its modes", "3 minutes"
    ),
    "recommend": _module(
        "simulate --recommend", "seconds of recommend for 14 days of six targets, and its table-months", "2 minutes"
    ),
    "thirty": _module(
        "thirty",
        "recommend for an app of thirty tables with 14 days: first answer, seconds for each target",
        "4 minutes",
        f'{_TRACES}, ARGS="--tables 6"',
    ),
    "figures": _module("figures", "an article's figures beside the simulator's; writes docs/figures.md", "seconds"),
    "designs": _module(
        "designs", "the article's eight designs with a paced job; writes docs/eight-designs.md", "seconds"
    ),
    "tour": _module("tour", "a window, a surge and a pull request in pictures; writes docs/tour.md", "half a minute"),
    "jumps": _module("jumps", "how the scaler meets a jump in traffic, beside native scaling", "seconds"),
    "batches": _module(
        "batches", "batches that run every so often, beside native target tracking", "half a minute", "ARGS=--all"
    ),
    "random": _module(
        "random_days",
        "days of random traffic of fifteen families, beside native target tracking",
        "4 minutes",
        'ARGS="--first 100"',
    ),
    "cells": _module(
        "cells",
        "how many traces, random days and batches the scaler serves worse than native target tracking, by world",
        "an hour; goes on where it was stopped",
        f'{_TRACES}, ARGS="--world burst --kind batch"',
    ),
    "rent": _module(
        "rent",
        "what each stage and constant of the scaler buys, each switched off alone",
        "an hour or more; goes on where it was stopped",
        f'{_TRACES}, ARGS="--rule regret"',
    ),
    "alarm": _module(
        "fleet_alarm", "one alarm for the scaler's whole fleet in place of one a target", "3 minutes", _TRACES
    ),
    "hours": _module(
        "hours", "what hours on demand would save a provisioned table, in hindsight", "2 minutes", _TRACES
    ),
    "modes": _module(
        "modes", "hours on demand as a policy that the days before choose, beside others", "10 minutes", _TRACES
    ),
    "scaler": _module(
        "scaler", "one run of the scaler for 15,000 targets: time, calls, memory", "seconds", "ARGS=--all"
    ),
    "scaler-cost": _module("scaler_cost", "what the scaler costs at its defaults, with the arithmetic", "seconds"),
    "synth": _module("synth", "synth time against hand-written resources", "a few minutes", 'ARGS="--tables 50"'),
    "audit": _module(
        "audit",
        "300 tables audited: seconds of simulation, then planted faults found in a local cloud",
        "5 minutes",
        'ARGS="--tables 60"',
    ),
    "local": _module(
        "local_cloud", "what metering costs the local cloud, beside plain MiniStack", "2 minutes", 'ARGS="--rounds 1"'
    ),
    "day": _module(
        "local_day", "a day of auto scaling in the local cloud, beside the simulator", "3 minutes", 'ARGS="--hours 6"'
    ),
    "meter": _module(
        "meter", "what the meter costs a request, and a thousand processes' pulses for an hour", "half an hour"
    ),
    "keys": _module("keys", "what counting partition keys costs a request, beside the meter", "a minute"),
    "pace": _module(
        "pace",
        "paced scans beside other clients' and live traffic, on a local cloud",
        "15 minutes",
        'ARGS="--only NAME"',
    ),
    "latency": _module(
        "latency",
        "units a second that paced work reaches where requests take 5 to 200 ms",
        "3 minutes",
        'ARGS="--latencies 20 80"',
    ),
    "drain": Benchmark(
        (*_PYTEST, "-q", "-s", "--timeout", "3600", "-m", "cloud", "tests/deploys/test_buffered_writes.py"),
        "ten thousand buffered writes to a table that throttles, on a local cloud: the time against the formula's",
        "5 minutes",
        environment=(("HIGHWATER_BUFFERED_MESSAGES", "10000"),),
    ),
    "turns": Benchmark(
        (*_PYTEST, "-q", "-s", "tests/client/test_drain_environments.py"),
        "5 and 20 environments of the function of buffered writes, that take turns: what they write of one budget",
        "half a minute",
    ),
}


def listing() -> str:
    """Return the names, each with what it measures, how long it takes and what it may be given."""
    width = max(map(len, BENCHMARKS))
    lines = ["make benchmark NAME=..., offline and free:"]
    for name, each in BENCHMARKS.items():
        given = f"; {each.arguments}" if each.arguments else ""
        lines.append(f"  {name:<{width}}  {each.title} ({each.takes}{given})")
    return "\n".join(lines)


def _become(benchmark: Benchmark, arguments: Sequence[str]) -> NoReturn:
    """Replace this process, so that the time and memory of the measurement are its own."""
    environment = os.environ | dict(benchmark.environment)
    os.execve(sys.executable, [sys.executable, *benchmark.command, *arguments], environment)  # noqa: S606


def main(arguments: Sequence[str]) -> int:
    """Print the names, or become the process of the measurement that is named."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(listing())
        return 0
    name, *given = arguments
    found = BENCHMARKS.get(name)
    if found is None:
        fix = did_you_mean(name, BENCHMARKS) or "; make benchmark lists them"
        print(f"benchmarks: NAME: unknown measurement {name!r}{fix}", file=sys.stderr)
        return 2
    if given and not found.arguments:
        print(f"benchmarks: {name} takes no arguments, got {' '.join(given)}; leave them out", file=sys.stderr)
        return 2
    _become(found, given)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
