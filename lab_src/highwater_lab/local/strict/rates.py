"""Rates of calls that AWS accepts of an account, in each second of the cloud's clock."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Final

from highwater_lab.local.strict.request import Request

# Calls a second (CloudWatch and Systems Manager, "Service quotas", read 2026-11)
_READS_OF_PARAMETERS: Final = "the reads of Systems Manager"
_LIMITS: Final = {"cloudwatch:PutMetricAlarm": 3, "cloudwatch:DescribeAlarms": 9, _READS_OF_PARAMETERS: 40}
_GROUPS: Final = {
    "ssm:GetParameter": _READS_OF_PARAMETERS,
    "ssm:GetParameters": _READS_OF_PARAMETERS,
    "ssm:GetParametersByPath": _READS_OF_PARAMETERS,
}
Answer = tuple[int, dict[str, str], bytes]


class Rates:
    """Counts calls; *second* tells the cloud's time in seconds since 1970."""

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        self._counted: Counter[str] = Counter()
        self._at = 0

    def refusal(self, request: Request) -> Answer | None:
        """The answer to a call that comes too fast, `None` for any other."""
        name = _GROUPS.get(request.action or "", request.action or "")
        limit = _LIMITS.get(name)
        if limit is None:
            return None
        if self._at != (now := self._second()):
            self._at = now
            self._counted.clear()
        self._counted[name] += 1
        if self._counted[name] <= limit:
            return None
        if "json" in request.headers.get("content-type", ""):
            body = json.dumps({"__type": "ThrottlingException", "message": "Rate exceeded"}).encode()
            return 400, {"content-type": "application/x-amz-json-1.1"}, body
        error = "<Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error>"
        return 400, {"content-type": "text/xml"}, f"<ErrorResponse>{error}</ErrorResponse>".encode()
