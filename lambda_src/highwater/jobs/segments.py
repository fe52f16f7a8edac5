"""Jobs that many workers do: their segments with leases, which of them are free, and how far a job is.

A worker takes a segment by a lease, and renews it with each page. A segment whose lease has ended is free again, with
the place that was reached. Times are milliseconds since 1970, by AWS's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from highwater.budgets.shares import SKEW_MS
from highwater.core.units import Dimension

# A worker reads a job's whole record, of about 200 bytes for each segment, when it looks for free segments.
MOST_JOB_SEGMENTS: Final = 10_000


# the ends of names of files that cannot be loaded by ranges: compressed ones, and other formats than lines of JSON
OTHER_KINDS: Final = (".gz", ".zst", ".csv")
# so many rejected lines are in the record of a segment, and in the progress of a job
MOST_SEGMENT_REJECTS: Final = 3
_MOST_REJECTS: Final = 10


class Reject(NamedTuple):
    """A line of a file that was not loaded: the offset of its first byte, and the reason."""

    at: int
    why: str


@dataclass(frozen=True, slots=True)
class JobSegment:
    """One segment of a job; one that nobody has taken yet has the defaults.

    Attributes:
        number: Its number, from 0 on.
        owner: The worker that took it last.
        until: The end of that worker's lease; 0 if it gave the segment back.
        is_done: Whether all of it was read and worked on.
        items: Items that were given to the work, or put.
        scanned: Items or lines that were read; more if a filter left some out, or some were rejected.
        units: Units that were consumed.
        worked_ms: How long workers were busy with it.
        rejected: Lines that were rejected.
        rejects: The first three of them.
    """

    number: int
    owner: str = ""
    until: int = 0
    is_done: bool = False
    items: int = 0
    scanned: int = 0
    units: float = 0.0
    worked_ms: int = 0
    rejected: int = 0
    rejects: tuple[Reject, ...] = ()

    def is_free(self, now: int) -> bool:
        """Whether a worker may take it: not done, and no lease is in use, even if clocks differ."""
        return not self.is_done and self.until <= now - SKEW_MS


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is.

    Attributes:
        id: The job's id.
        state: `done`; `stopped` by an operator; `running`; or `waiting` for a worker, as no segment is leased.
        segments: The number of segments.
        segments_done: How many of them are done.
        workers: How many segments are leased: each worker has one at a time.
        items: Items that were given to the work, or put. One that was given twice, as a worker was lost, counts once.
        scanned: Items or lines that were read; more if a filter left some out, or some were rejected.
        units: Units that were consumed.
        scanned_per_second: The rate of the workers that have a segment now.
        seconds_left: How long the rest takes at that rate; `None` if it is not known.
        skew: How long the slowest segment took beside the mean of those that were begun: 1 if all are alike, 3 if it
            took three times as long; `None` at the start.
        slowest: The number of that segment.
        dimension: `read` for a scan, `write` for a load.
        rejected: Lines of a load that were rejected.
        first_rejects: Some of them with their offsets and reasons: up to three of each segment, ten in all.
        rejects_at: Where all of them are, `s3://bucket/prefix/`; `None` for a scan.

    Example:
        ```python
        progress = highwater.jobs.run_worker("backfill-7", work)
        is_to_be_run_again = progress.state in ("running", "waiting")
        ```
    """

    id: str
    state: str
    segments: int
    segments_done: int
    workers: int
    items: int
    scanned: int
    units: float
    scanned_per_second: float
    seconds_left: int | None
    skew: float | None
    slowest: int | None
    dimension: Dimension = Dimension.READ
    rejected: int = 0
    first_rejects: tuple[Reject, ...] = ()
    rejects_at: str | None = None

    def document(self) -> dict[str, Any]:
        """Return all as JSON-ready values."""
        rejects = [each._asdict() for each in self.first_rejects]
        return {name: getattr(self, name) for name in self.__slots__} | {"first_rejects": rejects}


def free_segments(begun: Mapping[int, JobSegment], count: int, now: int) -> list[int]:
    """Return the numbers of the segments that a worker may take, of *count* in all; *begun* has those with a record."""
    return [number for number in range(count) if number not in begun or begun[number].is_free(now)]


def next_free_ms(begun: Mapping[int, JobSegment], now: int) -> int:
    """Return how long it takes until the next lease ends that nobody renews; 0 if none is in use."""
    ends = [each.until + SKEW_MS for each in begun.values() if not each.is_done and not each.is_free(now)]
    return max(min(ends, default=now) - now, 0)


def progress_of(
    id: str,
    begun: Mapping[int, JobSegment],
    *,
    count: int,
    expected_items: int,
    is_stopped: bool,
    now: int,
    dimension: Dimension = Dimension.READ,
    rejects_at: str | None = None,
) -> JobProgress:
    """Return how far a job is.

    The rest is estimated from the mean of the segments that are done. Before one is done, it is estimated from
    *expected_items*, DynamoDB's count, which may be some hours old; 0 if it has counted none.
    """
    done = [each for each in begun.values() if each.is_done]
    live = [each for each in begun.values() if not each.is_done and not each.is_free(now)]
    state = "running" if live else "waiting"
    if len(done) == count:
        state = "done"
    elif is_stopped:
        state = "stopped"
    rate = sum((each.scanned * 1_000 / each.worked_ms for each in live if each.worked_ms), 0.0)
    worked = [each for each in begun.values() if each.worked_ms]
    slowest = max(worked, key=lambda each: (each.worked_ms, -each.number), default=None)
    mean_ms = sum(each.worked_ms for each in worked) / max(len(worked), 1)
    return JobProgress(
        id=id,
        state=state,
        segments=count,
        segments_done=len(done),
        workers=len(live),
        items=sum(each.items for each in begun.values()),
        scanned=sum(each.scanned for each in begun.values()),
        units=sum((each.units for each in begun.values()), 0.0),
        scanned_per_second=round(rate, 1),
        seconds_left=_seconds_left(begun, done, count, expected_items, rate),
        skew=None if slowest is None else round(slowest.worked_ms / mean_ms, 2),
        slowest=None if slowest is None else slowest.number,
        dimension=dimension,
        rejected=sum(each.rejected for each in begun.values()),
        first_rejects=tuple(sorted(each for one in begun.values() for each in one.rejects)[:_MOST_REJECTS]),
        rejects_at=rejects_at,
    )


def _seconds_left(
    begun: Mapping[int, JobSegment], done: list[JobSegment], count: int, expected_items: int, rate: float
) -> int | None:
    if len(done) == count:
        return 0
    total = sum(each.scanned for each in done) if done else expected_items
    each_has = total / (len(done) or count)
    if not rate or not each_has:
        return None
    begun_only = [each for each in begun.values() if not each.is_done]
    untouched = count - len(begun)
    return round((untouched * each_has + sum(max(each_has - each.scanned, 0) for each in begun_only)) / rate)
