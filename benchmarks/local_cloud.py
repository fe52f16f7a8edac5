"""Measures the cost of metering: compares the local cloud with plain MiniStack, in alternating rounds of one run.

Prints writes per second and latency (p50, p99) of both with 1, 8 and 16 client threads, and the ratio of their rates.
Exits with status 1 if the local cloud's rate is less than 0.6 of plain MiniStack's.
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

from botocore.config import Config

from highwater_lab.local.control import CloudControl
from highwater_lab.local.process import HeldPort, ServerOptions, find_server, start_process, stop_process

LIMIT = 0.6
THREADS = (1, 8, 16)
# Plain MiniStack on the loopback interface, without the listeners that the local cloud does not start either
_PLAIN = """
import asyncio, os, sys
port, *sockets = sys.argv[1:]
os.environ.update(GATEWAY_PORT=port, MINISTACK_HOST="localhost", LOG_LEVEL="ERROR", IOT_MTLS_ENABLED="0",
                  SFTP_ENABLED="0")
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app
config = Config()
config.bind = [f"fd://{socket}" for socket in sockets]
config.loglevel = "WARNING"
asyncio.run(serve(app, config))
"""


@contextmanager
def metered(folder: Path) -> Iterator[int]:
    """Run the local cloud; yields its port."""
    server = start_process(0, folder / "metered.log", folder, ServerOptions())
    yield server.port
    server.stop()


@contextmanager
def plain(folder: Path) -> Iterator[int]:
    """Run plain MiniStack; yields its port."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with (folder / "plain.log").open("wb") as log, HeldPort() as held:
        process = subprocess.Popen(
            [str(_python()), "-c", _PLAIN, str(held.port), *map(str, held.descriptors)],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment | {"TMPDIR": str(folder)},
            pass_fds=held.descriptors,
        )
    # requests wait until it serves
    yield held.port
    stop_process(process.pid)
    process.wait()


def _python() -> Path:
    """The Python of the local cloud's environment, which has MiniStack."""
    return find_server().resolve().parent / "python"


def client_of(port: int) -> Any:
    """Return a DynamoDB client without retries; MiniStack accepts the local cloud's credentials, as any others."""
    return CloudControl(port).client("dynamodb", Config(retries={"total_max_attempts": 1}, max_pool_connections=1))


def create_table(port: int) -> None:
    """Create a table with an index and more capacity than one machine can use."""
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
    """Write for *seconds* with so many *threads*; return writes per second, and the latency of each write in ms."""
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
    """Measure and print; return 1 if a ratio is below the limit, else 0."""
    parser = argparse.ArgumentParser(prog="local", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each measurement (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each side (default %(default)s)")
    options = parser.parse_args(arguments)
    status = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with metered(folder) as metered_port, plain(folder) as plain_port:
            for port in (metered_port, plain_port):
                create_table(port)
                measure(port, 1, 1)
            print(f"{'threads':<9}{'':<9}{'writes/s':>9}{'p50 ms':>9}{'p99 ms':>9}")
            for threads in THREADS:
                rates: dict[int, list[float]] = {metered_port: [], plain_port: []}
                all_latencies: dict[int, list[float]] = {metered_port: [], plain_port: []}
                for _ in range(options.rounds):
                    for port in (metered_port, plain_port):
                        rate, latencies = measure(port, threads, options.seconds)
                        rates[port].append(rate)
                        all_latencies[port] += latencies
                for port, side in ((metered_port, "metered"), (plain_port, "plain")):
                    percentiles = statistics.quantiles(all_latencies[port], n=100)
                    rate = statistics.median(rates[port])
                    print(f"{threads:<9}{side:<9}{rate:>9.0f}{percentiles[49]:>9.2f}{percentiles[98]:>9.2f}")
                ratio = statistics.median(rates[metered_port]) / statistics.median(rates[plain_port])
                print(f"{threads:<9}{'ratio':<9}{ratio:>9.2f}  (limit {LIMIT})")
                status |= ratio < LIMIT
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
