"""Charts of a plan's floors and ceilings over time, for the terminal and as a PNG."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from rich.text import Text

from highwater.core import Bounds, Plan, Target, timeline
from highwater.terminal.console import inert

_LEVELS = " ▁▂▃▄▅▆▇█"
_ROWS = 6
_FLOOR_COLOUR = "#1f77b4"
_CEILING_COLOUR = "#7f7f7f"


def terminal_chart(target: Target, start: datetime, days: int, zone: ZoneInfo, width: int) -> Text:
    """Return a chart of the target's floor as filled columns, for *days* from *start*, with days in *zone*.

    The top of the chart is the highest ceiling. The scale is logarithmic, so that floors of a hundred and of tens of
    thousands of units are both visible. A column shows the highest floor of its period. *width* is in characters.
    """
    line = timeline(target, start, start + timedelta(days=days))
    ceiling = max(bounds.max for _, bounds in line)
    label_width = len(f"{ceiling:,}")
    columns = max(days, (width - label_width - 3) // days * days)
    step = timedelta(days=days) / columns
    heights = [
        _height(_highest(line, start + step * column, start + step * (column + 1)), ceiling)
        for column in range(columns)
    ]
    text = Text()
    text.append(f"{ceiling:>{label_width},} ┬{'─' * columns} ceiling\n", style="dim")
    for row in reversed(range(_ROWS)):
        label = _label(row, ceiling)
        text.append(f"{label:>{label_width}} │", style="dim")
        text.append("".join(_LEVELS[_filled(height, row)] for height in heights) + "\n", style="cyan")
    text.append(f"{'':>{label_width}} └", style="dim")
    for day in range(days):
        name = f"{(start + timedelta(days=day)).astimezone(zone):%a %d}"
        text.append(f"{name:<{columns // days}}"[: columns // days], style="dim")
    return text


def load_pyplot() -> Any:
    """Return Matplotlib's pyplot for pictures in files, without formulas: `table/${Name}` is drawn as text."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["text.parse_math"] = False
    from matplotlib import pyplot

    return pyplot


def drawable(text: str) -> str:
    """Return the text with a substitute for each character that no font can have."""
    return inert(text.encode("utf-8", "replace").decode())


@contextmanager
def quiet_about_glyphs() -> Iterator[None]:
    """Suppress the warning for each letter that the font lacks; such letters are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def save_png(plan: Plan, name: str, start: datetime, days: int, zone: ZoneInfo, path: Path) -> None:
    """Draw floor and ceiling of every target of *plan* for *days* from *start*, one panel each, as a PNG at *path*.

    *name* is the title, *zone* the time zone of the axis. Folders of *path* are created as needed.
    """
    from matplotlib import dates

    plt = load_pyplot()

    targets = plan.targets()
    figure, panels = plt.subplots(
        len(targets), 1, figsize=(11, 1 + 2.2 * len(targets)), sharex=True, squeeze=False, layout="constrained"
    )
    end = start + timedelta(days=days)
    for panel, target in zip(panels[:, 0], targets, strict=True):
        line = timeline(target, start, end)
        times = [at.astimezone(zone) for at, _ in line] + [end.astimezone(zone)]
        floors = [bounds.min for _, bounds in line] + [line[-1][1].min]
        ceilings = [bounds.max for _, bounds in line] + [line[-1][1].max]
        panel.fill_between(times, floors, ceilings, step="post", color=_FLOOR_COLOUR, alpha=0.10, linewidth=0)
        panel.step(times, ceilings, where="post", color=_CEILING_COLOUR, linewidth=1, label="ceiling")
        panel.step(times, floors, where="post", color=_FLOOR_COLOUR, linewidth=1.8, label="floor")
        panel.set_yscale("log")
        panel.set_ylim(bottom=max(1, min(floors) / 2), top=max(ceilings) * 2)
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.set_title(drawable(target.label), loc="left", fontsize=10)
        panel.set_ylabel("units per second", fontsize=8)
        panel.grid(axis="both", alpha=0.25)
        _name_peaks(panel, target, line, zone)
    panels[0, 0].legend(loc="upper right", fontsize=8, ncols=2, frameon=False)
    panels[-1, 0].xaxis.set_major_locator(dates.DayLocator(tz=zone))
    panels[-1, 0].xaxis.set_major_formatter(dates.DateFormatter("%a %d %b", tz=zone))
    panels[-1, 0].set_xlim(start.astimezone(zone), end.astimezone(zone))
    figure.suptitle(drawable(f"{name}: floors and ceilings, {zone.key}"), fontsize=12)
    path.parent.mkdir(parents=True, exist_ok=True)
    with quiet_about_glyphs():
        figure.savefig(path, dpi=110)
    plt.close(figure)


def _name_peaks(panel: object, target: Target, line: Sequence[tuple[datetime, Bounds]], zone: ZoneInfo) -> None:
    """Write each window's name and floor at the time at which it first raises the floor."""
    from highwater.core.plan.windows import is_open

    named: set[str] = set()
    for at, bounds in line:
        for target_window in target.windows:
            window = target_window.window
            if window.name not in named and target_window.min == bounds.min and is_open(window, at):
                named.add(window.name)
                panel.annotate(  # type: ignore[attr-defined] # matplotlib comes without types
                    f"{window.name} {bounds.min:,}",
                    (at.astimezone(zone), bounds.min),
                    xytext=(0, 3),
                    textcoords="offset points",
                    fontsize=7,
                    va="bottom",
                    bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
                )


def _highest(line: Sequence[tuple[datetime, Bounds]], start: datetime, end: datetime) -> int:
    before = [bounds.min for at, bounds in line if at <= start]
    return max([before[-1], *(bounds.min for at, bounds in line if start < at < end)])


def _height(units: int, ceiling: int) -> float:
    """Return the position of *units* on the logarithmic scale, from 0 for one unit to 1 for the ceiling."""
    return math.log(units) / math.log(ceiling) if ceiling > 1 else 1.0


def _label(row: int, ceiling: int) -> str:
    """Return the power of ten that lies in a row, as text; empty if there is none."""
    if ceiling < 10:
        return ""
    powers = (10**power for power in range(1, len(str(ceiling))))
    return next((f"{units:,}" for units in powers if row <= _height(units, ceiling) * _ROWS < row + 1), "")


def _filled(height: float, row: int) -> int:
    return max(0, min(len(_LEVELS) - 1, round((height * _ROWS - row) * (len(_LEVELS) - 1))))
