"""Servers and a coordinator that answer what a test tells them to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from highwater import CoordinatorClient, Pulse

ARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/orders"
CONSUMED = {
    "TableName": "orders",
    "CapacityUnits": 7.0,
    "Table": {"CapacityUnits": 3.0},
    "LocalSecondaryIndexes": {"by_day": {"CapacityUnits": 1.5}},
    "GlobalSecondaryIndexes": {"by_status": {"CapacityUnits": 2.5}},
}
ITEM = {"pk": {"S": "a"}}


class DynamoDB:
    """Answers what it is told to, the last for ever, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, Any]]] = [(200, {"ConsumedCapacity": CONSUMED})]
        self.asked: list[dict[str, Any]] = []

    def serve(self, body: bytes) -> tuple[int, bytes]:
        self.asked.append(json.loads(body))
        status, document = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return status, json.dumps(document).encode()


def throttled(
    reason: str | None = "TableWriteProvisionedThroughputExceeded",
    resource: str = ARN,
    code: str = "ProvisionedThroughputExceededException",
) -> Any:
    document: dict[str, Any] = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}"}
    if reason is not None:
        member = "throttlingReasons" if code == "ThrottlingException" else "ThrottlingReasons"
        document[member] = [{"reason": reason, "resource": resource}]
    return 400, document | {"message": "slow down"}


@contextmanager
def listening(serve: Callable[[bytes, Mapping[str, str]], tuple[int, bytes] | None]) -> Iterator[str]:
    """Serve requests on loopback while the block runs; yields the URL.

    *serve* gets a request's body and headers, and returns the status and the body; `None` drops the connection.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = serve(body, {name.lower(): value for name, value in self.headers.items()})
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer[0])
            self.send_header("content-type", "application/x-amz-json-1.0")
            self.send_header("content-length", str(len(answer[1])))
            self.end_headers()
            self.wfile.write(answer[1])

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Nobody(CoordinatorClient):
    """Is woken, and says nothing."""

    def send(self, action: str, **members: Any) -> dict[str, Any]:
        return {"action": action, **members}


def driven_pulse(dynamodb: Any, coordinator: CoordinatorClient, clock: Callable[[], float], **more: Any) -> Pulse:
    """A pulse by a test's clock, of a fleet whose coordinator has the table `pulses`; unless told so it never waits."""
    settings: dict[str, Any] = {"pause": lambda _: None, "_pulse_table": "pulses"}
    return Pulse(dynamodb=dynamodb, coordinator=coordinator, clock=clock, **settings | more)


def told_units(request: Mapping[str, Any]) -> float:
    """The units that a pulse adds to an item."""
    values = request["ExpressionAttributeValues"]
    return sum(float(value["N"]) for name, value in values.items() if name.startswith(":a"))
