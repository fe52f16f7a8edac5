"""Many signed requests at once: real HTTP in front of the handler's own code, real conditional writes behind.

Fifty of them after every change, two hundred each night.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest

from highwater import CoordinatorClient
from highwater.aws.coordinator_table import LeaseTable
from highwater.calls.attempts import AWAITED, client_config
from highwater.handlers.coordinator.handler import read_request
from highwater.handlers.coordinator.refusals import RefusedError
from highwater_lab.local import LocalCloud
from tests.core.examples import examples
from tests.handlers.boost_world import World
from tests.handlers.test_boost_calls import request_of

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-scaler")]
_REQUESTS = examples(200)
# together they ask for more than there is
_UNITS = 6_200 // _REQUESTS


class RealLeases(World):
    """The world of the tests in memory, with a lease table in a cloud."""

    dynamo: Any

    @property
    def leases(self) -> LeaseTable:
        return LeaseTable("leases-of-many", self.dynamo)


@pytest.fixture
def running_cloud() -> Iterator[LocalCloud]:
    """A cloud whose clock runs: all requests write one item until each has its place."""
    with LocalCloud(has_instant_updates=True) as cloud:
        yield cloud


@pytest.fixture
def world(running_cloud: LocalCloud) -> Iterator[RealLeases]:
    made = RealLeases()
    made.dynamo = running_cloud.client("dynamodb", client_config(AWAITED, max_pool_connections=_REQUESTS))
    made.dynamo.create_table(
        TableName="leases-of-many",
        KeySchema=[{"AttributeName": "table", "KeyType": "HASH"}, {"AttributeName": "item", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("table", "item")],
        BillingMode="PAY_PER_REQUEST",
    )
    yield made
    made.dynamo.delete_table(TableName="leases-of-many")
    made.dynamo.close()


@pytest.fixture
def url(world: RealLeases) -> Iterator[str]:
    """A server on loopback that does what a function's URL does: it hands the body and the caller to the function."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            coordinator = replace(world.coordinator(), pause=time.sleep)
            try:
                status, document = 200, coordinator.serve(read_request(request_of(body)))
            except RefusedError as refused:
                # the lease table throttles so many at once on a slow machine; the client asks again
                status, document = refused.status, {"error": str(refused)}
            answer = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = _REQUESTS

    with Server(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/"
        listening.shutdown()
        thread.join()


def test_none_is_lost_none_granted_twice_and_each_answer_is_true(world: RealLeases, url: str) -> None:
    session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
    # no job gives up: on a slow machine the lease table throttles so many at once for a while
    client = CoordinatorClient(coordinator=url, session=session, attempts=20)

    def ask(number: int) -> tuple[str, tuple[int, str]]:
        # every tenth is sent twice, as a client does whose answer is lost
        id = f"request-{number - number % 10 if number % 10 == 1 else number:03}"
        answer = client.send("begin", id=id, table="orders", write=_UNITS, minutes=10)
        return id, (answer["targets"][0]["units"], answer["outcome"])

    with ThreadPoolExecutor(_REQUESTS) as pool:
        answers = list(pool.map(ask, range(_REQUESTS)))
    granted = dict(answers)
    assert len(granted) == _REQUESTS * 9 // 10
    assert all(granted[id] == told for id, told in answers), "who asks twice is told the same"
    assert sum(units for units, _ in granted.values()) == 3_988, "all that the ceiling of 4,000 leaves above 12"
    kept = {lease.id: lease.units for lease in world.leases.read("orders").leases}
    assert kept == {id: units for id, (units, _) in granted.items() if units}
    assert all(outcome == {_UNITS: "whole", 0: "refused"}.get(units, "part") for units, outcome in granted.values())
    assert world.tick() == 4_000
