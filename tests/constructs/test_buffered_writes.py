"""`BufferedWrites`: its queues, its function and what that may do, its alarms, and the arguments that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from cdk_highwater import manage_capacity
from highwater.queues.messages import most_receives
from tests.constructs.jobs import buffered_writes
from tests.constructs.template_view import READ, WRITE, TemplateView, global_table, key, placed_stack, scalable_table


def _view(**more: Any) -> TemplateView:
    stack = placed_stack()
    buffered_writes(stack, **more)
    return TemplateView(stack)


def _own(view: TemplateView, kind: str) -> dict[str, Any]:
    """The construct's resources of a type, by logical id."""
    return {name: each for name, each in view.named(kind).items() if name.startswith("Buffered")}


def _function(view: TemplateView) -> dict[str, Any]:
    return view.properties_of("AWS::Lambda::Function", "Buffered")


def _statements(view: TemplateView, prefix: str = "Buffered") -> dict[str, Any]:
    """The statements of policies by their actions: what they are for."""
    return {actions: statement for actions, (statement,) in view.by_actions(prefix).items()}


def _queues(view: TemplateView) -> tuple[dict[str, Any], dict[str, Any]]:
    """The queue, and the dead-letter queue."""
    queues = sorted(_own(view, "AWS::SQS::Queue").items(), reverse=True)
    ((first, queue), (second, letters)) = queues
    assert (first.startswith("BufferedQueue"), second.startswith("BufferedDeadLetters")) == (True, True)
    return queue, letters


def test_queues_keep_messages_for_two_weeks_encrypted_and_are_kept_with_the_writes_in_them() -> None:
    view = _view()
    for queue in _queues(view):
        assert queue["Properties"]["SqsManagedSseEnabled"] is True
        assert queue["Properties"]["MessageRetentionPeriod"] == 14 * 86_400
        assert queue["UpdateReplacePolicy"] == "Retain"
        assert queue["DeletionPolicy"] == "RetainExceptOnCreate", "a first deploy that fails leaves two empty queues"
    refusals = [
        statement
        for policy in _own(view, "AWS::SQS::QueuePolicy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
    ]
    assert [each["Condition"] for each in refusals] == [{"Bool": {"aws:SecureTransport": "false"}}] * 2


def test_message_stays_hidden_for_six_runs_and_the_window_and_throttling_never_buries_it() -> None:
    queue, _ = _queues(_view())
    assert queue["Properties"]["VisibilityTimeout"] == 6 * 60 + 1
    assert queue["Properties"]["RedrivePolicy"]["maxReceiveCount"] == most_receives(12 * 3_600, 361)
    queue, _ = _queues(
        _view(
            timeout=cdk.Duration.minutes(15),
            batching_window=cdk.Duration.minutes(5),
            drain_time=cdk.Duration.days(2),
        )
    )
    assert queue["Properties"]["VisibilityTimeout"] == 6 * 900 + 300
    assert queue["Properties"]["RedrivePolicy"]["maxReceiveCount"] == most_receives(2 * 86_400, 5_700)


def test_queue_starts_the_function_and_hears_of_each_message_that_is_not_done() -> None:
    mapping = _view(batch_size=250, max_concurrency=7).properties_of("AWS::Lambda::EventSourceMapping")
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert (mapping["BatchSize"], mapping["MaximumBatchingWindowInSeconds"]) == (250, 1)
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 7}


def test_function_is_told_the_table_its_key_the_rate_and_the_budget() -> None:
    stack = placed_stack()
    buffered = buffered_writes(stack, table=scalable_table(stack, "Orders", table_name="orders", sort_key=key("day")))
    function = _function(TemplateView(stack))
    variables = function["Environment"]["Variables"]
    (queue, letters, leases) = (
        variables.pop(f"HIGHWATER_{name}") for name in ("QUEUE_URL", "DEAD_LETTERS_URL", "PULSES")
    )
    assert [each["Ref"].rstrip("0123456789ABCDEF") for each in (queue, letters, leases)] == [
        "BufferedQueue",
        "BufferedDeadLetters",
        "BoostsLeasesTable",
    ]
    assert variables.pop("HIGHWATER_TABLE")["Ref"].startswith("Orders")
    assert variables == {
        "HIGHWATER_KEY": '["pk", "day"]',
        "HIGHWATER_WRITE": "500",
        "HIGHWATER_BUDGET": buffered.budget,
    }
    assert buffered.budget.startswith("Shop-Buffered-")
    assert (function["Handler"], function["Timeout"]) == ("highwater.queues.drain.handler", 60)


def test_function_may_write_this_table_share_this_budget_and_nothing_else() -> None:
    statements = _statements(_view(budget="nightly"))
    table = statements["dynamodb:BatchWriteItem dynamodb:DeleteItem dynamodb:PutItem"]["Resource"]
    assert table["Fn::GetAtt"][0].startswith("Orders")
    assert statements["sqs:SendMessage"]["Resource"]["Fn::GetAtt"][0].startswith("BufferedDeadLetters")
    budget = statements["dynamodb:GetItem dynamodb:UpdateItem"]
    assert budget["Resource"]["Fn::GetAtt"][0].startswith("BoostsLeases")
    assert budget["Condition"]["ForAllValues:StringEquals"] == {"dynamodb:LeadingKeys": ["budget#nightly"]}
    receiving = next(each for actions, each in statements.items() if "sqs:ReceiveMessage" in actions)
    assert receiving["Resource"]["Fn::GetAtt"][0].startswith("BufferedQueue")
    assert len(statements) == 6
    others = {actions for actions in statements if actions.startswith(("logs:", "ssm:"))}
    assert others == {"logs:CreateLogStream logs:PutLogEvents", "ssm:GetParameter ssm:GetParametersByPath"}


def test_function_that_keeps_versions_writes_items_one_by_one() -> None:
    view = _view(version_attribute="version")
    assert "dynamodb:DeleteItem dynamodb:PutItem" in _statements(view)
    assert _function(view)["Environment"]["Variables"]["HIGHWATER_VERSION"] == "version"


def test_key_of_an_encrypted_table_may_be_used() -> None:
    stack = placed_stack()
    own_key = kms.Key(stack, "Key")
    table = scalable_table(
        stack, "Orders", encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED, encryption_key=own_key
    )
    buffered_writes(stack, table=table)
    statement = _statements(TemplateView(stack))["kms:Decrypt kms:DescribeKey"]
    assert statement["Resource"]["Fn::GetAtt"][0].startswith("Key")


def test_alarms_tell_of_writes_that_wait_too_long_of_poison_and_of_a_function_that_fails() -> None:
    stack = placed_stack()
    topic = sns.Topic(stack, "OnCall")
    buffered_writes(stack, drain_time=cdk.Duration.hours(2), topic=topic)
    alarms = [each["Properties"] for each in _own(TemplateView(stack), "AWS::CloudWatch::Alarm").values()]
    assert {each["TreatMissingData"] for each in alarms} == {"notBreaching"}, "SQS has no datapoints of unused queues"
    (backlog,) = (each for each in alarms if "Metrics" in each)
    assert (backlog["Threshold"], backlog["EvaluationPeriods"]) == (7_200, 3)
    queries = {each["Id"]: each for each in backlog["Metrics"]}
    assert [each["Expression"] for each in queries.values() if "Expression" in each] == [
        "IF(done > 0, waiting * 300 / done, waiting * 7200)",
        "visible + FILL(hidden, 0)",
        "FILL(deleted, 0)",
    ]
    assert [
        (name, each["MetricStat"]["Metric"]["MetricName"], each["MetricStat"]["Stat"], each["MetricStat"]["Period"])
        for name, each in queries.items()
        if "MetricStat" in each
    ] == [
        ("visible", "ApproximateNumberOfMessagesVisible", "Average", 300),
        ("hidden", "ApproximateNumberOfMessagesNotVisible", "Average", 300),
        ("deleted", "NumberOfMessagesDeleted", "Sum", 300),
    ]
    assert {each["MetricName"]: each["Threshold"] for each in alarms if each is not backlog} == {
        "ApproximateAgeOfOldestMessage": 7_200,
        "OldestReturned": 7_200,
        "ApproximateNumberOfMessagesVisible": 1,
        "Errors": 1,
    }
    assert all(len(each["AlarmActions"]) == 1 for each in alarms)


def test_producer_may_send_and_another_worker_may_share_the_budget() -> None:
    stack = placed_stack()
    buffered = buffered_writes(stack)
    producer = iam.Role(stack, "Producer", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    loader = iam.Role(stack, "Loader", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    buffered.grant_send(producer)
    buffered.grant_budget(loader)
    view = TemplateView(stack)
    (sending,) = _statements(view, "Producer").values()
    assert sending["Action"] == "sqs:SendMessage"
    assert sending["Resource"]["Fn::GetAtt"][0].startswith("BufferedQueue")
    condition = _statements(view, "Loader")["dynamodb:GetItem dynamodb:UpdateItem"]["Condition"]
    assert condition["ForAllValues:StringEquals"] == {"dynamodb:LeadingKeys": [f"budget#{buffered.budget}"]}
    assert isinstance(buffered.queue.queue_arn, str)
    assert isinstance(buffered.dead_letters.queue_arn, str)
    assert isinstance(buffered.function.function_arn, str)


@pytest.mark.parametrize(
    "table",
    [
        lambda stack: dynamodb.Table(stack, "Plain", partition_key=key()),
        global_table,
        lambda stack: manage_capacity(dynamodb.Table(stack, "Plain", partition_key=key()), read=READ, write=WRITE),
        lambda stack: dynamodb.CfnTable(
            stack,
            "Raw",
            key_schema=[
                dynamodb.CfnTable.KeySchemaProperty(attribute_name="day", key_type="RANGE"),
                dynamodb.CfnTable.KeySchemaProperty(attribute_name="pk", key_type="HASH"),
            ],
        ),
    ],
)
def test_key_of_every_kind_of_table_is_known(table: Callable[[cdk.Stack], object]) -> None:
    stack = placed_stack()
    buffered_writes(stack, table=table(stack))
    named = _function(TemplateView(stack))["Environment"]["Variables"]["HIGHWATER_KEY"]
    assert named in ('["pk"]', '["pk", "day"]')


def test_key_of_an_imported_table_is_given() -> None:
    stack = placed_stack()
    buffered_writes(stack, table=dynamodb.Table.from_table_name(stack, "Imported", "orders"), key=["id"])
    variables = _function(TemplateView(stack))["Environment"]["Variables"]
    assert (variables["HIGHWATER_TABLE"], variables["HIGHWATER_KEY"]) == ("orders", '["id"]')
