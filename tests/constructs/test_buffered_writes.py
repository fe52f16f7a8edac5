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

from cdk_highwater import BoostCoordinator, BufferedWrites, manage_capacity
from highwater.core.buffered import most_receives
from tests.constructs.template_view import READ, WRITE, TemplateView, global_table, key, placed_stack, scalable_table


def _buffered(stack: cdk.Stack, *, table: object = None, **more: Any) -> BufferedWrites:
    coordinator = more.pop("coordinator", None) or BoostCoordinator(stack, "Boosts")
    arguments: dict[str, Any] = {"table": table or scalable_table(stack, "Orders"), "write": 500, **more}
    return BufferedWrites(stack, "Buffered", coordinator=coordinator, **arguments)


def _view(**more: Any) -> TemplateView:
    stack = placed_stack()
    _buffered(stack, **more)
    return TemplateView(stack)


def _own(view: TemplateView, kind: str) -> dict[str, Any]:
    """The construct's resources of a type, by logical id."""
    return {name: each for name, each in view.named(kind).items() if name.startswith("Buffered")}


def _function(view: TemplateView) -> dict[str, Any]:
    (function,) = _own(view, "AWS::Lambda::Function").values()
    properties: dict[str, Any] = function["Properties"]
    return properties


def _statements(view: TemplateView, prefix: str = "Buffered") -> dict[str, Any]:
    """The statements of policies by their actions: what they are for."""
    found = {}
    for name, policy in view.named("AWS::IAM::Policy").items():
        if name.startswith(prefix):
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                actions = statement["Action"]
                found[" ".join([actions] if isinstance(actions, str) else sorted(actions))] = statement
    return found


def _queues(view: TemplateView) -> tuple[dict[str, Any], dict[str, Any]]:
    """The queue, and the dead-letter queue."""
    queues = _own(view, "AWS::SQS::Queue")
    (queue,) = (each for name, each in queues.items() if name.startswith("BufferedQueue"))
    (letters,) = (each for name, each in queues.items() if name.startswith("BufferedDeadLetters"))
    return queue, letters


def test_queues_keep_messages_for_two_weeks_encrypted_and_are_kept_with_the_writes_in_them() -> None:
    view = _view()
    for queue in _queues(view):
        assert queue["Properties"]["SqsManagedSseEnabled"] is True
        assert queue["Properties"]["MessageRetentionPeriod"] == 14 * 86_400
        assert queue["DeletionPolicy"] == "Retain"
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
    buffered = _buffered(stack, table=scalable_table(stack, "Orders", table_name="orders", sort_key=key("day")))
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
    assert (function["Handler"], function["Timeout"]) == ("highwater.bulk.drain.handler", 60)


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
    _buffered(stack, table=table)
    statement = _statements(TemplateView(stack))["kms:Decrypt kms:DescribeKey"]
    assert statement["Resource"]["Fn::GetAtt"][0].startswith("Key")


def test_alarms_tell_of_writes_that_wait_too_long_of_poison_and_of_a_function_that_fails() -> None:
    stack = placed_stack()
    topic = sns.Topic(stack, "OnCall")
    _buffered(stack, drain_time=cdk.Duration.hours(2), topic=topic)
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
    buffered = _buffered(stack)
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
    _buffered(stack, table=table(stack))
    named = _function(TemplateView(stack))["Environment"]["Variables"]["HIGHWATER_KEY"]
    assert named in ('["pk"]', '["pk", "day"]')


def test_key_of_an_imported_table_is_given() -> None:
    stack = placed_stack()
    _buffered(stack, table=dynamodb.Table.from_table_name(stack, "Imported", "orders"), key=["id"])
    variables = _function(TemplateView(stack))["Environment"]["Variables"]
    assert (variables["HIGHWATER_TABLE"], variables["HIGHWATER_KEY"]) == ("orders", '["id"]')


def _imported(stack: cdk.Stack, region: str = "eu-west-1") -> dynamodb.ITable:
    return dynamodb.Table.from_table_arn(stack, "Imported", f"arn:aws:dynamodb:{region}:111122223333:table/orders")


TYPES: dict[str, tuple[dict[str, Any], str]] = {
    "table": (
        {"table": "orders"},
        "table must be a dynamodb.Table, TableV2, CfnTable or an imported table, got str",
    ),
    "coordinator": (
        {"coordinator": "boosts"},
        "coordinator must be a BoostCoordinator, got 'boosts'; give its construct",
    ),
    "budget": ({"budget": 5}, "budget must be the name of a budget, got 5; give it in quotes"),
    "version": (
        {"version_attribute": True},
        "version_attribute must be the name of an attribute, got True; give it in quotes",
    ),
    "timeout": ({"timeout": 60}, "timeout must be a cdk.Duration, got 60; give cdk.Duration.minutes(...)"),
    "drain-time": (
        {"drain_time": "1 day"},
        "drain_time must be a cdk.Duration, got '1 day'; give cdk.Duration.minutes(...)",
    ),
    "key-text": ({"key": "pk"}, "key must be a list of names of attributes, got 'pk'; give the names in brackets"),
    "topic": (
        {"topic": "night"},
        "topic must be an SNS topic, got 'night'; give an sns.Topic; an existing one is sns.Topic.from_topic_arn(...)",
    ),
}


@pytest.mark.parametrize("case", TYPES)
def test_argument_of_another_type_is_refused(case: str) -> None:
    arguments, message = TYPES[case]
    with pytest.raises(TypeError) as refused:
        _buffered(placed_stack(), **arguments)
    assert str(refused.value) == message


VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "write": ({"write": 0}, "write is 0; allowed: whole numbers, 1 or more"),
    "write-part": ({"write": 0.5}, "write is 0.5; allowed: whole numbers, 1 or more"),
    "batch": ({"batch_size": 10_000}, "batch_size is 10,000; allowed: whole numbers, from 1 to 1,000"),
    "concurrency": ({"max_concurrency": 1}, "max_concurrency is 1; allowed: whole numbers, from 2 to 1,000"),
    "window": (
        {"batching_window": cdk.Duration.minutes(6)},
        "batching_window is 360 seconds; allowed: whole seconds from 0 to 300",
    ),
    "timeout": (
        {"timeout": cdk.Duration.millis(30_500)},
        "timeout is 30.5 seconds; allowed: whole seconds from 30 to 900",
    ),
    "drain-time": (
        {"drain_time": cdk.Duration.minutes(5)},
        "drain_time is 300 seconds; allowed: whole seconds from 3,600 to 1,123,200",
    ),
    "drain-time-as-long-as-messages-are-kept": (
        {"drain_time": cdk.Duration.days(14)},
        "drain_time is 1,209,600 seconds; allowed: whole seconds from 3,600 to 1,123,200",
    ),
    "batch-without-window": (
        {"batching_window": cdk.Duration.seconds(0)},
        "batch_size is 100; allowed: 1 to 10 without a batching_window; give a window of a second or more",
    ),
    "budget": ({"budget": ""}, "budget is ''; allowed: 1 to 100 characters"),
    "version-in-key": (
        {"version_attribute": "pk"},
        "version_attribute is 'pk'; allowed: an attribute outside of the key, pk; give the one that producers count up",
    ),
    "other-key": ({"key": ["id"]}, "key is ['id'], and the table's is pk; leave the argument out"),
    "no-key": (
        {"key": []},
        "key is []; allowed: the names of one or two attributes, the partition key first",
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_argument_out_of_range_is_refused(case: str) -> None:
    arguments, message = VALUES[case]
    with pytest.raises(ValueError, match="; ") as refused:
        _buffered(placed_stack(), **arguments)
    assert str(refused.value) == message


def test_imported_table_without_its_key_or_of_another_region_is_refused() -> None:
    stack = placed_stack()
    with pytest.raises(ValueError, match="; ") as refused:
        _buffered(stack, table=_imported(stack))
    assert str(refused.value) == (
        "key is not known of an imported table; give the attributes of its key: key=['pk', 'sk']"
    )
    other = placed_stack()
    with pytest.raises(ValueError, match="; ") as refused:
        _buffered(other, table=_imported(other, "us-east-1"), key=["pk"])
    assert str(refused.value) == ("table is in us-east-1, and Shop in eu-west-1; give a table of the stack's region")


def test_grantee_that_is_no_role_is_refused() -> None:
    buffered = _buffered(placed_stack())
    with pytest.raises(TypeError) as refused:
        buffered.grant_send("api")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "grantee must be a role or a user, or have a role, got 'api'; give its construct; that of an existing role is "
        "iam.Role.from_role_name(...)"
    )
