"""Records of Application Auto Scaling: targets, policies and scheduled actions, and the errors of its requests."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.tracking import TargetTracking
from highwater_lab.services.autoscaling import ScalableTarget, ScheduledChange
from highwater_lab.services.timing import Timing

_TIMING: Final = Timing()
SERVICE_NAMESPACE = "dynamodb"
TRACKING: Final = "TargetTrackingScaling"
_RESOURCE = re.compile(r"table/(?P<table>[a-zA-Z0-9_.-]+)(/index/(?P<index>[a-zA-Z0-9_.-]+))?")
_DIMENSIONS = {
    "dynamodb:table:ReadCapacityUnits": ("table", Dimension.READ),
    "dynamodb:table:WriteCapacityUnits": ("table", Dimension.WRITE),
    "dynamodb:index:ReadCapacityUnits": ("index", Dimension.READ),
    "dynamodb:index:WriteCapacityUnits": ("index", Dimension.WRITE),
}


class AlarmKind(StrEnum):
    """What an alarm of a target tracking policy watches, as its name says."""

    HIGH = "AlarmHigh"
    LOW = "AlarmLow"
    PROVISIONED_HIGH = "ProvisionedCapacityHigh"
    PROVISIONED_LOW = "ProvisionedCapacityLow"


def uuid_of(*parts: object) -> str:
    """Return a UUID that depends on the parts alone, so that runs repeat."""
    digest = hashlib.md5("/".join(map(str, parts)).encode(), usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=4))


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
    def of_table(self) -> TargetKey:
        """The same dimension of the table."""
        dimension = self.scalable_dimension.replace(":index:", ":table:")
        return TargetKey(f"table/{self.table}", dimension)

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
    """A scheduled action as put; *put* is when, in seconds since 1970: it does not run for times before."""

    arn: str
    key: TargetKey
    schedule: str
    timezone: str | None
    change: ScheduledChange
    created: datetime
    put: int
    _found: tuple[int, int | None] | None = None

    def next_run(self, after: int) -> int | None:
        """Return when it first runs later than *after*; cached until that run is over."""
        if self._found is None or after < self._found[0] or (self._found[1] is not None and after >= self._found[1]):
            self._found = (after, self._next_run(after))
        return self._found[1]

    def _next_run(self, after: int) -> int | None:
        due = self.change.next_run(max(after - _TIMING.scheduled_most, self.put))
        while due is not None:
            target = f"{self.key.resource_id}/{self.key.scalable_dimension}"
            run = due + _TIMING.scheduled_lateness(f"{target}/{self.change.name}", due)
            if run > after:
                return run
            due = self.change.next_run(due)
        return None


@dataclass(slots=True)
class PolicyRecord:
    """A scaling policy as put; it is a target tracking policy, the only kind that DynamoDB supports."""

    name: str
    arn: str
    configuration: dict[str, Any]
    created: datetime
    created_by: str
    # of which its alarms' thresholds are
    units: int = 0
    alarms: dict[AlarmKind, dict[str, str]] = field(default_factory=dict)

    @property
    def rules(self) -> TargetTracking:
        """The policy for the lab's rules."""
        settings = self.configuration
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
    # when the last activity of target tracking ends, in seconds since 1970
    busy_until: float = 0
    policies: dict[str, PolicyRecord] = field(default_factory=dict)
    actions: dict[str, ScheduledActionRecord] = field(default_factory=dict)
