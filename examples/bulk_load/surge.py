"""The demo's surge: figure 2 of AWS's article on traffic spikes, scaled, sent to the deployed table.

Every minute of the cloud's clock prints what was asked for, granted, provisioned and throttled, beside what the
simulator says of the same load; in the end all of it is drawn.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, LoadReport
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.simulation import Run, TableSetup
from highwater_lab.traffic import Stream, Traffic

WRITE = Dimension.WRITE
# Figure 2 goes from 4,500 to 18,000 units a second; a fiftieth of it is what a laptop sends at this speed
BASE, SURGE = 90, 360
MINUTES = (6, 10)
SPEED = 40
_BAR = 18


class Surge:
    """One surge on one table; *setup* is the table as its template declares it."""

    def __init__(self, cloud: LocalCloud, console: Console, table: str, setup: TableSetup) -> None:
        self._cloud = cloud
        self._console = console
        self._table = table
        self._setup = setup
        self._dynamodb = cloud.client("dynamodb")
        self._provisioned: list[int] = []

    def run(self, picture: Path) -> tuple[LoadReport, Run]:
        """Send it; what the clients saw, and what the simulator says."""
        now = self._cloud.status().now
        # alarms look at minutes of the clock: the load begins with one
        self._cloud.advance(timedelta(seconds=60 - now.second))
        start = self._cloud.status().now.replace(second=0, microsecond=0)
        counts = [BASE * 60.0] * MINUTES[0] + [SURGE * 60.0] * MINUTES[1]
        traffic = Traffic.from_counts("surge", {Stream(None, WRITE): counts}, bin_seconds=60, start=start)
        run = run_policy("declared", self._as_it_is(), traffic)
        self._console.print(
            f"[bold]A surge from {BASE} to {SURGE} writes/s[/], the clock {SPEED} times faster: figure 2 of AWS's "
            "article, scaled"
        )
        self._console.print(
            f"[dim]{'':>24}{'local cloud':>19}{'simulator':>16}\n"
            f"{'minute':>6}{'asked':>8}{'granted':>10}{'throttled':>11}{'has':>8}{'throttled':>11}{'has':>5}[/]",
            highlight=False,
        )
        simulated = list(run.target(WRITE).capacity_by_minute())
        self._cloud.run_at(SPEED)
        try:
            report = Load(
                self._cloud.control,
                self._table,
                traffic,
                tell=lambda seen, minute: self._tell(seen, minute, run, simulated),
            ).run()
        finally:
            self._cloud.run_at(1)
        throttled, expected = report.total(WRITE, "throttled"), run.throttled_units
        self._console.print(
            f"throttled {throttled:,.0f} units of {report.total(WRITE, 'asked'):,.0f}; the simulator says "
            f"{expected:,.0f}",
            highlight=False,
        )
        self._draw(report, run, simulated, picture)
        return report, run

    def _as_it_is(self) -> TableSetup:
        """The table as it is declared, with the capacity that it has now."""
        described = self._dynamodb.describe_table(TableName=self._table)["Table"]["ProvisionedThroughput"]
        resource = self._setup.resources[0]
        now = resource.with_targets(
            replace(resource.read, units=described["ReadCapacityUnits"]),
            replace(resource.write, units=described["WriteCapacityUnits"]),
        )
        return replace(self._setup, resources=(now,), starts_settled=False)

    def _tell(self, report: LoadReport, minute: int, run: Run, simulated: list[int]) -> None:
        """A line for the minute that has just passed."""
        described = self._dynamodb.describe_table(TableName=self._table)["Table"]
        self._provisioned.append(int(described["ProvisionedThroughput"]["WriteCapacityUnits"]))
        if minute == 0:
            return
        seen = report.minutes[WRITE][minute - 1]
        lost = sum(run.target(WRITE).throttled.get(minute - 1, {}).values()) / 3600
        granted = "█" * round(_BAR * seen.granted / 60 / SURGE)
        self._console.print(
            f"{minute - 1:>6}{seen.asked / 60:>8,.0f}{seen.granted / 60:>10,.0f}{seen.throttled / 60:>11,.0f}"
            f"{self._provisioned[-1]:>8,}{lost:>11,.0f}{simulated[minute - 1]:>5,}  "
            f"[blue]{granted}[/][red]{'█' * round(_BAR * seen.throttled / 60 / SURGE)}[/]",
            highlight=False,
        )

    def _draw(self, report: LoadReport, run: Run, simulated: list[int], picture: Path) -> None:
        import matplotlib as mpl

        mpl.use("agg")
        from matplotlib import pyplot as plt

        minutes = report.minutes[WRITE][: run.minutes]
        at = range(run.minutes)
        figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
        axes.step(at, [minute.asked / 60 for minute in minutes], where="post", color="#8a8f98", label="demand")
        granted = [minute.granted / 60 for minute in minutes]
        axes.fill_between(at, granted, step="post", color="#1f77b4", alpha=0.35, label="consumed")
        axes.bar(at, [m.throttled / 60 for m in minutes], width=1, align="edge", color="#e67e22", label="throttled")
        # seen at the end of each minute, as the simulated ones are; the first was before it all
        provisioned = [*self._provisioned[1:], *[self._provisioned[-1]] * run.minutes][: run.minutes]
        axes.step(at, provisioned, where="post", color="#c0392b", label="provisioned")
        axes.step(at, simulated, where="post", color="#c0392b", linestyle="--", label="provisioned, simulated")
        lost = [sum(run.target(WRITE).throttled.get(minute, {}).values()) / 3600 for minute in at]
        axes.step(at, lost, where="post", color="#a04000", linestyle="--", label="throttled, simulated")
        axes.set_xlabel("minutes")
        axes.set_ylabel("write units/s")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.legend(loc="upper left", fontsize=8, frameon=False)
        picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(picture, dpi=110)
        plt.close(figure)
