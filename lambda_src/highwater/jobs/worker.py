"""`start_job`, `run_worker` and `worker_handler`: one scan, or load, that workers of any engine do together.

What a job is, and how far it is, is in the table of a coordinator. A worker takes a segment by a lease, works through
it page by page, and records each page.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from highwater.budgets.shared import SharedBudget
from highwater.bulk.budget import Pacer, paced_client
from highwater.bulk.scan import Key, ScanPage, TableScan
from highwater.bulk.send import PageReader
from highwater.core.errors import HighwaterError
from highwater.core.pacing.pages import PageSize
from highwater.core.units import NANOSECONDS, Dimension
from highwater.jobs.job_table import (
    Job,
    JobError,
    JobTable,
    Page,
    Pages,
    ScanSpec,
    allowed_segments,
    check_lease,
    check_name,
)
from highwater.jobs.load import load_pages, start_load
from highwater.jobs.segments import MOST_SEGMENT_REJECTS, JobProgress, JobSegment, free_segments, next_free_ms

_LOG: Final = logging.getLogger("highwater.jobs")
# As for a scan of so many threads: at least four segments for each
_USUAL_WORKERS: Final = 8
# A worker asks so often whether the job was stopped
_ASKED_EVERY: Final = 5 * NANOSECONDS
_MILLISECOND: Final = 1_000_000
_SHORTEST_REST, _LONGEST_REST = 1.0, 15.0
_LEASE: Final = timedelta(minutes=1)
Work = Callable[[list[dict[str, Any]]], object]


def start_job(
    id: str,
    *,
    table: str,
    read: float,
    index: str | None = None,
    is_consistent: bool = False,
    segments: int | None = None,
    budget: str | None = None,
    coordinator: str | None = None,
    session: Any = None,
    **request: Any,
) -> JobProgress:
    """Define a job: a scan of a table or index that workers do together with `run_worker`.

    With the id of a job that exists, and the same arguments, this changes nothing: each worker may begin with it.

    Args:
        id: The job's id, 1 to 121 characters. A job that is done stays so: give each run its own.
        table: The table's name.
        read: Read units per second of all workers together, fractions allowed.
        index: The name of an index to scan instead of the table.
        is_consistent: As for `scan`.
        segments: The number of segments, 1 to 10,000; no more workers can be busy at once. By default one for each
            256 MB, at least 32. As for `scan`, a small table has fewer.
        budget: The name of the shared budget. By default the job's id, so that the job has a budget of its own.
        coordinator: The coordinator whose table has the job. By default the only one in the account and region.
        session: A boto3 session. By default a new one.
        **request: As for `scan`.

    Returns:
        How far the job is.

    Raises:
        JobError: The id is not valid, there is a job with this id and other arguments, or the coordinator's table
            cannot be written.
        PacedWorkError: As for `scan`.
        PaceError: The rate is below 0.001, or not a rate.

    Example:
        ```python
        highwater.jobs.start_job("backfill-7", table="orders", read=500)
        ```
    """
    check_name("job: id", id)
    check_name(f"job {id}: budget", budget or id)
    if isinstance(read, str):
        raise JobError(f"job {id}: read: got {read!r}, allowed: read units per second; give a number")
    jobs = JobTable(coordinator, session)
    scan = TableScan(
        table=table,
        read=read,
        index=index,
        is_consistent=is_consistent,
        segments=segments,
        workers=_USUAL_WORKERS,
        session=session,
        request=request,
    )
    plan = scan.plan
    spec = ScanSpec(
        table=table,
        index=index,
        is_local=scan.is_of_local_index,
        is_consistent=is_consistent,
        segments=allowed_segments(id, plan.segments, is_given=segments is not None),
        given_segments=segments,
        read=float(read),
        budget=budget or id,
        request=request,
        items=plan.items,
        size_bytes=plan.size_bytes,
    )
    return jobs.begin(id, spec)


def run_worker(
    id: str,
    work: Work | None = None,
    *,
    until: datetime | None = None,
    lease: timedelta = _LEASE,
    coordinator: str | None = None,
    session: Any = None,
) -> JobProgress:
    """Work on a job until it is done, stopped, or the time is up; run again, it goes on.

    As many workers as you like do so at once: processes, functions, tasks of any engine. Each takes a segment that
    nobody has, reads it page by page within the budget that all of them share, and calls *work* with the items of each
    page. What is done is recorded after each page, so an item is given at least once: again if its worker was killed
    before the page was recorded, or took longer than its lease for it. So *work* has to be idempotent.

    A worker that finds no free segment waits until the job is done, as the segment of one that is lost becomes free
    when its lease ends. One that was overtaken, as it was frozen past its lease, writes nothing more about that segment
    and takes another.

    Args:
        id: The job's id, as it was given to `start_job` or `start_load`.
        work: Gets the items of one page as a list, numbers as `decimal.Decimal`. If it raises, the segment is given
            back, and the exception is raised. A load has none: its page is a block of lines, which are put.
        until: The instant, with its time zone, after which no page is begun. Leave time for one page and the wait for
            the budget. By default none.
        lease: How long a segment stays this worker's without a page being done, 10 seconds to 12 hours: longer than
            *work* takes for a page. By default a minute.
        coordinator: The coordinator whose table has the job. By default the only one in the account and region.
        session: A boto3 session. By default a new one.

    Returns:
        How far the job is: its `state` is `done`, `stopped`, or `running` or `waiting` if the time was up.

    Raises:
        JobError: There is no such job, *work* is missing or is given for a load, *until* or *lease* is not valid, or
            the coordinator's table cannot be read or written.
        PacedWorkError: DynamoDB rejects a page for another reason than throttling, or the object of a load cannot be
            read, or is another one by now.
        SharedBudgetError: The budget cannot be shared.

    Example:
        ```python
        def work(items):
            for item in items:
                print(item["pk"])


        progress = highwater.jobs.run_worker("backfill-7", work)
        ```
    """
    check_name("job: id", id)
    if until is not None and (not isinstance(until, datetime) or until.tzinfo is None):
        raise JobError(
            f"job {id}: until: got {until!s}, allowed: an instant with its time zone, such as datetime.now(UTC)"
        )
    check_lease(f"job {id}", lease)
    jobs = JobTable(coordinator, session)
    job = jobs.read(id)
    spec = job.spec
    if isinstance(spec, ScanSpec):
        if work is None:
            raise JobError(f"job {id}: is a scan, and work is missing; give a function of the items of a page")
        opened = _scan_pages(id, spec, work, coordinator, session)
    else:
        if work is not None:
            raise JobError(f"job {id}: is a load, which calls no work; call run_worker({id!r}) alone")
        opened = load_pages(id, spec, coordinator, session)
    with opened as pages:
        return _Worker(job, pages, jobs, until, lease).run()


def worker_handler(
    work: Work, *, lease: timedelta = _LEASE, session: Any = None
) -> Callable[[Mapping[str, Any], Any], Any]:
    """Make the handler of a Lambda function whose runs are the workers of a `PacedScan` of the CDK.

    A worker begins no page in the last two leases before the function's timeout.

    Args:
        work: As for `run_worker`: gets the items of one page, and has to be idempotent.
        lease: As for `run_worker`, less than half of the function's timeout. By default a minute.
        session: A boto3 session. By default a new one.

    Raises:
        JobError: *lease* is not valid. The handler raises it if another than a `PacedScan` calls it, or if the
            function's timeout leaves no time.

    Example:
        ```python
        handler = highwater.jobs.worker_handler(lambda items: print(len(items)))
        ```
    """
    check_lease("worker_handler", lease)

    def handler(event: Mapping[str, Any], context: Any) -> Any:
        return _serve(event, context, work, lease, session)

    return handler


def handler(event: Mapping[str, Any], context: Any) -> Any:
    """Start, or work on, a job of a `PacedLoad` of the CDK: the handler of that construct's function."""
    return _serve(event, context, None, _LEASE, None)


def _serve(event: Mapping[str, Any], context: Any, work: Work | None, lease: timedelta, session: Any) -> Any:
    """Answer the state machine of a construct: with seats for workers, or with the state of the job after a run."""
    try:
        if "start" in event:
            return _started(event, work, session)
        job, coordinator = event["job"], event["coordinator"]
    except HighwaterError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what, members, caller = ("PacedLoad", "start, workers and input", "its state machine")
        if work is not None:
            what, members, caller = ("worker_handler", "start and workers", "a PacedScan")
        raise JobError(
            f"{what}: got {str(event)[:120]} ({type(error).__name__}: {error}), allowed: an event with job and "
            f"coordinator, and at first with {members}; have {caller} call it"
        ) from error
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    if left <= 2 * lease:
        raise JobError(
            f"job {job}: the function has {left.total_seconds():,.0f} s left, allowed: more than two leases of "
            f"{lease.total_seconds():,.0f} s; give it a timeout of 15 minutes"
        )
    until = datetime.now(UTC) + left - 2 * lease
    state = run_worker(job, work, until=until, lease=lease, coordinator=coordinator, session=session).state
    return {**event, "state": state}


def _started(event: Mapping[str, Any], work: Work | None, session: Any) -> dict[str, Any]:
    """Begin the job, and return it with its seats: no more workers can be busy than there are segments."""
    job, coordinator, seats = event["job"], event["coordinator"], range(event["workers"])
    if work is None:
        started = start_load(job, coordinator=coordinator, session=session, **_load_of(job, event))
    else:
        started = start_job(job, coordinator=coordinator, session=session, **event["start"])
    return {"job": job, "seats": list(seats[: started.segments])}


def _load_of(job: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is loaded: the object that the execution's input names, or that of the construct."""
    given, asked = event["input"], dict(event["start"])
    # the CDK leaves members that are null out
    bucket, usual = asked.pop("bucket"), asked.pop("key", None)
    key = _key_of(given, bucket, usual)
    if not isinstance(key, str) or not key:
        raise JobError(
            f'job {job}: input: got {str(given)[:120]}, allowed: {{"key": "the key of an object"}}, or an event of S3 '
            f"about an object in {bucket}"
        )
    return {**asked, "source": f"s3://{bucket}/{key}"}


def _key_of(given: object, bucket: str, usual: object) -> object:
    """Return the key that an input names: by itself, or as the event of EventBridge about an object in *bucket*."""
    if not isinstance(given, Mapping):
        return None
    match given.get("detail"):
        case {"bucket": {"name": name}, "object": {"key": key}}:
            return key if name == bucket else None
    return given.get("key", usual)


@contextmanager
def _scan_pages(id: str, spec: ScanSpec, work: Work, coordinator: str | None, session: Any) -> Iterator[Pages]:
    """Yield the pages of a scan, within its budget; the share of it is given back at the end."""
    pacer = Pacer(starts_full=False, shared=SharedBudget(name=spec.budget, coordinator=coordinator, session=session))
    pacer.limit(spec.table, Dimension.READ, spec.read)
    size = PageSize(max(round(spec.read * 1_000), 1), spec.is_consistent)
    size.expect(spec.size_bytes, spec.items)
    goes_on = f"run a worker of job {id} again to go on"
    target = None if spec.is_local else spec.index
    reader = PageReader(paced_client(session), pacer, spec.table, target, size, spec.arguments(), goes_on=goes_on)

    def do(segment: int, cursor: Key, hold: Callable[[], None]) -> Page:
        page = reader.read(segment, cursor)
        # the wait for the budget took long, or the process was frozen
        hold()
        read = ScanPage(tuple(page.get("Items", ())), segment, int(page["ScannedCount"]), reader.units_of(page))
        if read.raw:
            work(read.items)
        return Page(page.get("LastEvaluatedKey"), len(read.raw), read.scanned, read.units)

    try:
        yield Pages(pacer, do)
    finally:
        pacer.give_back()


class _Worker:
    """One worker; what is done is in the job's records only."""

    def __init__(self, job: Job, pages: Pages, jobs: JobTable, until: datetime | None, lease: timedelta) -> None:
        self._job, self._pages, self._jobs = job, pages, jobs
        self._ends = float("inf") if until is None else until.timestamp()
        self._lease_ms = round(lease.total_seconds() * 1_000)
        self._owner = uuid.uuid4().hex[:12]
        self._asked_at = time.monotonic_ns()
        self._is_stopped = False

    def run(self) -> JobProgress:
        """Take free segments, and wait while there is none, until the job is done, stopped, or the time is up."""
        while True:
            job, now = self._jobs.read(self._job.id), self._jobs.time.now()
            if job.run != self._job.run:
                # another job has the id now: its pages may be of another table, and its work another
                return replace(job, is_stopped=True).progress(now)
            progress = job.progress(now)
            self._is_stopped = job.is_stopped
            if progress.state in ("done", "stopped") or self._is_over():
                return progress
            free = free_segments(job.begun, job.spec.segments, now)
            # at random, so that workers that begin at once rarely try the same one
            random.shuffle(free)
            for number in free:
                if self._is_over() or not self._try(job, number):
                    break
            if not free:
                # the others may use this worker's share meanwhile
                self._pages.pacer.give_back()
                rest = min(max(next_free_ms(job.begun, now) / 1_000, _SHORTEST_REST), _LONGEST_REST)
                time.sleep(max(min(rest, self._ends - time.time()), 0))

    def _try(self, job: Job, number: int) -> bool:
        """Take a segment, if it is free, and work through it; give it back if that ends early.

        Returns false if another worker has taken it meanwhile: the job may have been deleted.
        """
        taken = self._jobs.take(job, number, self._owner, self._lease_ms)
        if taken is None:
            return True
        segment, cursor = taken
        try:
            while not segment.is_done and not self._is_over():
                segment, cursor = self._do_page(job, segment, cursor)
        except _OvertakenError:
            _LOG.warning(
                "job %s: segment %d: another worker has it, as this one's lease had ended; if pages take longer than "
                "%d s, give a longer lease",
                job.id,
                number,
                self._lease_ms // 1_000,
            )
            return False
        except BaseException:
            with suppress(JobError):
                self._jobs.keep(job, replace(segment, until=0), cursor)
            raise
        if not segment.is_done:
            self._jobs.keep(job, replace(segment, until=0), cursor)
        return True

    def _do_page(self, job: Job, segment: JobSegment, cursor: Key) -> tuple[JobSegment, Key]:
        """Work on a page, and record that; raises `_OvertakenError` if another has the segment."""
        began, held = time.monotonic_ns(), segment

        def hold() -> None:
            nonlocal held
            if held.until - self._jobs.time.now() < self._lease_ms // 2:
                held = self._renew(job, held, cursor)

        page = self._pages.do(segment.number, cursor, hold)
        done = replace(
            held,
            is_done=page.cursor is None,
            items=held.items + page.items,
            scanned=held.scanned + page.scanned,
            units=held.units + page.units,
            worked_ms=held.worked_ms + (time.monotonic_ns() - began) // _MILLISECOND,
            rejected=held.rejected + page.rejected,
            rejects=(*held.rejects, *page.rejects)[:MOST_SEGMENT_REJECTS],
        )
        return self._renew(job, done, page.cursor), page.cursor

    def _renew(self, job: Job, segment: JobSegment, cursor: Key) -> JobSegment:
        renewed = replace(segment, until=self._jobs.time.now() + self._lease_ms)
        if not self._jobs.keep(job, renewed, cursor):
            raise _OvertakenError
        return renewed

    def _is_over(self) -> bool:
        """Whether the time is up, or the job was stopped."""
        now = time.monotonic_ns()
        if now - self._asked_at >= _ASKED_EVERY:
            self._asked_at = now
            self._is_stopped = self._jobs.is_stopped(self._job)
        return self._is_stopped or time.time() >= self._ends


class _OvertakenError(Exception):
    """Another worker has taken the segment."""
