"""The scaler's side of pulses on a real table, beside a client that has nothing but the page about the format."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from highwater.aws.coordinator_table import PulsesUnavailableError, PulseTable
from highwater.client.fleet import FleetTable
from highwater.client.hooks import Amounts
from highwater.core import Dimension
from highwater.core.pulses import PULSE_SHARDS, Hint, Slots
from highwater_lab.local import LocalCloud

pytestmark = pytest.mark.xdist_group("cloud-scaler")
MINUTE = 29_923_951
READ, WRITE = (None, Dimension.READ), (None, Dimension.WRITE)
STATUS = ("by_status", Dimension.WRITE)


@pytest.fixture
def dynamodb(scaled_cloud: LocalCloud) -> Iterator[Any]:
    client = scaled_cloud.client("dynamodb")
    client.create_table(
        TableName="fleet",
        KeySchema=[{"AttributeName": "table", "KeyType": "HASH"}, {"AttributeName": "item", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("table", "item")],
        BillingMode="PAY_PER_REQUEST",
    )
    yield client
    client.delete_table(TableName="fleet")
    client.close()


def post(cloud: LocalCloud, operation: str, document: dict[str, Any]) -> dict[str, Any]:
    """A request by plain HTTP; the cloud on loopback takes any signature."""
    request = urllib.request.Request(  # noqa: S310 - an address of this machine
        cloud.environment()["AWS_ENDPOINT_URL"],
        data=json.dumps(document).encode(),
        headers={
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=test/20270304/us-east-1/dynamodb/aws4_request, "
            "SignedHeaders=host, Signature=0",
        },
        method="POST",
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        found: dict[str, Any] = json.loads(answer.read())
        return found


def add(cloud: LocalCloud, minute: int, amounts: dict[str, str]) -> dict[str, Any]:
    """What docs/pulse-protocol.md says, in another client's words."""
    names = {f"#n{at}": name for at, name in enumerate(amounts)}
    values: dict[str, Any] = {f":v{at}": {"N": units} for at, units in enumerate(amounts.values())}
    answer = post(
        cloud,
        "UpdateItem",
        {
            "TableName": "fleet",
            "Key": {"table": {"S": "pulse#orders"}, "item": {"S": f"{minute:010d}"}},
            "UpdateExpression": "ADD " + ", ".join(f"#n{at} :v{at}" for at in range(len(amounts))) + " SET #e = :e",
            "ExpressionAttributeNames": names | {"#e": "expires"},
            "ExpressionAttributeValues": values | {":e": {"N": str(minute * 60 + 3_600)}},
            "ReturnValues": "ALL_NEW",
        },
    )
    found: dict[str, Any] = answer["Attributes"]
    return found


def test_client_that_only_read_the_page_tells_with_ours_and_the_scaler_reads_both(
    scaled_cloud: LocalCloud, dynamodb: Any
) -> None:
    ours = FleetTable(dynamodb, "fleet", "orders")
    ours.add({(MINUTE * 6 + 3, WRITE, False): 612.5, (MINUTE * 6 + 4, WRITE, True): 3.0})
    seen = add(scaled_cloud, MINUTE, {"c3w": "204", "c3w:by_status": "7.5", "c5r": "0.5"})
    assert seen["c3w"] == {"N": "816.5"}
    add(scaled_cloud, MINUTE - 1, {"c0w": "11"})
    found = PulseTable("fleet", dynamodb).read("orders", MINUTE - 1, MINUTE * 6 + 5)
    assert found[WRITE] == Slots(MINUTE * 6 + 5, (11, *[None] * 8, 817, None, None), (0,) * 10 + (3, 0))
    assert found[STATUS].consumed_units[9] == 8
    assert found[READ].consumed_units[-1] == 1
    assert PulseTable("fleet", dynamodb).read("others", MINUTE - 1, MINUTE * 6 + 5) == {}


def test_hints_reach_whoever_tells_next_and_one_of_all_is_elected(scaled_cloud: LocalCloud, dynamodb: Any) -> None:
    hint = Hint(MINUTE * 6, 186, 11_160, 87, 17, 90)
    PulseTable("fleet", dynamodb).tell("orders", {WRITE: hint}, MINUTE, 2)
    assert json.loads(add(scaled_cloud, MINUTE + 1, {"c0w": "1"})["hint"]["S"]) == {
        "w": [MINUTE * 6, 186, 11_160, 87, 17, 90]
    }
    ours = FleetTable(dynamodb, "fleet", "orders")
    ours.add({(MINUTE * 6 + 3, WRITE, False): 2.0})
    assert ours.hints == {WRITE: hint}
    slot = MINUTE * 6 + 4
    assert [ours.is_elected(at) for at in (slot, slot, slot - 1, slot + 1)] == [True, False, False, True]


def test_process_that_is_throttled_goes_on_in_another_shard_and_knows_its_share_of_the_fleet(dynamodb: Any) -> None:
    slot = MINUTE * 6 + 3
    staying, moved = FleetTable(dynamodb, "fleet", "orders"), FleetTable(_Throttled(dynamodb), "fleet", "orders")
    staying.add({(slot, WRITE, False): 600.0})
    amounts: Amounts = {(slot, WRITE, False): 200.0}
    with pytest.raises(ClientError):
        moved.add(amounts)
    assert moved.shard in range(1, PULSE_SHARDS)
    assert amounts == {(slot, WRITE, False): 200.0}, "what was not written is kept"
    moved.add(amounts)
    pulses = PulseTable("fleet", dynamodb)
    assert pulses.read("orders", MINUTE, MINUTE * 6 + 5)[WRITE].consumed_units == (None, None, None, 800, None, None)
    pulses.tell("orders", {WRITE: Hint(slot, 70, 0, 80, 17)}, MINUTE, 1)
    for fleet, coverage in ((staying, 60), (moved, 20)):
        fleet.add({(slot + 1, WRITE, False): 1.0})
        assert fleet.hints == {WRITE: Hint(slot, 70, 0, coverage, 17)}


def test_process_whose_item_was_spoilt_goes_on_in_another_shard(dynamodb: Any) -> None:
    slot = MINUTE * 6 + 3
    key = {"table": {"S": "pulse#orders"}, "item": {"S": f"{MINUTE:010d}"}}
    dynamodb.put_item(TableName="fleet", Item=key | {"c3w": {"S": "seven"}})
    fleet = FleetTable(dynamodb, "fleet", "orders")
    amounts: Amounts = {(slot, WRITE, False): 200.0}
    with pytest.raises(ClientError, match="ValidationException"):
        fleet.add(amounts)
    fleet.add(amounts)
    found = PulseTable("fleet", dynamodb).read("orders", MINUTE, MINUTE * 6 + 5)
    assert found[WRITE].consumed_units == (None, None, None, 200, None, None)


@pytest.mark.parametrize("key", ["9{:09d}", f"{MINUTE:010d}x{{}}", f"{MINUTE - 1:010d}x{{}}"])
def test_items_that_are_no_pulses_hide_none(scaled_cloud: LocalCloud, dynamodb: Any, key: str) -> None:
    FleetTable(dynamodb, "fleet", "orders").add({(MINUTE * 6 + 3, WRITE, False): 612.5})
    pulses = PulseTable("fleet", dynamodb)
    for number in range(12):
        junk = {"table": {"S": "pulse#orders"}, "item": {"S": key.format(number)}, "expires": {"N": "1"}}
        dynamodb.put_item(TableName="fleet", Item=junk | {"junk": {"S": "x" * 390_000}})
        # a partition takes 1,000 units a second, however fast this machine is
        scaled_cloud.step(1)
    found = pulses.read("orders", MINUTE - 20, MINUTE * 6 + 5)
    assert found[WRITE].consumed_units[-3] == 613
    is_within = not key.startswith(("9", f"{MINUTE:010d}"))
    assert pulses.crowded == ({"orders"} if is_within else set())


@dataclass
class _Throttled:
    """A client whose writes of the first shard are throttled."""

    dynamodb: Any

    def update_item(self, **request: Any) -> Any:
        if request["Key"]["table"]["S"] == "pulse#orders":
            answer: Any = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(answer, "UpdateItem")
        return self.dynamodb.update_item(**request)


def test_table_that_is_not_there_is_said_to(dynamodb: Any) -> None:
    with pytest.raises(PulsesUnavailableError, match="ResourceNotFoundException"):
        PulseTable("nobodys", dynamodb).read("orders", MINUTE, MINUTE * 6)
