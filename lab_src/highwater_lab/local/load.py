"""A load generator: real boto3 clients that ask a table of the local cloud for so many units a second of its clock."""

from __future__ import annotations

import itertools
import math
import queue
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from highwater.core import Dimension, HighwaterError
from highwater_lab.local.cloud import CloudControl
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic import Stream, Traffic

# Requests a real second that a machine of two cores sends and serves with room to spare
MOST_REQUESTS_PER_SECOND = 250
# An item of 400 KB, a batch of a hundred keys
_MOST_UNITS_PER_REQUEST = {Dimension.READ: 100, Dimension.WRITE: 390}
_KEYS = 4_096
_TICK_SECONDS = 0.02
_THROTTLES = (
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
)


class LoadError(HighwaterError, ValueError):
    """Traffic that cannot be sent."""


@dataclass(slots=True)
class LoadMinute:
    """What was asked for and granted in one minute of the cloud's clock, in units; the answer's minute counts."""

    asked: float = 0.0
    granted: float = 0.0
    throttled: float = 0.0


@dataclass(slots=True)
class LoadReport:
    """What the clients saw.

    Attributes:
        begun: The cloud's time at the start.
        speed: How many times faster than real time its clock ran.
        units_per_request: How large each request was, by dimension.
        minutes: By dimension, each minute of the cloud since the start.
        requests: How many were sent.
        throttled_requests: How many of them were throttled in the end.
        retries: How often the SDK sent one again.
        latencies_ms: Real milliseconds of each answered request.
        most_behind_seconds: By how many cloud seconds the latest answer came after its request had been due.
    """

    begun: datetime
    speed: int
    units_per_request: dict[Dimension, int]
    minutes: dict[Dimension, list[LoadMinute]]
    requests: int = 0
    throttled_requests: int = 0
    retries: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    most_behind_seconds: float = 0.0

    def total(self, dimension: Dimension, member: str) -> float:
        """All units `asked`, `granted` or `throttled` of a dimension."""
        return float(sum(getattr(minute, member) for minute in self.minutes[dimension]))

    def latency_ms(self, percent: int) -> float:
        """A percentile of the latencies, 0 where nothing was answered."""
        if len(self.latencies_ms) < 2:
            return self.latencies_ms[0] if self.latencies_ms else 0.0
        return statistics.quantiles(self.latencies_ms, n=100)[percent - 1]


def units_per_request(
    traffic: Traffic, dimension: Dimension, speed: int, requests_per_second: int = MOST_REQUESTS_PER_SECOND
) -> int:
    """How large requests must be, in units, for this machine to send them in time; raises `LoadError` if too large."""
    rates = traffic.rates.get(Stream(None, dimension))
    if rates is None or not any(rates):
        return 1
    peak = max(rates) / QUANTA_PER_UNIT * speed
    units = max(1, math.ceil(peak / requests_per_second))
    if units > _MOST_UNITS_PER_REQUEST[dimension]:
        most = _MOST_UNITS_PER_REQUEST[dimension] * requests_per_second // speed
        raise LoadError(
            f"traffic {traffic.name} asks for {max(rates) // QUANTA_PER_UNIT:,} {dimension} units/s at its peak; at "
            f"speed {speed} at most {most:,} can be sent: scale it down"
        )
    return units


class Load:
    """Sends *traffic* to *table*; streams of indexes are not sent, as writes to the table make them.

    At its peak it sends *requests_per_second* of real time; with fewer, requests are larger.
    """

    def __init__(
        self,
        control: CloudControl,
        table: str,
        traffic: Traffic,
        *,
        retries: int = 0,
        threads: int = 8,
        requests_per_second: int = MOST_REQUESTS_PER_SECOND,
        tell: Callable[[LoadReport, int], None] | None = None,
    ) -> None:
        self._control = control
        self._table = table
        self._traffic = traffic
        self._tell = tell
        self._threads = threads
        self._requests_per_second = requests_per_second
        self._attempts = retries + 1
        self._lock = threading.Lock()
        self._sums: dict[Dimension, list[int]] = {}
        self._keys = itertools.cycle(f"{number * 2_654_435_761 % 2**32:08x}" for number in range(_KEYS))
        self._work: queue.Queue[tuple[Dimension, float] | None] = queue.Queue()

    def run(self) -> LoadReport:
        """Send it all; raises `LoadError` for a table that is not there and traffic that is too much."""
        status = self._control.status()
        dimensions = [d for d in Dimension if Stream(None, d) in self._traffic.rates]
        if not dimensions:
            raise LoadError(f"traffic {self._traffic.name} asks nothing of the table itself")
        rate = self._requests_per_second
        sizes = {d: units_per_request(self._traffic, d, status.speed, rate) for d in dimensions}
        key = self._key_of_table()
        minutes = {d: [LoadMinute() for _ in range(self._traffic.minutes + 1)] for d in dimensions}
        self._report = LoadReport(self._control.status().now, status.speed, sizes, minutes)
        begun = time.monotonic()
        workers = [threading.Thread(target=self._send_all, args=(key, begun)) for _ in range(self._threads)]
        for worker in workers:
            worker.start()
        try:
            self._pace(begun, sizes)
        finally:
            for _ in workers:
                self._work.put(None)
            for worker in workers:
                worker.join()
        return self._report

    def _pace(self, begun: float, sizes: dict[Dimension, int]) -> None:
        """Hand out requests as they fall due on the cloud's clock."""
        sent = dict.fromkeys(sizes, 0)
        length = self._traffic.minutes * 60
        told, before = -1, 0.0
        while True:
            at = min(length, (time.monotonic() - begun) * self._report.speed)
            for dimension, size in sizes.items():
                due = int(self._asked_until(dimension, at) / size)
                new = due - sent[dimension]
                for number in range(1, new + 1):
                    # where this thread itself overslept, what it hands out late was due in between
                    self._work.put((dimension, before + (at - before) * number / new))
                sent[dimension] = due
            before = at
            if self._tell is not None and int(at) // 60 > told:
                told = int(at) // 60
                self._tell(self._report, told)
            if at >= length:
                return
            time.sleep(_TICK_SECONDS)

    def _asked_until(self, dimension: Dimension, second: float) -> float:
        """Units asked for until then."""
        sums = self._sums.get(dimension)
        if sums is None:
            rates = self._traffic.rates[Stream(None, dimension)]
            step = self._traffic.bin_seconds
            sums = self._sums[dimension] = list(itertools.accumulate((r * step for r in rates), initial=0))
        whole, part = divmod(second, self._traffic.bin_seconds)
        index = int(whole)
        after = sums[min(index + 1, len(sums) - 1)]
        return (sums[index] + (after - sums[index]) * part / self._traffic.bin_seconds) / QUANTA_PER_UNIT

    def _send_all(self, key: list[str], begun: float) -> None:
        client = self._client()
        try:
            while (job := self._work.get()) is not None:
                self._send(client, key, *job, begun)
        finally:
            client.close()

    def _send(self, client: Any, key: list[str], dimension: Dimension, due: float, begun: float) -> None:
        units = self._report.units_per_request[dimension]
        with self._lock:
            # a batch of reads asks for as many keys, each of which costs a unit whether it is there or not
            values = [next(self._keys) for _ in range(units if dimension is Dimension.READ else 1)]
        started = time.monotonic()
        granted = 0
        answer: dict[str, Any]
        try:
            granted, answer = self._ask(client, key, values, dimension, units)
        except client.exceptions.ClientError as refused:
            answer = dict(refused.response)
            if answer["Error"]["Code"] not in _THROTTLES:
                raise
        retries = answer["ResponseMetadata"].get("RetryAttempts", 0)
        ended = time.monotonic()
        with self._lock:
            report = self._report
            report.requests += 1
            report.retries += retries
            report.throttled_requests += granted < units
            report.latencies_ms.append((ended - started) * 1000)
            answered = (ended - begun) * report.speed
            report.most_behind_seconds = max(report.most_behind_seconds, answered - due)
            minute = report.minutes[dimension][min(int(answered) // 60, self._traffic.minutes)]
            minute.asked += units
            minute.granted += granted
            minute.throttled += units - granted

    def _ask(
        self, client: Any, key: list[str], values: list[str], dimension: Dimension, units: int
    ) -> tuple[int, dict[str, Any]]:
        """Send one request; the units granted, and the answer."""
        names = [{name: {"S": value} for name in key} for value in values]
        if dimension is Dimension.WRITE:
            return units, client.put_item(TableName=self._table, Item=_item(names[0], units * 1024))
        if units == 1:
            return 1, client.get_item(TableName=self._table, Key=names[0], ConsistentRead=True)
        asked = {self._table: {"Keys": [_aside(name) for name in names], "ConsistentRead": True}}
        answer = client.batch_get_item(RequestItems=asked)
        left = answer["UnprocessedKeys"].get(self._table, {}).get("Keys", [])
        return units - len(left), answer

    def _key_of_table(self) -> list[str]:
        client = self._client()
        try:
            table = client.describe_table(TableName=self._table)["Table"]
        except client.exceptions.ResourceNotFoundException:
            raise LoadError(f"no table {self._table!r} in the local cloud; deploy or create it first") from None
        finally:
            client.close()
        types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
        names = [part["AttributeName"] for part in table["KeySchema"]]
        if any(types[name] != "S" for name in names):
            raise LoadError(f"table {self._table}: its keys must be strings for made-up items")
        return names

    def _client(self) -> Any:
        import boto3
        from botocore.config import Config

        environment = self._control.environment()
        return boto3.client(
            "dynamodb",
            # what is throttled is sent again only where that is asked for
            config=Config(
                retries={"total_max_attempts": self._attempts, "mode": "standard"},
                max_pool_connections=1,
                parameter_validation=False,
            ),
            endpoint_url=self._control.endpoint,
            region_name=environment["AWS_REGION"],
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        )


def _aside(names: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """A key under which nothing is written, so that its read costs one unit."""
    return {name: {"S": f"read-{value['S']}"} for name, value in names.items()}


def _item(names: dict[str, dict[str, str]], size: int) -> dict[str, dict[str, str]]:
    """An item of just *size* bytes."""
    used = sum(len(name) + len(value["S"]) for name, value in names.items()) + len("fill")
    return names | {"fill": {"S": "x" * max(0, size - used)}}


def steady(reads: float, writes: float, length: timedelta, start: datetime) -> Traffic:
    """Traffic of the same rates for *length*; raises `LoadError` for what is none."""
    if min(reads, writes) < 0 or reads + writes == 0:
        raise LoadError("give --writes or --reads, a rate above 0 such as 180/s")
    minutes = int(length.total_seconds()) // 60
    if minutes < 1:
        raise LoadError("--for must be a minute at least")
    rates = {Dimension.READ: reads, Dimension.WRITE: writes}
    counts = {Stream(None, d): [rate * 60] * minutes for d, rate in rates.items() if rate}
    return Traffic.from_counts("steady", counts, bin_seconds=60, start=start)
