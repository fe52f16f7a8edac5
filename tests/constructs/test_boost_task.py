"""`BoostTask`: what its states do when a boost is refused or the work fails, and which boost a redrive has."""

from __future__ import annotations

from functools import cache
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_stepfunctions as sfn

from cdk_highwater import BoostCoordinator, BoostTask
from tests.constructs.template_view import TemplateView, placed_stack, scalable_table

BUSY = "Lambda.TooManyRequestsException"


@cache
def _states(**more: Any) -> dict[str, Any]:
    """The states around a work that waits, by name."""
    stack = placed_stack()
    coordinator = BoostCoordinator(stack, "Boosts")
    orders = scalable_table(stack, "Orders", table_name="orders")
    coordinator.add_table(orders)
    hour = cdk.Duration.hours(1)
    boost = BoostTask(stack, "Boost", coordinator=coordinator, table=orders, write=5, lease=hour, **more)
    work = sfn.Wait(stack, "Load", time=sfn.WaitTime.duration(hour))
    sfn.StateMachine(stack, "Nightly", definition_body=sfn.DefinitionBody.from_chainable(boost.around(work)))
    states: dict[str, Any] = TemplateView(stack).machine["States"]
    return states


def _catches(state: dict[str, Any]) -> list[tuple[list[str], str]]:
    return [(each["ErrorEquals"], each["Next"]) for each in state["Catch"]]


def test_work_starts_only_with_its_boost_and_a_refusal_fails_the_first_step_itself() -> None:
    states = _states()
    may_be_granted = [
        "BoostNotReadyError",
        "CoordinatorUnavailableError",
        "Lambda.Unknown",
        "Sandbox.Timedout",
        "States.Timeout",
    ]
    assert _catches(states["Boost Begin"]) == [(may_be_granted, "Boost ReleaseUnready")]
    assert states["Boost ReleaseUnready"]["Next"] == "Boost Unready"
    assert states["Boost Unready"]["Type"] == "Fail"


def test_work_that_does_not_need_its_boost_starts_after_any_error() -> None:
    assert _catches(_states(is_required=False)["Boost Begin"]) == [(["States.ALL"], "Boost Work")]


def test_boost_is_released_before_a_failure_of_the_work() -> None:
    states = _states()
    assert _catches(states["Boost Work"]) == [(["States.ALL"], "Boost ReleaseAfterFailure")]
    assert states["Boost ReleaseAfterFailure"]["Next"] == "Boost Failed"


def test_no_step_fails_at_once_where_lambda_has_no_room() -> None:
    """The account's concurrency is used up by the very surge that the work makes."""
    for is_required in (True, False):
        steps = [each for each in _states(is_required=is_required).values() if each["Type"] == "Task"]
        assert len(steps) == 3 + is_required
        for step in steps:
            (retry,) = [each for each in step["Retry"] if BUSY in each["ErrorEquals"]]
            assert retry["MaxAttempts"] == 62


@pytest.mark.parametrize(
    ("release", "then"),
    [("Boost ReleaseAfterFailure", "Boost Failed"), ("Boost ReleaseUnready", "Boost Unready"), ("Boost Release", None)],
)
def test_release_that_fails_fails_no_work_that_is_done(release: str, then: str | None) -> None:
    """And a failure of the work stays that failure: the lease expires by itself."""
    states = _states()
    assert _catches(states[release]) == [(["States.ALL"], f"{release}Left")]
    assert "ResultPath" in states[release]["Catch"][0]
    left = states[f"{release}Left"]
    assert (left["Type"], left.get("Next"), left.get("End")) == ("Pass", then, None if then else True)
    assert states[release].get("Next") == then


def test_steps_after_the_release_follow_it_however_it_ends() -> None:
    stack = placed_stack()
    coordinator = BoostCoordinator(stack, "Boosts")
    orders = scalable_table(stack, "Orders", table_name="orders")
    coordinator.add_table(orders)
    lease = cdk.Duration.hours(1)
    boost = BoostTask(stack, "Boost", coordinator=coordinator, table=orders, write=5, lease=lease)
    chain = boost.around(sfn.Pass(stack, "Load")).next(sfn.Pass(stack, "Tell"))
    sfn.StateMachine(stack, "Nightly", definition_body=sfn.DefinitionBody.from_chainable(chain))
    states = TemplateView(stack).machine["States"]
    assert (states["Boost Release"]["Next"], states["Boost ReleaseLeft"]["Next"]) == ("Tell", "Tell")


@pytest.mark.parametrize(("seconds", "questions"), [(300, 62), (30, 8), (1, 1)])
def test_capacity_is_asked_for_with_random_pauses_that_grow_to_ten_seconds(seconds: int, questions: int) -> None:
    retries = {
        each["ErrorEquals"][0]: each
        for each in _states(ready_within=cdk.Duration.seconds(seconds))["Boost Begin"]["Retry"]
    }
    assert retries["BoostNotReadyError"] == {
        "ErrorEquals": ["BoostNotReadyError", BUSY],
        "IntervalSeconds": 3,
        "BackoffRate": 1.5,
        "MaxDelaySeconds": 10,
        "JitterStrategy": "FULL",
        "MaxAttempts": questions,
    }


def test_every_step_says_how_often_its_execution_was_redriven() -> None:
    steps = [each["Parameters"]["Payload"] for each in _states().values() if each["Type"] == "Task"]
    assert {step["redrives.$"] for step in steps} == {"$$.Execution.RedriveCount"}
    assert {step["retries.$"] for step in steps} == {"$$.State.RetryCount"}
    assert len(steps) == 4
    (id,) = {step["id.$"] for step in steps}
    assert id.startswith("States.Hash(States.Format('{} ")
