"""Observes a table: converts AWS's answers into the input of the scaler's turn.

The scaler and `highwater explain` both call `observe_table`, so that they decide from the same input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.cloudwatch import with_past, with_throttles
from highwater.aws.coordinator_table import (
    LeasesUnavailableError,
    LeaseTable,
    PulsesUnavailableError,
    PulseTable,
    TableLeases,
)
from highwater.aws.region import AwsRegion
from highwater.aws.tables import DescribedTable, seen_resources
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target, TargetKey
from highwater.core.pulses import SLOTS_PER_MINUTE, Slots, slot_at
from highwater.core.scaler import Clock, Observation, ScaledPlan, SeenTable, SeenTarget
from highwater.core.scaler.attention import THROTTLE_MINUTES, fixed_targets, needs_past, needs_throttles
from highwater.core.scaler.fleet import COVERAGE_MINUTES, MOST_TOLD_PERCENT, disagrees
from highwater.core.scaler.metrics import ScalerMetric

# Coverage is computed over fifteen minutes, and CloudWatch's metrics may be five minutes late.
PULSE_MINUTES: Final = COVERAGE_MINUTES + 5


class Problems(Protocol):
    """Collects what an observation could not read.

    Attributes:
        notes: Sentences for the log or the terminal.
    """

    notes: list[str]

    def count(self, metric: ScalerMetric, by: int = 1) -> None:
        """Increment a metric of the scaler."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The coordinator's table, for its two uses: leases and pulses; `None` without a coordinator."""

    leases: LeaseTable | None = None
    pulses: PulseTable | None = None


NOTHING_KEPT: Final = Kept()


def observe_table(
    region: AwsRegion,
    scaled: ScaledPlan,
    described: DescribedTable,
    names: Mapping[TargetName, Target],
    registered: RegisteredTargets,
    consumed: Mapping[TargetName, Observation],
    clock: Clock,
    kept: Kept,
    problems: Problems,
) -> SeenTable:
    """Return the input of a turn for one table.

    Reads its boosts, the pulses of its fleet, and throttles of those targets that may have throttled.

    Args:
        region: The clients of the table's region.
        scaled: The table's plan.
        described: The answer of DescribeTable.
        names: The targets to review, by their names in Application Auto Scaling.
        registered: Bounds and suspensions of these targets, and of those of `fixed_names`, in Application Auto Scaling.
        consumed: The consumption of these targets in the last minutes, without throttles.
        clock: The times of the turn.
        kept: The coordinator's table.
        problems: Collects what could not be read. Without boosts no floor is lowered; without pulses the turn relies on
            CloudWatch only.
    """
    resources = seen_resources(described)
    boosts = _read_boosts(kept.leases, scaled, problems)
    throttling = {
        name: consumed[name]
        for name, target in names.items()
        if scaled.mode.follows_demand
        and (resource := resources.get(target.index)) is not None
        and needs_throttles(scaled, target, resource, consumed[name], clock)
    }
    throttles = _read_metrics(
        "throttles",
        throttling,
        lambda: with_throttles(region.cloudwatch, throttling, THROTTLE_MINUTES, clock.now),
        scaled,
        problems,
    )
    if throttles is None:
        throttles = {name: replace(each, lacks_throttles=True) for name, each in throttling.items()}
    observed = {**consumed, **throttles}
    pulses = _read_pulses(kept.pulses, scaled, clock, problems)
    spiky = {
        name: observed[name]
        for name, target in names.items()
        if scaled.mode.follows_demand and needs_past(observed[name], has_pulses=target.key in pulses)
    }
    past = _read_metrics(
        "the last day",
        spiky,
        lambda: with_past(region.cloudwatch, spiky, names, clock.now, region.rate),
        scaled,
        problems,
    )
    # where it cannot be read, 60 seconds of burst are believed
    observed |= past or {}
    _note_disagreement(names, pulses, observed, problems)
    return SeenTable(
        resources,
        {
            target.key: SeenTarget(
                registered=registered.of(name),
                is_suspended=registered.is_suspended(name),
                observation=replace(observed[name], pulses=pulses.get(target.key)),
            )
            for name, target in names.items()
        },
        () if boosts is None else boosts.leases,
        {} if boosts is None else boosts.boosted,
        lacks_leases=boosts is None,
        fixed_floors=fixed_floors(scaled, registered),
    )


def fixed_names(scaled: ScaledPlan) -> Mapping[TargetName, Target]:
    """Return the targets of fixed capacity by their names in Application Auto Scaling, which are read with others."""
    return {TargetName(scaled.table, *target.key): target for target in fixed_targets(scaled)}


def fixed_floors(scaled: ScaledPlan, registered: RegisteredTargets) -> Mapping[TargetKey, int]:
    """Return the floors of the targets of fixed capacity whose scaling is not suspended."""
    return {
        target.key: bounds.min
        for name, target in fixed_names(scaled).items()
        if (bounds := registered.of(name)) is not None and not registered.is_suspended(name)
    }


def _read_boosts(leases: LeaseTable | None, scaled: ScaledPlan, problems: Problems) -> TableLeases | None:
    """Return the boosts of a table, none without a coordinator; `None` if the lease table does not answer."""
    if leases is None:
        return TableLeases()
    try:
        return leases.read(scaled.label)
    except LeasesUnavailableError as error:
        problems.notes.append(f"{scaled.label}: its boosts could not be read, so no floor is lowered: {error}")
        problems.count(ScalerMetric.LEASES_MISSING)
        return None


def _read_pulses(
    pulses: PulseTable | None, scaled: ScaledPlan, clock: Clock, problems: Problems
) -> Mapping[TargetKey, Slots]:
    """Return the newest pulses of the table's fleet; empty if they cannot be read, so that only CloudWatch counts."""
    if pulses is None or not scaled.mode.follows_demand:
        return {}
    # the pulses of the present slot are not complete yet
    newest = slot_at(clock.now) - 1
    try:
        found = pulses.read(scaled.label, newest // SLOTS_PER_MINUTE - PULSE_MINUTES, newest)
    except PulsesUnavailableError as error:
        problems.notes.append(f"{scaled.label}: its fleet's pulses could not be read: {error}")
        return {}
    if scaled.label in pulses.crowded:
        problems.notes.append(
            f"{scaled.label}: its fleet's pulses take more than 1 MB; a client with grant_pulse writes more than pulses"
            " there, or the table has many indexes with long names"
        )
    return found


def _note_disagreement(
    names: Mapping[TargetName, Target],
    pulses: Mapping[TargetKey, Slots],
    observed: Mapping[TargetName, Observation],
    problems: Problems,
) -> None:
    for name, target in names.items():
        slots = pulses.get(target.key)
        if slots is not None and disagrees(slots, observed[name]):
            problems.count(ScalerMetric.PULSES_DISAGREE)
            problems.notes.append(
                f"{name}: pulses tell of more than {MOST_TOLD_PERCENT} % of what CloudWatch counts, consumed and "
                "throttled; a client with grant_pulse counts what was not requested"
            )


def _read_metrics(
    what: str,
    wanted: Mapping[TargetName, Observation],
    read: Callable[[], Mapping[TargetName, Observation]],
    scaled: ScaledPlan,
    problems: Problems,
) -> Mapping[TargetName, Observation] | None:
    """Return the observations *wanted* with more metrics, which *read* asks for; `None` if they cannot be read."""
    if not wanted:
        return {}
    try:
        return read()
    except Exception as error:
        names = ", ".join(str(name) for name in wanted)
        problems.notes.append(f"{scaled.label}: {what} of {names} could not be read: {error}")
        problems.count(ScalerMetric.METRICS_MISSING, len(wanted))
        return None
