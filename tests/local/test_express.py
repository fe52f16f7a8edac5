"""CloudFormation's express mode on a strict cloud: what counts as done too early, and what may follow a failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT, REGION
from tests.local.world import OF_LAMBDA, keyed, policy, refused, stack_status, units

pytestmark = pytest.mark.xdist_group("express cloud")
CLOUD = {"is_strict": True, "has_instant_updates": False}
EXPRESS, STANDARD = {"Mode": "EXPRESS"}, {"Mode": "STANDARD"}
READY = "Resource operation completed using Express Mode. It may continue becoming available in the background."


def _table(name: str, *, key: str = "id", writes: int = 4) -> dict[str, Any]:
    return {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            **({"TableName": name} if name else {}),
            **keyed(key),
            "ProvisionedThroughput": units(3, writes),
        },
    }


def _target(table: str, lowest: int, highest: int) -> dict[str, Any]:
    return {
        "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
        "DependsOn": "Table",
        "Properties": {
            "ServiceNamespace": "dynamodb",
            "ResourceId": f"table/{table}",
            "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
            "MinCapacity": lowest,
            "MaxCapacity": highest,
        },
    }


def _template(**resources: Any) -> str:
    return json.dumps({"Resources": resources})


def _carry_out(stacks: Any, operation: str, name: str, ends: str, template: str, **more: Any) -> None:
    """Create or update a stack, in express mode if nothing else is asked for, until its status is *ends*."""
    asked = {"DeploymentConfig": EXPRESS, "Capabilities": ["CAPABILITY_NAMED_IAM"]} | more
    getattr(stacks, f"{operation}_stack")(StackName=name, TemplateBody=template, **asked)
    stack_status(stacks, name, ends)


def test_table_counts_as_done_while_it_is_created(cloud: LocalCloud) -> None:
    stacks, dynamodb, autoscaling = (
        cloud.client(name) for name in ("cloudformation", "dynamodb", "application-autoscaling")
    )
    _carry_out(
        stacks, "create", "early", "CREATE_COMPLETE", _template(Table=_table("early"), Target=_target("early", 40, 80))
    )
    table = dynamodb.describe_table(TableName="early")["Table"]
    assert table["TableStatus"] == "CREATING"
    in_use = "Attempt to change a resource which is still in use: Table is being created: early"
    calls: tuple[Callable[[], Any], ...] = (
        lambda: dynamodb.update_table(TableName="early", WarmThroughput={"ReadUnitsPerSecond": 13_000}),
        lambda: dynamodb.tag_resource(ResourceArn=table["TableArn"], Tags=[{"Key": "a", "Value": "b"}]),
        lambda: dynamodb.delete_table(TableName="early"),
    )
    for call in calls:
        with refused("ResourceInUseException", in_use):
            call()
    # auto scaling could not raise the capacity, and does not try again by itself
    (activity,) = autoscaling.describe_scaling_activities(ServiceNamespace="dynamodb", ResourceId="table/early")[
        "ScalingActivities"
    ]
    assert (activity["StatusCode"], activity["StatusMessage"]) == (
        "Failed",
        f"Failed to set write capacity units to 40. Reason: {in_use}",
    )
    cloud.advance(timedelta(seconds=8))
    table = dynamodb.describe_table(TableName="early")["Table"]
    assert (table["TableStatus"], table["ProvisionedThroughput"]["WriteCapacityUnits"]) == ("ACTIVE", 4)
    reasons = {
        event["LogicalResourceId"]: event.get("ResourceStatusReason", "")
        for event in stacks.describe_stack_events(StackName="early")["StackEvents"]
        if event["ResourceStatus"] == "CREATE_COMPLETE"
    }
    assert reasons == {"Table": READY, "Target": READY, "early": ""}


def test_operation_in_the_standard_mode_waits_for_the_table(cloud: LocalCloud) -> None:
    stacks = cloud.client("cloudformation")
    _carry_out(stacks, "create", "late", "CREATE_COMPLETE", _template(Table=_table("late")), DeploymentConfig=STANDARD)
    assert cloud.client("dynamodb").describe_table(TableName="late")["Table"]["TableStatus"] == "ACTIVE"
    described = stacks.describe_stacks(StackName="late")["Stacks"][0]
    assert described["DeploymentConfig"] == {"Mode": "STANDARD", "DisableRollback": False}


def test_only_operations_in_express_mode_without_rollback_follow_a_failure(cloud: LocalCloud) -> None:
    stacks = cloud.client("cloudformation")
    good = _template(Table=_table("failed"), Target=_target("failed", 5, 9))
    wrong = _template(Table=_table("failed", writes=6), Target=_target("failed", 9, 8))
    _carry_out(stacks, "create", "failed", "CREATE_COMPLETE", good)
    cloud.advance(timedelta(seconds=8))
    _carry_out(stacks, "update", "failed", "UPDATE_FAILED", wrong)
    described = stacks.describe_stacks(StackName="failed")["Stacks"][0]
    assert described["DeploymentConfig"] == {"Mode": "EXPRESS", "DisableRollback": True}
    follow_up = (
        "ValidationError",
        "This stack is in a UPDATE_FAILED state from a previous operation that used EXPRESS deployment mode with "
        "disable-rollback. Follow-up operations must use the same DeploymentConfig (mode=EXPRESS) until the stack "
        "reaches a *_COMPLETE state.",
    )
    non_terminal = (
        "ValidationError",
        "This stack is currently in a non-terminal [UPDATE_FAILED] state. To update the stack from this state, please "
        "use the disable-rollback parameter with update-stack API. To rollback to the last known good state, use the "
        "rollback-stack API",
    )
    no_rollback = (
        "ValidationError",
        "RollbackStack is not supported for stacks that were last updated using EXPRESS deployment mode and are in a "
        "failed state",
    )
    calls: tuple[tuple[Callable[[], Any], tuple[str, str]], ...] = (
        (lambda: stacks.update_stack(StackName="failed", TemplateBody=good), follow_up),
        (lambda: stacks.create_change_set(StackName="failed", ChangeSetName="a", TemplateBody=good), follow_up),
        (
            lambda: stacks.update_stack(
                StackName="failed", TemplateBody=good, DeploymentConfig=EXPRESS | {"DisableRollback": False}
            ),
            non_terminal,
        ),
        (lambda: stacks.rollback_stack(StackName="failed"), no_rollback),
    )
    for call, told in calls:
        with refused(*told):
            call()
        stack_status(stacks, "failed", "UPDATE_FAILED")
    # the template that it had before: nothing differs from it, but the failed operation has changed resources
    _carry_out(stacks, "update", "failed", "UPDATE_COMPLETE", good)
    stacks.update_stack(StackName="failed", TemplateBody=_template(Table=_table("failed", writes=7)))
    stack_status(stacks, "failed", "UPDATE_COMPLETE")


def test_change_set_is_executed_in_the_mode_that_it_was_created_in(cloud: LocalCloud) -> None:
    stacks = cloud.client("cloudformation")
    for config, shown, ended in (
        (EXPRESS, EXPRESS | {"DisableRollback": True}, "CREATE_FAILED"),
        (EXPRESS | {"DisableRollback": False}, EXPRESS | {"DisableRollback": False}, "ROLLBACK_COMPLETE"),
        ({"Mode": "STANDARD"}, {"Mode": "STANDARD", "DisableRollback": False}, "ROLLBACK_COMPLETE"),
    ):
        name = f"set-{len(ended)}-{str(config['Mode']).lower()}"
        stacks.create_change_set(
            StackName=name,
            ChangeSetName="first",
            ChangeSetType="CREATE",
            TemplateBody=_template(Table=_table(name), Target=_target(name, 9, 8)),
            DeploymentConfig=config,
        )
        assert stacks.describe_change_set(StackName=name, ChangeSetName="first")["DeploymentConfig"] == shown
        stacks.execute_change_set(StackName=name, ChangeSetName="first")
        stack_status(stacks, name, ended)


def test_resource_is_not_replaced_while_rollback_is_off(cloud: LocalCloud) -> None:
    stacks = cloud.client("cloudformation")
    _carry_out(stacks, "create", "keyed", "CREATE_COMPLETE", _template(Table=_table("")))
    cloud.advance(timedelta(seconds=8))
    other = _template(Table=_table("", key="other"))
    _carry_out(stacks, "update", "keyed", "UPDATE_FAILED", other)
    (reason,) = [
        event["ResourceStatusReason"]
        for event in stacks.describe_stack_events(StackName="keyed")["StackEvents"]
        if event["ResourceStatus"] == "UPDATE_FAILED" and event["LogicalResourceId"] == "Table"
    ]
    assert reason == "Replacement type updates not supported on stack with disable-rollback."
    _carry_out(stacks, "update", "keyed", "UPDATE_COMPLETE", _template(Table=_table("")))
    _carry_out(
        stacks, "update", "keyed", "UPDATE_COMPLETE", other, DeploymentConfig=EXPRESS | {"DisableRollback": False}
    )


def test_cloud_in_express_mode_carries_out_every_operation_so() -> None:
    with LocalCloud(clock="driven", is_strict=True, is_express=True) as cloud:
        stacks = cloud.client("cloudformation")
        _carry_out(
            stacks, "create", "any", "CREATE_COMPLETE", _template(Table=_table("any")), DeploymentConfig=STANDARD
        )
        assert cloud.client("dynamodb").describe_table(TableName="any")["Table"]["TableStatus"] == "CREATING"


@pytest.mark.quick
def test_only_a_strict_cloud_has_an_express_mode() -> None:
    with pytest.raises(ValueError, match=r"^is_express: got True for a cloud that is not strict; add is_strict=True$"):
        LocalCloud(is_express=True)


# It describes the table, and returns the table's status, or the error's code and text
DESCRIBING = """
import boto3
from botocore.exceptions import ClientError

def handler(event, context):
    try:
        return boto3.client("dynamodb").describe_table(TableName=event["table"])["Table"]["TableStatus"]
    except ClientError as error:
        return [error.response["Error"]["Code"], error.response["Error"]["Message"]]
"""


def _role_and_function(*actions: str) -> dict[str, Any]:
    return {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {"RoleName": "describing", "AssumeRolePolicyDocument": OF_LAMBDA},
        },
        "Policy": {
            "Type": "AWS::IAM::Policy",
            "Properties": {
                "PolicyName": "some",
                "PolicyDocument": policy({"Action": list(actions), "Resource": "*"}),
                "Roles": [{"Ref": "Role"}],
            },
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "FunctionName": "describing",
                "Runtime": "python3.12",
                "Handler": "index.handler",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Code": {"ZipFile": DESCRIBING},
            },
        },
    }


def test_permission_is_in_effect_and_table_is_seen_only_after_some_seconds(cloud: LocalCloud) -> None:
    stacks, functions = cloud.client("cloudformation"), cloud.client("lambda")

    def described(table: str) -> Any:
        answer = functions.invoke(FunctionName="describing", Payload=json.dumps({"table": table}))
        return json.loads(answer["Payload"].read())

    role = _role_and_function("dynamodb:ListTagsOfResource")
    _carry_out(stacks, "create", "spread", "CREATE_COMPLETE", _template(**role))
    cloud.advance(timedelta(seconds=20))
    role = _role_and_function("dynamodb:DescribeTable")
    both = _template(Table=_table("spread"), **role)
    _carry_out(stacks, "update", "spread", "UPDATE_COMPLETE", both)
    denied = [
        "AccessDeniedException",
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/describing/describing is not authorized to perform: "
        f"dynamodb:DescribeTable on resource: arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/spread because no "
        "identity-based policy allows the dynamodb:DescribeTable action",
    ]
    assert described("spread") == denied
    cloud.advance(timedelta(seconds=19))
    assert described("spread") == denied
    cloud.advance(timedelta(seconds=1))
    assert described("spread") == "ACTIVE"
    # a permission that is in effect meets a new table
    another = _template(Table=_table("spread"), New=_table("spread-new"), **role)
    _carry_out(stacks, "update", "spread", "UPDATE_COMPLETE", another)
    unseen = ["ResourceNotFoundException", "Requested resource not found: Table: spread-new not found"]
    for seconds, told in ((0, unseen), (1, unseen), (1, "CREATING"), (6, "ACTIVE")):
        cloud.advance(timedelta(seconds=seconds))
        assert described("spread-new") == told
