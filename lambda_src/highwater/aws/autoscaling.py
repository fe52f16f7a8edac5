"""Application Auto Scaling: reading scalable targets with the service's time, setting bounds, suspending scaling."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

from highwater.calls.attempts import RARE, client_config
from highwater.core.names import TargetName
from highwater.core.schedule.bounds import Bounds

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient

# DescribeScalableTargets accepts up to 50 resource ids (Application Auto Scaling API Reference, read 2026-11)
_RESOURCES_PER_CALL = 50
_SUSPENDABLE = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")
# While a scaling activity is in progress, as often when an operator pauses it, other updates are rejected for some
# seconds (ConcurrentUpdateException; Application Auto Scaling API Reference, read 2026-11). botocore does not retry it.
_PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0)
# Status codes of attempts that came to nothing (Application Auto Scaling API Reference, ScalingActivity, read 2026-11)
_FAILED = ("Failed", "Unfulfilled")
# An older failure is no reason for what is missing now.
_OLDEST_FAILURE = timedelta(hours=1)


def client(region: str | None = None) -> ApplicationAutoScalingClient:
    """Create a client that retries throttled calls up to seven times: deploying many tables exceeds rate limits."""
    return boto3.client("application-autoscaling", config=client_config(RARE), region_name=region)


@dataclass(frozen=True, slots=True)
class RegisteredTargets:
    """Bounds and suspensions of scalable targets.

    Attributes:
        at: The service's time when it answered, in UTC.
        bounds: Bounds by resource id and scalable dimension.
        suspended: Resource ids and scalable dimensions of targets with any scaling suspended.
    """

    at: datetime
    bounds: dict[tuple[str, str], Bounds]
    suspended: frozenset[tuple[str, str]] = frozenset()

    def is_suspended(self, name: TargetName) -> bool:
        """Whether any scaling of the target is suspended, for example by `highwater pause`."""
        return (name.resource_id, name.scalable_dimension) in self.suspended

    def of(self, name: TargetName) -> Bounds | None:
        """Return the target's bounds, `None` if the target is not registered."""
        return self.bounds.get((name.resource_id, name.scalable_dimension))


def find_targets(autoscaling: ApplicationAutoScalingClient, table: str) -> list[TargetName]:
    """Read the names of the registered targets of a table and its indexes, the table's first."""
    names = []
    for page in autoscaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="dynamodb"):
        for target in page["ScalableTargets"]:
            name = TargetName.find(target["ResourceId"], target["ScalableDimension"])
            if name is not None and name.table == table:
                names.append(name)
    return sorted(names, key=lambda name: (name.index or "", name.dimension))


def read_targets(autoscaling: ApplicationAutoScalingClient, names: Iterable[TargetName]) -> RegisteredTargets:
    """Read the bounds and suspensions of *names*.

    `RegisteredTargets.at` is the `Date` header of the answer: scheduled actions run by the service's clock, which may
    differ from the caller's.
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


def read_failures(
    autoscaling: ApplicationAutoScalingClient, names: Iterable[TargetName], now: datetime
) -> Mapping[TargetName, str]:
    """Read why capacity could not be set, a sentence with AWS's message for each target whose last attempt failed.

    Asks once for each of *names*. An attempt more than an hour before *now* does not count.
    """
    found = {}
    for name in names:
        activities = autoscaling.describe_scaling_activities(
            ServiceNamespace="dynamodb",
            ResourceId=name.resource_id,
            ScalableDimension=name.scalable_dimension,  # type: ignore[arg-type] # a literal by construction
        )["ScalingActivities"]
        newest = max(activities, key=lambda each: each["StartTime"], default=None)
        if newest is None or newest["StatusCode"] not in _FAILED or now - newest["StartTime"] > _OLDEST_FAILURE:
            continue
        at, why = newest["StartTime"].astimezone(UTC), newest.get("StatusMessage", newest["Description"])
        found[name] = f"auto scaling could not set the capacity at {at:%Y-%m-%d %H:%M:%S} UTC: {' '.join(why.split())}"
    return found


def set_bounds(autoscaling: ApplicationAutoScalingClient, name: TargetName, bounds: Bounds) -> None:
    """Set floor and ceiling together. Application Auto Scaling at once moves capacity outside the bounds into them."""
    autoscaling.register_scalable_target(
        ServiceNamespace="dynamodb",
        ResourceId=name.resource_id,
        ScalableDimension=name.scalable_dimension,  # type: ignore[arg-type] # a literal by construction
        MinCapacity=bounds.min,
        MaxCapacity=bounds.max,
    )


def register_again(autoscaling: ApplicationAutoScalingClient, name: TargetName) -> None:
    """Register a target as it is, so that Application Auto Scaling moves capacity outside its bounds into them.

    It does so at each update of a target, also one without bounds, and at no other time (API Reference,
    RegisterScalableTarget, read 2026-11; that capacity below a floor stays there was measured, 2026-10). A request with
    bounds could undo those that another function, or a deploy, has just set.
    """
    autoscaling.register_scalable_target(
        ServiceNamespace="dynamodb",
        ResourceId=name.resource_id,
        ScalableDimension=name.scalable_dimension,  # type: ignore[arg-type] # a literal by construction
    )


def suspend(
    autoscaling: ApplicationAutoScalingClient,
    name: TargetName,
    *,
    suspended: bool,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Suspend or resume all scaling of a registered target. Its bounds do not change, but its capacity may.

    Application Auto Scaling at once moves capacity outside the bounds into them, even if the request contains no bounds
    (API Reference, RegisterScalableTarget, read 2026-11).

    If the target is being updated, the call is retried four times within a quarter of a minute.
    """
    _patiently(
        lambda: autoscaling.register_scalable_target(
            ServiceNamespace="dynamodb",
            ResourceId=name.resource_id,
            ScalableDimension=name.scalable_dimension,  # type: ignore[arg-type] # a literal by construction
            SuspendedState=dict.fromkeys(_SUSPENDABLE, suspended),  # type: ignore[arg-type] # the three members
        ),
        pause,
    )


def set_bounds_patiently(
    autoscaling: ApplicationAutoScalingClient,
    name: TargetName,
    bounds: Bounds,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Set floor and ceiling together, as `set_bounds` does; if the target is being updated, retry as `suspend` does."""
    _patiently(lambda: set_bounds(autoscaling, name, bounds), pause)


def _patiently(call: Callable[[], object], pause: Callable[[float], None]) -> None:
    for seconds in (*_PAUSES_SECONDS, None):
        try:
            call()
        except ClientError as error:
            if seconds is None or error.response["Error"]["Code"] != "ConcurrentUpdateException":
                raise
            pause(seconds)
        else:
            return


def service_time(metadata: Any) -> datetime:
    """Return the time of the service's answer, in UTC, to the second."""
    return parsedate_to_datetime(metadata["HTTPHeaders"]["date"]).astimezone(UTC)
