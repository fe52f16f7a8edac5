"""`highwater.boost`: requests capacity before a job starts, renews the lease while the job runs, and releases it."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, TypeVar

from highwater.client.coordinator import (
    BoostError,
    BoostRefusedError,
    CoordinatorClient,
    CoordinatorUnavailableError,
)
from highwater.client.sessions import check_session

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GrantedTarget:
    """The units that a boost was granted for one target.

    Attributes:
        target: The table or index and dimension, such as `table write`.
        asked: Units per second requested.
        units: Units per second granted, 0 for none.
        limits: The reasons why less was granted than requested, a sentence each; empty if all was granted.
        usd_per_hour: What the granted units cost per hour in US dollars; `None` where the price is not known.

    Example:
        ```python
        with highwater.boost("orders", write=8_000, minutes=30) as boost:
            for granted in boost.answer.targets:
                print(f"{granted.target}: {granted.units} of {granted.asked} units/s")
        ```
    """

    target: str
    asked: int
    units: int
    limits: tuple[str, ...]
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class BoostAnswer:
    """The answer to a request for a boost.

    Attributes:
        id: The boost's id, for `renew`, `release` and `highwater boost release`.
        table: The table's name.
        outcome: `whole`, `part` or `refused`.
        start: The start of the lease.
        end: The end of the lease, unless it is renewed or released.
        billed_hours: The clock hours for which the units are billed, from the start until auto scaling has lowered the
            capacity, some 17 minutes after the end.
        targets: The units granted for each target: the table first, then, for writes, its indexes.
        notes: Remarks for the job, such as that DynamoDB has to add partitions before it raises the capacity.

    Example:
        ```python
        booked = highwater.boost("orders", write=8_000, minutes=30, at=two_o_clock)
        answer = booked.begin()
        print(answer.outcome, *answer.lines())
        ```
    """

    id: str
    table: str
    outcome: str
    start: datetime
    end: datetime
    billed_hours: int
    targets: tuple[GrantedTarget, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> BoostAnswer:
        """Read the coordinator's JSON."""
        return cls(
            document["id"],
            document["table"],
            document["outcome"],
            datetime.fromisoformat(document["start"]),
            datetime.fromisoformat(document["end"]),
            document["billed_hours"],
            tuple(
                GrantedTarget(
                    each["target"],
                    each["asked"],
                    each["units"],
                    tuple(limit["sentence"] for limit in each["limits"]),
                    each["usd_per_hour"],
                )
                for each in document["targets"]
            ),
            tuple(document.get("notes", ())),
        )

    @property
    def usd_per_hour(self) -> float | None:
        """The cost of all its targets per hour in US dollars; `None` where a price is not known."""
        prices = [each.usd_per_hour for each in self.targets]
        return None if None in prices else sum(price for price in prices if price is not None)

    @property
    def usd(self) -> float | None:
        """The cost of all its targets in US dollars until capacity is lowered; `None` where a price is not known."""
        return None if self.usd_per_hour is None else self.usd_per_hour * self.billed_hours

    def lines(self) -> list[str]:
        """Return the answer in sentences; targets with the same answer for the same cause are in one."""
        lines = []
        for alike in _alike(self.targets, lambda each: (each.units, each.units and each.asked, each.limits)):
            units, limits = alike[0].units, alike[0].limits
            names = ", ".join(each.target for each in alike)
            asked = " and ".join(dict.fromkeys(f"{each.asked:,}" for each in alike))
            granted = f"{units:,} units/s" if units else "nothing"
            of = "" if units == alike[0].asked else f" of {asked}"
            lines.append(f"{self.table}, {names}: {granted}{of} until {self.end:%Y-%m-%d %H:%M:%S} UTC")
            lines.extend(f"  {limit}" for limit in limits)
        units = sum(each.units for each in self.targets)
        # 0.0 for a boost that is refused
        if units and self.usd_per_hour != 0.0:
            hours, per_hour = "1 hour" if self.billed_hours == 1 else f"{self.billed_hours} hours", self.usd_per_hour
            price = f"{units:,} units/s" if per_hour is None else f"{per_hour:,.2f} USD"
            cost = f"{units * self.billed_hours:,} unit hours" if self.usd is None else f"about {self.usd:,.2f} USD"
            until = "some 17 minutes after the end, when auto scaling has lowered it"
            lines.append(f"{cost}: {hours} at {price}, each billed at its highest capacity, until {until}")
        for notes in _alike(self.notes, lambda note: note.partition(": ")[2] or note):
            _, colon, remark = notes[0].partition(": ")
            names = ", ".join(dict.fromkeys(note.partition(": ")[0] for note in notes))
            lines.append(f"{names}{colon}{remark}")
        return lines


def _alike(each: Iterable[T], key: Callable[[T], Hashable]) -> Iterable[list[T]]:
    """Group by the key, in the order of the first of each group."""
    groups: dict[Hashable, list[T]] = {}
    for one in each:
        groups.setdefault(key(one), []).append(one)
    return groups.values()


@dataclass(frozen=True, slots=True)
class BoostedTarget:
    """How far the capacity of one target has come, in units per second.

    Attributes:
        target: The table or index and dimension, such as `table write`.
        wanted: The floor that the plan and all live boosts ask for now.
        floor: Its present floor; `None` where no scalable target is registered.
        provisioned: Its provisioned capacity.
        is_ready: Whether floor and capacity have reached *wanted*, and the table is ACTIVE.

    Example:
        ```python
        for target in boost.state().targets:
            print(f"{target.target}: {target.provisioned} of {target.wanted} units/s")
        ```
    """

    target: str
    wanted: int
    floor: int | None
    provisioned: int
    is_ready: bool


@dataclass(frozen=True, slots=True)
class BoostState:
    """How far the capacity of a boost has come.

    Attributes:
        is_ready: Whether the capacity can be used.
        targets: The state of each target.
        notes: Remarks for the job.

    Example:
        ```python
        boost = highwater.boost("orders", write=8_000, minutes=30, on_progress=lambda state: print(state.line()))
        with boost:
            load()
        ```
    """

    is_ready: bool
    targets: tuple[BoostedTarget, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> BoostState:
        """Read the coordinator's JSON."""
        targets = tuple(
            BoostedTarget(each["target"], each["wanted"], each["floor"], each["provisioned"], each["is_ready"])
            for each in document["targets"]
        )
        return cls(document["is_ready"], targets, tuple(document["notes"]))

    def line(self) -> str:
        """Return the state in one line: for each target its capacity, and the capacity it is to reach."""
        return ", ".join(f"{each.target} {each.provisioned:,} of {each.wanted:,}" for each in self.targets)


# Between questions whether the capacity is there: half as long again each time
_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS, _POLL_FACTOR = 2.0, 10.0, 1.5
# How long the end of a block waits for its lease to be released
_RELEASE_SECONDS: Final = 2.0
_LOG: Final = logging.getLogger("highwater.boost")
# A lease is renewed when a third of it is left; a renewal that fails is tried twice more before the lease ends.
_RENEWED_AFTER: Final = 2 / 3
_RETRIED_AFTER: Final = 1 / 10
_OVER: Final = 410


class BoostNotReadyError(BoostError):
    """The capacity has not come in time."""


@dataclass(kw_only=True)
class Boost:
    """One boost, made by `highwater.boost`: a context manager, for `with` and for `async with`.

    The block begins once the capacity can be used. The lease is renewed while the block runs, up to a day, and released
    at its end, also after an exception. If the process dies, the lease expires. What it forks releases nothing.

    Attributes:
        table: The table's label.
        members: The request's members, in the form that the coordinator accepts.
        minutes: The length of the lease.
        client: Sends requests to the coordinator.
        timeout: How long to wait for the capacity.
        on_progress: Called with the boost's state while waiting.
        id: The boost's id. Requests are idempotent by it: one that arrives twice is one boost.
        clock: Monotonic clock, in seconds.
        answer: The coordinator's answer, `None` before `begin`.

    Example:
        ```python
        boost = highwater.boost("orders", write=8_000, minutes=30)
        async with boost:
            await load()
        ```
    """

    table: str
    members: dict[str, Any]
    minutes: int
    client: CoordinatorClient
    timeout: timedelta
    on_progress: Callable[[BoostState], None] | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    clock: Callable[[], float] = lambda: time.monotonic()
    answer: BoostAnswer | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)
    _renewer: threading.Thread | None = None
    _begun_at: float = 0.0
    # whose boost it is: a forked process that leaves the block does not end that of its parent
    _process: int = field(default_factory=os.getpid)

    def begin(self) -> BoostAnswer:
        """Request the capacity and return the answer, without waiting for the capacity.

        Raises:
            BoostRefusedError: Nothing is granted.
            CoordinatorUnavailableError: No coordinator is found, or it does not answer.
        """
        self._begun_at, self._process = self.clock(), os.getpid()
        document = self.client.send("begin", id=self.id, table=self.table, minutes=self.minutes, **self.members)
        self.answer = BoostAnswer.from_document(document)
        if self.answer.outcome == "refused":
            raise BoostRefusedError(409, "; ".join(line.strip() for line in self.answer.lines()))
        return self.answer

    def state(self) -> BoostState:
        """Request the boost's state; raises the errors of `CoordinatorClient.send`."""
        return self._state(self.client)

    def wait(self) -> BoostState:
        """Wait until the capacity can be used. A coordinator that does not answer is asked again until the timeout.

        Raises:
            BoostNotReadyError: The capacity has not come in time; the lease continues.
            BoostRefusedError: The boost has ended, or was never granted.
        """
        until = self.clock() + self.timeout.total_seconds()
        # one that does not answer is asked again by this loop
        client, poll = self.client.with_attempts(1), _FIRST_POLL_SECONDS
        while True:
            if self._ended.is_set():
                raise BoostNotReadyError(f"{self.table}: boost {self.id} was given back")
            try:
                state = self._state(client)
            except CoordinatorUnavailableError as error:
                why = str(error)
            else:
                if self.on_progress is not None:
                    self.on_progress(state)
                if state.is_ready:
                    return state
                why = "; ".join((state.line(), *state.notes))
            # many jobs may start at one time
            pause = poll * random.uniform(0.75, 1.25)  # noqa: S311 - not for security
            if self.clock() + pause > until:
                raise BoostNotReadyError(f"{self.table}: the capacity has not come in {self.timeout}: {why}")
            self._ended.wait(pause)
            poll = min(poll * _POLL_FACTOR, _LAST_POLL_SECONDS)

    def renew(self) -> None:
        """Extend the lease to its full length from now; raises the errors of `CoordinatorClient.send`."""
        self.client.send("renew", id=self.id, table=self.table, minutes=self.minutes)

    def release(self) -> None:
        """End the lease; raises the errors of `CoordinatorClient.send`."""
        self._ended.set()
        self.client.send("release", id=self.id, table=self.table)

    def keep_renewed(self) -> None:
        """Start a thread that renews the lease until `release`, unless the lease is only for the start of the job."""
        if self.members.get("hold") == "start" or self._ended.is_set():
            return
        self._renewer = threading.Thread(target=self._renew_on, name=f"highwater-boost-{self.id}", daemon=True)
        self._renewer.start()

    def __enter__(self) -> Boost:
        """Request the capacity, wait for it, and start renewing the lease; raises the errors of `begin` and `wait`."""
        try:
            self.begin()
            self.wait()
        except BaseException as error:
            # it may have been granted although its answer was lost; unlike one that is refused or over
            is_granted = self.answer is not None and self.answer.outcome != "refused"
            if not isinstance(error, BoostRefusedError) or (is_granted and error.status != _OVER):
                self._release_quietly()
            raise
        self.keep_renewed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lease. If that fails, no error is raised: the lease expires by itself.

        A coordinator that does not answer is waited for two seconds, then asked on in the background.
        """
        self._release_quietly()

    async def __aenter__(self) -> Boost:
        """Do what `__enter__` does, without blocking the event loop."""
        try:
            return await asyncio.to_thread(self.__enter__)
        except asyncio.CancelledError:
            # the thread still runs, and ends once it finds the boost released
            await asyncio.shield(asyncio.to_thread(self._release_quietly))
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do what `__exit__` does, without blocking the event loop."""
        await asyncio.to_thread(self._release_quietly)

    def _renew_on(self) -> None:
        length = self.minutes * 60
        due = self._begun_at + length * _RENEWED_AFTER
        while not self._ended.wait(max(due - self.clock(), 0)):
            try:
                self.renew()
                due = self.clock() + length * _RENEWED_AFTER
            except Exception as error:
                # whatever the error, such as that of a provider of credentials, the next renewal may succeed
                if isinstance(error, BoostRefusedError) and error.status == _OVER:
                    if not self._begin_again():
                        return
                    due = self._begun_at + length * _RENEWED_AFTER
                    continue
                _LOG.info("boost %s of %s: not renewed, asked again soon: %s", self.id, self.table, error)
                due = self.clock() + length * _RETRIED_AFTER

    def _begin_again(self) -> bool:
        """Begin the boost anew because its lease is not there any more; return whether it is to be renewed.

        The lease was lost with its table. One that was released, or that expired while the process stood still, stays
        over: the coordinator refuses its id for an hour.
        """
        try:
            self.begin()
        except BoostError as error:
            # the job continues with the capacity that is left
            _LOG.warning("boost %s of %s has ended: %s", self.id, self.table, error)
            return False
        if self._ended.is_set():
            self._try_release()
            return False
        _LOG.warning("boost %s of %s had ended, and was begun again", self.id, self.table)
        return True

    def _state(self, client: CoordinatorClient) -> BoostState:
        return BoostState.from_document(client.send("status", id=self.id, table=self.table))

    def _release_quietly(self) -> None:
        """Release the lease; wait two seconds at most, and go on in the background while the process runs."""
        if self._process != os.getpid():
            return
        self._ended.set()
        release = threading.Thread(target=self._try_release, name=f"highwater-release-{self.id}", daemon=True)
        try:
            release.start()
        except RuntimeError:
            # the interpreter is ending
            self._released.set()
        self._released.wait(_RELEASE_SECONDS)

    def _try_release(self) -> None:
        try:
            self.release()
        except BoostError as error:
            _LOG.info("boost %s of %s: not released, so it ends by itself: %s", self.id, self.table, error)
        finally:
            self._released.set()


def boost(
    table: str,
    *,
    minutes: int,
    write: int | None = None,
    read: int | None = None,
    write_total: int | None = None,
    read_total: int | None = None,
    write_rate: int | None = None,
    read_rate: int | None = None,
    index: str | None = None,
    at: datetime | None = None,
    hold: str = "lease",
    reason: str = "",
    is_all_or_nothing: bool = False,
    timeout: timedelta = timedelta(minutes=5),
    on_progress: Callable[[BoostState], None] | None = None,
    coordinator: str | None = None,
    session: Any = None,
) -> Boost:
    """Request capacity of a table for as long as a block runs.

    At least one of the six sizes is needed, and at most one for each dimension. A boost of a table's writes boosts its
    indexes too, by each index's share of the table's consumed write units in the last day. Nothing is sent before the
    block is entered, or `begin` is called.

    Args:
        table: The table's name; `eu-west-1/orders` for a replica in another region than the coordinator's.
        minutes: The length of the lease, 1 to 1,440. It is renewed while the block runs; if the process dies, the
            capacity stays until the lease expires.
        write: Write units per second to add to the floor.
        read: Read units per second to add to the floor.
        write_total: Write units per second that the floor is to reach in total. Adds nothing where plan and other
            boosts reach it already.
        read_total: The same for reads.
        write_rate: Write units per second that the job will consume on top of the present traffic. The boost is larger,
            so that the utilization stays at the table's target.
        read_rate: The same for reads.
        index: The index to boost. By default the table.
        at: The aware instant at which the job starts, for a boost that is booked ahead with `begin`. By default now.
        hold: `lease`, the default, or `start`: the lease ends ten minutes after the start; after that the job's own
            consumption keeps the capacity up.
        reason: Why, for the log; up to 200 characters.
        is_all_or_nothing: Grant nothing unless all can be granted. By default the block runs with a part; see
            `Boost.answer`.
        timeout: How long to wait for the capacity. By default five minutes.
        on_progress: Called with the state of the boost while waiting.
        coordinator: Name or URL of the coordinator. By default the one of HIGHWATER_BOOST_URL, or the only one.
        session: The boto3 session to use. By default the default one.

    Raises:
        TypeError: *session* is not boto3's.

    Example:
        ```python
        with highwater.boost("orders", write=8_000, minutes=30, reason="nightly load"):
            load()
        ```
    """
    check_session(session, "boost: session")
    members: dict[str, Any] = {
        "write": write,
        "read": read,
        "write_total": write_total,
        "read_total": read_total,
        "write_rate": write_rate,
        "read_rate": read_rate,
        "index": index,
        "at": None if at is None else at.isoformat(),
        "hold": hold,
        "reason": reason,
        "is_all_or_nothing": is_all_or_nothing,
    }
    return Boost(
        table=table,
        members=members,
        minutes=minutes,
        client=CoordinatorClient(coordinator=coordinator, session=session),
        timeout=timeout,
        on_progress=on_progress,
    )
