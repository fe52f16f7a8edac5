"""A fresh account by real boto3: the role of Application Auto Scaling, and concurrent runs of Lambda."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from highwater_lab.local import LocalCloud

pytestmark = pytest.mark.xdist_group("cloud-fresh-account")
SERVICE = "dynamodb.application-autoscaling.amazonaws.com"
ROLE = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
ARN = f"arn:aws:iam::000000000000:role/aws-service-role/{SERVICE}/{ROLE}"
TARGET: dict[str, Any] = {
    "ServiceNamespace": "dynamodb",
    "ResourceId": "table/orders",
    "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
    "MinCapacity": 7,
    "MaxCapacity": 70,
}
STACK: dict[str, Any] = {"StackName": "Runs", "Capabilities": ["CAPABILITY_IAM"]}
TOO_FEW = (
    "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its "
    "minimum value of [{least}]."
)


@pytest.fixture
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", is_strict=True, is_fresh_account=True) as made:
        yield made


def _refused(call: Any, **given: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(**given)
    error = refused.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def test_role_is_made_by_the_first_target_and_can_be_assumed_some_seconds_later(cloud: LocalCloud) -> None:
    autoscaling, dynamodb, iam = (cloud.client(name) for name in ("application-autoscaling", "dynamodb", "iam"))
    dynamodb.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 9},
    )
    try:
        assert _refused(iam.get_role, RoleName=ROLE).startswith("NoSuchEntity: ")
        unassumable = f"ValidationException: Unable to assume IAM role: {ARN}"
        assert _refused(autoscaling.register_scalable_target, **TARGET) == unassumable
        assert iam.get_role(RoleName=ROLE)["Role"]["Arn"] == ARN
        cloud.step(19)
        assert _refused(autoscaling.register_scalable_target, **TARGET) == unassumable
        assert autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"] == []
        cloud.step(1)
        autoscaling.register_scalable_target(**TARGET)
        (target,) = autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]
        assert target["RoleARN"] == ARN
    finally:
        for client in (autoscaling, dynamodb, iam):
            client.close()


def test_role_is_made_once_by_its_command_under_its_own_name(cloud: LocalCloud) -> None:
    iam = cloud.client("iam")
    made = iam.create_service_linked_role(AWSServiceName=SERVICE)["Role"]
    assert (made["RoleName"], made["Arn"]) == (ROLE, ARN)
    assert _refused(iam.create_service_linked_role, AWSServiceName=SERVICE) == (
        f"InvalidInput: Service role name {ROLE} has been taken in this account, please try a different suffix."
    )
    other = iam.create_service_linked_role(AWSServiceName="elasticbeanstalk.amazonaws.com")["Role"]
    assert other["RoleName"] == "AWSServiceRoleForElasticbeanstalk"
    iam.close()


def _template(**more: int) -> str:
    """A template with function `runs` and its role."""
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}}
    function = {
        "FunctionName": "runs",
        "Runtime": "python3.14",
        "Handler": "index.handler",
        "Code": {"ZipFile": "def handler(event, context): pass"},
        "Role": {"Fn::GetAtt": ["Role", "Arn"]},
        **more,
    }
    resources = {
        "Role": {"Type": "AWS::IAM::Role", "Properties": role},
        "Runs": {"Type": "AWS::Lambda::Function", "Properties": function},
    }
    return json.dumps({"Resources": resources})


def test_ten_runs_are_all_unreserved_until_the_quota_is_raised(cloud: LocalCloud) -> None:
    cloudformation, functions, quotas = (cloud.client(name) for name in ("cloudformation", "lambda", "service-quotas"))
    cloudformation.create_stack(**STACK, TemplateBody=_template())

    def limits() -> tuple[int, int]:
        found = functions.get_account_settings()["AccountLimit"]
        return found["ConcurrentExecutions"], found["UnreservedConcurrentExecutions"]

    def reserve(runs: int) -> Any:
        return functions.put_function_concurrency(FunctionName="runs", ReservedConcurrentExecutions=runs)

    try:
        assert limits() == (10, 10)
        refused = f"InvalidParameterValueException: {TOO_FEW}"
        assert _refused(reserve, runs=1) == refused.format(least=10)
        # turns the function off, and takes no run from others
        reserve(0)

        unknown = {"ServiceCode": "lambda", "QuotaCode": "L-00000000", "DesiredValue": 1_000}
        refusal = "NoSuchResourceException: The specified quota does not exist."
        assert _refused(quotas.request_service_quota_increase, **unknown) == refusal
        asked = quotas.request_service_quota_increase(ServiceCode="lambda", QuotaCode="L-B99A9384", DesiredValue=130)
        assert (asked["RequestedQuota"]["Status"], asked["RequestedQuota"]["DesiredValue"]) == ("PENDING", 130)
        assert limits() == (130, 130)
        assert _refused(reserve, runs=31) == refused.format(least=100)
        reserve(30)
        assert limits() == (130, 100)
        # what the function has already counts as free
        reserve(29)
        assert _refused(reserve, runs=31) == refused.format(least=100)
    finally:
        for client in (cloudformation, functions, quotas):
            client.close()


def test_template_that_reserves_too_much_fails_and_reserves_nothing(cloud: LocalCloud) -> None:
    cloudformation, functions = cloud.client("cloudformation"), cloud.client("lambda")

    def reserved() -> int | None:
        found: int | None = functions.get_function_concurrency(FunctionName="runs").get("ReservedConcurrentExecutions")
        return found

    try:
        cloudformation.create_stack(**STACK, TemplateBody=_template(ReservedConcurrentExecutions=0))
        assert reserved() == 0
        cloudformation.update_stack(**STACK, TemplateBody=_template(ReservedConcurrentExecutions=1))
        events = cloudformation.describe_stack_events(StackName=STACK["StackName"])["StackEvents"]
        reasons = [each["ResourceStatusReason"] for each in events if each["ResourceStatus"] == "UPDATE_FAILED"]
        said = f"{TOO_FEW.format(least=10)} (Service: Lambda, Status Code: 400, InvalidParameterValueException)"
        assert (reasons, reserved()) == ([said], 0)
        cloudformation.update_stack(**STACK, TemplateBody=_template())
        assert reserved() is None
    finally:
        cloudformation.close()
        functions.close()


def test_fresh_account_is_strict() -> None:
    said = "is_fresh_account: got True for a cloud that is not strict; add is_strict=True"
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        LocalCloud(is_fresh_account=True)
