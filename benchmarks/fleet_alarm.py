"""An experiment: one alarm on the utilization of all targets, not one for each: `make benchmark NAME=alarm`.

The scaler has an alarm for each target, whose threshold it moves with what the target's capacity can carry. One query
over all tables has one condition for all: here that a target consumed more than a share of its provisioned capacity in
the newest minute. CloudWatch has provisioned capacity every five minutes, so the share is of what was provisioned then.
FLOOR mode is simulated with both over the serviceable traces, scaled as the scoreboard scales them. Figures are
relative to native:70: throttled shares summed, costs as geometric mean, without the alarms, whose prices come last.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Final

from benchmarks.scoreboard import add_traces, find_traces, load, make_setup, run, score_of
from benchmarks.scores import BASE, Score, Scores, Trace, relative, serviceable
from highwater_lab.policies.highwater import HighwaterFloor
from highwater_lab.services.prices import load_prices
from highwater_lab.simulation import simulate

if TYPE_CHECKING:
    from highwater_lab.simulation.policy import Calls, PolicyTarget, Seen

_OWN: Final = HighwaterFloor.name
_PERCENTS: Final = (70, 85, 100)
_PUBLISHED_SECONDS: Final = 300
# Tables of which reads and writes are scaled
_TABLES: Final = 30


class FleetAlarm(HighwaterFloor):
    """FLOOR mode with one alarm for all targets.

    Args:
        percent: The utilization above which a target is in ALARM.
    """

    def __init__(self, percent: int) -> None:
        super().__init__()
        self.name = f"one alarm at {percent} %"
        self._percent = percent
        self._published: dict[PolicyTarget, int] = {}

    def poll(self, seen: Seen, calls: Calls) -> int:
        """Note what is provisioned whenever CloudWatch does, then run the turn."""
        for resource in seen.resources:
            for target in (resource.read, resource.write):
                if seen.now // 60 % (_PUBLISHED_SECONDS // 60) == 0 or target not in self._published:
                    self._published[target] = target.units
        return super().poll(seen, calls)

    def _is_breached(self, target: PolicyTarget) -> bool:
        newest = target.consumed_quanta(1)
        return bool(newest) and newest[0] * 100 > 60 * 60 * self._published.get(target, 1) * self._percent


def run_one(trace: Trace, percent: int) -> Score:
    """Simulate one alarm for all over a trace."""
    policy = FleetAlarm(percent)
    return score_of(trace, policy.name, simulate(make_setup(trace), load(trace), policy))


def main(arguments: list[str]) -> int:
    """Print throttles and costs of each way, then what the alarms of a fleet cost."""
    parser = argparse.ArgumentParser(prog="alarm", description=__doc__)
    add_traces(parser)
    given = parser.parse_args(arguments)
    fine = [trace for trace in find_traces(given.traces) if trace.bin_seconds in (60, 300)]
    scores: dict[tuple[str, str], Score] = {}
    with ProcessPoolExecutor(2) as pool:
        base = pool.map(run, fine, [BASE] * len(fine))
        scores |= {(score.trace, score.policy): score for score in base}
        traces = serviceable(fine, scores)
        tried = [pool.submit(run, trace, _OWN) for trace in traces]
        tried += [pool.submit(run_one, trace, percent) for percent in _PERCENTS for trace in traces]
        scores |= {(score.trace, score.policy): score for score in (each.result() for each in tried)}
    print_figures(traces, scores)
    alarm = load_prices().alarm_month
    print(f"{_TABLES} tables, {2 * _TABLES} alarms of their own: {2 * _TABLES * alarm:.2f} USD a month")
    print(f"one alarm, which analyzes {4 * _TABLES} metrics: {4 * _TABLES * alarm:.2f} USD a month")
    return 0


def print_figures(traces: list[Trace], scores: Scores) -> None:
    """Print a line for each way."""
    for policy in (_OWN, *(FleetAlarm(percent).name for percent in _PERCENTS)):
        throttled, cost = relative(policy, traces, scores)
        metrics = sum(scores[trace.name, policy].metrics_per_month for trace in traces) / len(traces)
        print(f"{policy:20} throttled {throttled:.3f} cost {cost:.3f}, {metrics:,.0f} metrics a target and month")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
