"""An ablation: what each of the scaler's settings buys in throttles and in cost: `make benchmark NAME=settings`.

Each setting is set to a neutral value, one that switches its rule off, while the others keep their defaults. Both
variants run over the serviceable traces, scaled as the scoreboard scales them. Figures are relative to native:70:
throttled shares summed, costs as geometric mean.

The defaults were found on the same traces. So for each trace left out, the lower sum of throttles and cost over the
other traces chooses between the default and the neutral value, the neutral one at a tie; where native:70 throttles
nothing on those, cost alone chooses. The left-out traces then count as chosen for them. What a setting buys is the
figures with the neutral value minus those. A setting that buys less than 0.01 in throttles and in cost in both modes
can be dropped; the next lines set all of these to their neutral values at once.

The last lines are FLOOR mode with tables at other target utilizations, and these alone, as while the scaler is down.

With --try, only native:70 and the given settings are run, each a mode's defaults with some values changed. The last
figure is the most that a trace throttles above native:70, per million. With --burst-seconds, the burst bucket is
shorter than documented.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Final, TypeAlias

from benchmarks.scoreboard import add_traces, load, make_setup, run, score_of, served_traces
from benchmarks.scores import BASE, Score, Scores, Trace, collect, left_out, relative
from highwater.core.scaler import Mode, ScalerSettings
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.highwater import HighwaterDirect, HighwaterFloor
from highwater_lab.simulation import simulate

Value: TypeAlias = int | timedelta | None

# A setting stays if it buys at least so much in throttles or in cost
WORTH: Final = 0.01
# For each setting the values that switch its rule off; jumps of any rise, and none at all.
NEUTRAL: Final[Mapping[str, tuple[Value, ...]]] = {
    "hold": (timedelta(minutes=1),),
    "cautious_target_percent": (100,),
    "jump_percent": (101, 10_000),
    "forecast_target_percent": (None,),
    "lower_from_minute": (0,),
}
# Target utilizations of the tables of a scaler, and what they are alone while it is down
TRACKED_PERCENTS: Final = (70, 80, 90)
_COLUMNS: Final = ("mode", "setting", "default", "neutral")

# a coordinator of boosts sets what its plan says
MODES: Final = tuple(mode for mode in Mode if mode.follows_demand)


@dataclass(frozen=True, slots=True)
class Change:
    """One setting at a neutral value in one mode."""

    mode: Mode
    setting: str
    neutral: Value

    @property
    def default(self) -> Value:
        """What the setting is by default in that mode."""
        value: Value = getattr(ScalerSettings.of(self.mode), self.setting)
        return value

    @property
    def policy(self) -> str:
        """The variant's name among the scores: the default's where the default is neutral already."""
        if self.neutral == self.default:
            return str(self.mode)
        return f"{self.mode}, {self.setting}={_show(self.neutral)}"


@dataclass(frozen=True, slots=True)
class Row:
    """What one change did. Each figure is throttles, then cost.

    Attributes:
        change: What was changed.
        default: With the default.
        neutral: With the neutral value.
        left_out: Over the left-out traces, each with the value that the others chose.
        kept: For how many left-out traces that was the default.
    """

    change: Change
    default: tuple[float, float]
    neutral: tuple[float, float]
    left_out: tuple[float, float]
    kept: int

    @property
    def buys(self) -> tuple[float, float]:
        """The neutral value's figures minus those over the left-out traces."""
        return _minus(self.neutral, self.left_out)

    @property
    def is_worth(self) -> bool:
        """Whether throttles or cost are lower by `WORTH` at least; a figure that does not exist is not lower."""
        return any(bought >= WORTH for bought in self.buys)


def changes() -> list[Change]:
    """Every setting for fleets that tell nothing, at each of its neutral values, in both modes."""
    settings = [field.name for field in fields(ScalerSettings) if field.name in NEUTRAL]
    return [Change(mode, name, value) for mode in MODES for name in settings for value in NEUTRAL[name]]


def run_settings(trace: Trace, name: str, settings: ScalerSettings | None, burst_seconds: int | None = None) -> Score:
    """Simulate the scaler with *settings* over one trace, native:70 without; *name* is the policy's in the scores.

    *burst_seconds* are what the table's burst bucket keeps; by default what is documented.
    """
    setup = make_setup(trace)
    if settings is None:
        policy = find_policy(BASE)
    else:
        policy = (HighwaterFloor if settings.mode is Mode.FLOOR else HighwaterDirect)(settings=settings)
    if burst_seconds is not None:
        setup = replace(setup, burst_seconds=burst_seconds)
    return score_of(trace, name, simulate(setup, load(trace), policy))


def make_row(change: Change, traces: Sequence[Trace], scores: Scores) -> Row:
    """Compare the change with the default over *traces*, and let all but one choose for that one."""
    default, neutral = str(change.mode), change.policy
    # at a tie the neutral one is chosen
    figures, chosen = left_out([neutral, default], traces, scores)
    return Row(
        change,
        relative(default, traces, scores),
        relative(neutral, traces, scores),
        figures,
        chosen.count(default),
    )


def find_dropped(rows: Sequence[Row]) -> dict[str, Value]:
    """The settings that some neutral value may replace in both modes, and the best such value of each."""
    by_value: dict[tuple[str, Value], list[Row]] = {}
    for row in rows:
        by_value.setdefault((row.change.setting, row.change.neutral), []).append(row)
    found: dict[str, tuple[float, Value]] = {}
    for (setting, value), both in by_value.items():
        total = sum(figure for row in both for figure in row.neutral if not math.isnan(figure))
        if not any(row.is_worth for row in both) and (setting not in found or total < found[setting][0]):
            found[setting] = (total, value)
    return {setting: value for setting, (_, value) in found.items()}


def settings_of(given: str) -> ScalerSettings:
    """Return the settings of `direct:jump_percent=130,forecast_target_percent=none`; raises `ValueError` for others.

    Only settings that are whole numbers can be given.
    """
    mode, _, values = given.partition(":")
    if mode not in MODES:
        message = f"the mode must be {' or '.join(MODES)}"
        raise ValueError(message)
    changed: dict[str, Value] = {}
    for name, _, value in (pair.partition("=") for pair in values.split(",") if pair):
        if not isinstance(getattr(ScalerSettings.direct(), name, None), int):
            message = f"{name} is no setting that is a whole number"
            raise ValueError(message)
        changed[name] = None if value == "none" and name == "forecast_target_percent" else int(value)
    return replace_in(Mode(mode), changed)


def _given_settings(given: str) -> str:
    try:
        settings_of(given)
    except ValueError as wrong:
        message = f"{given!r}: {wrong}; give for instance direct:jump_percent=130,forecast_target_percent=120"
        raise argparse.ArgumentTypeError(message) from None
    return given


def try_settings(tried: Sequence[str], traces: Sequence[Trace], burst_seconds: int | None, processes: int) -> list[str]:
    """Run the given settings over *traces*, and return a line for each."""
    variants: dict[str, ScalerSettings | None] = {BASE: None} | {given: settings_of(given) for given in tried}
    work = ((trace, name, settings, burst_seconds) for trace in traces for name, settings in variants.items())
    scores = measure(work, processes, said="settings")
    lines = [f"{'':<90}{'throttles':>11}{'cost':>7}{'worst':>8}"]
    for name in tried:
        throttles, cost = relative(name, traces, scores)
        over = {t.name: _throttled(scores, t, name) - _throttled(scores, t, BASE) for t in traces}
        worst = max(over, key=over.__getitem__)
        lines.append(f"{name:<90}{throttles:>11.3f}{cost:>7.3f}{over[worst]:>+8.0f}  {worst}")
    return lines


def _throttled(scores: Scores, trace: Trace, policy: str) -> float:
    return scores[trace.name, policy].throttled_per_million


def measure(
    work: Iterable[tuple[Trace, str, ScalerSettings | None, int | None]], processes: int, *, said: str
) -> dict[tuple[str, str], Score]:
    """Every variant over its trace, in so many processes."""
    with ProcessPoolExecutor(processes) as pool:
        # the longest first, so that no core idles at the end
        waiting = [pool.submit(run_settings, *task) for task in sorted(work, key=lambda task: -task[0].days)]
        return collect(waiting, said)


def table(rows: Sequence[Row]) -> list[str]:
    """The lines to print, a header first."""
    names = [
        (str(row.change.mode), row.change.setting, _show(row.change.default), _show(row.change.neutral)) for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *names, strict=True)]
    figures = ("default", "neutral", "difference", "left out", "bought")
    head = "".join(f"{name:<{width + 2}}" for name, width in zip(_COLUMNS, widths, strict=True))
    lines = [
        " " * len(head) + "".join(f"{name:>17}" for name in figures),
        head + f"{'throttles':>11}{'cost':>6}" * len(figures) + "  kept",
    ]
    for row, told in zip(rows, names, strict=True):
        line = "".join(f"{text:<{width + 2}}" for text, width in zip(told, widths, strict=True))
        if row.change.neutral == row.change.default:
            lines.append(line + _figures(row.default, "") + "  the default is neutral")
            continue
        line += _figures(row.default, "") + _figures(row.neutral, "") + _figures(_minus(row.neutral, row.default), "+")
        lines.append(
            line
            + _figures(row.left_out, "")
            + _figures(row.buys, "+")
            + f"{row.kept:>6}{'' if row.is_worth else '  -'}"
        )
    return lines


def main(arguments: Sequence[str]) -> int:
    """Measure every change and print the table."""
    parser = argparse.ArgumentParser(prog="settings", description=__doc__)
    add_traces(parser)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--try",
        dest="tried",
        action="append",
        type=_given_settings,
        metavar="MODE:NAME=VALUE,...",
        help="run these settings alone; may be repeated",
    )
    parser.add_argument("--burst-seconds", type=int, help="what the burst bucket keeps, with --try")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    if given.burst_seconds is not None and not given.tried:
        parser.error("--burst-seconds is for settings that are given with --try")
    served = served_traces("settings", given.traces)
    if served is None:
        return 2
    traces, base = served
    if given.tried:
        print("\n".join(try_settings(given.tried, traces, given.burst_seconds, given.processes)))
        return 0
    variants = {str(mode): ScalerSettings.of(mode) for mode in MODES}
    tried = changes()
    variants |= {change.policy: replace_in(change.mode, {change.setting: change.neutral}) for change in tried}
    scores = base | measure(_each(traces, variants), given.processes, said="settings")
    rows = [make_row(change, traces, scores) for change in tried]
    dropped = find_dropped(rows)
    together = {f"{mode}, dropped": replace_in(mode, dropped) for mode in MODES}
    scores |= measure(_each(traces, together), given.processes, said="together")
    for line in table(rows):
        print(line)
    print(f"\nover {', '.join(trace.name for trace in traces)}")
    print(f"marked -: buys less than {WORTH} in throttles and in cost; kept: left-out traces with the default")
    print(f"so in both modes: {', '.join(f'{name} ({_show(value)})' for name, value in dropped.items()) or 'none'}")
    for mode in MODES:
        before, after = (relative(policy, traces, scores) for policy in (str(mode), f"{mode}, dropped"))
        print(f"{mode}: default{_figures(before, '')}, all of these neutral{_figures(after, '')}")
    for percent in TRACKED_PERCENTS:
        for policy in (f"highwater-floor:{percent}", f"native:{percent}"):
            scores = scores | {(trace.name, policy): run(trace, policy) for trace in traces}
            print(f"{policy}:{_figures(relative(policy, traces, scores), '')}")
    print(f"{len(scores)} runs in {time.monotonic() - began:.0f} s")
    return 0


def replace_in(mode: Mode, values: Mapping[str, Value]) -> ScalerSettings:
    """The mode's defaults with some settings changed."""
    changed: dict[str, object] = dict(values)
    return replace(ScalerSettings.of(mode), **changed)  # type: ignore[arg-type]


def _each(
    traces: Sequence[Trace], variants: Mapping[str, ScalerSettings]
) -> Iterable[tuple[Trace, str, ScalerSettings, None]]:
    return ((trace, name, settings, None) for trace in traces for name, settings in variants.items())


def _minus(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] - other[0], one[1] - other[1]


def _figures(figures: tuple[float, float], sign: str) -> str:
    return f"{figures[0]:>{sign}11.3f}{figures[1]:>{sign}6.3f}"


def _show(value: Value) -> str:
    if isinstance(value, timedelta):
        return f"{value // timedelta(minutes=1):,} min"
    return "none" if value is None else f"{value:,}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
