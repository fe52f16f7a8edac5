"""Checks of an account and region: whether they are ready for an app, before its first deploy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from highwater.core import Dimension
from highwater.core.schedule.bounds import bounds_with
from highwater_lab.doctor.app import Bootstrap
from highwater_lab.doctor.place import CheckedPlace
from highwater_lab.doctor.result import Result, State, unread
from highwater_lab.simulation import TargetSetup
from highwater_lab.template import ListedTable

_ROLE: Final = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
_ROLE_SERVICE: Final = "dynamodb.application-autoscaling.amazonaws.com"
# The parameter of `cdk bootstrap` with the qualifier that apps have by default (AWS CDK Developer Guide, "Customize AWS
# CDK bootstrapping", read 2026-11)
_USUAL_BOOTSTRAP: Final = Bootstrap("/cdk-bootstrap/hnb659fds/version", 1, ())
# What an account keeps unreserved (AWS Lambda Developer Guide, "Configuring reserved concurrency for a function", read
# 2026-11). One with a quota of 10 keeps 10, and can reserve nothing either (aws-samples/one-observability-demo, issue
# 278).
_UNRESERVED: Final = 100
_CONCURRENCY_QUOTA: Final = "L-B99A9384"
# What the scaler, boosts and deploys need beside an app's workers
_OWN_RUNS: Final = 5
# AWS General Reference, "Amazon DynamoDB endpoints and quotas", read 2026-11
_TABLE_QUOTAS: Final = {Dimension.READ: "L-CF0CBE56", Dimension.WRITE: "L-AB614373"}
_ACCOUNT_QUOTAS: Final = {Dimension.READ: "L-34F6A552", Dimension.WRITE: "L-34F8CCC8"}
# What CloudFormation calls first to make a resource of these types
_CREATES: Final = {
    "AWS::ApplicationAutoScaling::ScalableTarget": "application-autoscaling:RegisterScalableTarget",
    "AWS::ApplicationAutoScaling::ScalingPolicy": "application-autoscaling:PutScalingPolicy",
    "AWS::CloudWatch::Alarm": "cloudwatch:PutMetricAlarm",
    "AWS::DynamoDB::GlobalTable": "dynamodb:CreateTable",
    "AWS::DynamoDB::Table": "dynamodb:CreateTable",
    "AWS::Events::Rule": "events:PutRule",
    "AWS::IAM::Policy": "iam:PutRolePolicy",
    "AWS::IAM::Role": "iam:CreateRole",
    "AWS::Lambda::EventSourceMapping": "lambda:CreateEventSourceMapping",
    "AWS::Lambda::Function": "lambda:CreateFunction",
    "AWS::Lambda::Url": "lambda:CreateFunctionUrlConfig",
    "AWS::Logs::LogGroup": "logs:CreateLogGroup",
    "AWS::SQS::Queue": "sqs:CreateQueue",
    "AWS::SSM::Parameter": "ssm:PutParameter",
    "AWS::Scheduler::Schedule": "scheduler:CreateSchedule",
    "AWS::StepFunctions::StateMachine": "states:CreateStateMachine",
}
_RECORDED: Final = ("AWS::DynamoDB::Table", "AWS::CloudWatch::Alarm")


def service_linked_role(place: CheckedPlace) -> Iterator[Result]:
    """Whether Application Auto Scaling has its role for DynamoDB: without it, the first deploy may fail."""
    name, iam = "service-linked-role", place.client("iam")
    try:
        iam.get_role(RoleName=_ROLE)
    except iam.exceptions.NoSuchEntityException:
        yield Result(
            check=name,
            state=State.FAILURE,
            text=f"there is no role {_ROLE}; the first target makes it, and others may fail until it is in effect",
            fix=f"aws iam create-service-linked-role --aws-service-name {_ROLE_SERVICE}",
        )
    except ClientError as error:
        # a role that does not exist has no path, so a policy that allows it by its path does not allow the request
        yield unread(name, error, if_denied=f"IAM may answer so as well where there is no role {_ROLE}")
    else:
        yield Result(check=name, state=State.OK, text=f"{_ROLE} is there")


def bootstrap(place: CheckedPlace) -> Iterator[Result]:
    """Whether `cdk bootstrap` was run, with a version that suffices, and its buckets are still there."""
    name, where = "bootstrap", f"aws://{place.account}/{place.region}"
    for needed in (_USUAL_BOOTSTRAP,) if place.app is None else place.app.bootstraps:
        qualifier = needed.parameter.split("/")[2:3]
        more = "" if qualifier in ([], ["hnb659fds"]) else f" --qualifier {qualifier[0]}"
        fix = f"cdk bootstrap {where}{more}"
        text = place.parameter(needed.parameter)
        if text is None:
            missing = f"{where} is not bootstrapped: there is no parameter {needed.parameter}"
            yield Result(check=name, state=State.FAILURE, text=missing, fix=fix)
            continue
        if not text.isdigit() or int(text) < needed.version:
            old = f"{where} is bootstrapped with version {text}, and the app needs {needed.version}"
            yield Result(check=name, state=State.FAILURE, text=old, fix=fix)
            continue
        gone = [bucket for bucket in needed.buckets if not place.has_bucket(bucket)]
        for bucket in gone:
            deleted = f"{where} is bootstrapped, and its bucket {bucket} is gone"
            again = f"delete the stack CDKToolkit of that region, then {fix}"
            yield Result(check=name, state=State.FAILURE, text=deleted, fix=again)
        if not gone:
            yield Result(check=name, state=State.OK, text=f"{where} is bootstrapped, version {text}")


def types(place: CheckedPlace) -> Iterator[Result]:
    """Whether the region has all resource types of the app: CloudFormation refuses a template with any other type."""
    name, client = "types", place.client("cloudformation")
    if place.app is None:
        return
    missing = 0
    for kind, logical_ids in sorted(place.app.registered.items()):
        try:
            client.describe_type(Type="MODULE" if kind.endswith("::MODULE") else "RESOURCE", TypeName=kind)
        except client.exceptions.TypeNotFoundException:
            missing += 1
            elsewhere = "deploy the app to another region, or leave out what makes this resource"
            is_own = kind.startswith("AWS::")
            yield Result(
                check=name,
                state=State.FAILURE,
                text=f"CloudFormation has no {kind} in {place.region}, and the app has {', '.join(logical_ids)}, so a "
                "deploy is refused before it makes anything",
                fix=elsewhere if is_own else f"register or activate {kind} in CloudFormation's registry of the region",
                details={"type": kind, "resources": logical_ids},
            )
    if not missing:
        text = f"{place.region} has all {len(place.app.registered)} resource types of the app"
        yield Result(check=name, state=State.OK, text=text)


def concurrency(place: CheckedPlace) -> Iterator[Result]:
    """How many concurrent runs of functions the account has, and whether the app may reserve what it wants to."""
    name, client = "concurrency", place.client("lambda")
    limits = client.get_account_settings()["AccountLimit"]
    quota, unreserved = limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]
    reservable = max(0, unreserved - _UNRESERVED)
    reservations = () if place.app is None else place.app.reservations
    wanted, workers = sum(each.runs for each in reservations), 0 if place.app is None else place.app.workers
    # the account's unreserved runs are without those that the app's deployed functions have reserved already
    own = 0
    for each in reservations:
        function = place.stacks.physical(each.stacks, each.logical_id)
        if function is not None:
            own += client.get_function_concurrency(FunctionName=function).get("ReservedConcurrentExecutions", 0)
    raise_quota = _raise_quota(place, "lambda", _CONCURRENCY_QUOTA, 1_000)
    has = f"{quota:,} concurrent runs, {unreserved:,} not reserved, of which {reservable:,} may be"
    details = {"quota": quota, "unreserved": unreserved, "reservable": reservable, "workers": workers}
    if wanted - own > reservable:
        yield Result(
            check=name,
            state=State.FAILURE,
            text=f"the app reserves {wanted:,} concurrent runs, and the account has {has}, so the deploy fails",
            fix=f"lower reserved_concurrency, or {raise_quota}",
            details=details,
        )
    elif workers + _OWN_RUNS > unreserved - wanted + own:
        yield Result(
            check=name,
            state=State.WARNING,
            text=f"the app's jobs and queues may take {workers:,} concurrent runs, and the account has {has}; while "
            "they do, Lambda throttles the scaler, boosts and deploys",
            fix=f"fewer workers, or {raise_quota}",
            details=details,
        )
    else:
        uses = f"; the app reserves {wanted:,}, and its jobs and queues take {workers:,}" if place.app else ""
        yield Result(check=name, state=State.OK, text=f"the account has {has}{uses}", details=details)


def quotas(place: CheckedPlace) -> Iterator[Result]:
    """Whether the app's ceilings fit a table's quota of DynamoDB, and its floors the account's."""
    name = "quotas"
    if place.app is None:
        return
    limits: Mapping[str, Any] = place.client("dynamodb").describe_limits()
    found = False
    for dimension in Dimension:
        of_table, of_account = (limits[f"{kind}Max{dimension.title()}CapacityUnits"] for kind in ("Table", "Account"))
        floors = 0
        for table in place.app.listed.tables:
            for label, floor, ceiling in _highest(table, dimension):
                floors += floor
                if ceiling > of_table:
                    found = True
                    yield Result(
                        check=name,
                        state=State.FAILURE,
                        text=f"the {dimension}s of {label} may rise to {ceiling:,}, and the account's quota for a "
                        f"table or index is {of_table:,}: above it, auto scaling is refused",
                        fix=_raise_quota(place, "dynamodb", _TABLE_QUOTAS[dimension], ceiling),
                    )
        if floors > of_account:
            found = True
            yield Result(
                check=name,
                state=State.FAILURE,
                text=f"the highest floors of all tables of the app add up to {floors:,} {dimension} units, and the "
                f"account's quota is {of_account:,}",
                fix=_raise_quota(place, "dynamodb", _ACCOUNT_QUOTAS[dimension], floors),
            )
    if not found:
        text = "ceilings and floors of the app are within DynamoDB's quotas of the account"
        yield Result(check=name, state=State.OK, text=text)


def permissions(place: CheckedPlace) -> Iterator[Result]:
    """Whether the role that CloudFormation deploys with may make the app's resources, by IAM's simulation."""
    name, iam = "permissions", place.client("iam")
    if place.app is None or not place.app.roles:
        return
    actions = sorted({_CREATES[kind] for kind in place.app.kinds if kind in _CREATES})
    context = [
        {"ContextKeyName": "aws:RequestedRegion", "ContextKeyValues": [place.region], "ContextKeyType": "string"}
    ]
    for role in place.app.roles:
        arn = role.replace("${AWS::Partition}", place.partition)
        try:
            pages = iam.get_paginator("simulate_principal_policy").paginate(
                PolicySourceArn=arn, ActionNames=actions, ContextEntries=context
            )
            results = [each for page in pages for each in page["EvaluationResults"]]
        except iam.exceptions.NoSuchEntityException:
            missing = f"the role that CloudFormation deploys with is not there: {arn}"
            fix = f"cdk bootstrap aws://{place.account}/{place.region}"
            yield Result(check=name, state=State.FAILURE, text=missing, fix=fix)
            continue
        denied: dict[tuple[State, str, str], list[str]] = {}
        for each in results:
            if each["EvalDecision"] != "allowed":
                denied.setdefault(_why(each), []).append(each["EvalActionName"])
        for (state, why, fix), refused in denied.items():
            text = f"{arn.rpartition('/')[2]} may not {', '.join(refused)}: {why}"
            yield Result(check=name, state=state, text=text, fix=fix)
        if not denied:
            text = f"{arn.rpartition('/')[2]} may make all {len(place.app.kinds & _CREATES.keys())} types of the app"
            yield Result(check=name, state=State.OK, text=text)


def config(place: CheckedPlace) -> Iterator[Result]:
    """Whether AWS Config records each change of tables and alarms, which may cost more than the scaler."""
    name, client = "config", place.client("config")
    recorders = client.describe_configuration_recorders()["ConfigurationRecorders"]
    statuses = client.describe_configuration_recorder_status()["ConfigurationRecordersStatus"]
    running = {each["name"] for each in statuses if each.get("recording")}
    kinds = {kind for each in recorders if each["name"] in running for kind in _RECORDED if _is_recorded(each, kind)}
    if not kinds:
        text = "AWS Config does not record each change of tables and alarms"
        yield Result(check=name, state=State.OK, text=text)
        return
    yield Result(
        check=name,
        state=State.WARNING,
        text=f"AWS Config records each change of {' and '.join(sorted(kinds))}, {place.prices.config_item} "
        "USD each; scaling changes them all day",
        fix="record them once a day, or leave them out (docs/cost.md); highwater rehearse --config-recorder counts "
        "them",
    )


def _is_recorded(recorder: Mapping[str, Any], kind: str) -> bool:
    """Whether a recorder records each change of a type."""
    group, mode = recorder.get("recordingGroup", {}), recorder.get("recordingMode", {})
    frequency = mode.get("recordingFrequency", "CONTINUOUS")
    for override in mode.get("recordingModeOverrides", []):
        if kind in override["resourceTypes"]:
            frequency = override["recordingFrequency"]
    if frequency != "CONTINUOUS":
        return False
    excluded = group.get("exclusionByResourceTypes", {}).get("resourceTypes", [])
    is_exclusion = group.get("recordingStrategy", {}).get("useOnly") == "EXCLUSION_BY_RESOURCE_TYPES"
    if is_exclusion:
        return kind not in excluded
    return bool(group.get("allSupported", not group)) or kind in group.get("resourceTypes", [])


def _why(result: Mapping[str, Any]) -> tuple[State, str, str]:
    """Return of a denied action how bad that is, why, and the fix."""
    if not result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True):
        return (
            State.FAILURE,
            "a service control policy of the organization denies it",
            "ask those who run the organization",
        )
    if not result.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True):
        return State.FAILURE, "its permissions boundary leaves it out", "widen the boundary, and bootstrap again"
    if result["EvalDecision"] == "explicitDeny":
        return State.FAILURE, "a policy of it denies it", "take the denial out of its policies, and bootstrap again"
    # one that is allowed for some resources alone is not seen
    return (
        State.WARNING,
        "no policy allows it for every resource",
        "cdk bootstrap --cloudformation-execution-policies with a policy that does, unless one allows it for the app's",
    )


def _highest(table: ListedTable, dimension: Dimension) -> Iterator[tuple[str, int, int]]:
    """Yield for a table and each index its name, and the highest floor and ceiling that are declared for any time."""
    if table.setup is None or table.setup.is_on_demand:
        return
    planned = {} if table.plan is None else {each.key: each for each in table.plan.targets()}
    for resource in table.setup.resources:
        label = table.name if resource.index is None else f"{table.name} {resource.label}"
        floor, ceiling = _highest_of(resource.target(dimension))
        target = planned.get((resource.index, dimension))
        if target is not None and not target.capacity.is_deploy_time:
            bounds = bounds_with(target, target.windows)
            floor, ceiling = max(floor, bounds.min), max(ceiling, bounds.max, target.capacity.max_with_boosts or 0)
        yield label, floor, ceiling


def _highest_of(target: TargetSetup) -> tuple[int, int]:
    floors = (target.min, *(each.min for each in target.actions if each.min is not None))
    ceilings = (target.max, *(each.max for each in target.actions if each.max is not None))
    return max(floors), max(ceilings)


def _raise_quota(place: CheckedPlace, service: str, quota: str, wanted: int) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --region {place.region} --service-code {service} "
        f"--quota-code {quota} --desired-value {wanted}"
    )
