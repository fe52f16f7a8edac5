"""Application Auto Scaling on the wire: JSON 1.1 requests in, answers and errors out, lists in pages."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from highwater_local.autoscaling.records import (
    SERVICE_NAMESPACE,
    TRACKING,
    PolicyRecord,
    ScheduledActionRecord,
    ServiceError,
    TargetKey,
    TargetRecord,
    invalid,
    target_key,
)
from highwater_local.autoscaling.service import AutoScaling
from highwater_local.autoscaling.validation import refuse_wrong_members

# rows of a page, and of one of policies
_PAGE, _POLICIES_PAGE = 50, 10
_EMPTY_PAGES = (1, 2)
Request = dict[str, Any]
Answer = dict[str, Any]


def answer(service: AutoScaling, operation: str, request: Request) -> Answer:
    """Carry out one operation; raises `ServiceError`."""
    handler = _OPERATIONS.get(operation)
    if handler is None:
        raise ServiceError("UnknownOperationException", f"Unknown operation: {operation}")
    refuse_wrong_members(operation, request)
    return handler(service, request)


def _register(service: AutoScaling, request: Request) -> Answer:
    target = service.register(
        _key(request),
        _whole(request, "MinCapacity"),
        _whole(request, "MaxCapacity"),
        request.get("RoleARN"),
        request.get("SuspendedState"),
    )
    return {"ScalableTargetARN": target.arn}


def _deregister(service: AutoScaling, request: Request) -> Answer:
    service.deregister(_key(request))
    return {}


def _describe_targets(service: AutoScaling, request: Request) -> Answer:
    wanted = _of_dynamodb(request).get("ResourceIds")
    dimension = request.get("ScalableDimension")
    found = [
        _target_view(target)
        for target in service.targets.values()
        if (not wanted or target.key.resource_id in wanted)
        and (not dimension or target.key.scalable_dimension == dimension)
    ]
    return _page(found, "ScalableTargets", request, is_of_all=not wanted)


def _put_action(service: AutoScaling, request: Request) -> Answer:
    action = request.get("ScalableTargetAction") or {}
    service.put_action(
        _key(request),
        request["ScheduledActionName"],
        request.get("Schedule"),
        request.get("Timezone"),
        _whole(action, "MinCapacity"),
        _whole(action, "MaxCapacity"),
        "ScalableTargetAction" in request,
        _instant(request.get("StartTime")),
        _instant(request.get("EndTime")),
    )
    return {}


def _describe_actions(service: AutoScaling, request: Request) -> Answer:
    names = _of_dynamodb(request).get("ScheduledActionNames")
    found = [
        _action_view(target.key, action)
        for target in _matching(service, request)
        for action in target.actions.values()
        if not names or action.change.name in names
    ]
    return _page(found, "ScheduledActions", request)


def _delete_action(service: AutoScaling, request: Request) -> Answer:
    service.delete_action(_key(request), request["ScheduledActionName"])
    return {}


def _put_policy(service: AutoScaling, request: Request) -> Answer:
    policy = service.put_policy(
        _key(request),
        request["PolicyName"],
        request.get("PolicyType"),
        request.get("TargetTrackingScalingPolicyConfiguration"),
    )
    return {"PolicyARN": policy.arn, "Alarms": list(policy.alarms.values())}


def _describe_policies(service: AutoScaling, request: Request) -> Answer:
    names = _of_dynamodb(request).get("PolicyNames")
    found = [
        _policy_view(target.key, policy)
        for target in _matching(service, request)
        for policy in target.policies.values()
        if not names or policy.name in names
    ]
    return _page(found, "ScalingPolicies", request, _POLICIES_PAGE)


def _delete_policy(service: AutoScaling, request: Request) -> Answer:
    service.delete_policy(_key(request), request["PolicyName"])
    return {}


def _describe_activities(service: AutoScaling, request: Request) -> Answer:
    _of_dynamodb(request)
    asked = _whole(request, "MaxResults")
    if asked is not None and asked < 1:
        # recorded: radkawar/stackd 9dc356f, applicationautoscaling/activity_lifecycle
        return {"ScalingActivities": []}
    kinds = service.described_activities(with_not_scaled=bool(request.get("IncludeNotScaledActivities")))
    found = [activity for activity in kinds if _is_asked_for(activity, request)]
    return _rows(found, "ScalingActivities", request, min(asked or _PAGE, _PAGE), has_token=True)


_OPERATIONS: dict[str, Callable[[AutoScaling, Request], Answer]] = {
    "RegisterScalableTarget": _register,
    "DeregisterScalableTarget": _deregister,
    "DescribeScalableTargets": _describe_targets,
    "PutScheduledAction": _put_action,
    "DescribeScheduledActions": _describe_actions,
    "DeleteScheduledAction": _delete_action,
    "PutScalingPolicy": _put_policy,
    "DescribeScalingPolicies": _describe_policies,
    "DeleteScalingPolicy": _delete_policy,
    "DescribeScalingActivities": _describe_activities,
}


def _of_dynamodb(request: Request) -> Request:
    namespace = request["ServiceNamespace"]
    if namespace != SERVICE_NAMESPACE:
        raise invalid(f"Unsupported service namespace: {namespace}")
    return request


def _key(request: Request) -> TargetKey:
    return target_key(request["ServiceNamespace"], request["ResourceId"], request["ScalableDimension"])


def _matching(service: AutoScaling, request: Request) -> list[TargetRecord]:
    return [target for target in service.targets.values() if _is_asked_for(target.key.members, request)]


def _is_asked_for(view: Answer, request: Request) -> bool:
    return all(request.get(member) in (None, view[member]) for member in ("ResourceId", "ScalableDimension"))


def _page(found: list[Answer], member: str, request: Request, most: int = _PAGE, *, is_of_all: bool = False) -> Answer:
    """Return a page of a list. Without `MaxResults` it has *most* rows, and a token if there are more.

    Recorded of ECS (radkawar/stackd 9dc356f, applicationautoscaling/wide_pages, continuation, policy_page_boundaries):
    `MaxResults` up to *most* cuts the list off without a token, also behind a token, so its rest is lost; 0 gives no
    rows. More than *most* is as none (recorded of policies, assumed of the others). The list of all targets
    (*is_of_all*) begins with an empty page and a token if `MaxResults` is 1 or 2 (recorded of 53 targets).
    """
    asked = _whole(request, "MaxResults")
    if asked is not None and asked < 0:
        raise invalid(f"MaxResults must not be negative, got {asked}")
    if is_of_all and found and asked in _EMPTY_PAGES and not request.get("NextToken"):
        return {member: [], "NextToken": _token(0)}
    if asked is None or asked > most:
        return _rows(found, member, request, most, has_token=True)
    return _rows(found, member, request, asked, has_token=False)


def _rows(found: list[Answer], member: str, request: Request, size: int, *, has_token: bool) -> Answer:
    """Return the next *size* rows of a list, and if there are more and *has_token*, the token for them."""
    start = _start(request.get("NextToken"))
    page: Answer = {member: found[start : start + size]}
    return page | ({"NextToken": _token(start + size)} if has_token and start + size < len(found) else {})


def _token(start: int) -> str:
    return base64.b64encode(str(start).encode()).decode()


def _start(token: object) -> int:
    if not token:
        return 0
    try:
        text = base64.b64decode(str(token), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        text = ""
    if not (text.isascii() and text.isdigit()):
        raise ServiceError("InvalidNextTokenException", "The token provided is not valid")
    return int(text)


def _whole(request: Request, member: str) -> int | None:
    value = request.get(member)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise invalid(f"{member} must be a whole number, got {value!r}")
    return value


def _instant(epoch_seconds: float | str | None) -> datetime | None:
    if epoch_seconds is None:
        return None
    if isinstance(epoch_seconds, str):
        at = datetime.fromisoformat(epoch_seconds)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return datetime.fromtimestamp(epoch_seconds, UTC)


def _target_view(target: TargetRecord) -> Answer:
    return target.key.members | {
        "MinCapacity": target.floor,
        "MaxCapacity": target.ceiling,
        "RoleARN": target.role_arn,
        "CreationTime": target.created.timestamp(),
        "SuspendedState": dict(target.suspended),
        "ScalableTargetARN": target.arn,
    }


def _action_view(key: TargetKey, action: ScheduledActionRecord) -> Answer:
    bounds = {"MinCapacity": action.change.min, "MaxCapacity": action.change.max}
    view = key.members | {
        "ScheduledActionName": action.change.name,
        "ScheduledActionARN": action.arn,
        "Schedule": action.schedule,
        "ScalableTargetAction": {name: units for name, units in bounds.items() if units is not None},
        "CreationTime": action.created.timestamp(),
    }
    if action.timezone is not None:
        view["Timezone"] = action.timezone
    if action.change.start is not None:
        view["StartTime"] = action.change.start.timestamp()
    if action.change.end is not None:
        view["EndTime"] = action.change.end.timestamp()
    return view


def _policy_view(key: TargetKey, policy: PolicyRecord) -> Answer:
    return key.members | {
        "PolicyARN": policy.arn,
        "PolicyName": policy.name,
        "PolicyType": TRACKING,
        "TargetTrackingScalingPolicyConfiguration": policy.configuration,
        "Alarms": list(policy.alarms.values()),
        "CreationTime": policy.created.timestamp(),
    }


# AWS documents no duration; this is short compared with a call over the network
_SECONDS: Final = 0.02


class PendingUpdates:
    """The scalable targets that a call is changing, in all accounts and regions.

    The cloud carries out a change at once, but delays the answer for a moment, so that two callers who change a target
    at the same time conflict, as in AWS. A caller who waits for each answer is never rejected.
    """

    def __init__(self) -> None:
        self._changed: set[tuple[AutoScaling, str, str]] = set()

    async def answer(self, service: AutoScaling, operation: str, request: Request) -> Answer:
        """Carry out one operation of *service*, which is that of an account and region.

        Raises:
            ServiceError: Another call is changing the same scalable target, or the service rejects the operation.
        """
        if operation.startswith("Describe") or operation not in _OPERATIONS:
            return answer(service, operation, request)
        target = (service, str(request.get("ResourceId")), str(request.get("ScalableDimension")))
        if target in self._changed:
            # the text that users of AWS report
            message = "You already have a pending update to an Auto Scaling resource."
            raise ServiceError("ConcurrentUpdateException", message)
        self._changed.add(target)
        try:
            answered = answer(service, operation, request)
            await asyncio.sleep(_SECONDS)
        finally:
            self._changed.remove(target)
        return answered
