"""Permissions boundaries of roles on a strict cloud: what a role may do is what its policies and its boundary allow."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT, REGION
from tests.local.world import TRUST, Stack, create_tables, dynamodb_as, policy, refused, unique, units

pytestmark = pytest.mark.xdist_group("boundaries")
CLOUD = {"is_strict": True}
ORDERS = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/orders"
ABSENT = f"arn:aws:iam::{ACCOUNT}:policy/absent"
AsRole = Callable[[str], Any]


def _document(*statements: tuple[str, str]) -> dict[str, Any]:
    """A policy that allows or denies actions on everything."""
    return policy(
        *({"Effect": effect, "Action": f"dynamodb:{action}", "Resource": "*"} for effect, action in statements)
    )


def _refusal(role: str, action: str, reason: str) -> str:
    return (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{role}/session is not authorized to perform: dynamodb:{action} on "
        f"resource: {ORDERS} {reason}"
    )


@pytest.fixture(scope="module", autouse=True)
def _orders(clients: dict[str, Any]) -> None:
    create_tables(clients["dynamodb"], units(50, 60), orders=["pk"])


@pytest.fixture
def as_role(cloud: LocalCloud) -> AsRole:
    """Make a client of DynamoDB with the credentials of a role."""
    return partial(dynamodb_as, cloud, cloud.client("sts"))


def _policy(iam: Any, *statements: tuple[str, str]) -> str:
    document = json.dumps(_document(*statements))
    return str(iam.create_policy(PolicyName=unique("boundary"), PolicyDocument=document)["Policy"]["Arn"])


def test_role_may_do_what_its_policies_and_its_boundary_allow(iam: Any, as_role: AsRole) -> None:
    boundary = _policy(iam, ("Allow", "*"), ("Deny", "DeleteItem"))
    role = unique("role")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(TRUST), PermissionsBoundary=boundary)
    allowed = json.dumps(_document(("Allow", "GetItem"), ("Allow", "DeleteItem"), ("Deny", "Scan")))
    iam.put_role_policy(RoleName=role, PolicyName="items", PolicyDocument=allowed)
    dynamodb = as_role(role)
    asked = {"TableName": "orders", "Key": {"pk": {"S": "7"}}}
    dynamodb.get_item(**asked)
    reason = "with an explicit deny in a permissions boundary"
    with refused("AccessDeniedException", _refusal(role, "DeleteItem", reason)):
        dynamodb.delete_item(**asked)
    # a boundary grants nothing
    reason = "because no identity-based policy allows the dynamodb:PutItem action"
    with refused("AccessDeniedException", _refusal(role, "PutItem", reason)):
        dynamodb.put_item(TableName="orders", Item={"pk": {"S": "7"}})
    reason = "with an explicit deny in an identity-based policy"
    with refused("AccessDeniedException", _refusal(role, "Scan", reason)):
        dynamodb.scan(TableName="orders")

    iam.put_role_permissions_boundary(RoleName=role, PermissionsBoundary=_policy(iam, ("Allow", "Query")))
    reason = "because no permissions boundary allows the dynamodb:GetItem action"
    with refused("AccessDeniedException", _refusal(role, "GetItem", reason)):
        dynamodb.get_item(**asked)
    iam.delete_role_permissions_boundary(RoleName=role)
    dynamodb.delete_item(**asked)


def test_boundary_that_does_not_exist_is_refused(iam: Any) -> None:
    role, text = unique("role"), f"Scope ARN: {ABSENT} does not exist or is not attachable."
    trust = json.dumps(TRUST)
    with refused("NoSuchEntity", text):
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust, PermissionsBoundary=ABSENT)
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust)
    with refused("NoSuchEntity", text):
        iam.put_role_permissions_boundary(RoleName=role, PermissionsBoundary=ABSENT)


def _resources(boundary: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {"RoleName": "bounded", "AssumeRolePolicyDocument": TRUST}
    properties |= {"Policies": [{"PolicyName": "items", "PolicyDocument": _document(("Allow", "*"))}]}
    properties |= {"PermissionsBoundary": boundary} if boundary else {}
    allowed = {"PolicyDocument": _document(("Allow", "Query"))}
    return {
        "Boundary": {"Type": "AWS::IAM::ManagedPolicy", "Properties": allowed},
        "Role": {"Type": "AWS::IAM::Role", "Properties": properties},
    }


def test_boundary_of_a_template_comes_and_goes_with_it(clients: dict[str, Any], iam: Any, as_role: AsRole) -> None:
    stack = Stack(clients["cloudformation"])
    assert stack.deploy(**_resources({"Ref": "Boundary"})) == ("CREATE_COMPLETE", [])
    boundary = iam.get_role(RoleName="bounded")["Role"]["PermissionsBoundary"]
    assert boundary["PermissionsBoundaryArn"].startswith(f"arn:aws:iam::{ACCOUNT}:policy/{stack.name}-Boundary")
    dynamodb = as_role("bounded")
    reason = "because no permissions boundary allows the dynamodb:Scan action"
    with refused("AccessDeniedException", _refusal("bounded", "Scan", reason)):
        dynamodb.scan(TableName="orders")

    assert stack.deploy(**_resources(None)) == ("UPDATE_COMPLETE", [])
    dynamodb.scan(TableName="orders")

    assert stack.deploy(**_resources(ABSENT))[1] == [
        f"Scope ARN: {ABSENT} does not exist or is not attachable. (Service: Iam, Status Code: 404, NoSuchEntity)"
    ]
    dynamodb.scan(TableName="orders")
