"""What pulses buy, relative to native target tracking at 70 %: `make benchmark NAME=pulses`.

Over the serviceable traces of the scoreboard: with the defaults, where half the fleet or none of it tells, where
pulses come half a minute late, where the burst bucket is shorter than documented, and lowered sooner; over those of at
most a month also with seconds that are drawn at random within their minutes. Then each trace lowered from the minute
that all others choose. For traces of your own give --traces FOLDER.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.scoreboard import add_traces, find_traces, load, make_setup, score_of
from benchmarks.scores import BASE, Score, Scores, Trace, collect, left_out, relative, serviceable
from highwater.core.scaler import Mode, ScalerSettings
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.highwater import HighwaterDirectPulse, HighwaterFloorPulse
from highwater_lab.simulation import simulate
from highwater_lab.simulation.fleet import Pulses

SHORT_BURST_SECONDS: Final = 60
SOONER_MINUTE: Final = 50
_LATE_SECONDS: Final = 25
# of the traffic's `with_noise`; seconds take ten times as long to simulate as minutes
NOISES: Final = (0.3, 0.6, 1.0)
_MOST_DAYS_OF_NOISE: Final = 31
_EVERYBODY: Final = Pulses()
_PULSES: Final = {Mode.FLOOR: HighwaterFloorPulse, Mode.DIRECT: HighwaterDirectPulse}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the traces; without *mode* native target tracking at 70 %.

    Attributes:
        name: For the table.
        mode: Of the scaler.
        pulses: How the fleet tells.
        lower_from_minute: From which minute of the hour capacity is lowered.
        burst_seconds: What the burst bucket keeps; `None` for what is documented.
        noise: The deviation of the seconds within a minute; 0 for none.
    """

    name: str
    mode: Mode | None = None
    pulses: Pulses = _EVERYBODY
    lower_from_minute: int = ScalerSettings().pulsed_lower_from_minute
    burst_seconds: int | None = None
    noise: float = 0.0

    @property
    def base(self) -> str:
        """The native variant with the same bucket and traffic."""
        if self.noise:
            return f"{BASE}, noise {self.noise}"
        return BASE if self.burst_seconds is None else f"{BASE}, {self.burst_seconds} s"


def variants() -> list[Variant]:
    """Every variant, those of native target tracking first."""
    short = SHORT_BURST_SECONDS
    found = [Variant(BASE), Variant(f"{BASE}, {short} s", burst_seconds=short)]
    found += [Variant(f"{BASE}, noise {noise}", noise=noise) for noise in NOISES]
    for mode in _PULSES:
        found += [
            Variant(f"{mode}", mode),
            Variant(f"{mode}, half the fleet", mode, Pulses(coverage_percent=50)),
            Variant(f"{mode}, none of the fleet", mode, Pulses(coverage_percent=0)),
            Variant(f"{mode}, {_LATE_SECONDS + 5} s late", mode, Pulses(delay_seconds=_LATE_SECONDS)),
            Variant(f"{mode}, bursts of {short} s", mode, burst_seconds=short),
            Variant(f"{mode}, lowered from minute {SOONER_MINUTE}", mode, lower_from_minute=SOONER_MINUTE),
        ]
        found += [Variant(f"{mode}, noise {noise}", mode, noise=noise) for noise in NOISES]
    return found


def run(trace: Trace, variant: Variant) -> Score:
    """Simulate one variant over one trace."""
    setup = make_setup(trace)
    if variant.burst_seconds is not None:
        setup = replace(setup, burst_seconds=variant.burst_seconds)
    if variant.mode is None:
        policy = find_policy(BASE)
    else:
        settings = replace(ScalerSettings.of(variant.mode), pulsed_lower_from_minute=variant.lower_from_minute)
        policy = _PULSES[variant.mode](settings=settings, pulses=variant.pulses)
    traffic = load(trace)
    if variant.noise:
        traffic = traffic.with_noise(variant.noise)
    return score_of(trace, variant.name, simulate(setup, traffic, policy))


def row(variant: Variant, traces: Sequence[Trace], scores: Scores) -> str:
    """Throttles and cost relative to native, and the most that a trace throttles above it, per million."""
    traces = _fit(variant, traces)
    based = _based(variant, traces, scores)
    throttled, cost = relative(variant.name, traces, based)
    above, worst = max(
        (based[t.name, variant.name].throttled_per_million - based[t.name, BASE].throttled_per_million, t.name)
        for t in traces
    )
    return f"{variant.name:28} {throttled:9.4f} {cost:7.4f} {above:+8.0f}  {worst}"


def _fit(variant: Variant, traces: Iterable[Trace]) -> list[Trace]:
    """The traces that a variant is run with."""
    return [trace for trace in traces if not variant.noise or trace.days <= _MOST_DAYS_OF_NOISE]


def _based(variant: Variant, traces: Iterable[Trace], scores: Scores) -> Scores:
    return {**scores, **{(trace.name, BASE): scores[trace.name, variant.base] for trace in traces}}


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 2 if the folder has no traces that native target tracking serves, else 0."""
    parser = argparse.ArgumentParser(prog="pulses", description=__doc__)
    add_traces(parser)
    parser.add_argument("--processes", type=int, default=None)
    given = parser.parse_args(arguments)
    traces = list(find_traces(given.traces))
    found = variants()
    scores: Scores = {}
    with ProcessPoolExecutor(given.processes) as pool:

        def measure(over: Sequence[Trace], those: Sequence[Variant]) -> None:
            work = [pool.submit(run, trace, variant) for variant in those for trace in _fit(variant, over)]
            scores.update(collect(work, "pulses"))

        measure(traces, found[:1])
        served = serviceable(traces, scores)
        if not served:
            print(f"{given.traces}: no traces that native:70 serves with less than 5 % throttled", file=sys.stderr)
            return 2
        measure(served, found[1:])
    print(f"{'':28} {'throttled':>9} {'cost':>7} {'worst':>8}")
    for variant in found:
        if variant.mode is not None:
            print(row(variant, served, scores))
    for mode in _PULSES:
        minutes = [v.name for v in found if v.mode is mode and v.pulses == _EVERYBODY and v.base == BASE]
        (throttled, cost), _ = left_out(minutes, served, scores)
        print(f"{f'{mode}, minute left out':28} {throttled:9.4f} {cost:7.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
