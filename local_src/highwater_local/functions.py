"""The logs and metrics of Lambda functions, of their runs and what they print; and their recursion.

MiniStack keeps what a function prints as its log, and counts runs that a client asks for but none that a schedule, an
alarm or an event starts. Here every run counts, and the log has this cloud's times. AWS also takes lines in
CloudWatch's embedded metric format for metrics ("Embedded metric format specification", Amazon CloudWatch User Guide,
read 2026-11). Their times here are this cloud's, whatever clock the function went by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from highwater_local import ministack
from highwater_local.function_logging import log_as_lambda_does

Document = dict[str, Any]


class Functions:
    """Stands in front of MiniStack's log of functions; *second* tells the cloud's time in seconds since 1970."""

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        self._emit = ministack.write_function_log.replace(self._after_run)
        self._append = ministack.append_log_events.replace(self._append_now)
        self._count = ministack.count_run.replace(self._count_throttle)
        for action in ("create", "update"):
            ministack.wrap_resource_handler("AWS::Lambda::Function", action, _with_recursion)
        log_as_lambda_does()

    def _append_now(self, stream: Document, events: list[Document]) -> None:
        """Put this cloud's time to what a service writes into a log: it comes in as it happens."""
        now = dict.fromkeys(("timestamp", "ingestionTime"), self._second() * 1000)
        # what a client puts has a time of its own
        self._append(
            stream, [event | now if event["timestamp"] == event["ingestionTime"] else event for event in events]
        )

    def _count_throttle(self, name: str, duration_ms: float, error: bool, throttle: bool) -> None:
        """Count a run that was refused; the others are counted when they have ended."""
        if throttle:
            self._count(name, duration_ms, error, throttle)

    def _after_run(
        self, func: Document, request_id: str, log_text: str, error: bool, duration_ms: float, **named: Any
    ) -> None:
        configuration = func.get("config") or func
        group = (configuration.get("LoggingConfig") or {}).get("LogGroup")
        # Lambda makes the group of its own again when it has been deleted, and no other
        if group in (None, f"/aws/lambda/{configuration['FunctionName']}") or group in ministack.log_groups.now:
            self._emit(func, request_id, log_text, error, duration_ms, **named)
        self._count(configuration["FunctionName"], duration_ms, error, False)
        for line in (log_text or "").splitlines():
            for namespace, name, dimensions, values, unit in _printed(line):
                ministack.put_datum(namespace, name, dimensions, self._second(), unit, None, values, None, None)


def _with_recursion(own: Callable[..., tuple[str, Document]]) -> Callable[..., tuple[str, Document]]:
    """Give a function of a template its `RecursiveLoop`, which MiniStack takes from requests alone."""

    def provision(name: str, *properties_and_stack: Any) -> tuple[str, Document]:
        created = own(name, *properties_and_stack)
        # a creation has one set of properties, an update the old and the new
        new = [given for given in properties_and_stack if isinstance(given, dict)][-1]
        ministack.set_recursion(created[0], {"RecursiveLoop": new.get("RecursiveLoop", "Terminate")})
        return created

    return provision


def _printed(line: str) -> Iterator[tuple[str, str, dict[str, str], list[float], str]]:
    """The metrics of a line in the embedded metric format; none of any other line."""
    if '"_aws"' not in line:
        return
    try:
        document = json.loads(line)
        for directive in document["_aws"]["CloudWatchMetrics"]:
            for names in directive["Dimensions"] or [[]]:
                dimensions = {name: str(document[name]) for name in names}
                for metric in directive["Metrics"]:
                    value = document[metric["Name"]]
                    values = [float(each) for each in (value if isinstance(value, list) else [value])]
                    unit = metric.get("Unit", "None")
                    yield directive["Namespace"], metric["Name"], dimensions, values, unit
    except (ValueError, KeyError, TypeError, AttributeError):
        # AWS leaves such a line in the log and makes no metric of it
        return
