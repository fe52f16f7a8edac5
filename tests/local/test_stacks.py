"""One operation at a time for a stack."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from highwater_lab.local import LocalCloud
from tests.local.world import keyed, refused, stack_status, units

HANDLE = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
# nobody signals: creating it takes so many seconds, and fails then
WAITS = {
    "Type": "AWS::CloudFormation::WaitCondition",
    "DependsOn": "Table",
    "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "2", "Count": 1},
}


def _template(name: str, *, waits: bool) -> str:
    return json.dumps({"Resources": {"Table": _table(name)} | ({"Handle": HANDLE, "Waits": WAITS} if waits else {})})


def _table(name: str) -> dict[str, Any]:
    return {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {"TableName": name, **keyed("id"), "ProvisionedThroughput": units(3, 4)},
    }


def test_stack_that_is_deleted_while_it_is_created_leaves_nothing(cloud: LocalCloud) -> None:
    cloudformation = cloud.client("cloudformation")
    waits = WAITS | {"Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "60", "Count": 1}}
    resources = {"Table": _table("half-made"), "Handle": HANDLE, "Waits": waits}
    resources["Later"] = _table("half-made-later") | {"DependsOn": "Waits"}
    cloudformation.create_stack(StackName="half-made", TemplateBody=json.dumps({"Resources": resources}))
    handle = _wait_for_handle(cloudformation)
    cloudformation.delete_stack(StackName="half-made")
    # what the creation waits for comes only now
    signal = json.dumps({"Status": "SUCCESS", "UniqueId": "1", "Data": "", "Reason": ""}).encode()
    with urllib.request.urlopen(urllib.request.Request(handle, signal, {"Content-Type": ""}, method="PUT")):  # noqa: S310 - loopback
        pass
    stack_status(cloudformation, "half-made", "DELETE_COMPLETE")
    assert not [name for name in cloud.client("dynamodb").list_tables()["TableNames"] if name.startswith("half-made")]


def _wait_for_handle(cloudformation: Any) -> str:
    """The address that the stack's wait condition waits at, once it waits."""
    while True:
        events = cloudformation.describe_stack_events(StackName="half-made")["StackEvents"]
        if any(event["LogicalResourceId"] == "Waits" for event in events):
            return next(
                str(e["PhysicalResourceId"])
                for e in events
                if e["ResourceType"] == HANDLE["Type"] and e.get("PhysicalResourceId")
            )


def test_stack_is_not_deleted_while_it_is_updated(cloud: LocalCloud) -> None:
    cloudformation = cloud.client("cloudformation")
    cloudformation.create_stack(StackName="busy", TemplateBody=_template("busy", waits=False))
    stack_status(cloudformation, "busy", "CREATE_COMPLETE")
    stack = cloudformation.describe_stacks(StackName="busy")["Stacks"][0]["StackId"]
    cloudformation.update_stack(StackName="busy", TemplateBody=_template("busy", waits=True))
    stack_status(cloudformation, "busy", "UPDATE_IN_PROGRESS")
    with refused("ValidationError", f"Stack [{stack}] cannot be deleted while in status UPDATE_IN_PROGRESS"):
        cloudformation.delete_stack(StackName="busy")
    stack_status(cloudformation, "busy", "UPDATE_ROLLBACK_COMPLETE")
    cloudformation.delete_stack(StackName="busy")
    stack_status(cloudformation, "busy", "DELETE_COMPLETE")


def test_stack_is_found_by_the_physical_id_of_a_resource(cloud: LocalCloud) -> None:
    cloudformation = cloud.client("cloudformation")
    cloudformation.create_stack(StackName="owner", TemplateBody=_template("owned", waits=False))
    stack_status(cloudformation, "owner", "CREATE_COMPLETE")
    (found,) = cloudformation.describe_stack_resources(PhysicalResourceId="owned")["StackResources"]
    assert (found["StackName"], found["LogicalResourceId"], found["PhysicalResourceId"]) == ("owner", "Table", "owned")
    cloudformation.delete_stack(StackName="owner")
    stack_status(cloudformation, "owner", "DELETE_COMPLETE")
    with refused("ValidationError", "Stack for owned does not exist"):
        cloudformation.describe_stack_resources(PhysicalResourceId="owned")
    cloudformation.close()


def test_type_is_described_if_a_stack_may_have_it(cloud: LocalCloud) -> None:
    cloudformation = cloud.client("cloudformation")
    for kind in ("AWS::DynamoDB::Table", "AWS::ApplicationAutoScaling::ScalableTarget", "AWS::Lambda::Url"):
        found = cloudformation.describe_type(Type="RESOURCE", TypeName=kind)
        assert (found["Type"], found["TypeName"]) == ("RESOURCE", kind)
    with refused("TypeNotFoundException", "The type 'AWS::Quantum::Table' cannot be found."):
        cloudformation.describe_type(Type="RESOURCE", TypeName="AWS::Quantum::Table")
    cloudformation.close()
