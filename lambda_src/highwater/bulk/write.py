"""`highwater.write`: puts, deletes and updates within a budget, in an order that spreads over the partitions."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

from highwater.bulk.adaptive import FollowedRate, follow, read_start
from highwater.bulk.budget import MOST_WORKERS, PacedWorkError, Pacer, check_workers, describe_table, paced_client
from highwater.bulk.checkpoint import WritePlace, held
from highwater.bulk.items import Action
from highwater.bulk.send import BatchSender, Rejected, Sent, WriteJob, batches_of, job_of
from highwater.core.pacing import IndexParts, Start, WriteCost
from highwater.core.units import Dimension


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What writes are going to cost, if no item is there yet.

    Attributes:
        table: The table's name.
        items: How many items can be written.
        size_bytes: How large they are together.
        table_units: Write units of the table, with those of its local indexes.
        index_units: Write units of each global index.
        seconds: How long it takes at least.
        rejected: How many actions DynamoDB would not take.
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


def plan_writes(
    described: Mapping[str, Any], actions: Iterable[Action], rate: float, reject: Callable[[Rejected], None]
) -> WritePlan:
    """Add up what *actions* cost the table that DescribeTable describes; nothing is written."""
    cost, rejected = WriteCost(tuple(_indexes(described))), 0
    keys = [part["AttributeName"] for part in described["KeySchema"]]
    for number, action in enumerate(actions):
        job = job_of(number, action)
        if not isinstance(job, Rejected) and (missing := [key for key in keys if key not in job.raw]):
            job = Rejected(number, action, f"the item has no {' and no '.join(missing)}, a key of the table")
        if isinstance(job, Rejected):
            rejected += 1
            reject(job)
        else:
            cost.add(job.raw)
    return WritePlan(
        described["TableName"],
        cost.items,
        cost.size_bytes,
        cost.table_units,
        cost.index_units,
        cost.seconds_at(rate),
        rejected,
    )


def _indexes(described: Mapping[str, Any]) -> Iterator[IndexParts]:
    own = {part["AttributeName"] for part in described["KeySchema"]}
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for index in described.get(kind, ()):
            keys = frozenset(part["AttributeName"] for part in index["KeySchema"])
            projection = index.get("Projection", {})
            copied = keys | own | frozenset(projection.get("NonKeyAttributes", ()))
            is_all = projection.get("ProjectionType", "ALL") == "ALL"
            yield IndexParts(index["IndexName"], keys, None if is_all else copied, kind.startswith("Local"))


# So many actions are shuffled and sent together; after each such block the place is kept.
_BLOCK: Final = 1_000
_BLOCK_SECONDS: Final = 5
_FIRST_UNITS: Final = 10.0
_BATCH_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """How far writes are.

    Attributes:
        done: Actions that are through, in earlier runs too.
        units: Write units consumed in this run, with those of indexes.
        rejected: Actions that DynamoDB did not take, in this run.
        unmet: Updates whose condition did not hold, in this run.
    """

    done: int = 0
    units: float = 0.0
    rejected: int = 0
    unmet: int = 0

    def after(self, actions: int, sent: Sent) -> WriteProgress:
        """How far they are after so many more actions."""
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
) -> WriteProgress:
    """Write actions within a budget: puts and deletes in batches, updates one by one.

    Actions are taken in blocks of what five seconds of the budget write, going by what those before cost, and at most a
    thousand. They are shuffled within a block, so that items that lie side by side do not meet the same partition at
    once. Actions on the same key keep their order. What DynamoDB leaves unprocessed is sent until it is through.

    With a *checkpoint*, writes that ended early, or were killed, go on after the last whole block, given the same
    actions again; those of the block that was under way come twice.

    Args:
        table: The table's name.
        actions: `Put`, `Delete` and `Update`, read as they are needed.
        write: Write units per second, fractions allowed; or a share of the provisioned capacity, such as `"30%"`,
            which follows the capacity. Each index has a budget of the same size, or share.
        start: `full`, `slow` or `boosted`, as for `scan`.
        allow_throttles: As for `scan`.
        workers: How many threads send, 1 to 16. By default as many as the budget needs.
        checkpoint: A file that keeps how far the writes are. It is deleted at the end.
        coordinator: As for `scan`.
        reject: Called with each action that DynamoDB does not take, such as an item of more than 400 KB. By default
            the first such action ends the writes.
        progress: Called after each block.
        session: A boto3 session. By default a new one.
        pacer: Where the budget is, to share it with other work. By default a new one.

    Returns:
        What was written.

    Raises:
        PacedWorkError: There is no such table, an argument makes no sense, the checkpoint is of other writes, an action
            is rejected and nobody takes it, or DynamoDB refuses for good. The message says how to go on.
        PaceError: The rate is below 0.001, or no rate.
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
    )
    return made.run(actions, reject or refuse, progress)


@dataclass(kw_only=True)
class PacedWrite:
    """The writes to one table; the attributes are arguments of `write`, and `is_stopped`, which ends them after a block
    once set.
    """

    table: str
    write: float | str
    start: Start | str = Start.FULL
    allow_throttles: bool = False
    coordinator: str | None = None
    workers: int | None = None
    checkpoint: Path | None = None
    session: Any = None
    pacer: Pacer | None = None
    is_stopped: threading.Event = field(default_factory=threading.Event)

    def run(
        self,
        actions: Iterable[Action],
        reject: Callable[[Rejected], None],
        progress: Callable[[WriteProgress], None] | None = None,
    ) -> WriteProgress:
        """Write all actions; raises like `write`."""
        check_workers(self.workers, "write")
        with held(self.checkpoint):
            return self._run(actions, reject, progress)

    def _run(
        self,
        actions: Iterable[Action],
        reject: Callable[[Rejected], None],
        progress: Callable[[WriteProgress], None] | None,
    ) -> WriteProgress:
        place = WritePlace(self.checkpoint, f"{self.client.meta.region_name} {self.table}")
        told = WriteProgress(done=place.done)
        given = iter(actions)
        passed = sum(1 for _ in islice(given, place.done))
        if passed < place.done:
            message = f"is of {place.done:,} actions that are through, but {passed:,} were given"
            raise PacedWorkError(f"checkpoint {self.checkpoint}: {message}; give the same ones, or another file")
        # what an action costs is known after the first block
        size = self._block(_FIRST_UNITS)
        with self.opened() as writer:
            while block := list(islice(given, size)):
                if self.is_stopped.is_set():
                    return told
                sent = writer.write(block, told.done, reject)
                told = told.after(len(block), sent)
                place.move_to(told.done)
                size = self._block(sent.units / len(block))
                if progress is not None:
                    progress(told)
        place.end()
        return told

    def plan(self, actions: Iterable[Action], reject: Callable[[Rejected], None]) -> WritePlan:
        """Say what writing all actions costs if they are new items, and write none; raises like `write`."""
        return plan_writes(self._described, actions, self.rate, reject)

    @contextmanager
    def opened(self) -> Iterator[BlockWriter]:
        """Yield what writes blocks of actions; raises like `write`."""
        keys = self._keys
        with self.followed as followed, ThreadPoolExecutor(self._threads) as pool:
            yield BlockWriter(BatchSender(self.client, followed.pacer, self.table), keys, pool)

    @cached_property
    def client(self) -> Any:
        """The DynamoDB client that writes."""
        return paced_client(self.session)

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        """The names of the table's key attributes."""
        return tuple(part["AttributeName"] for part in self._described["KeySchema"])

    @cached_property
    def _described(self) -> Mapping[str, Any]:
        return describe_table(self.client, self.table, "write")

    def _block(self, units_per_action: float) -> int:
        """How many actions five seconds of the rate write."""
        return min(max(math.ceil(self.rate * _BLOCK_SECONDS / max(units_per_action, 1.0)), 1), _BLOCK)

    @property
    def _threads(self) -> int:
        if self.workers is not None:
            return self.workers
        return min(max(math.ceil(self.rate / 25 * _BATCH_SECONDS), 1), MOST_WORKERS)

    @cached_property
    def rate(self) -> float:
        """Write units per second that the work wants; a share is one of the capacity of now."""
        return self.followed.rate()

    @cached_property
    def followed(self) -> FollowedRate:
        """What keeps the work at its rate."""
        return follow(
            self.pacer or Pacer(starts_full=False),
            self.write,
            table=self.table,
            dimension=Dimension.WRITE,
            client=self.client,
            start=read_start(self.start),
            allow_throttles=self.allow_throttles,
            coordinator=self.coordinator,
            session=self.session,
        )


@dataclass(slots=True)
class BlockWriter:
    """Writes blocks of actions, and comes back when a block is through.

    Attributes:
        sender: Sends batches.
        keys: The names of the table's key attributes.
        pool: The threads that send.
    """

    sender: BatchSender
    keys: tuple[str, ...]
    pool: ThreadPoolExecutor

    def write(self, actions: Sequence[Action], first: int, reject: Callable[[Rejected], None]) -> Sent:
        """Write actions, the first of which has the number *first*; those that are not taken go to *reject*."""
        found = [job_of(first + number, action) for number, action in enumerate(actions)]
        sent = Sent(rejected=tuple(each for each in found if isinstance(each, Rejected)))
        for lap in _laps((each for each in found if isinstance(each, WriteJob)), self.keys):
            # each in a copy of the caller's context: traces and the like see one piece of work
            batches = [(copy_context(), batch) for batch in batches_of(lap)]
            sent = sum(self.pool.map(lambda each: each[0].run(self.sender.send, each[1]), batches), sent)
        for each in sorted(sent.rejected, key=lambda one: one.number):
            reject(each)
        return sent


def _laps(jobs: Iterable[WriteJob], keys: tuple[str, ...]) -> Iterator[list[WriteJob]]:
    """Yield the jobs so that no lap has two of the same key, and those of a key are in order; each lap is shuffled."""
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
    """A key's value; numbers that are equal are the same key."""
    if isinstance(value, Mapping) and "N" in value:
        # what is no number is for DynamoDB to refuse
        with suppress(TypeError, ValueError):
            return float(value["N"])
    return value


def refuse(rejected: Rejected) -> None:
    """End the writes at the first action that DynamoDB does not take; raises `PacedWorkError`."""
    raise PacedWorkError(
        f"write: action {rejected.number:,}: {rejected.why}; give reject to go on without such actions"
    )
