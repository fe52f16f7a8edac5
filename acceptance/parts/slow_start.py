"""A slow start: a job that begins with what the table has room for, and has its rate as auto scaling follows."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from acceptance.bare_table import KEY, make_bare_table, track_writes
from acceptance.deployed import read_state
from acceptance.parts.part import Part
from acceptance.place import clock_of
from acceptance.sending import check_sent, load_of, sending
from acceptance.stage import Stage
from highwater import Pacer, Put
from highwater.bulk.write import PacedWrite, WriteProgress, refuse
from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater.core.pacing import Start
from highwater_lab.local.load import LoadReport, steady
from highwater_lab.policies.declared import Declared
from highwater_lab.rehearse import PlannedJob
from highwater_lab.rehearse.jobs import jobs_of
from highwater_lab.services.autoscaling import TargetTracking
from highwater_lab.simulation import JobRun, ResourceSetup, TableSetup, TargetSetup, simulate
from highwater_lab.traffic import Stream, Traffic

_MINUTE: Final = timedelta(minutes=1)
# The AWS Database Blog's figure 6 at a hundredth of its size: users, and a job that brings the total to 180
_UNITS, _CEILING, _TARGET_PERCENT = 75, 300, 70
_USERS, _RATE = 45, 135
# CloudWatch must know of the users, and DynamoDB keep burst capacity, before the job begins
_LEAD, _WITHIN, _AFTER = 8, 18, 2
_MINUTES: Final = _LEAD + _WITHIN + _AFTER
# Auto scaling's answer that a slow start counts on
_ANSWERED_WITHIN: Final = timedelta(minutes=7)
_LOOKS_EVERY_SECONDS: Final = 15
# Items of four units, a hundred a batch: a local cloud, whose clock is fast, is sent few requests, and each minute
# still has nearly the same consumption
_ITEM_TEXT: Final = "x" * 3_900


def _run(stage: Stage) -> None:
    table = make_bare_table(stage, "slow-start", units=(1, _UNITS))
    name = track_writes(stage, table, floor=_UNITS, ceiling=_CEILING, target_percent=_TARGET_PERCENT)
    start = stage.now()
    users = load_of(stage, table, steady(0, _USERS, _MINUTES * _MINUTE, start), threads=16)
    with sending(users) as (report,):
        with stage.busy(f"{_LEAD} minutes of {_USERS} writes/s by users"):
            stage.place.let_pass(start + _LEAD * _MINUTE - stage.now())
        with stage.busy(f"a job of {_RATE} writes/s beside them, started slowly"):
            job = _SlowJob(stage, name)
            job.run()
        users.stop()
        stopped, seen = stage.now(), report.result()
    lasted = min(stopped - seen.begun, _MINUTES * _MINUTE)
    check_sent(stage, seen, _USERS * lasted.total_seconds(), "the users' table")
    _compare(stage, job, seen)
    _compare_with_simulator(stage, job)


@dataclass(slots=True)
class _SlowJob:
    """Writes until it has had its whole rate for some minutes, and notes when the capacity rose.

    Attributes:
        began: When it began.
        raised_at: When the first raise was seen, `None` for never.
        full_at: When it had its whole rate, likewise.
        refused: Requests that were refused.
    """

    stage: Stage
    name: TargetName
    began: datetime = field(init=False)
    raised_at: datetime | None = None
    full_at: datetime | None = None
    refused: int = 0

    def __post_init__(self) -> None:
        self.began = self.stage.now()

    def run(self) -> None:
        clock, speed = clock_of(self.stage.place), self.stage.place.status().speed
        pacer = Pacer(
            clock=lambda: round(clock() * 1_000_000_000),
            pause=lambda seconds: time.sleep(seconds / speed),
            starts_full=False,
        )
        work = PacedWrite(
            table=self.name.table, write=_RATE, start=Start.SLOW, session=_Session(self.stage), pacer=pacer
        )
        work.followed.clock, work.followed.looks_every = clock, _LOOKS_EVERY_SECONDS / speed

        def watch(_: WriteProgress) -> None:
            now = self.stage.now()
            if self.raised_at is None and read_state(self.stage.place, self.name).units > _UNITS:
                self.raised_at = now
            if self.full_at is None and (pacer.rate(self.name.table, None, Dimension.WRITE) or 0) >= _RATE:
                self.full_at = now
            limit = self.began + _WITHIN * _MINUTE if self.full_at is None else self.full_at + _AFTER * _MINUTE
            if now >= limit:
                work.is_stopped.set()

        work.run(_puts(), refuse, watch)
        _, self.refused = pacer.spent(self.name.table, None, Dimension.WRITE)

    def seconds_to(self, at: datetime | None) -> int | None:
        return None if at is None else round((at - self.began).total_seconds())


class _Session:
    """A boto3 session of the place's clients."""

    def __init__(self, stage: Stage) -> None:
        self._place = stage.place

    def client(self, service: str, *, config: Any = None, **_: Any) -> Any:
        return self._place.client(service, config)


def _puts() -> Iterator[Put]:
    numbers = random.Random(20_261_124)  # noqa: S311 - the same keys in each run
    while True:
        yield Put({KEY: f"{numbers.getrandbits(64):x}", "text": _ITEM_TEXT})


def _compare(stage: Stage, job: _SlowJob, users: LoadReport) -> None:
    throttled = users.total(Dimension.WRITE, "throttled")
    stage.check("throttled units of users beside a job that starts slowly", "0", f"{throttled:,.0f}")
    stage.check("refused requests of a job that starts slowly", 0, job.refused)
    raised, full = job.seconds_to(job.raised_at), job.seconds_to(job.full_at)
    within = round(_ANSWERED_WITHIN.total_seconds())
    stage.check(
        "seconds until auto scaling answers a slow start",
        f"{within} at the most",
        raised,
        holds=raised is not None and raised <= within,
    )
    stage.check(
        f"minutes until the job has its {_RATE} writes/s",
        f"{_WITHIN} at the most",
        full and full // 60,
        holds=bool(full),
    )
    stage.measure(
        "slow_start_raised_seconds",
        raised,
        "s",
        question="seconds from a slow start to auto scaling's answer:",
        assumed=f"{within} s at the most",
    )


def _compare_with_simulator(stage: Stage, job: _SlowJob) -> None:
    simulated = _simulated()
    assumed = "never" if simulated.full_at is None else f"{simulated.full_at - simulated.start} s, simulated"
    stage.measure(
        "slow_start_full_seconds",
        job.seconds_to(job.full_at),
        "s",
        question="seconds from a slow start to its whole rate:",
        assumed=assumed,
    )


def _simulated() -> JobRun:
    """The same in the lab."""
    start = datetime.fromisoformat("2026-11-24T00:00:00+00:00")
    counts = {Stream(None, Dimension.WRITE): [float(_USERS)] * (_MINUTES * 60)}
    traffic = Traffic.from_counts("users", counts, bin_seconds=1, start=start)
    planned = PlannedJob(
        dimension=Dimension.WRITE,
        rate=_RATE,
        units=_RATE * _MINUTES * 60,
        start=Start.SLOW,
        allow_throttles=False,
        at=start + _LEAD * _MINUTE,
    )
    tracking = TargetTracking(target_percent=_TARGET_PERCENT)
    write = TargetSetup(units=_UNITS, min=_UNITS, max=_CEILING, tracking=tracking)
    table = ResourceSetup(index=None, read=TargetSetup.fixed(1), write=write, warm_write_units=_CEILING)
    setup = TableSetup(name="slow start", resources=(table,), starts_settled=False, jobs=jobs_of([planned], traffic))
    (found,) = simulate(setup, traffic, Declared()).jobs
    return found


SLOW_START: Final = Part(
    name="slow_start",
    title="a job that starts slowly, beside users: nobody is throttled",
    minutes=30,
    bare_units=_CEILING + 1,
    run=_run,
)
