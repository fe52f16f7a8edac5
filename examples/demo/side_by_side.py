"""The demo's surge: sends ten times the usual load to four equal tables at once.

One has target tracking alone, one the scaler in addition. Of one a job asks for capacity before it begins, and the
clients of one tell the scaler what they ask for. For every minute of the cloud's clock the demo prints the refused,
provisioned and consumed units of the tables. Then it draws them beside the simulator's result for the same load, and
writes a report like that of `highwater simulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from callers import Caller
from rich.console import Console

from highwater import BoostAnswer, Pulse
from highwater.core import Dimension
from highwater.core.boosts import units_for_rate
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, LoadReport
from highwater_lab.local.lockstep import SeatClock
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.rehearse import PlannedBoost, Rehearsal
from highwater_lab.rehearse.jobs import leases_of
from highwater_lab.report.page import write_page
from highwater_lab.services.prices import load_prices
from highwater_lab.simulation import Run, TableSetup
from highwater_lab.traffic import Stream, Traffic

WRITE: Final = Dimension.WRITE
# a late request must not lift a calm minute over the alarm: 27 is below 70 % of 40
BASE, SURGE = 27, 270
MINUTES: Final = (4, 10)
# minutes of the base load beforehand, because auto scaling's alarms need a history of metrics
_LEAD = 20
# requests of 135 units each, so that two of them in a second are the surge, and one in five seconds the base
_REQUESTS_PER_SECOND = 2
# The local cloud and the simulator may differ by one request, or by this: alarms are judged once a minute, each at a
# second that its name decides in the local cloud, so capacity may come a minute sooner or later.
_TOLERANCE_UNITS: Final = 60 * (SURGE - BASE)
# the width of a bar in characters, and of a table's columns: four of them fit into a terminal of 80
_BAR, _WIDTH = 3, 17
TITLES: Final = ("target tracking alone", "with the scaler", "with a boost", "with pulses")
_HEADS: Final = ("target 70 %", "scaler, 90 %", "boost, 70 %", "pulses, 90 %")
# the job asks in the minute before the last calm one: raising capacity takes most of a minute
_ASKS_AFTER: Final = timedelta(minutes=2)
_MINUTE: Final = timedelta(minutes=1)
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
        self.differences: list[str] = []

    def run(self, picture: Path, report: Path) -> Tables[LoadReport]:
        """Send the surge, write *picture* and *report*, and return the reports of the clients."""
        start = self._align()
        traffic = _traffic(start)
        self._console.print(f"[bold]A surge from {BASE} to {SURGE} writes/s on all tables[/], by the cloud's clock")
        self._console.print(
            f"[dim]{'':9}"
            + "".join(f"{head:>{_WIDTH - _BAR - 1}}{'':{_BAR + 1}}" for head in _HEADS)
            + f"\n{'min':>3}{'asked':>6}"
            + f"{'throttl':>8}{'WCU':>5}{'':{_BAR + 1}}" * len(_HEADS)
            + "[/]",
            highlight=False,
        )
        pulses: list[Pulse] = []
        loads = self._watched.each(lambda watched: self._load(watched, traffic, pulses))
        *sent, answer, _ = self._cloud.play(
            lambda clock: self._send_with_pulses(clock, loads.pulsed, pulses),
            *(load.run_on for load in loads if load is not loads.pulsed),
            lambda clock: self._ask(clock, start + (_LEAD * _MINUTE) + _ASKS_AFTER),
            lambda clock: self._beat(clock, pulses),
        )
        pulsed, native, scaled, boosted = sent
        reports = Tables(native, scaled, boosted, pulsed)
        runs = self._simulate(traffic, start)
        (granted,) = answer.targets
        self._console.print(
            f"the job asked two minutes before the surge, and got {granted.units:,} units/s "
            f"for {_LEASE_MINUTES} minutes",
            highlight=False,
        )
        for title, seen, run in zip(TITLES, reports, runs, strict=True):
            self._compare(title, seen, run)
        self._draw(reports, runs, picture)
        write_page(Rehearsal(self._setups.native, traffic, tuple(runs), load_prices()), report)
        return reports

    def _align(self) -> datetime:
        """Move the clock to the next whole hour, so that each run meets the same minutes of scalers and alarms."""
        now = self._cloud.status().now
        start = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        self._cloud.step(start - now)
        return start

    def _compare(self, title: str, seen: LoadReport, run: Run) -> None:
        """Print the throttled units of a table beside the simulator's; a difference is noted."""
        throttled, simulated = seen.total(WRITE, "throttled"), run.throttled_units
        self._console.print(
            f"{title + ':':24} throttled {throttled:>7,.0f} of {seen.total(WRITE, 'asked'):,.0f} units, "
            f"simulated {simulated:>7,.0f}",
            highlight=False,
        )
        tolerance = max(_TOLERANCE_UNITS if simulated else 0, seen.units_per_request[WRITE])
        if abs(throttled - simulated) > tolerance:
            self.differences.append(f"{title}: throttled {throttled:,.0f} units, in the simulator {simulated:,.0f}")
        if seen.failure:
            self.differences.append(f"{title}: the load ended before its time: {seen.failure}")

    def _ask(self, clock: SeatClock, at: datetime) -> BoostAnswer:
        """Boost a table at that time of the cloud's clock."""
        clock.sleep(at.timestamp() - clock.time())
        return self._job.boost(self._cloud, self._watched.boosted.name, SURGE - BASE, _LEASE_MINUTES)

    def _send_with_pulses(self, clock: SeatClock, load: Load, pulses: list[Pulse]) -> LoadReport:
        pulses.append(self._fleet.pulse(self._cloud, clock))
        return load.run_on(clock)

    @staticmethod
    def _beat(clock: SeatClock, pulses: list[Pulse]) -> None:
        """Report what the clients of a table ask for, until their load has ended."""
        (pulse,) = pulses
        pulse.clock, pulse.pause = clock.time, clock.sleep
        minutes = _LEAD + sum(MINUTES)
        end = clock.time() + minutes * 60
        while clock.time() < end:
            pulse.beat()
            clock.sleep(1)
        pulse.stop()

    def _load(self, watched: _Watched, traffic: Traffic, pulses: list[Pulse]) -> Load:
        return Load(
            self._cloud.control,
            watched.name,
            traffic,
            requests_per_second=_REQUESTS_PER_SECOND,
            prepare=(lambda client: pulses[0].meter.install(client)) if watched is self._watched.pulsed else None,
            tell=lambda report, minute: self._record(watched, report, minute),
        )

    def _simulate(self, traffic: Traffic, start: datetime) -> Tables[Run]:
        """Simulate the same load."""
        setups = self._setups
        boost = PlannedBoost(
            dimension=WRITE,
            units=units_for_rate(SURGE - BASE, 70),
            at=start + _LEAD * _MINUTE + _ASKS_AFTER,
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
        watched.report = report
        watched.provisioned.append(int(table["ProvisionedThroughput"]["WriteCapacityUnits"]))
        if minute > _LEAD and all(len(each.provisioned) >= minute for each in self._watched):
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
            columns += f"{units.throttled / 60:>8,.0f}{watched.provisioned[minute - 1]:>5} {bar}"
        self._console.print(f"{minute - 1 - _LEAD:>3}{demand:>6,.0f}{columns}", highlight=False)

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


def _traffic(start: datetime) -> Traffic:
    """Return the base load from *start*, and the surge."""
    counts = [BASE * 60.0] * (_LEAD + MINUTES[0]) + [SURGE * 60.0] * MINUTES[1]
    return Traffic.from_counts("surge", {Stream(None, WRITE): counts}, bin_seconds=60, start=start)


def _draw_one(axes: Any, report: LoadReport, run: Run, provisioned: list[int]) -> None:
    count = sum(MINUTES)
    minutes = report.minutes[WRITE][_LEAD : _LEAD + count]

    def line(values: list[float], **style: str) -> None:
        axes.step(range(count + 1), [*values, values[-1]], where="post", **style)

    granted = [minute.granted / 60 for minute in minutes]
    axes.fill_between(
        range(count + 1), [*granted, granted[-1]], step="post", color="#1f77b4", alpha=0.35, label="consumed"
    )
    throttled = [minute.throttled / 60 for minute in minutes]
    axes.bar(range(count), throttled, width=1, bottom=granted, align="edge", color="#e67e22", label="throttled")
    line([minute.asked / 60 for minute in minutes], color="#8a8f98", label="demand")
    # the capacity at the end of each minute, as in the simulation
    by_minute = [float(units) for units in provisioned[_LEAD:]]
    line([*by_minute, *[by_minute[-1]] * count][:count], color="#c0392b", label="provisioned")
    simulated = [float(units) for units in run.target(WRITE).capacity_by_minute()][_LEAD:]
    line(simulated, color="#c0392b", linestyle="--", label="provisioned, simulated")
    consumed = [quanta / 3600 for quanta in run.target(WRITE).consumed[_LEAD:]]
    line(consumed, color="#154360", linestyle="--", label="consumed, simulated")
    axes.set_ylabel("write units/s")
    axes.grid(alpha=0.25)
