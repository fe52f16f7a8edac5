"""`BoostCoordinator`: its resources, what each grant adds, and what synth refuses."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from cfnlint.helpers import REGIONS
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER as SCHEMAS

from cdk_highwater import BoostCoordinator, HighWaterTable, ThrottleAwareScaler
from highwater.client.coordinator import URL_VARIABLE
from highwater.core.names import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from highwater.core.pulses import HINT_ATTRIBUTE, pulse_detail_type
from highwater.handlers.coordinator.handler import DETAIL_TYPE
from tests.constructs.template_view import (
    TemplateView,
    listed,
    messages,
    new_app,
    placed_stack,
    refused,
    scalable_table,
)


@pytest.fixture
def stack() -> cdk.Stack:
    return placed_stack()


def _table(stack: cdk.Stack) -> HighWaterTable:
    return scalable_table(stack, "Orders", table_name="orders")


def _resources(stack: cdk.Stack, kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in TemplateView(stack).of_type(kind)]


def test_lease_table_costs_nothing_while_it_is_idle_and_has_what_the_adapter_expects(stack: cdk.Stack) -> None:
    BoostCoordinator(stack, "Boosts")
    (table,) = _resources(stack, "AWS::DynamoDB::Table")
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert [key["AttributeName"] for key in table["KeySchema"]] == [PARTITION_KEY, SORT_KEY]
    assert table["TimeToLiveSpecification"] == {"AttributeName": TTL_ATTRIBUTE, "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    alarms = {alarm.get("MetricName", "Heartbeat") for alarm in _resources(stack, "AWS::CloudWatch::Alarm")}
    assert alarms == {
        "Errors",
        "Heartbeat",
        "Throttles",
        "ApproximateNumberOfMessagesVisible",
        "TablesFailed",
        "UnreadablePlans",
        "LeasesMissing",
        "BoostsRefused",
    }


def test_url_authenticates_and_its_address_is_where_clients_look(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    (url,) = _resources(stack, "AWS::Lambda::Url")
    assert url["AuthType"] == "AWS_IAM"
    names = {parameter["Name"] for parameter in _resources(stack, "AWS::SSM::Parameter")}
    name = coordinator.coordinator_name
    assert names == {f"/highwater/{what}/{name}" for what in ("coordinators", "leases", "pulses")}
    (function,) = _resources(stack, "AWS::Lambda::Function")
    assert function["Handler"] == "highwater.handlers.coordinator.handler.handler"
    assert function["Environment"]["Variables"]["HIGHWATER_COORDINATOR"] == coordinator.coordinator_name


def test_tick_runs_every_minute_and_goes_before_the_floors_of_its_tables_are_reset(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    coordinator.add_table(_table(stack))
    view = TemplateView(stack)
    (tick,) = view.of_type("AWS::Scheduler::Schedule")
    assert tick["Properties"]["ScheduleExpression"] == "rate(1 minute)"
    target = tick["Properties"]["Target"]
    assert json.loads(target["Input"]) == {"highwater": "tick", "time": "<aws.scheduler.scheduled-time>"}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}
    assert any("Scaled" in name for name in tick["DependsOn"]), tick["DependsOn"]


def test_coordinator_shares_the_function_and_the_tick_of_a_scaler(stack: cdk.Stack) -> None:
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(_table(stack))
    coordinator = BoostCoordinator(stack, "Boosts", scaler=scaler)
    assert coordinator.function.node.path == scaler.function.node.path
    assert len(_resources(stack, "AWS::Scheduler::Schedule")) == 1
    handlers = [function["Handler"] for function in _resources(stack, "AWS::Lambda::Function")]
    assert sorted(handlers) == [
        "highwater.handlers.coordinator.handler.handler",
        "highwater.handlers.deploy.handler.handler",
    ]
    metrics = [alarm.get("MetricName") for alarm in _resources(stack, "AWS::CloudWatch::Alarm")]
    assert (metrics.count("LeasesMissing"), metrics.count("BoostsRefused")) == (1, 1)
    with pytest.raises(ValueError, match=r"^Shop/Scaler: has a coordinator already, Shop/Boosts; use that one$"):
        BoostCoordinator(stack, "Second", scaler=scaler)


def test_permissions_are_for_its_own_table_and_grants(stack: cdk.Stack) -> None:
    name = BoostCoordinator(stack, "Boosts").coordinator_name
    by_action = {
        action: statement for statement in TemplateView(stack).statements() for action in listed(statement["Action"])
    }
    assert by_action["application-autoscaling:DescribeScalingActivities"]["Resource"] == "*"
    leases = by_action["dynamodb:UpdateItem"]
    actions = ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")
    assert leases["Action"] == [f"dynamodb:{action}" for action in actions]
    grants = [statement for statement in TemplateView(stack).statements() if "/boosts/" in json.dumps(statement)]
    assert [statement["Action"] for statement in grants] == ["ssm:GetParametersByPath"]
    assert f":parameter/highwater/boosts/{name}/*" in json.dumps(grants)


def test_grant_is_a_parameter_in_the_callers_stack_and_the_right_to_call() -> None:
    app = new_app()
    stack, jobs = placed_stack(app), placed_stack(app, "Jobs")
    table = _table(stack)
    coordinator = BoostCoordinator(stack, "Boosts")
    coordinator.add_table(table)
    role = iam.Role(jobs, "Loader", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    coordinator.grant_boost(role, max_write=700, tables=[table, "imported"])
    coordinator.grant_boost(role, max_read=30)
    first, second = _resources(jobs, "AWS::SSM::Parameter")
    assert first["Name"].startswith(f"/highwater/boosts/{coordinator.coordinator_name}/")
    assert second["Name"] == f"{first['Name']}-2"
    (_, [_, _, rest]) = first["Value"]["Fn::Join"]
    assert rest == '","max_write":700,"max_read":0,"tables":["orders","imported"]}'
    granted = [each for each in TemplateView(jobs).statements() if "lambda:" in json.dumps(each["Action"])]
    assert [(each["Action"], each["Condition"]) for each in granted] == [
        ("lambda:InvokeFunctionUrl", {"StringEquals": {"lambda:FunctionUrlAuthType": "AWS_IAM"}}),
        ("lambda:InvokeFunction", {"Bool": {"lambda:InvokedViaFunctionUrl": True}}),
    ]


def test_function_among_the_callers_finds_the_coordinator_in_its_environment(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    job = lambda_.Function(
        stack,
        "Job",
        runtime=lambda_.Runtime.PYTHON_3_13,
        handler="index.handler",
        code=lambda_.Code.from_inline("handler = print"),
    )
    coordinator.grant_boost(job, max_write=5)
    (variables,) = [
        function["Environment"]["Variables"]
        for function in _resources(stack, "AWS::Lambda::Function")
        if function["Handler"] == "index.handler"
    ]
    assert list(variables) == [URL_VARIABLE]


def test_events_of_a_source_boost_and_only_the_grantee_may_put_them_anew(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    role = iam.Role(stack, "Loader", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
    coordinator.grant_boost_events("acme.loader", max_write=40, grantee=role)
    (rule,) = _resources(stack, "AWS::Events::Rule")
    (target,) = rule["Targets"]
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 300, "MaximumRetryAttempts": 10}
    assert rule["EventPattern"] == {"source": ["acme.loader"], "detail-type": [DETAIL_TYPE]}
    (parameter,) = [each for each in _resources(stack, "AWS::SSM::Parameter") if "/boosts/" in each["Name"]]
    assert parameter["Value"] == '{"caller":"events/acme.loader","max_write":40,"max_read":0}'
    (putting,) = [each for each in TemplateView(stack).statements() if each["Action"] == "events:PutEvents"]
    assert putting["Condition"] == {
        "StringEquals": {"events:source": "acme.loader", "events:detail-type": "Highwater Boost"}
    }


def test_source_may_have_several_grants_and_one_rule(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    coordinator.grant_boost_events("acme.loader", max_write=40)
    coordinator.grant_boost_events("acme.loader", max_write=7)
    assert len(_resources(stack, "AWS::Events::Rule")) == 1
    parameters = [each["Value"] for each in _resources(stack, "AWS::SSM::Parameter") if "/boosts/" in each["Name"]]
    assert sorted(parameters) == [
        '{"caller":"events/acme.loader","max_write":40,"max_read":0}',
        '{"caller":"events/acme.loader","max_write":7,"max_read":0}',
    ]


def test_fleets_without_a_way_to_the_url_may_ask_by_events_of_their_own_tables(stack: cdk.Stack) -> None:
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(scalable_table(stack, "Jobs", table_name="jobs"))
    scaler.add_table(scalable_table(stack, "Carts", table_name="carts"))
    coordinator = BoostCoordinator(stack, "Boosts", scaler=scaler)
    for name in ("Service", "Worker"):
        role = iam.Role(stack, name, assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
        coordinator.grant_pulse(role, tables=["jobs", "carts"] if name == "Service" else ["carts"])
    (rule,) = [each for each in _resources(stack, "AWS::Events::Rule") if "EventPattern" in each]
    (target,) = rule["Targets"]
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 2}
    (table,) = rule["EventPattern"]["detail"]["pulses"]
    assert rule["EventPattern"]["source"] == ["highwater.pulse"]
    assert table["Ref"].startswith("BoostsLeases")
    putting = [each for each in TemplateView(stack).statements() if each["Action"] == "events:PutEvents"]
    assert [each["Condition"]["StringEquals"] for each in putting] == [
        {
            "events:source": "highwater.pulse",
            "events:detail-type": ["Highwater Pulse jobs", "Highwater Pulse carts"],
        },
        {"events:source": "highwater.pulse", "events:detail-type": ["Highwater Pulse carts"]},
    ]


@pytest.mark.parametrize("characters", [112, 113, 255])
def test_fleet_of_a_table_with_a_generated_name_may_put_its_events_whatever_its_length(
    stack: cdk.Stack, characters: int
) -> None:
    """A template cannot cut a name, so what a policy allows must not depend on a part of it."""
    scaler = ThrottleAwareScaler(stack, "Scaler")
    table = scalable_table(stack, "Jobs")
    scaler.add_table(table)
    role = iam.Role(stack, "Service", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    BoostCoordinator(stack, "Boosts", scaler=scaler).grant_pulse(role, tables=[table])
    (putting,) = [each for each in TemplateView(stack).statements() if each["Action"] == "events:PutEvents"]
    generated = "j" * characters
    assert pulse_detail_type(generated) in [
        kind if isinstance(kind, str) else kind["Fn::Join"][1][0] + generated
        for kind in putting["Condition"]["StringEquals"]["events:detail-type"]
    ]


def test_fleet_of_a_table_with_a_long_name_puts_events_of_the_type_that_such_tables_share(stack: cdk.Stack) -> None:
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(scalable_table(stack, "Jobs", table_name="j" * 113))
    scaler.add_table(scalable_table(stack, "Carts", table_name="c" * 112))
    role = iam.Role(stack, "Service", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    BoostCoordinator(stack, "Boosts", scaler=scaler).grant_pulse(role, tables=["j" * 113, "c" * 112])
    (putting,) = [each for each in TemplateView(stack).statements() if each["Action"] == "events:PutEvents"]
    types = putting["Condition"]["StringEquals"]["events:detail-type"]
    assert types == ["Highwater Pulse", f"Highwater Pulse {'c' * 112}"]


def test_fleets_may_add_to_their_pulses_and_read_nothing(stack: cdk.Stack) -> None:
    """A role limited by `dynamodb:Attributes` reads all attributes with a GetItem that has no projection.

    Recorded: radkawar/stackd 9dc356f, dynamodb/attributes, 2026-09. So there is no GetItem; what UpdateItem returns is
    the fleet's sum and the hint, which a process needs.
    """
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(scalable_table(stack, "Jobs", table_name="jobs"))
    role = iam.Role(stack, "Service", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    BoostCoordinator(stack, "Boosts", scaler=scaler).grant_pulse(role, tables=["jobs"])
    granted = [each for each in TemplateView(stack).statements() if "dynamodb:LeadingKeys" in str(each)]
    (statement,) = granted
    assert statement["Action"] == "dynamodb:UpdateItem"
    condition = statement["Condition"]
    assert condition["Null"] == {"dynamodb:LeadingKeys": "false", "dynamodb:Attributes": "false"}
    # the key's names count as attributes, too (dynamodb/attribute_boundaries of the same source)
    attributes = condition["ForAllValues:StringLike"]["dynamodb:Attributes"]
    assert {PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE} < {*attributes}
    assert HINT_ATTRIBUTE not in attributes


def test_concurrency_may_be_reserved_and_is_not_by_default() -> None:
    reserved = placed_stack()
    ThrottleAwareScaler(reserved, "Scaler", reserved_concurrency=20)
    BoostCoordinator(reserved, "Boosts", reserved_concurrency=5)
    plain = placed_stack()
    BoostCoordinator(plain, "Boosts", scaler=ThrottleAwareScaler(plain, "Scaler"))
    given = [
        [function.get("ReservedConcurrentExecutions") for function in _resources(each, "AWS::Lambda::Function")]
        for each in (reserved, plain)
    ]
    assert given == [[20, 5], [None]]


@pytest.mark.parametrize(("value", "got"), [(4, "4"), (1_001, "1001"), (True, "True"), ("9", "'9'"), (9.5, "9.5")])
def test_concurrency_out_of_range_is_refused(stack: cdk.Stack, value: Any, got: str) -> None:
    for make in (ThrottleAwareScaler, BoostCoordinator):
        told = f"reserved_concurrency is {got}; allowed: whole numbers from 5 to 1,000; give 10 to 20, or leave the "
        with refused(ValueError, f"{told}argument out to share the account's concurrency"):
            make(stack, make.__name__, reserved_concurrency=value)


def test_concurrency_of_a_shared_function_is_the_scalers(stack: cdk.Stack) -> None:
    scaler = ThrottleAwareScaler(stack, "Scaler")
    told = "reserved_concurrency is for a coordinator with a function of its own; give it to the scaler"
    with refused(ValueError, told):
        BoostCoordinator(stack, "Boosts", scaler=scaler, reserved_concurrency=20)


def test_chain_of_runs_is_not_ended_by_lambda(stack: cdk.Stack) -> None:
    ThrottleAwareScaler(stack, "Scaler")
    (function,) = _resources(stack, "AWS::Lambda::Function")
    assert function["RecursiveLoop"] == "Allow"


def test_tables_of_a_scaler_are_added_to_the_scaler(stack: cdk.Stack) -> None:
    scaler = ThrottleAwareScaler(stack, "Scaler")
    table = _table(stack)
    coordinator = BoostCoordinator(stack, "Boosts", scaler=scaler)
    with pytest.raises(ValueError, match=r"boosts the tables of its scaler; call add_table of the scaler$"):
        coordinator.add_table(table)
    with pytest.raises(ValueError, match=r"^topic is for a coordinator with a function of its own; give "):
        BoostCoordinator(stack, "Second", scaler=scaler, topic=sns.Topic(stack, "Topic"))


def test_table_with_a_scaler_and_a_coordinator_of_its_own_is_an_error(stack: cdk.Stack) -> None:
    table = _table(stack)
    ThrottleAwareScaler(stack, "Scaler").add_table(table)
    BoostCoordinator(stack, "Boosts").add_table(table)
    assert messages(stack, "error") == [
        "Shop/Orders/Capacity: the table: Shop/Scaler sets the table's floors already; two would set each other's; "
        "give that scaler to the coordinator: BoostCoordinator(..., scaler=) [highwater:secondScaler]"
    ]


def _told_of_urls(region: str) -> list[str]:
    there = placed_stack(region=region)
    BoostCoordinator(there, "Boosts")
    return [text.split(" [ack")[0] for text in messages(there, "warning")]


@pytest.mark.parametrize(
    "region",
    ["il-central-1", "mx-central-1", "us-gov-west-1", "us-gov-east-1", "cn-north-1", "cn-northwest-1"],
)
def test_region_that_may_have_no_function_urls_is_named(region: str) -> None:
    assert _told_of_urls(region) == [
        f"Shop/Boosts: the coordinator: jobs reach it by a Lambda function URL, and AWS has listed {region} among the "
        "regions that have none; a deploy is refused there before it makes anything; check by highwater doctor that "
        "the region has function URLs now, or use windows and the scaler without boosts and pulses "
        "[highwater:urlsMissing]"
    ]


def test_each_region_whose_schemas_have_no_function_urls_is_named() -> None:
    """cfn-lint has the schemas of CloudFormation's registry, region by region."""
    without = [each for each in REGIONS if "AWS::Lambda::Url" not in SCHEMAS.get_resource_types(each)]
    assert len(without) > 10
    assert [region for region in without if not _told_of_urls(region)] == []
    assert _told_of_urls("eu-west-1") == []


def test_budgets_are_granted_by_name_in_the_coordinators_table(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    role = iam.Role(stack, "Loader", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    coordinator.grant_budget(role, "nightly", "hourly")
    (statement,) = [each for each in TemplateView(stack).statements() if "dynamodb:LeadingKeys" in str(each)]
    assert statement["Action"] == ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    assert statement["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["budget#nightly", "budget#hourly"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }


def test_jobs_are_granted_by_id_with_the_budgets_of_their_names(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    role = iam.Role(stack, "Loader", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    coordinator.grant_job(role, "backfill-7", "backfill-8")
    statements = [each for each in TemplateView(stack).statements() if "dynamodb:LeadingKeys" in str(each)]
    assert [(each["Action"], each["Condition"]) for each in statements] == [
        (
            actions,
            {
                "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [f"{kind}#backfill-7", f"{kind}#backfill-8"]},
                "Null": {"dynamodb:LeadingKeys": "false"},
            },
        )
        for actions, kind in (
            (["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"], "job"),
            (["dynamodb:GetItem", "dynamodb:UpdateItem"], "budget"),
        )
    ]
    with pytest.raises(ValueError, match=r"^jobs: got none, allowed: names of jobs; give the names that its workers"):
        coordinator.grant_job(role)
