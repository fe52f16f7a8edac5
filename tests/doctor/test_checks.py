"""The checks, with AWS's answers by stubs: what the local cloud cannot bring about, and some of what it can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from highwater.core import Capacity, Plan
from highwater.core.scaler import Mode, ScaledPlan
from highwater_lab.doctor import Result, State, run_checks
from highwater_lab.template import TemplateError
from tests.doctor.stubs import ACCOUNT, REGION, StubbedSession, assembly, table, target

ROLE = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
ASSETS = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
VERSION = "/cdk-bootstrap/hnb659fds/version"
PLACE = f"aws://{ACCOUNT}/{REGION}"
QUOTA = (
    f"aws service-quotas request-service-quota-increase --region {REGION} --service-code lambda "
    "--quota-code L-B99A9384 --desired-value 1000"
)
FIVE_TO_FIFTY = Capacity.autoscaled(min_capacity=5, max_capacity=50)
PLAN = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=Plan(read=FIVE_TO_FIFTY, write=FIVE_TO_FIFTY)).to_json()
DENIED = (
    "User: arn:aws:iam::111122223333:user/dev is not authorized to perform: iam:GetRole on resource: role X because "
)


@pytest.fixture
def session() -> StubbedSession:
    return StubbedSession()


def _run(session: StubbedSession, name: str, folder: Path | None = None) -> list[Result]:
    results = list(run_checks(session.place(folder), [name]))
    assert session.all_asked()
    assert {result.check for result in results} == {name}
    return results


def _said(session: StubbedSession, name: str, folder: Path | None = None) -> tuple[State, str, str]:
    (result,) = _run(session, name, folder)
    return result.state, result.text, result.fix


def test_missing_service_linked_role_is_a_failure_with_its_command(session: StubbedSession) -> None:
    session.refuse("iam", "get_role", "NoSuchEntity", f"The role with name {ROLE} cannot be found.", 404)
    assert _said(session, "service-linked-role") == (
        State.FAILURE,
        f"there is no role {ROLE}; the first target makes it, and others may fail until it is in effect",
        "aws iam create-service-linked-role --aws-service-name dynamodb.application-autoscaling.amazonaws.com",
    )


def test_check_that_may_not_be_read_is_a_warning_with_the_permission(session: StubbedSession) -> None:
    session.refuse("iam", "get_role", "AccessDenied", f"{DENIED}no identity-based policy allows the iam:GetRole action")
    assert _said(session, "service-linked-role") == (
        State.WARNING,
        "may not be read: iam:GetRole is denied",
        "allow iam:GetRole; docs/doctor.md has the whole policy",
    )


def test_check_that_the_organization_denies_says_whom_to_ask(session: StubbedSession) -> None:
    session.refuse("iam", "get_role", "AccessDenied", f"{DENIED}an explicit deny in a service control policy")
    assert _said(session, "service-linked-role") == (
        State.WARNING,
        "may not be read: iam:GetRole is denied",
        "ask those who run the organization: its service control policy denies iam:GetRole",
    )


def test_check_that_aws_does_not_answer_is_a_warning(session: StubbedSession) -> None:
    session.refuse("iam", "get_role", "ServiceFailure", "Internal error.", 500)
    assert _said(session, "service-linked-role") == (
        State.WARNING,
        "cannot be read: An error occurred (ServiceFailure) when calling the GetRole operation: Internal error.",
        "run it again",
    )


def test_place_without_bootstrap_is_a_failure(session: StubbedSession) -> None:
    session.refuse("ssm", "get_parameter", "ParameterNotFound")
    assert _said(session, "bootstrap") == (
        State.FAILURE,
        f"{PLACE} is not bootstrapped: there is no parameter {VERSION}",
        f"cdk bootstrap {PLACE}",
    )


def _version(session: StubbedSession, version: str) -> None:
    session.answer("ssm", "get_parameter", {"Parameter": {"Name": VERSION, "Value": version}}, Name=VERSION)


def test_old_bootstrap_is_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    _version(session, "5")
    assert _said(session, "bootstrap", assembly(tmp_path, {"Orders": table("orders", 5, 6)})) == (
        State.FAILURE,
        f"{PLACE} is bootstrapped with version 5, and the app needs 6",
        f"cdk bootstrap {PLACE}",
    )


def test_bucket_of_assets_that_is_gone_is_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    _version(session, "30")
    session.refuse("s3", "head_bucket", "404", "Not Found", 404)
    names = ("cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}",)
    assert _said(session, "bootstrap", assembly(tmp_path, {"Orders": table("orders", 5, 6)}, buckets=names)) == (
        State.FAILURE,
        f"{PLACE} is bootstrapped, and its bucket {ASSETS} is gone",
        f"delete the stack CDKToolkit of that region, then cdk bootstrap {PLACE}",
    )


def test_bucket_that_may_not_be_read_is_a_warning(session: StubbedSession, tmp_path: Path) -> None:
    _version(session, "30")
    session.refuse("s3", "head_bucket", "403", "Forbidden", 403)
    assert _said(session, "bootstrap", assembly(tmp_path, {"Orders": table("orders", 5, 6)}, buckets=(ASSETS,))) == (
        State.WARNING,
        "may not be read: s3:ListBucket is denied",
        "allow s3:ListBucket; docs/doctor.md has the whole policy",
    )


def test_bootstrap_that_suffices_is_ok(session: StubbedSession, tmp_path: Path) -> None:
    _version(session, "30")
    session.answer("s3", "head_bucket", {}, Bucket=ASSETS)
    app = assembly(tmp_path, {"Orders": table("orders", 5, 6)}, buckets=(ASSETS,))
    assert _said(session, "bootstrap", app) == (State.OK, f"{PLACE} is bootstrapped, version 30", "")


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
    assert _said(session, "concurrency", app) == (
        State.FAILURE,
        "the app reserves 20 concurrent runs, and the account has 10 concurrent runs, 10 not reserved, of which 0 may "
        "be, so the deploy fails",
        f"lower reserved_concurrency, or {QUOTA}",
    )


def test_reservation_that_the_app_has_already_is_no_failure(session: StubbedSession, tmp_path: Path) -> None:
    _limits(session, 120, 100)
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
    reserved = {"ReservedConcurrentExecutions": 20}
    session.answer("lambda", "get_function_concurrency", reserved, FunctionName="Shop-Scaler-1")
    assert _said(session, "concurrency", assembly(tmp_path, {"Scaler": _function(20)})) == (
        State.OK,
        "the account has 120 concurrent runs, 100 not reserved, of which 0 may be; the app reserves 20, and its jobs "
        "and queues take 0",
        "",
    )


def test_workers_that_take_all_runs_of_a_new_account_are_a_warning(session: StubbedSession, tmp_path: Path) -> None:
    _limits(session, 10, 10)
    definition = '{"States":{"Scan":{"Type":"Map","MaxConcurrency":6}}}'
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"DefinitionString": definition}}
    queue = {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"ScalingConfig": {"MaximumConcurrency": 2}}}
    assert _said(session, "concurrency", assembly(tmp_path, {"Scan": machine, "Drain": queue})) == (
        State.WARNING,
        "the app's jobs and queues may take 8 concurrent runs, and the account has 10 concurrent runs, 10 not "
        "reserved, of which 0 may be; while they do, Lambda throttles the scaler, boosts and deploys",
        f"fewer workers, or {QUOTA}",
    )


def test_account_with_room_is_ok(session: StubbedSession) -> None:
    _limits(session, 1_000, 990)
    text = "the account has 1,000 concurrent runs, 990 not reserved, of which 890 may be"
    assert _said(session, "concurrency") == (State.OK, text, "")


def _tables(session: StubbedSession, *names: str) -> None:
    metadata = {"HTTPHeaders": {"date": "Wed, 04 Nov 2026 12:00:00 GMT"}}
    session.answer("dynamodb", "list_tables", {"TableNames": list(names), "ResponseMetadata": metadata})


def _scaled(session: StubbedSession, *names: str) -> None:
    of = {"ServiceNamespace": "dynamodb", "ScalableDimension": "dynamodb:table:WriteCapacityUnits"}
    more = {"MinCapacity": 7, "MaxCapacity": 70, "RoleARN": "arn:aws:iam::111122223333:role/aas", "CreationTime": 0}
    targets = [{**of, **more, "ResourceId": f"table/{name}"} for name in names]
    asked = {"ServiceNamespace": "dynamodb"}
    session.answer("application-autoscaling", "describe_scalable_targets", {"ScalableTargets": targets}, **asked)
    session.answer("application-autoscaling", "describe_scaling_policies", {"ScalingPolicies": []}, **asked)
    session.answer("application-autoscaling", "describe_scheduled_actions", {"ScheduledActions": []}, **asked)


def _plans(
    session: StubbedSession, *names: str, value: str = "", tags: dict[str, dict[str, str]] | None = None
) -> None:
    """Plans in parameters, and tables with the tags of a scaler; of a tag the part behind `highwater:`."""
    parameters = [{"Name": name, "Value": value} for name in names]
    asked = {"Path": "/highwater/plans/", "Recursive": True}
    session.answer("ssm", "get_parameters_by_path", {"Parameters": parameters}, **asked)
    tagged = [
        {
            "ResourceARN": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}",
            "Tags": [{"Key": f"highwater:{key}", "Value": text} for key, text in own.items()],
        }
        for name, own in (tags or {}).items()
    ]
    found = {"TagFilters": [{"Key": "highwater:managed"}], "ResourceTypeFilters": ["dynamodb:table"]}
    session.answer("resourcegroupstaggingapi", "get_resources", {"ResourceTagMappingList": tagged}, **found)


DEREGISTER = (
    f"aws application-autoscaling deregister-scalable-target --region {REGION} --service-namespace dynamodb "
    "--resource-id table/orders --scalable-dimension dynamodb:table:WriteCapacityUnits"
)


def test_target_of_another_stack_is_a_failure_that_names_the_stack(session: StubbedSession, tmp_path: Path) -> None:
    _not_deployed(session)
    _tables(session, "orders", "others")
    _scaled(session, "orders", "others")
    id = "table/orders|dynamodb:table:WriteCapacityUnits|dynamodb"
    resource = {
        "StackName": "Legacy",
        "LogicalResourceId": "Writes",
        "PhysicalResourceId": id,
        "ResourceType": "AWS::ApplicationAutoScaling::ScalableTarget",
        "Timestamp": 0,
        "ResourceStatus": "CREATE_COMPLETE",
    }
    session.answer("cloudformation", "describe_stack_resources", {"StackResources": [resource]}, PhysicalResourceId=id)
    _plans(session)
    app = assembly(tmp_path, {"Orders": table("orders", 5, 6), "Writes": target("orders", 7, 70)})
    assert _said(session, "owners", app) == (
        State.FAILURE,
        "target table/orders write of table Orders is registered and not the app's: stack Legacy has it; the app "
        "declares it too, so its deploy fails",
        f"remove it from stack Legacy and deploy that, or {DEREGISTER}",
    )


def test_table_with_two_scalers_is_a_failure(session: StubbedSession) -> None:
    _plans(session, "/highwater/plans/Shop/orders", "/highwater/plans/Web/orders", value=PLAN)
    assert _said(session, "owners") == (
        State.FAILURE,
        "table orders has 2 scalers, Shop, Web; each undoes the other's floors",
        "remove it from all but one, and deploy their stacks",
    )


BOUNDS = {"read-min": "5", "read-max": "50", "write-min": "6", "write-max": "60"}


def test_table_of_a_scaler_that_has_tags_too_is_a_failure(session: StubbedSession) -> None:
    _scaled(session)
    direct = {"orders": BOUNDS | {"managed": "direct"}}
    _plans(session, "/highwater/plans/Shop/orders", value=PLAN, tags=direct)
    assert _said(session, "owners") == (
        State.FAILURE,
        "table orders has 2 scalers, Shop, that of tables with the tag highwater:managed; each undoes the other's "
        "floors",
        "remove it from all but one, and deploy their stacks",
    )


def test_target_of_a_table_with_the_tag_direct_is_a_failure(session: StubbedSession) -> None:
    _scaled(session, "orders")
    session.refuse("cloudformation", "describe_stack_resources", "ValidationError", "Stack does not exist")
    _plans(session, tags={"orders": BOUNDS | {"managed": "direct"}})
    assert _said(session, "owners") == (
        State.FAILURE,
        "target table/orders write is registered, and the table has the tag highwater:managed = direct, so no scaler "
        "changes it: no stack has it: it is somebody's by hand, or Terraform's",
        f"take it out of what made it, or {DEREGISTER}; or set the tag to floor",
    )


def test_table_with_the_tag_floor_and_without_a_target_is_a_failure(session: StubbedSession) -> None:
    _scaled(session, "orders")
    _plans(session, tags={"orders": BOUNDS | {"managed": "floor"}})
    assert _said(session, "owners") == (
        State.FAILURE,
        "target table/orders read is not registered, and the table has the tag highwater:managed = floor, so nothing "
        "scales it",
        "give it target tracking where the table is made, or set the tag to direct",
    )


def test_wrong_tags_are_a_warning(session: StubbedSession) -> None:
    _plans(session, tags={"orders": BOUNDS | {"managed": "both"}})
    assert _said(session, "owners") == (
        State.WARNING,
        "no scaler manages table orders: tag highwater:managed must be floor or direct, got 'both'",
        "correct its tags; docs/scaler.md has them",
    )


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
    assert _said(session, "quotas", app) == (
        State.FAILURE,
        "the writes of Orders may rise to 70, and the account's quota for a table or index is 61: above it, auto "
        "scaling is refused",
        f"aws service-quotas request-service-quota-increase --region {REGION} --service-code dynamodb "
        "--quota-code L-AB614373 --desired-value 70",
    )


def test_floors_above_the_quota_of_the_account_are_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    _throughput(session, 60, 100)
    app = assembly(tmp_path, {"Orders": table("orders", 53, 6), "Events": table("events", 54, 6)})
    assert _said(session, "quotas", app) == (
        State.FAILURE,
        "the highest floors of all tables of the app add up to 107 read units, and the account's quota is 100",
        f"aws service-quotas request-service-quota-increase --region {REGION} --service-code dynamodb "
        "--quota-code L-34F6A552 --desired-value 107",
    )


def test_app_within_the_quotas_is_ok(session: StubbedSession, tmp_path: Path) -> None:
    _throughput(session, 60, 100)
    app = assembly(tmp_path, {"Orders": table("orders", 53, 6)})
    text = "ceilings and floors of the app are within DynamoDB's quotas of the account"
    assert _said(session, "quotas", app) == (State.OK, text, "")


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
    assert _said(session, "permissions", app) == (state, f"{DEPLOYS} may not dynamodb:CreateTable: {why}", fix)


def test_role_of_deploys_that_may_all_is_ok(session: StubbedSession, tmp_path: Path) -> None:
    _simulated(session, {}, {})
    app = assembly(tmp_path, {"Orders": table("orders", 5, 6), "Writes": target("orders", 7, 70)})
    assert _said(session, "permissions", app) == (State.OK, f"{DEPLOYS} may make all 2 types of the app", "")


def test_role_of_deploys_that_is_gone_is_a_failure(session: StubbedSession, tmp_path: Path) -> None:
    session.refuse("iam", "simulate_principal_policy", "NoSuchEntity", "The entity cannot be found.", 404)
    assert _said(session, "permissions", assembly(tmp_path, {"Orders": table("orders", 5, 6)})) == (
        State.FAILURE,
        f"the role that CloudFormation deploys with is not there: arn:aws:iam::{ACCOUNT}:role/{DEPLOYS}",
        f"cdk bootstrap {PLACE}",
    )


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
    assert _said(session, "config") == (
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
    assert _said(session, "config") == (State.OK, text, "")


def test_prices_that_are_not_known_are_a_warning(session: StubbedSession) -> None:
    session.region_name = "xx-north-9"
    _recorder(session, ALL, CONTINUOUS)
    state, text, fix = _said(session, "config")
    assert (state, fix) == (State.WARNING, "give a file with --prices")
    assert text.startswith("prices.json: has no prices of region 'xx-north-9', only of ")
