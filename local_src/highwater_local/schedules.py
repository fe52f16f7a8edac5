"""Schedules of EventBridge Scheduler by this cloud's clock.

MiniStack looks at them every ten seconds of the machine's time. Here they are looked at whenever the cloud's clock has
a new minute; what falls due while the clock is moved ahead runs once, when it has arrived.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from highwater_local import ministack

_SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"


class Schedules:
    """The schedules of every account and region, run from here in MiniStack's stead."""

    def __init__(self) -> None:
        # MiniStack's own thread rests
        ministack.start_scheduler.replace(lambda: None)
        self._invoke = ministack.invoke_target.replace(self._invoke_with_time)

    def run_due(self) -> None:
        """Start what is due by now; rates count from whole minutes, or a tick a little early would be left out."""
        ministack.run_schedules()
        ministack.round_last_runs()

    def _invoke_with_time(self, target: dict[str, Any], event: dict[str, Any], *more: Any) -> Any:
        """With the context attribute of the scheduled time filled in, as far as a target's input asks for it."""
        text = target.get("Input")
        if event.get("Source") == "aws.scheduler" and isinstance(text, str) and _SCHEDULED_TIME in text:
            at = datetime.fromtimestamp(int(event["Time"]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            target = target | {"Input": text.replace(_SCHEDULED_TIME, at)}
        return self._invoke(target, event, *more)
