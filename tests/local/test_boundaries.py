"""Permissions boundaries of roles on a strict cloud: what a role may do is what its policies and its boundary allow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT, REGION
from tests.local.world import TRUST, dynamodb_as, refused, stack_status, unique, units

pytestmark = pytest.mark.xdist_group("boundaries")
ORDERS = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/orders"
ABSENT = f"arn:aws:iam::{ACCOUNT}:policy/absent"
AsRole = Callable[[str], Any]


def _document(*statements: tuple[str, str]) -> dict[str, Any]:
    """A policy that allows or denies actions on everything."""
    listed = [{"Effect": effect, "Action": f"dynamodb:{action}", "Resource": "*"} for effect, action in statements]
    return {"Version": "2012-10-17", "Statement": listed}


def _refusal(role: str, action: str, reason: str) -> str:
    return (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{role}/session is not authorized to perform: dynamodb:{action} on "
        f"resource: {ORDERS} {reason}"
    )


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", has_instant_updates=True, is_strict=True) as running:
        dynamodb = running.client("dynamodb")
        dynamodb.create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            ProvisionedThroughput=units(50, 60),
        )
        dynamodb.close()
        yield running


@pytest.fixture
def as_role(cloud: LocalCloud) -> Iterator[AsRole]:
    """Make a client of DynamoDB with the credentials of a role."""
    sts = cloud.client("sts")
    made = [sts]

    def caller(role: str) -> Any:
        made.append(dynamodb_as(cloud, sts, role))
        return made[-1]

    yield caller
    for each in made:
        each.close()


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


def _template(boundary: Any) -> str:
    properties: dict[str, Any] = {"RoleName": "bounded", "AssumeRolePolicyDocument": TRUST}
    properties |= {"Policies": [{"PolicyName": "items", "PolicyDocument": _document(("Allow", "*"))}]}
    properties |= {"PermissionsBoundary": boundary} if boundary else {}
    policy = {"PolicyDocument": _document(("Allow", "Query"))}
    resources = {
        "Boundary": {"Type": "AWS::IAM::ManagedPolicy", "Properties": policy},
        "Role": {"Type": "AWS::IAM::Role", "Properties": properties},
    }
    return json.dumps({"Resources": resources})


def test_boundary_of_a_template_comes_and_goes_with_it(cloud: LocalCloud, iam: Any, as_role: AsRole) -> None:
    cloudformation = cloud.client("cloudformation")
    stack = {"StackName": "bounded", "Capabilities": ["CAPABILITY_NAMED_IAM"]}
    quickly = {"WaiterConfig": {"Delay": 1}, "StackName": "bounded"}
    cloudformation.create_stack(TemplateBody=_template({"Ref": "Boundary"}), **stack)
    cloudformation.get_waiter("stack_create_complete").wait(**quickly)
    boundary = iam.get_role(RoleName="bounded")["Role"]["PermissionsBoundary"]
    assert boundary["PermissionsBoundaryArn"].startswith(f"arn:aws:iam::{ACCOUNT}:policy/bounded-Boundary")
    dynamodb = as_role("bounded")
    reason = "because no permissions boundary allows the dynamodb:Scan action"
    with refused("AccessDeniedException", _refusal("bounded", "Scan", reason)):
        dynamodb.scan(TableName="orders")

    cloudformation.update_stack(TemplateBody=_template(None), **stack)
    cloudformation.get_waiter("stack_update_complete").wait(**quickly)
    dynamodb.scan(TableName="orders")

    cloudformation.update_stack(TemplateBody=_template(ABSENT), **stack)
    stack_status(cloudformation, "bounded")
    events = cloudformation.describe_stack_events(StackName="bounded")["StackEvents"]
    failed = [event["ResourceStatusReason"] for event in events if event["ResourceStatus"] == "UPDATE_FAILED"]
    assert failed == [
        f"Scope ARN: {ABSENT} does not exist or is not attachable. (Service: Iam, Status Code: 404, NoSuchEntity)"
    ]
    dynamodb.scan(TableName="orders")
    cloudformation.close()
