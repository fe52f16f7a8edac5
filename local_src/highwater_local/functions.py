"""Lambda functions: their runs, for which a driven clock waits, their logs and metrics, and their URLs."""

from __future__ import annotations

import contextvars
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import uuid4

from highwater_local import ministack
from highwater_local.clock import CloudClock, EitherTime
from highwater_local.ministack import Created, Document
from highwater_local.strict.permissions import URL_PATH, role_of_token
from highwater_local.timeline import Timeline
from highwater_local.worker import PATIENCE, give_cloud_time, log_as_lambda_does


class Functions:
    """Wraps MiniStack's logging of functions; *second* returns the cloud's time in seconds since 1970."""

    def __init__(self, second: Callable[[], int]) -> None:
        self._second = second
        self._emit = ministack.write_function_log.replace(self._after_run)
        ministack.append_log_events.wrap(self._append_now)
        self._count = ministack.count_run.replace(self._count_throttle)
        for action in ("create", "update"):
            ministack.wrap_resource_handler("AWS::Lambda::Function", action, _with_settings)
        log_as_lambda_does()

    def _append_now(self, own: Callable[..., None], stream: Document, events: list[Document]) -> None:
        """Date a service's log events by this cloud's clock, as they are written when they happen."""
        now = dict.fromkeys(("timestamp", "ingestionTime"), self._second() * 1000)
        # events that a client puts have their own time
        own(stream, [event | now if event["timestamp"] == event["ingestionTime"] else event for event in events])

    def _count_throttle(self, name: str, duration_ms: float, error: bool, throttle: bool) -> None:
        """Count a throttled run; other runs are counted when they have ended."""
        if throttle:
            self._count(name, duration_ms, error, throttle)

    def _after_run(
        self, func: Document, request_id: str, log_text: str, error: bool, duration_ms: float, **named: Any
    ) -> None:
        configuration = func.get("config") or func
        group = (configuration.get("LoggingConfig") or {}).get("LogGroup")
        # Lambda creates its default log group again if it was deleted, but no other group
        if group in (None, f"/aws/lambda/{configuration['FunctionName']}") or group in ministack.log_groups.now:
            self._emit(func, request_id, log_text, error, duration_ms, **named)
        self._count(configuration["FunctionName"], duration_ms, error, False)
        for line in (log_text or "").splitlines():
            for namespace, name, dimensions, values, unit in _printed(line):
                ministack.put_datum(namespace, name, dimensions, self._second(), unit, None, values, None, None)


def _with_settings(own: Callable[..., Created], name: str, *properties_and_stack: Any) -> Created:
    """Apply what a template says of a function and MiniStack supports in requests only: recursion, reserved runs."""
    created = own(name, *properties_and_stack)
    # a creation has one set of properties, an update the old and the new
    new = [given for given in properties_and_stack if isinstance(given, dict)][-1]
    ministack.set_recursion(created[0], {"RecursiveLoop": new.get("RecursiveLoop", "Terminate")})
    if (runs := new.get("ReservedConcurrentExecutions")) is None:
        ministack.release_runs(created[0])
    else:
        ministack.reserve_runs(created[0], {"ReservedConcurrentExecutions": int(str(runs))})
    return created


def _printed(line: str) -> Iterator[tuple[str, str, dict[str, str], list[float], str]]:
    """Yield the metrics of a line in the embedded metric format; none for any other line."""
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
        # AWS logs such a line and makes no metric of it
        return


def wrap_urls(port: int) -> None:
    """Wrap MiniStack's function URLs, of a cloud on *port*."""
    ministack.function_url_event.wrap(_with_identity)
    ministack.function_url_attributes.wrap(partial(_with_address, port))


def _with_address(port: int, own: Callable[[Document], Document], config: Document) -> Document:
    """Return the attributes of a URL in CloudFormation, with an address of this cloud."""
    found = own(config)
    id = str(found["FunctionUrl"]).split("://", 1)[-1].split(".", 1)[0]
    return found | {"FunctionUrl": f"http://localhost:{port}{URL_PATH}{id}/"}


def _with_identity(own: Callable[..., Document], url_id: str, account: str, *more: Any, **named: Any) -> Document:
    event = own(url_id, account, *more, **named)
    identity = caller_of(event["headers"], account)
    if identity is not None:
        event["requestContext"]["authorizer"] = {"iam": identity}
    return event


def caller_of(headers: Document, account: str) -> Document | None:
    """Return the signer of a request, by its session token or access key; `None` for one that is not signed.

    Keys that this cloud did not issue count as those of the account's root, as everywhere in the cloud.
    """
    role = role_of_token(headers.get("x-amz-security-token", ""))
    key = ministack.access_key_of(headers)
    if not key:
        return None
    if role is not None:
        name, function = role
        arn = f"arn:aws:sts::{account}:assumed-role/{name}/{function}"
        return _identity(key, account, arn, f"AROA{name.upper()[:16]}:{function}")
    known = ministack.caller_identity(key)
    if known is not None:
        return _identity(key, account, known["userArn"], known["userId"])
    return _identity(key, account, f"arn:aws:iam::{account}:root", account)


def _identity(key: str, account: str, arn: str, user: str) -> Document:
    # members without a value are null in AWS's events too
    return {
        "accessKey": key,
        "accountId": account,
        "callerId": user,
        "cognitoIdentity": None,
        "principalOrgId": None,
        "userArn": arn,
        "userId": user,
    }


# pauses before the first and the second retry of a failed function
_AFTER_ERROR: Final = (timedelta(minutes=1), timedelta(minutes=2))
# pauses before retries of a throttled invocation: doubled each time, from the first value to the second
_AFTER_THROTTLE: Final = (timedelta(seconds=1), timedelta(minutes=5))
_MOST_RETRIES: Final = 2
_LONGEST_AGE_SECONDS: Final = 6 * 3600
_REFUSED: Final = 400
# what MiniStack says of every exception in a function
_UNTYPED_ERROR: Final = "Runtime.HandlerError"


class Invocations:
    """Wraps MiniStack's ways to run a function; in effect as soon as this is created."""

    def __init__(self, timeline: Timeline, port: int, clock: CloudClock) -> None:
        self._timeline = timeline
        # the run in the background that a thread belongs to
        self._run: contextvars.ContextVar[str | None] = contextvars.ContextVar("run", default=None)
        # that run, by the request id of one of its attempts
        self._runs_of_requests: dict[str, str] = {}
        # runs of executions of state machines whose thread has not started
        self._starting: deque[str] = deque()
        give_cloud_time(port, is_driven=clock.is_driven)
        self._time = EitherTime(clock)
        ministack.time_of_functions.replace(self._time)
        self._in_worker = ministack.run_in_worker.replace(self._run_in_worker)
        ministack.start_function.replace(self.start)
        ministack.invoke_function.replace(self._invoke)
        self._run_execution = ministack.run_execution.replace(self._execute)
        self._run_branch = ministack.run_branch.replace(self._execute_branch)
        self._start_own = ministack.start_execution.replace(self._start_execution)
        ministack.wait_in_state.replace(self._wait_in_state)
        ministack.matches_error.wrap(_matches)

    def run_of(self, request_id: str) -> str:
        """Return the run to which a function's request belongs."""
        return self._runs_of_requests.get(request_id, request_id)

    def cloud_time(self) -> AbstractContextManager[None]:
        """Let MiniStack's code for functions see the cloud's time in a block, and in what `run_apart` starts there."""
        return self._time.cloud_time()

    def start(self, function: Document, event: Any) -> None:
        """Run a function in the background."""
        self.run_apart(lambda: self._run_with_retries(function, event))

    def run_apart(self, work: Callable[[], None]) -> None:
        """Do work that runs a function, in a thread of its own; a driven clock waits for it."""
        run = str(uuid4())
        self._timeline.begin(run, is_background=True)

        def thread() -> None:
            self._run.set(run)
            try:
                work()
            finally:
                self._timeline.end(run)

        threading.Thread(target=contextvars.copy_context().run, args=(thread,), daemon=True).start()

    def _invoke(self, arn: str, payload: str) -> None:
        """Invoke a function for EventBridge, its Scheduler or an alarm."""
        function, configuration, _ = ministack.find_function(arn)
        if function and configuration:
            self.start(ministack.function_version(function, configuration), json.loads(payload))

    def _run_with_retries(self, function: Document, event: Any) -> None:
        configuration = function.get("config") or function
        region, account = configuration["FunctionArn"].split(":")[3:5]
        with ministack.request_scope(account, region):
            result = self._try(function, event)
            target = _failure_target(function, configuration)
            if result.get("error") and target:
                with self.cloud_time():  # a queue hides and drops messages by the cloud's time
                    ministack.tell_failure(target, configuration["FunctionName"], event, result)

    def _try(self, function: Document, event: Any) -> Document:
        """Run a function until it succeeds or its retries or its time are used up; return the last attempt's answer."""
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
            self._timeline.sleep(pause, str(self._run.get()))

    def _run_in_worker(self, function: Document, event: Any, request_id: str) -> Document:
        """Run a function in a process; a synchronous invocation becomes a run of the timeline here."""
        background = self._run.get()
        counted = nullcontext() if background else self._timeline.running(request_id, is_background=False)
        if background:
            self._runs_of_requests[request_id] = background
        try:
            with counted:
                return _with_type_of_error(self._in_worker(_patient(function), event, request_id))
        finally:
            self._runs_of_requests.pop(request_id, None)

    def _start_execution(self, request: Document) -> Any:
        """Start an execution of a state machine, which becomes a run of the timeline here."""
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

    def _execute_branch(self, *given: Any) -> Any:
        """Run a branch of an execution, or an item of a Map, as a run of its own: they work at the same time."""
        branch, execution = str(uuid4()), self._run.get()
        # the thread of a branch has a context of its own
        self._run.set(branch)
        with self._timeline.running(branch, is_background=True, within=execution):
            return self._run_branch(*given)

    def _wait_in_state(self, seconds: float) -> None:
        """Wait in a state of an execution, or before the retry of a state."""
        run = self._run.get()
        if run is not None and seconds > 0:
            self._timeline.sleep(timedelta(seconds=seconds), run)


def _matches(own: Callable[..., bool], names: list[str], error: str) -> bool:
    """Whether a Retry or Catch of a state machine for errors of these *names* takes that error.

    None takes `States.Runtime`, not even by its name or by `States.ALL`: the execution fails (AWS Step Functions
    Developer Guide, "Handling errors in Step Functions workflows", read 2026-11).
    """
    return error != "States.Runtime" and own(names, error)


def _rules(function: Document) -> Document:
    found: Document = function.get("event_invoke_config") or {}
    return found or (function.get("event_invoke_configs") or {}).get("$LATEST") or {}


def _failure_target(function: Document, configuration: Document) -> str:
    destinations = _rules(function).get("DestinationConfig") or {}
    letters = configuration.get("DeadLetterConfig") or {}
    return str((destinations.get("OnFailure") or {}).get("Destination") or letters.get("TargetArn") or "")


def _with_type_of_error(result: Document) -> Document:
    """Return a function's result with the class of its exception as the error's type, as Lambda has it.

    MiniStack's worker keeps the message alone; the class is in the last line of the traceback in the log. Retries and
    catches of state machines go by it.
    """
    body = result.get("body")
    if not result.get("error") or not isinstance(body, dict) or body.get("errorType") != _UNTYPED_ERROR:
        return result
    first, *_ = [*str(body.get("errorMessage", "")).splitlines(), ""]
    raised = re.compile(rf"(?:\w+\.)*(\w+){re.escape(f': {first}' if first else '')}")
    for line in reversed(str(result.get("log", "")).splitlines()):
        if found := raised.fullmatch(line):
            return result | {"body": body | {"errorType": found[1]}}
    return result


def _patient(function: Document) -> Document:
    """Return the function with a longer timeout in real time, as its own timeout is in the cloud's time."""
    configuration = function.get("config") or function
    if not str(configuration.get("Runtime", "python")).startswith("python"):
        return function
    longer = configuration | {"Timeout": float(configuration.get("Timeout", 3)) * PATIENCE}
    return function | {"config": longer}
