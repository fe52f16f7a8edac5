"""Application Auto Scaling of DynamoDB in memory: the targets of `highwater_lab.services`, behind a boto3 client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from zoneinfo import ZoneInfo

from botocore.exceptions import ClientError

from highwater.core import Bounds
from highwater.core.names import TargetName
from highwater.core.tracking import ACTIVITY_SECONDS, TargetTracking
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.services.autoscaling import ScalableTarget, ScheduledChange
from highwater_lab.services.schedules import parse_expression
from tests.memory_aws.tables import Allowed, Document, Table, is_denied, refused

SCALABLE_TARGET = "arn:aws:application-autoscaling:us-east-1:000000000000:scalable-target/x"
# RegisterScalableTarget asks DynamoDB for these on behalf of the caller, and lists what is denied.
_ASKED = ("dynamodb:DescribeTable", "dynamodb:UpdateTable")


@dataclass
class Action:
    """A scheduled action; where it runs next is worked out once for each run."""

    change: ScheduledChange
    _since: int = 0
    _next: int | None = None

    def next_run(self, after: int) -> int | None:
        """Return the first run later than *after*, `None` if there is none."""
        # the first run after an instant is also the first after each later one until then
        if self._next is None or not self._since <= after < self._next:
            self._since, self._next = after, self.change.next_run(after)
        return self._next


@dataclass
class Target:
    """A registered target: its bounds, its scheduled actions, its policy, and whether its scaling is suspended."""

    scalable: ScalableTarget
    actions: dict[str, Action] = field(default_factory=dict)
    tracking: TargetTracking | None = None
    is_suspended: bool = False

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.scalable.floor, self.scalable.ceiling)


@dataclass
class Autoscaling:
    """All targets of the account."""

    tables: dict[str, Table]
    targets: dict[TargetName, Target] = field(default_factory=dict)
    failures: dict[TargetName, tuple[int, str]] = field(default_factory=dict)

    def register(self, name: TargetName, bounds: Bounds, at: int) -> None:
        """RegisterScalableTarget, which moves capacity outside the bounds inside."""
        if not self._exists(name):
            raise refused("ValidationException", f"DynamoDB table does not exist: {name.resource_id}")
        if self.tables[name.table].is_on_demand:
            # recorded: radkawar/stackd 9dc356f, dynamodb/controls, 2026-09
            reason = "Validation failed for scalable target. Reason: PAY_PER_REQUEST table mode is not scalable."
            raise refused("ValidationException", reason)
        target = self.targets.setdefault(name, Target(ScalableTarget(floor=bounds.min, ceiling=bounds.max)))
        self._set_bounds(name, target, bounds.min, bounds.max, at)

    def put_actions(self, name: TargetName, actions: list[Document]) -> None:
        """Replace the scheduled actions of a target, as CloudFormation gives them."""
        self.targets[name].actions = {each["ScheduledActionName"]: Action(_scheduled(each)) for each in actions}

    def next_run(self, after: int, end: int) -> int | None:
        """When the next scheduled action runs, up to *end*."""
        runs = (action.next_run(after) for target in self.targets.values() for action in target.actions.values())
        return min((run for run in runs if run is not None and run <= end), default=None)

    def run(self, at: int) -> None:
        """Run the scheduled actions of that second."""
        for name, target in self.targets.items():
            for action in target.actions.values():
                low, high = action.change.bounds(target.bounds.min, target.bounds.max)
                if action.next_run(at - 1) == at and low <= high:
                    self._set_bounds(name, target, low, high, at)

    def track(self, consumed_units: int, at: int) -> None:
        """Have the tracking policies act on *consumed_units* a second in each of their minutes.

        Where that would set off the high alarm, less is consumed: the tables of the stories are calm, and capacity
        below its floor stays there (measured 2026-10: for half an hour, it did not change).
        """
        for name, target in self.targets.items():
            tracking = target.tracking
            if tracking is None or not self._is_scalable(name):
                continue
            units = self._granted(name)
            quanta = min(consumed_units * 60 * QUANTA_PER_UNIT, tracking.band(units)[1])
            minutes = [quanta] * tracking.low_periods
            wanted = target.scalable.tracked(tracking, minutes, len(minutes) - 1, units, at)
            if wanted is not None and self._change(name, wanted[1], at):
                target.scalable.cooldowns.note(wanted[0], at + ACTIVITY_SECONDS, wanted[1])

    def _set_bounds(self, name: TargetName, target: Target, low: int, high: int, at: int) -> None:
        target.scalable.floor, target.scalable.ceiling = low, high
        # CloudFormation deletes an index, and puts a table on demand, before it deletes the targets
        wanted = target.scalable.clamped(self._granted(name)) if self._is_scalable(name) else None
        if wanted is not None:
            self._change(name, wanted, at)

    def _change(self, name: TargetName, units: int, at: int) -> bool:
        """Change capacity. Auto scaling gives up what DynamoDB refuses, and does not look again."""
        table = self.tables[name.table]
        granted = table.resources[name.index].granted
        try:
            table.change(name.index, {**granted, name.dimension: units}, at, by_autoscaling=True)
        except ClientError as error:
            self.failures[name] = at, error.response["Error"]["Message"]
            return False
        self.failures.pop(name, None)
        return True

    def _exists(self, name: TargetName) -> bool:
        table = self.tables.get(name.table)
        return table is not None and name.index in table.resources

    def _is_scalable(self, name: TargetName) -> bool:
        return self._exists(name) and not self.tables[name.table].is_on_demand

    def _granted(self, name: TargetName) -> int:
        return self.tables[name.table].resources[name.index].granted[name.dimension]


@dataclass
class AutoscalingClient:
    """A boto3 client of Application Auto Scaling, for what `highwater.aws.autoscaling` calls."""

    service: Autoscaling
    now: Callable[[], int]
    allowed: Allowed

    def register_scalable_target(
        self,
        *,
        ResourceId: str,
        ScalableDimension: str,
        MinCapacity: int | None = None,
        MaxCapacity: int | None = None,
        **_: Any,
    ) -> Document:
        self._check("application-autoscaling:RegisterScalableTarget", SCALABLE_TARGET)
        name = TargetName.find(ResourceId, ScalableDimension)
        assert name is not None
        arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{name.table}"
        missing = [action for action in _ASKED if not self.allowed(action, arn)]
        if missing:
            text = f"User is missing the following permissions: {', '.join(missing)}"
            raise refused("ValidationException", text, operation="RegisterScalableTarget")
        registered = self.service.targets.get(name)
        low, high = (None, None) if registered is None else (registered.bounds.min, registered.bounds.max)
        low, high = low if MinCapacity is None else MinCapacity, high if MaxCapacity is None else MaxCapacity
        if low is None or high is None:
            raise refused("ValidationException", "MinCapacity and MaxCapacity are needed to register a new target")
        self.service.register(name, Bounds(low, high), self.now())
        return {}

    def describe_scaling_activities(self, *, ResourceId: str, ScalableDimension: str, **_: Any) -> Document:
        self._check("application-autoscaling:DescribeScalingActivities", "*")
        name = TargetName.find(ResourceId, ScalableDimension)
        failed = None if name is None else self.service.failures.get(name)
        if failed is None:
            return {"ScalingActivities": []}
        told = {"Description": "Setting units.", "StatusCode": "Failed", "StatusMessage": failed[1]}
        return {"ScalingActivities": [told | {"StartTime": datetime.fromtimestamp(failed[0], UTC)}]}

    def get_paginator(self, operation: str) -> AutoscalingClient:
        assert operation == "describe_scalable_targets"
        return self

    def paginate(self, *, ResourceIds: list[str], **_: Any) -> Iterator[Document]:
        self._check("application-autoscaling:DescribeScalableTargets", "*")
        assert len(ResourceIds) <= 50, "DescribeScalableTargets accepts up to 50 resource ids"
        found = [
            {
                "ResourceId": name.resource_id,
                "ScalableDimension": name.scalable_dimension,
                "MinCapacity": target.bounds.min,
                "MaxCapacity": target.bounds.max,
                "SuspendedState": {"DynamicScalingInSuspended": target.is_suspended},
            }
            for name, target in self.service.targets.items()
            if name.resource_id in ResourceIds
        ]
        date = format_datetime(datetime.fromtimestamp(self.now(), UTC), usegmt=True)
        yield {"ScalableTargets": found, "ResponseMetadata": {"HTTPHeaders": {"date": date}}}

    def _check(self, action: str, arn: str) -> None:
        if not self.allowed(action, arn):
            raise is_denied(action, arn)


def _scheduled(action: Document) -> ScheduledChange:
    start, end = (_instant(action.get(key)) for key in ("StartTime", "EndTime"))
    bounds = action["ScalableTargetAction"]
    zone = ZoneInfo(action.get("Timezone", "UTC"))
    return ScheduledChange(
        name=action["ScheduledActionName"],
        expression=parse_expression(action["Schedule"], zone, start or datetime(2027, 1, 1, tzinfo=UTC)),
        min=bounds["MinCapacity"],
        max=bounds["MaxCapacity"],
        start=start,
        end=end,
        runs_at_start=True,
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
