"""Application Auto Scaling's behaviour: registering, clamping, scheduled actions, policies, activities."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from highwater.core.limits import MAX_SCHEDULED_ACTIONS_PER_TARGET
from highwater.core.plan.zones import find_zone
from highwater.core.tracking import Alarm, TargetTracking
from highwater_lab.physics.partitions import hash_of
from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.services.schedules import parse_expression
from highwater_local import ministack
from highwater_local.autoscaling.alarms import delete_alarms, kinds_of, put_alarms
from highwater_local.autoscaling.records import (
    SERVICE_NAMESPACE,
    TRACKING,
    AlarmKind,
    PolicyRecord,
    ScheduledActionRecord,
    ServiceError,
    TargetKey,
    TargetRecord,
    invalid,
    uuid_of,
)
from highwater_local.autoscaling.validation import refuse_wrong_member, refuse_wrong_metric
from highwater_local.dynamodb.resources import is_on_demand
from highwater_local.dynamodb.tables import Tables

_KEPT_ACTIVITIES: Final = 5000
_SUSPENDABLE = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")
# From an activity's start to its end: 32.2 to 36.1 s (recorded: radkawar/stackd 9dc356f,
# applicationautoscaling/dynamodb_maintenance)
_SHORTEST_ACTIVITY: Final = 32
_ACTIVITY_SPREAD: Final = 5
# From a scheduled action's own record to that of the change, and how long its own takes (recorded: as above,
# activity_lifecycle)
_CHANGE_AFTER: Final = 0.2
_ACTION_TAKES: Final = 0.005
_SET: Final = "Successfully set"
Activity = dict[str, Any]


class AutoScaling:
    """Application Auto Scaling of one account and region.

    With *is_instant*, an activity ends when it starts. *assume_role* is called before a target is registered, and
    raises `ServiceError` if the service-linked role cannot be assumed; without it, it always can.

    Attributes:
        targets: The registered targets.
    """

    def __init__(
        self,
        account: str,
        region: str,
        tables: Tables,
        now: Callable[[], datetime],
        *,
        is_instant: bool = False,
        assume_role: Callable[[], None] | None = None,
    ) -> None:
        self._account = account
        self._region = region
        self._tables = tables
        self._now = now
        self._is_instant = is_instant
        self._assume_role = assume_role
        self.targets: dict[TargetKey, TargetRecord] = {}
        # each attempt to change capacity, the newest first; activities outlive their targets
        self._activities: deque[Activity] = deque(maxlen=_KEPT_ACTIVITIES)
        self._not_scaled: dict[TargetKey, Activity] = {}
        self._made: Counter[tuple[object, ...]] = Counter()

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
        if self._assume_role is not None:
            self._assume_role()
        if (table := ministack.tables().get(key.table)) is not None and is_on_demand(table):
            # recorded: radkawar/stackd 9dc356f, dynamodb/controls
            raise invalid(
                "Validation failed for scalable target. Reason: PAY_PER_REQUEST table mode is not scalable.",
            )
        if self._tables.capacity(key) is None and target is None:
            raise invalid(f"DynamoDB table does not exist: {key.resource_id}")
        if target is None:
            suffix = self._uuid(key, "target").replace("-", "")
            target = TargetRecord(
                key=key,
                arn=f"arn:aws:application-autoscaling:{self._region}:{self._account}:scalable-target/{suffix}",
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
        for policy in self.targets.pop(key).policies.values():
            delete_alarms(policy.alarms.values())

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
            key=key,
            schedule=schedule,
            timezone=timezone,
            change=change,
            created=old.created if old else self._now(),
            put=int(self._now().timestamp()),
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
        record = PolicyRecord(
            name=name,
            arn=old.arn if old else self._arn("scalingPolicy", key, f"policyName/{name}"),
            configuration=settings,
            created=old.created if old else self._now(),
            created_by=old.created_by if old else self._uuid(key, "createdBy", name),
        )
        target.policies[name] = record
        if old is not None and _watches(old) == _watches(record):
            # also if somebody else has changed the capacity since (recorded: radkawar/stackd 9dc356f,
            # applicationautoscaling/dynamodb_maintenance)
            record.alarms, record.units = old.alarms, old.units
        else:
            self._put_alarms(key, record, self._tables.capacity(key) or 0, {} if old is None else old.alarms)
        return record

    def delete_policy(self, key: TargetKey, name: str) -> None:
        """Delete a policy; raises `ServiceError` if there is none."""
        target = self.targets.get(key)
        if target is None or name not in target.policies:
            raise ServiceError(
                "ObjectNotFoundException", f"No scaling policy found for {key.wording}, policy name: {name}"
            )
        delete_alarms(target.policies.pop(name).alarms.values())

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

    def act(self, alarm_name: str, values: list[float]) -> None:
        """Carry out the action of an alarm that is in ALARM, given its newest datapoints, at once."""
        for target in self.targets.values():
            for policy in target.policies.values():
                for kind, told in policy.alarms.items():
                    if told["AlarmName"] == alarm_name:
                        self._act(target, policy, kind, values[-1])
                        return

    def described_activities(self, *, with_not_scaled: bool) -> Iterator[Activity]:
        """Yield each attempt to change capacity as it is now, the newest first."""
        now = self._now().timestamp()
        for activity in self._activities:
            if "NotScaledReasons" in activity and not with_not_scaled:
                continue
            if activity.get("EndTime", 0) <= now or activity["StatusCode"] != "Successful":
                yield activity
                continue
            message = activity["StatusMessage"].partition(". ")[0]
            under_way = {name: value for name, value in activity.items() if name != "EndTime"}
            yield under_way | {
                "StatusCode": "InProgress",
                "StatusMessage": f"{message}. Waiting for change to be fulfilled by dynamodb.",
            }

    def _clamp(self, target: TargetRecord, after: float = 0) -> None:
        """Move capacity inside the bounds, *after* so many seconds."""
        units = self._tables.capacity(target.key)
        wanted = None if units is None else target.clamped(units)
        if units is not None and wanted is not None:
            bound = "minimum" if wanted > units else "maximum"
            self._change(target, wanted, f"{bound} capacity was set to {wanted}", after)

    def _run(self, target: TargetRecord, action: ScheduledActionRecord) -> None:
        """Set a scheduled action's bounds and clamp, unless the bounds would cross."""
        cause = f"scheduled action name {action.change.name} was triggered"
        floor, ceiling = action.change.bounds(target.floor, target.ceiling)
        bounds = f"min capacity to {floor} and max capacity to {ceiling}"
        if floor > ceiling:
            reason = "Maximum capacity cannot be less than minimum capacity"
            self._record(target.key, f"Setting {bounds}", cause, "Failed", reason)
            return
        target.floor, target.ceiling = floor, ceiling
        self._record(target.key, f"Setting {bounds}", cause, "Successful", f"{_SET} {bounds}", _ACTION_TAKES)
        self._clamp(target, _CHANGE_AFTER)

    def _act(self, target: TargetRecord, policy: PolicyRecord, kind: AlarmKind, value: float) -> None:
        units = self._tables.capacity(target.key)
        if units is None:
            return
        if kind in (AlarmKind.HIGH, AlarmKind.LOW):
            self._follow(target, policy, kind, units, value)
        elif units != policy.units:
            self._put_alarms(target.key, policy, units, policy.alarms)

    def _follow(
        self,
        target: TargetRecord,
        policy: PolicyRecord,
        kind: AlarmKind,
        units: int,
        last: float,
    ) -> None:
        """Carry out the change that an alarm asks for, whose last minute consumed *last*, if nothing is against it.

        Nothing is recorded while scaling is suspended, while an activity is in progress, and during a cooldown.
        """
        is_out = kind is AlarmKind.HIGH
        if target.suspended[f"DynamicScaling{'Out' if is_out else 'In'}Suspended"]:
            return
        alarm, rules = Alarm(kind), policy.rules
        # metrics have hundredths of a unit
        asked = rules.wanted(alarm, [round(last * 100)], 0, per_unit=100)
        wanted = min(max(asked, target.floor), target.ceiling)
        if self._rests(target, rules, alarm, wanted):
            return
        cause = f"monitor alarm {policy.alarms[kind]['AlarmName']} in state ALARM triggered policy {policy.name}"
        if is_out and units >= target.ceiling:
            self._note_not_scaled(target.key, cause, "AlreadyAtMaxCapacity", MaxCapacity=target.ceiling)
        elif not is_out and units <= target.floor:
            self._note_not_scaled(target.key, cause, "AlreadyAtMinCapacity", MinCapacity=target.floor)
        elif wanted == units or (wanted > units) is not is_out:
            self._note_not_scaled(target.key, cause, "AlreadyAtDesiredCapacity", CurrentCapacity=units)
        elif self._tables.is_changing(target.key) or self._tables.is_changing(target.key.of_table):
            self._note_not_scaled(target.key, cause, "TargetServicePutResourceAsUnscalable")
        elif (ends := self._change(target, wanted, cause)) is not None:
            target.busy_until = ends
            target.cooldowns.note(alarm, int(ends), wanted)

    def _rests(self, target: TargetRecord, rules: TargetTracking, alarm: Alarm, wanted: int) -> bool:
        """Whether an activity is in progress, or a cooldown from the end of the last; not for a larger scale-out."""
        now, cooldowns = self._now().timestamp(), target.cooldowns
        is_larger = alarm is Alarm.HIGH and cooldowns.last_scale_out is not None and wanted > cooldowns.last_wanted
        return not is_larger and (now < target.busy_until or rules.rests(alarm, wanted, cooldowns, int(now)))

    def _change(self, target: TargetRecord, units: int, cause: str, after: float = 0) -> float | None:
        """Change capacity and record the attempt; return when the activity ends, `None` if the change was rejected."""
        key = target.key
        capacity = f"{key.dimension} capacity units to {units}"
        description = f"Setting {capacity}."
        try:
            self._tables.set_capacity(key, units)
        except ServiceError as refused:
            reason = refused.message
            if reason.startswith("Subscriber limit exceeded"):
                reason = f"Failed updating table: {reason}"
            failure = f"Failed to set {capacity}. Reason: {reason}"
            self._record(key, description, cause, "Failed", failure, after=after)
            return None
        spread = hash_of((*key.members.values(), self._made[key, "activity"])) % _ACTIVITY_SPREAD
        takes = 0 if self._is_instant else _SHORTEST_ACTIVITY + spread
        success = f"{_SET} {capacity}. Change successfully fulfilled by dynamodb."
        self._record(key, description, cause, "Successful", success, takes, after=after)
        for policy in target.policies.values():
            self._put_alarms(key, policy, units, policy.alarms)
        return self._now().timestamp() + after + takes

    def _note_not_scaled(self, key: TargetKey, cause: str, code: str, **more: int) -> None:
        """Record why an alarm changes nothing; the same reason is recorded once, until another came between."""
        reason: Activity = {"Code": code} | more
        if self._not_scaled.get(key) == reason:
            return
        self._not_scaled[key] = reason
        status = "Successful" if code == "AlreadyAtDesiredCapacity" else "Failed"
        activity = {
            "ActivityId": self._uuid(key, "activity"),
            "Description": "Attempting to scale due to alarm triggered",
            "Cause": cause,
            "StartTime": self._now().timestamp(),
            "StatusCode": status,
            "NotScaledReasons": [reason],
        }
        self._activities.appendleft(key.members | activity)

    def _record(
        self,
        key: TargetKey,
        description: str,
        cause: str,
        status_code: str,
        status_message: str,
        takes: float = 0,
        *,
        after: float = 0,
    ) -> None:
        at = self._now().timestamp() + after
        activity = {
            "ActivityId": self._uuid(key, "activity"),
            "Description": description,
            "Cause": cause,
            "StartTime": at,
            "EndTime": at + takes,
            "StatusCode": status_code,
            "StatusMessage": status_message,
        }
        self._activities.appendleft(key.members | activity)

    def _put_alarms(
        self, key: TargetKey, policy: PolicyRecord, units: int, old: dict[AlarmKind, dict[str, str]]
    ) -> None:
        """Put the policy's alarms, with the thresholds for that capacity and new names, instead of the *old* ones."""
        policy.units = units
        policy.alarms = {kind: self._alarm(key, kind, policy.name) for kind in kinds_of(policy)}
        put_alarms(policy, key, self._now())
        delete_alarms(old.values())

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

    def _alarm(self, key: TargetKey, kind: AlarmKind, policy: str) -> dict[str, str]:
        name = f"TargetTracking-{key.resource_id}-{kind}-{self._uuid(key, policy, kind)}"
        return {"AlarmName": name, "AlarmARN": f"arn:aws:cloudwatch:{self._region}:{self._account}:alarm:{name}"}

    def _arn(self, kind: str, key: TargetKey, name: str) -> str:
        return (
            f"arn:aws:autoscaling:{self._region}:{self._account}:{kind}:{self._uuid(key, kind)}:resource/"
            f"{SERVICE_NAMESPACE}/{key.resource_id}:{name}"
        )

    def _uuid(self, key: TargetKey, *purpose: object) -> str:
        """Return another UUID for this purpose each time; the next run of the same calls has the same ones."""
        self._made[key, *purpose] += 1
        return uuid_of(self._account, self._region, *key.members.values(), *purpose, self._made[key, *purpose])


def _watches(policy: PolicyRecord) -> tuple[object, ...]:
    """Return what a policy's alarms depend on, besides the capacity."""
    return policy.configuration["TargetValue"], kinds_of(policy)


def _check_range(low: int, high: int) -> None:
    if low < 1:
        raise invalid(f"Minimum capacity must be at least 1, got {low}")
    if high < low:
        raise invalid("Maximum capacity cannot be less than minimum capacity")
