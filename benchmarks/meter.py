"""What the meter costs a request, and what a fleet's pulses write: `make benchmark NAME=meter`.

The first part sends the same requests by a metered and by an unmetered client in turn, over HTTP to a server on this
machine that answers at once. The second has fleets pulse into one item by a clock of their own: calm, near the
capacity, and with requests refused at a ceiling, for an hour; it counts writes, elections, what they are billed by the
size of the item, and what they cost. The third is the size of that item for tables with more and more indexes.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from highwater import CoordinatorClient, Meter, Pulse
from highwater.client.hooks import Counts
from highwater.core import Dimension
from highwater.core.items import item_bytes, write_units_of
from highwater.core.plan.plan import TargetKey
from highwater.core.prices import HOURS_PER_MONTH
from highwater.core.pulses import Hint, amount_attribute, hints_of_shards, hints_text, pulse_partition, pulse_sort_key
from highwater_lab.services.prices import load_prices

_REQUESTS: Final = 3_000
_MINUTES: Final = 60
_INDEXES: Final = 5
_MANY: Final = 1_000
_ANSWER: Final = json.dumps(
    {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}}}
).encode()
_BEGAN: Final = 1_795_436_760.0
_USD_OF_A_UNIT: Final = load_prices().throughput().on_demand_write_million / 1e6


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # an answer in one packet
    wbufsize = 65_536

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", str(len(_ANSWER)))
        self.end_headers()
        self.wfile.write(_ANSWER)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def overhead() -> None:
    """Print median and 99th percentile of a request's time and its CPU time, with and without the meter."""
    session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")  # noqa: S106 - none
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        clients = {name: session.client("dynamodb", endpoint_url=url) for name in ("without", "with")}
        Meter(Counts()).install(clients["with"])
        wall: dict[str, list[float]] = {name: [] for name in clients}
        cpu: dict[str, list[float]] = {name: [] for name in clients}
        for number in range(_REQUESTS):
            # in turn, and each first as often as second
            for name in sorted(clients, reverse=bool(number % 2)):
                began, busy = time.perf_counter(), time.thread_time()
                clients[name].put_item(TableName="orders", Item={"pk": {"S": "a"}})
                wall[name].append(time.perf_counter() - began)
                cpu[name].append(time.thread_time() - busy)
        server.shutdown()
    print(f"{_REQUESTS:,} requests each, in turn; microseconds")
    for name in clients:
        percentile = statistics.quantiles(wall[name], n=100)[98]
        print(
            f"{name:8} median {statistics.median(wall[name]) * 1e6:7.0f}   99 % {percentile * 1e6:7.0f}   "
            f"CPU median {statistics.median(cpu[name]) * 1e6:7.0f}"
        )
    ratio = statistics.median(wall["with"]) / statistics.median(wall["without"])
    more = (statistics.median(cpu["with"]) - statistics.median(cpu["without"])) * 1e6
    print(f"a metered request takes {ratio:.3f} of the time, and {more:.0f} microseconds of CPU more")


@dataclass
class _Item:
    """The coordinator's table in memory, which counts what is asked of it."""

    hints: Mapping[TargetKey, Hint]
    writes: int = 0
    write_units: int = 0
    refused: int = 0
    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    throttled: int = 0
    # write units of each shard in this second
    by_shard: Counter[str] = field(default_factory=Counter)
    most_by_shard: int = 0
    units_by_shard: Counter[int] = field(default_factory=Counter)

    def begin_second(self) -> None:
        """Let a second pass, for which each partition has its units anew."""
        self.by_shard.clear()

    def update_item(self, **request: Any) -> dict[str, Any]:
        shard, minute = (request["Key"][name]["S"] for name in ("table", "item"))
        item = self.items.setdefault((shard, minute), dict(request["Key"]))
        self._bill(shard, item)
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        if "ConditionExpression" in request:
            if "woken" in item and int(item["woken"]["N"]) >= int(values[":slot"]["N"]):
                self.refused += 1
                raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "UpdateItem")
            item["woken"] = values[":slot"]
            return {}
        number = int(shard.partition("#")[2].partition("#")[2] or 0)
        for name, attribute in names.items():
            if name.startswith("#a"):
                units = float(values[name.replace("#", ":")]["N"])
                item[attribute] = {"N": f"{float(item.get(attribute, _NOTHING)['N']) + units:.1f}"}
                self.units_by_shard[number] += int(units)
        item["expires"] = values[":expires"]
        # the scaler writes its hints to the shards that are in use
        hints = hints_of_shards(self.hints, self.units_by_shard) if self.hints else {}
        if number in hints:
            item["hint"] = {"S": hints_text(hints[number])}
        return {"Attributes": dict(item)}

    def _bill(self, shard: str, item: Mapping[str, Any]) -> None:
        """Count a write by the size of its item, also one whose condition fails; throttle it if the second is full."""
        units = write_units_of(item_bytes(item))
        if self.by_shard[shard] + units > _PARTITION_UNITS:
            self.throttled += 1
            answer: Any = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(answer, "UpdateItem")
        self.by_shard[shard] += units
        self.most_by_shard = max(self.most_by_shard, self.by_shard[shard])
        self.writes += 1
        self.write_units += units


@dataclass
class _Scaler(CoordinatorClient):
    """Counts how often it is woken, and leaves a new hint each time."""

    item: _Item = field(kw_only=True)
    clock: Callable[[], float] = field(kw_only=True)
    woken: int = 0

    def send(self, action: str, **members: Any) -> dict[str, Any]:  # noqa: ARG002
        self.woken += 1
        newest = int(self.clock()) // 10 - 1
        self.item.hints = {key: replace(hint, slot=newest) for key, hint in self.item.hints.items()}
        return {}


_CAPACITY: Final = 10_000
_NOTHING: Final = {"N": "0"}
# of a partition, each second
_PARTITION_UNITS: Final = 1_000
_HINT: Final = Hint(int(_BEGAN) // 10 - 1, _CAPACITY, _CAPACITY * 60, 100, 17)


def fleet(name: str, share_percent: int, hint: Hint | None, processes: int, indexes: int = 0) -> None:
    """Print what so many processes write that together ask for so much of the capacity; what is above is refused.

    They write to a table, and so to each of its indexes.
    """
    now = [_BEGAN]
    keys: list[TargetKey] = [(index, Dimension.WRITE) for index in _resources(indexes)]
    item = _Item(dict.fromkeys(keys, hint) if hint else {})
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    scaler = _Scaler(item=item, clock=clock)
    made = [
        Pulse(
            dynamodb=item,
            coordinator=scaler,
            clock=clock,
            pause=lambda _: None,
            _pulse_table="pulses",
            _spread=1.5 * number / processes,
        )
        for number in range(processes)
    ]
    most = 0
    asked = 0.0
    for second in range(_MINUTES * 60):
        before = item.writes
        item.begin_second()
        for number, pulse in enumerate(made):
            now[0] = _BEGAN + second + number / processes
            for percent, is_refused in ((min(share_percent, 100), False), (max(share_percent - 100, 0), True)):
                units = _CAPACITY * percent / 100 / processes
                for key in keys if units else ():
                    pulse.counts.add("orders", int(now[0]) // 10, key, units, refused=is_refused)
                asked += units * len(keys)
            pulse.beat()
        most = max(most, item.writes - before)
    for pulse in made:
        pulse.beat(is_last=True)
    told = sum(float(units["N"]) for each in item.items.values() for at, units in each.items() if at[1].isdigit())
    a_minute = item.writes / processes / _MINUTES
    usd = item.write_units / processes / _MINUTES * 60 * HOURS_PER_MONTH * _USD_OF_A_UNIT
    print(
        f"{name:36} {a_minute:5.1f} writes a minute and process, {item.write_units / item.writes:.2f} units each, "
        f"{usd:.3f} USD a month; together {item.writes / _MINUTES / 60:7.1f} a second, at most {most:,}, "
        f"{item.most_by_shard:,} units to one of {len({shard for shard, _ in item.items})} shards, "
        f"{item.throttled:,} of {item.writes + item.throttled:,} throttled; {item.refused:,} lost elections, "
        f"{scaler.woken:,} wake-ups; told {100 * told / asked:.2f} % of what was asked"
    )


def _resources(indexes: int) -> list[str | None]:
    """A table and so many indexes."""
    return [None, *(f"by_something{number:02}" for number in range(indexes))]


def _item_of_a_minute(indexes: int, *, is_refused: bool) -> Mapping[str, Mapping[str, Any]]:
    """The item of a whole minute in which the table and each index were read and written, and asked for help."""
    keys = [(name, dimension) for name in _resources(indexes) for dimension in Dimension]
    minute = int(_BEGAN) // 60
    item: dict[str, dict[str, Any]] = {
        "table": {"S": pulse_partition("orders")},
        "item": {"S": pulse_sort_key(minute)},
        "expires": {"N": str(minute * 60 + 3_600)},
        "woken": {"N": str(minute * 6 + 5)},
        "hint": {"S": hints_text({key: Hint(minute * 6 - 1, 1_200, 72_000, 100, 50, 120) for key in keys})},
    }
    for key in keys:
        for slot in range(6):
            for refused in (False, True) if is_refused else (False,):
                item[amount_attribute(slot, key, refused=refused)] = {"N": "12345.6"}
    return item


def sizes() -> None:
    """Print the size of the item at the end of its minute, and what a write of it is billed."""
    for indexes in (0, 1, 2, 3, 5, 10, 20):
        found = [item_bytes(_item_of_a_minute(indexes, is_refused=is_refused)) for is_refused in (False, True)]
        calm, refused = (f"{size:6,} bytes, {write_units_of(size):2} units a write" for size in found)
        print(f"{indexes:2} indexes: {calm}; with refused requests {refused}")


def main() -> int:
    """Print all parts."""
    overhead()
    full = replace(_HINT, level_units=0)
    for processes in (1, 100, _MANY):
        print(f"\n{processes:,} processes, {_MINUTES} minutes, one table's writes")
        fleet("calm, 50 % of the capacity", 50, _HINT, processes)
        fleet("near, 90 % of the capacity", 90, _HINT, processes)
        fleet("refused, 120 %", 120, full, processes)
        fleet("refused, 120 %, no more to be had", 120, replace(full, is_most=True), processes)
        fleet("calm, nothing scales the table", 50, None, processes)
        fleet(f"refused, 120 %, {_INDEXES} indexes", 120, full, processes, _INDEXES)
    print("\nthe item of a minute, table and indexes read and written")
    sizes()
    return 0


if __name__ == "__main__":
    sys.exit(main())
