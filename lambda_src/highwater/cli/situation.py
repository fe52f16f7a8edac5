"""The present state of managed tables in AWS, and the scaler's next decisions about them; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import click
from botocore.exceptions import BotoCoreError, ClientError

from highwater.aws.autoscaling import RegisteredTargets, read_failures, read_targets
from highwater.aws.cloudwatch import count_throttles, read_consumption
from highwater.aws.coordinator_table import (
    LeasesUnavailableError,
    LeaseTable,
    PulseTable,
    TableLeases,
    find_lease_table,
)
from highwater.aws.logs import LoggedDecision, read_decisions
from highwater.aws.observe import NOTHING_KEPT, Kept, fixed_floors, fixed_names, observe_table
from highwater.aws.parameters import ScaledPlans, read_plans
from highwater.aws.region import AwsRegion
from highwater.aws.tables import DescribedTable, describe_table, seen_resources
from highwater.aws.tags import read_tagged_plans
from highwater.core import Bounds, Target, timeline
from highwater.core.boosts import Lease
from highwater.core.boosts.lease import described_lease
from highwater.core.errors import did_you_mean
from highwater.core.names import TargetName, resource_label
from highwater.core.plan.plan import Mark, TargetKey, TargetWindow, marks_of
from highwater.core.plan.windows import openings
from highwater.core.scaler import (
    Clock,
    Decision,
    Mode,
    Observation,
    ScaledPlan,
    SeenTable,
    SkipReason,
    minutes_to_observe,
    review,
)
from highwater.core.scaler.attention import scaled_targets
from highwater.core.scaler.decision import decision_document
from highwater.core.scaler.metrics import ScalerMetric
from highwater.core.scaler.turn import fixed_below_floor
from highwater.core.units import Dimension, Units
from highwater.terminal.console import say

_AHEAD = timedelta(days=8)
_MINUTE = timedelta(minutes=1)
# CloudWatch has a minute's consumption after some minutes.
_USE_MINUTES = 15
THROTTLE_MINUTES = 60


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that is open now.

    Attributes:
        name: Its name.
        floor: The floor that it asks for, in units per second; `None` if it has only a ceiling.
        closes: The instant at which it closes, in UTC.
        zone: The time zone of its times.
    """

    name: str
    floor: int | None
    closes: datetime
    zone: ZoneInfo

    @classmethod
    def of(cls, each: TargetWindow, at: datetime) -> OpenWindow | None:
        """Return the window as it is at the instant *at*, `None` if it is closed then."""
        found = [closes for opens, closes in openings(each.window, at, at + _MINUTE) if opens <= at]
        return cls(each.window.name, each.min, max(found), each.window.zone) if found else None

    def document(self) -> dict[str, Any]:
        """Return the window as JSON-ready values."""
        return {
            "name": self.name,
            "floor": self.floor,
            "until": self.closes.astimezone(self.zone).isoformat(),
            "timezone": self.zone.key,
        }


@dataclass(frozen=True, slots=True)
class HighMark:
    """The high-water mark (warm throughput) of one target, in units per second.

    Attributes:
        units: The mark that is reached.
        wanted: The mark that the plan asks for; 0 if it asks for none.
        is_rising: Whether DynamoDB is raising it.
    """

    units: int
    wanted: int
    is_rising: bool

    def line(self) -> str:
        """Return the mark in words."""
        if self.is_rising:
            to = f" to {self.wanted:,}" if self.wanted > self.units else ""
            return f"high-water mark: {self.units:,} units/s, being raised{to}"
        below = f", below the {self.wanted:,} of the plan: deploy again" if self.wanted > self.units else ""
        return f"high-water mark: {self.units:,} units/s{below}"


@dataclass(frozen=True, slots=True)
class Situation:
    """One target: its planned bounds, its state in AWS, and the scaler's next decision.

    Attributes:
        table: The table's label; with the region in front if the table is in another region than its plan.
        region: The table's region; empty until the caller adds it.
        scaler: The name of the table's scaler; empty for a table chosen by tags.
        target: The target, as planned.
        mode: The scaler's mode for the table.
        at: The time of this state, from Application Auto Scaling's clock.
        planned: Floor and ceiling that the plan alone asks for now.
        registered: Floor and ceiling of the scalable target, `None` if none is registered.
        provisioned: Provisioned units per second.
        is_paused: Whether scaling of the target is suspended.
        decreases_used: Decreases of the table or index today (UTC), reads and writes together.
        next_change: The next change of the planned bounds within eight days: its time and the new bounds.
        open_windows: The windows that are open now.
        consumed: Units per second that were consumed in the newest minute that CloudWatch has; 0 if it has none of the
            last quarter of an hour, `None` if it could not be asked.
        throttled: Requests that were throttled in the last hour; `None` if that could not be read.
        mark: The high-water mark; `None` if DynamoDB does not report one.
        decision: The scaler's next decision, `None` if the scaler would skip the target.
        skip: Why the scaler would skip the target, `None` if it would not.
        last_decisions: The scaler's decisions of the last day from its log, the newest last.
        log_refused: The error code with which CloudWatch Logs rejected reading the log, `None` if it did not.
        boosts: The boosts of the target that are live or booked.
        boosted: The units of the floor that are for boosts.
        failure: Why auto scaling could not raise the capacity to the floor, a sentence; empty if it has not failed.
        notes: Sentences about data for the next decision that could not be read.
    """

    table: str
    scaler: str
    target: Target
    mode: Mode
    at: datetime
    planned: Bounds
    registered: Bounds | None
    provisioned: int
    is_paused: bool
    decreases_used: int
    next_change: tuple[datetime, Bounds] | None
    open_windows: tuple[OpenWindow, ...]
    decision: Decision | None
    region: str = ""
    consumed: int | None = None
    throttled: int | None = None
    mark: HighMark | None = None
    skip: SkipReason | None = None
    last_decisions: tuple[LoggedDecision, ...] = ()
    log_refused: str | None = None
    boosts: tuple[Lease, ...] = ()
    boosted: int = 0
    failure: str = ""
    notes: tuple[str, ...] = ()

    @property
    def relief(self) -> int:
        """Units per second by which the registered floor is above the planned floor and boosts.

        0 while scaling is suspended: a floor from before the suspension says nothing of demand.
        """
        if self.registered is None or self.is_paused:
            return 0
        return max(0, self.registered.min - self.planned.min - self.boosted)

    @property
    def used_percent(self) -> int | None:
        """Consumed units in percent of the capacity; `None` if either is unknown."""
        return None if self.consumed is None or not self.provisioned else round(self.consumed * 100 / self.provisioned)

    def document(self) -> dict[str, Any]:
        """Return the situation as JSON-ready values."""
        return {
            "table": self.table,
            "region": self.region,
            "scaler": self.scaler,
            "target": self.target.label,
            "mode": str(self.mode),
            "at": self.at.isoformat(),
            "planned": _bounds(self.planned),
            "registered": _bounds(self.registered),
            "provisioned": self.provisioned,
            "consumed": self.consumed,
            "used_percent": self.used_percent,
            "throttled_last_hour": self.throttled,
            "high_water_mark": None if self.mark is None else asdict(self.mark),
            "relief": self.relief,
            "boosted": self.boosted,
            "paused": self.is_paused,
            "failure": self.failure,
            "decreases_used": self.decreases_used,
            "open_windows": [window.document() for window in self.open_windows],
            "next_change": None
            if self.next_change is None
            else {"at": self.next_change[0].isoformat(), **(_bounds(self.next_change[1]) or {})},
            "decision": None if self.decision is None else decision_document(self.decision),
            "boosts": [described_lease(lease) for lease in self.boosts],
            "notes": list(self.notes),
            "skip": None if self.skip is None else str(self.skip),
            "last_decisions": [
                {
                    "at": logged.at.isoformat(),
                    "current": logged.current,
                    "granted": logged.granted,
                    "wanted": logged.wanted,
                    "reason": logged.reason,
                    "limits": [asdict(limit) for limit in logged.limits],
                }
                for logged in self.last_decisions
            ],
        }


@dataclass(frozen=True, slots=True)
class MissingTable:
    """A table with a plan that cannot be described.

    Attributes:
        table: The table's label.
        region: The table's region.
        scaler: The name of the table's scaler; empty for a table chosen by tags.
        problem: Why it cannot be described: DynamoDB's error; empty if the table does not exist.
    """

    table: str
    region: str
    scaler: str
    problem: str = ""

    @property
    def why(self) -> str:
        """A clause that says what is wrong."""
        return f"cannot be described in {self.region}" if self.problem else f"no such table in {self.region}"

    def line(self) -> str:
        """Return a sentence with the place, the problem and the likely fix."""
        managed = f"scaler {self.scaler} manages it" if self.scaler else "its tags choose it"
        if self.problem:
            return f"{self.table}: {self.why}, and {managed}: {self.problem}"
        return f"{self.table}: {self.why}, but {managed}; deploy its stack again, or remove it from the scaler"

    def document(self) -> dict[str, Any]:
        """Return what is known as JSON-ready values."""
        return {"table": self.table, "region": self.region, "scaler": self.scaler, "problem": self.problem or self.why}


@dataclass(frozen=True, slots=True)
class UnmanagedIndex:
    """An index of a managed table that is not in the plan.

    Attributes:
        table: The table's label.
        scaler: The name of the table's scaler.
        index: The index's name.
        provisioned: Its provisioned units per second; 0 if it is on demand.
        region: The table's region; empty until the caller adds it.
    """

    table: str
    scaler: str
    index: str
    provisioned: Units
    region: str = ""

    def line(self) -> str:
        """Return a sentence with the place, the problem and the likely fix."""
        units = self.provisioned
        capacity = f"{units.read:,} RCU and {units.write:,} WCU" if units.read or units.write else "on demand"
        subject = f"index {self.index} of {self.table} is not managed"
        return f"{subject}: its capacity is {capacity}; name it in indexes="

    def document(self) -> dict[str, Any]:
        """Return what is known as JSON-ready values."""
        return {
            "table": self.table,
            "region": self.region,
            "scaler": self.scaler,
            "target": resource_label(self.index),
            "provisioned": {"read": self.provisioned.read, "write": self.provisioned.write},
            "problem": self.line(),
        }


@dataclass(frozen=True, slots=True)
class FixedBelowFloor:
    """A target of fixed capacity that the scaler's next run registers again, as its capacity is below its floor.

    Attributes:
        table: The table's label.
        scaler: The name of the table's scaler.
        target: The target, as planned.
        floor: Its registered floor, in units per second.
        provisioned: Its provisioned units per second.
        region: The table's region; empty until the caller adds it.
    """

    table: str
    scaler: str
    target: Target
    floor: int
    provisioned: int
    region: str = ""

    def line(self) -> str:
        """Return a sentence with the place, the problem and what is done about it."""
        has = f"{self.table}: {self.target.label} has {self.provisioned:,} of its fixed {self.floor:,} units/s"
        return f"{has}; the scaler's next run registers its target again"

    def document(self) -> dict[str, Any]:
        """Return what is known as JSON-ready values."""
        return {
            "table": self.table,
            "region": self.region,
            "scaler": self.scaler,
            "target": self.target.label,
            "floor": self.floor,
            "provisioned": self.provisioned,
            "problem": self.line(),
        }


Seen: TypeAlias = "Situation | FixedBelowFloor | UnmanagedIndex | MissingTable"


def find_plans(table: str | None, region: AwsRegion) -> list[ScaledPlan]:
    """Read the plans of *table*, one for each of its regions, or all plans if *table* is `None`.

    *region* is the region with the plans. Tagged tables of that region are included. A plan that cannot be read is
    named on standard error. Raises `click.ClickException` if there is no plan of *table*.
    """
    scaled_plans = read_plans(region.ssm)
    try:
        tagged = read_tagged_plans(region.tagging, region.name)
        # labels of tables in the scaler's own region have no region
        own = tuple(replace(plan, region=None) for plan in tagged.plans)
        scaled_plans = scaled_plans.and_others(replace(tagged, plans=own))
    except ClientError as refused:
        # without permission to search by tags, the plans written by constructs are still listed
        scaled_plans = scaled_plans.and_others(ScaledPlans((), (f"tables chosen by tags: {refused}",)))
    managed = [plan for plan in scaled_plans.plans if not plan.is_released]
    chosen = [plan for plan in managed if table is None or table in (plan.table, plan.label)]
    for line in scaled_plans.unreadable:
        say(f"highwater: a plan could not be read: {line}", err=True)
    if table is not None and not chosen:
        names = {name for plan in managed for name in (plan.table, plan.label)}
        raise click.ClickException(
            f"no scaler manages a table {table!r} in this region; list the managed tables with: highwater status, or "
            f"give --region{did_you_mean(table, names)}"
        )
    return sorted(chosen, key=lambda plan: plan.label)


class Coordinators:
    """The tables of the coordinators of scalers in the region *home*."""

    def __init__(self, home: AwsRegion) -> None:
        self._home = home
        self._names: dict[str, str | None] = {}

    def of(self, scaled: ScaledPlan) -> Kept | None:
        """Return the table of the scaler's coordinator; `None` if the permission to find it is missing."""
        try:
            if scaled.scaler not in self._names:
                self._names[scaled.scaler] = find_lease_table(self._home.ssm, scaled.scaler) if scaled.scaler else None
        except ClientError:
            return None
        name, dynamodb = self._names[scaled.scaler], self._home.dynamodb
        return Kept() if name is None else Kept(LeaseTable(name, dynamodb), PulseTable(name, dynamodb))


@dataclass(slots=True)
class _Unread:
    """Collects what could not be read, for the terminal."""

    notes: list[str] = field(default_factory=list)

    def count(self, metric: ScalerMetric, by: int = 1) -> None:
        """Do nothing: only the scaler has metrics."""


def read_situations(
    scaled: ScaledPlan, region: AwsRegion, logs: Any | None, kept: Kept | None = NOTHING_KEPT
) -> Iterator[Situation | FixedBelowFloor | UnmanagedIndex]:
    """Yield the situation of every autoscaled target of a plan, then the indexes that the plan does not know.

    Targets of fixed capacity that is below its floor come between the two.

    *region* is the table's. With *logs*, a client of CloudWatch Logs in the scaler's region, situations include the
    scaler's decisions: those in its log, and the next ones, for which metrics are read. *kept* is the coordinator's
    table, by default there is none; `None` if it is not known whether there is one, so that boosts may be missing.

    Raises:
        TableNotFoundError: The table does not exist.
        TableBusyError, TableRefusedError: It cannot be described.
    """
    described = describe_table(region.dynamodb, scaled.table)
    if scaled.is_tagged:
        scaled = scaled.with_indexes(index for index in described.capacities if index is not None)
    names = {
        target.key: TargetName(scaled.table, *target.key)
        for target in scaled_targets(scaled)
        if target.index in described.capacities
    }
    registered = read_targets(region.autoscaling, [*names.values(), *fixed_names(scaled)])
    clock = Clock(int(registered.at.timestamp()) // 60, registered.at)
    unread = _Unread()
    consumed, throttled = _use(scaled, names.values(), region, clock.now, unread)
    failures = _failures(scaled, names.values(), region, described, registered, unread)
    marks = {mark.index: mark for mark in marks_of(scaled.plan)}
    reviewed = None
    if logs is not None:
        seen = _observe(scaled, names, region, described, registered, clock, kept, unread)
        reviewed = review(scaled, seen, clock)
        leases, boosted_units = seen.leases, seen.boosted
    else:
        leases, boosted_units = _boosts(scaled, kept)
    decided = {} if reviewed is None else {each.decision.key: each.decision for each in reviewed.targets}
    skipped = {} if reviewed is None else {skip.target.key: skip.reason for skip in reviewed.skips}
    logged, log_refused = logged_decisions(logs, scaled.label, clock.now) if logs is not None else ({}, None)
    for target in scaled_targets(scaled):
        if target.key not in names:
            continue
        name = names[target.key]
        changes = timeline(target, clock.now, clock.now + _AHEAD)
        yield Situation(
            table=scaled.label,
            scaler=scaled.scaler,
            target=target,
            mode=scaled.mode,
            at=clock.now,
            planned=changes[0][1],
            registered=registered.of(name),
            provisioned=described.capacities[target.index].of(target.dimension),
            is_paused=registered.is_suspended(name),
            decreases_used=described.budgets[target.index].used_on(clock.now),
            next_change=changes[1] if len(changes) > 1 else None,
            open_windows=tuple(found for each in target.windows if (found := OpenWindow.of(each, clock.now))),
            consumed=consumed.get(name),
            throttled=throttled.get(name),
            mark=_mark(described, marks.get(target.index), target),
            decision=decided.get(target.key),
            skip=skipped.get(target.key),
            last_decisions=logged.get(target.label, ()),
            log_refused=log_refused,
            boosts=tuple(lease for lease in leases if lease.key == target.key and lease.ends > clock.now),
            boosted=boosted_units.get(target.key, 0),
            failure=failures.get(name, ""),
            notes=tuple(unread.notes),
        )
    floors = fixed_floors(scaled, registered)
    for target in fixed_below_floor(scaled, seen_resources(described), floors):
        units_now = described.capacities[target.index].of(target.dimension)
        yield FixedBelowFloor(scaled.label, scaled.scaler, target, floors[target.key], units_now)
    known = {index for index, *_ in scaled.plan.resources()}
    for index, units in described.capacities.items():
        if index is not None and index not in known:
            yield UnmanagedIndex(scaled.label, scaled.scaler, index, units)


def _use(
    scaled: ScaledPlan, names: Iterable[TargetName], region: AwsRegion, now: datetime, unread: _Unread
) -> tuple[Mapping[TargetName, int], Mapping[TargetName, int]]:
    """Return the units per second that targets consumed in their newest known minute, and their throttled requests."""
    wanted = list(names)
    try:
        seen = read_consumption(region.cloudwatch, wanted, _USE_MINUTES, now, region.rate)
        throttled = count_throttles(region.cloudwatch, wanted, THROTTLE_MINUTES, now)
    except (ClientError, BotoCoreError) as refused:
        unread.notes.append(f"{scaled.label}: consumption and throttles could not be read from CloudWatch: {refused}")
        return {}, {}
    consumed = {name: 0 if each.is_empty else -(-(each.known_units[-1] or 0) // 60) for name, each in seen.items()}
    return consumed, throttled


def _failures(
    scaled: ScaledPlan,
    names: Iterable[TargetName],
    region: AwsRegion,
    described: DescribedTable,
    registered: RegisteredTargets,
    unread: _Unread,
) -> Mapping[TargetName, str]:
    """Return why auto scaling could not raise capacity to its floor, for targets whose capacity is below it."""
    floors = {name: bounds.min for name in names if (bounds := registered.of(name)) is not None}
    below = [name for name, floor in floors.items() if described.capacities[name.index].of(name.dimension) < floor]
    try:
        return read_failures(region.autoscaling, below, registered.at)
    except (ClientError, BotoCoreError) as refused:
        unread.notes.append(f"{scaled.label}: why capacity is below its floor could not be read: {refused}")
        return {}


def _mark(described: DescribedTable, wanted: Mark | None, target: Target) -> HighMark | None:
    units = described.marks.get(target.index, Units(0, 0)).of(target.dimension)
    planned = 0 if wanted is None else wanted.read if target.dimension is Dimension.READ else wanted.write
    return HighMark(units, planned, target.index in described.warming) if units else None


def _observe(
    scaled: ScaledPlan,
    names: Mapping[TargetKey, TargetName],
    region: AwsRegion,
    described: DescribedTable,
    registered: RegisteredTargets,
    clock: Clock,
    kept: Kept | None,
    unread: _Unread,
) -> SeenTable:
    """Return the table's state as input of the scaler's next turn."""
    if scaled.mode.follows_demand:
        minutes = minutes_to_observe(scaled, clock)
        consumed = read_consumption(region.cloudwatch, names.values(), minutes, clock.now, region.rate)
    else:
        consumed = dict.fromkeys(names.values(), Observation.nothing())
    targets = {name: target for target in scaled_targets(scaled) if (name := names.get(target.key)) is not None}
    seen = observe_table(region, scaled, described, targets, registered, consumed, clock, kept or NOTHING_KEPT, unread)
    return replace(seen, lacks_leases=True) if kept is None else seen


def _boosts(scaled: ScaledPlan, kept: Kept | None) -> tuple[tuple[Lease, ...], Mapping[TargetKey, int]]:
    try:
        known = TableLeases() if kept is None or kept.leases is None else kept.leases.read(scaled.label)
    except LeasesUnavailableError:
        known = TableLeases()
    return known.leases, known.boosted


def logged_decisions(logs: Any, label: str, now: datetime) -> tuple[dict[str, tuple[LoggedDecision, ...]], str | None]:
    """Read the last decisions by target, or return the error code with which CloudWatch Logs rejected the call.

    That error is not raised, because all other parts of a situation are known without the log.
    """
    try:
        return read_decisions(logs, label, now), None
    except ClientError as refused:
        return {}, refused.response["Error"]["Code"]


def _bounds(bounds: Bounds | None) -> dict[str, int] | None:
    return None if bounds is None else {"min": bounds.min, "max": bounds.max}
