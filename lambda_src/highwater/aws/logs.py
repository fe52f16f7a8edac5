"""The scaler's last decisions, read from its log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3

from highwater.calls.attempts import RARE, client_config
from highwater.core.documents import read_document
from highwater.core.names import LOG_GROUPS_PREFIX

_PAST: Final = timedelta(days=1)


def client(region: str | None = None) -> Any:
    """Create a client of CloudWatch Logs that retries up to seven times: FilterLogEvents is limited to ten a second."""
    return boto3.client("logs", config=client_config(RARE), region_name=region)


@dataclass(frozen=True, slots=True)
class LoggedLimit:
    """A stage of a logged decision that changed the value from *before* to *after*, in units per second, and why."""

    before: int
    after: int
    sentence: str


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision from the scaler's log, in units per second.

    Attributes:
        at: The time of the log line, in UTC.
        target: The target's name, such as `table write`.
        current: The value before.
        granted: The value that was set.
        reason: The origin of what demand alone asked for.
        wanted: What demand alone asked for; `None` if the line does not say.
        limits: The stages that changed *wanted* to *granted*, in order.
    """

    at: datetime
    target: str
    current: int
    granted: int
    reason: str
    wanted: int | None = None
    limits: tuple[LoggedLimit, ...] = ()

    @property
    def why(self) -> str:
        """Why *granted* was set, in a clause: the limits in order, and last what would have been set without them."""
        if not self.limits:
            return self.reason
        limits = ", then ".join(limit.sentence for limit in self.limits)
        otherwise = "otherwise" if self.wanted is None else f"otherwise {self.wanted:,}"
        return f"{limits}; {otherwise}: {self.reason}"


def read_decisions(logs: Any, label: str, now: datetime, most: int = 3) -> dict[str, tuple[LoggedDecision, ...]]:
    """Read the last decisions about a table in the 24 hours before *now*, at most *most* per target, the newest last.

    *label* is the table's name in the log. The logs of all scalers of the region are searched, and log lines that are
    not decisions about this table are ignored.
    """
    by_target: dict[str, deque[LoggedDecision]] = {}
    for event in _log_events(logs, label, now):
        decision = _read(event, label)
        if decision is not None:
            by_target.setdefault(decision.target, deque(maxlen=most)).append(decision)
    return {target: tuple(decisions) for target, decisions in by_target.items()}


def _log_events(logs: Any, label: str, now: datetime) -> Iterator[dict[str, Any]]:
    groups = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=LOG_GROUPS_PREFIX)
    for page in groups:
        for group in page["logGroups"]:
            event_pages = logs.get_paginator("filter_log_events").paginate(
                logGroupName=group["logGroupName"],
                startTime=int((now - _PAST).timestamp() * 1000),
                filterPattern=f'{{ $.message = "decision" && $.decision.table = "{label}" }}',
            )
            for event_page in event_pages:
                yield from event_page["events"]


def _read(event: dict[str, Any], label: str) -> LoggedDecision | None:
    try:
        document = read_document(event["message"])
        decision = document["decision"]
        if document["message"] != "decision" or decision["table"] != label:
            return None
        at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
        limits = tuple(
            LoggedLimit(limit["before"], limit["after"], limit["sentence"]) for limit in decision.get("limits", ())
        )
        return LoggedDecision(
            at,
            decision["target"],
            decision["current"],
            decision["granted"],
            decision["reason"],
            decision.get("wanted"),
            limits,
        )
    except (ValueError, KeyError, TypeError):
        return None
