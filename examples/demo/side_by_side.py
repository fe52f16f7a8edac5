"""The demo's surge: sends ten times the usual load to four equal tables at once.

One has target tracking alone, one the scaler in addition. Of one a job asks for capacity before it begins, and the
clients of one tell the scaler what they ask for. For every minute of the cloud's clock the demo prints the refused,
provisioned and consumed units of the tables. Then it draws them beside the simulator's result for the same load, and
writes a report like that of `highwater rehearse`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from callers import Caller
from rich.console import Console

from highwater.client import BoostAnswer, Pulse
from highwater.core import Dimension
from highwater.core.boosts import units_for_rate
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load
from highwater_lab.local.load_report import LoadReport
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.rehearse import PlannedBoost, Rehearsal
from highwater_lab.rehearse.boosts import leases_of
from highwater_lab.report.page import write_page
from highwater_lab.services.prices import load_prices
from highwater_lab.simulation import Run, TableSetup
from highwater_lab.traffic import Stream, Traffic

WRITE: Final = Dimension.WRITE
# a late request must not lift a calm minute over the alarm: 27 is below 70 % of 40
BASE, SURGE = 27, 270
MINUTES: Final = (4, 14)
# minutes of the base load before the start in the simulator, because auto scaling's alarms need a history of metrics
_LEAD = 20
SPEED: Final = 20
# a laptop with two cores can send and serve the four loads together at this speed
_REQUESTS_PER_SECOND = 50
# the width of a bar in characters, and of a table's columns: four of them fit into a terminal of 80
_BAR, _WIDTH = 3, 17
TITLES: Final = ("target tracking alone", "with the scaler", "with a boost", "with pulses")
_HEADS: Final = ("target 70 %", "scaler, 90 %", "boost, 70 %", "pulses, 90 %")
# the job asks in the minute before the last calm one: raising capacity takes most of a minute
_ASKS_AFTER: Final = timedelta(minutes=2)
_LEASE_MINUTES: Final = 18

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Tables(Generic[T]):
    """A value for each table: with native scaling, with the scaler, boosted by a job, and told of by its clients."""

    native: T
    scaled: T
    boosted: T
    pulsed: T

    def __iter__(self) -> Iterator[T]:
        return iter((self.native, self.scaled, self.boosted, self.pulsed))

    def each(self, make: Callable[[T], U]) -> Tables[U]:
        """Return *make*'s results for all values."""
        return Tables(*(make(value) for value in self))


@dataclass(slots=True)
class _Watched:
    """One table under load: its capacity at the end of each minute, and the latest report of its clients."""

    name: str
    provisioned: list[int]
    report: LoadReport | None = None


class Surge:
    """One surge on all tables.

    *names* are the tables' names, *setups* the tables as read from the template, *job* is who boosts one of them, and
    *fleet* who sends the load of the last.
    """

    def __init__(
        self,
        cloud: LocalCloud,
        console: Console,
        names: Tables[str],
        setups: Tables[TableSetup],
        job: Caller,
        fleet: Caller,
    ) -> None:
        self._job = job
        self._fleet = fleet
        self._cloud = cloud
        self._console = console
        self._setups = setups
        self._dynamodb = cloud.client("dynamodb")
        self._watched = names.each(lambda name: _Watched(name, []))
        self._lock = threading.Lock()

    def run(self, picture: Path, report: Path) -> Tables[LoadReport]:
        """Send the surge, write *picture* and *report*, and return the reports of the clients."""
        now = self._cloud.status().now
        # alarms evaluate whole minutes of the clock, so the load begins on a whole minute
        self._cloud.advance(timedelta(seconds=60 - now.second))
        start = self._cloud.status().now.replace(second=0, microsecond=0)
        traffic = _traffic(start, 0)
        self._console.print(
            f"[bold]A surge from {BASE} to {SURGE} writes/s on all tables[/], with the clock {SPEED} times faster"
        )
        self._console.print(
            f"[dim]{'':9}"
            + "".join(f"{head:>{_WIDTH - _BAR - 1}}{'':{_BAR + 1}}" for head in _HEADS)
            + f"\n{'min':>3}{'asked':>6}"
            + f"{'refused':>8}{'WCU':>5}{'':{_BAR + 1}}" * len(_HEADS)
            + "[/]",
            highlight=False,
        )
        self._cloud.run_at(SPEED)
        pulse = self._fleet.pulse(self._cloud)
        try:
            with ThreadPoolExecutor(5) as pool:
                futures = self._watched.each(lambda watched: pool.submit(self._load(watched, traffic, pulse).run))
                asking = pool.submit(self._ask, start + _ASKS_AFTER)
                reports = futures.each(lambda future: future.result())
                answer = asking.result()
        finally:
            pulse.stop()
            self._cloud.run_at(1)
        traffic_with_lead = _traffic(start, _LEAD)
        runs = self._simulate(traffic_with_lead, start)
        (granted,) = answer.targets
        self._console.print(
            f"the job asked two minutes before the surge, and got {granted.units:,} units/s "
            f"for {_LEASE_MINUTES} minutes",
            highlight=False,
        )
        for title, sent, run in zip(TITLES, reports, runs, strict=True):
            self._console.print(
                f"{title}: throttled {sent.total(WRITE, 'throttled'):,.0f} of {sent.total(WRITE, 'asked'):,.0f} units; "
                f"in the simulator {run.throttled_units:,.0f}",
                highlight=False,
            )
        self._draw(reports, runs, picture)
        write_page(Rehearsal(self._setups.native, traffic_with_lead, tuple(runs), load_prices()), report)
        return reports

    def _ask(self, at: datetime) -> BoostAnswer:
        """Boost a table at that time of the cloud's clock."""
        while (left := (at - self._cloud.status().now).total_seconds()) > 0:
            time.sleep(min(left / SPEED, 1))
        return self._job.boost(self._cloud, self._watched.boosted.name, SURGE - BASE, _LEASE_MINUTES)

    def _load(self, watched: _Watched, traffic: Traffic, pulse: Pulse) -> Load:
        return Load(
            self._cloud.control,
            watched.name,
            traffic,
            threads=4,
            requests_per_second=_REQUESTS_PER_SECOND,
            prepare=pulse.meter.install if watched is self._watched.pulsed else None,
            tell=lambda report, minute: self._record(watched, report, minute),
        )

    def _simulate(self, traffic: Traffic, start: datetime) -> Tables[Run]:
        """Simulate the same load on tables with the same capacity at the start."""
        setups = Tables(
            *(
                replace(setup, starts_settled=False, resources=(_with_write_units(setup, watched.provisioned[0]),))
                for setup, watched in zip(self._setups, self._watched, strict=True)
            )
        )
        boost = PlannedBoost(
            dimension=WRITE,
            units=units_for_rate(SURGE - BASE, 70),
            at=start + _ASKS_AFTER,
            length=timedelta(minutes=_LEASE_MINUTES),
        )
        boosted = replace(setups.boosted, leases=leases_of([boost], setups.boosted.name, traffic))
        return Tables(
            run_policy("native:70", setups.native, traffic),
            run_policy("highwater-floor", setups.scaled, traffic),
            run_policy("declared", boosted, traffic),
            run_policy("highwater-floor-pulse", setups.pulsed, traffic),
        )

    def _record(self, watched: _Watched, report: LoadReport, minute: int) -> None:
        """Record a table's minute that has just ended, and print the minute once all tables have recorded it."""
        table = self._dynamodb.describe_table(TableName=watched.name)["Table"]
        with self._lock:
            watched.report = report
            watched.provisioned.append(int(table["ProvisionedThroughput"]["WriteCapacityUnits"]))
            if minute and all(len(each.provisioned) > minute for each in self._watched):
                self._print(minute)

    def _print(self, minute: int) -> None:
        columns = ""
        demand = 0.0
        for watched in self._watched:
            assert watched.report is not None  # noqa: S101 - all tables have recorded this minute
            units = watched.report.minutes[WRITE][minute - 1]
            demand = units.asked / 60
            granted, throttled = (round(_BAR * part / 60 / SURGE) for part in (units.granted, units.throttled))
            bar = f"[blue]{'█' * granted}[/][red]{'█' * throttled}[/]" + " " * (_BAR - granted - throttled)
            columns += f"{units.throttled / 60:>8,.0f}{watched.provisioned[minute]:>5} {bar}"
        self._console.print(f"{minute - 1:>3}{demand:>6,.0f}{columns}", highlight=False)

    def _draw(self, reports: Tables[LoadReport], runs: Tables[Run], picture: Path) -> None:
        import matplotlib as mpl

        mpl.use("agg")
        from matplotlib import pyplot as plt

        figure, panels = plt.subplots(4, 1, figsize=(10, 14), sharex=True, sharey=True, layout="constrained")
        titles = (
            "target tracking at 70 % alone",
            "target tracking at 90 % with the scaler",
            "target tracking at 70 %, boosted two minutes before the surge",
            "target tracking at 90 % with the scaler, and clients that pulse",
        )
        for axes, title, report, run, watched in zip(panels, titles, reports, runs, self._watched, strict=True):
            axes.set_title(title, loc="left", fontsize=10)
            _draw_one(axes, report, run, watched.provisioned)
        panels[-1].set_xlabel("minutes")
        panels[-1].set_ylim(bottom=0)
        panels[0].legend(loc="upper left", fontsize=8, frameon=False)
        picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(picture, dpi=110)
        plt.close(figure)


def _traffic(start: datetime, lead_minutes: int) -> Traffic:
    """Return the traffic of the surge from *start*, after *lead_minutes* more of the base load."""
    counts = [BASE * 60.0] * (lead_minutes + MINUTES[0]) + [SURGE * 60.0] * MINUTES[1]
    begin = start - timedelta(minutes=lead_minutes)
    return Traffic.from_counts("surge", {Stream(None, WRITE): counts}, bin_seconds=60, start=begin)


def _with_write_units(setup: TableSetup, units: int) -> Any:
    resource = setup.resources[0]
    return resource.with_targets(resource.read, replace(resource.write, units=units))


def _draw_one(axes: Any, report: LoadReport, run: Run, provisioned: list[int]) -> None:
    count = sum(MINUTES)
    minutes = report.minutes[WRITE][:count]

    def line(values: list[float], **style: str) -> None:
        axes.step(range(count + 1), [*values, values[-1]], where="post", **style)

    granted = [minute.granted / 60 for minute in minutes]
    axes.fill_between(
        range(count + 1), [*granted, granted[-1]], step="post", color="#1f77b4", alpha=0.35, label="consumed"
    )
    throttled = [minute.throttled / 60 for minute in minutes]
    axes.bar(range(count), throttled, width=1, bottom=granted, align="edge", color="#e67e22", label="throttled")
    line([minute.asked / 60 for minute in minutes], color="#8a8f98", label="demand")
    # the capacity at the end of each minute, as in the simulation; the first value is from before the start
    by_minute = [float(units) for units in provisioned[1:]]
    line([*by_minute, *[by_minute[-1]] * count][:count], color="#c0392b", label="provisioned")
    simulated = [float(units) for units in run.target(WRITE).capacity_by_minute()][_LEAD:]
    line(simulated, color="#c0392b", linestyle="--", label="provisioned, simulated")
    consumed = [quanta / 3600 for quanta in run.target(WRITE).consumed[_LEAD:]]
    line(consumed, color="#154360", linestyle="--", label="consumed, simulated")
    axes.set_ylabel("write units/s")
    axes.grid(alpha=0.25)
