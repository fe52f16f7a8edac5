"""`highwater pulses`: what a table's fleet reported lately, and how much of CloudWatch's count that is; read only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from highwater.aws.autoscaling import read_targets
from highwater.aws.cloudwatch import read_consumption
from highwater.aws.coordinator_table import PulsesUnavailableError
from highwater.aws.observe import PULSE_MINUTES
from highwater.aws.region import AwsRegion
from highwater.cli.options import account_options, as_json_option, aws_errors_in_a_line
from highwater.cli.situation import Coordinators, find_plans
from highwater.core.names import TargetName, target_label
from highwater.core.plan.plan import TargetKey
from highwater.core.pulses import SLOT_SECONDS, SLOTS_PER_MINUTE, Slots, slot_at
from highwater.core.scaler import Observation, ScaledPlan
from highwater.core.scaler.fleet import (
    COVERAGE_MINUTES,
    LEAST_COVERAGE_PERCENT,
    MOST_TOLD_PERCENT,
    coverage_percent,
)
from highwater.terminal.console import Hanging, open_console, say
from highwater.terminal.numbers import WholeNumber

_FINDING = 1


@dataclass(frozen=True, slots=True)
class Minute:
    """One minute of one target; all amounts are capacity units in that minute, not per second.

    Attributes:
        at: The minute's start, in UTC.
        reported: Consumed units that pulses reported; `None` if they reported none, which is not the same as 0.
        throttled: Units of throttled requests that pulses reported.
        counted: Consumed units that CloudWatch counted; `None` if it has no datapoint (yet).
    """

    at: datetime
    reported: int | None
    throttled: int
    counted: int | None


@dataclass(frozen=True, slots=True)
class TargetPulses:
    """What was reported for one target.

    Attributes:
        target: The target's name, such as `table write`.
        coverage_percent: Reported units in percent of CloudWatch's count, over the last quarter of an hour that both
            have; `None` if there is no such minute.
        newest: The end of the newest slot that was reported.
        minutes: The last minutes, the present one last.
    """

    target: str
    coverage_percent: int | None
    newest: datetime
    minutes: tuple[Minute, ...]

    @classmethod
    def of(cls, key: TargetKey, slots: Slots, seen: Observation, now: datetime, minutes: int) -> TargetPulses:
        """Return the last *minutes* before the aware instant *now*, of pulses and of what CloudWatch has."""
        told = [
            slot
            for slot, units, refused in zip(
                range(slots.first, slots.newest + 1), slots.consumed_units, slots.refused_units, strict=True
            )
            if units is not None or refused
        ]
        present = slots.newest // SLOTS_PER_MINUTE
        wanted = range(present - minutes + 1, present + 1)
        return cls(
            target_label(*key),
            coverage_percent(slots, seen) or None,
            min(now, datetime.fromtimestamp((max(told, default=slots.first) + 1) * SLOT_SECONDS, UTC)),
            tuple(_minute(minute, slots, seen) for minute in wanted),
        )

    def lines(self, now: datetime) -> Iterator[str]:
        """Yield what is reported in sentences."""
        if self.coverage_percent is None:
            yield "coverage: not known, as no minute has both pulses and a count of CloudWatch"
        else:
            what = f"coverage: {self.coverage_percent} % of what CloudWatch counted in {COVERAGE_MINUTES} minutes"
            if self.coverage_percent > MOST_TOLD_PERCENT:
                yield f"{what}; a client with grant_pulse reports units that were not consumed"
            elif self.coverage_percent < LEAST_COVERAGE_PERCENT:
                few = f"below {LEAST_COVERAGE_PERCENT} %, so pulses cause raises and nothing else"
                yield f"{what}: {few}; meter more clients with highwater.pulse(session)"
            else:
                yield what
        yield f"last report: {self.newest:%H:%M:%S} UTC, {_ago(now - self.newest)}"

    def document(self) -> dict[str, Any]:
        """Return all as JSON-ready values."""
        return {
            "target": self.target,
            "coverage_percent": self.coverage_percent,
            "newest": self.newest.isoformat(),
            "minutes": [
                {
                    "minute": minute.at.isoformat(),
                    "reported_units": minute.reported,
                    "throttled_units": minute.throttled,
                    "cloudwatch_units": minute.counted,
                }
                for minute in self.minutes
            ],
        }


def _minute(minute: int, slots: Slots, seen: Observation) -> Minute:
    places = range(max(minute * SLOTS_PER_MINUTE - slots.first, 0), (minute + 1) * SLOTS_PER_MINUTE - slots.first)
    reported = [units for units in slots.consumed_units[places.start : places.stop] if units is not None]
    back = seen.newest - minute
    counted = seen.consumed_units[-1 - back] if 0 <= back < len(seen.consumed_units) else None
    return Minute(
        datetime.fromtimestamp(minute * 60, UTC),
        sum(reported) if reported else None,
        sum(slots.refused_units[places.start : places.stop]),
        counted,
    )


def _ago(length: timedelta) -> str:
    seconds = max(0, int(length.total_seconds()))
    return f"{seconds} s ago" if seconds < 120 else f"{seconds // 60} minutes ago"


@click.command(short_help="What a table's fleet reports, and how much of it.")
@click.argument("table")
@click.option(
    "--minutes",
    type=WholeNumber(1, PULSE_MINUTES),
    default=5,
    show_default=True,
    help="How many of the last minutes to show.",
)
@account_options
@as_json_option
def pulses(table: str, minutes: int, region: str | None, as_json: bool) -> None:
    """Show the pulses of TABLE: their share of CloudWatch's count, and the last minutes of each dimension and index.

    Pulses are sums of the fleet; they do not say how many processes report.

    Exit status: 1 if nothing was reported in the last 20 minutes.
    """
    try:
        now, found = _read(table, region, minutes)
    except PulsesUnavailableError as error:
        raise click.ClickException(f"the pulses of {table} cannot be read: {error}") from error
    if as_json:
        document = {"table": table, "at": now.isoformat(), "targets": [each.document() for each in found]}
        click.echo(json.dumps(document, indent=1))
    elif found:
        open_console(is_cut_when_piped=False).print(shown(table, found, now))
    else:
        say(
            f"{table}: nothing was reported in the last {PULSE_MINUTES} minutes; meter its clients with "
            "highwater.pulse(session), and give their role grant_pulse"
        )
    if not found:
        raise click.exceptions.Exit(_FINDING)


@aws_errors_in_a_line()
def _read(table: str, region: str | None, minutes: int) -> tuple[datetime, list[TargetPulses]]:
    home = AwsRegion(region)
    scaled = find_plans(table, home)[0]
    if scaled.region is not None:
        raise click.ClickException(f"{scaled.label}: a table in another region than its coordinator has no pulses")
    kept = Coordinators(home).of(scaled)
    if kept is None:
        raise click.ClickException(
            f"{scaled.label}: its coordinator cannot be found, as the permission ssm:GetParameter is missing"
        )
    if kept.pulses is None:
        raise click.ClickException(
            f"{scaled.label}: its scaler has no BoostCoordinator, so there is nowhere to report pulses; add "
            "BoostCoordinator(stack, id, scaler=scaler), grant_pulse, and deploy"
        )
    # the time of AWS, which a local cloud may have moved ahead
    now = read_targets(home.autoscaling, [TargetName(scaled.table, *key) for key in _keys(scaled, {})]).at
    newest = slot_at(now)
    slots = kept.pulses.read(scaled.label, newest // SLOTS_PER_MINUTE - PULSE_MINUTES, newest)
    names = {key: TargetName(scaled.table, *key) for key in _keys(scaled, slots) if key in slots}
    seen = read_consumption(home.cloudwatch, names.values(), PULSE_MINUTES, now, home.rate) if names else {}
    return now, [TargetPulses.of(key, slots[key], seen[name], now, minutes) for key, name in names.items()]


def _keys(scaled: ScaledPlan, slots: Mapping[TargetKey, Slots]) -> Iterable[TargetKey]:
    """The targets of the plan, then those of which pulses tell and the plan does not."""
    return dict.fromkeys((*(target.key for target in scaled.plan.targets()), *slots))


def shown(table: str, found: Iterable[TargetPulses], now: datetime) -> RenderableType:
    """Return what is shown on a terminal."""
    parts: list[RenderableType] = []
    for each in found:
        parts.append(Text(f"{table}, {each.target}", style="bold"))
        parts.extend(Hanging(f"  {line}") for line in each.lines(now))
        view = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        view.add_column("minute, UTC", no_wrap=True)
        for name in ("reported", "throttled", "CloudWatch"):
            view.add_column(name, no_wrap=True, justify="right")
        for minute in each.minutes:
            view.add_row(
                f"{minute.at:%a %H:%M}", _units(minute.reported), f"{minute.throttled:,}", _units(minute.counted)
            )
        parts.append(view)
    parts.append(Text("capacity units in each minute; the newest minutes are not complete"))
    return Group(*parts)


def _units(units: int | None) -> str:
    return "-" if units is None else f"{units:,}"
