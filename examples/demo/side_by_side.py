"""The demo's surge: sends ten times the usual load to two equal tables at once, one of them with the scaler.

For every minute of the cloud's clock the demo prints the throttled, provisioned and consumed units of both tables. Then
it draws them beside the simulator's result for the same load, and writes a report like that of `highwater rehearse`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from rich.console import Console

from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load
from highwater_lab.local.load_report import LoadReport
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.rehearse import Rehearsal
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
# a laptop with two cores can send and serve both loads together at this speed
_REQUESTS_PER_SECOND = 100
# the width of a bar in characters
_BAR = 13

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Twins(Generic[T]):
    """A pair of values: one for the table with native scaling, one for the table with the scaler."""

    native: T
    scaled: T

    def __iter__(self) -> Iterator[T]:
        return iter((self.native, self.scaled))

    def each(self, make: Callable[[T], U]) -> Twins[U]:
        """Return the pair of *make*'s results for both values."""
        return Twins(make(self.native), make(self.scaled))


@dataclass(slots=True)
class _Watched:
    """One table under load: its capacity at the end of each minute, and the latest report of its clients."""

    name: str
    provisioned: list[int]
    report: LoadReport | None = None


class Surge:
    """One surge on both tables; *names* are the tables' names, *setups* the tables as read from the template."""

    def __init__(self, cloud: LocalCloud, console: Console, names: Twins[str], setups: Twins[TableSetup]) -> None:
        self._cloud = cloud
        self._console = console
        self._setups = setups
        self._dynamodb = cloud.client("dynamodb")
        self._watched = names.each(lambda name: _Watched(name, []))
        self._lock = threading.Lock()

    def run(self, picture: Path, report: Path) -> Twins[LoadReport]:
        """Send the surge, write *picture* and *report*, and return the reports of the clients."""
        now = self._cloud.status().now
        # alarms evaluate whole minutes of the clock, so the load begins on a whole minute
        self._cloud.advance(timedelta(seconds=60 - now.second))
        start = self._cloud.status().now.replace(second=0, microsecond=0)
        traffic = _traffic(start, 0)
        self._console.print(
            f"[bold]A surge from {BASE} to {SURGE} writes/s on both tables[/], with the clock {SPEED} times faster"
        )
        self._console.print(
            f"[dim]{'':13}{'target tracking at 70 %':>30}{'the same at 90 % with the scaler':>34}\n"
            f"{'minute':>6}{'demand':>7}" + f"{'throttled':>10}{'units':>6}{'':{_BAR + 1}}" * 2 + "[/]",
            highlight=False,
        )
        self._cloud.run_at(SPEED)
        try:
            with ThreadPoolExecutor(2) as pool:
                futures = self._watched.each(lambda watched: pool.submit(self._load(watched, traffic).run))
                reports = futures.each(lambda future: future.result())
        finally:
            self._cloud.run_at(1)
        traffic_with_lead = _traffic(start, _LEAD)
        runs = self._simulate(traffic_with_lead)
        for title, sent, run in zip(("target tracking alone", "with the scaler"), reports, runs, strict=True):
            self._console.print(
                f"{title}: throttled {sent.total(WRITE, 'throttled'):,.0f} of {sent.total(WRITE, 'asked'):,.0f} units; "
                f"in the simulator {run.throttled_units:,.0f}",
                highlight=False,
            )
        self._draw(reports, runs, picture)
        write_page(Rehearsal(self._setups.native, traffic_with_lead, tuple(runs), load_prices()), report)
        return reports

    def _load(self, watched: _Watched, traffic: Traffic) -> Load:
        return Load(
            self._cloud.control,
            watched.name,
            traffic,
            threads=4,
            requests_per_second=_REQUESTS_PER_SECOND,
            tell=lambda report, minute: self._record(watched, report, minute),
        )

    def _simulate(self, traffic: Traffic) -> Twins[Run]:
        """Simulate the same load on tables with the same capacity at the start."""
        setups = Twins(
            *(
                replace(setup, starts_settled=False, resources=(_with_write_units(setup, watched.provisioned[0]),))
                for setup, watched in zip(self._setups, self._watched, strict=True)
            )
        )
        return Twins(
            run_policy("native:70", setups.native, traffic), run_policy("highwater-floor", setups.scaled, traffic)
        )

    def _record(self, watched: _Watched, report: LoadReport, minute: int) -> None:
        """Record a table's minute that has just ended, and print the minute once both tables have recorded it."""
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
            assert watched.report is not None  # noqa: S101 - both tables have recorded this minute
            units = watched.report.minutes[WRITE][minute - 1]
            demand = units.asked / 60
            granted, throttled = (round(_BAR * part / 60 / SURGE) for part in (units.granted, units.throttled))
            bar = f"[blue]{'█' * granted}[/][red]{'█' * throttled}[/]" + " " * (_BAR - granted - throttled)
            columns += f"{units.throttled / 60:>10,.0f}{watched.provisioned[minute]:>6,} {bar}"
        self._console.print(f"{minute - 1:>6}{demand:>7,.0f}{columns}", highlight=False)

    def _draw(self, reports: Twins[LoadReport], runs: Twins[Run], picture: Path) -> None:
        import matplotlib as mpl

        mpl.use("agg")
        from matplotlib import pyplot as plt

        figure, panels = plt.subplots(2, 1, figsize=(10, 8), sharex=True, sharey=True, layout="constrained")
        titles = ("target tracking at 70 % alone", "target tracking at 90 % with the scaler")
        for axes, title, report, run, watched in zip(panels, titles, reports, runs, self._watched, strict=True):
            axes.set_title(title, loc="left", fontsize=10)
            _draw_one(axes, report, run, watched.provisioned)
        panels[1].set_xlabel("minutes")
        panels[1].set_ylim(bottom=0)
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
