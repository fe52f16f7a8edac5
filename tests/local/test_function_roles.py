"""Roles of Lambda functions on a strict cloud: Lambda has to be allowed to assume them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT
from tests.local.world import refused, stack_status, unique

pytestmark = pytest.mark.xdist_group("function roles")
TEXT = "The role defined for the function cannot be assumed by Lambda."
LAMBDA = {"Service": "lambda.amazonaws.com"}
Statement = dict[str, Any]


def _statement(principal: Any, effect: str = "Allow", **more: Any) -> Statement:
    return {"Effect": effect, "Principal": principal, "Action": "sts:AssumeRole"} | more


def _owned(account: str, function: str) -> Statement:
    """Lambda may assume the role for functions of that account and name."""
    arn = f"arn:aws:lambda:*:*:function:{function}"
    conditions = {"StringEquals": {"aws:SourceAccount": account}, "ArnLike": {"aws:SourceArn": arn}}
    return _statement(LAMBDA, Condition=conditions)


TRUSTING = [
    [_statement(LAMBDA)],
    [_statement({"AWS": ACCOUNT}), _statement({"Service": ["edgelambda.amazonaws.com", "lambda.amazonaws.com"]})],
    [_owned(ACCOUNT, "function-*")],
]
UNTRUSTING = [
    [_statement({"Service": "scheduler.amazonaws.com"})],
    [_statement({"AWS": ACCOUNT})],
    [_statement(LAMBDA, Action="sts:TagSession")],
    [_statement(LAMBDA), _statement(LAMBDA, "Deny")],
    [_owned("111122223333", "function-*")],
    [_owned(ACCOUNT, "another")],
]


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", has_instant_updates=True, is_strict=True) as running:
        yield running


@pytest.fixture
def functions(cloud: LocalCloud) -> Iterator[Any]:
    client = cloud.client("lambda")
    yield client
    client.close()


def _role(iam: Any, statements: list[Statement]) -> str:
    trust = json.dumps({"Version": "2012-10-17", "Statement": statements})
    return str(iam.create_role(RoleName=unique("role"), AssumeRolePolicyDocument=trust)["Role"]["Arn"])


def _create(functions: Any, role: str) -> str:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): pass")
    made = functions.create_function(
        FunctionName=unique("function"),
        Runtime="python3.12",
        Role=role,
        Handler="index.handler",
        Code={"ZipFile": packed.getvalue()},
    )
    return str(made["FunctionName"])


@pytest.mark.parametrize("statements", TRUSTING)
def test_role_that_trusts_lambda_is_taken(iam: Any, functions: Any, statements: list[Statement]) -> None:
    _create(functions, _role(iam, statements))


@pytest.mark.parametrize("statements", UNTRUSTING)
def test_role_that_does_not_trust_lambda_is_refused(iam: Any, functions: Any, statements: list[Statement]) -> None:
    with refused("InvalidParameterValueException", TEXT):
        _create(functions, _role(iam, statements))


def test_role_that_does_not_exist_is_refused(functions: Any) -> None:
    with refused("InvalidParameterValueException", TEXT):
        _create(functions, f"arn:aws:iam::{ACCOUNT}:role/absent")


def test_function_changes_to_a_role_that_trusts_lambda(iam: Any, functions: Any) -> None:
    name = _create(functions, _role(iam, TRUSTING[0]))
    with refused("InvalidParameterValueException", TEXT):
        functions.update_function_configuration(FunctionName=name, Role=_role(iam, UNTRUSTING[0]))
    other = _role(iam, TRUSTING[1])
    functions.update_function_configuration(FunctionName=name, Role=other)
    functions.update_function_configuration(FunctionName=name, Timeout=7)
    assert functions.get_function_configuration(FunctionName=name)["Role"] == other


def _template(service: str) -> str:
    trust = {"Version": "2012-10-17", "Statement": [_statement({"Service": service})]}
    function = {
        "Role": {"Fn::GetAtt": [f"{service[:6].title()}Role", "Arn"]},
        "Runtime": "python3.12",
        "Handler": "index.handler",
        "Code": {"ZipFile": "def handler(event, context): pass"},
    }
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}}
    resources = {f"{service[:6].title()}Role": role, "Runs": {"Type": "AWS::Lambda::Function", "Properties": function}}
    return json.dumps({"Resources": resources})


def test_stack_with_a_role_that_does_not_trust_lambda_fails(cloud: LocalCloud) -> None:
    cloudformation = cloud.client("cloudformation")

    def deploy(act: Any, stack: str, service: str) -> tuple[str, list[str]]:
        act(StackName=stack, TemplateBody=_template(service), Capabilities=["CAPABILITY_IAM"])
        status = stack_status(cloudformation, stack)
        events = cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
        failed = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
        return status, [event["ResourceStatusReason"] for event in failed]

    reason = f"{TEXT} (Service: Lambda, Status Code: 400, InvalidParameterValueException)"
    create, update = cloudformation.create_stack, cloudformation.update_stack
    assert deploy(create, "untrusting", "events.amazonaws.com") == ("ROLLBACK_COMPLETE", [reason])
    assert deploy(create, "trusting", "lambda.amazonaws.com") == ("CREATE_COMPLETE", [])
    assert deploy(update, "trusting", "events.amazonaws.com") == ("UPDATE_ROLLBACK_COMPLETE", [reason])
    cloudformation.close()
