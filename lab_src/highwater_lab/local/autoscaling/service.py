"""Application Auto Scaling's behaviour: registering, clamping, scheduled actions, policies, activities."""

from __future__ import annotations

import re
import uuid
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from highwater.core.limits import MAX_SCHEDULED_ACTIONS_PER_TARGET
from highwater.core.plan.zones import find_zone
from highwater_lab.local.autoscaling.records import (
    SERVICE_NAMESPACE,
    ActivityRecord,
    PolicyRecord,
    ScheduledActionRecord,
    ServiceError,
    TargetKey,
    TargetRecord,
)
from highwater_lab.local.autoscaling.tracking import newest_minute, rules_of
from highwater_lab.services.schedules import parse_expression
from highwater_lab.services.target_tracking import Alarm

# Names of scheduled actions: model of the API, botocore 1.43
_ACTION_NAME = re.compile(r"(?!((^[ ]+.*)|(.*([\x00-\x1f]|[\x7f-\x9f]|[:/|])+.*)|(.*[ ]+$))).+")
_MAX_POLICIES = 50
_KEPT_ACTIVITIES = 5000


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


class AutoScaling:
    """Application Auto Scaling of one account and region."""

    def __init__(self, account: str, region: str, tables: Tables, now: Callable[[], datetime]) -> None:
        self._account = account
        self._region = region
        self._tables = tables
        self._now = now
        self.targets: dict[TargetKey, TargetRecord] = {}
        self.activities: deque[ActivityRecord] = deque(maxlen=_KEPT_ACTIVITIES)

    def register(
        self,
        key: TargetKey,
        minimum: int | None,
        maximum: int | None,
        role_arn: str | None = None,
        suspended: dict[str, bool] | None = None,
    ) -> TargetRecord:
        """Register or update a target and move its capacity inside the range at once; what is omitted is kept."""
        target = self.targets.get(key)
        if target is None and (minimum is None or maximum is None):
            raise ServiceError("ValidationException", "Both min capacity and max capacity are required to register.")
        low = minimum if minimum is not None else target.minimum if target else 0
        high = maximum if maximum is not None else target.maximum if target else 0
        _check_range(low, high)
        if self._tables.capacity(key) is None and target is None:
            raise ServiceError("ValidationException", f"DynamoDB table does not exist: {key.resource_id}")
        if target is None:
            target = TargetRecord(
                key=key,
                arn=f"arn:aws:application-autoscaling:{self._region}:{self._account}:scalable-target/{uuid.uuid4().hex}",
                minimum=low,
                maximum=high,
                role_arn=role_arn
                or f"arn:aws:iam::{self._account}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
                "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable",
                created=self._now(),
                suspended=dict.fromkeys(_SUSPENDABLE, False),
            )
            self.targets[key] = target
        target.minimum, target.maximum = low, high
        target.role_arn = role_arn or target.role_arn
        target.suspended |= suspended or {}
        self._clamp(target, lambda bound, units: f"{bound} capacity was set to {units}")
        return target

    def deregister(self, key: TargetKey) -> None:
        """Forget a target with its policies and scheduled actions; its capacity stays as it is."""
        self.find(key)
        del self.targets[key]

    def find(self, key: TargetKey) -> TargetRecord:
        """The registered target; raises `ServiceError` where there is none."""
        if key not in self.targets:
            raise ServiceError("ObjectNotFoundException", f"No scalable target found for {key.wording}")
        return self.targets[key]

    def put_action(
        self,
        key: TargetKey,
        name: str,
        schedule: str | None,
        timezone: str | None,
        minimum: int | None,
        maximum: int | None,
        has_action: bool,
        start: datetime | None,
        end: datetime | None,
    ) -> ScheduledActionRecord:
        """Create or update a scheduled action; start and end that are not given are dropped, all else is kept."""
        target = self._registered(key)
        old = target.actions.get(name)
        if not _ACTION_NAME.fullmatch(name) or len(name) > 256:
            raise ServiceError("ValidationException", f"Invalid scheduled action name: {name}")
        if old is None and len(target.actions) >= MAX_SCHEDULED_ACTIONS_PER_TARGET:
            raise ServiceError(
                "LimitExceededException",
                f"Maximum number of scheduled actions ({MAX_SCHEDULED_ACTIONS_PER_TARGET}) exceeded for {key.wording}",
            )
        if not has_action and old is not None:
            minimum, maximum = old.minimum, old.maximum
        if minimum is None and maximum is None:
            raise ServiceError(
                "ValidationException", "At least one of minimum capacity and maximum capacity should be provided"
            )
        if minimum is not None and maximum is not None:
            _check_range(minimum, maximum)
        schedule = schedule or (old.schedule if old else None)
        if schedule is None:
            raise ServiceError("ValidationException", "Schedule is required for a new scheduled action")
        timezone = timezone or (old.timezone if old else None)
        zone = find_zone(timezone or "UTC")
        if zone is None:
            raise ServiceError("ValidationException", f"Invalid timezone: {timezone}")
        if start is not None and end is not None and end <= start:
            raise ServiceError("ValidationException", "End time must be after start time")
        record = ScheduledActionRecord(
            name=name,
            arn=old.arn if old else self._arn("scheduledAction", key, f"scheduledActionName/{name}"),
            schedule=schedule,
            timezone=timezone,
            expression=self._expression(schedule, zone),
            minimum=minimum,
            maximum=maximum,
            start=start,
            end=end,
            created=old.created if old else self._now(),
        )
        target.actions[name] = record
        return record

    def delete_action(self, key: TargetKey, name: str) -> None:
        """Delete a scheduled action; raises `ServiceError` where there is none."""
        target = self.targets.get(key)
        if target is None or name not in target.actions:
            raise ServiceError(
                "ObjectNotFoundException", f"No scheduled action found for {key.wording}, scheduled action name: {name}"
            )
        del target.actions[name]

    def put_policy(
        self, key: TargetKey, name: str, policy_type: str | None, configuration: dict[str, Any] | None
    ) -> PolicyRecord:
        """Create or update a target tracking policy, the one kind that DynamoDB takes."""
        target = self._registered(key)
        old = target.policies.get(name)
        kind = policy_type or (old.policy_type if old else "StepScaling")
        if kind != "TargetTrackingScaling":
            raise ServiceError("ValidationException", f"{kind} is not supported for {key.wording}")
        settings = configuration or (old.configuration if old else None)
        if not settings or "TargetValue" not in settings:
            raise ServiceError("ValidationException", "Target tracking scaling policy configuration is required")
        if not 20 <= float(settings["TargetValue"]) <= 90:
            raise ServiceError("ValidationException", "Target utilization must be between 20 and 90 for DynamoDB")
        if old is None and len(target.policies) >= _MAX_POLICIES:
            raise ServiceError(
                "LimitExceededException", f"Maximum number of scaling policies exceeded for {key.wording}"
            )
        record = PolicyRecord(
            name=name,
            arn=old.arn if old else self._arn("scalingPolicy", key, f"policyName/{name}"),
            policy_type=kind,
            configuration=settings,
            alarms=old.alarms if old else self._alarms(key),
            created=old.created if old else self._now(),
        )
        target.policies[name] = record
        return record

    def delete_policy(self, key: TargetKey, name: str) -> None:
        """Delete a policy; raises `ServiceError` where there is none."""
        target = self.targets.get(key)
        if target is None or name not in target.policies:
            raise ServiceError(
                "ObjectNotFoundException", f"No scaling policy found for {key.wording}, policy name: {name}"
            )
        del target.policies[name]

    def next_run(self, after: datetime) -> datetime | None:
        """When the next scheduled action is due later than *after*, whichever it is."""
        return min(
            (
                at
                for target in self.targets.values()
                for action in target.actions.values()
                if (at := action.next_run(after)) is not None
            ),
            default=None,
        )

    def run_due(self, at: datetime) -> None:
        """Run every scheduled action that is due at just that instant."""
        for target in self.targets.values():
            for action in sorted(target.actions.values(), key=lambda action: action.name):
                if action.next_run(at - timedelta(seconds=1)) == at:
                    self.run_action(target, action)

    def run_action(self, target: TargetRecord, action: ScheduledActionRecord) -> None:
        """Set the action's bounds and clamp, unless scheduled scaling is suspended or the bounds would cross."""
        if target.suspended["ScheduledScalingSuspended"]:
            return
        low = target.minimum if action.minimum is None else action.minimum
        high = target.maximum if action.maximum is None else action.maximum
        if low > high:
            self._record(
                target.key,
                f"Setting min capacity to {low} and max capacity to {high}",
                f"scheduled action name {action.name} was triggered",
                "Failed",
                "Maximum capacity cannot be less than minimum capacity",
            )
            return
        target.minimum, target.maximum = low, high
        self._clamp(target, lambda _bound, _units: f"scheduled action name {action.name} was triggered")

    def track(self) -> None:
        """Let target tracking act on the minutes whose datapoints have come; to be called once a minute.

        An alarm's action is repeated every minute while it is in ALARM, so what was refused is tried again.
        """
        now = self._now()
        newest = newest_minute(now)
        for target in self.targets.values():
            if not target.policies:
                continue
            units = self._tables.capacity(target.key)
            # what is being changed is left alone: alarms still ask for it in the next minute
            if units is None or self._tables.is_changing(target.key):
                continue
            for policy in target.policies.values():
                rules = rules_of(policy)
                if rules is None:
                    continue
                consumed = self._tables.consumed(target.key, newest, rules.low_periods)
                if not consumed:
                    continue
                bounds = (target.minimum, target.maximum)
                found = rules.decide(consumed, len(consumed) - 1, units, bounds, target.cooldowns, int(now.timestamp()))
                if found is not None:
                    self._follow(target, policy, *found)

    def _follow(self, target: TargetRecord, policy: PolicyRecord, alarm: Alarm, wanted: int) -> None:
        """Do what an alarm asks for, unless that is suspended."""
        side = "Out" if alarm is Alarm.HIGH else "In"
        if target.suspended[f"DynamicScaling{side}Suspended"]:
            return
        name = next(told["AlarmName"] for told in policy.alarms if f"-{alarm}-" in told["AlarmName"])
        if self._change(target.key, wanted, f"monitor alarm {name} in state ALARM triggered policy {policy.name}"):
            target.cooldowns.note(alarm, int(self._now().timestamp()), wanted)

    def _clamp(self, target: TargetRecord, cause: Callable[[str, int], str]) -> None:
        units = self._tables.capacity(target.key)
        if units is None:
            return
        if units < target.minimum:
            self._change(target.key, target.minimum, cause("minimum", target.minimum))
        elif units > target.maximum:
            self._change(target.key, target.maximum, cause("maximum", target.maximum))

    def _change(self, key: TargetKey, units: int, cause: str) -> bool:
        """Change capacity and record the attempt; whether it went through."""
        description = f"Setting {key.dimension} capacity units to {units}."
        try:
            self._tables.set_capacity(key, units)
        except ServiceError as refused:
            reason = refused.message
            if reason.startswith("Subscriber limit exceeded"):
                reason = f"Failed updating table: {reason}"
            self._record(
                key,
                description,
                cause,
                "Failed",
                f"Failed to set {key.dimension} capacity units to {units}. Reason: {reason}",
            )
            return False
        self._record(
            key,
            description,
            cause,
            "Successful",
            f"Successfully set {key.dimension} capacity units to {units}. Change successfully fulfilled by dynamodb.",
        )
        return True

    def _record(self, key: TargetKey, description: str, cause: str, status_code: str, status_message: str) -> None:
        self.activities.appendleft(
            ActivityRecord(str(uuid.uuid4()), key, description, cause, self._now(), status_code, status_message)
        )

    def _registered(self, key: TargetKey) -> TargetRecord:
        if key not in self.targets:
            raise ServiceError("ObjectNotFoundException", f"No scalable target registered for {key.wording}")
        return self.targets[key]

    def _expression(self, schedule: str, zone: ZoneInfo) -> Any:
        try:
            return parse_expression(schedule, zone, self._now())
        except ValueError as unreadable:
            message = f"Invalid schedule expression: {schedule}"
            raise ServiceError("ValidationException", message) from unreadable

    def _alarms(self, key: TargetKey) -> list[dict[str, str]]:
        alarms = []
        for kind in ("AlarmHigh", "AlarmLow", "ProvisionedCapacityHigh", "ProvisionedCapacityLow"):
            name = f"TargetTracking-{key.resource_id}-{kind}-{uuid.uuid4()}"
            arn = f"arn:aws:cloudwatch:{self._region}:{self._account}:alarm:{name}"
            alarms.append({"AlarmName": name, "AlarmARN": arn})
        return alarms

    def _arn(self, kind: str, key: TargetKey, name: str) -> str:
        return (
            f"arn:aws:autoscaling:{self._region}:{self._account}:{kind}:{uuid.uuid4()}:resource/{SERVICE_NAMESPACE}/"
            f"{key.resource_id}:{name}"
        )


_SUSPENDABLE = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")


def _check_range(low: int, high: int) -> None:
    if low < 1:
        raise ServiceError("ValidationException", f"Minimum capacity must be at least 1, got {low}")
    if high < low:
        raise ServiceError("ValidationException", "Maximum capacity cannot be less than minimum capacity")
