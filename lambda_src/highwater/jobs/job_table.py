"""The records of jobs in a coordinator's table.

A job has a head, which says what is done, and an item for each segment that was begun: who has it until when, where it
goes on, and what was done. A worker writes a segment only on the condition that it still has it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar

from boto3.dynamodb.types import TypeSerializer
from botocore.exceptions import BotoCoreError, ClientError

from highwater.budgets.shared import AwsTime, records_client, records_session
from highwater.budgets.shares import SKEW_MS
from highwater.bulk.budget import Pacer
from highwater.bulk.checkpoint import decoded, encoded
from highwater.bulk.scan import Key
from highwater.calls.attempts import WORKED_ON
from highwater.calls.records import Item, Records, sort_key_of
from highwater.client.coordinator import CoordinatorClient, CoordinatorNotFoundError
from highwater.client.sessions import check_session
from highwater.core.documents import read_document
from highwater.core.errors import HighwaterError
from highwater.core.names import JOB_PREFIX, MOST_BUDGET_CHARACTERS, job_partition
from highwater.core.units import Dimension
from highwater.jobs.segments import MOST_JOB_SEGMENTS, JobProgress, JobSegment, Reject, progress_of

_HEAD, _SEGMENT = "job", "segment#"
_SHORTEST_LEASE, _LONGEST_LEASE = timedelta(seconds=10), timedelta(hours=12)


class JobError(HighwaterError):
    """A job cannot be started, found or continued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSpec:
    """What a job reads; `items` and `size_bytes` are DynamoDB's counts at its start.

    `segments` follows from these counts, and from *given_segments*, which the caller may have given. *is_local* says
    that the index is a local one, which consumes its table's capacity.
    """

    dimension: ClassVar = Dimension.READ
    table: str
    index: str | None
    is_consistent: bool
    segments: int = field(compare=False)
    read: float
    budget: str
    request: Mapping[str, Any]
    is_local: bool = field(default=False, compare=False)
    given_segments: int | None = field(default=None, compare=False)
    items: int = field(default=0, compare=False)
    size_bytes: int = field(default=0, compare=False)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Scan` that all pages have."""
        found = {"TableName": self.table, "TotalSegments": self.segments, "ConsistentRead": self.is_consistent}
        return found | ({} if self.index is None else {"IndexName": self.index}) | dict(self.request)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """What a job puts into a table: the lines of an object in S3, whose *etag* tells whether it is still the same.

    *rejects* is the prefix of the objects with the lines that were rejected. Both are `s3://bucket/key`.
    """

    dimension: ClassVar = Dimension.WRITE
    items: ClassVar = 0
    table: str
    source: str
    etag: str
    size_bytes: int
    segments: int = field(compare=False)
    write: float
    budget: str
    rejects: str
    given_segments: int | None = field(default=None, compare=False)

    def range_of(self, segment: int) -> tuple[int, int]:
        """Return the first byte of a segment, and the one behind its last."""
        return self.size_bytes * segment // self.segments, self.size_bytes * (segment + 1) // self.segments


JobSpec = ScanSpec | LoadSpec


def _differences(found: JobSpec, given: JobSpec) -> list[str]:
    """Return the names of what is not the same as it was *given*, the counts left out."""
    if type(found) is not type(given):
        return ["kind of work"]
    names = [
        each.name for each in fields(found) if each.compare and getattr(found, each.name) != getattr(given, each.name)
    ]
    # a number of segments that was not given follows the size, and one that was is made smaller for a small table
    if given.given_segments not in (None, found.given_segments, found.segments):
        names.append("segments")
    return names


@dataclass(frozen=True, slots=True)
class Page:
    """What became of a page of a segment: where the next one begins, `None` at the end, and what is added to counts."""

    cursor: Key
    items: int
    scanned: int
    units: float
    rejected: int = 0
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a job's segments.

    Attributes:
        pacer: Has the budget.
        do: Works on one page, given the segment's number, the cursor, `None` at its begin, and a function that renews
            the segment's lease if it is half over.
    """

    pacer: Pacer
    do: Callable[[int, Key, Callable[[], None]], Page]


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was read.

    `run` tells it from a job that had the same id before and was deleted: a worker of that one may still write.
    """

    id: str
    spec: JobSpec
    is_stopped: bool
    begun: Mapping[int, JobSegment]
    run: str

    def progress(self, now: int) -> JobProgress:
        """Return how far it is."""
        return progress_of(
            self.id,
            self.begun,
            count=self.spec.segments,
            expected_items=self.spec.items,
            is_stopped=self.is_stopped,
            now=now,
            dimension=self.spec.dimension,
            rejects_at=self.spec.rejects if isinstance(self.spec, LoadSpec) else None,
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

    def begin(self, id: str, spec: JobSpec) -> JobProgress:
        """Write a job's head, if there is none, and return how far the job is.

        Raises `JobError` if there is one with another *spec*; its segments may differ unless they were given.
        """
        document, run = json.dumps(encoded(asdict(spec)), sort_keys=True), uuid.uuid4().hex[:12]
        change = "SET #spec = :spec, #run = :run"
        self._change(id, _HEAD, "attribute_not_exists(#spec)", change, spec=document, run=run)
        found = self.read(id)
        differs = _differences(found.spec, spec)
        if differs:
            fix = "give the same, or another id"
            raise JobError(f"job {id}: there is one already, with another {', '.join(differs)}; {fix}")
        return found.progress(self.time.now())

    def read(self, id: str) -> Job:
        """Return a job; raises `JobError` if there is none."""
        found = self._items(id)
        heads = [item for item in found if sort_key_of(item) == _HEAD]
        if not heads:
            raise JobError(
                f"job {id}: there is no such job in {self._records.table}; start it with highwater.jobs.start_job"
            )
        run = _run_of(heads[0])
        try:
            begun = [_segment(item) for item in found if sort_key_of(item).startswith(f"{_SEGMENT}{run}#")]
            document = decoded(read_document(heads[0]["spec"]["S"]))
            is_stopped = bool(heads[0].get("stopped", {}).get("BOOL"))
            spec = LoadSpec(**document) if "source" in document else ScanSpec(**document)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            why = f"its record is not as it was written ({type(error).__name__}: {error})"
            raise JobError(f"job {id}: {why}; delete the job, and start it anew") from error
        return Job(id, spec, is_stopped, {each.number: each for each in begun}, run)

    def ids(self) -> list[str]:
        """Return the ids of all jobs; reads the whole table of the coordinator."""
        with _translated("the jobs"):
            return [found.removeprefix(JOB_PREFIX) for found in self._records.partitions(JOB_PREFIX, _HEAD)]

    def stop(self, id: str, *, is_stopped: bool) -> None:
        """Stop a job, or resume it; raises `JobError` if there is none."""
        self.read(id)
        self._change(id, _HEAD, "attribute_exists(#spec)", "SET #stopped = :stopped", stopped=is_stopped)

    def is_stopped(self, job: Job) -> bool:
        """Whether a job was stopped, or deleted, whether or not another was begun with its id since."""
        with _translated(f"job {job.id}"):
            found = self._records.read((job_partition(job.id), _HEAD))
        return _run_of(found) != job.run or "spec" not in found or bool(found.get("stopped", {}).get("BOOL"))

    def delete(self, id: str) -> None:
        """Delete a job's records, the head last, so that it can be repeated if it fails.

        The job is stopped first. What a worker that has not yet seen that still writes is not of a later job's run.
        """
        self._change(id, _HEAD, "attribute_exists(#spec)", "SET #stopped = :stopped", stopped=True)
        found = sorted(map(sort_key_of, self._items(id)), reverse=True)
        with _translated(f"job {id}"):
            for item in found:
                self._records.delete((job_partition(id), item))

    def take(self, job: Job, number: int, owner: str, lease_ms: int) -> tuple[JobSegment, Key] | None:
        """Lease a segment, and return it with the key after which it goes on; `None` if it is not free."""
        now = self.time.now()
        # one that this worker has is taken again, as boto3 may repeat a request whose answer was lost
        condition = "attribute_not_exists(#owner) OR #owner = :owner OR (#done = :no AND #until <= :ended)"
        change = "SET #owner = :owner, #until = :until, #done = if_not_exists(#done, :no)"
        item = self._change(
            job.id,
            _segment_item(job, number),
            condition,
            change,
            owner=owner,
            until=now + lease_ms,
            ended=now - SKEW_MS,
            no=False,
        )
        return None if item is None else (_segment(item), item.get("cursor", {}).get("M") or None)

    def keep(self, job: Job, segment: JobSegment, cursor: Key) -> bool:
        """Write a segment and renew its lease, if its owner still has it; returns whether it has."""
        names = ("items", "scanned", "units", "worked_ms", "rejected", "rejects")
        # what is as it was at first is left out
        counts = {name: value for name in names if (value := getattr(segment, name))}
        item = self._change(
            job.id,
            _segment_item(job, segment.number),
            "#owner = :owner",
            "SET #until = :until, #done = :done, #cursor = :cursor, #counts = :counts",
            owner=segment.owner,
            until=segment.until,
            done=segment.is_done,
            cursor=cursor or {},
            counts=json.dumps(counts),
        )
        return item is not None

    def _items(self, id: str) -> list[Item]:
        with _translated(f"job {id}"):
            pages = self._records.pages(job_partition(id), ConsistentRead=True)
            return [item for page in pages for item in page["Items"]]

    def _change(self, id: str, item: str, condition: str, change: str, **values: Any) -> Item | None:
        """Update an item, and return it as it is then; `None` if the condition is not met."""
        raw = {name: _raw(value) for name, value in values.items()}
        with _translated(f"job {id}"):
            return self._records.update((job_partition(id), item), change, condition, raw, ReturnValues="ALL_NEW")

    @cached_property
    def _apart(self) -> Any:
        return records_session(self._session)

    @cached_property
    def _records(self) -> Records:
        table = CoordinatorClient(coordinator=self._coordinator, session=self._apart).pulse_table
        return Records(table, records_client(self._apart, WORKED_ON), self.time.hear)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Raise `JobError`, whose message begins with *what*, where a call to AWS fails."""
    try:
        yield
    except (ClientError, BotoCoreError, CoordinatorNotFoundError) as error:
        fix = "give the role grant_job in the CDK app, and deploy"
        raise JobError(f"{what}: its record cannot be read or written: {error}; {fix}") from error


def _raw(value: object) -> dict[str, Any]:
    # a cursor is in DynamoDB's JSON already
    return {"M": value} if isinstance(value, Mapping) else dict(TypeSerializer().serialize(value))


def _run_of(head: Item) -> str:
    return str(head.get("run", {}).get("S", ""))


def _segment_item(job: Job, number: int) -> str:
    return f"{_SEGMENT}{job.run}#{number:05}"


def _segment(item: Item) -> JobSegment:
    counts = read_document(item.get("counts", {}).get("S", "{}"))
    rejects = tuple(Reject(at, why) for at, why in counts.pop("rejects", ()))
    return JobSegment(
        int(sort_key_of(item).rpartition("#")[2]),
        item["owner"]["S"],
        int(item["until"]["N"]),
        item["done"]["BOOL"],
        rejects=rejects,
        **counts,
    )


def check_name(what: str, name: object) -> None:
    """Raise `JobError`, whose message begins with *what*, for what is no name of a job or budget."""
    if not isinstance(name, str) or not 1 <= len(name) <= MOST_BUDGET_CHARACTERS:
        message = f"{what}: got {str(name)[:120]!r}, allowed: a text of 1 to {MOST_BUDGET_CHARACTERS} characters"
        raise JobError(message)


def check_lease(what: str, lease: object) -> None:
    """Raise `JobError`, whose message begins with *what*, for a lease that is not allowed."""
    if not isinstance(lease, timedelta) or not _SHORTEST_LEASE <= lease <= _LONGEST_LEASE:
        raise JobError(f"{what}: lease: got {lease!s}, allowed: a timedelta of 10 seconds to 12 hours")


def allowed_segments(id: str, wanted: int, *, is_given: bool) -> int:
    """Return the number of segments of a job; raises `JobError` for a number that was given and is not allowed."""
    if is_given and not 1 <= wanted <= MOST_JOB_SEGMENTS:
        raise JobError(f"job {id}: segments: got {wanted:,}, allowed: 1 to {MOST_JOB_SEGMENTS:,}")
    return min(wanted, MOST_JOB_SEGMENTS)
