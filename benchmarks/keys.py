"""What counting partition keys costs a request, and the sketch alone: `make benchmark NAME=keys`.

The first part sends the same requests without hooks, with the counting of keys, with the meter of pulses and with both,
in turn; they are answered within the process, so that its CPU time has no network in it. Each request has another key
than all before it, for which the sketch gives up its lowest counter. The second part times the sketch alone.
"""

from __future__ import annotations

import io
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import boto3
from botocore.awsrequest import AWSResponse

from highwater import Meter
from highwater.client.hooks import Counts
from highwater.shards import KeyCounts
from highwater.shards.sketch import Sketch

_REQUESTS: Final = 6_000
_KEYS: Final = 100_000
_WITHOUT: Final = "without"
_ANSWER: Final = json.dumps(
    {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}}}
).encode()


def _answer(request: Any, **_: Any) -> Any:
    answered: Any = AWSResponse(request.url, 200, {"content-type": "application/x-amz-json-1.0"}, io.BytesIO(_ANSWER))  # type: ignore[arg-type]
    answered._content = _ANSWER
    return answered


def _clients() -> dict[str, Any]:
    session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")  # noqa: S106 - none
    clients = {name: session.client("dynamodb") for name in (_WITHOUT, "counting keys", "the meter", "both")}
    for name, client in clients.items():
        client.meta.events.register("before-send.dynamodb", _answer)
        if name in {"counting keys", "both"}:
            KeyCounts(attributes={"orders": "pk"}, secret=b"for this measurement").install(client)
        if name in {"the meter", "both"}:
            Meter(Counts()).install(client)
    return clients


def overhead() -> None:
    """Print the CPU time of a request, and how much more of it each of the hooks takes."""
    clients = _clients()
    names = list(clients)
    cpu: dict[str, list[float]] = {name: [] for name in names}
    for number in range(_REQUESTS):
        # in turn, and each first as often as any other
        first = number % len(names)
        for name in names[first:] + names[:first]:
            busy = time.thread_time()
            clients[name].put_item(TableName="orders", Item={"pk": {"S": f"TENANT#{number}"}})
            cpu[name].append((time.thread_time() - busy) * 1e6)
    print(f"{_REQUESTS:,} requests each, in turn; medians, in microseconds of CPU")
    for name in names:
        more = statistics.median(one - other for one, other in zip(cpu[name], cpu[_WITHOUT], strict=True))
        print(f"{name:13} {statistics.median(cpu[name]):4.0f}, more than without {more:4.0f}")


def sketch(name: str, keys: Sequence[str]) -> None:
    """Print the time of one addition to the sketch."""
    made = Sketch()
    began = time.thread_time()
    for key in keys:
        made.add(key, 1.0)
    each = (time.thread_time() - began) / len(keys) * 1e6
    print(f"{name}: {each:.1f} microseconds for an addition to the sketch, {len(list(made.frequent()))} keys found")


def main() -> int:
    """Print all parts."""
    overhead()
    others = [f"TENANT#{number}" for number in range(_KEYS)]
    draw = random.Random(7)  # noqa: S311 - no secret
    sketch(f"{_KEYS:,} keys, each once", others)
    sketch("every other request for one key", [draw.choice(("TENANT#0", key)) for key in others])
    return 0


if __name__ == "__main__":
    sys.exit(main())
