"""A job beside users on a table that throttles and is scaled: the article's figures at a hundredth of their size."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import boto3
import pytest

from benchmarks.local_day import make_tracked_table
from highwater.client import Pacer, Put
from highwater.client.write import PacedWrite
from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, steady
from highwater_lab.local.load_report import LoadReport

pytestmark = [pytest.mark.cloud, pytest.mark.alone, pytest.mark.xdist_group("slow start")]
WRITE = Dimension.WRITE
SPEED = 20
USERS, RATE, UNITS = 45, 135, 75
# items of thirty units, so that this machine sends a batch at a time
_ITEM = "x" * 30_600
_ITEM_UNITS = 30


@dataclass(frozen=True)
class Outcome:
    """What users and the job got."""

    users: LoadReport
    job_refused: int
    raises: list[int]
    first_minutes: float
    seconds_to_full: float | None


def _run(start: str, minutes: int) -> Outcome:
    with LocalCloud(speed=SPEED) as cloud:
        make_tracked_table(cloud, floor=20, ceiling=900, units=UNITS, reads=5)
        begun, at_begin = time.monotonic(), cloud.status().now.timestamp()

        def seconds() -> float:
            return at_begin + (time.monotonic() - begun) * SPEED

        load = Load(cloud.control, "orders", steady(0, USERS, timedelta(hours=2), cloud.status().now))
        reports: list[LoadReport] = []
        users = threading.Thread(target=lambda: reports.append(load.run()))
        users.start()
        try:
            # CloudWatch knows of the users before the job begins
            while seconds() < at_begin + 7 * 60:
                time.sleep(0.05)
            session: Any = boto3.Session(
                aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
            )
            pacer = Pacer(
                clock=lambda: round(seconds() * 1e9), pause=lambda wait: time.sleep(wait / SPEED), starts_full=False
            )
            job = PacedWrite(table="orders", write=RATE, start=start, session=_At(session, cloud), pacer=pacer)
            job.followed.clock, job.followed.looks_every = seconds, 15 / SPEED
            job_begun, full_at = seconds(), None
            spent: list[tuple[float, float]] = []

            def watch(_: Any) -> None:
                nonlocal full_at
                spent.append((seconds() - job_begun, pacer.spent("orders", None, WRITE)[0] / 1_000))
                if full_at is None and (pacer.rate("orders", None, WRITE) or 0) >= RATE:
                    full_at = seconds() - job_begun
                if seconds() > job_begun + minutes * 60:
                    job.is_stopped.set()

            job.run(_puts(), lambda rejected: pytest.fail(rejected.why), watch)
            refused = pacer.spent("orders", None, WRITE)[1]
        finally:
            load.stop()
            users.join()
        autoscaling = cloud.client("application-autoscaling")
        activities = autoscaling.describe_scaling_activities(ServiceNamespace="dynamodb")["ScalingActivities"]
        autoscaling.close()
        raises = [int(each["Description"].rsplit(" ", 1)[1].rstrip(".")) for each in activities[::-1]]
    at_first = next(units / at for at, units in spent if at > 120)
    return Outcome(reports[0], refused, raises, at_first, full_at)


def _puts() -> Iterator[Put]:
    numbers = random.Random(20_261_123)  # noqa: S311 - the same keys in each run
    while True:
        yield Put({"pk": f"{numbers.getrandbits(64):x}", "x": _ITEM})


class _At:
    """A session whose clients know the cloud."""

    def __init__(self, session: Any, cloud: LocalCloud) -> None:
        self._session, self._arguments = session, cloud.client_arguments()

    def client(self, service: str, **more: Any) -> Any:
        return self._session.client(service, **self._arguments | more)


def test_slow_start_throttles_nobody_and_has_its_rate_as_capacity_follows() -> None:
    found = _run("slow", 22)
    assert found.users.total(WRITE, "throttled") == 0
    assert found.job_refused == 0
    assert found.raises == sorted(found.raises)
    assert found.raises[-1] >= (USERS + RATE) * 100 // 75
    # of 75 units and a seventh, beside 45 of the users
    assert found.first_minutes == pytest.approx(75 * 8 / 7 - 45, rel=0.2)
    assert found.seconds_to_full is not None
    assert 5 * 60 <= found.seconds_to_full <= 16 * 60


def test_job_at_full_rate_at_once_throttles_users() -> None:
    found = _run("full", 8)
    assert found.users.total(WRITE, "throttled") > 20
    assert found.job_refused > 0
