"""Every role of the library under an independent linter of IAM policies, which knows what each action supports."""

from __future__ import annotations

import json
import runpy
import warnings
from functools import lru_cache
from typing import Any

import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from cdk_highwater import BoostCoordinator, HighWaterMark, TaggedTables, ThrottleAwareScaler, manage_capacity
from tests.cdk_cli import ROOT
from tests.constructs.jobs import buffered_writes, paced_load, paced_scan
from tests.constructs.template_view import (
    READ,
    WRITE,
    TemplateView,
    global_table,
    listed,
    placed_stack,
    resolved,
    scalable_table,
)

with warnings.catch_warnings():
    # it asks for a part of setuptools that has had its day
    warnings.simplefilter("ignore")
    import parliament

_HERE = "us-east-1:111122223333"
_PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::AccountId": "111122223333",
    "AWS::StackId": f"arn:aws:cloudformation:{_HERE}:stack/shop/8f2a",
}
# the one resource here whose reference is its ARN
_MACHINE = "AWS::StepFunctions::StateMachine"
_ARNS = {
    _MACHINE: f"arn:aws:states:{_HERE}:stateMachine:scan",
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{_HERE}:table/jobs",
    "AWS::DynamoDB::GlobalTable": f"arn:aws:dynamodb:{_HERE}:table/world",
    "AWS::Lambda::Function": f"arn:aws:lambda:{_HERE}:function:scaler",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{_HERE}:log-group:scaler:*",
    "AWS::S3::Bucket": "arn:aws:s3:::exports",
    "AWS::SQS::Queue": f"arn:aws:sqs:{_HERE}:letters",
}
# what knows no resources, by the Service Authorization Reference (read 2026-11)
_WITHOUT_RESOURCES = {
    "application-autoscaling:DescribeScalableTargets",
    "application-autoscaling:DescribeScalingActivities",
    "cloudwatch:GetMetricData",
    "tag:GetResources",
}


@lru_cache
def _policies() -> dict[str, dict[str, Any]]:
    """The policy documents of a stack that has everything, by logical id."""
    stack = placed_stack(region="us-east-1")
    table = scalable_table(stack, high_water_mark=HighWaterMark.units(read=900, write=800))
    world = global_table(stack, replicas=[dynamodb.ReplicaTableProps(region="eu-west-1")])
    scaler = ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables(regions=["ap-south-1"]))
    scaler.add_table(table)
    scaler.add_table(manage_capacity(world, read=READ, write=WRITE))
    coordinator = BoostCoordinator(stack, "Boosts")
    coordinator.add_table(scalable_table(stack, "Loads"))
    loader = iam.Role(stack, "Loader", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
    coordinator.grant_boost(loader, max_write=7)
    coordinator.grant_job(loader, "backfill")
    coordinator.grant_boost_events("acme.loader", max_write=7, grantee=loader)
    on_jobs = {"table": table, "coordinator": coordinator}
    buffered_writes(stack, **on_jobs).grant_send(loader)
    paced_scan(stack, index="by-day", **on_jobs).grant_start(loader)
    paced_load(stack, bucket=s3.Bucket(stack, "Exports"), key=None, prefix="nightly/", **on_jobs)
    view = TemplateView(stack)
    documents = {
        name: policy["Properties"]["PolicyDocument"] for name, policy in view.named("AWS::IAM::Policy").items()
    }
    for name, role in view.named("AWS::IAM::Role").items():
        for policy in role["Properties"].get("Policies", ()):
            documents[name] = policy["PolicyDocument"]
    return {name: _resolved(document, view.template["Resources"]) for name, document in documents.items()}


def _resolved(value: Any, resources: dict[str, Any]) -> Any:
    """*value* with an ARN or a name in the place of each reference."""

    def ref(name: str) -> str:
        kind = resources.get(name, {}).get("Type")
        return _PSEUDO.get(name) or (_ARNS[kind] if kind == _MACHINE else "jobs")

    return resolved(value, ref, lambda name: _ARNS[resources[name]["Type"]])


def _issues(document: dict[str, Any]) -> list[str]:
    found = parliament.analyze_policy_string(json.dumps(document), include_community_auditors=True).findings
    return [f"{finding.issue}: {finding.detail or ''}".strip() for finding in found]


def test_there_are_roles_of_every_function_and_schedule() -> None:
    roles = {
        "HighwaterDeployment": 10,
        "ScalerFunction": 2,
        "ScalerScheduleRole": 1,
        "BoostsFunction": 2,
        "BoostsScheduleRole": 1,
        "BufferedRole": 1,
        "Loader": 1,
        "BackfillRole": 1,
        "NightlyRole": 1,
        "NightlyLoader": 1,
        "WorkServiceRole": 1,
    }
    found = {role: sum(name.startswith(role) for name in _policies()) for role in roles}
    assert found == roles
    assert sum(roles.values()) == len(_policies())


def test_linter_finds_nothing_but_what_is_known() -> None:
    found = {issue for document in _policies().values() for issue in _issues(document)}
    assert found == {
        # the CDK's own grant; the key came in October 2025, after the linter's last version
        "UNKNOWN_CONDITION_FOR_ACTION: Unknown condition lambda:InvokedViaFunctionUrl for action lambda:InvokeFunction",
        # the linter wants express executions beside the standard ones, which are the only ones here
        "RESOURCE_MISMATCH: [{'action': 'states:DescribeExecution', 'required_format': "
        "'arn:*:states:*:*:express:*:*:*'}]",
    }


def test_star_stands_only_where_an_action_knows_no_resources() -> None:
    starred = {
        action
        for document in _policies().values()
        for statement in document["Statement"]
        if "*" in listed(statement["Resource"])
        for action in listed(statement["Action"])
    }
    assert starred == _WITHOUT_RESOURCES
    assert not any(
        "*" in action
        for document in _policies().values()
        for statement in document["Statement"]
        for action in listed(statement["Action"])
    )


def test_roles_of_the_example_with_tables_by_time_are_as_narrow() -> None:
    app = runpy.run_path(str(ROOT / "examples" / "tables_by_time" / "app.py"))["app"]
    resources = app.synth().get_stack_by_name("TablesByTime").template["Resources"]
    documents = {
        name: _resolved(policy["PolicyDocument"], resources)
        for name, role in resources.items()
        for policy in role.get("Properties", {}).get("Policies", ())
    }
    assert len(documents) == 2
    found = {issue for document in documents.values() for issue in _issues(document)}
    # s3:PutObjectAcl, which exports need
    assert found == {"PERMISSIONS_MANAGEMENT_ACTIONS:"}
    (months,) = (each for name, each in documents.items() if name.startswith("Role"))
    starred = [each["Action"] for each in months["Statement"] if "*" in listed(each["Resource"])]
    assert starred == [["dynamodb:ListExports", "dynamodb:ListTables"]]
    deleting = [each["Resource"] for each in months["Statement"] if "dynamodb:DeleteTable" in listed(each["Action"])]
    assert deleting == [f"arn:aws:dynamodb:{_HERE}:table/events-????-??"]


@pytest.mark.parametrize(
    ("statement", "issue"),
    [
        ({"Action": "dynamodb:UpdateTabel", "Resource": "*"}, "UNKNOWN_ACTION"),
        ({"Action": "dynamodb:UpdateTable", "Resource": "arn:aws:s3:::bucket"}, "RESOURCE_MISMATCH"),
        (
            {"Action": "cloudwatch:GetMetricData", "Resource": f"arn:aws:cloudwatch:{_HERE}:alarm:x"},
            "RESOURCE_MISMATCH",
        ),
        ({"Action": "dynamodb:UpdateTable", "Resource": "*"}, "RESOURCE_STAR"),
    ],
)
def test_linter_would_find_what_is_wrong(statement: dict[str, Any], issue: str) -> None:
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]}
    assert any(found.startswith(issue) for found in _issues(document)), _issues(document)
