"""Application Auto Scaling of DynamoDB in memory: targets, scheduled actions, and tracking that lowers calm tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from zoneinfo import ZoneInfo

from botocore.exceptions import ClientError

from highwater.core import Bounds, Dimension
from highwater.core.names import TargetName
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from tests.sequences.memory_tables import Allowed, Document, Table, refused

SCALABLE_TARGET = "arn:aws:application-autoscaling:us-east-1:000000000000:scalable-target/x"
# Tracking lowers what was idle for a quarter of an hour.
_IDLE_SECONDS = 15 * 60


@dataclass
class Target:
    """A registered target."""

    bounds: Bounds
    actions: dict[str, ScheduledChange] = field(default_factory=dict)
    utilization_percent: int | None = None


@dataclass
class Autoscaling:
    """All targets of the account."""

    tables: dict[str, Table]
    targets: dict[TargetName, Target] = field(default_factory=dict)

    def register(self, name: TargetName, bounds: Bounds, at: int) -> None:
        """RegisterScalableTarget: capacity outside the bounds moves inside, unless the table is being changed."""
        table = self.tables.get(name.table)
        if table is None or name.index not in table.resources:
            raise refused("ValidationException", f"DynamoDB table does not exist: {name.resource_id}")
        if name in self.targets:
            self.targets[name].bounds = bounds
        else:
            self.targets[name] = Target(bounds)
        self.move(name, bounds.min, bounds.max, at)

    def put_actions(self, name: TargetName, actions: list[Document]) -> None:
        """Replace the scheduled actions of a target, as CloudFormation gives them."""
        self.targets[name].actions = {action["ScheduledActionName"]: _scheduled(action) for action in actions}

    def move(self, name: TargetName, low: int, high: int, at: int) -> None:
        """Move capacity into a range. What DynamoDB refuses is given up: auto scaling does not look again."""
        table = self.tables.get(name.table)
        if table is None or name.index not in table.resources:
            # CloudFormation deletes an index before the targets that it had
            return
        granted = table.resources[name.index].granted
        wanted = min(max(granted[name.dimension], low), high)
        if wanted == granted[name.dimension]:
            return
        try:
            table.change(name.index, {**granted, name.dimension: wanted}, at, by_autoscaling=True)
        except ClientError:
            return

    def next_run(self, after: int, end: int) -> int | None:
        """When the next scheduled action runs, up to *end*."""
        runs = (action.next_run(after) for target in self.targets.values() for action in target.actions.values())
        return min((run for run in runs if run is not None and run <= end), default=None)

    def run(self, at: int) -> None:
        """Run the scheduled actions of that second."""
        for name, target in self.targets.items():
            for action in target.actions.values():
                if action.next_run(at - 1) == at:
                    target.bounds = Bounds(*action.bounds(target.bounds.min, target.bounds.max))
                    self.move(name, target.bounds.min, target.bounds.max, at)

    def track(self, consumed_units: int, at: int) -> None:
        """Have the tracking policies lower what *consumed_units* a second do not need.

        They raise nothing to its floor (measured 2026-10: for half an hour, capacity below the minimum did not change).
        """
        for name, target in self.targets.items():
            if target.utilization_percent is not None:
                needed = -(-consumed_units * 100 // target.utilization_percent)
                self.move(name, 1, max(needed, target.bounds.min), at)


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
        MinCapacity: int,
        MaxCapacity: int,
        **_: Any,
    ) -> None:
        self._check("application-autoscaling:RegisterScalableTarget", SCALABLE_TARGET)
        name = TargetName.find(ResourceId, ScalableDimension)
        assert name is not None
        # it asks for these of the caller, and lists what is denied
        asked = ("dynamodb:DescribeTable", "dynamodb:UpdateTable")
        arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{name.table}"
        missing = [action for action in asked if not self.allowed(action, arn)]
        if missing:
            raise refused("ValidationException", f"User is missing the following permissions: {', '.join(missing)}")
        self.service.register(name, Bounds(MinCapacity, MaxCapacity), self.now())

    def get_paginator(self, operation: str) -> AutoscalingClient:
        assert operation == "describe_scalable_targets"
        return self

    def paginate(self, *, ResourceIds: list[str], **_: Any) -> Iterator[Document]:
        self._check("application-autoscaling:DescribeScalableTargets", "*")
        found = [
            {
                "ResourceId": name.resource_id,
                "ScalableDimension": name.scalable_dimension,
                "MinCapacity": target.bounds.min,
                "MaxCapacity": target.bounds.max,
            }
            for name, target in self.service.targets.items()
            if name.resource_id in ResourceIds
        ]
        date = format_datetime(datetime.fromtimestamp(self.now(), UTC), usegmt=True)
        yield {"ScalableTargets": found, "ResponseMetadata": {"HTTPHeaders": {"date": date}}}

    def _check(self, action: str, arn: str) -> None:
        if not self.allowed(action, arn):
            raise refused("AccessDeniedException", f"not authorized to perform: {action} on resource: {arn}")


def names_of(table: str, index: str | None) -> list[TargetName]:
    """The two targets of a table or index."""
    return [TargetName(table, index, dimension) for dimension in Dimension]


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
