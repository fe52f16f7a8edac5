"""`PacedScan`: its state machine, what its role and the user's function may do, its alarm, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns

from cdk_highwater import BoostCoordinator, PacedScan
from tests.constructs.template_view import TemplateView, placed_stack, scalable_table


def _function(stack: cdk.Stack, id: str = "Work", **more: Any) -> lambda_.Function:
    return lambda_.Function(
        stack,
        id,
        runtime=lambda_.Runtime.PYTHON_3_14,
        handler="index.handler",
        code=lambda_.Code.from_inline("handler = None"),
        **{"timeout": cdk.Duration.minutes(15), **more},
    )


def _scan(stack: cdk.Stack, **more: Any) -> PacedScan:
    arguments: dict[str, Any] = {
        "table": more.pop("table", None) or scalable_table(stack, "Orders", table_name="orders"),
        "coordinator": more.pop("coordinator", None) or BoostCoordinator(stack, "Boosts"),
        "function": more.pop("function", None) or _function(stack),
        "read": 500,
        **more,
    }
    return PacedScan(stack, "Backfill", **arguments)


def _states(stack: cdk.Stack) -> dict[str, Any]:
    """The states of the machine, with `<...>` for references."""
    machine = TemplateView(stack).properties_of("AWS::StepFunctions::StateMachine")
    (_, parts) = machine["DefinitionString"]["Fn::Join"]
    text = "".join(part if isinstance(part, str) else "<reference>" for part in parts)
    document = json.loads(text)
    assert document["StartAt"] == "Start"
    states: dict[str, Any] = document["States"]
    return states


def _statements(stack: cdk.Stack, prefix: str) -> dict[str, Any]:
    """The statements of the policies whose ids begin with *prefix*, by their actions."""
    found = {}
    for name, policy in TemplateView(stack).named("AWS::IAM::Policy").items():
        if name.startswith(prefix):
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                actions = statement["Action"]
                found[" ".join([actions] if isinstance(actions, str) else sorted(actions))] = statement
    return found


def test_execution_starts_a_job_of_its_own_name_and_then_calls_the_function_in_as_many_places_as_it_says() -> None:
    stack = placed_stack()
    scan = _scan(stack, workers=20, index="by-day", segments=64)
    states = _states(stack)
    start = states["Start"]["Parameters"]
    assert scan.job_prefix.startswith("Shop-Backfill-")
    assert start == {
        "job.$": f"States.Format('{scan.job_prefix}{{}}', $$.Execution.Name)",
        "coordinator": start["coordinator"],
        "start": {
            "table": "<reference>",
            "read": 500,
            "budget": scan.budget,
            "index": "by-day",
            "segments": 64,
        },
        "workers": 20,
    }
    workers = states["Workers"]
    assert (workers["ItemsPath"], workers["MaxConcurrency"]) == ("$.seats", 20)
    assert workers["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    assert workers["ItemSelector"] == {
        "job.$": "$.job",
        "seat.$": "$$.Map.Item.Value",
        "coordinator": start["coordinator"],
    }
    # the id of a job has room for 59 characters of the execution's name
    assert len(scan.job_prefix) <= 41


def test_worker_works_until_the_job_is_done_and_rests_while_it_is_stopped() -> None:
    stack = placed_stack()
    _scan(stack)
    states = _states(stack)["Workers"]["ItemProcessor"]["States"]
    assert states["Work"]["Next"] == "IsDone"
    choices = {each["StringEquals"]: each["Next"] for each in states["IsDone"]["Choices"]}
    assert (choices, states["IsDone"]["Default"]) == ({"done": "Done", "stopped": "Rest"}, "Work")
    assert (states["Rest"]["Seconds"], states["Rest"]["Next"], states["Done"]["Type"]) == (300, "Work", "Succeed")


def test_worker_without_room_in_lambda_waits_and_one_that_fails_is_called_four_more_times() -> None:
    stack = placed_stack()
    _scan(stack)
    room, failure = _states(stack)["Workers"]["ItemProcessor"]["States"]["Work"]["Retry"]
    assert "Lambda.TooManyRequestsException" in room["ErrorEquals"]
    assert (room["MaxAttempts"], room["MaxDelaySeconds"]) == (10_000, 60)
    assert (failure["ErrorEquals"], failure["MaxAttempts"]) == (["States.ALL"], 4)


def test_role_may_call_the_function_and_run_its_own_machine_and_nothing_else() -> None:
    stack = placed_stack()
    scan = _scan(stack)
    name = scan.job_prefix.removesuffix("-")
    statements = _statements(stack, "BackfillRole")
    assert set(statements) == {
        "lambda:InvokeFunction",
        "states:StartExecution",
        "states:DescribeExecution states:StopExecution",
        "states:RedriveExecution",
    }
    assert statements["lambda:InvokeFunction"]["Resource"]["Fn::GetAtt"][0].startswith("Work")
    arns = {
        actions: statement["Resource"]["Fn::Join"][1][-1]
        for actions, statement in statements.items()
        if actions.startswith("states:")
    }
    assert arns == {
        "states:StartExecution": f":states:eu-west-1:111122223333:stateMachine:{name}",
        "states:DescribeExecution states:StopExecution": f":states:eu-west-1:111122223333:execution:{name}:*",
        "states:RedriveExecution": f":states:eu-west-1:111122223333:execution:{name}/Workers:*",
    }
    (trust,) = TemplateView(stack).named("AWS::IAM::Role")[_role_id(stack)]["Properties"]["AssumeRolePolicyDocument"][
        "Statement"
    ]
    assert trust["Principal"] == {"Service": "states.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}


def _role_id(stack: cdk.Stack) -> str:
    (id,) = (name for name in TemplateView(stack).named("AWS::IAM::Role") if name.startswith("BackfillRole"))
    return id


def test_function_may_scan_the_table_or_index_and_work_on_the_jobs_of_this_scan() -> None:
    stack = placed_stack()
    scan = _scan(stack, index="by-day", budget="nightly")
    statements = _statements(stack, "WorkServiceRole")
    table, index = statements["dynamodb:DescribeTable dynamodb:Scan"]["Resource"]
    assert table["Fn::GetAtt"][0].startswith("Orders")
    assert index["Fn::Join"][1][-1] == "/index/by-day"
    job = statements["dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem"]
    assert job["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": [f"job#{scan.job_prefix}*"]}
    budgets = [
        statement["Condition"]
        for policy in TemplateView(stack).named("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    ]
    assert {"dynamodb:LeadingKeys": ["budget#nightly"]} in [each.get("ForAllValues:StringEquals") for each in budgets]
    assert scan.budget == "nightly"


def test_key_of_an_encrypted_table_may_be_used() -> None:
    stack = placed_stack()
    own = kms.Key(stack, "Key")
    _scan(
        stack,
        table=scalable_table(stack, "Orders", encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED, encryption_key=own),
    )
    assert "kms:Decrypt kms:DescribeKey" in _statements(stack, "WorkServiceRole")


def test_operator_may_start_executions_and_nothing_else() -> None:
    stack = placed_stack()
    scan = _scan(stack)
    scan.grant_start(iam.Role(stack, "Operator", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
    assert set(_statements(stack, "Operator")) == {"states:StartExecution"}
    assert isinstance(scan.state_machine.state_machine_arn, str)
    with pytest.raises(TypeError, match="grantee must be a role or a user, or have a role, got 'operator'; give its"):
        scan.grant_start("operator")  # type: ignore[arg-type]


def test_alarm_tells_of_an_execution_that_failed() -> None:
    stack = placed_stack()
    _scan(stack, topic=sns.Topic(stack, "OnCall"))
    (alarm,) = (
        each["Properties"]
        for name, each in TemplateView(stack).named("AWS::CloudWatch::Alarm").items()
        if name.startswith("Backfill")
    )
    assert (alarm["MetricName"], alarm["Threshold"], len(alarm["AlarmActions"])) == ("ExecutionsFailed", 1, 1)


def test_function_of_another_stack_may_be_given() -> None:
    stack = placed_stack()
    arn = "arn:aws:lambda:eu-west-1:111122223333:function:work"
    _scan(stack, function=lambda_.Function.from_function_arn(stack, "Work", arn))
    assert _statements(stack, "BackfillRole")["lambda:InvokeFunction"]["Resource"] == arn


TYPES: dict[str, tuple[dict[str, Any], str]] = {
    "table": (
        {"table": "orders"},
        "table must be a dynamodb.Table, TableV2, CfnTable or an imported table, got str",
    ),
    "coordinator": (
        {"coordinator": "boosts"},
        "coordinator must be a BoostCoordinator, got 'boosts'; give its construct",
    ),
    "function": ({"function": "work"}, "function must be a Lambda function, got 'work'; give its construct"),
    "index": ({"index": 5}, "index must be the name of an index, got 5; give it in quotes"),
    "budget": ({"budget": 5}, "budget must be the name of a budget, got 5; give it in quotes"),
    "read": ({"read": "30%"}, "read must be a number of units per second, got '30%'; give a number"),
    "topic": (
        {"topic": "night"},
        "topic must be an SNS topic, got 'night'; give an sns.Topic; an existing one is sns.Topic.from_topic_arn(...)",
    ),
}


@pytest.mark.parametrize("case", TYPES)
def test_argument_of_another_type_is_refused(case: str) -> None:
    arguments, message = TYPES[case]
    with pytest.raises(TypeError) as refused:
        _scan(placed_stack(), **arguments)
    assert str(refused.value) == message


VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "workers": ({"workers": 501}, "workers is 501; allowed: whole numbers, from 1 to 500"),
    "segments": ({"segments": 10_001}, "segments is 10,001; allowed: whole numbers, from 1 to 10,000"),
    "read": (
        {"read": 19.5, "workers": 20},
        "read is 19.5; allowed: at least one unit per second for each of the 20 workers; give more, or fewer workers",
    ),
    "budget": ({"budget": ""}, "budget is ''; allowed: 1 to 100 characters"),
}


@pytest.mark.parametrize("case", VALUES)
def test_argument_out_of_range_is_refused(case: str) -> None:
    arguments, message = VALUES[case]
    with pytest.raises(ValueError, match="allowed: ") as refused:
        _scan(placed_stack(), **arguments)
    assert str(refused.value) == message


@pytest.mark.parametrize(("timeout", "seconds"), [(None, 3), (cdk.Duration.seconds(299), 299)])
def test_function_without_time_for_a_worker_is_refused(timeout: cdk.Duration | None, seconds: int) -> None:
    stack = placed_stack()
    with pytest.raises(ValueError, match="allowed: ") as refused:
        _scan(stack, function=_function(stack, timeout=timeout))
    assert str(refused.value) == (
        f"the timeout of Shop/Work is {seconds} seconds; allowed: 5 to 15 minutes; give it "
        "timeout=cdk.Duration.minutes(15)"
    )
