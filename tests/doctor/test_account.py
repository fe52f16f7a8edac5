"""The checks of an account, with AWS's answers by stubs: what the local cloud cannot bring about, and more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.doctor import State
from highwater_lab.template import TemplateError
from tests.doctor.stubs import ACCOUNT, REGION, StubbedSession, assembly, said, table, target

ROLE = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
ASSETS = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
VERSION = "/cdk-bootstrap/hnb659fds/version"
PLACE = f"aws://{ACCOUNT}/{REGION}"
QUOTA = (
    f"aws service-quotas request-service-quota-increase --region {REGION} --service-code lambda "
    "--quota-code L-B99A9384 --desired-value 1000"
)
DENIED = (
    "User: arn:aws:iam::111122223333:user/dev is not authorized to perform: iam:GetRole on resource: role X because "
)


# IAM authorizes GetRole by the role's path, and a role that does not exist has none
MAY_BE_ABSENT = f"; IAM may answer so as well where there is no role {ROLE}"


def test_missing_service_linked_role_is_a_failure_with_its_command(session: StubbedSession) -> None:
    session.refuse("iam", "get_role", "NoSuchEntity", f"The role with name {ROLE} cannot be found.", 404)
    assert said(session, "service-linked-role") == (
        State.FAILURE,
        f"there is no role {ROLE}; the first target makes it, and others may fail until it is in effect",
        "aws iam create-service-linked-role --aws-service-name dynamodb.application-autoscaling.amazonaws.com",
    )


def test_check_that_may_not_be_read_is_a_warning_with_the_permission(session: StubbedSession) -> None:
    session.refuse("iam", "get_role", "AccessDenied", f"{DENIED}no identity-based policy allows the iam:GetRole action")
    assert said(session, "service-linked-role") == (
        State.WARNING,
        f"may not be read: iam:GetRole is denied{MAY_BE_ABSENT}",
        "allow iam:GetRole; docs/doctor.md has the whole policy",
    )


def test_check_that_the_organization_denies_says_whom_to_ask(session: StubbedSession) -> None:
    session.refuse("iam", "get_role", "AccessDenied", f"{DENIED}an explicit deny in a service control policy")
    assert said(session, "service-linked-role") == (
        State.WARNING,
        f"may not be read: iam:GetRole is denied{MAY_BE_ABSENT}",
        "ask those who run the organization: its service control policy denies iam:GetRole",
    )


def test_check_that_aws_does_not_answer_is_a_warning(session: StubbedSession) -> None:
    session.refuse("iam", "get_role", "ServiceFailure", "Internal error.", 500)
    assert said(session, "service-linked-role") == (
        State.WARNING,
        "cannot be read: An error occurred (ServiceFailure) when calling the GetRole operation: Internal error.",
        "run it again",
    )


def test_place_without_bootstrap_is_a_failure(session: StubbedSession) -> None:
    session.refuse("ssm", "get_parameter", "ParameterNotFound")
    assert said(session, "bootstrap") == (
        State.FAILURE,
        f"{PLACE} is not bootstrapped: there is no parameter {VERSION}",
        f"cdk bootstrap {PLACE}",
    )


def _version(session: StubbedSession, version: str) -> None:
    session.answer("ssm", "get_parameter", {"Parameter": {"Name": VERSION, "Value": version}}, Name=VERSION)


def test_old_bootstrap_is_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    _version(session, "5")
    assert said(session, "bootstrap", assembly(tmp_path, {"Orders": table("orders", 5, 6)})) == (
        State.FAILURE,
        f"{PLACE} is bootstrapped with version 5, and the app needs 6",
        f"cdk bootstrap {PLACE}",
    )


def test_bucket_of_assets_that_is_gone_is_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    _version(session, "30")
    session.refuse("s3", "head_bucket", "404", "Not Found", 404)
    names = ("cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}",)
    assert said(session, "bootstrap", assembly(tmp_path, {"Orders": table("orders", 5, 6)}, buckets=names)) == (
        State.FAILURE,
        f"{PLACE} is bootstrapped, and its bucket {ASSETS} is gone",
        f"delete the stack CDKToolkit of that region, then cdk bootstrap {PLACE}",
    )


def test_bucket_that_may_not_be_read_is_a_warning(session: StubbedSession, tmp_path: Path) -> None:
    _version(session, "30")
    session.refuse("s3", "head_bucket", "403", "Forbidden", 403)
    assert said(session, "bootstrap", assembly(tmp_path, {"Orders": table("orders", 5, 6)}, buckets=(ASSETS,))) == (
        State.WARNING,
        "may not be read: s3:ListBucket is denied",
        "allow s3:ListBucket; docs/doctor.md has the whole policy",
    )


def test_bootstrap_that_suffices_is_ok(session: StubbedSession, tmp_path: Path) -> None:
    _version(session, "30")
    session.answer("s3", "head_bucket", {}, Bucket=ASSETS)
    app = assembly(tmp_path, {"Orders": table("orders", 5, 6)}, buckets=(ASSETS,))
    assert said(session, "bootstrap", app) == (State.OK, f"{PLACE} is bootstrapped, version 30", "")


def _type(session: StubbedSession, name: str, kind: str = "RESOURCE") -> None:
    session.answer("cloudformation", "describe_type", {"TypeName": name}, Type=kind, TypeName=name)


URL, MODULE = "AWS::Lambda::Url", "Acme::Table::Usual::MODULE"


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        (URL, "deploy the app to another region, or leave out what makes this resource"),
        ("Acme::Table::Usual", "register or activate Acme::Table::Usual in CloudFormation's registry of the region"),
    ],
)
def test_type_that_the_region_lacks_is_a_failure(session: StubbedSession, tmp_path: Path, kind: str, fix: str) -> None:
    """A change set with such a type is refused: `Unrecognized resource types` (aws-samples/image-optimization, 13)."""
    resources = {"Boosts": {"Type": kind}, "Jobs": {"Type": kind}, "Orders": table("orders", 5, 6)}
    for each in sorted({kind, TABLES}):
        if each == kind:
            session.refuse("cloudformation", "describe_type", "TypeNotFoundException", "cannot be found", 404)
        else:
            _type(session, each)
    assert said(session, "types", assembly(tmp_path, resources)) == (
        State.FAILURE,
        f"CloudFormation has no {kind} in {REGION}, and the app has Boosts, Jobs, so a deploy is refused before it "
        "makes anything",
        fix,
    )


@pytest.mark.parametrize("transform", [None, "AWS::Serverless-2016-10-31"])
def test_types_of_an_app_are_asked_for_but_those_that_are_in_no_registry(
    session: StubbedSession, tmp_path: Path, transform: str | None
) -> None:
    """A transform may replace types, and CloudFormation makes no resource whose condition is false."""
    resources = {
        "Floors": {"Type": "Custom::HighwaterFloors"},
        "Own": {"Type": "AWS::CloudFormation::CustomResource"},
        "Metadata": {"Type": "AWS::CDK::Metadata"},
        "Url": {"Type": URL, "Condition": "IsThere"},
        "Usual": {"Type": MODULE},
        "Orders": table("orders", 5, 6),
    }
    app = assembly(tmp_path, resources)
    conditions = {"IsThere": {"Fn::Equals": [{"Ref": "AWS::Region"}, "us-east-1"]}}
    template = {"Resources": resources, "Conditions": conditions, "Transform": transform}
    (app / "Shop.template.json").write_text(json.dumps(template))
    if transform is None:
        _type(session, TABLES)
        _type(session, MODULE, "MODULE")
    text = f"{REGION} has all {2 if transform is None else 0} resource types of the app"
    assert said(session, "types", app) == (State.OK, text, "")


def _limits(session: StubbedSession, quota: int, unreserved: int) -> None:
    limits = {"ConcurrentExecutions": quota, "UnreservedConcurrentExecutions": unreserved}
    session.answer("lambda", "get_account_settings", {"AccountLimit": limits})


def _function(reserved: int | None = None) -> dict[str, Any]:
    properties = {} if reserved is None else {"ReservedConcurrentExecutions": reserved}
    return {"Type": "AWS::Lambda::Function", "Properties": properties}


def _not_deployed(session: StubbedSession) -> None:
    session.refuse("cloudformation", "describe_stacks", "ValidationError", "Stack with id Shop does not exist")


def test_reservation_above_what_a_new_account_may_reserve_is_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    _limits(session, 10, 10)
    _not_deployed(session)
    app = assembly(tmp_path, {"Scaler": _function(20), "Other": _function()})
    assert said(session, "concurrency", app) == (
        State.FAILURE,
        "the app reserves 20 concurrent runs, and the account has 10 concurrent runs, 10 not reserved, of which 0 may "
        "be, so the deploy fails",
        f"lower reserved_concurrency, or {QUOTA}",
    )


def test_reservation_that_the_app_has_already_is_no_failure(session: StubbedSession, tmp_path: Path) -> None:
    _limits(session, 120, 100)
    _has_reserved(session, 20)
    assert said(session, "concurrency", assembly(tmp_path, {"Scaler": _function(20)})) == (
        State.OK,
        "the account has 120 concurrent runs, 100 not reserved, of which 0 may be; the app reserves 20, and its jobs "
        "and queues take 0",
        "",
    )


def _has_reserved(session: StubbedSession, runs: int) -> None:
    """The function of the app is deployed with this reservation."""
    stack = {"StackName": "Shop", "CreationTime": 0, "StackStatus": "UPDATE_COMPLETE"}
    session.answer("cloudformation", "describe_stacks", {"Stacks": [stack]}, StackName="Shop")
    template = {"TemplateBody": "Resources: {}"}
    session.answer("cloudformation", "get_template", template, StackName="Shop", TemplateStage="Processed")
    resource = {
        "LogicalResourceId": "Scaler",
        "PhysicalResourceId": "Shop-Scaler-1",
        "ResourceType": "AWS::Lambda::Function",
        "LastUpdatedTimestamp": 0,
        "ResourceStatus": "CREATE_COMPLETE",
    }
    session.answer("cloudformation", "list_stack_resources", {"StackResourceSummaries": [resource]}, StackName="Shop")
    reserved = {"ReservedConcurrentExecutions": runs}
    session.answer("lambda", "get_function_concurrency", reserved, FunctionName="Shop-Scaler-1")


@pytest.mark.parametrize(("workers", "state"), [(975, State.OK), (976, State.WARNING)])
def test_reservation_that_the_app_has_already_is_counted_once(
    session: StubbedSession, tmp_path: Path, workers: int, state: State
) -> None:
    """Of 1,000 runs 20 are reserved by the app's function, and a deploy leaves 980, five of them for the app's own."""
    _limits(session, 1_000, 980)
    _has_reserved(session, 20)
    app = assembly(tmp_path, {"Scaler": _function(20), "Scan": _machine(workers)})
    assert said(session, "concurrency", app)[0] is state


def _machine(workers: int) -> dict[str, Any]:
    definition = json.dumps({"States": {"Scan": {"Type": "Map", "MaxConcurrency": workers}}})
    return {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"DefinitionString": definition}}


def test_workers_that_take_all_runs_of_a_new_account_are_a_warning(session: StubbedSession, tmp_path: Path) -> None:
    _limits(session, 10, 10)
    queue = {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"ScalingConfig": {"MaximumConcurrency": 2}}}
    assert said(session, "concurrency", assembly(tmp_path, {"Scan": _machine(6), "Drain": queue})) == (
        State.WARNING,
        "the app's jobs and queues may take 8 concurrent runs, and the account has 10 concurrent runs, 10 not "
        "reserved, of which 0 may be; while they do, Lambda throttles the scaler, boosts and deploys",
        f"fewer workers, or {QUOTA}",
    )


def test_account_with_room_is_ok(session: StubbedSession) -> None:
    _limits(session, 1_000, 990)
    text = "the account has 1,000 concurrent runs, 990 not reserved, of which 890 may be"
    assert said(session, "concurrency") == (State.OK, text, "")


def test_app_of_other_places_alone_is_refused(session: StubbedSession, tmp_path: Path) -> None:
    folder = assembly(tmp_path, {"Orders": table("orders", 5, 6)})
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace(REGION, "sa-east-1"))
    with pytest.raises(TemplateError) as refused:
        session.place(folder)
    assert str(refused.value) == (
        f"{folder}: no stack goes to {ACCOUNT}/{REGION}, only to {ACCOUNT}/sa-east-1, {ACCOUNT}/us-west-2; give "
        "credentials of that account, and --region"
    )


def _throughput(session: StubbedSession, of_table: int, of_account: int) -> None:
    limits = {
        "TableMaxReadCapacityUnits": of_table,
        "TableMaxWriteCapacityUnits": of_table + 1,
        "AccountMaxReadCapacityUnits": of_account,
        "AccountMaxWriteCapacityUnits": of_account + 1,
    }
    session.answer("dynamodb", "describe_limits", limits)


def test_ceiling_above_the_quota_of_a_table_is_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    _throughput(session, 60, 1_000)
    app = assembly(tmp_path, {"Orders": table("orders", 5, 6), "Writes": target("orders", 7, 70)})
    assert said(session, "quotas", app) == (
        State.FAILURE,
        "the writes of Orders may rise to 70, and the account's quota for a table or index is 61: above it, auto "
        "scaling is refused",
        f"aws service-quotas request-service-quota-increase --region {REGION} --service-code dynamodb "
        "--quota-code L-AB614373 --desired-value 70",
    )


def test_floors_above_the_quota_of_the_account_are_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    _throughput(session, 60, 100)
    app = assembly(tmp_path, {"Orders": table("orders", 53, 6), "Events": table("events", 54, 6)})
    assert said(session, "quotas", app) == (
        State.FAILURE,
        "the highest floors of all tables of the app add up to 107 read units, and the account's quota is 100",
        f"aws service-quotas request-service-quota-increase --region {REGION} --service-code dynamodb "
        "--quota-code L-34F6A552 --desired-value 107",
    )


def test_app_within_the_quotas_is_ok(session: StubbedSession, tmp_path: Path) -> None:
    _throughput(session, 60, 100)
    app = assembly(tmp_path, {"Orders": table("orders", 53, 6)})
    text = "ceilings and floors of the app are within DynamoDB's quotas of the account"
    assert said(session, "quotas", app) == (State.OK, text, "")


DEPLOYS = "cdk-hnb659fds-cfn-exec-role-111122223333-eu-west-1"


def _simulated(session: StubbedSession, *results: dict[str, Any]) -> None:
    actions = ["application-autoscaling:RegisterScalableTarget", "dynamodb:CreateTable"]
    decided = [
        {"EvalActionName": action, "EvalDecision": "allowed", **each}
        for action, each in zip(actions, results, strict=True)
    ]
    region = {"ContextKeyName": "aws:RequestedRegion", "ContextKeyValues": [REGION], "ContextKeyType": "string"}
    session.answer(
        "iam",
        "simulate_principal_policy",
        {"EvaluationResults": decided},
        PolicySourceArn=f"arn:aws:iam::{ACCOUNT}:role/{DEPLOYS}",
        ActionNames=actions,
        ContextEntries=[region],
    )


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(
            {"EvalDecision": "implicitDeny", "OrganizationsDecisionDetail": {"AllowedByOrganizations": False}},
            (
                State.FAILURE,
                "a service control policy of the organization denies it",
                "ask those who run the organization",
            ),
            id="organization",
        ),
        pytest.param(
            {
                "EvalDecision": "implicitDeny",
                "PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": False},
            },
            (State.FAILURE, "its permissions boundary leaves it out", "widen the boundary, and bootstrap again"),
            id="boundary",
        ),
        pytest.param(
            {"EvalDecision": "explicitDeny"},
            (
                State.FAILURE,
                "a policy of it denies it",
                "take the denial out of its policies, and bootstrap again",
            ),
            id="denied",
        ),
        pytest.param(
            {"EvalDecision": "implicitDeny"},
            (
                State.WARNING,
                "no policy allows it for every resource",
                "cdk bootstrap --cloudformation-execution-policies with a policy that does, unless one allows it for "
                "the app's",
            ),
            id="not-allowed",
        ),
    ],
)
def test_what_the_role_of_deploys_may_not_is_said_with_the_reason(
    session: StubbedSession, tmp_path: Path, result: dict[str, Any], expected: tuple[State, str, str]
) -> None:
    _simulated(session, {}, result)
    state, why, fix = expected
    app = assembly(tmp_path, {"Orders": table("orders", 5, 6), "Writes": target("orders", 7, 70)})
    assert said(session, "permissions", app) == (state, f"{DEPLOYS} may not dynamodb:CreateTable: {why}", fix)


def test_role_of_deploys_that_may_all_is_ok(session: StubbedSession, tmp_path: Path) -> None:
    _simulated(session, {}, {})
    app = assembly(tmp_path, {"Orders": table("orders", 5, 6), "Writes": target("orders", 7, 70)})
    assert said(session, "permissions", app) == (State.OK, f"{DEPLOYS} may make all 2 types of the app", "")


def test_role_of_deploys_that_is_gone_is_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    session.refuse("iam", "simulate_principal_policy", "NoSuchEntity", "The entity cannot be found.", 404)
    assert said(session, "permissions", assembly(tmp_path, {"Orders": table("orders", 5, 6)})) == (
        State.FAILURE,
        f"the role that CloudFormation deploys with is not there: arn:aws:iam::{ACCOUNT}:role/{DEPLOYS}",
        f"cdk bootstrap {PLACE}",
    )


def test_role_of_another_account_cannot_be_read(session: StubbedSession, tmp_path: Path) -> None:
    """Recorded: radkawar/stackd 9dc356f, iam/simulation, 2026-09."""
    session.refuse("iam", "simulate_principal_policy", "InvalidInput", "Invalid Entity Arn", 400)
    state, text, _ = said(session, "permissions", assembly(tmp_path, {"Orders": table("orders", 5, 6)}))
    assert (state, text.partition(":")[0]) == (State.WARNING, "cannot be read")


def _recorder(session: StubbedSession, group: dict[str, Any], mode: dict[str, Any], *, is_on: bool = True) -> None:
    recorder = {"name": "default", "recordingGroup": group, "recordingMode": mode}
    session.answer("config", "describe_configuration_recorders", {"ConfigurationRecorders": [recorder]})
    status = {"ConfigurationRecordersStatus": [{"name": "default", "recording": is_on}]}
    session.answer("config", "describe_configuration_recorder_status", status)


DAILY = {"recordingFrequency": "DAILY"}
CONTINUOUS = {"recordingFrequency": "CONTINUOUS"}
ALL = {"allSupported": True}
TABLES, ALARMS = "AWS::DynamoDB::Table", "AWS::CloudWatch::Alarm"


@pytest.mark.parametrize(
    ("group", "mode", "recorded"),
    [
        pytest.param(ALL, CONTINUOUS, f"{ALARMS} and {TABLES}", id="all"),
        pytest.param({"allSupported": False, "resourceTypes": [TABLES]}, CONTINUOUS, TABLES, id="tables"),
        pytest.param(
            {
                "exclusionByResourceTypes": {"resourceTypes": [TABLES]},
                "recordingStrategy": {"useOnly": "EXCLUSION_BY_RESOURCE_TYPES"},
            },
            CONTINUOUS,
            ALARMS,
            id="all-but-tables",
        ),
        pytest.param(
            ALL,
            CONTINUOUS | {"recordingModeOverrides": [{"resourceTypes": [ALARMS], "recordingFrequency": "DAILY"}]},
            TABLES,
            id="alarms-daily",
        ),
    ],
)
def test_recorder_of_each_change_is_a_warning(
    session: StubbedSession, group: dict[str, Any], mode: dict[str, Any], recorded: str
) -> None:
    _recorder(session, group, mode)
    assert said(session, "config") == (
        State.WARNING,
        f"AWS Config records each change of {recorded}, 0.003 USD each; scaling changes them all day",
        "record them once a day, or leave them out (docs/cost.md); highwater rehearse --config-recorder counts them",
    )


@pytest.mark.parametrize(
    ("group", "mode", "is_on"),
    [
        pytest.param(ALL, CONTINUOUS, False, id="stopped"),
        pytest.param(ALL, DAILY, True, id="daily"),
        pytest.param({"allSupported": False, "resourceTypes": ["AWS::S3::Bucket"]}, CONTINUOUS, True, id="others"),
    ],
)
def test_other_recorders_are_ok(
    session: StubbedSession, group: dict[str, Any], mode: dict[str, Any], is_on: bool
) -> None:
    _recorder(session, group, mode, is_on=is_on)
    text = "AWS Config does not record each change of tables and alarms"
    assert said(session, "config") == (State.OK, text, "")


def test_prices_that_are_not_known_are_a_warning(session: StubbedSession) -> None:
    session.region_name = "xx-north-9"
    _recorder(session, ALL, CONTINUOUS)
    state, text, fix = said(session, "config")
    assert (state, fix) == (State.WARNING, "give a file with --prices")
    assert text.startswith("prices.json: has no prices of region 'xx-north-9', only of ")
