"""What Application Auto Scaling remembers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from highwater.core import Dimension
from highwater_lab.services.schedules import Expression
from highwater_lab.services.target_tracking import Cooldowns

SERVICE_NAMESPACE = "dynamodb"
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


@dataclass(frozen=True, slots=True)
class TargetKey:
    """What names a scalable target of DynamoDB."""

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
    def wording(self) -> str:
        """How error texts name the target."""
        return (
            f"service namespace: {SERVICE_NAMESPACE}, resource ID: {self.resource_id}, "
            f"scalable dimension: {self.scalable_dimension}"
        )


def target_key(namespace: str, resource_id: str, dimension: str) -> TargetKey:
    """The key for a request's members; raises `ServiceError` for what is no DynamoDB target."""
    if namespace != SERVICE_NAMESPACE:
        raise ServiceError("ValidationException", f"Unsupported service namespace: {namespace}")
    match = _RESOURCE.fullmatch(resource_id)
    if match is None:
        raise ServiceError("ValidationException", f"Unsupported resource ID: {resource_id}")
    if dimension not in _DIMENSIONS or (_DIMENSIONS[dimension][0] == "index") != (match["index"] is not None):
        raise ServiceError(
            "ValidationException", f"Unsupported service namespace, resource type or scalable dimension: {dimension}"
        )
    return TargetKey(resource_id, dimension)


@dataclass(slots=True)
class ScheduledActionRecord:
    """A scheduled action as put."""

    name: str
    arn: str
    schedule: str
    timezone: str | None
    expression: Expression
    minimum: int | None
    maximum: int | None
    start: datetime | None
    end: datetime | None
    created: datetime
    _found: tuple[datetime, datetime | None] | None = None

    def next_run(self, after: datetime) -> datetime | None:
        """The first run later than *after*: at its start if it has one, then by its schedule, until its end."""
        if self._found is not None and self._found[0] <= after and (self._found[1] is None or after < self._found[1]):
            return self._found[1]
        if self.start is not None and self.start > after:
            at: datetime | None = self.start
        else:
            at = self.expression.next_run(after)
        if at is not None and self.end is not None and at > self.end:
            at = None
        self._found = (after, at)
        return at


@dataclass(slots=True)
class PolicyRecord:
    """A scaling policy as put."""

    name: str
    arn: str
    policy_type: str
    configuration: dict[str, Any]
    alarms: list[dict[str, str]]
    created: datetime


@dataclass(slots=True)
class TargetRecord:
    """A registered scalable target with its policies and scheduled actions."""

    key: TargetKey
    arn: str
    minimum: int
    maximum: int
    role_arn: str
    created: datetime
    suspended: dict[str, bool]
    cooldowns: Cooldowns = field(default_factory=Cooldowns)
    policies: dict[str, PolicyRecord] = field(default_factory=dict)
    actions: dict[str, ScheduledActionRecord] = field(default_factory=dict)


@dataclass(slots=True)
class ActivityRecord:
    """One attempt to change capacity."""

    activity_id: str
    key: TargetKey
    description: str
    cause: str
    start: datetime
    status_code: str
    status_message: str
