"""Which functions are invoked by events, and that the queue in which Lambda keeps these is bounded for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn

from cdk_highwater import (
    BoostCoordinator,
    BoostTask,
    CapacityAlarms,
    HighWaterMark,
    TaggedTables,
    ThrottleAwareScaler,
)
from tests.constructs.jobs import buffered_writes, paced_load, paced_scan
from tests.constructs.template_view import TemplateView, listed, placed_stack, scalable_table

FUNCTION = "AWS::Lambda::Function"
FIVE_MINUTES = {"age": 300, "retries": 2}
# as long as CloudFormation waits for the slowest custom resource
FIFTY_FIVE_MINUTES = {"age": 3_300, "retries": 2}
DEPLOY = {"highwater.handlers.deploy.handler.handler": FIFTY_FIVE_MINUTES}
SCALER = {"highwater.handlers.scaler.handler.handler": FIVE_MINUTES}
COORDINATOR = {"highwater.handlers.coordinator.handler.handler": FIVE_MINUTES}


def _table(stack: cdk.Stack) -> None:
    scalable_table(stack, "Orders", table_name="orders", high_water_mark=HighWaterMark.units(read=5_000, write=6_000))


def _scaler(stack: cdk.Stack) -> None:
    ThrottleAwareScaler(stack, "Scaler", topic=sns.Topic(stack, "Topic")).add_table(scalable_table(stack))


def _tagged(stack: cdk.Stack) -> None:
    ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables(regions=["us-east-1"]))


def _coordinator(stack: cdk.Stack) -> None:
    BoostCoordinator(stack, "Boosts").add_table(scalable_table(stack))


def _everything(stack: cdk.Stack) -> None:
    orders = scalable_table(stack, "Orders", table_name="orders")
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(orders)
    coordinator = BoostCoordinator(stack, "Boosts", scaler=scaler)
    role = iam.Role(stack, "Service", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    coordinator.grant_boost(role, max_write=70)
    coordinator.grant_pulse(role, tables=[orders])
    coordinator.grant_boost_events("acme.loader", max_write=40)
    task = BoostTask(stack, "Task", coordinator=coordinator, table=orders, write=30, lease=cdk.Duration.hours(1))
    body = sfn.DefinitionBody.from_chainable(task.around(sfn.Pass(stack, "Pass")))
    sfn.StateMachine(stack, "Load", definition_body=body)
    buffered_writes(stack)
    paced_scan(stack)
    paced_load(stack)
    CapacityAlarms(stack, "Alarms", table=orders, topic=sns.Topic(stack, "Topic"))


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (_table, DEPLOY),
        (_scaler, DEPLOY | SCALER),
        (_tagged, SCALER),
        (_coordinator, DEPLOY | COORDINATOR),
        (_everything, DEPLOY | COORDINATOR),
    ],
)
def test_event_waits_for_minutes_and_not_for_six_hours(
    build: Callable[[cdk.Stack], None], expected: dict[str, dict[str, int]]
) -> None:
    """After an hour without room in Lambda, sixty ticks and all events of alarms would run at once."""
    stack = placed_stack()
    build(stack)
    view = TemplateView(stack)
    bounds = {
        each["Properties"]["FunctionName"]["Ref"]: {
            "age": each["Properties"]["MaximumEventAgeInSeconds"],
            "retries": each["Properties"]["MaximumRetryAttempts"],
        }
        for each in view.of_type("AWS::Lambda::EventInvokeConfig")
    }
    functions = view.named(FUNCTION)
    invoked = {name for name in _invoked_by_events(view) if name in functions}
    assert {functions[name]["Properties"]["Handler"]: bounds.get(name) for name in invoked} == expected
    assert set(bounds) == invoked, "a function that no event invokes has no such queue"


def _invoked_by_events(view: TemplateView) -> Iterator[str]:
    """The logical ids of what schedules, rules, alarms, CloudFormation, and functions themselves invoke."""
    for schedule in view.of_type("AWS::Scheduler::Schedule"):
        yield from _referred(schedule["Properties"]["Target"]["Arn"])
    for rule in view.of_type("AWS::Events::Rule"):
        yield from _referred([target["Arn"] for target in rule["Properties"]["Targets"]])
    for alarm in view.of_type("AWS::CloudWatch::Alarm"):
        yield from _referred([alarm["Properties"].get(f"{kind}Actions", []) for kind in ("Alarm", "OK")])
    for subscription in view.of_type("AWS::SNS::Subscription"):
        yield from _referred(subscription["Properties"]["Endpoint"])
    for resource in view.template["Resources"].values():
        yield from _referred(resource.get("Properties", {}).get("ServiceToken", []))
    roles = {role for each in view.of_type(FUNCTION) for role in _referred(each["Properties"]["Role"])}
    for policy in view.of_type("AWS::IAM::Policy"):
        if {role["Ref"] for role in policy["Properties"]["Roles"]} & roles:
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                if "lambda:InvokeFunction" in listed(statement["Action"]):
                    yield from _referred(statement["Resource"])


def _referred(value: Any) -> list[str]:
    """The logical ids whose attributes are in a part of a template."""
    if isinstance(value, list):
        return [id for each in value for id in _referred(each)]
    if not isinstance(value, dict):
        return []
    if "Fn::GetAtt" in value:
        return [value["Fn::GetAtt"][0]]
    return _referred([*value.values()])
