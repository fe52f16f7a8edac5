"""What a region has that nothing needs any more, and what it has otherwise than declared; each with its command.

Pure: what was read of AWS is passed in. `highwater doctor` prints what is found here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from highwater.core import Dimension, Target
from highwater.core.names import TargetName
from highwater.core.prices import HOURS_PER_MONTH
from highwater.core.scaler.plan import ScaledPlan
from highwater.core.schedule.bounds import Bounds, bounds_at
from highwater.core.tracking import NATIVE_TARGET_PERCENT, TargetTracking
from highwater_lab.audit.account import LiveScaling
from highwater_lab.services.billing import ALARMS_PER_POLICY
from highwater_lab.services.prices import Prices, UnitPrices
from highwater_lab.simulation import TargetSetup

# `manage_capacity` gives its policies this name
_POLICY_NAME: Final = "target-tracking"
_A: Final = {"table": "a table", "index": "an index"}
# the tables of a region by name, with their indexes
Tables = Mapping[str, Collection[str]]


class DeviationKind(StrEnum):
    """Which way an account differs from what is declared."""

    LEFTOVER = "leftover"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One thing that an account has and nothing needs, or has otherwise than declared.

    Attributes:
        kind: Whether nothing needs it, or it differs.
        subject: What it is: `target table/orders write`, `alarm Highwater orders write`.
        problem: What is wrong, behind the subject in a sentence.
        command: The command that ends it.
        usd_month: What it costs in a month, in USD; 0 where it costs nothing, or nothing that is known.
        can_throttle: Whether requests may be throttled because of it.
    """

    kind: DeviationKind
    subject: str
    problem: str
    command: str
    usd_month: float = 0.0
    can_throttle: bool = False

    @property
    def text(self) -> str:
        """The deviation in a sentence without a period, with its cost if there is one."""
        cost = f", {self.usd_month:,.2f} USD a month" if self.usd_month else ""
        return f"{self.subject} {self.problem}{cost}"

    @property
    def rank(self) -> tuple[bool, float]:
        """The order of worth: first what may throttle, then what costs most."""
        return not self.can_throttle, -self.usd_month

    def document(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {
            "kind": str(self.kind),
            "subject": self.subject,
            "problem": self.problem,
            "command": self.command,
            "usd_month": round(self.usd_month, 2),
            "can_throttle": self.can_throttle,
        }


@dataclass(frozen=True, slots=True)
class PlacedDeviation:
    """A deviation of one account and region."""

    account: str
    region: str
    deviation: Deviation

    @property
    def place(self) -> str:
        """The account and the region."""
        return f"{self.account}/{self.region}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON-ready values."""
        return {"account": self.account, "region": self.region, **self.deviation.document()}


@dataclass(frozen=True, slots=True)
class SeenAlarm:
    """An alarm of a scaler, or of target tracking, on a table or an index.

    Attributes:
        name: Its name.
        table: The table.
        index: The index, `None` for the table itself.
    """

    name: str
    table: str
    index: str | None


@dataclass(frozen=True, slots=True)
class SeenQueue:
    """A queue of `BufferedWrites`.

    Attributes:
        url: Its URL, which ends with its name.
        table: The table that it buffers for.
        messages: How many messages are in it, hidden ones included.
        is_read: Whether a function reads it, or reads the queue of which it has the dead letters.
    """

    url: str
    table: str
    messages: int
    is_read: bool


def left_targets(targets: Mapping[TargetName, LiveScaling], tables: Tables, prices: Prices) -> Iterator[Deviation]:
    """Yield the scalable targets of tables and indexes that are gone. A later table of that name would be scaled."""
    for name, scaling in targets.items():
        if not (gone := _gone(name.table, name.index, tables)):
            continue
        alarms = ALARMS_PER_POLICY * len(scaling.policies)
        parts = [f"{alarms} alarms"] if alarms else []
        parts += [f"{len(scaling.actions)} scheduled actions"] if scaling.actions else []
        more = f"; it has {' and '.join(parts)}" if parts else ""
        yield Deviation(
            kind=DeviationKind.LEFTOVER,
            subject=f"target {name}",
            problem=f"is registered, and the {gone} is gone{more}",
            command=target_command("deregister-scalable-target", name, prices.region),
            usd_month=alarms * prices.alarm_month,
        )


def left_alarms(
    alarms: Iterable[SeenAlarm], targets: Collection[TargetName], tables: Tables, prices: Prices
) -> Iterator[Deviation]:
    """Yield the alarms of tables and indexes that are gone, but those that go with a scalable target in *targets*."""
    scaled = {(name.table, name.index) for name in targets}
    for alarm in alarms:
        is_tracking = alarm.name.startswith("TargetTracking-") and (alarm.table, alarm.index) in scaled
        if (gone := _gone(alarm.table, alarm.index, tables)) and not is_tracking:
            yield Deviation(
                kind=DeviationKind.LEFTOVER,
                subject=f"alarm {alarm.name!r}",
                problem=f"watches {_A[gone]} that is gone",
                command=aws_command("cloudwatch delete-alarms", prices.region, "--alarm-names", alarm.name),
                usd_month=prices.alarm_month,
            )


def left_plans(plans: Iterable[ScaledPlan], tables: Tables, region: str) -> Iterator[Deviation]:
    """Yield the scalers' plans of tables that are gone; plans for tables in other regions are left out."""
    for plan in plans:
        if plan.region in (None, region) and not plan.is_tagged and plan.table not in tables:
            yield Deviation(
                kind=DeviationKind.LEFTOVER,
                subject=f"parameter {plan.parameter}",
                problem=f"is the plan of table {plan.table}, which is gone; the scaler looks for it in every run",
                command=aws_command("ssm delete-parameter", region, "--name", plan.parameter),
            )


def aws_command(what: str, region: str, *arguments: str) -> str:
    """Return a command of the AWS CLI, quoted for a shell."""
    return shlex.join(["aws", *what.split(), "--region", region, *arguments])


def target_command(operation: str, name: TargetName, region: str, *more: str) -> str:
    """Return a command of Application Auto Scaling for one target, such as `deregister-scalable-target`."""
    target = ("--resource-id", name.resource_id, "--scalable-dimension", name.scalable_dimension)
    return aws_command(
        f"application-autoscaling {operation}", region, "--service-namespace", "dynamodb", *target, *more
    )


def left_queues(queues: Iterable[SeenQueue], tables: Tables, region: str) -> Iterator[Deviation]:
    """Yield the queues of tables that are gone, and those that no function reads any more."""
    for queue in queues:
        is_gone = queue.table not in tables
        if is_gone or not queue.is_read:
            why = f"buffers for table {queue.table}, which is gone" if is_gone else "is read by no function any more"
            what = "message is" if queue.messages == 1 else "messages are"
            kept = f"; {queue.messages:,} {what} in it, which the command deletes too" if queue.messages else ""
            yield Deviation(
                kind=DeviationKind.LEFTOVER,
                subject=f"queue {queue.url.rpartition('/')[2]}",
                problem=f"{why}{kept}",
                command=aws_command("sqs delete-queue", region, "--queue-url", queue.url),
            )


def _gone(table: str, index: str | None, tables: Tables) -> str:
    """Return which of a table and its index is gone; empty if neither is."""
    if table not in tables:
        return "table"
    return "index" if index is not None and index not in tables[table] else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTarget:
    """What is declared of one dimension of a table or an index, as of now.

    Attributes:
        name: The target.
        floors: The lowest and the highest floor that may be registered now; `None` for no scalable target.
        ceilings: The lowest and the highest ceiling, likewise.
        tracking: Its target tracking, `None` for none.
        actions: The names of its scheduled actions; `None` if they are not known.
        mark: Its high-water mark in units per second, 0 for none.
    """

    name: TargetName
    floors: tuple[int, int] | None
    ceilings: tuple[int, int] = (0, 0)
    tracking: TargetTracking | None = None
    actions: frozenset[str] | None = None
    mark: int = 0

    @classmethod
    def of_plan(
        cls, name: TargetName, target: Target, scaled: ScaledPlan | None, mark: int, now: datetime
    ) -> DeclaredTarget:
        """Return what a plan declares for the instant *now*; *scaled* is the scaler's plan, if there is one.

        A scaler raises floors for demand and boosts, and for a moment lowers ceilings.
        """
        if scaled is not None and not scaled.mode.moves_floors:
            return cls(name=name, floors=None, mark=mark)
        planned, capacity = bounds_at(target, now), target.capacity
        highest = max(planned.max, capacity.max_with_boosts or 0)
        tracking = None
        if capacity.is_autoscaled:
            percent = capacity.target_utilization_percent
            tracking = TargetTracking(
                target_percent=NATIVE_TARGET_PERCENT if percent is None else int(percent),
                scale_in_cooldown=_seconds(capacity.scale_in_cooldown),
                scale_out_cooldown=_seconds(capacity.scale_out_cooldown),
                disable_scale_in=capacity.disable_scale_in,
            )
        is_moved = scaled is not None and capacity.is_autoscaled
        return cls(
            name=name,
            floors=(planned.min, highest if is_moved else planned.min),
            ceilings=(planned.min if is_moved else planned.max, highest),
            tracking=tracking,
            mark=mark,
        )

    @classmethod
    def of_setup(cls, name: TargetName, setup: TargetSetup, mark: int) -> DeclaredTarget:
        """Return what a template declares. Any of its scheduled actions may have set its bounds last."""
        actions = frozenset(action.name for action in setup.actions)
        if not setup.has_target:
            return cls(name=name, floors=None, actions=actions, mark=mark)
        floors = [setup.min, *(each.min for each in setup.actions if each.min is not None)]
        ceilings = [setup.max, *(each.max for each in setup.actions if each.max is not None)]
        return cls(
            name=name,
            floors=(min(floors), max(floors)),
            ceilings=(min(ceilings), max(ceilings)),
            tracking=setup.tracking,
            actions=actions,
            mark=mark,
        )

    def with_actions(self, actions: frozenset[str] | None) -> DeclaredTarget:
        """Return the same with the names of the scheduled actions of the template."""
        return replace(self, actions=actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTarget:
    """What one dimension of a table or an index has.

    Attributes:
        units: Its provisioned units per second, 0 on demand.
        mark: Its warm throughput in units per second; 0 if DynamoDB does not report one.
        is_warming: Whether that is being raised.
        scaling: Its scalable target, `None` for none.
    """

    units: int
    mark: int = 0
    is_warming: bool = False
    scaling: LiveScaling | None = None


def drift_of(declared: DeclaredTarget, live: LiveTarget, prices: UnitPrices, region: str) -> Iterator[Deviation]:
    """Yield in what a target differs from its declaration: bounds, scaling, the capacity itself, its mark."""
    for problem, command, usd_month, can_throttle in _differences(declared, live, prices, region):
        yield Deviation(
            kind=DeviationKind.DRIFT,
            subject=f"target {declared.name}",
            problem=problem,
            command=command,
            usd_month=usd_month,
            can_throttle=can_throttle,
        )


def _differences(
    declared: DeclaredTarget, live: LiveTarget, prices: UnitPrices, region: str
) -> Iterator[tuple[str, str, float, bool]]:
    """Yield the problem, the command, USD a month, and whether requests may be throttled."""
    name, scaling = declared.name, live.scaling
    if declared.mark > live.mark and not live.is_warming and live.mark:
        yield (
            f"has a high-water mark of {live.mark:,} units/s, declared: {declared.mark:,}; raising it is charged once",
            _mark_command(name, declared.mark, region),
            0.0,
            True,
        )
    if declared.floors is None or not live.units:
        return
    register = _register(name, _inside(declared, scaling), region)
    if scaling is None:
        yield f"is not registered, declared: {_range(declared)}", register, 0.0, True
        return
    (least, most), (lowest, highest) = declared.floors, declared.ceilings
    if scaling.min < least:
        yield f"has a floor of {scaling.min:,}, declared for now: {least:,}", register, 0.0, True
    if scaling.min > most:
        usd = (scaling.min - most) * prices.unit_hour(name.dimension) * HOURS_PER_MONTH
        yield f"has a floor of {scaling.min:,}, declared for now: {most:,}", register, usd, False
    if scaling.max < lowest:
        yield f"has a ceiling of {scaling.max:,}, declared for now: {lowest:,}", register, 0.0, True
    if scaling.max > highest:
        yield f"has a ceiling of {scaling.max:,}, declared for now: {highest:,}", register, 0.0, False
    if scaling.is_suspended:
        resume = f"highwater resume {shlex.quote(name.table)} --region {region}"
        yield "is paused: its scaling is suspended", resume, 0.0, False
    elif least <= scaling.min and live.units < scaling.min:
        # registering moves the capacity into the bounds, even where they do not change
        again = _register(name, Bounds(scaling.min, scaling.max), region)
        yield f"has a capacity of {live.units:,}, below its floor of {scaling.min:,}", again, 0.0, True
    yield from _other_scaling(declared, scaling, region)


def _other_scaling(
    declared: DeclaredTarget, scaling: LiveScaling, region: str
) -> Iterator[tuple[str, str, float, bool]]:
    """Yield how the policies and scheduled actions of a registered target differ."""
    name = declared.name
    wanted, found = declared.tracking, scaling.tracking
    if wanted is not None and found != wanted:
        policy = scaling.policies[0] if scaling.policies else _POLICY_NAME
        is_there = "no target tracking" if found is None else f"target tracking at {_tracking(found)}"
        put = _put_policy(name, policy, wanted, region)
        yield f"has {is_there}, declared: {_tracking(wanted)}", put, 0.0, found is None
    # the first is the declared one where there are several
    for policy in scaling.policies[0 if wanted is None else 1 :]:
        delete = target_command("delete-scaling-policy", name, region, "--policy-name", policy)
        yield f"has the scaling policy {policy!r}, which is not declared", delete, 0.0, False
    if declared.actions is None:
        return
    live = {action.name for action in scaling.actions}
    for missing in sorted(declared.actions - live):
        fix = "change the window and deploy, as CloudFormation puts only what changed"
        yield f"lacks the scheduled action {missing!r}", fix, 0.0, True
    for other in sorted(live - declared.actions):
        delete = target_command("delete-scheduled-action", name, region, "--scheduled-action-name", other)
        yield f"has the scheduled action {other!r}, which is not declared", delete, 0.0, False


def _inside(declared: DeclaredTarget, scaling: LiveScaling | None) -> Bounds:
    """Return the bounds that are registered, moved into those that are declared."""
    assert declared.floors is not None  # noqa: S101 - only of targets that are declared
    (least, most), (lowest, highest) = declared.floors, declared.ceilings
    if scaling is None:
        return Bounds(least, highest)
    return Bounds(min(max(scaling.min, least), most), min(max(scaling.max, lowest), highest))


def _range(declared: DeclaredTarget) -> str:
    assert declared.floors is not None  # noqa: S101 - only of targets that are declared
    return f"{declared.floors[0]:,} to {declared.ceilings[1]:,}"


def _tracking(tracking: TargetTracking) -> str:
    cooldowns = ""
    if tracking.scale_in_cooldown or tracking.scale_out_cooldown:
        cooldowns = f" with cooldowns of {tracking.scale_in_cooldown} s in and {tracking.scale_out_cooldown} s out"
    return f"{tracking.target_percent} %{cooldowns}{' and no scale-in' if tracking.disable_scale_in else ''}"


def _seconds(duration: Any) -> int:
    return int(duration.total_seconds()) if duration else 0


def _register(name: TargetName, bounds: Bounds, region: str) -> str:
    more = ("--min-capacity", str(bounds.min), "--max-capacity", str(bounds.max))
    return target_command("register-scalable-target", name, region, *more)


def _put_policy(name: TargetName, policy: str, tracking: TargetTracking, region: str) -> str:
    configuration: dict[str, Any] = {
        "TargetValue": tracking.target_percent,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": f"DynamoDB{name.dimension.title()}CapacityUtilization"
        },
        "ScaleInCooldown": tracking.scale_in_cooldown,
        "ScaleOutCooldown": tracking.scale_out_cooldown,
        "DisableScaleIn": tracking.disable_scale_in,
    }
    return target_command(
        "put-scaling-policy",
        name,
        region,
        *("--policy-name", policy, "--policy-type", "TargetTrackingScaling"),
        *("--target-tracking-scaling-policy-configuration", json.dumps(configuration)),
    )


def _mark_command(name: TargetName, units: int, region: str) -> str:
    member = "ReadUnitsPerSecond" if name.dimension is Dimension.READ else "WriteUnitsPerSecond"
    if name.index is None:
        given = ("--warm-throughput", f"{member}={units}")
    else:
        update = [{"Update": {"IndexName": name.index, "WarmThroughput": {member: units}}}]
        given = ("--global-secondary-index-updates", json.dumps(update))
    return aws_command("dynamodb update-table", region, "--table-name", name.table, *given)
