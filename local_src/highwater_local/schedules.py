"""EventBridge Scheduler: what it rejects and what it fills in, where MiniStack does neither, in requests and in stacks.

Invalid expressions and their text: localstack/localstack, tests/aws/services/scheduler/test_scheduler.snapshot.json,
recorded on AWS 2025-01-26. That `rate(1 minutes)` is valid, and the default of the retry policy: radkawar/stackd
9dc356f, scheduler_pipes/lifecycle_success and default_input.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from highwater_lab.services.schedules import parse_expression
from highwater_local import ministack
from highwater_local.ministack import Answer, Created, Document, ResourceRefusedError

_SCHEDULE: Final = "AWS::Scheduler::Schedule"
_RATE: Final = re.compile(r"rate\([1-9][0-9]* (minute|hour|day)s?\)")
_CRON_FIELDS: Final = 6
_RETRY_POLICY: Final = {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}


def wrap_schedules() -> None:
    """Reject schedules that EventBridge Scheduler rejects, and describe them as it does, from now on."""
    ministack.create_schedule.wrap(_put)
    ministack.update_schedule.wrap(_put)
    ministack.get_schedule.wrap(_get)
    ministack.wrap_resource_handler(_SCHEDULE, "create", _create)
    ministack.wrap_resource_handler(_SCHEDULE, "update", _update)


def expression_refusal(expression: object) -> str | None:
    """Return the text with which a schedule's expression is rejected, `None` if it is valid or is not given."""
    if not expression or (isinstance(expression, str) and _is_valid(expression)):
        return None
    return f"Invalid Schedule Expression {expression}."


def _is_valid(expression: str) -> bool:
    if expression.startswith("rate("):
        return _RATE.fullmatch(expression) is not None
    # what `parse_expression` allows beyond this is Application Auto Scaling's: spaces around, and a field of seconds
    if expression != expression.strip() or not expression.isascii():
        return False
    if expression.startswith("cron(") and len(expression[5:-1].split()) != _CRON_FIELDS:
        return False
    try:
        parse_expression(expression, ZoneInfo("UTC"), datetime.fromtimestamp(0, UTC))
    except ValueError:
        return False
    return True


def _put(own: Callable[..., Answer], name: str, body: Document) -> Answer:
    refusal = expression_refusal(body.get("ScheduleExpression"))
    if refusal is not None:
        form = {"message_key": "Message", "content_type": "application/json"}
        return ministack.error_answer("ValidationException", refusal, **form)
    return own(name, body)


def _get(own: Callable[..., Answer], name: str, query: Document) -> Answer:
    status, headers, body = own(name, query)
    if status >= 400:
        return status, headers, body
    schedule = json.loads(body)
    target = schedule["Target"]
    target["RetryPolicy"] = _RETRY_POLICY | (target.get("RetryPolicy") or {})
    return status, headers, json.dumps(schedule).encode()


def _create(own: Callable[..., Created], logical_id: str, properties: Document, *rest: Any) -> Created:
    _check(properties)
    return own(logical_id, properties, *rest)


def _update(own: Callable[..., Created], name: str, old: Document, new: Document, *rest: Any) -> Created:
    _check(new)
    return own(name, old, new, *rest)


def _check(properties: Document) -> None:
    refusal = expression_refusal(properties.get("ScheduleExpression"))
    if refusal is not None:
        raise ResourceRefusedError(f"{refusal} (Service: Scheduler, Status Code: 400, ValidationException)")
