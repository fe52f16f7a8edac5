"""Paced scans beside other clients' and live traffic, on a local cloud: `make benchmark NAME=pace`.

Each contender scans the same table within the same budget for a minute, one after the other in one run, while other
traffic reads from it. Reads are strongly consistent, which halves the table that a minute takes. Printed are the units
that the scan consumed a second, over the whole scan and in its highest second, and how much of the other traffic was
refused; clients that have no budget have one row. Clients that wait by Python's clock are measured on a driven clock,
where their figures are the same in each run; the others, which wait elsewhere or not at all, on one that runs. The loop
with a rate limiter is written anew from the description in
the article on rate-limited scans, with the semantics of a limiter that stores a second of permits.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import boto3
from aws_dynamodb_parallel_scan import get_paginator
from botocore.config import Config
from pynamodb.attributes import UnicodeAttribute
from pynamodb.models import Model
from rich.console import Console
from rich.progress import track

import highwater
from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, steady

READ: Final = Dimension.READ
CAPACITY, ORGANIC = 3_000, 200
BUDGETS: Final = (25, 200, 2_000)
_TABLE: Final = "orders"
_BLOCK_BYTES: Final = 4_096
_PAGE: Final[Any] = {"TableName": _TABLE, "Limit": 100, "ReturnConsumedCapacity": "TOTAL", "ConsistentRead": True}
_PYDYNOX: Final = """
import sys
from pydynox import DynamoDBClient
from pydynox.rate_limit import FixedRate
region, endpoint, budget = sys.argv[1:]
client = DynamoDBClient(region=region, endpoint_url=endpoint, rate_limit=FixedRate(rcu=float(budget)))
pages = client.sync_scan("orders", page_size=100, consistent_read=True)
seen = None
for item in pages:
    if pages._metrics is not seen:
        seen = pages._metrics
        print(seen.consumed_rcu or 0, flush=True)
"""


@dataclass
class Spent:
    """Units by second since the start."""

    began: float = field(default_factory=lambda: time.monotonic())
    seconds: dict[int, float] = field(default_factory=dict)
    ended: float = 0.0

    def add(self, units: float) -> None:
        """A page was answered."""
        self.ended = time.monotonic() - self.began
        self.seconds[int(self.ended)] = self.seconds.get(int(self.ended), 0.0) + units

    @property
    def units(self) -> float:
        """All of them."""
        return sum(self.seconds.values())


@dataclass(frozen=True, slots=True)
class Result:
    """What one contender did at one budget."""

    units: float
    seconds: float
    highest_second: float
    refused_percent: float

    @property
    def rate(self) -> float:
        """Units a second over the whole scan."""
        return self.units / self.seconds


Contender = Callable[[boto3.Session, int, Spent, float], None]


def with_highwater(session: boto3.Session, budget: int, spent: Spent, until: float) -> None:
    """`highwater.scan`."""
    for page in highwater.scan(_TABLE, read=budget, is_consistent=True, session=session):
        spent.add(page.units)
        if time.monotonic() > until:
            return


def with_limiter_loop(session: boto3.Session, budget: int, spent: Spent, until: float) -> None:
    """The article's loop: acquire what the page before consumed less one, then read a page of a hundred items."""
    client, limiter, permits = session.client("dynamodb"), _Limiter(budget), 1
    start: dict[str, Any] = {}
    while time.monotonic() < until:
        limiter.acquire(permits)
        page = client.scan(**_PAGE, **start)
        units = page["ConsumedCapacity"]["CapacityUnits"]
        spent.add(units)
        permits = max(int(units - 1.0), 1)
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def with_pynamodb(session: boto3.Session, budget: int, spent: Spent, until: float) -> None:
    """PynamoDB's `rate_limit`."""

    class Order(Model):
        class Meta:
            table_name = _TABLE
            region = session.region_name
            host = session.client("dynamodb").meta.endpoint_url

        pk = UnicodeAttribute(hash_key=True)

    connection = Order._get_connection().connection

    def seen(parsed: dict[str, Any], **_: Any) -> None:
        if "ConsumedCapacity" in parsed:
            spent.add(parsed["ConsumedCapacity"]["CapacityUnits"])

    connection.client.meta.events.register("after-call.dynamodb.Scan", seen)
    for _ in Order.scan(rate_limit=budget, page_size=100, attributes_to_get=["pk"], consistent_read=True):
        if time.monotonic() > until:
            return


def with_pydynox(session: boto3.Session, budget: int, spent: Spent, until: float) -> None:
    """The `FixedRate` of pydynox, in a process of its own: it waits for ever where a page has more items than that."""
    endpoint = session.client("dynamodb").meta.endpoint_url
    command = [sys.executable, "-c", _PYDYNOX, str(session.region_name), str(endpoint), str(budget)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        end = threading.Timer(until - time.monotonic(), process.kill)
        end.start()
        assert process.stdout is not None
        for line in process.stdout:
            spent.add(float(line))
        end.cancel()


def with_parallel_scan(session: boto3.Session, _: int, spent: Spent, until: float) -> None:
    """aws-dynamodb-parallel-scan, which has no budget, with four segments."""
    for page in get_paginator(session.client("dynamodb")).paginate(TotalSegments=4, **_PAGE):
        spent.add(page["ConsumedCapacity"]["CapacityUnits"])
        if time.monotonic() > until:
            return


def with_adaptive_mode(session: boto3.Session, _: int, spent: Spent, until: float) -> None:
    """The adaptive mode of botocore, which has no budget either."""
    retries: Any = {"mode": "adaptive", "total_max_attempts": 10}
    client = session.client("dynamodb", config=Config(retries=retries))
    for page in client.get_paginator("scan").paginate(**_PAGE):
        spent.add(page["ConsumedCapacity"]["CapacityUnits"])
        if time.monotonic() > until:
            return


CONTENDERS: Final[dict[str, Contender]] = {
    "highwater.scan": with_highwater,
    "limiter loop of the article": with_limiter_loop,
    "PynamoDB rate_limit": with_pynamodb,
    "pydynox FixedRate": with_pydynox,
}
# those that wait in Python, where a driven clock is theirs too
_DRIVEN: Final = frozenset({"highwater.scan", "limiter loop of the article", "PynamoDB rate_limit"})
WITHOUT_BUDGET: Final[dict[str, Contender]] = {
    "aws-dynamodb-parallel-scan": with_parallel_scan,
    "botocore adaptive": with_adaptive_mode,
}


class _Limiter:
    """Permits at a rate; a caller waits for what the one before took, and a second of permits is stored."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._stored = 0.0
        self._free_at = time.monotonic()

    def acquire(self, permits: int) -> None:
        now = time.monotonic()
        if now > self._free_at:
            self._stored = min(self._stored + (now - self._free_at) * self._rate, self._rate)
            self._free_at = now
        waits = self._free_at - now
        fresh = permits - min(permits, self._stored)
        self._stored -= min(permits, self._stored)
        self._free_at += fresh / self._rate
        time.sleep(max(waits, 0.0))


def measure(cloud: LocalCloud, session: boto3.Session, contender: Contender, budget: int, seconds: int) -> Result:
    """Scan for so long at the most, beside other reads, and see what both got."""
    traffic = steady(ORGANIC, 0, timedelta(minutes=10), cloud.status().now)
    load = Load(cloud.control, _TABLE, traffic, threads=4, requests_per_second=100 if cloud.clock == "running" else 4)

    def scan(_: object = None) -> Spent:
        time.sleep(2)
        spent = Spent()
        contender(session, budget, spent, spent.began + seconds)
        load.stop()
        return spent

    if cloud.clock == "driven":
        report, spent = cloud.play(load.run_on, scan)
    else:
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(load.run)
            spent = scan()
            report = sent.result()
    asked = report.total(READ, "asked")
    refused = 100 * report.total(READ, "throttled") / asked if asked else 0.0
    whole = [units for second, units in spent.seconds.items() if second > 0]
    return Result(spent.units, max(spent.ended, 1.0), max(whole, default=0.0), refused)


def fill(cloud: LocalCloud, units: int) -> None:
    """Make the table, with items from 100 bytes to 400 KB."""
    dynamodb, numbers = cloud.client("dynamodb"), random.Random(20_261_123)  # noqa: S311 - the same items in each run
    dynamodb.create_table(
        TableName=_TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": CAPACITY, "WriteCapacityUnits": 30_000},
    )
    written, number = 0, 0
    while written < units * _BLOCK_BYTES:
        sizes = [min(int(numbers.lognormvariate(9.8, 1.3)) + 100, 400_000) for _ in range(25)]
        items = [{"pk": {"S": f"order-{number + n}"}, "x": {"S": "y" * size}} for n, size in enumerate(sizes)]
        left: Any = {_TABLE: [{"PutRequest": {"Item": item}} for item in items]}
        while left:
            left = dynamodb.batch_write_item(RequestItems=left)["UnprocessedItems"]
        written, number = written + sum(sizes), number + 25
        if cloud.clock == "driven":
            # in a second a partition takes a thousand units
            cloud.step(1)
    dynamodb.close()


def rows(results: dict[tuple[str, int | None], list[Result]]) -> Iterator[str]:
    """The table, a line for each contender and budget."""
    yield f"{'':28} {'budget':>6} {'units/s':>8} {'of it':>7} {'highest s':>9} {'others refused':>14}"
    for (name, budget), found in results.items():
        rate = statistics.median(result.rate for result in found)
        highest = max(result.highest_second for result in found)
        refused = statistics.median(result.refused_percent for result in found)
        share = "" if budget is None else f"{rate / budget:.1%}"
        yield f"{name:28} {budget or 'none':>6} {rate:>8.1f} {share:>7} {highest:>9.1f} {refused:>13.1f}%"


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(prog="pace", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="of each scan, at the most")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--units", type=int, default=125_000, help="read units that the table takes")
    parser.add_argument("--budgets", type=int, nargs="*", default=BUDGETS)
    parser.add_argument("--only", choices=[*CONTENDERS, *WITHOUT_BUDGET], help="this one alone")
    given = parser.parse_args(arguments)
    results: dict[tuple[str, int | None], list[Result]] = {}
    contenders = CONTENDERS | WITHOUT_BUDGET
    names = [given.only] if given.only else [*contenders]
    each: list[tuple[str, int | None]] = [(n, budget) for budget in given.budgets for n in names if n in CONTENDERS]
    each += [(name, None) for name in names if name in WITHOUT_BUDGET]
    for is_driven in (True, False):
        chosen = [(name, budget) for name, budget in each if (name in _DRIVEN) is is_driven]
        if not chosen:
            continue
        with LocalCloud(clock="driven" if is_driven else "running", has_instant_updates=True) as cloud:
            fill(cloud, given.units)
            session = _session(cloud.environment())
            for name, budget in track(chosen * given.rounds, "scans", console=Console(stderr=True)):
                found = measure(cloud, session, contenders[name], budget or 0, given.seconds)
                results.setdefault((name, budget), []).append(found)
                # the burst bucket of the table fills again, so that each contender meets the same
                cloud.advance(timedelta(minutes=6))
    for row in rows(results):
        print(row)
    return 0


def _session(environment: dict[str, str]) -> Any:
    """A session that knows the local cloud's address, as processes with the environment do."""
    os.environ.update(environment)
    return boto3.Session(region_name=environment["AWS_DEFAULT_REGION"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
