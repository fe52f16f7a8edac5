"""The scaler in worlds where AWS differs from what this project takes to be true: `make benchmark NAME=worlds`.

The first fortnight of each serviceable trace of the scoreboard is simulated in the recorded world, at six sets of
seconds for alarms and schedules, and then with one departure at a time. Writes docs/worlds.md. Each run is kept in a
file as it comes, so that a measurement that was stopped goes on where it was; --again begins anew. For traces of your
own give --traces FOLDER.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from benchmarks.scoreboard import ROOT, add_traces, find_traces, load, make_setup, score_of
from benchmarks.scores import BASE, Score, Scores, Trace, collect, relative, serviceable
from highwater.core.bucket import OnRaise
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.dynamodb import Native
from highwater_lab.policies.highwater import HighwaterFloor, HighwaterFloorPulse, HighwaterScaler
from highwater_lab.services.timing import PHASES, Timing
from highwater_lab.simulation import Run, TableSetup, simulate
from highwater_lab.simulation.fleet import Pulses
from highwater_lab.simulation.policy import Policy
from highwater_lab.traffic import Traffic

PAGE: Final = ROOT / "docs" / "worlds.md"
KEPT: Final = ROOT / "build" / "worlds.jsonl"
DAYS: Final = 14
RECORDED: Final = "recorded"
MODES: Final = ("highwater-floor", "highwater-direct", "highwater-floor-pulse", "highwater-direct-pulse")
# A trace counts as worse than native where it throttles more by so many of a million
WORSE_PER_MILLION: Final = 50
# and as dear where native throttles nothing and it costs more than this share of native's cost
DEAR_PERCENT: Final = 115
_SEEDS: Final = (1, 2)
_NOISE: Final = 0.6
_SURGE_PERCENT: Final = 150
_SILENT_MINUTES: Final = 30
_HOUR: Final = 60


@dataclass(frozen=True, slots=True)
class World:
    """A world: the recorded one, or one departure from it.

    Attributes:
        name: For `--world`, and the file of runs.
        text: What differs, for the page.
        timing: The delays of AWS.
        change: Changes the table that is simulated.
        is_on_highest: Whether target tracking sizes a scale-in by the highest of fifteen minutes.
        noise: The deviation of the seconds within minutes; 0 for none.
        seed: Of the noise.
        pulses: How the fleet of a traffic tells; `None` for all of it at once.
    """

    name: str
    text: str
    timing: Timing = field(default_factory=Timing)
    change: Callable[[TableSetup], TableSetup] = lambda setup: setup
    is_on_highest: bool = False
    noise: float = 0.0
    seed: int = 1
    pulses: Callable[[Traffic], Pulses] | None = None

    @property
    def key(self) -> str:
        """The name of its runs: noise is drawn more than once."""
        return f"{self.name} {self.seed}" if self.noise else self.name

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies that it concerns."""
        return (BASE, *MODES) if self.pulses is None else MODES[2:]


def _unmarked(setup: TableSetup) -> TableSetup:
    resources = tuple(replace(each, warm_read_units=1, warm_write_units=1) for each in setup.resources)
    return replace(setup, resources=resources)


def _silent_in_surges(traffic: Traffic) -> Pulses:
    """A fleet that falls silent for half an hour when a minute asks for half more than the hour before it."""
    rates = next(iter(traffic.rates.values()))
    step = 60 // traffic.bin_seconds
    minutes = [sum(rates[at : at + step]) for at in range(0, len(rates), step)]
    silent: set[int] = set()
    for at in range(_HOUR, len(minutes)):
        if at not in silent and minutes[at] * _HOUR * 100 > sum(minutes[at - _HOUR : at]) * _SURGE_PERCENT:
            silent.update(range(at, at + _SILENT_MINUTES))
    return Pulses(silent_minutes=frozenset(silent))


_PHASED: Final = tuple(
    World(f"{RECORDED} {place}", f"recorded, at seconds {place}", Timing(phase=phase))
    for place, phase in enumerate(PHASES, 1)
)
DEPARTURES: Final = (
    World("burst", "bursts last 60 s, not 300", change=lambda setup: replace(setup, burst_seconds=60)),
    World("scaled", "a raise scales the bucket", change=lambda setup: replace(setup, on_raise=OnRaise.SCALE)),
    World("emptied", "a raise empties the bucket", change=lambda setup: replace(setup, on_raise=OnRaise.EMPTY)),
    World("slow", "a change takes 30 s", Timing(autoscaling_update=30, direct_update=30)),
    World("slower", "a change takes 180 s", Timing(autoscaling_update=180, direct_update=180)),
    World("late", "CloudWatch is three minutes later", Timing(metric_delay=300)),
    World("later", "CloudWatch is five minutes later", Timing(metric_delay=420)),
    World("unmarked", "no high-water mark, in place of one at the ceiling", change=_unmarked),
    World("highest", "a scale-in is sized by the highest of fifteen minutes, not by the last", is_on_highest=True),
    *(
        World("noise", f"seconds within a minute vary, with deviation {_NOISE}", noise=_NOISE, seed=seed)
        for seed in _SEEDS
    ),
    World("half", "half of the fleet tells", pulses=lambda _: Pulses(coverage_percent=50)),
    World("tenth", "a tenth of the fleet tells", pulses=lambda _: Pulses(coverage_percent=10)),
    World("tardy", "the fleet tells a minute late", pulses=lambda _: Pulses(delay_seconds=65)),
    World("silent", "the fleet falls silent for half an hour in each surge", pulses=_silent_in_surges),
)
WORLDS: Final = (*_PHASED, *DEPARTURES)


class _NativeOnHighest(Native):
    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:
        """Size scale-ins by the highest of fifteen minutes."""
        return _on_highest(super().arrange(setup, traffic))


class _FloorOnHighest(HighwaterFloor):
    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:
        """Let its target tracking do the same."""
        return _on_highest(super().arrange(setup, traffic))


class _FloorPulseOnHighest(HighwaterFloorPulse):
    def arrange(self, setup: TableSetup, traffic: Traffic) -> TableSetup:
        """Let its target tracking do the same."""
        return _on_highest(super().arrange(setup, traffic))


def _on_highest(setup: TableSetup) -> TableSetup:
    return setup.each_target(
        lambda target: replace(target, tracking=target.tracking and replace(target.tracking, scale_in_on_highest=True))
    )


_HIGHEST: Final[dict[str, Callable[[], Policy]]] = {
    BASE: _NativeOnHighest,
    MODES[0]: _FloorOnHighest,
    MODES[2]: _FloorPulseOnHighest,
}


def run(trace: Trace, key: str, policy: str, days: float) -> Score:
    """Simulate one policy over the first *days* of a trace in the world of that key."""
    world = next(world for world in WORLDS if world.key == key)
    done = simulate_in(world, make_setup(trace), first_days(load(trace), days), policy)
    return score_of(trace, _key(world, policy), done)


def simulate_in(world: World, setup: TableSetup, traffic: Traffic, policy: str) -> Run:
    """Simulate one policy over a table's traffic in a world."""
    if world.noise and traffic.bin_seconds == 60:
        traffic = traffic.with_noise(world.noise, seed=world.seed)
    found = _HIGHEST[policy]() if world.is_on_highest and policy in _HIGHEST else find_policy(policy)
    if world.pulses is not None and isinstance(found, HighwaterScaler):
        found.pulses = world.pulses(traffic)
    return simulate(world.change(setup), traffic, found, timing=world.timing)


def _key(world: World, policy: str) -> str:
    return f"{world.key}: {policy}"


def first_days(traffic: Traffic, days: float) -> Traffic:
    """The first days of a traffic, or all of it."""
    bins = int(days * 86_400) // traffic.bin_seconds
    return replace(traffic, rates={stream: rates[:bins] for stream, rates in traffic.rates.items()}, counts=None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One mode in one world, beside native target tracking in the same world.

    Attributes:
        throttled: Its throttled shares, summed over the traces, relative to native's.
        cost: The geometric mean of its costs, relative to native's.
        worse: The traces that throttle more than native by over 50 of a million.
        dear: The traces that cost over 1.15 of native where native throttles nothing.
        worst_per_million: The most that a trace throttles above native, of a million.
        worst: That trace.
    """

    throttled: float
    cost: float
    worse: int
    dear: int
    worst_per_million: float
    worst: str


def outcome(world: World, mode: str, traces: Sequence[Trace], scores: Scores) -> Outcome:
    """Compare a mode with native target tracking; a world of the fleet's has the native runs of the recorded one."""
    of_native = _PHASED[0] if world.pulses is not None else world
    based = {
        **{(t.name, BASE): scores[t.name, _key(of_native, BASE)] for t in traces},
        **{(t.name, mode): scores[t.name, _key(world, mode)] for t in traces},
    }
    throttled, cost = relative(mode, traces, based)
    throttles = {name: score.throttled_per_million for name, score in based.items()}
    above = {t.name: throttles[t.name, mode] - throttles[t.name, BASE] for t in traces}
    worst = max(above, key=lambda name: above[name])
    dear = sum(
        not based[t.name, BASE].throttled_per_million
        and 100 * based[t.name, mode].cost_per_month > DEAR_PERCENT * based[t.name, BASE].cost_per_month
        for t in traces
    )
    worse = sum(each > WORSE_PER_MILLION for each in above.values())
    return Outcome(throttled, cost, worse, dear, above[worst], worst)


def merged(outcomes: Sequence[Outcome], choose: Callable[[Sequence[float]], float]) -> Outcome:
    """Several runs of one world as one: their figures by *choose*, their counts by the highest."""
    worst = max(outcomes, key=lambda each: each.worst_per_million)
    return Outcome(
        choose([each.throttled for each in outcomes]),
        choose([each.cost for each in outcomes]),
        max(each.worse for each in outcomes),
        max(each.dear for each in outcomes),
        worst.worst_per_million,
        worst.worst,
    )


def mean(values: Sequence[float]) -> float:
    """The mean of some figures."""
    return sum(values) / len(values)


def rows(worlds: Sequence[World], traces: Sequence[Trace], scores: Scores) -> Iterator[tuple[str, dict[str, Outcome]]]:
    """Yield each row of the page: what differs, and the outcome of each mode that it concerns."""
    phased = [world for world in worlds if world in _PHASED]
    if phased:
        found = {mode: [outcome(world, mode, traces, scores) for world in phased] for mode in MODES}
        yield "**recorded**, mean of six sets of seconds", {mode: merged(each, mean) for mode, each in found.items()}
        yield "recorded, the worst of them", {mode: merged(each, max) for mode, each in found.items()}
    for name in dict.fromkeys(world.name for world in worlds if world not in _PHASED):
        same = [world for world in worlds if world.name == name]
        found = {
            mode: [outcome(world, mode, traces, scores) for world in same] for mode in MODES if mode in same[0].policies
        }
        yield same[0].text, {mode: merged(each, max) for mode, each in found.items()}


def page(worlds: Sequence[World], traces: Sequence[Trace], scores: Scores, days: float) -> str:
    """The text of docs/worlds.md."""
    lines = [
        "# Worlds: if AWS is not as it is taken to be",
        "",
        f"Made by `{_command(days)}`: the first {days:g} days of {len(traces)} traces of the",
        "[scoreboard](benchmarks.md), in the world as it was recorded, and with one departure from it at a time. What",
        "was recorded and what is assumed is in [the model](model.md). Alarms are judged, and the scaler runs, at a",
        "second of the minute that nobody chooses: the recorded world is simulated at six sets of such seconds.",
        "",
        "*Throttled* and *cost* are relative to target tracking at 70 % in the same world; *throttled* is the sum of",
        "throttled shares, *cost* the geometric mean. In brackets: the traces that throttle more than target tracking",
        f"by over {WORSE_PER_MILLION} of a million requests, and those that cost over {DEAR_PERCENT / 100:g} of it",
        "where it throttles nothing. *Worst* is the most of a million that a trace throttles above target tracking in",
        "either mode.",
        "",
        _largest(worlds[0], traces, scores),
        "",
    ]
    for title, modes in (("Without pulses", MODES[:2]), ("With pulses", MODES[2:])):
        lines += [f"## {title}", "", "| world | FLOOR | DIRECT | worst |", "|---|---:|---:|---:|"]
        for text, found in rows(worlds, traces, scores):
            if modes[0] in found:
                worst = max((found[mode] for mode in modes), key=lambda each: each.worst_per_million)
                cells = " | ".join(_cell(found[mode]) for mode in modes)
                lines.append(f"| {text} | {cells} | {worst.worst_per_million:+,.0f} {worst.worst} |")
        lines.append("")
    return "\n".join(lines)


def _largest(world: World, traces: Sequence[Trace], scores: Scores) -> str:
    """Return a sentence about the trace with most of what is throttled: it is most of the sums."""
    mode = MODES[0]
    throttled = {each.name: scores[each.name, _key(world, mode)].throttled_per_million for each in traces}
    name = max(throttled, key=lambda each: throttled[each])
    base = scores[name, _key(world, BASE)].throttled_per_million
    share = throttled[name] / (sum(throttled.values()) or 1)
    return (
        f"Of what FLOOR mode throttles in the recorded world, {share:.0%} is one trace's, `{name}`, of which target\n"
        f"tracking throttles {base / 10_000:.1f} %."
    )


def _command(days: float) -> str:
    return "make benchmark NAME=worlds" + ("" if days == DAYS else f' ARGS="--days {days:g}"')


def _cell(found: Outcome) -> str:
    return f"{found.throttled:.3f} at {found.cost:.3f} ({found.worse}, {found.dear})"


def _kept(path: Path, days: float) -> Scores:
    """The runs of earlier measurements over as many days."""
    if not path.exists():
        return {}
    documents = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    scores = [Score(**document["score"]) for document in documents if document["days"] == days]
    return {(score.trace, score.policy): score for score in scores}


def main(arguments: Sequence[str]) -> int:
    """Simulate what is not kept yet, and write the page if no world was chosen; return 2 without traces, else 0."""
    parser = argparse.ArgumentParser(prog="worlds", description=__doc__)
    add_traces(parser)
    parser.add_argument("--days", type=float, default=DAYS, help="days of each trace (default %(default)s)")
    parser.add_argument("--world", action="append", help="only this world; may be given several times")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default %(default)s)")
    parser.add_argument("--again", action="store_true", help="forget the runs that are kept")
    given = parser.parse_args(arguments)
    names = list(dict.fromkeys([RECORDED, *(world.name for world in DEPARTURES)]))
    if unknown := sorted(set(given.world or ()) - set(names)):
        parser.error(f"there is no world {unknown[0]!r}; the worlds are {', '.join(names)}")
    chosen = [world for world in WORLDS if given.world is None or world.name.split()[0] in given.world]
    if given.again:
        KEPT.unlink(missing_ok=True)
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    scores = _kept(KEPT, given.days)
    traces = [trace for trace in find_traces(given.traces) if trace.bin_seconds in (60, 300)]
    with ProcessPoolExecutor(given.processes) as pool, KEPT.open("a", encoding="utf-8") as kept:

        def measure(over: Sequence[Trace], worlds: Sequence[World], policies: Sequence[str]) -> None:
            work = [
                pool.submit(run, trace, world.key, policy, given.days)
                for world in worlds
                for policy in world.policies
                if policy in policies
                for trace in over
                if (trace.name, _key(world, policy)) not in scores
            ]
            for each in work:
                each.add_done_callback(
                    lambda done: print(
                        json.dumps({"days": given.days, "score": asdict(done.result())}), file=kept, flush=True
                    )
                )
            scores.update(collect(work, "worlds"))

        measure(traces, _PHASED[:1], (BASE,))
        served = serviceable(traces, {(t.name, BASE): scores[t.name, _key(_PHASED[0], BASE)] for t in traces})
        if not served:
            print(f"worlds: no serviceable traces in {given.traces}", file=sys.stderr)
            return 2
        measure(served, chosen, (BASE, *MODES))
    text = page(chosen, served, scores, given.days)
    print(text)
    if given.world is None:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
