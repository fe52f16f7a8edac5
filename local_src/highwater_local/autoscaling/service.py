"""Application Auto Scaling's behaviour: registering, clamping, scheduled actions, policies, activities."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from highwater.core.limits import MAX_SCHEDULED_ACTIONS_PER_TARGET
from highwater.core.plan.zones import find_zone
from highwater.core.tracking import Alarm
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_lab.services.timing import Timing
from highwater_local.autoscaling.records import (
    SERVICE_NAMESPACE,
    TRACKING,
    PolicyRecord,
    ScheduledActionRecord,
    ServiceError,
    TargetKey,
    TargetRecord,
    invalid,
)
from highwater_local.autoscaling.validation import refuse_wrong_member, refuse_wrong_metric
from highwater_local.dynamodb.tables import Tables

_MAX_POLICIES = 50
_KEPT_ACTIVITIES: Final = 5000
_SUSPENDABLE = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")
_ALARMS = ("AlarmHigh", "AlarmLow", "ProvisionedCapacityHigh", "ProvisionedCapacityLow")
# The thresholds of alarms on a custom metric do not depend on the capacity, so a policy has only these two
_OWN_METRIC_ALARMS = ("AlarmHigh", "AlarmLow")
# The delays of datapoints and alarms, which do not depend on the option for instant changes of tables
TIMING: Final = Timing()


class AutoScaling:
    """Application Auto Scaling of one account and region.

    Attributes:
        targets: The registered targets.
        activities: Each attempt to change capacity, as DescribeScalingActivities returns it, the newest first.
    """

    def __init__(self, account: str, region: str, tables: Tables, now: Callable[[], datetime]) -> None:
        self._account = account
        self._region = region
        self._tables = tables
        self._now = now
        self.targets: dict[TargetKey, TargetRecord] = {}
        self.activities: deque[dict[str, Any]] = deque(maxlen=_KEPT_ACTIVITIES)

    def register(
        self,
        key: TargetKey,
        minimum: int | None,
        maximum: int | None,
        role_arn: str | None = None,
        suspended: dict[str, bool] | None = None,
    ) -> TargetRecord:
        """Register or update a target and move its capacity inside the range at once; omitted values do not change."""
        target = self.targets.get(key)
        if target is None and (minimum is None or maximum is None):
            raise invalid("Both min capacity and max capacity are required to register.")
        low = minimum if minimum is not None else target.floor if target else 0
        high = maximum if maximum is not None else target.ceiling if target else 0
        _check_range(low, high)
        if self._tables.capacity(key) is None and target is None:
            raise invalid(f"DynamoDB table does not exist: {key.resource_id}")
        if target is None:
            target = TargetRecord(
                key=key,
                arn=f"arn:aws:application-autoscaling:{self._region}:{self._account}:scalable-target/{uuid.uuid4().hex}",
                floor=low,
                ceiling=high,
                role_arn=role_arn
                or f"arn:aws:iam::{self._account}:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
                "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable",
                created=self._now(),
                suspended=dict.fromkeys(_SUSPENDABLE, False),
            )
            self.targets[key] = target
        target.floor, target.ceiling = low, high
        target.role_arn = role_arn or target.role_arn
        target.suspended |= suspended or {}
        self._clamp(target)
        return target

    def deregister(self, key: TargetKey) -> None:
        """Remove a target with its policies and scheduled actions; its capacity does not change."""
        if key not in self.targets:
            raise ServiceError("ObjectNotFoundException", f"No scalable target found for {key.wording}")
        del self.targets[key]

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
        """Create or update a scheduled action; omitted start and end are removed, other omitted values are kept."""
        target = self._registered(key)
        old = target.actions.get(name)
        refuse_wrong_member("PutScheduledAction", "ScheduledActionName", name)
        if old is None and len(target.actions) >= MAX_SCHEDULED_ACTIONS_PER_TARGET:
            raise ServiceError(
                "LimitExceededException",
                f"Maximum number of scheduled actions ({MAX_SCHEDULED_ACTIONS_PER_TARGET}) exceeded for {key.wording}",
            )
        if not has_action and old is not None:
            minimum, maximum = old.change.min, old.change.max
        if minimum is None and maximum is None:
            raise invalid("At least one of minimum capacity and maximum capacity should be provided")
        if minimum is not None and maximum is not None:
            _check_range(minimum, maximum)
        schedule = schedule or (old.schedule if old else None)
        if schedule is None:
            raise invalid("Schedule is required for a new scheduled action")
        timezone = timezone or (old.timezone if old else None)
        zone = find_zone(timezone or "UTC")
        if zone is None:
            raise invalid(f"Invalid timezone: {timezone}")
        if start is not None and end is not None and end <= start:
            raise invalid("End time must be after start time")
        change = ScheduledChange(
            name=name,
            # a rate counts from the action's start, if it has one
            expression=self._expression(schedule, zone, start or self._now().replace(microsecond=0)),
            min=minimum,
            max=maximum,
            start=start,
            end=end,
            runs_at_start=True,
        )
        record = ScheduledActionRecord(
            arn=old.arn if old else self._arn("scheduledAction", key, f"scheduledActionName/{name}"),
            schedule=schedule,
            timezone=timezone,
            change=change,
            created=old.created if old else self._now(),
        )
        target.actions[name] = record
        return record

    def delete_action(self, key: TargetKey, name: str) -> None:
        """Delete a scheduled action; raises `ServiceError` if there is none."""
        target = self.targets.get(key)
        if target is None or name not in target.actions:
            raise ServiceError(
                "ObjectNotFoundException", f"No scheduled action found for {key.wording}, scheduled action name: {name}"
            )
        del target.actions[name]

    def put_policy(
        self, key: TargetKey, name: str, policy_type: str | None, configuration: dict[str, Any] | None
    ) -> PolicyRecord:
        """Create or update a target tracking policy, the only kind that DynamoDB supports."""
        target = self._registered(key)
        old = target.policies.get(name)
        kind = policy_type or (TRACKING if old else "StepScaling")
        if kind != TRACKING:
            raise invalid(f"{kind} is not supported for {key.wording}")
        refuse_wrong_member("PutScalingPolicy", "PolicyName", name)
        settings = configuration or (old.configuration if old else None)
        if not settings or "TargetValue" not in settings:
            raise invalid("Target tracking scaling policy configuration is required")
        if not 20 <= float(settings["TargetValue"]) <= 90:
            raise invalid("Target utilization must be between 20 and 90 for DynamoDB")
        refuse_wrong_metric(key, name, settings, target.policies)
        if old is None and len(target.policies) >= _MAX_POLICIES:
            raise ServiceError(
                "LimitExceededException", f"Maximum number of scaling policies exceeded for {key.wording}"
            )
        record = PolicyRecord(
            name=name,
            arn=old.arn if old else self._arn("scalingPolicy", key, f"policyName/{name}"),
            configuration=settings,
            alarms=old.alarms if old else [],
            created=old.created if old else self._now(),
        )
        kinds = _ALARMS if record.own_metric is None else _OWN_METRIC_ALARMS
        if len(record.alarms) != len(kinds):
            record.alarms = [self._alarm(key, kind) for kind in kinds]
        target.policies[name] = record
        return record

    def delete_policy(self, key: TargetKey, name: str) -> None:
        """Delete a policy; raises `ServiceError` if there is none."""
        target = self.targets.get(key)
        if target is None or name not in target.policies:
            raise ServiceError(
                "ObjectNotFoundException", f"No scaling policy found for {key.wording}, policy name: {name}"
            )
        del target.policies[name]

    def next_run(self, after: int) -> int | None:
        """Return the time later than *after* at which the next of all scheduled actions is due."""
        return min(
            (
                at
                for target in self.targets.values()
                for action in target.actions.values()
                if (at := action.next_run(after)) is not None
            ),
            default=None,
        )

    def run_due(self, at: int) -> None:
        """Run every scheduled action that is due in exactly that second, unless scheduled scaling is suspended."""
        for target in self.targets.values():
            for _, action in sorted(target.actions.items()):
                if action.next_run(at - 1) == at and not target.suspended["ScheduledScalingSuspended"]:
                    self._run(target, action)

    def track(self) -> None:
        """Let target tracking act on the minutes whose datapoints are available; to be called once a minute.

        An alarm's action is repeated every minute while it is in ALARM, so rejected changes are retried.
        """
        second = int(self._now().timestamp())
        newest = TIMING.newest_minute(second)
        for target in self.targets.values():
            if not target.policies:
                continue
            units = self._tables.capacity(target.key)
            # a target whose capacity is being changed is skipped: its alarm acts again in the next minute
            if units is None or self._tables.is_changing(target.key):
                continue
            for policy in target.policies.values():
                rules = policy.rules
                if rules is None:
                    continue
                consumed = self._tables.consumed(target.key, newest, rules.low_periods)
                if not consumed:
                    continue
                found = target.tracked(rules, consumed, len(consumed) - 1, units, second)
                if found is not None:
                    self._follow(target, policy, *found)

    def _clamp(self, target: TargetRecord, cause: str | None = None) -> None:
        """Move capacity inside the bounds, because of *cause*, or because the bound was set."""
        units = self._tables.capacity(target.key)
        wanted = None if units is None else target.clamped(units)
        if units is not None and wanted is not None:
            bound = "minimum" if wanted > units else "maximum"
            self._change(target.key, wanted, cause or f"{bound} capacity was set to {wanted}")

    def _run(self, target: TargetRecord, action: ScheduledActionRecord) -> None:
        """Set a scheduled action's bounds and clamp, unless the bounds would cross."""
        cause = f"scheduled action name {action.change.name} was triggered"
        floor, ceiling = action.change.bounds(target.floor, target.ceiling)
        if floor > ceiling:
            description = f"Setting min capacity to {floor} and max capacity to {ceiling}"
            reason = "Maximum capacity cannot be less than minimum capacity"
            self._record(target.key, description, cause, "Failed", reason)
            return
        target.floor, target.ceiling = floor, ceiling
        self._clamp(target, cause)

    def _follow(self, target: TargetRecord, policy: PolicyRecord, alarm: Alarm, wanted: int) -> None:
        """Carry out the change that an alarm asks for, unless that is suspended."""
        side = "Out" if alarm is Alarm.HIGH else "In"
        if target.suspended[f"DynamicScaling{side}Suspended"]:
            return
        name = next(told["AlarmName"] for told in policy.alarms if f"-{alarm}-" in told["AlarmName"])
        if self._change(target.key, wanted, f"monitor alarm {name} in state ALARM triggered policy {policy.name}"):
            target.cooldowns.note(alarm, int(self._now().timestamp()), wanted)

    def _change(self, key: TargetKey, units: int, cause: str) -> bool:
        """Change capacity and record the attempt; return whether it was accepted."""
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
        at = self._now().timestamp()
        activity = {
            "ActivityId": str(uuid.uuid4()),
            "Description": description,
            "Cause": cause,
            "StartTime": at,
            "EndTime": at,
            "StatusCode": status_code,
            "StatusMessage": status_message,
        }
        self.activities.appendleft(key.members | activity)

    def _registered(self, key: TargetKey) -> TargetRecord:
        if key not in self.targets:
            raise ServiceError("ObjectNotFoundException", f"No scalable target registered for {key.wording}")
        return self.targets[key]

    def _expression(self, schedule: str, zone: ZoneInfo, origin: datetime) -> Any:
        try:
            return parse_expression(schedule, zone, origin)
        except ValueError as unreadable:
            message = f"Invalid schedule expression: {schedule}"
            raise invalid(message) from unreadable

    def _alarm(self, key: TargetKey, kind: str) -> dict[str, str]:
        name = f"TargetTracking-{key.resource_id}-{kind}-{uuid.uuid4()}"
        return {"AlarmName": name, "AlarmARN": f"arn:aws:cloudwatch:{self._region}:{self._account}:alarm:{name}"}

    def _arn(self, kind: str, key: TargetKey, name: str) -> str:
        return (
            f"arn:aws:autoscaling:{self._region}:{self._account}:{kind}:{uuid.uuid4()}:resource/{SERVICE_NAMESPACE}/"
            f"{key.resource_id}:{name}"
        )


def _check_range(low: int, high: int) -> None:
    if low < 1:
        raise invalid(f"Minimum capacity must be at least 1, got {low}")
    if high < low:
        raise invalid("Maximum capacity cannot be less than minimum capacity")
