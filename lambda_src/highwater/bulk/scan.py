"""`highwater.scan`: reads a whole table or index within a budget, in pages from all of its partitions."""

from __future__ import annotations

import inspect
import logging
import math
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from boto3.dynamodb.types import TypeDeserializer

from highwater.bulk.adaptive import PacedWork, check_rate, read_start
from highwater.bulk.budget import PacedWorkError, Pacer, check_budget, check_workers
from highwater.bulk.checkpoint import SCAN_KIND, Checkpoint, ScanHeader, held, warn_of_others
from highwater.bulk.in_flight import MOST_AT_FIRST, MOST_IN_FLIGHT
from highwater.bulk.send import PageReader
from highwater.client.sessions import check_session
from highwater.core.errors import did_you_mean
from highwater.core.items import bytes_per_unit, page_units
from highwater.core.pacing.following import Start
from highwater.core.pacing.pages import PageSize
from highwater.core.pacing.segments import MOST_SEGMENTS, count_segments, scan_units
from highwater.core.units import NANOSECONDS, Dimension

_LOG: Final = logging.getLogger("highwater.pace")


@dataclass(frozen=True, slots=True)
class ScanPage:
    """One page of a scan.

    Attributes:
        raw: The items in DynamoDB's JSON.
        segment: The number of the page's segment.
        scanned: The number of items read; more than in `raw` if a filter left some out.
        units: The read units that the page consumed.

    Example:
        ```python
        for page in highwater.scan("orders", read=2_000):
            print(f"segment {page.segment}: {len(page.items)} of {page.scanned} items, {page.units} units")
        ```
    """

    raw: tuple[Mapping[str, Any], ...]
    segment: int
    scanned: int
    units: float

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items as boto3's resources give them: numbers are `decimal.Decimal`."""
        read = TypeDeserializer().deserialize
        return [{name: read(value) for name, value in item.items()} for item in self.raw]


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The estimated cost of a scan.

    Attributes:
        table: The table's name.
        index: The index that is scanned, `None` for the table.
        size_bytes: The size that DescribeTable returns, which may be some hours old.
        items: The number of items, from the same source.
        units: The read units that the scan consumes.
        seconds: Lower bound of its duration.
        segments: The number of segments.

    Example:
        ```python
        plan = highwater.TableScan(table="orders", read=2_000, request={}).plan
        print(f"{plan.units:,} read units, at least {plan.seconds} s")
        ```
    """

    table: str
    index: str | None
    size_bytes: int
    items: int
    units: int
    seconds: int
    segments: int


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """How far a scan is.

    Attributes:
        scanned: Items read so far, including earlier runs.
        units: Read units consumed so far, including earlier runs.
        plan: The estimate made at the start.
        segments_done: The number of segments that are read completely.

    Example:
        ```python
        def show(at: highwater.ScanProgress) -> None:
            print(f"{at.percent:.1f} %, {at.units:,.0f} read units")


        pages = highwater.scan("orders", read=2_000, progress=show)
        ```
    """

    scanned: int
    units: float
    plan: ScanPlan
    segments_done: int

    @property
    def percent(self) -> float:
        """The share that is done: of the items, or of the segments where the number of items is not known."""
        if self.segments_done == self.plan.segments:
            return 100.0
        if self.plan.items:
            return min(100.0 * self.scanned / self.plan.items, 99.9)
        return 100.0 * self.segments_done / self.plan.segments


Key = Mapping[str, Any] | None
# Pages come from at least this many segments in turn, so that no partition is read for long
_LEAST_ACTIVE: Final = 5
_WAIT_SECONDS: Final = 0.2
_STOP_SECONDS: Final = 2.0


class SegmentPages:
    """Yields (segment, page, key of the next page) until all segments are read completely.

    Args:
        read: Reads the page of a segment after a key.
        pending: The key after which each unfinished segment continues.
        limit: Returns the number of pages that may be read at once, each by a thread of its own, 1 to 64.
        is_stopped: Ends the pages once it is set, by any thread. By default only `stop` does.
    """

    def __init__(
        self,
        read: Callable[[int, Key], dict[str, Any]],
        pending: Mapping[int, Key],
        limit: Callable[[], int],
        is_stopped: threading.Event | None = None,
    ) -> None:
        self._read = read
        self._limit = limit
        waiting = list(pending.items())
        random.shuffle(waiting)
        self._waiting = waiting
        self._active: deque[tuple[int, Key]] = deque()
        self._left = len(waiting)
        self._lock = threading.Lock()
        self._is_stopped = is_stopped or threading.Event()
        # bounded, so that pages are not read far ahead of the consumer, however many are read at once
        most_ahead = min(limit(), MOST_AT_FIRST)
        self._pages: queue.Queue[tuple[int, dict[str, Any]] | BaseException] = queue.Queue(maxsize=most_ahead)
        # each thread runs in a copy of the caller's context, so that tracing attributes its requests to the caller
        self._context = copy_context()
        self._threads: set[threading.Thread] = set()

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any], Key]]:
        """Start the threads and yield pages until `stop`; raises the exception of a thread that fails."""
        self._start_threads()
        while self._left and not self._is_stopped.is_set():
            try:
                found = self._pages.get(timeout=_WAIT_SECONDS)
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            segment, page = found
            key = page.get("LastEvaluatedKey")
            if key is None:
                self._left -= 1
            yield segment, page, key

    def stop(self) -> None:
        """End the threads; pages that they are still reading are dropped."""
        self._is_stopped.set()
        # a thread may have long to wait for its budget, so all threads together get this time to end
        end = time.monotonic() + _STOP_SECONDS
        with self._lock:
            threads = [*self._threads]
        for thread in threads:
            if thread.is_alive():
                thread.join(timeout=max(end - time.monotonic(), 0))

    def _start_threads(self) -> None:
        """Start threads until there are as many as pages may be read at once, or as segments that are left."""
        with self._lock:
            while len(self._threads) < min(self._limit(), self._left) and not self._is_stopped.is_set():
                thread = threading.Thread(target=self._context.copy().run, args=(self._work,), daemon=True)
                self._threads.add(thread)
                thread.start()

    def _is_one_too_many(self) -> bool:
        """Whether the present thread is to end, as fewer pages are to be read at once."""
        with self._lock:
            if len(self._threads) <= self._limit():
                return False
            self._threads.discard(threading.current_thread())
            return True

    def _work(self) -> None:
        while not self._is_stopped.is_set() and not self._is_one_too_many():
            taken = self._take()
            if taken is None:
                if not self._left:
                    return
                # other threads are reading the remaining segments, and may return them
                self._is_stopped.wait(_WAIT_SECONDS)
                continue
            segment, key = taken
            try:
                page = self._read(segment, key)
            except BaseException as error:
                self._put(error)
                return
            self._put((segment, page))
            following = page.get("LastEvaluatedKey")
            if following is not None:
                with self._lock:
                    self._active.append((segment, following))
            self._start_threads()

    def _take(self) -> tuple[int, Key] | None:
        with self._lock:
            while self._waiting and len(self._active) < max(_LEAST_ACTIVE, self._limit()):
                self._active.append(self._waiting.pop())
            return self._active.popleft() if self._active else None

    def _put(self, page: tuple[int, dict[str, Any]] | BaseException) -> None:
        while not self._is_stopped.is_set():
            try:
                self._pages.put(page, timeout=_WAIT_SECONDS)
            except queue.Full:
                continue
            return


# Approximate duration of DynamoDB's answer: for a page, and in addition for each unit
_PAGE_SECONDS, _UNIT_SECONDS = 0.03, 0.0015
# The slowest pages for which a table has segments enough, where these cost half a percent more at most
_SLOW_PAGE_SECONDS: Final = 0.4
_UNITS_FOR_A_SEGMENT: Final = 100
_PASSED_ON: Final = frozenset(
    {"FilterExpression", "ProjectionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues", "Select"}
)


def scan(
    table: str,
    *,
    read: float | str,
    start: Start | str = Start.FULL,
    allow_throttles: bool = False,
    index: str | None = None,
    is_consistent: bool = False,
    segments: int | None = None,
    workers: int | None = None,
    checkpoint: str | Path | None = None,
    coordinator: str | None = None,
    progress: Callable[[ScanProgress], None] | None = None,
    session: Any = None,
    pacer: Pacer | None = None,
    budget: str | None = None,
    **request: Any,
) -> Iterator[ScanPage]:
    """Read a table or index within a budget, page by page from segments in random order.

    With a *checkpoint*, a scan that ended early, or was killed, resumes where it was: each item is yielded at least
    once, and items of the last five seconds may be yielded again. A page counts as done once the next one is requested.

    Args:
        table: The table's name.
        read: Read units per second, fractions allowed; or a share of the provisioned capacity, such as `"30%"`, which
            follows the capacity.
        start: `full`: at the whole rate at once; `slow`: at the rate for which there is capacity beside other traffic,
            rising as auto scaling follows; or `boosted`: after a boost from a coordinator, or slow if there is no
            boost. By default full.
        allow_throttles: Do not slow down when requests are throttled because of insufficient capacity; for a table
            without other traffic. By default the budget is reduced.
        index: The name of an index to scan instead of the table.
        is_consistent: Whether reads are strongly consistent, which costs twice as much; not possible for an index.
        segments: The number of segments, 1 to 1,000,000. By default one for each 256 MB, and enough for the pages that
            are read at once. Each costs half a unit even if it is empty, one if *is_consistent*: for a small table
            fewer are used, so that they cost half as much as its items at most, and a warning says so.
        workers: The number of pages that are read at once, 1 to 64. By default as many as the budget needs at the
            latency that is measured.
        checkpoint: A file that records how far the scan is. It is deleted at the end.
        coordinator: Name or URL of the coordinator of a boosted start. By default the only one.
        progress: Called after each page.
        session: A boto3 session. By default a new one.
        pacer: Has the budget; pass one to share it with other work. By default a new one.
        budget: The name of a budget that all workers with this name share; the rate is that of all together. Needs a
            coordinator and `grant_budget`. By default the budget is this process's own.
        **request: `FilterExpression`, `ProjectionExpression`, `ExpressionAttributeNames`, `ExpressionAttributeValues`
            and `Select`, as `Scan` has them.

    Returns:
        An iterator of the pages, including those that are empty because of a filter. Nothing is read before the first
        page is requested.

    Raises:
        PacedWorkError: An argument is not valid. While pages are read: there is no such table or index, the checkpoint
            is of another scan, or DynamoDB rejects a request for another reason than throttling. The message says how
            to resume.
        PaceError: The rate is below 0.001, or not a rate.

    Example:
        ```python
        for page in highwater.scan("orders", read="30%"):
            for item in page.items:
                print(item["pk"])
        ```
    """
    made = TableScan(
        table=table,
        read=read,
        start=start,
        allow_throttles=allow_throttles,
        coordinator=coordinator,
        index=index,
        is_consistent=is_consistent,
        segments=segments,
        workers=workers,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        session=session,
        pacer=pacer,
        budget=budget,
        request=request,
    )
    made.check()
    return made.pages(progress)


@dataclass(kw_only=True)
class TableScan(PacedWork):
    """One scan, with its estimated cost: what `scan` uses.

    The attributes are the arguments of `scan`, and `is_stopped`, which ends the scan after the present page once set.

    Example:
        ```python
        scan = highwater.TableScan(table="orders", read=2_000, request={})
        print(f"{scan.plan.units:,} read units, at least {scan.plan.seconds} s")
        items = [item for page in scan.pages() for item in page.items]
        ```
    """

    _what: ClassVar = "scan"
    _dimension: ClassVar = Dimension.READ
    table: str
    read: float | str
    request: Mapping[str, Any]
    start: Start | str = Start.FULL
    allow_throttles: bool = False
    coordinator: str | None = None
    index: str | None = None
    is_consistent: bool = False
    segments: int | None = None
    workers: int | None = None
    checkpoint: Path | None = None
    session: Any = None
    pacer: Pacer | None = None
    budget: str | None = None
    is_stopped: threading.Event = field(default_factory=threading.Event)

    def pages(
        self, progress: Callable[[ScanProgress], None] | None = None, save: Callable[[], int] | None = None
    ) -> Generator[ScanPage, None, None]:
        """Yield the pages; *save* is called before each checkpoint and returns the bytes of the caller's output."""
        plan, page_size = self.plan, self._page_size
        page_size.expect(plan.size_bytes, plan.items)
        pacer, in_flight = self.followed.pacer, self._in_flight(self._workers)
        reader = PageReader(
            self._client,
            pacer,
            self.table,
            self.target,
            page_size,
            self._arguments(plan),
            in_flight=in_flight,
            is_stopped=self.is_stopped,
        )
        with (
            held(self.checkpoint),
            Checkpoint(self.checkpoint, self._header(plan), save, lambda: pacer.clock() / NANOSECONDS) as kept,
            self.followed,
        ):
            header = self._header(plan)
            warn_of_others(self.checkpoint, SCAN_KIND, header.table, header.index)
            pages = SegmentPages(reader.read, kept.pending(), lambda: in_flight.limit, self.is_stopped)
            try:
                for segment, page, key in pages:
                    raw = tuple(page.get("Items", ()))
                    units = reader.units_of(page)
                    yield ScanPage(raw, segment, int(page["ScannedCount"]), units)
                    kept.note(segment, key, int(page["ScannedCount"]), units)
                    if progress is not None:
                        progress(ScanProgress(kept.scanned, kept.units, plan, len(kept.done)))
            finally:
                pages.stop()

    @cached_property
    def plan(self) -> ScanPlan:
        """The estimated cost of the scan; raises `PacedWorkError` like `scan`."""
        self.check()
        found = self.described if self.index is None else self._find_index()
        size, items = int(found.get("TableSizeBytes", found.get("IndexSizeBytes", 0))), int(found.get("ItemCount", 0))
        segments = Checkpoint.segments_of(self.checkpoint) or self._count_segments(size)
        page = self._page_size.milliunits
        units = scan_units(size, is_consistent=self.is_consistent, page_milliunits=page, segments=segments)
        return ScanPlan(self.table, self.index, size, items, units, math.ceil(units / self.rate), segments)

    @property
    def is_of_local_index(self) -> bool:
        """Whether a local index is read, which consumes its table's capacity."""
        return self.index in {each["IndexName"] for each in self.described.get("LocalSecondaryIndexes", ())}

    @property
    def target(self) -> str | None:
        """The index whose capacity the scan consumes; `None` if that is the table's."""
        return None if self.index is None or self.is_of_local_index else self.index

    def check(self) -> None:
        """Raise `PacedWorkError` or `PaceError` for arguments that are not valid; sends no request."""
        check_budget("scan", self.pacer, self.budget)
        check_rate(self.read, read_start(self.start), Dimension.READ)
        unknown = sorted(set(self.request) - _PASSED_ON)
        if unknown:
            allowed = (*_PASSED_ON, *inspect.signature(scan).parameters)
            raise PacedWorkError(
                f"scan: {', '.join(unknown)} cannot be passed on; allowed: {', '.join(sorted(_PASSED_ON))}"
                f"{did_you_mean(unknown[0], allowed)}"
            )
        if self.segments is not None and not 1 <= self.segments <= MOST_SEGMENTS:
            raise PacedWorkError(f"scan: segments: got {self.segments:,}, allowed: 1 to {MOST_SEGMENTS:,}")
        check_workers(self.workers, "scan")
        check_session(self.session, "session")
        if self.index is not None and self.is_consistent:
            raise PacedWorkError(
                "scan: an index has no strongly consistent reads; leave out is_consistent, or the index"
            )

    @property
    def _workers(self) -> int:
        units = self._page_size.milliunits / 1_000
        return self._workers_at_first(self.rate * (_PAGE_SECONDS / units + _UNIT_SECONDS))

    def _count_segments(self, size: int) -> int:
        """Return the number of segments for a table or index of *size* bytes.

        Only one page of a segment can be read at a time, so a table that is large beside the cost of its segments has
        enough of them for slow answers too.
        """
        usual = count_segments(size, self._workers)
        if self.workers is None:
            pages = self.rate / (self._page_size.milliunits / 1_000)
            slow = min(math.ceil(pages * _SLOW_PAGE_SECONDS) + 1, MOST_IN_FLIGHT)
            share = size // (bytes_per_unit(is_consistent=self.is_consistent) * _UNITS_FOR_A_SEGMENT)
            usual = max(usual, min(count_segments(0, slow), share))
        if self.segments is None or self.segments <= usual:
            return self.segments or usual
        return self._fewer_segments(self.segments, usual, size)

    def _fewer_segments(self, given: int, usual: int, size: int) -> int:
        """Return *given*, or the number of segments for which a small table costs half as much more; warns of both."""
        each = bytes_per_unit(is_consistent=self.is_consistent)
        an_empty_one = page_units(0, is_consistent=self.is_consistent)
        table_units = max(-(-size // each), 1)
        most = max(usual, int(table_units / 2 / an_empty_one))
        if given <= most:
            return given
        cost = "1 unit" if self.is_consistent else "0.5 units"
        what = self.table if self.index is None else f"index {self.index} of {self.table}"
        if size == 0:
            # DynamoDB counts every six hours: the table may be empty, or just filled
            _LOG.warning(
                "scan of %s: segments: got %s, and DynamoDB has counted no items yet: each costs %s even if it "
                "is empty, %s together; give %s or fewer for a small table",
                what,
                f"{given:,}",
                cost,
                f"{given * an_empty_one:,.0f}",
                f"{usual:,}",
            )
            return given
        _LOG.warning(
            "scan of %s: segments: got %s, uses %s: each costs %s even if it is empty, and all its items %s",
            what,
            f"{given:,}",
            f"{most:,}",
            cost,
            f"{table_units:,}",
        )
        return most

    @property
    def _page_size(self) -> PageSize:
        return PageSize(max(round(self.rate * 1_000), 1), self.is_consistent)

    def _find_index(self) -> Mapping[str, Any]:
        indexes = {
            each["IndexName"]: each
            for name in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
            for each in self.described.get(name, ())
        }
        if self.index not in indexes:
            known = ", ".join(sorted(indexes)) or "none"
            raise PacedWorkError(f"scan: table {self.table!r} has no index {self.index!r}; its indexes: {known}")
        found: Mapping[str, Any] = indexes[self.index]
        return found

    def _arguments(self, plan: ScanPlan) -> dict[str, Any]:
        arguments = {"TableName": self.table, "TotalSegments": plan.segments, "ConsistentRead": self.is_consistent}
        return arguments | ({} if self.index is None else {"IndexName": self.index}) | dict(self.request)

    def _header(self, plan: ScanPlan) -> ScanHeader:
        return ScanHeader.of(self._client.meta.region_name, self._arguments(plan), self.described.get("TableId"))
