"""`highwater.start_job`, `run_worker` and `worker_handler`: one scan that workers of any engine do together.

A job is in a coordinator's table. It has a head, which says what is read, and an item for each segment that was
begun: who has it until when, where its next page begins, and what was done. A worker writes a segment only on the
condition that it still has it.
"""

from __future__ import annotations

import json
import logging
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

from boto3.dynamodb.types import TypeSerializer
from botocore.exceptions import BotoCoreError, ClientError

from highwater.bulk.budget import Pacer, paced_client
from highwater.bulk.checkpoint import decoded, encoded
from highwater.bulk.scan import Key, PacedScan, ScanPage
from highwater.bulk.send import PageReader
from highwater.bulk.shared import AwsTime, SharedBudget, records_client, records_session
from highwater.client.coordinator import CoordinatorClient, CoordinatorNotFoundError
from highwater.client.sessions import check_session
from highwater.core.errors import HighwaterError
from highwater.core.jobs import MOST_JOB_SEGMENTS, JobProgress, JobSegment, free_segments, next_free_ms, progress_of
from highwater.core.names import JOB_PREFIX, MOST_BUDGET_CHARACTERS, PARTITION_KEY, SORT_KEY, job_partition
from highwater.core.pacing import NANOSECONDS, PageSize
from highwater.core.shares import SKEW_MS
from highwater.core.units import Dimension

_LOG: Final = logging.getLogger("highwater.jobs")
_HEAD, _SEGMENT = "job", "segment#"
_NAME: Final = re.compile(r"#(\w+)")
_ATTEMPTS: Final = 6
# As for a scan of so many threads: at least four segments for each
_USUAL_WORKERS: Final = 8
# A worker asks so often whether the job was stopped
_ASKED_EVERY: Final = 5 * NANOSECONDS
_MILLISECOND: Final = 1_000_000
_SHORTEST_REST, _LONGEST_REST = 1.0, 15.0
_SHORTEST_LEASE, _LONGEST_LEASE = timedelta(seconds=10), timedelta(hours=12)
Work = Callable[[list[dict[str, Any]]], object]


class JobError(HighwaterError):
    """A job cannot be started, found or continued."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job reads; `items` and `size_bytes` are DynamoDB's counts at its start."""

    table: str
    index: str | None
    is_consistent: bool
    segments: int
    read: float
    budget: str
    request: Mapping[str, Any]
    items: int = 0
    size_bytes: int = 0

    def differences(self, other: JobSpec) -> list[str]:
        """Return the names of what is not the same, the counts left out."""
        names = ("table", "index", "is_consistent", "segments", "read", "budget", "request")
        return [name for name in names if getattr(self, name) != getattr(other, name)]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Scan` that all pages have."""
        found = {"TableName": self.table, "TotalSegments": self.segments, "ConsistentRead": self.is_consistent}
        return found | ({} if self.index is None else {"IndexName": self.index}) | dict(self.request)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was read."""

    id: str
    spec: JobSpec
    is_stopped: bool
    begun: Mapping[int, JobSegment]

    def progress(self, now: int) -> JobProgress:
        """Return how far it is."""
        return progress_of(
            self.id,
            self.begun,
            count=self.spec.segments,
            expected_items=self.spec.items,
            is_stopped=self.is_stopped,
            now=now,
        )


class JobTable:
    """The records of jobs.

    Args:
        coordinator: The coordinator whose table has them. By default the only one in the account and region.
        session: The boto3 session whose credentials are used. By default a new one.
    """

    def __init__(self, coordinator: str | None = None, session: Any = None) -> None:
        check_session(session, "session")
        self._coordinator, self._session = coordinator, session
        self.time = AwsTime()

    def begin(self, id: str, spec: JobSpec) -> bool:
        """Write a job's head; returns whether there was none."""
        document = json.dumps(encoded(asdict(spec)), sort_keys=True)
        return self._change(id, _HEAD, "attribute_not_exists(#spec)", "SET #spec = :spec", spec=document) is not None

    def read(self, id: str) -> Job:
        """Return a job; raises `JobError` if there is none."""
        found = list(self._query(id))
        heads = [item for item in found if item[SORT_KEY]["S"] == _HEAD]
        if not heads:
            raise JobError(f"job {id}: there is no such job in {self._table}; start it with highwater.start_job")
        begun = [_segment(item) for item in found if item[SORT_KEY]["S"].startswith(_SEGMENT)]
        document = decoded(json.loads(heads[0]["spec"]["S"]))
        is_stopped = bool(heads[0].get("stopped", {}).get("BOOL"))
        return Job(id, JobSpec(**document), is_stopped, {each.number: each for each in begun})

    def ids(self) -> list[str]:
        """Return the ids of all jobs; reads the whole table of the coordinator."""
        pages = self._each_page(
            "scan",
            FilterExpression="#item = :head AND begins_with(#job, :prefix)",
            ExpressionAttributeNames={"#item": SORT_KEY, "#job": PARTITION_KEY},
            ExpressionAttributeValues={":head": {"S": _HEAD}, ":prefix": {"S": JOB_PREFIX}},
        )
        return sorted(item[PARTITION_KEY]["S"].removeprefix(JOB_PREFIX) for item in pages)

    def stop(self, id: str, *, is_stopped: bool) -> None:
        """Stop a job, or resume it; raises `JobError` if there is none."""
        self.read(id)
        self._change(id, _HEAD, "attribute_exists(#spec)", "SET #stopped = :stopped", stopped=is_stopped)

    def is_stopped(self, id: str) -> bool:
        """Whether a job was stopped, or deleted."""
        found = self._send("get_item", id, Key=_key(id, _HEAD), ConsistentRead=True).get("Item", {})
        return "spec" not in found or bool(found.get("stopped", {}).get("BOOL"))

    def delete(self, id: str) -> None:
        """Delete a job's records, the head last, so that it can be repeated if it fails."""
        items = [item[SORT_KEY]["S"] for item in self._query(id)]
        for item in sorted(items, reverse=True):
            self._send("delete_item", id, Key=_key(id, item))

    def take(self, id: str, number: int, owner: str, lease_ms: int) -> tuple[JobSegment, Key] | None:
        """Lease a segment, and return it with the key after which it goes on; `None` if it is not free."""
        now = self.time.now()
        # one that this worker has is taken again, as boto3 may repeat a request whose answer was lost
        condition = "attribute_not_exists(#owner) OR #owner = :owner OR (#done = :no AND #until <= :ended)"
        change = "SET #owner = :owner, #until = :until, #done = if_not_exists(#done, :no)"
        item = self._change(
            id,
            _segment_item(number),
            condition,
            change,
            owner=owner,
            until=now + lease_ms,
            ended=now - SKEW_MS,
            no=False,
        )
        return None if item is None else (_segment(item), item.get("cursor", {}).get("M") or None)

    def keep(self, id: str, segment: JobSegment, cursor: Key) -> bool:
        """Write a segment and renew its lease, if its owner still has it; returns whether it has."""
        counts = {name: getattr(segment, name) for name in ("items", "scanned", "units", "worked_ms")}
        item = self._change(
            id,
            _segment_item(segment.number),
            "#owner = :owner",
            "SET #until = :until, #done = :done, #cursor = :cursor, #counts = :counts",
            owner=segment.owner,
            until=segment.until,
            done=segment.is_done,
            cursor=cursor or {},
            counts=json.dumps(counts),
        )
        return item is not None

    def _query(self, id: str) -> Iterator[Mapping[str, Any]]:
        return self._each_page(
            "query",
            id,
            ConsistentRead=True,
            KeyConditionExpression="#job = :job",
            ExpressionAttributeNames={"#job": PARTITION_KEY},
            ExpressionAttributeValues={":job": {"S": job_partition(id)}},
        )

    def _each_page(self, operation: str, id: str | None = None, **request: Any) -> Iterator[Mapping[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            page = self._send(operation, id, **request, **start)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _change(self, id: str, item: str, condition: str, change: str, **values: Any) -> Mapping[str, Any] | None:
        """Update an item, and return it as it is then; `None` if the condition is not met."""
        try:
            answer = self._send(
                "update_item",
                id,
                Key=_key(id, item),
                UpdateExpression=change,
                ConditionExpression=condition,
                ExpressionAttributeNames={f"#{name}": name for name in _NAME.findall(f"{condition} {change}")},
                ExpressionAttributeValues={f":{name}": _raw(value) for name, value in values.items()},
                ReturnValues="ALL_NEW",
            )
        except _ConditionError:
            return None
        found: Mapping[str, Any] = answer["Attributes"]
        return found

    def _send(self, operation: str, id: str | None, **request: Any) -> dict[str, Any]:
        what = "the jobs" if id is None else f"job {id}"
        try:
            answer = getattr(self._client, operation)(TableName=self._table, **request)
        except (ClientError, BotoCoreError, CoordinatorNotFoundError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                self.time.hear(dict(error.response))
                raise _ConditionError from None
            fix = "give the role grant_job in the CDK app, and deploy"
            raise JobError(f"{what}: its record cannot be read or written: {error}; {fix}") from error
        return self.time.hear(answer)

    @cached_property
    def _apart(self) -> Any:
        return records_session(self._session)

    @cached_property
    def _client(self) -> Any:
        return records_client(self._apart, _ATTEMPTS)

    @cached_property
    def _table(self) -> str:
        return CoordinatorClient(coordinator=self._coordinator, session=self._apart).pulse_table


class _ConditionError(Exception):
    """The condition of a write was not met."""


def _key(id: str, item: str) -> dict[str, Any]:
    return {PARTITION_KEY: {"S": job_partition(id)}, SORT_KEY: {"S": item}}


def _raw(value: object) -> dict[str, Any]:
    # a cursor is in DynamoDB's JSON already
    return {"M": value} if isinstance(value, Mapping) else dict(TypeSerializer().serialize(value))


def _segment_item(number: int) -> str:
    return f"{_SEGMENT}{number:05}"


def _segment(item: Mapping[str, Any]) -> JobSegment:
    return JobSegment(
        int(item[SORT_KEY]["S"].removeprefix(_SEGMENT)),
        item["owner"]["S"],
        int(item["until"]["N"]),
        item["done"]["BOOL"],
        **json.loads(item.get("counts", {}).get("S", "{}")),
    )


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not 1 <= len(name) <= MOST_BUDGET_CHARACTERS:
        message = f"{what}: got {str(name)[:120]!r}, allowed: a text of 1 to {MOST_BUDGET_CHARACTERS} characters"
        raise JobError(message)


def _check_lease(what: str, lease: object) -> None:
    if not isinstance(lease, timedelta) or not _SHORTEST_LEASE <= lease <= _LONGEST_LEASE:
        raise JobError(f"{what}: lease: got {lease!s}, allowed: a timedelta of 10 seconds to 12 hours")


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
        id: The job's id, 1 to 100 characters. A job that is done stays so: give each run its own.
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
        highwater.start_job("backfill-7", table="orders", read=500)
        ```
    """
    _check_name("job: id", id)
    _check_name(f"job {id}: budget", budget or id)
    if isinstance(read, str):
        raise JobError(f"job {id}: read: got {read!r}, allowed: read units per second; give a number")
    jobs = JobTable(coordinator, session)
    scan = PacedScan(
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
    if plan.segments > MOST_JOB_SEGMENTS:
        if segments is not None:
            raise JobError(f"job {id}: segments: got {segments:,}, allowed: 1 to {MOST_JOB_SEGMENTS:,}")
        plan = replace(plan, segments=MOST_JOB_SEGMENTS)
    spec = JobSpec(
        table, index, is_consistent, plan.segments, float(read), budget or id, request, plan.items, plan.size_bytes
    )
    is_new = jobs.begin(id, spec)
    found = jobs.read(id)
    if not is_new:
        # the default number of segments follows the table's size
        given = spec if segments is not None else replace(spec, segments=found.spec.segments)
        differs = found.spec.differences(given)
        if differs:
            fix = "give the same, or another id"
            raise JobError(f"job {id}: there is one already, with another {', '.join(differs)}; {fix}")
    return found.progress(jobs.time.now())


def run_worker(
    id: str,
    work: Work,
    *,
    until: datetime | None = None,
    lease: timedelta = timedelta(minutes=1),
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
        id: The job's id, as it was given to `start_job`.
        work: Gets the items of one page as a list, numbers as `decimal.Decimal`. If it raises, the segment is given
            back, and the exception is raised.
        until: The instant, with its time zone, after which no page is begun. Leave time for one page and the wait for
            the budget. By default none.
        lease: How long a segment stays this worker's without a page being done, 10 seconds to 12 hours: longer than
            *work* takes for a page. By default a minute.
        coordinator: The coordinator whose table has the job. By default the only one in the account and region.
        session: A boto3 session. By default a new one.

    Returns:
        How far the job is: its `state` is `done`, `stopped`, or `running` or `waiting` if the time was up.

    Raises:
        JobError: There is no such job, *until* or *lease* is not valid, or the coordinator's table cannot be read or
            written.
        PacedWorkError: DynamoDB rejects a page for another reason than throttling.
        SharedBudgetError: The budget cannot be shared.

    Example:
        ```python
        def work(items):
            for item in items:
                print(item["pk"])


        progress = highwater.run_worker("backfill-7", work)
        ```
    """
    _check_name("job: id", id)
    if until is not None and (not isinstance(until, datetime) or until.tzinfo is None):
        raise JobError(
            f"job {id}: until: got {until!s}, allowed: an instant with its time zone, such as datetime.now(UTC)"
        )
    _check_lease(f"job {id}", lease)
    jobs = JobTable(coordinator, session)
    return _Worker(id, work, jobs, jobs.read(id).spec, until, lease, coordinator, session).run()


def worker_handler(
    work: Work, *, lease: timedelta = timedelta(minutes=1), session: Any = None
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
        handler = highwater.worker_handler(lambda items: print(len(items)))
        ```
    """
    _check_lease("worker_handler", lease)

    def handler(event: Mapping[str, Any], context: Any) -> Any:
        if "job" not in event:
            raise JobError(f"worker_handler: got an event without job: {str(event)[:120]}; have a PacedScan call it")
        job, coordinator = event["job"], event["coordinator"]
        if "start" in event:
            started = start_job(job, coordinator=coordinator, session=session, **event["start"])
            # no more workers can be busy than there are segments
            return {"job": job, "seats": list(range(min(event["workers"], started.segments)))}
        left = timedelta(milliseconds=context.get_remaining_time_in_millis())
        if left <= 2 * lease:
            raise JobError(
                f"job {job}: the function has {left.total_seconds():,.0f} s left, allowed: more than two leases of "
                f"{lease.total_seconds():,.0f} s; give it a timeout of 15 minutes"
            )
        until = datetime.now(UTC) + left - 2 * lease
        state = run_worker(job, work, until=until, lease=lease, coordinator=coordinator, session=session).state
        return {**event, "state": state}

    return handler


class _Worker:
    """One worker; what is done is in the job's records only."""

    def __init__(
        self,
        id: str,
        work: Work,
        jobs: JobTable,
        spec: JobSpec,
        until: datetime | None,
        lease: timedelta,
        coordinator: str | None,
        session: Any,
    ) -> None:
        self._id, self._work, self._jobs, self._spec = id, work, jobs, spec
        self._ends = float("inf") if until is None else until.timestamp()
        self._lease_ms = round(lease.total_seconds() * 1_000)
        self._owner = uuid.uuid4().hex[:12]
        shared = SharedBudget(name=spec.budget, coordinator=coordinator, session=session)
        self._pacer = Pacer(starts_full=False, shared=shared)
        self._pacer.limit(spec.table, Dimension.READ, spec.read)
        size = PageSize(max(round(spec.read * 1_000), 1), spec.is_consistent)
        size.expect(spec.size_bytes, spec.items)
        goes_on = f"run a worker of job {id} again to go on"
        self._reader = PageReader(
            paced_client(session), self._pacer, spec.table, spec.index, size, spec.arguments(), goes_on=goes_on
        )
        self._asked_at = time.monotonic_ns()
        self._is_stopped = False

    def run(self) -> JobProgress:
        """Take free segments, and wait while there is none, until the job is done, stopped, or the time is up."""
        try:
            while True:
                job, now = self._jobs.read(self._id), self._jobs.time.now()
                progress = job.progress(now)
                self._is_stopped = job.is_stopped
                if progress.state in ("done", "stopped") or self._is_over():
                    return progress
                free = free_segments(job.begun, job.spec.segments, now)
                # at random, so that workers that begin at once rarely try the same one
                random.shuffle(free)
                for number in free:
                    if self._is_over():
                        break
                    self._try(number)
                if not free:
                    # the others may use this worker's share meanwhile
                    self._pacer.give_back()
                    rest = min(max(next_free_ms(job.begun, now) / 1_000, _SHORTEST_REST), _LONGEST_REST)
                    time.sleep(max(min(rest, self._ends - time.time()), 0))
        finally:
            self._pacer.give_back()

    def _try(self, number: int) -> None:
        """Take a segment, if it is free, and work through it; give it back if that ends early."""
        taken = self._jobs.take(self._id, number, self._owner, self._lease_ms)
        if taken is None:
            return
        segment, cursor = taken
        try:
            while not segment.is_done and not self._is_over():
                segment, cursor = self._do_page(segment, cursor)
        except _OvertakenError:
            _LOG.warning(
                "job %s: segment %d: another worker has it, as this one's lease had ended; if pages take longer than "
                "%d s, give a longer lease",
                self._id,
                number,
                self._lease_ms // 1_000,
            )
            return
        except BaseException:
            with suppress(JobError):
                self._jobs.keep(self._id, replace(segment, until=0), cursor)
            raise
        if not segment.is_done:
            self._jobs.keep(self._id, replace(segment, until=0), cursor)

    def _do_page(self, segment: JobSegment, cursor: Key) -> tuple[JobSegment, Key]:
        """Read a page, work on its items, and record that; raises `_OvertakenError` if another has the segment."""
        began = time.monotonic_ns()
        page = self._reader.read(segment.number, cursor)
        if segment.until - self._jobs.time.now() < self._lease_ms // 2:
            # the wait for the budget took long, or the process was frozen
            segment = self._renew(segment, cursor)
        read = ScanPage(
            tuple(page.get("Items", ())), segment.number, int(page["ScannedCount"]), self._reader.units_of(page)
        )
        if read.raw:
            self._work(read.items)
        cursor = page.get("LastEvaluatedKey")
        done = replace(
            segment,
            is_done=cursor is None,
            items=segment.items + len(read.raw),
            scanned=segment.scanned + read.scanned,
            units=segment.units + read.units,
            worked_ms=segment.worked_ms + (time.monotonic_ns() - began) // _MILLISECOND,
        )
        return self._renew(done, cursor), cursor

    def _renew(self, segment: JobSegment, cursor: Key) -> JobSegment:
        renewed = replace(segment, until=self._jobs.time.now() + self._lease_ms)
        if not self._jobs.keep(self._id, renewed, cursor):
            raise _OvertakenError
        return renewed

    def _is_over(self) -> bool:
        """Whether the time is up, or the job was stopped."""
        now = time.monotonic_ns()
        if now - self._asked_at >= _ASKED_EVERY:
            self._asked_at = now
            self._is_stopped = self._jobs.is_stopped(self._id)
        return self._is_stopped or time.time() >= self._ends


class _OvertakenError(Exception):
    """Another worker has taken the segment."""
