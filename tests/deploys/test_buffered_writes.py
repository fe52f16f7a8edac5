"""A buffering queue deployed by the real CDK CLI to a strict local cloud: thousands of messages for a throttled table.

`make benchmark NAME=drain` does it with 10,000 messages, and shows what is measured.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

import aws_cdk as cdk
import pytest
from botocore.config import Config

from cdk_highwater import BoostCoordinator, BufferedWrites
from highwater.queues import BufferedProducer
from highwater_lab.local import LocalCloud
from tests.cdk_cli import deployed_app
from tests.deploys.apps import HERE, plain_table, synthesize

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("buffered")]
MESSAGES = int(os.environ.get("HIGHWATER_BUFFERED_MESSAGES", "2000"))
POISON, TWICE = MESSAGES // 100, MESSAGES // 20
# units per second of the table, which is below the budget, units of a write, and messages per second during the drain
CAPACITY, UNITS, ARRIVALS = 50, 5, 1
TEXT = "x" * (1_000 * UNITS - 500)
EMPTY_KEY = {"pk": "", "version": 1}


@dataclass(frozen=True)
class Shop:
    """The stack, on a cloud."""

    cloud: LocalCloud
    sqs: Any
    queue: str
    letters: str

    def left(self) -> int:
        """The messages in the queue, visible or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.queue, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)

    def versions(self) -> dict[str, int]:
        """The versions of the items that came from the queue, by key."""
        versions: dict[str, int] = {}
        for page in self.cloud.client("dynamodb").get_paginator("scan").paginate(TableName="orders"):
            versions |= {item["pk"]["S"]: int(item["version"]["N"]) for item in page["Items"] if "version" in item}
            # a page consumes what the table has in a second
            self.cloud.step(1)
        return versions

    def take_letters(self) -> list[tuple[str, str]]:
        """The bodies of the messages in the dead-letter queue, and the reasons."""
        letters = []
        while found := self.sqs.receive_message(
            QueueUrl=self.letters, MaxNumberOfMessages=10, VisibilityTimeout=43_200, MessageAttributeNames=["All"]
        ).get("Messages"):
            letters += [(each["Body"], each["MessageAttributes"]["HighwaterReason"]["StringValue"]) for each in found]
        return letters

    def runs(self, since: datetime) -> list[dict[str, int]]:
        """The counts of the function's runs that ended since then, and how long each took, in milliseconds."""
        logs = self.cloud.client("logs")
        began = int(since.timestamp()) * 1_000
        counts, lengths = [], []
        for group in [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]:
            pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group, startTime=began)
            lines = [event["message"] for page in pages for event in page["events"]]
            told = [json.loads(line) for line in lines if line.startswith('{"table"')]
            # the coordinator's function runs too, in each minute
            if told:
                counts += told
                found = (re.match(r"REPORT .*\tDuration: (\d+) ms", line) for line in lines)
                lengths += [int(each[1]) for each in found if each]
        return [run | {"milliseconds": length} for run, length in zip(counts, lengths, strict=True)]


def _shop(stack: cdk.Stack) -> None:
    # the budget is above what the table has, so that it throttles
    buffered = BufferedWrites(
        stack,
        "Buffered",
        table=plain_table(stack, "Orders", "orders", 150, CAPACITY),
        coordinator=BoostCoordinator(stack, "Boosts"),
        write=60,
        version_attribute="version",
        max_concurrency=2,
    )
    cdk.CfnOutput(stack, "Queue", value=buffered.queue.queue_url)
    cdk.CfnOutput(stack, "Letters", value=buffered.dead_letters.queue_url)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("buffered")
    with deployed_app(folder, synthesize(folder, "Shop", _shop, env=HERE), "Shop") as (cli, outputs):
        _use_up(cli.cloud, "orders")
        yield Shop(cli.cloud, cli.cloud.client("sqs"), outputs["Queue"], outputs["Letters"])


def _messages() -> list[dict[str, Any] | str]:
    """The items and the bodies of poison, in no order: some items twice, every other one of these in two versions."""
    items = MESSAGES - POISON - TWICE
    messages: list[dict[str, Any] | str] = [
        {"pk": f"o-{number}", "version": 1, "text": TEXT} for number in range(items)
    ]
    messages += [{"pk": f"o-{number}", "version": 1 + number % 2, "text": TEXT} for number in range(TWICE)]
    # DynamoDB's own refusal, and the function's
    messages += [json.dumps(EMPTY_KEY), "{"] * (POISON // 2)
    Random(7).shuffle(messages)  # noqa: S311 - not for security
    return messages


def _use_up(cloud: LocalCloud, table: str) -> None:
    """Write until the table has no burst capacity left: large items, then small ones."""
    dynamodb, number = cloud.client("dynamodb", Config(retries={"total_max_attempts": 1})), 0
    for size in (400_000, 40_000, 900):
        while True:
            number += 1
            item = {"pk": {"S": f"before-{number}"}, "text": {"S": "x" * size}}
            try:
                dynamodb.put_item(TableName=table, Item=item)
            except dynamodb.exceptions.ProvisionedThroughputExceededException as throttled:
                if throttled.response["ThrottlingReasons"][0]["reason"] == "TableWriteProvisionedThroughputExceeded":
                    break
                # a partition's own limit
                cloud.step(1)
    dynamodb.close()


def _drain_seconds(shop: Shop) -> tuple[int, int]:
    """Send a message a second until the queue has no others; return the seconds, and the messages sent."""
    seconds = 0
    # those of the batching window, and of the run that takes them
    while shop.left() > 3 * ARRIVALS:
        for number in range(seconds * ARRIVALS, (seconds + 1) * ARRIVALS):
            body = json.dumps({"pk": f"a-{number}", "version": 1, "text": TEXT})
            shop.sqs.send_message(QueueUrl=shop.queue, MessageBody=body)
        shop.cloud.step(1)
        seconds += 1
    shop.cloud.step(60)
    return seconds, seconds * ARRIVALS


def test_messages_for_a_throttled_table_are_written_once_newest_and_in_the_predicted_time(shop: Shop) -> None:
    began = shop.cloud.status().now
    throttled = sum(each.requests for each in shop.cloud.control.throttles())
    with BufferedProducer(shop.queue, connect=lambda: shop.sqs, max_queued=MESSAGES) as producer:
        for message in _messages():
            if isinstance(message, str):
                shop.sqs.send_message(QueueUrl=shop.queue, MessageBody=message)
            else:
                producer.put(message)
    seconds, arrived = _drain_seconds(shop)
    assert shop.left() == 0

    newest = {f"o-{number}": 1 + (number < TWICE and number % 2) for number in range(MESSAGES - POISON - TWICE)}
    written = {key: version for key, version in shop.versions().items() if key[0] in "ao"}
    assert written == newest | {f"a-{number}": 1 for number in range(arrived)}
    why = {
        json.dumps(EMPTY_KEY): "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk",
        "{": "body: is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1)); "
        "send one action as JSON",
    }
    assert sorted(shop.take_letters()) == sorted([*why.items()] * (POISON // 2))

    runs = shop.runs(began)
    done = Counter[str]()
    for run in runs:
        done.update({name: run[name] for name in ("written", "older", "superseded", "poison", "returned")})
    # all were done when they were first received, so a run's length is the longest that its poison waited
    assert done.total() == MESSAGES + arrived
    assert (done["poison"], done["returned"]) == (POISON, 0)
    longest = max(run["milliseconds"] for run in runs if run["poison"])
    assert longest <= 60_000
    throttled = sum(each.requests for each in shop.cloud.control.throttles()) - throttled
    assert throttled > 0
    predicted = (MESSAGES - POISON) * UNITS / (CAPACITY - ARRIVALS * UNITS)
    print(
        f"{MESSAGES:,} messages, and {arrived:,} that came meanwhile: drained in {seconds:,} s of the cloud's time, "
        f"predicted {predicted:,.0f} s; {throttled:,} requests throttled; poison apart within {longest / 1_000:.0f} s"
    )
    assert seconds == pytest.approx(predicted, rel=0.1)


def test_messages_that_the_table_has_no_room_for_in_a_run_come_back_and_are_written(shop: Shop) -> None:
    began = shop.cloud.status().now
    _use_up(shop.cloud, "orders")
    # 8,000 units; in the 50 seconds that a run may write the table has 2,500
    for number in range(80):
        body = json.dumps({"pk": f"l-{number}", "version": 1, "text": "x" * 99_500})
        shop.sqs.send_message(QueueUrl=shop.queue, MessageBody=body)
    shop.cloud.step(400)
    assert shop.left() == 0
    assert {f"l-{number}" for number in range(80)} <= set(shop.versions())
    assert shop.take_letters() == []
    runs = shop.runs(began)
    assert sum(run["written"] for run in runs) == 80
    assert sum(run["returned"] for run in runs) > 0
    assert sum(run["returned"] - run["delayed"] for run in runs) == 0
