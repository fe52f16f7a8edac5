"""A buffering queue deployed by the real CDK CLI to a strict local cloud: a thousand messages for a throttled table."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from botocore.config import Config

from highwater import BufferedProducer
from highwater_lab.local import LocalCloud
from tests.cdk_cli import CdkCli

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("buffered")]
APP = """
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import BoostCoordinator, BufferedWrites

app = cdk.App()
stack = cdk.Stack(app, "Shop", env=cdk.Environment(account="000000000000", region="us-east-1"))
orders = dynamodb.Table(
    stack, "Orders", table_name="orders", billing_mode=dynamodb.BillingMode.PROVISIONED,
    partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
    read_capacity=50, write_capacity=8, removal_policy=cdk.RemovalPolicy.DESTROY,
)
# the budget is above what the table has, so that it throttles
buffered = BufferedWrites(
    stack, "Buffered", table=orders, coordinator=BoostCoordinator(stack, "Boosts"), write=60,
    version_attribute="version", max_concurrency=2, timeout=cdk.Duration.seconds(30),
)
cdk.CfnOutput(stack, "Queue", value=buffered.queue.queue_url)
cdk.CfnOutput(stack, "Letters", value=buffered.dead_letters.queue_url)
app.synth()
"""
MESSAGES, POISON, TWICE = 1_000, 10, 50
# each write consumes five units
TEXT = "x" * 4_500
EMPTY_KEY = {"pk": "", "version": 1}


def _messages() -> list[dict[str, Any] | str]:
    """The items and the bodies of poison, in no order: of some items two versions."""
    items = MESSAGES - POISON - TWICE
    messages: list[dict[str, Any] | str] = [
        {"pk": f"o-{number}", "version": 1, "text": TEXT} for number in range(items)
    ]
    messages += [{"pk": f"o-{number}", "version": 2, "text": TEXT} for number in range(TWICE)]
    # DynamoDB's own refusal, and the function's
    messages += [json.dumps(EMPTY_KEY), "{"] * (POISON // 2)
    Random(7).shuffle(messages)  # noqa: S311 - not for security
    return messages


def _use_up(dynamodb: Any, table: str) -> None:
    """Write until the table throttles: large items, then small ones, while the clock stands still."""
    for size in (400_000, 40_000, 900):
        items = ({"pk": {"S": f"before-{size}-{number}"}, "text": {"S": "x" * size}} for number in range(1_000))
        with pytest.raises(dynamodb.exceptions.ProvisionedThroughputExceededException):
            # one after the other, until one is throttled
            any(dynamodb.put_item(TableName=table, Item=item) is None for item in items)


def test_thousand_messages_for_a_throttled_table_are_written_once_newest_and_poison_is_apart(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("buffered")
    (folder / "app.py").write_text(APP)
    with LocalCloud(log=folder / "server.log", clock="driven", is_strict=True) as cloud:
        cli = CdkCli(cloud, folder)
        cli.run("bootstrap", "aws://000000000000/us-east-1")
        cli.deploy(folder / "app.py")
        outputs = cloud.client("cloudformation").describe_stacks(StackName="Shop")["Stacks"][0]["Outputs"]
        url = {each["OutputKey"]: each["OutputValue"] for each in outputs}
        sqs = cloud.client("sqs")
        _use_up(cloud.client("dynamodb", Config(retries={"total_max_attempts": 1})), "orders")
        throttled = cloud.control.throttles()
        with BufferedProducer(url["Queue"], connect=lambda: sqs, max_queued=MESSAGES) as producer:
            for message in _messages():
                if isinstance(message, str):
                    sqs.send_message(QueueUrl=url["Queue"], MessageBody=message)
                else:
                    producer.put(message)

        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        left = MESSAGES
        # a step that finds the cloud's own poller asleep does nothing
        for _ in range(10_000):
            # until the function has met the table without capacity, hardly any comes back
            cloud.step(0.01 if cloud.control.throttles() == throttled else 5)
            found = sqs.get_queue_attributes(QueueUrl=url["Queue"], AttributeNames=names)["Attributes"]
            left = sum(int(found[name]) for name in names)
            if not left:
                break
        assert left == 0

        items = {
            item["pk"]["S"]: int(item["version"]["N"])
            for page in cloud.client("dynamodb").get_paginator("scan").paginate(TableName="orders")
            for item in page["Items"]
            if item["pk"]["S"].startswith("o-")
        }
        assert len(items) == MESSAGES - POISON - TWICE
        assert {number for number in range(MESSAGES) if items.get(f"o-{number}") == 2} == set(range(TWICE))

        letters = []
        while found := sqs.receive_message(
            QueueUrl=url["Letters"], MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages"):
            letters += [(each["Body"], each["MessageAttributes"]["HighwaterReason"]["StringValue"]) for each in found]
        why = {
            json.dumps(EMPTY_KEY): "One or more parameter values are not valid. The AttributeValue for a key attribute "
            "cannot contain an empty string value. Key: pk",
            "{": "body: is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1)); "
            "send one action as JSON",
        }
        assert sorted(letters) == sorted([*why.items()] * (POISON // 2))

        logs = cloud.client("logs")
        groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        lines = [event["message"] for name in groups for event in logs.filter_log_events(logGroupName=name)["events"]]
        runs = [json.loads(line) for line in lines if line.startswith('{"table"')]
        # the table throttled, and what it had no room for came back
        assert sum(run["returned"] for run in runs) > 0
        assert sum(run["returned"] - run["delayed"] for run in runs) == 0
        assert sum(run["poison"] for run in runs) == POISON
        done = sum(run[name] for run in runs for name in ("written", "older", "superseded"))
        assert done == MESSAGES - POISON
