"""The tour: pictures of a window, of a surge met in four ways, and of a pull request. `make benchmark NAME=tour`.

Writes docs/tour.md and its pictures. All of them are simulated, and each is the same, byte by byte, in every run:
tests/docs/test_tour.py compares them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

import cdk_highwater
from benchmarks.jumps import FACTORS, HALF, RATE, jump, last_throttle, meet, meet_boosted
from highwater.core import Dimension
from highwater_lab.pictures import load_pyplot
from highwater_lab.policies.declared import Declared
from highwater_lab.rehearse.app import AppRehearsal, rehearse_app
from highwater_lab.report.app import app_markdown, app_rows
from highwater_lab.report.picture import Curves, Step, curves
from highwater_lab.simulation import Run, simulate
from highwater_lab.template import ListedApp, load_templates, read_app
from highwater_lab.traffic import Stream, Traffic

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
PAGE: Final = "tour.md"
WINDOW, SURGE, REQUEST = (f"pictures/tour-{name}.svg" for name in ("window", "surge", "pull-request"))

WRITE: Final = Dimension.WRITE
ZONE: Final = ZoneInfo("America/New_York")
MONDAY: Final = datetime(2026, 11, 2, tzinfo=ZONE)
CALM, LOAD, RAISED = 150, 900, 1_000
# minutes of a day in New York
BEGINS, ENDS = 300, 390
FACTOR: Final = max(FACTORS)
# As GitHub and the site show it in the dark too: the pictures have a ground of their own
_PAPER, _INK, _FAINT = "#ffffff", "#24292f", "#57606a"
_CAPACITY, _FLOOR, _SERVED, _THROTTLED = "#0b5cad", "#1a7f37", "#b6d4f5", "#cf222e"
# Inches: as wide as a phone shows without making the letters small
_WIDTH: Final = 5.6

_WINDOWS: Final = ", windows=[load]"
DECLARED: Final = f"""\
key = dynamodb.Attribute(name="order_id", type=dynamodb.AttributeType.STRING)
load = Window.weekly(
    "load",
    days="MON-FRI",
    start="05:00",
    end="06:30",
    timezone="America/New_York",
    write_min={RAISED:_},
)
read = Capacity.autoscaled(min_capacity=10, max_capacity=400)
write = Capacity.autoscaled(min_capacity=50, max_capacity=4_000)
HighWaterTable(stack, "Orders", partition_key=key, read=read, write=write{_WINDOWS})
"""


@dataclass(frozen=True, slots=True)
class Morning:
    """The table of the tour on a Monday morning, with its window and without, and the change as a pull request.

    Attributes:
        before: The run of the table that follows its traffic alone.
        after: The run of the table with the window.
        change: The rehearsal of the change, of a week.
    """

    before: Run
    after: Run
    change: AppRehearsal


def _app(declared: str) -> ListedApp:
    """Synthesize an app with the table, and read it as `highwater rehearse` does."""
    with tempfile.TemporaryDirectory(prefix="highwater-tour-") as folder:
        app = cdk.App(outdir=folder, tree_metadata=False, context={"highwater:asOf": f"{MONDAY:%Y-%m-%d}"})
        names = {name: getattr(cdk_highwater, name) for name in ("Capacity", "HighWaterTable", "Window")}
        exec(declared, names | {"dynamodb": dynamodb, "stack": cdk.Stack(app, "Shop")})  # noqa: S102 - the page's snippet
        app.synth()
        return read_app(load_templates(Path(folder)))


def _week() -> Traffic:
    """Return a week from Monday on, in New York: a load on each working day, and calm otherwise."""
    writes = [
        60.0 * (LOAD if day < 5 and BEGINS <= minute < ENDS else CALM) for day in range(7) for minute in range(1_440)
    ]
    counts = {Stream(None, WRITE): writes, Stream(None, Dimension.READ): [60.0 * 5] * len(writes)}
    return Traffic.from_counts("a week of loads", counts, bin_seconds=60, start=MONDAY.astimezone(UTC))


def morning() -> Morning:
    """Rehearse the table with its window and without."""
    traffic = _week()
    apps = [_app(declared) for declared in (DECLARED.replace(_WINDOWS, ""), DECLARED)]
    setups = [app.tables[0].setup for app in apps]
    before, after = (simulate(setup, traffic, Declared()) for setup in setups if setup is not None)
    change = rehearse_app(apps[1], lambda _: traffic, before=apps[0], against="main", processes=1)
    return Morning(before, after, change)


def surge() -> dict[str, Run]:
    """Simulate a tenfold jump that is met in four ways, by their names."""
    traffic = jump(FACTOR)
    ways = {
        "auto scaling alone, at 70 %": "native:70",
        "with the scaler": "highwater-floor",
        "with the scaler and pulses": "highwater-floor-pulse",
    }
    runs = {way: meet(traffic, policy) for way, policy in ways.items()}
    return runs | {"auto scaling, and a boost two minutes before": meet_boosted(traffic, RATE * (FACTOR - 1), HALF)}


@contextmanager
def _style() -> Iterator[Any]:
    """Yield pyplot with the look of these pictures; in files, nothing that differs from run to run."""
    pyplot = load_pyplot()
    look = {
        "svg.hashsalt": "highwater",
        "font.size": 9,
        "text.color": _INK,
        "axes.edgecolor": _FAINT,
        "axes.labelcolor": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "figure.facecolor": _PAPER,
        "axes.facecolor": _PAPER,
    }
    with pyplot.rc_context(look):
        yield pyplot


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    # the lines of a path end in blanks
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")


def _minutes(since: datetime, times: Iterable[datetime]) -> list[float]:
    return [(at - since).total_seconds() / 60 for at in times]


def _draw(panel: Any, drawn: Curves, since: datetime, first: float, last: float) -> None:
    """Draw what was served and throttled, the capacity and the floor, over the minutes since a time."""
    starts = _minutes(since, drawn.times)
    shown = [number for number, at in enumerate(starts) if first <= at < last]
    edges = [*(starts[number] for number in shown), last]
    throttled = [sum(units[number] for units in drawn.throttled.values()) / 60 for number in shown]
    demand = [drawn.demand[number] for number in shown]
    served = [asked - refused for asked, refused in zip(demand, throttled, strict=True)]
    for low, high, colour, label in (
        ([0.0] * len(shown), served, _SERVED, "served"),
        (served, demand, _THROTTLED, "throttled"),
    ):
        if low == high:
            continue
        panel.stairs(high, edges, baseline=low, fill=True, color=colour, linewidth=0, label=label)
    lines: list[tuple[Step | None, str, str, str]] = [
        (drawn.provisioned, _CAPACITY, "-", "capacity"),
        (drawn.floor, _FLOOR, "--", "floor"),
    ]
    for step, colour, style, label in lines:
        assert step is not None
        panel.step(
            _minutes(since, step.times), step.values, where="post", color=colour, linestyle=style, label=label, lw=1.6
        )
    panel.set_xlim(first, last)
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.set_ylabel("write units a second", fontsize=8)
    panel.grid(axis="y", color="#d0d7de", linewidth=0.6)
    panel.set_axisbelow(True)


def _legend(figure: Any, panel: Any) -> None:
    figure.legend(*panel.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=9)


def _clock(panel: Any) -> None:
    panel.xaxis.set_major_locator(_every(30))
    panel.xaxis.set_major_formatter(lambda value, _: f"{int(value) // 60:02}:{int(value) % 60:02}")


def _every(minutes: int) -> Any:
    from matplotlib.ticker import MultipleLocator

    return MultipleLocator(minutes)


def draw_window(run: Run, path: Path) -> None:
    """Draw what the window does to floor and capacity, as an SVG at *path*."""
    with _style() as pyplot:
        figure, panel = pyplot.subplots(figsize=(_WIDTH, 3.4), layout="constrained")
        _draw(panel, _curves(run), MONDAY, BEGINS - 60, ENDS + 45)
        _clock(panel)
        panel.set_xlabel("Monday, New York", fontsize=8)
        for text, at, side in (
            ("04:55: the floor rises", (BEGINS - 7, RAISED - 60), "right"),
            ("05:00: the load begins", (BEGINS + 3, LOAD - 90), "left"),
            ("06:30: the floor falls", (ENDS - 3, RAISED + 40), "right"),
        ):
            panel.text(*at, text, fontsize=8, ha=side)
        _legend(figure, panel)
        _save(figure, path)
        pyplot.close(figure)


def draw_surge(runs: Mapping[str, Run], path: Path) -> None:
    """Draw the surge, a panel for each way to meet it, as an SVG at *path*."""
    with _style() as pyplot:
        figure, panels = pyplot.subplots(
            len(runs), 1, figsize=(_WIDTH, 1.9 * len(runs) + 0.4), sharex=True, sharey=True, layout="constrained"
        )
        for panel, (way, run) in zip(panels, runs.items(), strict=True):
            _draw(panel, _curves(run), run.start + timedelta(minutes=HALF), -5, 30)
            panel.set_title(f"{way}: {_share(run)} throttled", loc="left", fontsize=9)
        panels[-1].set_ylim(top=16_000)
        panels[-1].set_xlabel("minutes since the surge began", fontsize=8)
        _legend(figure, panels[0])
        _save(figure, path)
        pyplot.close(figure)


def draw_request(seen: Morning, path: Path) -> None:
    """Draw the morning before the change and after it, as an SVG at *path*."""
    with _style() as pyplot:
        figure, panels = pyplot.subplots(2, 1, figsize=(_WIDTH, 4.6), sharex=True, sharey=True, layout="constrained")
        for panel, run, title in zip(panels, (seen.before, seen.after), _titles(seen.change), strict=True):
            _draw(panel, _curves(run), MONDAY, BEGINS - 30, ENDS + 45)
            _clock(panel)
            panel.set_title(title, loc="left", fontsize=9)
        panels[-1].set_ylim(top=1_500)
        panels[-1].set_xlabel("Monday, New York", fontsize=8)
        _legend(figure, panels[0])
        _save(figure, path)
        pyplot.close(figure)


def _curves(run: Run) -> Curves:
    return curves(run, run.target(WRITE), most_points=run.minutes)


def _titles(change: AppRehearsal) -> tuple[str, str]:
    """What the change's table says: its dollars a month and its throttles, before and after."""
    (row,) = app_rows(change.tables, (), change.against)
    (old_cost, new_cost, _), (old_share, new_share) = row.cost, row.throttled
    before, after = (text.removesuffix(" → ") for text in (old_cost, old_share))
    return (
        f"before: {before} USD a month, {after} % throttled",
        f"after: {new_cost} USD a month, {new_share} throttled",
    )


def _share(run: Run) -> str:
    """The throttled share of what was requested after the jump, as `make benchmark NAME=jumps` prints it."""
    return f"{100 * run.throttled_units / (RATE * FACTOR * 60 * HALF):.2f} %" if run.throttled_units else "nothing"


def _highest(run: Run, first: int, last: int) -> int:
    return max(list(run.target(WRITE).capacity_by_minute())[first:last])


def _page(seen: Morning, runs: Mapping[str, Run]) -> str:
    """The text of docs/tour.md."""
    native, floor, pulsed, boosted = runs.values()
    units = list(seen.after.target(WRITE).capacity_by_minute())
    fallen = next(minute for minute in range(ENDS, 1_440) if units[minute] * 2 < units[ENDS - 1])
    before, after = _titles(seen.change)
    comment = app_markdown(seen.change).splitlines()
    # without its hidden line, and with a heading that is none of this page's
    quoted = "\n".join(f"> {line}".rstrip() for line in [comment[1].replace("### ", "**") + "**", *comment[2:]])
    return f"""\
# The tour: three pictures

Made by `make benchmark NAME=tour`. Everything here is simulated by the code that decides in AWS too; [the
model](model.md) has what is known of AWS, and [what was not seen](what-was-not-seen.md) what is not.

In all pictures the blue line is the capacity that is paid for, and the dashed green line the floor below which auto
scaling may not take it. Light blue is what the table served, minute by minute, and red what it throttled.

## A window

A load writes {LOAD:,} units a second from 05:00 to 06:30, and between loads there are {CALM}:

```python
{DECLARED.rstrip()}
```

![{_alt_of_window(seen.after, fallen)}]({WINDOW})

At 04:55 the window raises the floor to {RAISED:,}, and with it the capacity, as the table's [high-water
mark](high-water-marks.md) was raised when it was deployed. The load finds it there. At 06:30 the floor falls, and auto
scaling lowers the capacity after a quarter of an hour, at {fallen // 60:02}:{fallen % 60:02}. [Windows](windows.md).

## A surge

Nobody has declared this one: demand jumps from {RATE:,} units a second to {RATE * FACTOR:,}.

![{_alt_of_surge(runs)}]({SURGE})

- **Auto scaling alone** goes by consumption, as CloudWatch reports it minutes later. Throttled requests consume
  nothing, so it raises capacity in steps, each to a part of the demand, and the table throttles for
  {last_throttle(native, HALF) // 60} minutes: {_share(native)} of what is requested in the two hours after the jump.
- **[The scaler](scaler.md)** adds what was throttled to what was consumed, and sets the floor to the whole demand as
  soon as CloudWatch has the first minutes: {_share(floor)} is throttled.
- **[Pulses](pulse.md)** do not wait for CloudWatch. Clients report their demand within seconds, while the burst bucket
  still serves it: {_share(pulsed)} is throttled.
- **[A boost](boosts.md)** is for the surge of a job, which asks for capacity two minutes before it starts:
  {_share(boosted)} is throttled.

## A pull request

The first picture as a change: a pull request adds the window to a table that had none.

![{_alt_of_request(seen, before, after)}]({REQUEST})

`highwater rehearse cdk.out --against main --traffic traffic --format markdown` writes this comment on it:

{quoted}

[Pull requests](pull-requests.md) has the job that writes it on every change, with limits above which it fails.
"""


def _alt_of_window(run: Run, fallen: int) -> str:
    return (
        f"A Monday morning in New York. The floor rises from 50 to {RAISED:,} write units a second at 04:55, and the "
        f"capacity with it. The load of {LOAD:,} units begins at 05:00 and is served whole. The floor falls to 50 at "
        f"06:30, the capacity to {_highest(run, fallen, fallen + 1):,} at {fallen // 60:02}:{fallen % 60:02}."
    )


def _alt_of_surge(runs: Mapping[str, Run]) -> str:
    said = "; ".join(
        f"{way}: {_share(run)} throttled{f', for {minutes} minutes' if minutes else ''}"
        for way, run in runs.items()
        for minutes in [last_throttle(run, HALF) // 60]
    )
    jumped = f"from {RATE:,} to {RATE * FACTOR:,} write units a second"
    return f"The same jump {jumped}, four times. {said[0].upper()}{said[1:]}."


def _alt_of_request(seen: Morning, before: str, after: str) -> str:
    highest = _highest(seen.before, BEGINS, ENDS)
    minutes = len([minute for minute in seen.before.throttled_minutes() if minute < 1_440])
    return (
        f"The same Monday twice. {before[0].upper()}{before[1:]}: the load meets the capacity of the calm hours, and "
        f"{minutes} minutes of it throttle before auto scaling has raised it to {highest:,}. "
        f"{after[0].upper()}{after[1:]}: the capacity is there before the load."
    )


def write_tour(docs: Path) -> list[str]:
    """Write the page and its pictures into the folder of pages; return their names, the page first."""
    seen, runs = morning(), surge()
    (docs / "pictures").mkdir(parents=True, exist_ok=True)
    draw_window(seen.after, docs / WINDOW)
    draw_surge(runs, docs / SURGE)
    draw_request(seen, docs / REQUEST)
    (docs / PAGE).write_text(_page(seen, runs), encoding="utf-8")
    return [PAGE, WINDOW, SURGE, REQUEST]


def main() -> int:
    """Write the page and the pictures; return 0."""
    for name in write_tour(DOCS):
        print(f"written: {(DOCS / name).relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
