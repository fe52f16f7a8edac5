"""`PacedScan` and `PacedLoad`: their state machines, what their roles and functions may do, alarms, and refusals."""

from __future__ import annotations

from functools import cache
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from cdk_highwater import PacedJob, PacedScan
from highwater.core.names import MOST_BUDGET_CHARACTERS
from tests.constructs.jobs import paced_load, paced_scan
from tests.constructs.template_view import TemplateView, joined, placed_stack, scalable_table


def _start(stack: cdk.Stack) -> dict[str, Any]:
    """What the first state of the machine asks the function."""
    machine = TemplateView(stack).machine
    assert machine["StartAt"] == "Start"
    parameters: dict[str, Any] = machine["States"]["Start"]["Parameters"]
    return parameters


def _workers(stack: cdk.Stack) -> dict[str, Any]:
    """The state in which the workers are called."""
    workers: dict[str, Any] = TemplateView(stack).machine["States"]["Workers"]
    return workers


def test_execution_starts_a_job_of_its_own_name_and_then_calls_the_function_in_as_many_places_as_it_says() -> None:
    stack = placed_stack()
    scan = paced_scan(stack, workers=20, index="by-day", segments=64)
    start, workers = _start(stack), _workers(stack)
    assert scan.job_prefix.startswith("Shop-Backfill-")
    assert start == {
        "job.$": f"States.Format('{scan.job_prefix}{{}}', $$.Execution.Name)",
        "coordinator": start["coordinator"],
        "start": {
            "table": "<>",
            "read": 500,
            "budget": scan.budget,
            "index": "by-day",
            "segments": 64,
        },
        "workers": 20,
    }
    assert (workers["ItemsPath"], workers["MaxConcurrency"]) == ("$.seats", 20)
    assert workers.get("ResultPath", "$") is None, "the workers' results are not the execution's"
    assert workers["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    assert workers["ItemSelector"] == {
        "job.$": "$.job",
        "seat.$": "$$.Map.Item.Value",
        "coordinator": start["coordinator"],
    }
    # the id of a job has room for the 80 characters that the name of an execution may have
    assert len(scan.job_prefix) + 80 <= MOST_BUDGET_CHARACTERS


@cache
def _plain() -> PacedScan:
    """A scan that no test changes."""
    return paced_scan(placed_stack())


def test_worker_works_until_the_job_is_done_and_rests_while_it_is_stopped() -> None:
    states = _workers(cdk.Stack.of(_plain()))["ItemProcessor"]["States"]
    assert states["Work"]["Next"] == "IsDone"
    choices = {each["StringEquals"]: each["Next"] for each in states["IsDone"]["Choices"]}
    assert (choices, states["IsDone"]["Default"]) == ({"done": "Done", "stopped": "Rest"}, "Work")
    assert (states["Rest"]["Seconds"], states["Rest"]["Next"], states["Done"]["Type"]) == (300, "Work", "Succeed")


def test_no_two_states_of_a_machine_have_one_name() -> None:
    """Recorded: radkawar/stackd 9dc356f, stepfunctions/distributed_map. A Map's states count with the others."""
    states = TemplateView(cdk.Stack.of(_plain())).machine["States"]
    names = [*states, *states["Workers"]["ItemProcessor"]["States"]]
    assert len(names) == len(set(names)) == 6


def test_worker_waits_for_room_in_lambda_and_one_that_fails_is_called_for_a_quarter_of_an_hour() -> None:
    room, failure = _workers(cdk.Stack.of(_plain()))["ItemProcessor"]["States"]["Work"]["Retry"]
    # Lambda's own, which pass (AWS Step Functions Developer Guide, "Handle transient Lambda service exceptions")
    transient = {f"Lambda.{each}" for each in ("ServiceException", "AWSLambdaException", "SdkClientException")}
    assert {"Lambda.TooManyRequestsException", "Lambda.ClientExecutionTimeoutException"} | transient == set(
        room["ErrorEquals"]
    )
    assert (room["MaxAttempts"], room["MaxDelaySeconds"]) == (10_000, 60)
    assert failure["ErrorEquals"] == ["States.ALL"]
    waits = [
        min(failure["IntervalSeconds"] * failure["BackoffRate"] ** each, failure["MaxDelaySeconds"])
        for each in range(failure["MaxAttempts"])
    ]
    assert (len(waits), sum(waits)) == (8, 915)
    start = TemplateView(cdk.Stack.of(_plain())).machine["States"]["Start"]["Retry"]
    assert start == [room, {**failure, "MaxAttempts": 4}], "a wrong input is not tried for so long"


def test_role_may_call_the_function_and_run_its_own_machine_and_nothing_else() -> None:
    name, view = _plain().job_prefix.removesuffix("-"), TemplateView(cdk.Stack.of(_plain()))
    statements = view.by_actions("BackfillRole")
    assert set(statements) == {
        "lambda:InvokeFunction",
        "states:StartExecution",
        "states:DescribeExecution states:StopExecution",
        "states:RedriveExecution",
    }
    assert statements["lambda:InvokeFunction"][0]["Resource"]["Fn::GetAtt"][0].startswith("Work")
    arns = {
        actions: statement["Resource"]["Fn::Join"][1][-1]
        for actions, (statement,) in statements.items()
        if actions.startswith("states:")
    }
    assert arns == {
        "states:StartExecution": f":states:eu-west-1:111122223333:stateMachine:{name}",
        "states:DescribeExecution states:StopExecution": f":states:eu-west-1:111122223333:execution:{name}:*",
        "states:RedriveExecution": f":states:eu-west-1:111122223333:execution:{name}/Workers:*",
    }
    role = view.properties_of("AWS::IAM::Role", "BackfillRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "states.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}


def test_function_may_scan_the_table_or_index_and_work_on_the_jobs_of_this_scan() -> None:
    stack = placed_stack()
    scan = paced_scan(stack, index="by-day", budget="nightly")
    statements = TemplateView(stack).by_actions("WorkServiceRole")
    table, index = statements["dynamodb:DescribeTable dynamodb:Scan"][0]["Resource"]
    assert table["Fn::GetAtt"][0].startswith("Orders")
    assert index["Fn::Join"][1][-1] == "/index/by-day"
    (job,) = statements["dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem"]
    assert job["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": [f"job#{scan.job_prefix}*"]}
    budgets = [each["Condition"] for each in statements["dynamodb:GetItem dynamodb:UpdateItem"]]
    assert {"dynamodb:LeadingKeys": ["budget#nightly"]} in [each.get("ForAllValues:StringEquals") for each in budgets]
    assert scan.budget == "nightly"


def test_key_of_an_encrypted_table_may_be_used() -> None:
    stack = placed_stack()
    own = kms.Key(stack, "Key")
    paced_scan(
        stack,
        table=scalable_table(stack, "Orders", encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED, encryption_key=own),
    )
    assert "kms:Decrypt kms:DescribeKey" in TemplateView(stack).by_actions("WorkServiceRole")


def test_operator_may_start_executions_and_nothing_else() -> None:
    stack = placed_stack()
    scan = paced_scan(stack)
    scan.grant_start(iam.Role(stack, "Operator", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")))
    assert set(TemplateView(stack).by_actions("Operator")) == {"states:StartExecution"}
    assert isinstance(scan.state_machine.state_machine_arn, str)


def test_alarm_tells_of_an_execution_that_failed() -> None:
    stack = placed_stack()
    paced_scan(stack, topic=sns.Topic(stack, "OnCall"))
    alarm = TemplateView(stack).properties_of("AWS::CloudWatch::Alarm", "Backfill")
    assert (alarm["MetricName"], alarm["Threshold"], len(alarm["AlarmActions"])) == ("ExecutionsFailed", 1, 1)


def test_function_of_another_stack_may_be_given() -> None:
    stack = placed_stack()
    arn = "arn:aws:lambda:eu-west-1:111122223333:function:work"
    paced_scan(stack, function=lambda_.Function.from_function_arn(stack, "Work", arn))
    (calling,) = TemplateView(stack).by_actions("BackfillRole")["lambda:InvokeFunction"]
    assert calling["Resource"] == arn


def test_execution_loads_the_object_of_its_input_or_of_the_construct() -> None:
    stack = placed_stack()
    load = paced_load(stack, workers=20, segments=64)
    start = _start(stack)
    assert isinstance(load, PacedJob)
    assert start == {
        "job.$": f"States.Format('{load.job_prefix}{{}}', $$.Execution.Name)",
        "coordinator": start["coordinator"],
        "start": {
            "table": "<>",
            "write": 500,
            "budget": load.budget,
            "segments": 64,
            "bucket": "exports",
            "key": "orders.jsonl",
            "rejects": "s3://exports/rejects",
        },
        "workers": 20,
        "input.$": "$",
    }
    assert _workers(stack)["MaxConcurrency"] == 20


def test_function_may_put_items_read_the_objects_and_work_on_the_jobs_and_nothing_else() -> None:
    stack = placed_stack()
    load = paced_load(
        stack,
        prefix="nightly/",
        rejects=s3.Bucket.from_bucket_name(stack, "Rejects", "rejected"),
        budget="shared",
    )
    statements = TemplateView(stack).by_actions("NightlyLoaderRole")
    assert set(statements) == {
        "logs:CreateLogStream logs:PutLogEvents",
        "dynamodb:BatchWriteItem dynamodb:DescribeTable dynamodb:PutItem",
        "s3:GetObject",
        "s3:PutObject",
        "dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem",
        "dynamodb:GetItem dynamodb:UpdateItem",
        "ssm:GetParameter ssm:GetParametersByPath",
    }
    (writing,) = statements["dynamodb:BatchWriteItem dynamodb:DescribeTable dynamodb:PutItem"]
    assert writing["Resource"]["Fn::GetAtt"][0].startswith("Orders")
    assert [joined(each) for each in statements["s3:GetObject"][0]["Resource"]] == [
        "arn:<>:s3:::exports/orders.jsonl",
        "arn:<>:s3:::exports/nightly/*",
    ]
    assert joined(statements["s3:PutObject"][0]["Resource"]) == f"arn:<>:s3:::rejected/rejects/{load.job_prefix}*"
    (job,) = statements["dynamodb:GetItem dynamodb:Query dynamodb:UpdateItem"]
    assert job["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": [f"job#{load.job_prefix}*"]}
    budgets = [each["Condition"] for each in statements["dynamodb:GetItem dynamodb:UpdateItem"]]
    assert [next(iter(each.values())) for each in budgets] == [
        {"dynamodb:LeadingKeys": [f"budget#{load.job_prefix}*"]},
        {"dynamodb:LeadingKeys": ["budget#shared"]},
    ]


def test_without_a_prefix_only_the_key_may_be_loaded() -> None:
    stack = placed_stack()
    paced_load(stack)
    assert (
        joined(TemplateView(stack).by_actions("NightlyLoaderRole")["s3:GetObject"][0]["Resource"])
        == "arn:<>:s3:::exports/orders.jsonl"
    )


def test_keys_of_encrypted_buckets_may_be_used() -> None:
    stack = placed_stack()
    keys = [kms.Key(stack, name) for name in ("Source", "Rejected")]
    source, rejects = (s3.Bucket(stack, f"{key.node.id}Bucket", encryption_key=key) for key in keys)
    paced_load(stack, bucket=source, rejects=rejects)
    statements = TemplateView(stack).by_actions("NightlyLoaderRole")
    assert statements["kms:Decrypt"][0]["Resource"]["Fn::GetAtt"][0].startswith("Source")
    assert statements["kms:GenerateDataKey"][0]["Resource"]["Fn::GetAtt"][0].startswith("Rejected")


def test_function_is_the_runtimes_with_the_time_that_a_worker_needs_and_an_alarm_tells_of_a_failure() -> None:
    stack = placed_stack()
    load = paced_load(stack, topic=sns.Topic(stack, "OnCall"))
    function = TemplateView(stack).properties_of("AWS::Lambda::Function", "NightlyLoader")
    assert (function["Handler"], function["Timeout"], function["MemorySize"]) == (
        "highwater.jobs.worker.handler",
        900,
        512,
    )
    assert isinstance(load.state_machine.state_machine_arn, str)
    alarm = TemplateView(stack).properties_of("AWS::CloudWatch::Alarm", "Nightly")
    assert alarm["AlarmDescription"] == (
        "Highwater: a paced load failed; mend what its execution tells, and redrive it"
    )
    assert len(alarm["AlarmActions"]) == 1
