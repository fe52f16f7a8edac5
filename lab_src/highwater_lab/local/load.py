"""A load generator: real boto3 clients that request *n* units a second of the cloud's clock from a table."""

from __future__ import annotations

import itertools
import math
import queue
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from highwater.core import Dimension, HighwaterError
from highwater_lab.local.control import CloudControl
from highwater_lab.local.lockstep import SeatClock, play
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic import Stream, Traffic


@dataclass(slots=True)
class LoadMinute:
    """Units requested and granted in one minute of the cloud's clock, by the minute of the answer."""

    asked: float = 0.0
    granted: float = 0.0
    throttled: float = 0.0


@dataclass(slots=True)
class LoadReport:
    """The results of a load.

    Attributes:
        begun: The cloud's time at the start.
        speed: How many times faster than real time its clock ran; 0 for a driven clock.
        units_per_request: The size of each request in units, by dimension.
        minutes: By dimension, each minute of the cloud since the start.
        requests: The number of requests sent.
        throttled_requests: The number of requests that were throttled after all retries.
        retries: The number of retries by the SDK.
        unanswered: How often the server failed to answer, or the connection was lost, and the load sent it again.
        latencies_ms: Real milliseconds of each answered request.
        most_behind_seconds: The longest time from a request's due time to its answer, in seconds of the cloud's clock.
        failure: The reason why the load ended early; empty if it did not.
    """

    begun: datetime
    speed: int
    units_per_request: dict[Dimension, int]
    minutes: dict[Dimension, list[LoadMinute]]
    requests: int = 0
    throttled_requests: int = 0
    retries: int = 0
    unanswered: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    most_behind_seconds: float = 0.0
    failure: str = ""

    def total(self, dimension: Dimension, member: str) -> float:
        """Return the sum of the units `asked`, `granted` or `throttled` of a dimension."""
        return float(sum(getattr(minute, member) for minute in self.minutes[dimension]))

    def latency_ms(self, percent: int) -> float:
        """Return a percentile of the latencies, 0 if nothing was answered."""
        if len(self.latencies_ms) < 2:
            return self.latencies_ms[0] if self.latencies_ms else 0.0
        return statistics.quantiles(self.latencies_ms, n=100)[percent - 1]


def ask(
    client: Any, table: str, key: list[str], values: list[str], dimension: Dimension, units: int
) -> tuple[int, dict[str, Any]]:
    """Send one request; return the units granted, and the answer."""
    names = [{name: {"S": value} for name in key} for value in values]
    if dimension is Dimension.WRITE:
        return units, client.put_item(TableName=table, Item=_item(names[0], units * 1024))
    if units == 1:
        return 1, client.get_item(TableName=table, Key=names[0], ConsistentRead=True)
    asked = {table: {"Keys": [_aside(name) for name in names], "ConsistentRead": True}}
    answer = client.batch_get_item(RequestItems=asked)
    left = answer["UnprocessedKeys"].get(table, {}).get("Keys", [])
    return units - len(left), answer


def is_unanswered(error: Exception) -> bool:
    """Whether a retry may succeed: after a server error, or a lost connection."""
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

    if isinstance(error, ClientError):
        metadata: Any = error.response.get("ResponseMetadata", {})
        return int(metadata.get("HTTPStatusCode", 0)) >= 500
    return isinstance(error, ConnectionError | HTTPClientError)


def _aside(names: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Return a key without an item, so that its read costs one unit."""
    return {name: {"S": f"read-{value['S']}"} for name, value in names.items()}


def _item(names: dict[str, dict[str, str]], size: int) -> dict[str, dict[str, str]]:
    """Return an item of exactly *size* bytes."""
    used = sum(len(name) + len(value["S"]) for name, value in names.items()) + len("fill")
    return names | {"fill": {"S": "x" * max(0, size - used)}}


# Requests per real second that a machine with two cores easily sends and serves
MOST_REQUESTS_PER_SECOND = 250
# requests per second of a driven clock; such a second takes as long as its requests
_DRIVEN_REQUESTS_PER_SECOND = 10
# An item of 400 KB, a batch of a hundred keys
_MOST_UNITS_PER_REQUEST = {Dimension.READ: 100, Dimension.WRITE: 390}
_KEYS = 4_096
_TICK_SECONDS = 0.02
_PAUSE_SECONDS = 0.1
_THROTTLES = (
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
)


class LoadError(HighwaterError, ValueError):
    """Traffic that cannot be sent."""


class LoadClock(Protocol):
    """The clock of the cloud that has the table, in UTC, and its speed."""

    @property
    def now(self) -> datetime:
        """The present time."""

    @property
    def speed(self) -> int:
        """How many times faster than real time it runs: 1 on AWS, 0 for a driven clock."""


class Cloud(Protocol):
    """A local cloud or an AWS account that has the table."""

    def status(self) -> LoadClock:
        """Return its clock."""

    def client(self, service: str, config: Any = None) -> Any:
        """Return a boto3 client of that service, with a `botocore.config.Config` if one is given."""


def units_per_request(
    traffic: Traffic, dimension: Dimension, speed: int, requests_per_second: int = MOST_REQUESTS_PER_SECOND
) -> int:
    """Return the units per request with which this machine sends them in time; raises `LoadError` if too many."""
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
    """Sends *traffic* to *table*; streams of indexes are not sent, as writes to the table also write to its indexes.

    At its peak it sends *requests_per_second*: per second of real time with a running clock, by default 250; per second
    of the cloud's clock with a driven one, by default 10. With a lower number, requests are larger. *prepare* is called
    with each DynamoDB client before its first request. A request that the server fails to answer is retried up to
    *unanswered_retries* times, with increasing pauses, and then ends the load.

    With a driven clock, one thread sends each request when it is due, and waits for its answer and for the next due
    time, so that the same load gets the same answers on every machine.
    """

    def __init__(
        self,
        cloud: Cloud,
        table: str,
        traffic: Traffic,
        *,
        retries: int = 0,
        unanswered_retries: int = 0,
        threads: int = 8,
        requests_per_second: int | None = None,
        tell: Callable[[LoadReport, int], None] | None = None,
        prepare: Callable[[Any], None] | None = None,
    ) -> None:
        self._cloud = cloud
        self._table = table
        self._traffic = traffic
        self._tell = tell
        self._prepare = prepare
        self._threads = threads
        self._requests_per_second = requests_per_second
        self._attempts = retries + 1
        self._unanswered_retries = unanswered_retries
        self._lock = threading.Lock()
        self._is_stopped = threading.Event()
        self._report: LoadReport | None = None
        self._key: list[str] = []
        self._sums: dict[Dimension, list[int]] = {}
        self._keys = itertools.cycle(f"{number * 2_654_435_761 % 2**32:08x}" for number in range(_KEYS))
        self._work: queue.Queue[tuple[Dimension, float] | None] = queue.Queue()

    @property
    def report(self) -> LoadReport | None:
        """The results so far; `None` before the first request."""
        return self._report

    def run(self) -> LoadReport:
        """Send all traffic and return the results, with the failure if one ended the load.

        Raises `LoadError` if the table does not exist, or there is too much traffic. After an exception such as
        KeyboardInterrupt, `report` still has the results so far.
        """
        if self._cloud.status().speed == 0:
            if not isinstance(self._cloud, CloudControl):
                raise LoadError("a load in lock-step needs a local cloud; give its control")
            (report,) = play(self._cloud, [self.run_on])
            return report  # type: ignore[no-any-return] # what run_on returns
        report = self._begin()
        begun = time.monotonic()
        elapsed = lambda: (time.monotonic() - begun) * report.speed  # noqa: E731 - a clock
        workers = [threading.Thread(target=self._send_all, args=(report, elapsed)) for _ in range(self._threads)]
        for worker in workers:
            worker.start()
        try:
            self._pace(report, elapsed)
        except BaseException:
            self._is_stopped.set()
            raise
        finally:
            for _ in workers:
                self._work.put(None)
            for worker in workers:
                worker.join()
        return report

    def run_on(self, clock: SeatClock) -> LoadReport:
        """Send all traffic as a job of `play`, in lock-step with other jobs; otherwise like `run`."""
        report = self._begin()
        sizes, begun = report.units_per_request, clock.time()
        elapsed = lambda: clock.time() - begun  # noqa: E731 - a clock
        length = self._traffic.minutes * 60
        sent = dict.fromkeys(sizes, 0)
        with self._failing(report) as client:
            for second in range(length):
                due = {d: int(self._asked_until(d, second + 1) / size) for d, size in sizes.items()}
                # spread over the second, so that other clients get their turn in it
                moments = sorted(
                    (second + number / (due[d] - sent[d]), d) for d in sizes for number in range(due[d] - sent[d])
                )
                for moment, dimension in moments:
                    clock.sleep(max(begun + moment - clock.time(), 0))
                    self._send(report, client, dimension, moment, elapsed)
                sent = due
                if (second + 1) % 60 == 0:
                    clock.sleep(max(begun + second + 1 - clock.time(), 0))
                    if self._tell is not None:
                        self._tell(report, (second + 1) // 60)
                if self._is_stopped.is_set():
                    break
        return report

    def _begin(self) -> LoadReport:
        """Return an empty report, and find out the names of the table's key attributes."""
        status = self._cloud.status()
        dimensions = [d for d in Dimension if Stream(None, d) in self._traffic.rates]
        if not dimensions:
            raise LoadError(f"traffic {self._traffic.name} asks nothing of the table itself")
        speed = status.speed or 1
        usual = MOST_REQUESTS_PER_SECOND if status.speed else _DRIVEN_REQUESTS_PER_SECOND
        rate = self._requests_per_second or usual
        sizes = {d: units_per_request(self._traffic, d, speed, rate) for d in dimensions}
        minutes = {d: [LoadMinute() for _ in range(self._traffic.minutes + 1)] for d in dimensions}
        self._key = self._key_of_table()
        self._report = LoadReport(self._cloud.status().now, status.speed, sizes, minutes)
        return self._report

    def stop(self) -> None:
        """End the traffic now; `run`, in another thread, returns the results so far."""
        self._is_stopped.set()

    def _pace(self, report: LoadReport, elapsed: Callable[[], float]) -> None:
        """Queue requests for the sending threads as they fall due on the cloud's clock."""
        sent = dict.fromkeys(report.units_per_request, 0)
        length = self._traffic.minutes * 60
        told, before = -1, 0.0
        while True:
            at = min(length, elapsed())
            for dimension, size in report.units_per_request.items():
                due = int(self._asked_until(dimension, at) / size)
                new = due - sent[dimension]
                for number in range(1, new + 1):
                    # if this thread was late, the requests that it queues now were due in the meantime
                    self._work.put((dimension, before + (at - before) * number / new))
                sent[dimension] = due
            before = at
            if self._tell is not None and int(at) // 60 > told:
                told = int(at) // 60
                self._tell(report, told)
            if at >= length or self._is_stopped.is_set():
                return
            time.sleep(_TICK_SECONDS)

    def _asked_until(self, dimension: Dimension, second: float) -> float:
        """Return the units that the traffic requests up to that second."""
        sums = self._sums.get(dimension)
        if sums is None:
            rates = self._traffic.rates[Stream(None, dimension)]
            step = self._traffic.bin_seconds
            sums = self._sums[dimension] = list(itertools.accumulate((r * step for r in rates), initial=0))
        whole, part = divmod(second, self._traffic.bin_seconds)
        index = int(whole)
        after = sums[min(index + 1, len(sums) - 1)]
        return (sums[index] + (after - sums[index]) * part / self._traffic.bin_seconds) / QUANTA_PER_UNIT

    def _send_all(self, report: LoadReport, elapsed: Callable[[], float]) -> None:
        with self._failing(report) as client:
            while (job := self._work.get()) is not None:
                # requests that are still queued when the load is stopped are not sent
                if not self._is_stopped.is_set():
                    self._send(report, client, *job, elapsed)

    @contextmanager
    def _failing(self, report: LoadReport) -> Iterator[Any]:
        """Yield a new client; the first error raised with any such client ends the load and becomes its failure."""
        from botocore.exceptions import BotoCoreError, ClientError

        client = self._client()
        if self._prepare is not None:
            self._prepare(client)
        try:
            yield client
        except (BotoCoreError, ClientError) as error:
            report.failure = report.failure or " ".join(str(error).split())
            self._is_stopped.set()
        finally:
            client.close()

    def _send(
        self, report: LoadReport, client: Any, dimension: Dimension, due: float, elapsed: Callable[[], float]
    ) -> None:
        units = report.units_per_request[dimension]
        with self._lock:
            # a batch of *units* keys: each read costs a unit, whether its item exists or not
            values = [next(self._keys) for _ in range(units if dimension is Dimension.READ else 1)]
        started = time.monotonic()
        granted = 0
        answer: dict[str, Any]
        try:
            granted, answer = self._ask(report, client, values, dimension)
        except client.exceptions.ClientError as refused:
            answer = dict(refused.response)
            if answer["Error"]["Code"] not in _THROTTLES:
                raise
        retries = answer["ResponseMetadata"].get("RetryAttempts", 0)
        ended = time.monotonic()
        with self._lock:
            report.requests += 1
            report.retries += retries
            report.throttled_requests += granted < units
            report.latencies_ms.append((ended - started) * 1000)
            answered = elapsed()
            report.most_behind_seconds = max(report.most_behind_seconds, answered - due)
            minute = report.minutes[dimension][min(int(answered) // 60, self._traffic.minutes)]
            minute.asked += units
            minute.granted += granted
            minute.throttled += units - granted

    def _ask(
        self, report: LoadReport, client: Any, values: list[str], dimension: Dimension
    ) -> tuple[int, dict[str, Any]]:
        """Send one request, with retries if it is not answered; return the units granted, and the answer."""
        from botocore.exceptions import BotoCoreError, ClientError

        again = 0
        while True:
            try:
                return ask(client, self._table, self._key, values, dimension, report.units_per_request[dimension])
            except (BotoCoreError, ClientError) as error:
                if again == self._unanswered_retries or not is_unanswered(error):
                    raise
            again += 1
            with self._lock:
                report.unanswered += 1
            # no pause before the first attempt; returns at once when the load is stopped
            self._is_stopped.wait(_PAUSE_SECONDS * (2 ** (again - 1) - 1))

    def _key_of_table(self) -> list[str]:
        client = self._client()
        try:
            table = client.describe_table(TableName=self._table)["Table"]
        except client.exceptions.ResourceNotFoundException:
            raise LoadError(f"no table {self._table!r} here; deploy or create it first") from None
        finally:
            client.close()
        types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
        names = [part["AttributeName"] for part in table["KeySchema"]]
        if any(types[name] != "S" for name in names):
            raise LoadError(f"table {self._table}: its keys must be strings for made-up items")
        return names

    def _client(self) -> Any:
        from highwater.calls.attempts import client_config

        # throttled requests are retried only if the caller asked for retries
        config = client_config(self._attempts, max_pool_connections=1, parameter_validation=False)
        return self._cloud.client("dynamodb", config)


def steady(reads: float, writes: float, length: timedelta, start: datetime) -> Traffic:
    """Return traffic of constant rates for *length*; raises `LoadError` for invalid values."""
    if min(reads, writes) < 0 or reads + writes == 0:
        raise LoadError("give --writes or --reads, a rate above 0 such as 180/s")
    minutes = int(length.total_seconds()) // 60
    if minutes < 1:
        raise LoadError("--for must be a minute at least")
    rates = {Dimension.READ: reads, Dimension.WRITE: writes}
    counts = {Stream(None, d): [rate * 60] * minutes for d, rate in rates.items() if rate}
    return Traffic.from_counts("steady", counts, bin_seconds=60, start=start)
