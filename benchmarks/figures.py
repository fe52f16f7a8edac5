"""Writes docs/figures.md, which compares the article's figures with the simulator, and pictures of the tools' output.

Run it with `make figures`. The screenshot of the report needs Debian's chromium; without chromium the old screenshot
stays, with a warning.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from highwater_lab.figures import BOOSTED, FIGURES, SURGE
from highwater_lab.rehearse import Rehearsal, rehearse
from highwater_lab.report.page import write_page
from highwater_lab.report.picture import write_run
from highwater_lab.report.terminal import print_rehearsal
from highwater_lab.services.autoscaling import TargetTracking
from highwater_lab.simulation import ResourceSetup, Run, TableSetup, TargetSetup
from highwater_lab.simulation.run import EventKind
from highwater_lab.traffic import scenario

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "figures.md"
PICTURES = ROOT / "docs" / "pictures"
HEAD = """\
# The article's figures

Made by `make figures`. "Handle traffic spikes with Amazon DynamoDB provisioned capacity" (J. Hunter and P. Rawal, AWS
Database Blog) shows tests on real tables. This page compares its results with simulations of the same setup. Seconds
are counted from the start of the surge. Figure 1 shows a customer's table and has no numbers, so it is left out.
"""
TAIL = """\
## Which bucket

The simulator models burst capacity as a token bucket with at most 300 seconds of provisioned capacity. Under the other
reading of the documentation, burst capacity is the capacity left unused in the last 300 seconds. That would throttle
figure 5 after about 140 seconds, but the article reports no throttles there.

## The report

`highwater rehearse ... --html report.html` writes a page like this one, for the surge of figure 2 on a table with a
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
    svg = console.export_svg(title="highwater rehearse", unique_id="rehearse")
    # the picture must not load fonts from the network
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (PICTURES / "rehearse.svg").write_text(re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE), encoding="utf-8")
    print("written: docs/pictures/rehearse.svg")


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
        page = window.new_page(viewport={"width": 1_100, "height": 830})
        page.goto(page_file.as_uri())
        page.wait_for_selector("#chart .main-svg")
        page.mouse.move(420, 560)
        page.wait_for_selector("#chart .hoverlayer .legend text")
        page.screenshot(path=PICTURES / "report.png")
        window.close()
    print("written: docs/pictures/report.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
