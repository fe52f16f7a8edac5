"""The scaler's last decisions, from its log."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3
from botocore.config import Config

from highwater.core.names import LOG_GROUPS_PREFIX

_PAST: Final = timedelta(days=1)


def client(region: str | None = None) -> Any:
    """A client of CloudWatch Logs that waits out rate limits: FilterLogEvents is allowed ten times a second."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 6})
    return boto3.client("logs", config=config, region_name=region)


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """One decision as the scaler logged it; *at* is when, in UTC."""

    at: datetime
    target: str
    current: int
    granted: int
    reason: str


def read_decisions(logs: Any, label: str, now: datetime, most: int = 3) -> dict[str, tuple[LoggedDecision, ...]]:
    """The last decisions of a day about a table, by target, the newest last; *label* is the table's name in the log.

    Looks into the logs of every scaler of the region; what is no decision of this table's is passed over.
    """
    found: dict[str, deque[LoggedDecision]] = {}
    for line in _lines(logs, label, now):
        logged = _read(line, label)
        if logged is not None:
            found.setdefault(logged.target, deque(maxlen=most)).append(logged)
    return {target: tuple(decisions) for target, decisions in found.items()}


def _lines(logs: Any, label: str, now: datetime) -> Iterator[dict[str, Any]]:
    groups = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=LOG_GROUPS_PREFIX)
    for page in groups:
        for group in page["logGroups"]:
            events = logs.get_paginator("filter_log_events").paginate(
                logGroupName=group["logGroupName"],
                startTime=int((now - _PAST).timestamp() * 1000),
                filterPattern=f'{{ $.message = "decision" && $.decision.table = "{label}" }}',
            )
            for found in events:
                yield from found["events"]


def _read(line: dict[str, Any], label: str) -> LoggedDecision | None:
    try:
        document = json.loads(line["message"])
        decision = document["decision"]
        if document["message"] != "decision" or decision["table"] != label:
            return None
        at = datetime.fromtimestamp(line["timestamp"] / 1000, UTC)
        return LoggedDecision(at, decision["target"], decision["current"], decision["granted"], decision["reason"])
    except (ValueError, KeyError, TypeError):
        return None
