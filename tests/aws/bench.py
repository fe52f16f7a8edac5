"""Tables in the local cloud, and a wire to it on which any answer can be lost, delayed or replaced."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session

from highwater.aws import tables
from highwater.core.units import Units
from highwater_lab.local import LocalCloud
from tests.memory_aws.wire import Call as MemoryCall
from tests.memory_aws.wire import Fault
from tests.memory_aws.wire import Wire as MemoryWire

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_numbers = itertools.count(1)
_HOME = Units(5, 7)


@dataclass(frozen=True)
class Call(MemoryCall):
    """One request on its way, as the SDK prepared it."""

    request: Any


class Wire(MemoryWire):
    """A client of the code under test: counts its calls and gives each to a fault, which may answer or raise."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client = client
        self._session = URLLib3Session()
        client.meta.events.register("before-send", self._before_send)

    def _before_send(self, request: Any, event_name: str, **_: Any) -> Any:
        operation, body = event_name.rsplit(".", 1)[-1], json.loads(request.body)
        call = Call(len(self.calls) + 1, operation, body, lambda: _closed(self._session.send(request)), request)
        self.calls.append(call)
        return self.fault(call)


def answer(status: int, body: bytes) -> Fault:
    """An answer without asking the cloud."""
    return lambda call: _response(call.request.url, status, body)


def refusal(code: str, message: str, status: int = 400) -> Fault:
    """An error answer without asking the cloud."""
    return answer(
        status, json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}).encode()
    )


def rewritten(change: Callable[[dict[str, Any]], None]) -> Fault:
    """The cloud's own answer, changed on the way back."""

    def rewrite(call: Call) -> Any:
        response = call.send()
        document = json.loads(response.content)
        change(document)
        return replaced(response, document)

    return rewrite


def replaced(response: Any, document: dict[str, Any]) -> Any:
    """An answer with another content."""
    return _response(response.url, response.status_code, json.dumps(document).encode())


def _closed(response: Any) -> Any:
    assert response.content is not None  # reads it to the end, so that the connection goes back to its pool
    return response


def _response(url: str, status: int, body: bytes) -> AWSResponse:
    headers = {"content-type": "application/x-amz-json-1.0", "content-length": str(len(body))}
    return AWSResponse(url, status, headers, _Raw(body))  # type: ignore[arg-type] # any mapping does


class _Raw(io.BytesIO):
    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


@dataclass
class Bench:
    """A cloud with a plain client, and the wire that the code under test speaks over."""

    cloud: LocalCloud
    dynamodb: DynamoDBClient
    autoscaling: Any
    wire: Wire

    def make_table(self, units: Units = _HOME, *, on_demand: bool = False, **indexes: tuple[int, int]) -> str:
        """A table with a unique name and the named indexes."""
        name = f"orders-{next(_numbers)}"
        key = [{"AttributeName": "pk", "KeyType": "HASH"}]
        request: dict[str, Any] = {
            "TableName": name,
            "KeySchema": key,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        }
        request |= {"BillingMode": "PAY_PER_REQUEST"} if on_demand else _throughput(units)
        if indexes:
            request["GlobalSecondaryIndexes"] = [
                {"IndexName": index, "KeySchema": key, "Projection": {"ProjectionType": "ALL"}}
                | _throughput(Units(*own))
                for index, own in indexes.items()
            ]
        self.dynamodb.create_table(**request)
        return name

    def capacities(self, table: str) -> dict[str | None, Units]:
        """What is provisioned."""
        return tables.describe_table(self.dynamodb, table).capacities

    def marks(self, table: str) -> dict[str | None, Units]:
        """The live marks."""
        return tables.describe_table(self.dynamodb, table).marks

    def tags(self, table: str) -> dict[str, str]:
        """The table's tags."""
        arn = tables.describe_table(self.dynamodb, table).arn
        found = self.dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]
        return {tag["Key"]: tag["Value"] for tag in found}

    def spend_decreases(self, table: str, index: str | None = None, count: int = 4) -> None:
        """Use up the day's free decreases, ending at the capacity it starts from."""
        home = self.capacities(table)[index]
        for _ in range(count):
            tables.set_capacity(self.dynamodb, table, index, Units(home.read, home.write + 1))
            tables.set_capacity(self.dynamodb, table, index, home)


def _throughput(units: Units) -> dict[str, Any]:
    return {"ProvisionedThroughput": {"ReadCapacityUnits": units.read, "WriteCapacityUnits": units.write}}
