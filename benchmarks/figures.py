"""Simulates figures 2 to 7 of "Handle traffic spikes with Amazon DynamoDB provisioned capacity".

The article is by J. Hunter and P. Rawal on the AWS Database Blog. Figure 1 shows a real customer's table and has no
numbers, so it is left out.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

from rich.console import Console

from highwater.core import Dimension
from highwater.core.boosts import Lease
from highwater.core.tracking import TargetTracking
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.rehearse import Rehearsal, rehearse
from highwater_lab.report.page import write_page
from highwater_lab.report.picture import write_run
from highwater_lab.report.terminal import print_rehearsal
from highwater_lab.services.schedules import At
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import ResourceSetup, Run, ScheduledChange, TableSetup, TargetSetup, simulate
from highwater_lab.simulation.policy import Policy
from highwater_lab.simulation.run import EventKind
from highwater_lab.traffic import scenario
from highwater_lab.traffic.series import DEFAULT_START

# The time from the start of each figure's scenario to its surge
SURGE: Final = timedelta(minutes=30)
# A high-water mark above all peaks, because the article's table had served its peak before
_MARK: Final = 40_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: the setup of its table, and the article's result.

    Attributes:
        number: The figure's number in the article.
        title: The title for reports.
        target_percent: The target utilization; `None` on demand.
        units: The provisioned write units at the start.
        scheduled_min: The floor that a scheduled action sets two minutes before the surge; `None` for no action.
        reported: The article's result in short.
        fits: The comparison of the simulation with the article.
        boost_total: The write units in total that a job asks for two minutes before the surge, until it is over; `None`
            for no boost.
    """

    number: int
    title: str
    target_percent: int | None
    units: int
    scheduled_min: int | None
    reported: str
    fits: str
    boost_total: int | None = None

    @property
    def scenario(self) -> str:
        """The name of the scenario with the figure's traffic."""
        return f"figure-{self.number}"

    def run(self, *, seed: int = 1, timing: Timing | None = None) -> Run:
        """Simulate the figure; *seed* determines the jitter of the traffic, *timing* the delays of the AWS services."""
        return simulate(self._setup(), scenario(self.scenario, seed=seed), self._policy(), timing=timing)

    def _policy(self) -> Policy:
        return OnDemandMode() if self.target_percent is None else Declared()

    def _setup(self) -> TableSetup:
        actions: tuple[ScheduledChange, ...] = ()
        if self.scheduled_min is not None:
            surge: datetime = DEFAULT_START + SURGE
            actions = (
                ScheduledChange(
                    name="ahead of the surge",
                    expression=At(surge - timedelta(minutes=2)),
                    min=self.scheduled_min,
                    max=None,
                ),
            )
        tracking = TargetTracking(target_percent=self.target_percent) if self.target_percent else None
        write = TargetSetup(units=self.units, min=100, max=_MARK, tracking=tracking, actions=actions)
        table = ResourceSetup(index=None, read=TargetSetup.fixed(5), write=write, warm_write_units=_MARK)
        return TableSetup(name=f"figure {self.number}", resources=(table,), starts_settled=False, leases=self._leases())

    def _leases(self) -> tuple[Lease, ...]:
        if self.boost_total is None:
            return ()
        start = DEFAULT_START + SURGE - timedelta(minutes=2)
        return (
            Lease(
                id="ahead of the surge",
                table=f"figure {self.number}",
                index=None,
                dimension=Dimension.WRITE,
                units=self.boost_total,
                is_total=True,
                start=start,
                end=start + timedelta(minutes=45),
                owner="job",
            ),
        )


_ALL: Final = (
    Figure(
        2,
        "a jump from 4,500 to 18,000 at 70 %",
        70,
        7_500,
        None,
        "no throttles for four minutes, then two minutes with throttles; 26,000 provisioned six minutes after the "
        "jump, lowered again about 15 minutes after the surge",
        "The burst bucket lasts for 3.5 minutes, and capacity rises in the fifth minute, so that two minutes throttle. "
        "CloudWatch shows provisioned capacity every five minutes, and 85 seconds or more old, so its six minutes are "
        "at most four and a half.",
    ),
    Figure(
        3,
        "the same jump at 60 %",
        60,
        9_000,
        None,
        "no throttles; auto scaling raised capacity seven minutes after the jump",
        "Seven minutes in a chart of provisioned capacity are at most five and a half, as its datapoints are 85 s "
        "or more old. The scenario has a mean of 17,000, and capacity rises in the fifth minute.",
    ),
    Figure(4, "the same jump on demand", None, 1, None, "no throttles of the table", "As reported."),
    Figure(
        5,
        "a jump to 14,000 only, at 70 %",
        70,
        7_500,
        None,
        "no throttles; the highest provisioned was 20,000",
        "As reported.",
    ),
    Figure(
        6,
        "a slow start: 9,000, 14,000, 18,000 within ten minutes, at 70 %",
        70,
        7_500,
        None,
        "no throttles; several increases",
        "As reported.",
    ),
    Figure(
        7,
        "the jump two minutes after a scheduled minimum of 18,000, at 70 %",
        70,
        7_500,
        18_000,
        "no throttles; first 18,000 by schedule, then 33,000 by auto scaling",
        "18,000 units at 70 % need 25,700. A capacity of 33,000 means a minute of 23,100, which the article does not "
        "mention.",
    ),
)

FIGURES: Final[Mapping[int, Figure]] = MappingProxyType({figure.number: figure for figure in _ALL})
# Figure 7 with a job that asks for what the article schedules
BOOSTED: Final = replace(
    FIGURES[7],
    title="the jump two minutes after a boost to 18,000 in total, at 70 %",
    scheduled_min=None,
    boost_total=18_000,
    reported="the figure above; its schedule sets what the job asks for here",
    fits="A boost does what the schedule does, at the time that the job knows, and ends with it.",
)


ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "figures.md"
PICTURES = ROOT / "docs" / "pictures"
HEAD = """\
# The article's figures

Made by `make benchmark NAME=figures`. "Handle traffic spikes with Amazon DynamoDB provisioned capacity" (J. Hunter and
P. Rawal, AWS Database Blog) shows tests on real tables. This page compares its results with simulations of the same
setup. Seconds are counted from the start of the surge. Figure 1 shows a customer's table and has no numbers, so it is
left out.
"""
TAIL = """\
## Which bucket

The simulator models burst capacity as a token bucket with at most 300 seconds of provisioned capacity. Under the other
reading of the documentation, burst capacity is the capacity left unused in the last 300 seconds. That would throttle
figure 5 after about 140 seconds, but the article reports no throttles there.

## The report

`highwater simulate ... --html report.html` writes a page like this one, for the surge of figure 2 on a table with a
floor of 2,000:

![the report](pictures/report.png)
"""


def main() -> int:
    """Write the page and the pictures; return 0."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    lines = [HEAD]
    for figure in (*FIGURES.values(), BOOSTED):
        run = figure.run()
        number = f"{figure.number}{' with a boost' if figure is BOOSTED else ''}"
        name = f"figure-{number.replace(' ', '-')}.png"
        write_run(run, f"figure {number}: {figure.title}", PICTURES / name)
        lines += [
            f"## Figure {number}: {figure.title}",
            "",
            f"![figure {number}](pictures/{name})",
            "",
            f"The article: {figure.reported}.",
            "",
            f"The simulator: {_summary(run)}.",
            "",
            figure.fits,
            "",
        ]
    PAGE.write_text("\n".join([*lines, TAIL]), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)} and {len(FIGURES) + 1} pictures")
    rehearsal = _rehearsal()
    _print_terminal(rehearsal)
    return _screenshot(rehearsal)


def _rehearsal() -> Rehearsal:
    """Rehearse the surge of figure 2 on a table with a floor of 2,000."""
    write = TargetSetup(units=1, min=2_000, max=40_000, tracking=TargetTracking(target_percent=70))
    table = ResourceSetup(index=None, read=TargetSetup.fixed(5), write=write, warm_write_units=40_000)
    setup = TableSetup(name="Orders", resources=(table,))
    return rehearse(setup, scenario(FIGURES[2].scenario), compare=["native:50", "on-demand", "clairvoyant"])


def _print_terminal(rehearsal: Rehearsal) -> None:
    console = Console(record=True, file=io.StringIO(), width=100, force_terminal=True)
    print_rehearsal(rehearsal, console)
    svg = console.export_svg(title="highwater simulate", unique_id="simulate")
    # the picture must not load fonts from the network
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (PICTURES / "simulate.svg").write_text(re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE), encoding="utf-8")
    print("written: docs/pictures/simulate.svg")


def _summary(run: Run) -> str:
    surge = int(SURGE.total_seconds())
    throttled = run.throttled_minutes()
    parts = ["no throttles"]
    if throttled:
        parts = [
            f"throttles from minute {throttled[0] - surge // 60} to minute {throttled[-1] - surge // 60} of the surge, "
            f"{run.throttled_units:,.0f} units"
        ]
    for event in run.events:
        if event.kind in (EventKind.SCALE_OUT, EventKind.SCALE_IN) and -300 < event.at - surge < 3_000:
            change = abs((event.after or 0) - (event.before or 0))
            # steps of less than 5 % are noise
            if change * 20 > (event.before or 0):
                parts.append(f"{event.after:,} provisioned at {event.at - surge:+} s")
    return "; ".join(parts)


def _screenshot(rehearsal: Rehearsal) -> int:
    browser = shutil.which("chromium")
    if browser is None:
        print("SKIPPED: the screenshot needs chromium, which is not installed; the old one stays", file=sys.stderr)
        return 0
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        write_page(rehearsal, page_file)
        window = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = window.new_page(viewport={"width": 1_100, "height": 1_130}, timezone_id="UTC")
        page.goto(page_file.as_uri())
        page.wait_for_selector("body[data-ready]")
        page.locator("canvas").hover(position={"x": 395, "y": 60})
        page.screenshot(path=PICTURES / "report.png")
        window.close()
    print("written: docs/pictures/report.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
