"""The local cloud under random requests and interruptions: it answers each, and leaves no server behind."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.command import Command
from tests.fuzz.mutations import changed_json, changed_text
from tests.local.world import client
from tests.ports import servers

RUNS = int(os.environ.get("HIGHWATER_FUZZ_RUNS", "60"))
FIRST_SEED = int(os.environ.get("HIGHWATER_FUZZ_SEED", "1"))
KEY = {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}
TABLE = {
    **KEY,
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6},
}
ITEM = {"id": {"S": "a"}, "n": {"N": "7"}, "m": {"M": {"l": {"L": [{"BOOL": True}]}}}}
TARGET = {"ServiceNamespace": "dynamodb", "ResourceId": "table/orders"}
READS = TARGET | {"ScalableDimension": "dynamodb:table:ReadCapacityUnits"}
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("DynamoDB_20120810.CreateTable", TABLE),
    ("DynamoDB_20120810.DescribeTable", {"TableName": "orders"}),
    ("DynamoDB_20120810.UpdateTable", {"TableName": "orders", "ProvisionedThroughput": {"ReadCapacityUnits": 7}}),
    ("DynamoDB_20120810.PutItem", {"TableName": "orders", "Item": ITEM, "ReturnConsumedCapacity": "TOTAL"}),
    ("DynamoDB_20120810.GetItem", {"TableName": "orders", "Key": {"id": {"S": "a"}}, "ConsistentRead": True}),
    ("DynamoDB_20120810.Query", {"TableName": "orders", "KeyConditionExpression": "id = :i", "Limit": 3}),
    ("DynamoDB_20120810.Scan", {"TableName": "orders", "TotalSegments": 4, "Segment": 1}),
    ("DynamoDB_20120810.BatchWriteItem", {"RequestItems": {"orders": [{"PutRequest": {"Item": ITEM}}]}}),
    ("DynamoDB_20120810.TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "orders", "Item": ITEM}}]}),
    ("AnyScaleFrontendService.RegisterScalableTarget", {**READS, "MinCapacity": 5, "MaxCapacity": 50}),
    ("AnyScaleFrontendService.DescribeScalableTargets", TARGET),
    (
        "AnyScaleFrontendService.PutScheduledAction",
        {
            **READS,
            "ScheduledActionName": "load",
            "Schedule": "cron(0 5 * * ? *)",
            "ScalableTargetAction": {"MinCapacity": 9},
        },
    ),
    ("AmazonSSM.PutParameter", {"Name": "/highwater/x", "Value": "y", "Type": "String"}),
    ("AmazonSSM.GetParametersByPath", {"Path": "/highwater"}),
)
PATHS = ("/", "/", "/", "/_highwater/status", "/_highwater/advance", "/2015-03-31/functions", "//", "/%00", "/..%2f")
METHODS = ("POST", "POST", "POST", "POST", "GET", "PUT", "DELETE", "OPTIONS", "PATCH")


def _request(random: Random) -> tuple[str, str, bytes, dict[str, str]]:
    name, document = random.choice(REQUESTS)
    body = changed_json(document, random)
    prefix, _, operation = name.partition(".")
    target = name if random.random() < 0.9 else f"{prefix}.{changed_text(operation, random)}"
    credential = "Credential=test/20261102/us-east-1/dynamodb/aws4_request"
    headers = {
        "X-Amz-Target": "".join(character for character in target if character.isprintable() and character < "\x7f"),
        "Content-Type": random.choice(["application/x-amz-json-1.0", "application/x-amz-json-1.1", "text/plain"]),
        "Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0",
    }
    path = random.choice(PATHS) if random.random() < 0.3 else "/"
    return random.choice(METHODS) if random.random() < 0.2 else "POST", path, body, headers


@pytest.mark.cloud
def test_changed_requests_are_answered_and_never_by_a_fault() -> None:
    print(f"seeds {FIRST_SEED} to {FIRST_SEED + RUNS * 10 - 1}")
    with LocalCloud() as cloud, closing(http.client.HTTPConnection("127.0.0.1", cloud.port, timeout=60)) as connection:
        for seed in range(FIRST_SEED, FIRST_SEED + RUNS * 10):
            method, path, body, headers = _request(Random(seed))
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            # what is not imitated may be said so: 501
            is_fault = answer.status >= 500 and answer.status != 501
            assert not is_fault, f"seed {seed}: {method} {path} {headers} {body!r}: {answer.status} {text[:600]!r}"
            assert b"Traceback" not in text, f"seed {seed}"
        assert isinstance(client(cloud, "dynamodb").list_tables()["TableNames"], list), "it still serves"


@pytest.mark.cloud
def test_local_up_that_is_interrupted_anywhere_leaves_nothing(command: Command, tmp_path: Path) -> None:
    """A signal after a random time: `down` finds what is left, and afterwards no server is."""
    for seed in range(FIRST_SEED, FIRST_SEED + max(1, RUNS // 30)):
        random = Random(seed)
        process = command.start("local", "up", "--port", "0", stderr=subprocess.STDOUT)
        try:
            process.communicate(timeout=random.uniform(0.0, 4.0))
        except subprocess.TimeoutExpired:
            process.send_signal(random.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]))
        said, _ = process.communicate(timeout=60)
        assert "Traceback" not in (said or ""), f"seed {seed}: {said}"
        done = command("local", "down")
        assert done.returncode in (0, 2), f"seed {seed}: {done.stderr}"
        assert servers(tmp_path) == set(), f"seed {seed}"
