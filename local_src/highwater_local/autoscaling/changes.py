"""What Application Auto Scaling does to tables of this cloud, and its record of every attempt."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from highwater_lab.services.target_tracking import Alarm
from highwater_local.autoscaling.records import (
    ActivityRecord,
    PolicyRecord,
    ScheduledActionRecord,
    ServiceError,
    TargetKey,
    TargetRecord,
)

_KEPT_ACTIVITIES: Final = 5000


class Tables(Protocol):
    """What auto scaling sees of DynamoDB."""

    def capacity(self, key: TargetKey) -> int | None:
        """Provisioned units per second, `None` where no such provisioned resource is."""
        ...

    def is_changing(self, key: TargetKey) -> bool:
        """Whether a change of the capacity of the target's resource is under way."""
        ...

    def set_capacity(self, key: TargetKey, units: int) -> None:
        """Change provisioned units; raises `ServiceError` as UpdateTable does."""
        ...

    def consumed(self, key: TargetKey, newest: int, count: int) -> list[int]:
        """Quanta consumed in the *count* minutes up to *newest*, fewer where the table is younger."""
        ...


class Changes:
    """Carries out what bounds, scheduled actions and policies ask for.

    Attributes:
        activities: Each attempt, the newest first.
    """

    def __init__(self, tables: Tables, now: Callable[[], datetime]) -> None:
        self._tables = tables
        self._now = now
        self.activities: deque[ActivityRecord] = deque(maxlen=_KEPT_ACTIVITIES)

    def clamp(self, target: TargetRecord, cause: str | None = None) -> None:
        """Move capacity inside the bounds, because of *cause*, or because the bound was set."""
        units = self._tables.capacity(target.key)
        wanted = None if units is None else target.clamped(units)
        if units is not None and wanted is not None:
            bound = "minimum" if wanted > units else "maximum"
            self._change(target.key, wanted, cause or f"{bound} capacity was set to {wanted}")

    def run(self, target: TargetRecord, action: ScheduledActionRecord) -> None:
        """Set a scheduled action's bounds and clamp, unless the bounds would cross."""
        cause = f"scheduled action name {action.change.name} was triggered"
        floor, ceiling = action.change.bounds(target.floor, target.ceiling)
        if floor > ceiling:
            description = f"Setting min capacity to {floor} and max capacity to {ceiling}"
            reason = "Maximum capacity cannot be less than minimum capacity"
            self._record(target.key, description, cause, "Failed", reason)
            return
        target.floor, target.ceiling = floor, ceiling
        self.clamp(target, cause)

    def follow(self, target: TargetRecord, policy: PolicyRecord, alarm: Alarm, wanted: int) -> None:
        """Do what an alarm asks for, unless that is suspended."""
        side = "Out" if alarm is Alarm.HIGH else "In"
        if target.suspended[f"DynamicScaling{side}Suspended"]:
            return
        name = next(told["AlarmName"] for told in policy.alarms if f"-{alarm}-" in told["AlarmName"])
        if self._change(target.key, wanted, f"monitor alarm {name} in state ALARM triggered policy {policy.name}"):
            target.cooldowns.note(alarm, int(self._now().timestamp()), wanted)

    def _change(self, key: TargetKey, units: int, cause: str) -> bool:
        """Change capacity and record the attempt; whether it went through."""
        description = f"Setting {key.dimension} capacity units to {units}."
        try:
            self._tables.set_capacity(key, units)
        except ServiceError as refused:
            reason = refused.message
            if reason.startswith("Subscriber limit exceeded"):
                reason = f"Failed updating table: {reason}"
            failure = f"Failed to set {key.dimension} capacity units to {units}. Reason: {reason}"
            self._record(key, description, cause, "Failed", failure)
            return False
        success = (
            f"Successfully set {key.dimension} capacity units to {units}. Change successfully fulfilled by dynamodb."
        )
        self._record(key, description, cause, "Successful", success)
        return True

    def _record(self, key: TargetKey, description: str, cause: str, status_code: str, status_message: str) -> None:
        self.activities.appendleft(
            ActivityRecord(str(uuid.uuid4()), key, description, cause, self._now(), status_code, status_message)
        )
