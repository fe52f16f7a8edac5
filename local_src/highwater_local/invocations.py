"""Runs of Lambda functions: counted for the clock from the moment they are asked for, with the cloud's time in them.

What an event, an alarm or a schedule starts is asynchronous: Lambda queues it, and tries again when the function fails.
Rules: AWS Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous invocation", read 2026-11.
"""

from __future__ import annotations

import contextvars
import json
import threading
from collections import deque
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from highwater_local import ministack
from highwater_local.function_time import PATIENCE, give_cloud_time
from highwater_local.timeline import Timeline

Document = dict[str, Any]
# before the first and the second retry of a function that failed
_AFTER_ERROR: Final = (timedelta(minutes=1), timedelta(minutes=2))
# before retries of an invocation that was throttled: twice as long each time, from the first to the second
_AFTER_THROTTLE: Final = (timedelta(seconds=1), timedelta(minutes=5))
_MOST_RETRIES: Final = 2
_LONGEST_AGE_SECONDS: Final = 6 * 3600
_REFUSED: Final = 400


class Invocations:
    """Stands in front of MiniStack's ways to run a function; in force as soon as this is made."""

    def __init__(self, timeline: Timeline, port: int, *, is_driven: bool) -> None:
        self._timeline = timeline
        # the run in the background that a thread belongs to
        self._run: contextvars.ContextVar[str | None] = contextvars.ContextVar("run", default=None)
        # that run, by the request of one of its tries
        self._runs_of_requests: dict[str, str] = {}
        # runs of executions of state machines whose thread has not begun
        self._starting: deque[str] = deque()
        give_cloud_time(port, is_driven=is_driven)
        self._in_worker = ministack.run_in_worker.replace(self._run_in_worker)
        ministack.start_function.replace(self.start)
        ministack.invoke_function.replace(self._invoke)
        self._run_execution = ministack.run_execution.replace(self._execute)
        self._start_own = ministack.start_execution.replace(self._start_execution)
        ministack.wait_in_state.replace(self._wait_in_state)

    def run_of(self, request_id: str) -> str:
        """The run that a function's request belongs to."""
        return self._runs_of_requests.get(request_id, request_id)

    def start(self, function: Document, event: Any) -> None:
        """Run a function in the background."""
        run = str(uuid4())
        self._timeline.begin(run, is_background=True)
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._run_with_retries, run, function, event), daemon=True).start()

    def _invoke(self, arn: str, payload: str) -> None:
        """What EventBridge, its Scheduler and alarms do."""
        function, configuration, _ = ministack.find_function(arn)
        if function and configuration:
            self.start(ministack.function_version(function, configuration), json.loads(payload))

    def _run_with_retries(self, run: str, function: Document, event: Any) -> None:
        self._run.set(run)
        try:
            configuration = function.get("config") or function
            region, account = configuration["FunctionArn"].split(":")[3:5]
            with ministack.request_scope(account, region):
                result = self._try(run, function, event)
                target = _failure_target(function, configuration)
                if result.get("error") and target:
                    ministack.tell_failure(target, configuration["FunctionName"], event, result)
        finally:
            self._timeline.end(run)

    def _try(self, run: str, function: Document, event: Any) -> Document:
        """Run it until it succeeds or its retries or its time are used up; what its last try answered."""
        rules = _rules(function)
        most = rules.get("MaximumRetryAttempts")
        retries = iter(_AFTER_ERROR[: _MOST_RETRIES if most is None else int(most)])
        left = timedelta(seconds=int(rules.get("MaximumEventAgeInSeconds") or _LONGEST_AGE_SECONDS))
        throttled, longest = _AFTER_THROTTLE
        while True:
            result: Document = ministack.run_function(function, event)
            if not result.get("error"):
                return result
            if result.get("throttle"):
                pause: timedelta | None = throttled
                throttled = min(throttled * 2, longest)
            else:
                pause = next(retries, None)
            if pause is None or pause > left:
                return result
            left -= pause
            self._timeline.sleep(pause, run)

    def _run_in_worker(self, function: Document, event: Any, request_id: str) -> Document:
        """Run it in a process; one that somebody waits for is counted from here on."""
        background = self._run.get()
        counted = nullcontext() if background else self._timeline.running(request_id, is_background=False)
        if background:
            self._runs_of_requests[request_id] = background
        try:
            with counted:
                result: Document = self._in_worker(_patient(function), event, request_id)
                return result
        finally:
            self._runs_of_requests.pop(request_id, None)

    def _start_execution(self, request: Document) -> Any:
        """Start an execution of a state machine, which is counted from here on."""
        run = str(uuid4())
        self._timeline.begin(run, is_background=True)
        self._starting.append(run)
        answer = self._start_own(request)
        if answer[0] >= _REFUSED:
            self._starting.remove(run)
            self._timeline.end(run)
        return answer

    def _execute(self, arn: str) -> None:
        run = self._starting.popleft() if self._starting else str(uuid4())
        self._run.set(run)
        with self._timeline.running(run, is_background=True):
            self._run_execution(arn)

    def _wait_in_state(self, seconds: float) -> None:
        """Wait in a state of an execution, or before it tries a state again."""
        run = self._run.get()
        if run is not None and seconds > 0:
            self._timeline.sleep(timedelta(seconds=seconds), run)


def _rules(function: Document) -> Document:
    found: Document = function.get("event_invoke_config") or {}
    return found or (function.get("event_invoke_configs") or {}).get("$LATEST") or {}


def _failure_target(function: Document, configuration: Document) -> str:
    destinations = _rules(function).get("DestinationConfig") or {}
    letters = configuration.get("DeadLetterConfig") or {}
    return str((destinations.get("OnFailure") or {}).get("Destination") or letters.get("TargetArn") or "")


def _patient(function: Document) -> Document:
    """The function with more real time than its own: its timeout is one of the cloud's clock."""
    configuration = function.get("config") or function
    if not str(configuration.get("Runtime", "python")).startswith("python"):
        return function
    longer = configuration | {"Timeout": float(configuration.get("Timeout", 3)) * PATIENCE}
    return function | {"config": longer}
