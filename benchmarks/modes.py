"""Hours on demand as a policy, chosen from the days before alone. Run it with `make benchmark NAME=modes`.

Target tracking at 70 % scales the table. It is on demand in the hours in which that would have been better the day
before, or a week before: by the bill, and by the throttled units at what they are worth to the scaler (decision 38). Up
to four windows are chosen for each day in the hour before it begins, and none whose switch to on-demand would be the
fifth in 24 hours. Switches take their minutes, in which the table serves and is billed as before. The way back is to
what target tracking would have for the last quarter of an hour that CloudWatch shows.

All is scored over the second half of each trace, in whole days. The first half is for learning: the first hours are
chosen from it, and `recommend` chooses its plan for it, with floors and windows, or on-demand. Figures are USD a month,
and in brackets throttled units per million requested units. What a policy saves is counted with what its throttles are
worth.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from benchmarks.hours import LEAD_SECONDS, MOST_SWITCHES, WORTH_PERCENT, best_day, hours_of
from benchmarks.scoreboard import add_traces, find_traces, load, make_setup
from benchmarks.scores import BASE, Trace
from highwater.core import Dimension
from highwater.core.prices import HOURS_PER_MONTH
from highwater.core.scaler.settings import ScalerSettings
from highwater_lab.physics import QUANTA_PER_UNIT, OnDemandThroughput, Provisioned
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import Native, OnDemandMode
from highwater_lab.policies.highwater import HighwaterDirectPulse
from highwater_lab.recommend.search import recommend
from highwater_lab.services.billing import bill
from highwater_lab.services.prices import load_prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Run, TableSetup, simulate
from highwater_lab.simulation.autoscaling import SimulatedAutoScaling
from highwater_lab.simulation.plans import table_of
from highwater_lab.simulation.simulator import opening
from highwater_lab.simulation.table import SimulatedTable
from highwater_lab.simulation.targets import SimulatedTarget
from highwater_lab.traffic import Traffic

_DAY: Final = 24
_TARGET_PERCENT: Final = 70
_RECENT_MINUTES: Final = 15
# USD that it is worth that a write unit is not throttled
_WORTH: Final = (
    ScalerSettings().throttle_price_requests * load_prices().throughput().on_demand_million(Dimension.WRITE) / 1e6
)
_MODES: Final = (BASE, OnDemandMode.name)
_RECOMMENDED: Final = "recommend"
_OWN: Final = HighwaterDirectPulse.name
# by name, how many days before are those that the hours of a day are chosen from
_HOURS: Final = {"hours of the day before": 1, "hours of the week before": 7}


def openings(own: Sequence[float], other: Sequence[float], days_back: int) -> list[range]:
    """Return the windows of hours on demand, by what each hour costs provisioned and on demand.

    Those of a day are chosen an hour before it begins, from hours that have ended by then: those of so many days before
    (of one day more for an hour that has not ended).
    """
    chosen: list[range] = []
    for first in range(_DAY, len(own), _DAY):
        past = [hour - _DAY * days_back for hour in range(first, min(first + _DAY, len(own)))]
        past = [hour if hour < first - 1 else hour - _DAY for hour in past]
        if past[0] < 0 or past[-1] < 0:
            continue
        for window in best_day([own[hour] for hour in past], [other[hour] for hour in past])[1]:
            start, stop = first + window.start, first + window.stop
            if chosen and start == chosen[-1].stop:
                chosen[-1] = range(chosen[-1].start, stop)
            # above 24, as a change of capacity that is under way delays a switch by some minutes
            elif len(chosen) < MOST_SWITCHES or start - chosen[-MOST_SWITCHES].start > _DAY:
                chosen.append(range(start, stop))
    return chosen


class SwitchedTable(SimulatedTable):
    """A table without indexes whose billing mode changes.

    Attributes:
        requested: Quanta consumed on demand.
    """

    def __init__(self, setup: TableSetup, traffic: Traffic, timing: Timing) -> None:
        super().__init__(setup, traffic, timing.heat_split_minutes)
        self.requested = dict.fromkeys(Dimension, 0)
        self._timing = timing
        self._has_switched = self._has_returned = False
        self._control = self.controls[None]
        self._tracking = [target.tracking for target in self.targets]

    def serve(self, start: int, end: int) -> None:
        """Let the traffic through, and note what is billed by request."""
        before = [target.served for target in self.targets]
        super().serve(start, end)
        for target, served in zip(self.targets, before, strict=True):
            if isinstance(target.throughput, OnDemandThroughput):
                self.requested[target.dimension] += target.served - served

    def to_on_demand(self, at: int) -> None:
        """Switch to on-demand, after a change that is under way."""
        if self._control.is_changing(self.base + at):
            self.at(self._control.busy_until - self.base, self.to_on_demand)
            return
        takes = self._timing.to_on_demand_again if self._has_switched else self._timing.to_on_demand
        self._has_switched = True
        self._control.restart(self.base + at, self.base + at + takes, self._control.granted)
        self.at(at + takes, self._serve_on_demand)

    def to_provisioned(self, at: int) -> None:
        """Switch back, to what target tracking would have for what it knows."""
        if self._control.is_changing(self.base + at):
            self.at(self._control.busy_until - self.base, self.to_provisioned)
            return
        units, end = dict(self._control.granted), self._timing.newest_minute(at) + 1
        for target, tracking in zip(self.targets, self._tracking, strict=True):
            if tracking is not None:
                busiest = max(target.consumed[max(0, end - _RECENT_MINUTES) : end], default=0)
                wanted = -(-busiest * 100 // (60 * QUANTA_PER_UNIT * tracking.target_percent))
                units[target.dimension] = min(max(wanted, target.floor, 1), target.ceiling)
        takes = self._timing.to_provisioned_again if self._has_returned else self._timing.to_provisioned
        self._has_returned = True
        self._control.restart(self.base + at, self.base + at + takes, units)
        self.at(at + takes, self._serve_provisioned)

    def _serve_on_demand(self, at: int) -> None:
        """What the high-water mark has room for is on hand at once, and at least what a new table has."""
        control = self._control
        control.settle(self.base + at)
        for target in self.targets:
            target.tracking, dimension = None, target.dimension
            mark, quota = control.mark[dimension], self.setup.quota_units
            _change_mode(target, at, OnDemandThroughput(dimension, control.partitions, mark, None, quota))

    def _serve_provisioned(self, at: int) -> None:
        control = self._control
        control.settle(self.base + at)
        for target, tracking in zip(self.targets, self._tracking, strict=True):
            target.tracking, units = tracking, control.units[target.dimension]
            provisioned = Provisioned(target.dimension, units, control.partitions, self.setup.burst_seconds)
            _change_mode(target, at, provisioned)


def _change_mode(target: SimulatedTarget, at: int, throughput: Provisioned | OnDemandThroughput) -> None:
    """Serve by the throughput of another billing mode from *at* on."""
    throughput.refused = target.throughput.refused
    target.throughput = throughput
    target.capacity.append((at, throughput.units))
    target.hour_peak = max(target.hour_peak, throughput.units)


def run_hours(setup: TableSetup, traffic: Traffic, windows: Sequence[range]) -> Run:
    """Simulate target tracking with these clock hours of the traffic on demand; capacity is 0 there."""
    timing = Timing()
    table = SwitchedTable(opening(Native(_TARGET_PERCENT).arrange(setup, traffic), traffic), traffic, timing)
    policies = sum(target.tracking is not None for target in table.targets)
    autoscaling = SimulatedAutoScaling(table, timing)
    first_hour = table.base // 3600 * 3600 - table.base
    for window in windows:
        table.at(max(0, first_hour + window.start * 3600 - LEAD_SECONDS), table.to_on_demand)
        table.at(first_hour + window.stop * 3600, table.to_provisioned)
    for minute in range(traffic.minutes):
        autoscaling.plan_alarms(minute)
        table.serve_minute(minute)
        table.end_minute(minute)
    cost = bill(
        load_prices(),
        [(target.dimension, tuple(target.hour_peaks)) for target in table.targets],
        [(dimension, quanta / QUANTA_PER_UNIT) for dimension, quanta in table.requested.items()],
        hours=len(table.targets[0].hour_peaks),
        seconds=traffic.minutes * 60,
        policies=policies,
    )
    targets = table.records()
    decreases = table.controls[None].decreases
    return Run(
        setup.name, "hours", traffic.start, traffic.minutes, targets, (), decreases, table.refused_decreases, cost
    )


@dataclass(frozen=True, slots=True)
class Row:
    """What a trace's second half costs a month, throttles of a million, and costs with its throttles, by policy."""

    trace: Trace
    days: int
    outcomes: dict[str, tuple[float, float, float]]

    def gain_percent(self, policy: str, others: Sequence[str]) -> float:
        """What a policy saves of the best of others, throttles counted."""
        return 100 * (1 - self.outcomes[policy][2] / min(self.outcomes[other][2] for other in others))


def row_of(trace: Trace) -> Row:
    """Score all policies over one trace."""
    traffic, setup, days = load(trace), make_setup(trace), int(trace.days / 2)
    known, scored = _halves(traffic, timedelta(days=days))
    runs = {policy: run_policy(policy, setup, scored) for policy in (*_MODES, _OWN)}
    plan = recommend(known, table=setup).best.plan
    runs[_RECOMMENDED] = runs[_MODES[1]] if plan is None else simulate(table_of(plan, trace.name), scored, Declared())
    hours, begin = hours_of(trace, BASE), days * _DAY
    own, other = (
        _with_throttles(hours.provisioned, hours.throttled),
        _with_throttles(hours.on_demand, hours.throttled_on_demand),
    )
    for name, days_back in _HOURS.items():
        windows = [range(max(0, each.start - begin), each.stop - begin) for each in openings(own, other, days_back)]
        runs[name] = run_hours(setup, scored, [each for each in windows if each])
    months = HOURS_PER_MONTH * 60 / scored.minutes
    return Row(
        trace,
        days,
        {
            name: (
                run.bill.per_month,
                run.throttled_per_million,
                run.bill.per_month + run.throttled_units * _WORTH * months,
            )
            for name, run in runs.items()
        },
    )


def _halves(traffic: Traffic, length: timedelta) -> tuple[Traffic, Traffic]:
    bins = int(length.total_seconds()) // traffic.bin_seconds
    before, after = (
        {stream: rates[part] for stream, rates in traffic.rates.items()} for part in (slice(bins), slice(bins, None))
    )
    return replace(traffic, rates=before), replace(traffic, rates=after, start=traffic.start + length)


def _with_throttles(usd: Sequence[float], throttled: Sequence[float]) -> list[float]:
    return [cost + units * _WORTH for cost, units in zip(usd, throttled, strict=True)]


def main(arguments: Sequence[str]) -> int:
    """Print a line for each trace, and for which of them hours on demand pay."""
    parser = argparse.ArgumentParser(prog="modes", description=__doc__)
    add_traces(parser)
    given = parser.parse_args(arguments)
    traces = [trace for trace in find_traces(given.traces) if trace.days >= 2]
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(row_of, traces))
    names = (*_MODES, _RECOMMENDED, _OWN, *_HOURS)
    print(f"| trace | class | days | {' | '.join(names)} |\n|---|---|---:|{'---:|' * len(names)}")
    for row in rows:
        cells = [f"{usd:,.0f} ({throttled:,.0f})" for usd, throttled, _ in (row.outcomes[name] for name in names)]
        print(f"| {row.trace.name} | {row.trace.kind} | {row.days} | {' | '.join(cells)} |")
    for name in _HOURS:
        for beside in ((*_MODES, _RECOMMENDED), (*_MODES, _RECOMMENDED, _OWN)):
            gains = {row.trace.name: row.gain_percent(name, beside) for row in rows}
            worth = {trace: gain for trace, gain in gains.items() if gain >= WORTH_PERCENT}
            said = ", ".join(f"{trace} ({gain:.0f} %)" for trace, gain in worth.items()) or "none"
            print(f"\n{name}, beside {', '.join(beside)}:")
            print(f"saves {WORTH_PERCENT} % or more for {len(worth)} of {len(rows)}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
