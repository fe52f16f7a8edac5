"""`highwater.write`: puts, deletes and updates within a budget, shuffled so that they spread over the partitions."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from highwater.bulk.adaptive import PacedWork
from highwater.bulk.budget import PacedWorkError, Pacer, check_budget, check_workers
from highwater.bulk.checkpoint import WRITES_KIND, WritePlace, held, warn_of_others
from highwater.bulk.items import Action, Put
from highwater.bulk.send import MOST_IN_BATCH, BatchSender, Rejected, Sent, WriteJob, batches_of, job_of
from highwater.core.pacing.following import Start
from highwater.core.pacing.writes import IndexParts, WriteCost
from highwater.core.units import Dimension


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The estimated cost of writes, if none of the items exists yet.

    Attributes:
        table: The table's name.
        items: The number of items that can be written.
        size_bytes: Their total size.
        table_units: Write units of the table, including its local indexes.
        index_units: Write units of each global index.
        seconds: Lower bound of the duration.
        rejected: The number of actions that DynamoDB would reject.

    Example:
        ```python
        def show(plan: highwater.WritePlan) -> None:
            print(f"{plan.items:,} items, {plan.units:,} write units, at least {plan.seconds} s")
        ```
    """

    table: str
    items: int
    size_bytes: int
    table_units: int
    index_units: Mapping[str, int]
    seconds: int
    rejected: int

    @property
    def units(self) -> int:
        """The units of the table and all of its indexes."""
        return self.table_units + sum(self.index_units.values())


def _indexes(described: Mapping[str, Any]) -> Iterator[IndexParts]:
    own = {part["AttributeName"] for part in described["KeySchema"]}
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for index in described.get(kind, ()):
            keys = frozenset(part["AttributeName"] for part in index["KeySchema"])
            projection = index.get("Projection", {})
            copied = keys | own | frozenset(projection.get("NonKeyAttributes", ()))
            is_all = projection.get("ProjectionType", "ALL") == "ALL"
            yield IndexParts(index["IndexName"], keys, None if is_all else copied, kind.startswith("Local"))


# At most this many actions are shuffled and sent together, as one block; the checkpoint is written after each block.
_BLOCK: Final = 1_000
_BLOCK_SECONDS: Final = 5
_FIRST_UNITS: Final = 10.0
_BATCH_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """How far writes are.

    Attributes:
        done: Actions done, including earlier runs.
        units: Write units consumed in this run, including those of indexes.
        rejected: Actions that DynamoDB rejected in this run.
        unmet: Updates whose condition was false in this run.

    Example:
        ```python
        done = highwater.write("orders", actions, write=150)
        print(f"{done.done - done.unmet} of {done.done} orders changed, {done.units:,.0f} write units")
        ```
    """

    done: int = 0
    units: float = 0.0
    rejected: int = 0
    unmet: int = 0

    def after(self, actions: int, sent: Sent) -> WriteProgress:
        """Return the progress after *actions* more actions, with the result *sent*."""
        return WriteProgress(
            self.done + actions, self.units + sent.units, self.rejected + len(sent.rejected), self.unmet + sent.unmet
        )


def write(
    table: str,
    actions: Iterable[Action],
    *,
    write: float | str,
    start: Start | str = Start.FULL,
    allow_throttles: bool = False,
    workers: int | None = None,
    checkpoint: str | Path | None = None,
    coordinator: str | None = None,
    reject: Callable[[Rejected], None] | None = None,
    progress: Callable[[WriteProgress], None] | None = None,
    session: Any = None,
    pacer: Pacer | None = None,
    budget: str | None = None,
) -> WriteProgress:
    """Write actions within a budget: puts and deletes in batches, updates one by one.

    Actions are written in blocks of about five seconds of the budget, estimated from the cost of earlier actions, and
    at most a thousand actions. They are shuffled within a block, so that items next to each other are not all written
    to the same partition at once. Actions on the same key stay in order. Unprocessed items are retried until they are
    written.

    With a *checkpoint*, writes that ended early, or were killed, resume after the last complete block, given the same
    actions again; the actions of the block that was interrupted may be written twice. If the actions before it have
    other keys now, or another order, nothing is written.

    Args:
        table: The table's name.
        actions: `Put`, `Delete` and `Update`; iterated as they are needed.
        write: Write units per second, fractions allowed; or a share of the provisioned capacity, such as `"30%"`,
            which follows the capacity. Each index has a budget of the same size, or share.
        start: `full`, `slow` or `boosted`, as for `scan`.
        allow_throttles: As for `scan`.
        workers: The number of requests that are sent at once, 1 to 64. By default as many as the budget needs at the
            latency that is measured.
        checkpoint: A file that records how far the writes are. It is deleted at the end.
        coordinator: As for `scan`.
        reject: Called with each action that DynamoDB rejects, such as an item of more than 400 KB. By default the first
            such action ends the writes.
        progress: Called after each block.
        session: A boto3 session. By default a new one.
        pacer: Has the budget; pass one to share it with other work. By default a new one.
        budget: The name of a budget that all workers with this name share; the rate is that of all together. Needs a
            coordinator and `grant_budget`. By default the budget is this process's own.

    Returns:
        The totals of the writes.

    Raises:
        PacedWorkError: There is no such table, an argument is not valid, the checkpoint is of other writes, or of other
            actions, an action is rejected and *reject* is not given, or DynamoDB rejects a request for another reason
            than throttling. The message says how to resume.
        PaceError: The rate is below 0.001, or not a rate.

    Example:
        ```python
        actions = (highwater.Put(order) for order in orders)
        done = highwater.write("orders", actions, write=150, checkpoint="orders.checkpoint")
        print(f"{done.done} orders written")
        ```
    """
    made = PacedWrite(
        table=table,
        write=write,
        start=start,
        allow_throttles=allow_throttles,
        coordinator=coordinator,
        workers=workers,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        session=session,
        pacer=pacer,
        budget=budget,
    )
    return made.run(actions, reject or refuse, progress)


@dataclass(kw_only=True)
class PacedWrite(PacedWork):
    """The writes to one table: what `write` uses.

    The attributes are arguments of `write`, and `is_stopped`, which ends the writes after the present block once set.
    When work is resumed, the actions that are done have to have the same keys as before, in the same order, or the same
    content: `is_same_by`.
    """

    _what: ClassVar = "write"
    _dimension: ClassVar = Dimension.WRITE
    table: str
    write: float | str
    start: Start | str = Start.FULL
    allow_throttles: bool = False
    coordinator: str | None = None
    workers: int | None = None
    checkpoint: Path | None = None
    session: Any = None
    pacer: Pacer | None = None
    budget: str | None = None
    is_same_by: Literal["key", "content"] = "key"
    is_stopped: threading.Event = field(default_factory=threading.Event)

    def run(
        self,
        actions: Iterable[Action],
        reject: Callable[[Rejected], None],
        progress: Callable[[WriteProgress], None] | None = None,
    ) -> WriteProgress:
        """Write all actions; raises like `write`."""
        check_workers(self.workers, "write")
        check_budget("write", self.pacer, self.budget)
        with held(self.checkpoint):
            return self._run(actions, reject, progress)

    def _run(
        self,
        actions: Iterable[Action],
        reject: Callable[[Rejected], None],
        progress: Callable[[WriteProgress], None] | None,
    ) -> WriteProgress:
        where = f"{self._client.meta.region_name} {self.table}"
        place = WritePlace(self.checkpoint, where, self.described.get("TableId"))
        warn_of_others(self.checkpoint, WRITES_KIND, where)
        told = WriteProgress(done=place.done)
        given = iter(actions)
        place.skip(self._recognized(action) for action in islice(given, place.done))
        # the cost of an action is only known after the first block
        size = self._block(_FIRST_UNITS)
        with self.opened() as writer:
            while block := list(islice(given, size)):
                if self.is_stopped.is_set():
                    return told
                sent = writer.write(block, told.done, reject)
                told = told.after(len(block), sent)
                place.move_by([self._recognized(action) for action in block])
                size = self._block(sent.units / len(block))
                if progress is not None:
                    progress(told)
        place.end()
        return told

    def plan(self, actions: Iterable[Action], reject: Callable[[Rejected], None]) -> WritePlan:
        """Return the cost of writing all actions if they are new items; writes nothing, raises like `write`."""
        cost, rejected = WriteCost(tuple(_indexes(self.described))), 0
        for number, action in enumerate(actions):
            job = job_of(number, action)
            if not isinstance(job, Rejected) and (missing := [key for key in self._keys if key not in job.raw]):
                job = Rejected(number, action, f"the item has no {' and no '.join(missing)}, a key of the table")
            if isinstance(job, Rejected):
                rejected += 1
                reject(job)
            else:
                cost.add(job.raw)
        return WritePlan(
            self.described["TableName"],
            cost.items,
            cost.size_bytes,
            cost.table_units,
            cost.index_units,
            cost.seconds_at(self.followed.rates(cost.units_by_target)),
            rejected,
        )

    @contextmanager
    def opened(self) -> Iterator[BlockWriter]:
        """Yield a writer of blocks of actions; raises like `write`."""
        keys, in_flight = (
            self._keys,
            self._in_flight(self._workers_at_first(self.rate / MOST_IN_BATCH * _BATCH_SECONDS)),
        )
        # the pool starts a thread when none of those that it has is free
        with self.followed as followed, ThreadPoolExecutor(in_flight.most) as pool:
            is_stopped = threading.Event()
            sender = BatchSender(self._client, followed.pacer, self.table, in_flight=in_flight, is_stopped=is_stopped)
            yield BlockWriter(sender, keys, pool, is_stopped)

    def _recognized(self, action: Action) -> object:
        """Return what tells whether an action is the same when work is resumed."""
        values = action.item if isinstance(action, Put) else action.key
        if self.is_same_by == "content" or not isinstance(values, Mapping):
            return values
        return [values.get(key) for key in self._keys]

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        """The names of the table's key attributes."""
        return tuple(part["AttributeName"] for part in self.described["KeySchema"])

    def _block(self, units_per_action: float) -> int:
        """Return how many actions can be written in five seconds at the rate."""
        return min(max(math.ceil(self.rate * _BLOCK_SECONDS / max(units_per_action, 1.0)), 1), _BLOCK)


@dataclass(slots=True)
class BlockWriter:
    """Writes blocks of actions; returns when a block is done.

    Attributes:
        sender: Sends batches, as many at once as its `in_flight` says.
        keys: The names of the table's key attributes.
        pool: The threads that send.
        is_stopped: Once set, the sender sends nothing more; set after an exception.
    """

    sender: BatchSender
    keys: tuple[str, ...]
    pool: ThreadPoolExecutor
    is_stopped: threading.Event

    def write(self, actions: Sequence[Action], first: int, reject: Callable[[Rejected], None]) -> Sent:
        """Write actions, the first of which has the number *first*; rejected ones are passed to *reject*."""
        found = [job_of(first + number, action) for number, action in enumerate(actions)]
        sent = Sent(rejected=tuple(each for each in found if isinstance(each, Rejected)))
        for lap in _laps((each for each in found if isinstance(each, WriteJob)), self.keys):
            sent = self._send(batches_of(lap), sent)
        for each in sorted(sent.rejected, key=lambda one: one.number):
            reject(each)
        return sent

    def _send(self, batches: Iterable[list[WriteJob]], sent: Sent) -> Sent:
        """Send all batches, and return when all are done; after an exception none that still waits is sent."""
        under_way: set[Future[Sent]] = set()
        try:
            for batch in batches:
                while len(under_way) >= self._limit:
                    done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                    sent = sum((each.result() for each in done), sent)
                # in a copy of the caller's context, so that tracing attributes the batch's requests to the caller
                under_way.add(self.pool.submit(copy_context().run, self.sender.send, batch))
            while under_way:
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                sent = sum((each.result() for each in done), sent)
        except BaseException:
            self.is_stopped.set()
            for each in under_way:
                each.cancel()
            raise
        return sent

    @property
    def _limit(self) -> int:
        return 1 if self.sender.in_flight is None else self.sender.in_flight.limit


def _laps(jobs: Iterable[WriteJob], keys: tuple[str, ...]) -> Iterator[list[WriteJob]]:
    """Yield the jobs in laps: one job for each key in a lap, jobs of the same key in order, each lap shuffled."""
    seen: dict[str, int] = {}
    laps: list[list[WriteJob]] = []
    for job in jobs:
        key = repr([_of_key(job.raw.get(name)) for name in keys])
        lap = seen.get(key, 0)
        seen[key] = lap + 1
        if lap == len(laps):
            laps.append([])
        laps[lap].append(job)
    for found in laps:
        random.shuffle(found)
        yield found


def _of_key(value: Any) -> Any:
    """Return a key's value for comparison; equal numbers are the same key."""
    if isinstance(value, Mapping) and "N" in value:
        # text that is no number is left for DynamoDB to reject
        with suppress(TypeError, ValueError):
            return float(value["N"])
    return value


def refuse(rejected: Rejected) -> None:
    """End the writes at the first action that DynamoDB rejects; raises `PacedWorkError`."""
    raise PacedWorkError(
        f"write: action {rejected.number:,}: {rejected.why}; give reject to go on without such actions"
    )
