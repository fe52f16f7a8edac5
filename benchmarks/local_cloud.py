"""What metering costs: the local cloud beside plain MiniStack, alternating in one run.

Prints writes per second and latency (p50, p99) with 1, 8 and 16 client threads for both, and the ratio of their rates.
Ends with status 1 where the local cloud has less than 0.6 of the plain one's rate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from highwater_lab.local.cloud import free_port, is_port_taken, start_process, stop_process

LIMIT = 0.6
THREADS = (1, 8, 16)
# MiniStack as it comes, on loopback, with the listeners off that the local cloud leaves off too
_PLAIN = """
import asyncio, os, sys
port = sys.argv[1]
os.environ.update(GATEWAY_PORT=port, MINISTACK_HOST="localhost", LOG_LEVEL="ERROR", IOT_MTLS_ENABLED="0",
                  SFTP_ENABLED="0")
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app
config = Config()
config.bind = [f"127.0.0.1:{port}"]
config.loglevel = "WARNING"
asyncio.run(serve(app, config))
"""


@contextmanager
def metered(folder: Path) -> Iterator[int]:
    """The local cloud; its port."""
    port = free_port()
    process = start_process(port, folder / "metered.log", folder)
    yield port
    stop_process(process.pid)
    process.wait()


@contextmanager
def plain(folder: Path) -> Iterator[int]:
    """MiniStack alone; its port."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with (folder / "plain.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _PLAIN, str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment | {"TMPDIR": str(folder)},
        )
    while not is_port_taken(port):
        if process.poll() is not None:
            sys.exit(f"MiniStack did not start: {(folder / 'plain.log').read_text()[-300:]}")
        time.sleep(0.05)
    yield port
    stop_process(process.pid)
    process.wait()


def client_of(port: int) -> Any:
    """A DynamoDB client that does not try again."""
    return boto3.client(
        "dynamodb",
        endpoint_url=f"http://localhost:{port}",
        region_name="us-east-1",
        aws_access_key_id="000000000000",
        aws_secret_access_key="local",  # noqa: S106 - both take any
        config=Config(retries={"total_max_attempts": 1}, max_pool_connections=1),
    )


def create_table(port: int) -> None:
    """A table with capacity for more than a machine can send, and an index."""
    units = {"ReadCapacityUnits": 10_000, "WriteCapacityUnits": 10_000}
    client_of(port).create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "status")],
        ProvisionedThroughput=units,
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_status",
                "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "ProvisionedThroughput": units,
            }
        ],
    )


def measure(port: int, threads: int, seconds: float) -> tuple[float, list[float]]:
    """Writes per second, and the milliseconds of each."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    def write(first: int) -> None:
        client, number = client_of(port), first
        while (begun := time.perf_counter()) < end:
            item = {"pk": {"S": f"{number}"}, "status": {"S": f"{number % 5}"}, "note": {"S": "x" * 300}}
            client.put_item(TableName="orders", Item=item)
            latencies.append((time.perf_counter() - begun) * 1000)
            number += threads

    workers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    begun = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return len(latencies) / (time.perf_counter() - begun), latencies


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="local_cloud", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="alternations")
    given = parser.parse_args(arguments)
    status = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with metered(folder) as first, plain(folder) as second:
            for port in (first, second):
                create_table(port)
                measure(port, 1, 1)
            print(f"{'threads':<9}{'':<9}{'writes/s':>9}{'p50 ms':>9}{'p99 ms':>9}")
            for threads in THREADS:
                rates: dict[int, list[float]] = {first: [], second: []}
                all_latencies: dict[int, list[float]] = {first: [], second: []}
                for _ in range(given.rounds):
                    for port in (first, second):
                        rate, latencies = measure(port, threads, given.seconds)
                        rates[port].append(rate)
                        all_latencies[port] += latencies
                for port, what in ((first, "metered"), (second, "plain")):
                    cuts = statistics.quantiles(all_latencies[port], n=100)
                    rate = statistics.median(rates[port])
                    print(f"{threads:<9}{what:<9}{rate:>9.0f}{cuts[49]:>9.2f}{cuts[98]:>9.2f}")
                ratio = statistics.median(rates[first]) / statistics.median(rates[second])
                print(f"{threads:<9}{'ratio':<9}{ratio:>9.2f}  (limit {LIMIT})")
                status |= ratio < LIMIT
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
