"""One job by plain processes, Dask and PySpark gives equal results; the engines need not be installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import boto3
import pytest

import highwater.jobs
from highwater_lab.local import LocalCloud
from tests.cdk_cli import ROOT
from tests.local.world import create_tables, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("job engines")]
ITEMS, SLOTS = 300, 3
Outcome = dict[str, int]


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(has_instant_updates=True) as running:
        dynamodb = running.client("dynamodb")
        create_tables(dynamodb, units(2_000, 5_000), orders=["pk"], squares=["engine", "pk"], leases=["table", "item"])
        for number in range(ITEMS):
            item = {"pk": {"S": f"order-{number}"}, "n": {"N": str(number)}, "x": {"S": "y" * 1_900}}
            dynamodb.put_item(TableName="orders", Item=item)
        yield running


def do_slot(job: str, environment: Mapping[str, str], _slot: int) -> int:
    """Do a worker's part of the job wherever an engine runs it; returns how many items it was given."""
    os.environ.update(environment)
    dynamodb, given = boto3.client("dynamodb"), []

    def square(items: list[dict[str, Any]]) -> None:
        for item in items:
            n = int(item["n"])
            key = {"engine": {"S": job}, "pk": {"S": item["pk"]}}
            dynamodb.put_item(TableName="squares", Item=key | {"square": {"N": str(n * n)}})
        given.extend(items)

    assert highwater.jobs.run_worker(job, square).state == "done"
    return len(given)


def _by_processes(do: Callable[[int], int]) -> list[int]:
    with ProcessPoolExecutor(SLOTS) as pool:
        return list(pool.map(do, range(SLOTS)))


def _by_dask(do: Callable[[int], int]) -> list[int]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=SLOTS, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        return list(client.gather(client.map(do, range(SLOTS), pure=False)))


def _by_pyspark(do: Callable[[int], int]) -> list[int]:
    sql = pytest.importorskip("pyspark.sql")
    spark = sql.SparkSession.builder.master(f"local[{SLOTS}]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        return list(spark.sparkContext.parallelize(range(SLOTS), SLOTS).map(do).collect())
    finally:
        spark.stop()


@pytest.mark.parametrize("by", [_by_processes, _by_dask, _by_pyspark])
def test_engine_gives_each_item_once_and_the_same_results(
    cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch, by: Callable[[Callable[[int], int]], list[int]]
) -> None:
    environment = cloud.environment() | {"HIGHWATER_PULSES": "leases"}
    # so that Spark's workers are of this interpreter, and find this module
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    job = by.__name__
    highwater.jobs.start_job(job, table="orders", read=200, segments=12)
    given = by(partial(do_slot, job, environment))
    assert (sum(given), len(given)) == (ITEMS, SLOTS)
    assert all(given), "each worker had some"
    query = (
        boto3.client("dynamodb")
        .get_paginator("query")
        .paginate(
            TableName="squares", KeyConditionExpression="engine = :job", ExpressionAttributeValues={":job": {"S": job}}
        )
    )
    found: Outcome = {item["pk"]["S"]: int(item["square"]["N"]) for page in query for item in page["Items"]}
    assert found == {f"order-{n}": n * n for n in range(ITEMS)}
