"""How much of a budget paced work reaches where requests take time: `make benchmark NAME=latency`.

A server on this machine answers each request after a fixed time, as DynamoDB does over a slow network or for a large
page, and counts the units of what it answered. `highwater.write` and `highwater.scan` run with real clients against it
for twenty seconds each. Printed are the units a second after the first second, in which a budget begins with nothing,
their share of the budget, the highest second, and the most requests that were under way at once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import boto3

import highwater
from highwater.bulk.items import Action

LATENCIES: Final = (5, 30, 100, 200)
WRITE, READ = 1_000, 300
_TABLE_BYTES: Final = 8 * 1024**3
_ITEM_BYTES: Final = 4_096
_BEGINS: Final = 1.0


@dataclass
class Table:
    """A table whose requests take *seconds* each; it has no capacity to run out of."""

    seconds: float = 0.0
    began: float = field(default_factory=time.monotonic)
    units: dict[int, float] = field(default_factory=dict)
    under_way: int = 0
    most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer after the time that requests take; units count when a request arrives."""
        if operation == "DescribeTable":
            shown = {"TableName": "orders", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}
            return {"Table": shown | {"TableSizeBytes": _TABLE_BYTES, "ItemCount": _TABLE_BYTES // _ITEM_BYTES}}
        items = request["Limit"] if operation == "Scan" else len(request["RequestItems"]["orders"])
        units = items / 2 if operation == "Scan" else float(items)
        with self._lock:
            second = int(time.monotonic() - self.began)
            self.units[second] = self.units.get(second, 0.0) + units
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        time.sleep(self.seconds)
        with self._lock:
            self.under_way -= 1
        consumed = {"TableName": "orders", "CapacityUnits": units, "Table": {"CapacityUnits": units}}
        if operation == "BatchWriteItem":
            return {"UnprocessedItems": {}, "ConsumedCapacity": [consumed]}
        page: dict[str, Any] = {"Items": [], "Count": 0, "ScannedCount": items, "LastEvaluatedKey": {"pk": {"S": "a"}}}
        return page | {"ConsumedCapacity": consumed}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    table = Table()


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # an answer in one packet
    wbufsize = 65_536

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert isinstance(self.server, _Server)
        found = self.server.table.answer(self.headers["x-amz-target"].rpartition(".")[2], request)
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _puts(until: float) -> Iterator[Action]:
    number = 0
    while time.monotonic() < until:
        number += 1
        yield highwater.Put({"pk": f"order-{number}"})


def measure(server: _Server, session: boto3.Session, milliseconds: int, seconds: float, *, is_write: bool) -> str:
    """Run one of the two for so long, and return its row."""
    table = server.table = Table(milliseconds / 1_000)
    until = table.began + seconds
    if is_write:
        highwater.write("orders", _puts(until), write=WRITE, session=session)
    else:
        for _ in highwater.scan("orders", read=READ, session=session):
            if time.monotonic() > until:
                break
    whole = {second: units for second, units in table.units.items() if _BEGINS <= second < int(seconds)}
    rate, budget = sum(whole.values()) / (int(seconds) - _BEGINS), WRITE if is_write else READ
    name = f"write={WRITE}" if is_write else f"read={READ}"
    highest = max(whole.values())
    return f"{name:12} {milliseconds:>5} {rate:>9.1f} {rate / budget:>7.1%} {highest:>10.0f} {table.most:>9}"


def main(arguments: Sequence[str]) -> int:
    """Print a row for each budget and latency; return 0."""
    parser = argparse.ArgumentParser(prog="latency", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each row")
    parser.add_argument("--latencies", type=int, nargs="*", default=LATENCIES, help="in milliseconds")
    given = parser.parse_args(arguments)
    print(f"{'':12} {'ms':>5} {'units/s':>9} {'of it':>7} {'highest s':>10} {'at once':>9}")
    with _Server(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = f"http://127.0.0.1:{server.server_port}"
        session: Any = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")  # noqa: S106 - none
        for is_write in (True, False):
            for milliseconds in given.latencies:
                print(measure(server, session, milliseconds, given.seconds, is_write=is_write), flush=True)
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
