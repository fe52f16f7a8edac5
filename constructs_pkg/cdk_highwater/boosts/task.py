"""A boost in a Step Functions state machine: boost, work, release, also when the work fails."""

from __future__ import annotations

from datetime import timedelta

import aws_cdk as cdk
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from cdk_highwater.boosts.coordinator import BoostCoordinator
from cdk_highwater.boosts.grants import name_of_table, require_units
from cdk_highwater.support.arguments import require, require_or_none
from cdk_highwater.support.asset import client_files, make_small_function
from cdk_highwater.support.nag import BOOST_TASK_RULES
from highwater.core.boosts.lease import LONGEST_BOOST

# Between questions whether the capacity is there, as jobs of Python have it: half as long again each time, and as many
# executions may start at one time, each waits for a random part of that
_FIRST_POLL, _LAST_POLL, _POLL_FACTOR = cdk.Duration.seconds(3), cdk.Duration.seconds(10), 1.5
# Lambda has no room for the function, as may be in the very surge that the work makes (AWS Step Functions Developer
# Guide, "Handle transient Lambda service exceptions", read 2026-11); not among the errors that the CDK retries
_BUSY = "Lambda.TooManyRequestsException"
# errors of the first step after which the boost may be live: the function's own, and those of one that did not end
_MAY_BE_GRANTED = [
    "BoostNotReadyError",
    "CoordinatorUnavailableError",
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "States.Timeout",
]
_DURATION = cdk.Duration, "a cdk.Duration", "give cdk.Duration.minutes(...)"


class BoostTask(Construct):
    """Steps of a state machine that request a boost before other steps and release it after them.

    Step Functions cannot sign a request to the coordinator itself, so each `BoostTask` has a function whose role is
    granted just this boost. If an execution is stopped by hand, the lease expires by itself. Put the task around a Map,
    not into one: all iterations of an execution share the boost.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        coordinator: The coordinator that grants the boost.
        table: The table: its construct, the result of `manage_capacity`, or its name. One that is not added to the
            coordinator, or to its scaler, is an error at synth.
        lease: The length of the lease, in whole minutes up to a day: longer than the work takes.
        write: Write units per second to add. By default none.
        read: Read units per second to add. By default none.
        ready_within: About how long to wait for the capacity, as the pauses between questions are random. By default
            five minutes.
        is_required: Whether the work may start only with the boost. By default it may: the execution fails if the boost
            is refused or the capacity does not come in time. With false, the work starts without the boost then.

    Raises:
        TypeError: An argument is of another type than documented.
        ValueError: *write* or *read* is not a whole number of 0 or more, neither is above 0, or *lease* is not whole
            minutes up to a day.

    Example:
        ```python
        hour = cdk.Duration.hours(1)
        boost = BoostTask(stack, "Boost", coordinator=coordinator, table="orders", write=8_000, lease=hour)
        sfn.StateMachine(stack, "Load", definition_body=sfn.DefinitionBody.from_chainable(boost.around(work)))
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        coordinator: BoostCoordinator,
        table: object,
        lease: cdk.Duration,
        write: int = 0,
        read: int = 0,
        ready_within: cdk.Duration | None = None,
        is_required: bool = True,
    ) -> None:
        require("coordinator", coordinator, BoostCoordinator, "a BoostCoordinator", "give its construct")
        require("lease", lease, *_DURATION)
        require_or_none("ready_within", ready_within, *_DURATION)
        # a text such as "no" would count as true
        require("is_required", is_required, bool, "a bool", "give True or False")
        require_units(write=write, read=read)
        minutes = _whole_minutes(lease)
        super().__init__(scope, id)
        self._is_required = is_required
        self._table = name_of_table(table, cdk.Stack.of(self))
        self._function = make_small_function(
            self,
            "asks for one boost",
            BOOST_TASK_RULES,
            package="highwater.client",
            handler="task",
            packs=[client_files],
            description="Highwater: asks for a boost in a state machine",
            timeout=cdk.Duration.seconds(60),
            memory_size=256,
        )
        coordinator.grant_boost(self._function, max_write=write, max_read=read, tables=[table])
        self._within = ready_within or cdk.Duration.minutes(5)
        asked = {name: units for name, units in (("write", write), ("read", read)) if units}
        begin = {"do": "begin", "minutes": minutes, **asked}
        self._begin = self._step("Begin", begin, retried=["BoostNotReadyError", _BUSY])

    @property
    def begin(self) -> tasks.LambdaInvoke:
        """The step that requests the boost and waits for the capacity; its output is its input."""
        return self._begin

    def release(self, id: str = "Release") -> sfn.Chain:
        """Return a step with this *id* that releases the boost; its output is its input.

        A step that fails does not fail the execution, as the work is done: the lease expires by itself.
        """
        step = self._step(id, {"do": "release"}, retried=[_BUSY])
        left = sfn.Pass(self, f"{id}Left", state_name=self._named(f"{id}Left"))
        step.add_catch(left, result_path=sfn.JsonPath.DISCARD)
        return sfn.Chain.custom(step, [step, left], step)

    def around(self, work: sfn.IChainable) -> sfn.Chain:
        """Return boost, *work* and release as one chain; if the work fails, the boost is released before the failure.

        The chain's output is that of the work. A failure of the work ends in a Fail state behind the release, and
        Step Functions redrives an execution from there: docs/boosts-in-detail.md says how to redrive work.
        """
        attempt = sfn.Parallel(self, "Work", state_name=self._named("Work"), output_path="$[0]").branch(work)
        failed = self._fail("Failed")
        attempt.add_catch(self.release("ReleaseAfterFailure").next(failed), result_path="$.highwater")
        if self._is_required:
            unready = self._fail("Unready")
            # not `BoostRefusedError`: nothing is granted then, and an execution that failed in a step can be redriven
            self._begin.add_catch(
                self.release("ReleaseUnready").next(unready), errors=_MAY_BE_GRANTED, result_path="$.highwater"
            )
        else:
            self._begin.add_catch(attempt, result_path=sfn.JsonPath.DISCARD)
        return sfn.Chain.start(self._begin).next(attempt).next(self.release())

    def _step(self, id: str, payload: dict[str, object], *, retried: list[str]) -> tasks.LambdaInvoke:
        # one boost for each execution and `BoostTask`
        execution = sfn.JsonPath.format(f"{{}} {self.node.addr}", sfn.JsonPath.execution_id)
        boost = {
            "table": self._table,
            "id": sfn.JsonPath.hash(execution, "SHA-256"),
            "redrives": sfn.JsonPath.number_at("$$.Execution.RedriveCount"),
            "retries": sfn.JsonPath.number_at("$$.State.RetryCount"),
        }
        step = tasks.LambdaInvoke(
            self,
            id,
            state_name=self._named(id),
            lambda_function=self._function,
            payload=sfn.TaskInput.from_object(payload | boost),
            result_path=sfn.JsonPath.DISCARD,
        )
        # requests are idempotent by the boost's id
        step.add_retry(
            errors=retried,
            interval=_FIRST_POLL,
            backoff_rate=_POLL_FACTOR,
            max_delay=_LAST_POLL,
            jitter_strategy=sfn.JitterType.FULL,
            max_attempts=_questions_within(self._within.to_seconds()),
        )
        return step

    def _fail(self, id: str) -> sfn.Fail:
        """Return a state that fails with the error that was caught."""
        name = self._named(id)
        return sfn.Fail(self, id, state_name=name, error_path="$.highwater.Error", cause_path="$.highwater.Cause")

    def _named(self, id: str) -> str:
        """Return a state name that is unique in a state machine, which may contain several boosts."""
        return f"{self.node.id} {id}"


def _questions_within(seconds: float) -> int:
    """How many pauses have this length together, if each is half of the longest that it may be: their mean."""
    questions, waited, pause = 0, 0.0, _FIRST_POLL.to_seconds()
    while waited < seconds or not questions:
        questions, waited = questions + 1, waited + pause / 2
        pause = min(pause * _POLL_FACTOR, _LAST_POLL.to_seconds())
    return questions


def _whole_minutes(lease: cdk.Duration) -> int:
    minutes = lease.to_minutes(integral=False)
    most = LONGEST_BOOST // timedelta(minutes=1)
    if not 1 <= minutes <= most or minutes % 1:
        message = f"lease is {minutes:,g} minutes; allowed: whole minutes from 1 to {most:,}; a window can last longer"
        raise ValueError(message)
    return int(minutes)
