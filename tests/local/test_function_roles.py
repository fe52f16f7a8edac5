"""Roles of Lambda functions on a strict cloud: Lambda has to be allowed to assume them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT
from tests.local.world import Stack, create_function, policy, refused, trusting, unique

pytestmark = pytest.mark.xdist_group("function roles")
CLOUD = {"is_strict": True}
HANDLER = "def handler(event, context): pass"
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


@pytest.fixture
def functions(cloud: LocalCloud) -> Any:
    return cloud.client("lambda")


def _role(iam: Any, statements: list[Statement]) -> str:
    trust = json.dumps(policy(*statements))
    return str(iam.create_role(RoleName=unique("role"), AssumeRolePolicyDocument=trust)["Role"]["Arn"])


def _create(functions: Any, role: str) -> str:
    name = unique("function")
    create_function(functions, name, HANDLER, Role=role)
    return name


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


def test_stack_with_a_role_that_does_not_trust_lambda_fails(make_stack: Callable[[], Stack]) -> None:
    def resources(service: str) -> dict[str, Any]:
        role = f"{service.title()}Role"
        trust = trusting(Service=f"{service}.amazonaws.com")
        function = {
            "Role": {"Fn::GetAtt": [role, "Arn"]},
            "Runtime": "python3.12",
            "Handler": "index.handler",
            "Code": {"ZipFile": HANDLER},
        }
        return {
            role: {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}},
            "Runs": {"Type": "AWS::Lambda::Function", "Properties": function},
        }

    reason = f"{TEXT} (Service: Lambda, Status Code: 400, InvalidParameterValueException)"
    stack = make_stack()
    assert make_stack().deploy(**resources("events")) == ("ROLLBACK_COMPLETE", [reason])
    assert stack.deploy(**resources("lambda")) == ("CREATE_COMPLETE", [])
    assert stack.deploy(**resources("events")) == ("UPDATE_ROLLBACK_COMPLETE", [reason])
