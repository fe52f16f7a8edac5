"""Application Auto Scaling: reading targets, setting their bounds, and the service's own time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from highwater.core.names import TargetName
from highwater.core.schedule.bounds import Bounds

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient

# DescribeScalableTargets takes up to 50 resource ids (Application Auto Scaling API Reference, read 2026-11)
_RESOURCES_PER_CALL = 50
_SUSPENDABLE = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")


def client(region: str | None = None) -> ApplicationAutoScalingClient:
    """A client that waits out rate limits, which mass deployments run into."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 8})
    return boto3.client("application-autoscaling", config=config, region_name=region)


@dataclass(frozen=True, slots=True)
class RegisteredTargets:
    """The bounds that targets have, and the service's time when it said so."""

    at: datetime
    bounds: dict[tuple[str, str], Bounds]
    suspended: frozenset[tuple[str, str]] = frozenset()

    def is_suspended(self, name: TargetName) -> bool:
        """Whether any scaling of the target is suspended: somebody paused it."""
        return (name.resource_id, name.scalable_dimension) in self.suspended

    def of(self, name: TargetName) -> Bounds | None:
        """The target's bounds, `None` where it is not registered."""
        return self.bounds.get((name.resource_id, name.scalable_dimension))


def find_targets(autoscaling: ApplicationAutoScalingClient, table: str) -> list[TargetName]:
    """The registered targets of a table and its indexes, the table's first."""
    found = []
    for page in autoscaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="dynamodb"):
        for target in page["ScalableTargets"]:
            name = TargetName.find(target["ResourceId"], target["ScalableDimension"])
            if name is not None and name.table == table:
                found.append(name)
    return sorted(found, key=lambda name: (name.index or "", name.dimension))


def read_targets(autoscaling: ApplicationAutoScalingClient, names: Iterable[TargetName]) -> RegisteredTargets:
    """Read the bounds of all *names*.

    The time is the answer's `Date` header: the clock that scheduled actions run by, whatever the caller's own says.
    """
    resource_ids = sorted({name.resource_id for name in names})
    bounds: dict[tuple[str, str], Bounds] = {}
    suspended = set()
    at = datetime.min.replace(tzinfo=UTC)
    for start in range(0, len(resource_ids), _RESOURCES_PER_CALL):
        pages = autoscaling.get_paginator("describe_scalable_targets").paginate(
            ServiceNamespace="dynamodb", ResourceIds=resource_ids[start : start + _RESOURCES_PER_CALL]
        )
        for page in pages:
            at = service_time(page["ResponseMetadata"])
            for target in page["ScalableTargets"]:
                key = (target["ResourceId"], target["ScalableDimension"])
                bounds[key] = Bounds(target["MinCapacity"], target["MaxCapacity"])
                if any(target.get("SuspendedState", {}).values()):
                    suspended.add(key)
    return RegisteredTargets(at, bounds, frozenset(suspended))


def set_bounds(autoscaling: ApplicationAutoScalingClient, name: TargetName, bounds: Bounds) -> None:
    """Set floor and ceiling together; capacity outside them is moved inside at once."""
    autoscaling.register_scalable_target(
        ServiceNamespace="dynamodb",
        ResourceId=name.resource_id,
        ScalableDimension=name.scalable_dimension,  # type: ignore[arg-type] # a literal by construction
        MinCapacity=bounds.min,
        MaxCapacity=bounds.max,
    )


def suspend(autoscaling: ApplicationAutoScalingClient, name: TargetName, *, suspended: bool) -> None:
    """Suspend all scaling of a registered target, or let it go on; its bounds and capacity stay as they are."""
    autoscaling.register_scalable_target(
        ServiceNamespace="dynamodb",
        ResourceId=name.resource_id,
        ScalableDimension=name.scalable_dimension,  # type: ignore[arg-type] # a literal by construction
        SuspendedState=dict.fromkeys(_SUSPENDABLE, suspended),  # type: ignore[arg-type] # the three members
    )


def service_time(metadata: Any) -> datetime:
    """When the service answered, in UTC, to the second."""
    return parsedate_to_datetime(metadata["HTTPHeaders"]["date"]).astimezone(UTC)
