"""What each rule of the scaler buys: `make benchmark NAME=rent`.

Each stage of `highwater.core.scaler.stages.STAGES` is switched off, and each constant that was found by trying is set
to a value that switches it off or makes it coarse, one at a time, over the cells of `make benchmark NAME=cells`. A rule
pays its rent if somewhere it buys 1 % of cost or 50 throttled units of a million; the table says where it buys most. It
begins with the runs that `cells` kept, and keeps its own. With --rule NAME only that one is tried.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.cells import KEPT, KINDS, Count, Result, Results, Run, kept, measure, native_of, traffics
from benchmarks.scoreboard import add_traces
from benchmarks.worlds import MODES, WORLDS, WORSE_PER_MILLION
from highwater.core.pulses import rate_of
from highwater.core.scaler import stages
from highwater.core.scaler.facts import Source
from highwater.core.scaler.stages import Stage

_MODULES: Final = "highwater.core.scaler"
_WITHOUT, _WITH = MODES[:2], MODES[2:]
# What a rule must buy somewhere, as a share of native's cost
_WORTH: Final = 0.01


@dataclass(frozen=True, slots=True)
class Rule:
    """A stage or a constant, and what it is replaced by.

    Attributes:
        name: The stage's name, or the constant's after that of its module: `burst._USED_PERCENT`.
        off: The value that is put in its place; for a stage, the stages without it.
        modes: The modes that it is part of.
    """

    name: str
    off: Any
    modes: Sequence[str] = MODES

    @property
    def place(self) -> tuple[str, str]:
        """The module and the name that the value is given to."""
        module, _, name = self.name.rpartition(".")
        return (module, name) if module else ("stages", "STAGES")


# Without these nothing is left that could be compared: the plan, its boosts, and what bounds capacity.
_NEEDED: Final = {
    stages.ask_for_plan,
    stages.hold_peak,
    stages.hold_busiest_minutes,
    stages.keep_plan,
    stages.add_boosts,
    stages.stay_below_ceiling,
}
# Where no fleet tells anything, these change nothing.
_OF_FLEETS: Final = {stages.meet_surge, stages.keep_what_lasts}


def _never(*_: object) -> None:
    """In place of a function that adds something."""


def _modes_of(stage: Stage) -> Sequence[str]:
    """Return the benchmark's modes in which a stage may change something."""
    if stage.sources == {Source.PULSES} or stage.change in _OF_FLEETS:
        return _WITH
    return _WITHOUT if stage.sources == {Source.CLOUDWATCH} else MODES


def _stage_rules() -> Iterator[Rule]:
    for stage in stages.STAGES:
        if stage.change not in _NEEDED:
            without = tuple(each for each in stages.STAGES if each is not stage)
            yield Rule(stage.change.__name__, without, _modes_of(stage))


RULES: Final = (
    *_stage_rules(),
    Rule("settings.HOLD_MINUTES", 15, _WITHOUT),
    Rule("settings.FULL_PERCENT", 100),
    Rule("facts._JUMP_PERCENT", 250, _WITHOUT),
    Rule("stages._MOST_JUMPS", 10**9, _WITHOUT),
    Rule("facts.STEP_TIMES", 10**6),
    Rule("stages._REFUSED_PERCENT", 100, _WITH),
    Rule("stages._LOWERED_TARGET_PERCENT", 10_000, _WITH),
    Rule("facts.is_expected_so_far", lambda *_: False, _WITH),
    Rule("stages.without_regular_spikes", lambda consumed, minutes: list(consumed[-minutes:]), _WITH),
    Rule("stages.without_spikes", _never, _WITHOUT),
    Rule("stages.has_spikes", lambda _: False),
    Rule("stages.expected_drain", lambda *_: 0, _WITH),
    Rule("burst._STEP_PERCENT", 100),
    Rule("burst._USED_PERCENT", 100),
    Rule("burst.SPIKE_MINUTES", 30),
    Rule("burst._SPIKE_PERCENT", 200),
    Rule("burst._NEXT_SPIKE_MINUTES", 60),
    Rule("burst._REFILL_PERCENT", 100),
    Rule("burst._CALM_MINUTES", 1),
    Rule("burst._SPIKES_BEFORE", 1),
    Rule("burst._MORE_PERCENT", 100),
    Rule("fleet._rate_within_noise", lambda asked, _: rate_of(asked), _WITH),
    Rule("fleet._add_untold", _never, _WITH),
    Rule("regret.MOST_COST_PERCENT", 100),
)


@contextmanager
def replaced(name: str) -> Iterator[None]:
    """Put a rule out of force for as long as this is entered, also in modules that import it; none for no name."""
    if not name:
        yield
        return
    rule = next(rule for rule in RULES if rule.name == name)
    module, attribute = rule.place
    old = getattr(import_module(f"{_MODULES}.{module}"), attribute)
    homes = [
        each for key, each in list(sys.modules.items()) if key.startswith(_MODULES) and vars(each).get(attribute) is old
    ]
    for home in homes:
        setattr(home, attribute, rule.off)
    try:
        yield
    finally:
        for home in homes:
            setattr(home, attribute, old)


@dataclass(frozen=True, slots=True)
class Rent:
    """What a rule buys over all cells, and where it buys most.

    Attributes:
        cost: The most that is saved in a cell, as a share of native's cost, and the cell.
        throttles: The most throttled units of a million that are saved in a cell, and the cell.
        before: Cells that throttle more than native, and that are dear, with the rule.
        after: The same without it.
    """

    cost: tuple[float, str]
    throttles: tuple[float, str]
    before: tuple[int, int]
    after: tuple[int, int]

    @property
    def is_paid(self) -> bool:
        """Whether the rule buys enough somewhere."""
        return self.cost[0] >= _WORTH or self.throttles[0] >= WORSE_PER_MILLION


def rent_of(without: Sequence[Run], results: Mapping[Run, Result]) -> Rent:
    """Compare runs without a rule with those of the scaler as it is."""
    costs, throttles, counts = [], [], []
    with_it = [Run(run.world, run.traffic, run.policy) for run in without]
    for run, as_is in zip(without, with_it, strict=True):
        where = f"{run.traffic}, {run.policy.removeprefix('highwater-')} ({run.world})"
        native = results[native_of(run)]
        costs.append(((results[run].cost - results[as_is].cost) / native.cost, where))
        throttles.append((results[run].throttled - results[as_is].throttled, where))
    for runs in (with_it, without):
        found = [Count.of([run for run in runs if run.policy == mode], results) for mode in MODES]
        counts.append((sum(count.more for count in found), sum(count.dear for count in found)))
    return Rent(max(costs), max(throttles), counts[0], counts[1])


def lines_of(rules: Sequence[Rule], runs: Mapping[str, Sequence[Run]], results: Results) -> Iterator[str]:
    """Yield the table."""
    yield "| without | saved cost | where | saved throttles | where | more, dear with it | without | |"
    yield "|---|---:|---|---:|---|---:|---:|---|"
    for rule in rules:
        rent = rent_of(runs[rule.name], results)
        cells = [
            rule.name,
            f"{100 * rent.cost[0]:.1f} %",
            rent.cost[1],
            f"{rent.throttles[0]:,.0f}",
            rent.throttles[1],
            f"{rent.before[0]}, {rent.before[1]}",
            f"{rent.after[0]}, {rent.after[1]}",
            "" if rent.is_paid else "pays no rent",
        ]
        yield f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 if a rule buys nothing anywhere, else 0."""
    parser = argparse.ArgumentParser(prog="rent", description=__doc__)
    add_traces(parser)
    parser.add_argument("--rule", action="append", choices=[rule.name for rule in RULES], metavar="NAME")
    parser.add_argument("--world", action="append", help="in these worlds (default: the recorded one)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these traffics")
    parser.add_argument("--kept", type=Path, default=KEPT, help="the file of runs (default %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    given = parser.parse_args(arguments)
    names = traffics(given.traces, given.kind or KINDS)
    wanted = given.world or [WORLDS[0].key]
    worlds = [world for world in WORLDS if world.key in wanted or world.name in wanted]
    rules = [rule for rule in RULES if given.rule is None or rule.name in given.rule]
    runs = {
        rule.name: [
            Run(world.key, name, mode, rule.name)
            for world in worlds
            for mode in rule.modes
            if mode in world.policies
            for name in names
        ]
        for rule in rules
    }
    every = [run for each in runs.values() for run in each]
    as_is = [Run(run.world, run.traffic, run.policy) for run in every]
    results = kept(given.kept)
    measure([*map(native_of, every), *as_is, *every], results, given.kept, given.traces, given.processes, replaced)
    for line in lines_of(rules, runs, results):
        print(line)
    return 0 if all(rent_of(runs[rule.name], results).is_paid for rule in rules) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
