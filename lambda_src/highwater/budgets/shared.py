"""A budget that several workers share: its record in the coordinator's table, and this worker's leases of it."""

from __future__ import annotations

import atexit
import itertools
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final, Literal

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from highwater.budgets.shares import Member, live_members, members_of_text, members_text, renewed, renews_at, without
from highwater.bulk.sharing import Lane, Share, SharedBudgetError, WorkEndedError
from highwater.calls.attempts import BUDGET_SECONDS, LOST_WRITE, RENEWED, client_config
from highwater.calls.records import Item, Key, Records
from highwater.client.coordinator import CoordinatorClient, CoordinatorNotFoundError
from highwater.client.sessions import check_session, renewed_in_forks, session_apart
from highwater.core.names import MOST_BUDGET_CHARACTERS, TTL_ATTRIBUTE, budget_partition
from highwater.core.units import NANOSECONDS

_LOG: Final = logging.getLogger("highwater.pace")
_MILLISECOND: Final = 1_000_000
# A lost write against another worker's is repeated so often
_ATTEMPTS: Final = 10
_COMPLAINT_SECONDS: Final = 60
_TIMEOUTS: Final = (2, 3)
_KEPT_SECONDS: Final = 86_400
_NEVER: Final = 10**30
# After these errors of a first request no other one succeeds before somebody has changed the role or the app
_LASTING_ERRORS: Final = frozenset({"AccessDeniedException", "ResourceNotFoundException", "ValidationException"})
# of the demand that was seen, weight of the newest interval, and what is asked for beyond it
_WEIGHT: Final = 0.5
_SPARE: Final = 1.25
WhenLost = Literal["stop", "known share"]


@dataclass(slots=True)
class _Lease:
    """This worker's lease of one lane; times are of the monotonic clock, in nanoseconds."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    held: Share = field(default_factory=Share)
    lost: Share | None = None
    renews_at: int = -1
    asks_at: int = -1
    known: int = 0
    wants: int = 0
    demand: float = 0.0
    spent_before: int = 0
    since: int = -1
    requests: int = 0
    waited: int = 0
    waiting: int = 0
    renewals: int = 0
    # the record as this worker wrote it last
    record: list[Member] = field(default_factory=list)


@dataclass(slots=True)
class AwsTime:
    """AWS's time, by the answers of AWS that were heard; this machine's before there was one.

    Attributes:
        clock: Monotonic clock, in nanoseconds.
        wall: Seconds since 1970.
    """

    clock: Callable[[], int] = lambda: time.monotonic_ns()
    wall: Callable[[], float] = lambda: time.time()
    # AWS's time in milliseconds, and the monotonic clock when it was told
    _told: tuple[int, int] | None = None

    def hear(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Remember AWS's time, to the second, which an answer has; return the answer."""
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date is not None:
            self._told = round(parsedate_to_datetime(date).timestamp() * 1_000), self.clock()
        return answer

    def now(self) -> int:
        """Return the time in milliseconds since 1970."""
        if self._told is None:
            return round(self.wall() * 1_000)
        told, at = self._told
        return told + (self.clock() - at) // _MILLISECOND


def records_session(session: Any) -> boto3.Session:
    """Return a session for a coordinator's records, with the credentials of *session*, by default of a new one."""
    # hooks of the caller's session would pace, or meter, what this sends
    given = session or boto3.Session()
    return session_apart(given.profile_name, given.region_name, given.get_credentials())


def records_client(apart: boto3.Session, attempts: int) -> Any:
    """Return the DynamoDB client for a coordinator's records, which sends a request so many times at most."""
    return apart.client("dynamodb", config=client_config(attempts, _TIMEOUTS))


@dataclass(eq=False, kw_only=True)
class SharedBudget:
    """One budget for many workers: each leases a share of it, and keeps to it.

    There is one record for each table, or index that is read, and dimension, in the coordinator's table. A worker's
    share depends on what it uses and what the others use: nobody gets more than it asks for, and what is left over goes
    to those that ask for more. Together the workers read and write the record about once a second each, for 2 to 30 of
    them; a new worker waits up to half of a lease, which is 2 seconds for each worker, until others have made room.

    In any window of W seconds, all workers together consume at most rate * (W + 1) units, and what was under way when a
    share shrank or a lease ended. Nothing is saved up without a lease, and each lease begins with nothing. A worker
    that is killed or frozen keeps its share until its lease ends, at most a minute; one that wakes up later does not
    send before it has a new lease.

    Attributes:
        name: The budget's name, 1 to 121 characters. Workers with the same name, of the same table and dimension,
            share; each tells the rate of the whole budget, and the lowest counts.
        coordinator: The coordinator whose table has the record. By default the only one in the account and region.
        session: The boto3 session whose credentials are used. By default a new one.
        when_lost: What to do once the lease has ended and the table does not answer: `stop`, which waits until it does,
            for batch work; or `known share`, the rate divided by the number of workers known last, for services.
        workers: For `known share`, the most workers that there may ever be at once, 1 or more. Without a lease the rate
            is divided by so many at least, also by a worker that starts while the table does not answer. By default
            such a worker waits for its first lease, as it cannot know how many others have started.
        clock: Monotonic clock, in nanoseconds.
        wall: Seconds since 1970.
        pause: Sleeps for the given number of seconds.
        table: The name of the table with the record. By default the coordinator's.
        connect: Makes the DynamoDB client. By default from the session's credentials.

    Example:
        ```python
        budget = highwater.budgets.SharedBudget(name="nightly")
        highwater.pace(session, write=2_000, table="orders", pacer=highwater.Pacer(shared=budget))
        ```
    """

    name: str
    coordinator: str | None = None
    session: Any = None
    when_lost: WhenLost = "stop"
    workers: int | None = None
    clock: Callable[[], int] = lambda: time.monotonic_ns()
    wall: Callable[[], float] = lambda: time.time()
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds)
    table: str | None = None
    connect: Callable[[], Any] | None = None
    _id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _leases: dict[Lane, _Lease] = field(default_factory=dict)
    _making: threading.RLock = field(default_factory=threading.RLock)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _dynamodb: Any = None
    _complained_at: float = -float("inf")
    _time: AwsTime = field(init=False)

    def __post_init__(self) -> None:
        """Raise `ValueError` for a name, *when_lost* or *workers* not allowed, `TypeError` for another session."""
        if not 1 <= len(self.name) <= MOST_BUDGET_CHARACTERS:
            message = f"budget: name: got {self.name[:120]!r}, allowed: 1 to {MOST_BUDGET_CHARACTERS} characters"
            raise ValueError(message)
        if self.when_lost not in ("stop", "known share"):
            message = f"budget {self.name}: when_lost: got {self.when_lost!r}, allowed: 'stop', 'known share'"
            raise ValueError(message)
        is_number = isinstance(self.workers, int) and self.workers >= 1
        if self.workers is not None and (not is_number or self.when_lost != "known share"):
            message = f"got {self.workers} with when_lost={self.when_lost!r}, allowed: 1 or more with 'known share'"
            raise ValueError(f"budget {self.name}: workers: {message}")
        check_session(self.session, "budget: session")
        self._time = AwsTime(lambda: self.clock(), lambda: self.wall())
        _BUDGETS.add(self)

    def enter(
        self,
        lane: Lane,
        rate: int,
        spent: int,
        percent: int = 100,
        is_stopped: threading.Event | None = None,
    ) -> Share:
        """Return this worker's share of a lane; waits until it has one.

        Args:
            lane: The table, the index if it is read, and the dimension.
            rate: The rate of the whole budget, in thousandths of a unit per second.
            spent: What this worker has consumed so far, in thousandths of a unit.
            percent: How much of its share it uses at most, 1 to 100, since requests were throttled.
            is_stopped: Ends the wait within a second once set. By default the wait lasts until there is a share.

        Raises `SharedBudgetError` if the record was never reached, and another try would not help, and
        `WorkEndedError` if *is_stopped* is set before there is a share.
        """
        lease = self._lease(lane)
        while True:
            now, held = self.clock(), lease.held
            if held.is_live(now, self.wall()) and held.milliunits:
                # while another thread renews, the others go on
                if now < lease.renews_at or not lease.lock.acquire(blocking=False):
                    return held
            else:
                lease.lock.acquire()
            try:
                self._renew_if_due(lane, lease, rate, spent, percent)
                held = lease.held
                if held.is_live(self.clock(), self.wall()):
                    if held.milliunits:
                        return held
                elif (known := self._known(lease)) and self.clock() < lease.asks_at:
                    return self._without(lease, max(rate // known, 1))
                now = self.clock()
                due = max(lease.asks_at, lease.renews_at if held.is_live(now, self.wall()) else 0)
                if is_stopped is not None and is_stopped.is_set():
                    raise WorkEndedError("the work has ended")
                # in steps, so that a worker that is to stop does so
                self.pause(max(min(due - now, NANOSECONDS), _MILLISECOND) / NANOSECONDS)
            finally:
                lease.lock.release()

    def may_send(self, lane: Lane) -> bool:
        """Whether the worker has a share of a lane now, by a lease or, after it was lost, as `when_lost` says."""
        lease = self._lease(lane)
        return lease.lost is not None or (lease.held.milliunits > 0 and lease.held.is_live(self.clock(), self.wall()))

    def note(self, lane: Lane, *, has_waited: bool) -> None:
        """Count a request by its first attempt, and whether that had to wait; the caller leaves retries out."""
        lease = self._lease(lane)
        lease.requests += 1
        lease.waited += has_waited

    @contextmanager
    def waiting(self, lanes: Iterable[Lane]) -> Iterator[None]:
        """Count a request as one that has to wait, at each renewal while the block runs."""
        leases = [self._lease(lane) for lane in lanes]
        for lease in leases:
            lease.waiting += 1
        try:
            yield
        finally:
            for lease in leases:
                lease.waiting -= 1

    def renewals(self, lane: Lane) -> int:
        """Return how often this worker has written the record."""
        return self._lease(lane).renewals

    def leave(self, lane: Lane | None = None) -> None:
        """Give the shares back, of one lane or of all; nothing is raised. The next request joins again.

        A process does so too when it ends, unless it is killed.
        """
        for each in [lane] if lane is not None else list(self._leases):
            lease = self._leases.pop(each, None)
            if lease is not None and lease.renewals and lease.held.is_live(self.clock(), self.wall()):
                with suppress(Exception):
                    self._change(each, lambda members, _: (None, without(members, self._id)))
        with self._making:
            if not self._leases:
                # what is registered is kept for as long as the process, and a process may do many pieces of work
                atexit.unregister(self.leave)

    def begin_anew(self) -> None:
        """Begin as a worker of its own; called by itself in forked processes."""
        self._id, self._leases, self._making = uuid.uuid4().hex[:12], {}, threading.RLock()
        self._dynamodb = None

    def _known(self, lease: _Lease) -> int:
        """Return by how many workers the rate is divided without a lease; 0 if nothing is sent then."""
        return max(lease.known, self.workers or 0) if self.when_lost == "known share" else 0

    def _without(self, lease: _Lease, milliunits: int) -> Share:
        """Return the share of a worker that goes on without a lease."""
        if lease.lost is None or lease.lost.milliunits != milliunits:
            number = next(self._numbers)
            term = number if lease.lost is None else lease.lost.term
            lease.lost = Share(milliunits, _NEVER, float("inf"), term, number)
        return lease.lost

    def _lease(self, lane: Lane) -> _Lease:
        found = self._leases.get(lane)
        if found is None:
            with self._making:
                if not self._leases:
                    atexit.register(self.leave)
                found = self._leases.setdefault(lane, _Lease())
        return found

    def _renew_if_due(self, lane: Lane, lease: _Lease, rate: int, spent: int, percent: int) -> None:
        now = self.clock()
        if now < lease.asks_at or (lease.held.is_live(now, self.wall()) and now < lease.renews_at):
            return
        wants = self._wants(lease, now, rate, spent, percent)
        wall = self.wall()

        def renew(members: list[Member], at: int) -> tuple[Member, list[Member]]:
            own, after = renewed(members, self._id, now=at, rate=rate, wants=wants, last=lease.record)
            # What is given up is not used from now on: the write may arrive although its answer is lost or late, and
            # another worker may have it then. What is gained is used once the answer says so.
            if own.share < lease.held.milliunits:
                lease.held = replace(lease.held, milliunits=own.share, number=next(self._numbers))
            return own, after

        try:
            own, members = self._change(lane, renew)
        except (ClientError, BotoCoreError, CoordinatorNotFoundError, _TooManyWritersError) as error:
            self._bear(lease, error)
            return
        assert own is not None  # noqa: S101 - `renewed` returns one
        at = self._time.now()
        # the lease began when the request was sent, at the latest
        length = own.until - at
        before, number = lease.held, next(self._numbers)
        is_unbroken = before.milliunits > 0 and before.is_live(self.clock(), self.wall())
        term = before.term if is_unbroken else number
        lease.held = Share(own.share, now + length * _MILLISECOND, wall + length / 1_000, term, number)
        lease.lost, lease.known, lease.record = None, len(live_members(members, at)), members
        lease.renews_at = now + max(renews_at(own, members, at) - at, 1) * _MILLISECOND
        lease.asks_at = lease.renews_at if own.share else self.clock() + round(BUDGET_SECONDS * NANOSECONDS)
        lease.requests, lease.waited, lease.since, lease.spent_before = 0, 0, self.clock(), spent
        lease.renewals += 1

    def _wants(self, lease: _Lease, now: int, rate: int, spent: int, percent: int) -> int:
        """Return what this worker would use: all at the start of work, or if half of its requests had to wait.

        While throttles hold it below its share, requests wait for that: then it asks for no more than it did before.
        """
        is_new = not lease.held.milliunits or not lease.held.is_live(now, self.wall())
        waited, requests = lease.waited + lease.waiting, lease.requests + lease.waiting
        if is_new or (percent == 100 and waited * 2 >= max(requests, 1)):
            lease.wants = rate
            return rate
        # the share of which it used its percentage
        used = (spent - lease.spent_before) * NANOSECONDS * 100 / (max(now - lease.since, 1) * percent)
        lease.demand += _WEIGHT * (used - lease.demand) if lease.demand else used
        most = rate if percent == 100 else min(lease.wants, rate)
        lease.wants = min(round(max(lease.demand, used) * _SPARE), most)
        return lease.wants

    def _bear(self, lease: _Lease, error: Exception) -> None:
        """Go on with the present lease after a renewal that failed, unless nothing but a change by hand would help."""
        code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else ""
        if not lease.renewals and (code in _LASTING_ERRORS or isinstance(error, CoordinatorNotFoundError)):
            fix = "give the role grant_budget in the CDK app, and deploy"
            raise SharedBudgetError(f"budget {self.name}: its record cannot be written: {error}; {fix}") from error
        lease.asks_at = self.clock() + round(BUDGET_SECONDS * NANOSECONDS)
        is_new = not 0 <= self.wall() - self._complained_at < _COMPLAINT_SECONDS
        if is_new:
            self._complained_at = self.wall()
        _LOG.log(
            logging.WARNING if is_new else logging.DEBUG, "budget %s: no lease could be renewed: %s", self.name, error
        )

    def _change(
        self, lane: Lane, change: Callable[[list[Member], int], tuple[Member | None, list[Member]]]
    ) -> tuple[Member | None, list[Member]]:
        """Change the record; raises `_TooManyWritersError` after ten writes that lost against other workers'."""

        def changed(item: Item) -> tuple[tuple[Member | None, list[Member]], Item]:
            # a record that somebody else has changed may have anything there; it is replaced like any other
            own, members = change(members_of_text(item.get("members", {}).get("S", "[]")), self._time.now())
            expires = self._time.now() // 1_000 + _KEPT_SECONDS
            return (own, members), {"members": {"S": members_text(members)}, TTL_ATTRIBUTE: {"N": str(expires)}}

        return self._records().change(self._key(lane), changed, self._again)

    def _again(self, attempt: int) -> None:
        if attempt == _ATTEMPTS:
            raise _TooManyWritersError(f"{_ATTEMPTS} writes lost against other workers'")
        self.pause(LOST_WRITE.seconds(attempt))

    def _key(self, lane: Lane) -> Key:
        table, index, dimension = lane
        where = table if index is None else f"{table} {index}"
        return budget_partition(self.name), f"{where} {dimension}"

    def _records(self) -> Records:
        if self._dynamodb is None:
            with self._making:
                connect = self.connect
                if self.table is None or connect is None:
                    # a session takes a while to make; a budget that is given both needs none
                    apart = records_session(self.session)
                    coordinator = CoordinatorClient(coordinator=self.coordinator, session=apart)
                    self.table = self.table or coordinator.pulse_table
                    connect = connect or partial(records_client, apart, RENEWED)
                self._dynamodb = connect()
        return Records(str(self.table), self._dynamodb, self._time.hear)


class _TooManyWritersError(Exception):
    """The record was written by others between each read and write."""


_BUDGETS: Final = renewed_in_forks(SharedBudget.begin_anew)
