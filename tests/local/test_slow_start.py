"""A job beside users on a table that throttles and is scaled: the article's figures at a hundredth of their size."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.local_day import make_tracked_table
from highwater import Pacer, Put
from highwater.bulk.write import PacedWrite
from highwater.core import Dimension
from highwater_lab.local import LocalCloud
from highwater_lab.local.load import Load, LoadReport, steady
from highwater_lab.local.lockstep import SeatClock
from tests.local.world import SessionAt, world_of

pytestmark = pytest.mark.xdist_group("slow start")
WRITE = Dimension.WRITE
_LEAD, _LOOKS_EVERY = 7, 15
USERS, RATE, UNITS = 45, 135, 75
# items of thirty units, a batch of which is a few seconds of the rate
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
    with LocalCloud(clock="driven") as cloud:
        make_tracked_table(cloud, floor=20, ceiling=900, units=UNITS, reads=5)
        length = timedelta(minutes=_LEAD + minutes)
        load = Load(cloud.control, "orders", steady(0, USERS, length, cloud.status().now), requests_per_second=3)
        users, job = cloud.play(load.run_on, lambda clock: _work(cloud, clock, start, minutes))
        raises = [
            int(each["Description"].rsplit(" ", 1)[1].rstrip("."))
            for each in world_of(cloud).activities("table/orders")
        ][::-1]
    return Outcome(users, job.refused, raises, job.first_minutes, job.seconds_to_full)


@dataclass(frozen=True)
class Work:
    """What the job got: refused requests, units per second of its first minutes, and when it had its whole rate."""

    refused: int
    first_minutes: float
    seconds_to_full: float | None


def _work(cloud: LocalCloud, clock: SeatClock, start: str, minutes: int) -> Work:
    """The job: begins when CloudWatch knows of the users, and writes for *minutes*."""
    clock.sleep(_LEAD * 60)
    session: Any = SessionAt(cloud)
    pacer = Pacer(starts_full=False)
    job = PacedWrite(table="orders", write=RATE, start=start, session=session, pacer=pacer)
    # the job looks itself, by the cloud's clock
    job.followed.looks_every = threading.TIMEOUT_MAX
    begun, looked, full_at = clock.time(), clock.time(), None
    spent: list[tuple[float, float]] = []

    def watch(_: Any) -> None:
        nonlocal full_at, looked
        now = clock.time() - begun
        spent.append((now, pacer.spent("orders", None, WRITE)[0] / 1_000))
        if clock.time() >= looked + _LOOKS_EVERY:
            looked = clock.time()
            job.followed.beat()
        if full_at is None and (pacer.rate("orders", None, WRITE) or 0) >= RATE:
            full_at = now
        if now > minutes * 60:
            job.is_stopped.set()

    job.run(_puts(), lambda rejected: pytest.fail(rejected.why), watch)
    at_first = next(units / at for at, units in spent if at > 120)
    return Work(pacer.spent("orders", None, WRITE)[1], at_first, full_at)


def _puts() -> Iterator[Put]:
    numbers = random.Random(20_261_123)  # noqa: S311 - the same keys in each run
    while True:
        yield Put({"pk": f"{numbers.getrandbits(64):x}", "x": _ITEM})


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
