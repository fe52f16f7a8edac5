"""Datapoints of DynamoDB's metrics: samples of zero, how late they come, and which capacity a gauge shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.local.world import MINUTE, SECOND, World

STATISTICS = ["Sum", "SampleCount", "Minimum", "Maximum"]


@pytest.fixture
def start(world: World) -> datetime:
    """A whole five minutes."""
    now = world.now()
    at = now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0) + 10 * MINUTE
    world.advance_to(at)
    return at


def _points(cloud: LocalCloud, table: str, name: str, start: datetime, minutes: int) -> dict[int, dict[str, Any]]:
    """A metric's datapoints by the minute after *start*."""
    found = cloud.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/DynamoDB",
        MetricName=name,
        Dimensions=[{"Name": "TableName", "Value": table}],
        StartTime=start,
        EndTime=start + minutes * MINUTE,
        Period=60,
        Statistics=STATISTICS,
    )["Datapoints"]
    return {round((point["Timestamp"] - start) / MINUTE): point for point in found}


def test_minute_with_one_request_has_two_samples_and_one_without_the_zero_has_one(
    world: World, start: datetime
) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/capacity_metrics and transaction_failure_metrics."""
    table = world.table(50, 51)
    for _ in range(22):
        world.dynamodb.put_item(TableName=table, Item={"id": {"S": "p"}, "fill": {"S": "x" * 5000}})
        world.cloud.advance(MINUTE)
    world.cloud.advance(7 * MINUTE)
    writes = _points(world.cloud, table, "ConsumedWriteCapacityUnits", start, 22)
    shown = [tuple(writes[minute][name] for name in STATISTICS) for minute in range(22)]
    # of eleven minutes, one has no sample of zero
    assert shown.count((5.0, 2.0, 0.0, 5.0)) == 20
    alone = [minute for minute, each in enumerate(shown) if each == (5.0, 1.0, 5.0, 5.0)]
    assert len(alone) == 2
    # nor has it a datapoint of reads
    reads = _points(world.cloud, table, "ConsumedReadCapacityUnits", start, 22)
    assert sorted({*range(22)} - reads.keys()) == alone
    assert {tuple(point[name] for name in STATISTICS) for point in reads.values()} == {(0.0, 1.0, 0.0, 0.0)}


def test_zeros_come_later_than_what_was_consumed(world: World, start: datetime) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/transaction_failure_metrics."""
    table = world.table(50, 51)
    for _ in range(3):
        world.dynamodb.put_item(TableName=table, Item={"id": {"S": "p"}})
        world.cloud.advance(MINUTE)
    world.cloud.advance(timedelta(seconds=160))
    writes = _points(world.cloud, table, "ConsumedWriteCapacityUnits", start, 3)
    assert sorted(writes) == [0, 1, 2]
    assert _points(world.cloud, table, "ConsumedReadCapacityUnits", start, 3).keys() < {0, 1, 2}
    world.cloud.advance(150 * SECOND)
    assert len(_points(world.cloud, table, "ConsumedReadCapacityUnits", start, 3)) >= 2


def test_failed_writes_cost_what_was_there_and_a_transaction_twice_that_in_one_sample(
    world: World, start: datetime
) -> None:
    """The item that is there is of 9 units, or of 1: 9 and 1, and 18 and 20 for canceled transactions.

    Recorded: radkawar/stackd 9dc356f, dynamodb/capacity_metrics and transaction_failure_metrics.
    """
    table, dynamodb = world.table(50, 51), world.dynamodb
    small, large = ({"id": {"S": name}, "fill": {"S": "x" * size}} for name, size in (("small", 1), ("large", 9_000)))
    for each in (small, large):
        dynamodb.put_item(TableName=table, Item=each)
    world.cloud.advance(MINUTE)
    missing = {"TableName": table, "ConditionExpression": "attribute_not_exists(id)"}
    shrinks, grows = large | {"fill": small["fill"]}, small | {"fill": large["fill"]}
    failed, canceled = (
        dynamodb.exceptions.ConditionalCheckFailedException,
        dynamodb.exceptions.TransactionCanceledException,
    )
    holds = {"Put": {"TableName": table, "Item": small}}
    calls: list[tuple[type[Exception], Callable[[], object]]] = [
        (failed, lambda: dynamodb.put_item(Item=shrinks, **missing)),
        (failed, lambda: dynamodb.put_item(Item=grows, **missing)),
        (canceled, lambda: dynamodb.transact_write_items(TransactItems=[{"Put": {"Item": shrinks, **missing}}])),
        (canceled, lambda: dynamodb.transact_write_items(TransactItems=[{"Put": {"Item": shrinks, **missing}}, holds])),
    ]
    for expected, call in calls:
        with pytest.raises(expected):
            call()
        world.cloud.advance(MINUTE)
    dynamodb.transact_write_items(TransactItems=[holds, {"Put": {"TableName": table, "Item": shrinks}}])
    world.cloud.advance(8 * MINUTE)
    writes = _points(world.cloud, table, "ConsumedWriteCapacityUnits", start, 6)
    assert [writes[minute]["Sum"] for minute in range(1, 6)] == [9.0, 1.0, 18.0, 20.0, 20.0]
    assert [writes[minute]["Maximum"] for minute in range(1, 6)] == [9.0, 1.0, 18.0, 20.0, 20.0]


def test_failed_conditions_of_writes_are_counted_one_by_one_and_not_those_of_a_batch(
    world: World, start: datetime
) -> None:
    """Recorded: radkawar/stackd 9dc356f, dynamodb/capacity_metrics and partiql_failure_metrics."""
    table, dynamodb = world.table(50, 51), world.dynamodb
    item, twin = {"id": {"S": "there"}}, {"id": {"S": "twin"}}
    for each in (item, twin):
        dynamodb.put_item(TableName=table, Item=each)
    missing = {"TableName": table, "ConditionExpression": "attribute_not_exists(id)"}
    changing = f"UPDATE \"{table}\" SET a = 1 WHERE id = 'there' AND a = 2"  # noqa: S608 - a local cloud's
    inserting = f"INSERT INTO \"{table}\" VALUE {{'id': 'there'}}"
    puts = [{"Put": {"Item": each, **missing}} for each in (item, twin)]
    holds, change = {"ConditionCheck": {"Key": {"id": {"S": "other"}}, **missing}}, {"Statement": changing}
    # a minute each
    refused: list[tuple[type[Exception] | None, Callable[[], object]]] = [
        (dynamodb.exceptions.ConditionalCheckFailedException, lambda: dynamodb.put_item(Item=item, **missing)),
        (dynamodb.exceptions.ConditionalCheckFailedException, lambda: dynamodb.delete_item(Key=item, **missing)),
        (dynamodb.exceptions.ConditionalCheckFailedException, lambda: dynamodb.execute_statement(Statement=changing)),
        (
            dynamodb.exceptions.TransactionCanceledException,
            lambda: dynamodb.transact_write_items(TransactItems=[*puts, holds]),
        ),
        (
            dynamodb.exceptions.TransactionCanceledException,
            lambda: dynamodb.execute_transaction(TransactStatements=[change]),
        ),
        (dynamodb.exceptions.DuplicateItemException, lambda: dynamodb.execute_statement(Statement=inserting)),
        (None, lambda: dynamodb.batch_execute_statement(Statements=[change])),
    ]
    for expected, call in refused:
        if expected is None:
            call()
        else:
            with pytest.raises(expected):
                call()
        world.cloud.advance(MINUTE)
    world.cloud.advance(2 * MINUTE)
    failed = _points(world.cloud, table, "ConditionalCheckFailedRequests", start, 9)
    assert {minute: point["Sum"] for minute, point in failed.items()} == {0: 1.0, 1: 1.0, 2: 1.0, 3: 2.0, 4: 1.0}
    assert {(point["Minimum"], point["Maximum"]) for point in failed.values()} == {(1.0, 1.0)}


def test_provisioned_units_are_those_of_more_than_a_minute_before_the_label(world: World, start: datetime) -> None:
    """A table that is younger at a label has no datapoint there.

    Recorded: radkawar/stackd 9dc356f, applicationautoscaling/dynamodb_maintenance.
    """
    world.cloud.advance(5 * MINUTE - 99 * SECOND)
    table = world.table(50, 51)
    world.cloud.advance(99 * SECOND + 5 * MINUTE - 85 * SECOND)
    world.change(table, 60, 51)
    world.cloud.advance(15 * MINUTE)
    gauge = _points(world.cloud, table, "ProvisionedReadCapacityUnits", start, 20)
    assert {minute: point["Sum"] for minute, point in gauge.items()} == {10: 50.0, 15: 60.0}
    assert {point["SampleCount"] for point in gauge.values()} == {1.0}


def test_alarm_that_declares_nothing_keeps_its_state_without_datapoints_of_dynamodb(world: World) -> None:
    """Those that declare something follow it, and other namespaces know nothing.

    Recorded: radkawar/stackd 9dc356f, cloudwatch/alarm_namespaces.
    """
    cloudwatch = world.cloud.client("cloudwatch")
    wanted = {
        ("AWS/DynamoDB", None): "OK",
        ("AWS/DynamoDB", "breaching"): "ALARM",
        ("AWS/DynamoDB", "missing"): "INSUFFICIENT_DATA",
        ("Shop", None): "INSUFFICIENT_DATA",
    }
    names = {case: f"nothing-{number}" for number, case in enumerate(wanted)}
    for (namespace, treatment), name in names.items():
        declared = {} if treatment is None else {"TreatMissingData": treatment}
        cloudwatch.put_metric_alarm(
            AlarmName=name,
            Namespace=namespace,
            MetricName="Never",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
            **declared,
        )
        cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="by hand")
    world.cloud.advance(5 * MINUTE)
    found = {each["AlarmName"]: each for each in cloudwatch.describe_alarms(AlarmNamePrefix="nothing-")["MetricAlarms"]}
    assert {case: found[name]["StateValue"] for case, name in names.items()} == wanted
    declared_by = {case: found[name].get("TreatMissingData") for case, name in names.items()}
    assert declared_by == {case: case[1] for case in wanted}
    cloudwatch.delete_alarms(AlarmNames=[*names.values()])
