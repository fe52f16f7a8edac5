"""Records of Application Auto Scaling: targets, policies and scheduled actions, and the errors of its requests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.tracking import TargetTracking
from highwater_lab.services.autoscaling import ScalableTarget, ScheduledChange

SERVICE_NAMESPACE = "dynamodb"
TRACKING: Final = "TargetTrackingScaling"
_RESOURCE = re.compile(r"table/(?P<table>[a-zA-Z0-9_.-]+)(/index/(?P<index>[a-zA-Z0-9_.-]+))?")
_DIMENSIONS = {
    "dynamodb:table:ReadCapacityUnits": ("table", Dimension.READ),
    "dynamodb:table:WriteCapacityUnits": ("table", Dimension.WRITE),
    "dynamodb:index:ReadCapacityUnits": ("index", Dimension.READ),
    "dynamodb:index:WriteCapacityUnits": ("index", Dimension.WRITE),
}


class ServiceError(Exception):
    """An error answer: code, message, and HTTP 400."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}")


def invalid(message: str) -> ServiceError:
    """Return the error of an invalid request."""
    return ServiceError("ValidationException", message)


@dataclass(frozen=True, slots=True)
class TargetKey:
    """The identity of a scalable target of DynamoDB."""

    resource_id: str
    scalable_dimension: str

    @property
    def table(self) -> str:
        """The table's name."""
        return str(self._parts["table"])

    @property
    def index(self) -> str | None:
        """The index's name, `None` for the table itself."""
        index = self._parts["index"]
        return None if index is None else str(index)

    @property
    def dimension(self) -> Dimension:
        """READ or WRITE."""
        return _DIMENSIONS[self.scalable_dimension][1]

    @property
    def _parts(self) -> Any:
        match = _RESOURCE.fullmatch(self.resource_id)
        assert match is not None  # noqa: S101 - `target_key` made it
        return match

    @property
    def members(self) -> dict[str, Any]:
        """The members of requests and answers that name the target."""
        return {
            "ServiceNamespace": SERVICE_NAMESPACE,
            "ResourceId": self.resource_id,
            "ScalableDimension": self.scalable_dimension,
        }

    @property
    def wording(self) -> str:
        """The target's name in error texts."""
        return (
            f"service namespace: {SERVICE_NAMESPACE}, resource ID: {self.resource_id}, "
            f"scalable dimension: {self.scalable_dimension}"
        )


def target_key(namespace: str, resource_id: str, dimension: str) -> TargetKey:
    """Return the key for a request's members; raises `ServiceError` if they do not name a DynamoDB target."""
    if namespace != SERVICE_NAMESPACE:
        raise invalid(f"Unsupported service namespace: {namespace}")
    match = _RESOURCE.fullmatch(resource_id)
    if match is None:
        raise invalid(f"Unsupported resource ID: {resource_id}")
    if dimension not in _DIMENSIONS or (_DIMENSIONS[dimension][0] == "index") != (match["index"] is not None):
        raise invalid(f"Unsupported service namespace, resource type or scalable dimension: {dimension}")
    return TargetKey(resource_id, dimension)


@dataclass(slots=True)
class ScheduledActionRecord:
    """A scheduled action as put."""

    arn: str
    schedule: str
    timezone: str | None
    change: ScheduledChange
    created: datetime
    _found: tuple[int, int | None] | None = None

    def next_run(self, after: int) -> int | None:
        """Return the first run later than *after*; cached until that run is over."""
        if self._found is None or after < self._found[0] or (self._found[1] is not None and after >= self._found[1]):
            self._found = (after, self.change.next_run(after))
        return self._found[1]


@dataclass(slots=True)
class PolicyRecord:
    """A scaling policy as put; it is a target tracking policy, the only kind that DynamoDB supports."""

    name: str
    arn: str
    configuration: dict[str, Any]
    alarms: list[dict[str, str]]
    created: datetime

    @property
    def own_metric(self) -> dict[str, Any] | None:
        """The policy's custom metric, `None` for a policy on DynamoDB's utilization."""
        found: dict[str, Any] | None = self.configuration.get("CustomizedMetricSpecification") or None
        return found

    @property
    def rules(self) -> TargetTracking | None:
        """The policy for the lab's rules; `None` for a policy on a custom metric."""
        settings = self.configuration
        if self.own_metric is not None:
            return None
        return TargetTracking(
            target_percent=round(float(settings["TargetValue"])),
            scale_in_cooldown=int(settings.get("ScaleInCooldown") or 0),
            scale_out_cooldown=int(settings.get("ScaleOutCooldown") or 0),
            disable_scale_in=bool(settings.get("DisableScaleIn")),
        )


@dataclass(slots=True, kw_only=True, eq=False)
class TargetRecord(ScalableTarget):
    """A registered scalable target with its policies and scheduled actions."""

    key: TargetKey
    arn: str
    role_arn: str
    created: datetime
    suspended: dict[str, bool]
    policies: dict[str, PolicyRecord] = field(default_factory=dict)
    actions: dict[str, ScheduledActionRecord] = field(default_factory=dict)
