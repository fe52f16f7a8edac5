"""Leave one trace out for the constants of the scaler's rules: `make benchmark NAME=constants`.

Each constant of `highwater.core.scaler` that was found by trying is run at two other values, in the modes whose
decisions it is part of, over the serviceable traces of the scoreboard. For each trace left out, the lowest sum of
throttles and cost over the other traces chooses among the three values. A constant that is not fitted to single traces
is chosen again for each of them, or what is chosen for them costs and throttles as much. With --noise the seconds
within a minute differ, which a constant has to serve as well; that takes ten times as long, so choose some with
--constant. For traces of your own give --traces FOLDER.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from benchmarks.scoreboard import add_traces, load, make_setup, score_of, served_traces
from benchmarks.scores import BASE, Score, Scores, Trace, collect, left_out, relative
from highwater.core.scaler import Mode, ScalerSettings
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.highwater import HighwaterDirect, HighwaterDirectPulse, HighwaterFloor, HighwaterFloorPulse
from highwater_lab.simulation import simulate


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant, and what else it might be.

    Attributes:
        module: Where it is written, in `highwater.core.scaler`.
        name: Its name there.
        others: The values to try beside the one that it has.
        is_pulsed: Whether it is part of decisions with pulses, of those without, or (`None`) of both.
    """

    module: str
    name: str
    others: tuple[Any, ...]
    is_pulsed: bool | None = None

    @property
    def value(self) -> Any:
        """What it is."""
        return getattr(import_module(f"highwater.core.scaler.{self.module}"), self.name)


# Constants of AWS (what is documented or billed) and of the wire are not here: nothing was tried for them.
CONSTANTS: Final = (
    Constant("burst", "_STEP_PERCENT", (150, 300)),
    Constant("burst", "_USED_PERCENT", (70, 95)),
    Constant("burst", "_AVERAGE_MINUTES", (5, 20)),
    Constant("burst", "_SPIKE_MINUTES", (5, 15)),
    Constant("burst", "_SPIKE_PERCENT", (125, 200)),
    Constant("burst", "_NEXT_SPIKE_MINUTES", (65, 120)),
    Constant("burst", "_REFILL_PERCENT", (115, 160)),
    Constant("burst", "_SPIKES_BEFORE", (2, 5)),
    Constant("burst", "_MORE_PERCENT", (100, 125)),
    Constant("demand", "_UNTOLD_PERCENT", (5, 20), is_pulsed=True),
    Constant("demand", "_REFUSED_SLOTS", (3, 12), is_pulsed=True),
    Constant("demand", "_NOISE_SLOTS", (30, 120), is_pulsed=True),
    Constant("demand", "_CALM_PERCENT", (5, 20), is_pulsed=True),
    Constant("demand", "_NOISE_TIMES", (3, 10), is_pulsed=True),
    Constant("stages", "_RAISED_TARGET_PERCENT", (90, 100), is_pulsed=True),
    Constant("stages", "_PULSED_STEP_PERCENT", (500, 5_000), is_pulsed=True),
    Constant("stages", "_REFUSED_PERCENT", (110, 200), is_pulsed=True),
    Constant("stages", "_LOWERED_SECONDS", (30, 120), is_pulsed=True),
    Constant("stages", "_LOWERED_TARGET_PERCENT", (100, 150), is_pulsed=True),
    Constant("stages", "_THROTTLED_MINUTES", (4, 16), is_pulsed=True),
    Constant("stages", "_CLIMB_MINUTES", ({Mode.FLOOR: 5, Mode.DIRECT: 3}, {Mode.FLOOR: 12, Mode.DIRECT: 8})),
    Constant("stages", "_MOST_JUMPS", (2, 8), is_pulsed=False),
    Constant("stages", "_TOLERANCE_PERCENT", (1, 6)),
    Constant("minutes", "_JUMP_MINUTES", (3, 6), is_pulsed=False),
    Constant("minutes", "_BEFORE_MINUTES", (10, 30), is_pulsed=False),
    Constant("regret", "MOST_COST_PERCENT", (105, 125)),
)
POLICIES: Final[dict[tuple[Mode, bool], type[HighwaterFloor | HighwaterDirect]]] = {
    (Mode.FLOOR, False): HighwaterFloor,
    (Mode.DIRECT, False): HighwaterDirect,
    (Mode.FLOOR, True): HighwaterFloorPulse,
    (Mode.DIRECT, True): HighwaterDirectPulse,
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One mode with at most one constant changed."""

    mode: Mode
    is_pulsed: bool
    constant: Constant | None = None
    value: Any = None

    @property
    def name(self) -> str:
        """The policy's name among the scores."""
        mode = f"{self.mode}{', pulses' if self.is_pulsed else ''}"
        return mode if self.constant is None else f"{mode}, {self.constant.name}={shown(self.value)}"


def shown(value: Any) -> str:
    """A value for the table; one for each mode as in 8/5."""
    return "/".join(str(each) for each in value.values()) if isinstance(value, dict) else str(value)


@contextmanager
def changed(constant: Constant, value: Any) -> Iterator[None]:
    """Give a constant another value for a while, also in modules that import it."""
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("highwater") and constant.name in vars(module)
    ]
    old = constant.value
    try:
        for module in modules:
            setattr(module, constant.name, value)
        yield
    finally:
        for module in modules:
            setattr(module, constant.name, old)


def variants(constants: Sequence[Constant]) -> list[Variant]:
    """Every mode as it is, then every constant at its other values in the modes that it is part of."""
    found = [Variant(*each) for each in POLICIES]
    for constant in constants:
        modes = [each for each in POLICIES if constant.is_pulsed in (None, each[1])]
        found += [Variant(*mode, constant, value) for mode in modes for value in constant.others]
    return found


def run_variant(trace: Trace, variant: Variant | None, noise: float) -> Score:
    """Simulate one variant, or native target tracking, over one trace with so much noise within its minutes."""
    setup, traffic = make_setup(trace), load(trace)
    if noise:
        traffic = traffic.with_noise(noise)
    if variant is None:
        return score_of(trace, BASE, simulate(setup, traffic, find_policy(BASE)))
    policy = POLICIES[variant.mode, variant.is_pulsed](settings=ScalerSettings.of(variant.mode))
    if variant.constant is None:
        return score_of(trace, variant.name, simulate(setup, traffic, policy))
    with changed(variant.constant, variant.value):
        return score_of(trace, variant.name, simulate(setup, traffic, policy))


@dataclass(frozen=True, slots=True)
class Row:
    """One constant in one mode. Each figure is throttles, then cost, relative to native target tracking at 70 %.

    Attributes:
        default: As it is.
        others: At its other values.
        left_out: Over the left-out traces, each with the value that the others chose.
        kept: For how many left-out traces that was the value that it has.
    """

    default: tuple[float, float]
    others: tuple[tuple[float, float], ...]
    left_out: tuple[float, float]
    kept: int


def make_row(tried: Sequence[Variant], traces: Sequence[Trace], scores: Scores) -> Row:
    """Compare a constant's values, the one that it has first, and let all traces but one choose for that one."""
    names = [variant.name for variant in tried]
    figures, chosen = left_out(names, traces, scores)
    return Row(
        relative(names[0], traces, scores),
        tuple(relative(name, traces, scores) for name in names[1:]),
        figures,
        chosen.count(names[0]),
    )


def table(found: Sequence[Variant], traces: Sequence[Trace], scores: Scores) -> Iterator[str]:
    """The lines to print, a header first."""
    figures = "".join(f"{name:>15}" for name in ("as it is", "lower", "higher", "left out"))
    yield f"{'mode':<15}{'constant':<26}{'values':<16}{figures}  kept"
    for constant in CONSTANTS:
        for mode in POLICIES:
            others = [each for each in found if (each.mode, each.is_pulsed) == mode and each.constant is constant]
            if not others:
                continue
            default = Variant(*mode)
            row = make_row([default, *others], traces, scores)
            values = " ".join(shown(value) for value in (constant.value, *constant.others))
            told = "".join(f"{cell[0]:>9.3f}{cell[1]:>6.3f}" for cell in (row.default, *row.others, row.left_out))
            note = "" if any(cell != row.default for cell in row.others) else "  changes nothing"
            yield f"{default.name:<15}{constant.name:<26}{values:<16}{told}{row.kept:>6}{note}"


def main(arguments: Sequence[str]) -> int:
    """Measure every variant and print the table; return 2 if fewer than two traces are served by native:70."""
    parser = argparse.ArgumentParser(prog="constants", description=__doc__)
    add_traces(parser)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--noise", type=float, default=0.0, help="the deviation of the seconds within a minute")
    parser.add_argument(
        "--constant",
        action="append",
        choices=[each.name for each in CONSTANTS],
        metavar="NAME",
        help="only this one; may be repeated",
    )
    given = parser.parse_args(arguments)
    served = served_traces("constants", given.traces)
    if served is None:
        return 2
    traces, scores = served
    found = variants([each for each in CONSTANTS if given.constant is None or each.name in given.constant])
    with ProcessPoolExecutor(given.processes) as pool:
        # the longest first, so that no core idles at the end
        work = [
            pool.submit(run_variant, trace, variant, given.noise)
            for trace in sorted(traces, key=lambda trace: -trace.days)
            for variant in (None, *found)
        ]
        scores |= collect(work, "constants")
    for line in table(found, traces, scores):
        print(line)
    print(f"\nover {', '.join(trace.name for trace in traces)}: {len(scores)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
