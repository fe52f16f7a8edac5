"""Budgets of capacity units by table and index, shared by a process's threads; also retries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

from highwater.bulk.in_flight import MOST_IN_FLIGHT
from highwater.bulk.sharing import Lane, Share, Sharing, WorkEndedError
from highwater.calls.attempts import ONCE, PAID_REQUEST, client_config
from highwater.client.hooks import Throttle
from highwater.client.sessions import check_session, renewed_in_forks
from highwater.core.errors import HighwaterError
from highwater.core.pacing.brake import Brake
from highwater.core.pacing.bucket import PacingBucket
from highwater.core.plan.plan import TargetKey
from highwater.core.throttles import ThrottleCause
from highwater.core.units import MILLIUNITS, NANOSECONDS, Dimension
from highwater.rooms import shared_budget

GOES_ON: Final = "start it again with the same checkpoint to go on"
# Attempts of a request that fails for another reason than throttling
TRIES: Final = 8


class PacedWorkError(HighwaterError):
    """A scan, a query of shards, or writes, cannot start or continue."""


def paced_client(session: Any) -> Any:
    """Return a DynamoDB client without retries, made by *session* or by default a new session.

    Each attempt has to be paid for from a budget, so retries are up to the caller. Raises `TypeError` for what is no
    boto3 session.
    """
    check_session(session, "session")
    config = client_config(ONCE, max_pool_connections=MOST_IN_FLIGHT)
    return (session or boto3.Session()).client("dynamodb", config=config)


def describe_table(client: Any, table: str, what: str) -> Mapping[str, Any]:
    """Return DescribeTable's answer; raises `PacedWorkError`, whose message begins with *what*."""
    try:
        found: Mapping[str, Any] = client.describe_table(TableName=table)["Table"]
    except client.exceptions.ResourceNotFoundException:
        region = client.meta.region_name
        raise PacedWorkError(f"{what}: there is no table {table!r} in {region}; give its name and region") from None
    except (ClientError, BotoCoreError) as error:
        raise PacedWorkError(f"{what}: table {table!r} cannot be described: {error}") from error
    return found


def check_workers(workers: int | None, what: str) -> None:
    """Raise `PacedWorkError` for a number of threads that is not allowed; `None` is allowed."""
    if workers is not None and not 1 <= workers <= MOST_IN_FLIGHT:
        raise PacedWorkError(f"{what}: workers: got {workers}, allowed: 1 to {MOST_IN_FLIGHT}")


def may_pass(error: Exception) -> bool:
    """Whether the same request may succeed later, to DynamoDB or to SQS."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
        return "Throttl" in error.response.get("Error", {}).get("Code", "") or status == 429 or status >= 500
    return isinstance(error, ConnectionError | HTTPClientError)


@dataclass(slots=True)
class Retries:
    """The retries of one request, which end after eight attempts that failed.

    Attributes:
        why: Returns what the error that ends them says.
        is_patient: Whether throttled attempts are repeated for as long as it takes. By default they are.
    """

    why: Callable[[Exception], str]
    is_patient: bool = True
    _throttled: int = 0
    _failed: int = 0

    @property
    def has_failed(self) -> bool:
        """Whether an attempt has failed, so that the next one is a retry."""
        return self._throttled + self._failed > 0

    def pause_after(self, error: Exception, *, is_throttled: bool) -> float:
        """Return the seconds to wait before the next attempt; raises `PacedWorkError` if there is to be none."""
        if is_throttled:
            self._throttled += 1
        elif may_pass(error):
            self._failed += 1
        else:
            raise PacedWorkError(self.why(error)) from error
        if self._failed >= TRIES or (self._throttled >= TRIES and not self.is_patient):
            raise PacedWorkError(f"{self.why(error)} (tried {TRIES} times)") from error
        return PAID_REQUEST.seconds(self._throttled if is_throttled else self._failed)


# (table, (index, dimension)): units
Costs = Mapping[tuple[str, TargetKey], float]
LEAST_RATE: Final = 0.001
_LONG_AGO: Final = -(10**30)
_WHOLE: Final = 10**9


class PaceError(HighwaterError, ValueError):
    """A budget or rate that is not valid."""


@dataclass(frozen=True, slots=True)
class Paid:
    """The amounts paid for one attempt, in thousandths of a unit, and whether it had to wait for its budgets."""

    milliunits: Mapping[tuple[str, TargetKey], int]
    has_waited: bool = False


@dataclass(frozen=True, slots=True)
class _Leased:
    """A share, and what part it is of the goal of its lane, in billionths."""

    share: Share
    parts: int


@dataclass(slots=True)
class _Budget:
    """The budget of one table or index.

    `goal` is its rate in thousandths of a unit per second while nothing is throttled, `began` the time at which its
    bucket starts to fill. `is_own` marks an index whose rate was set separately from its table's: *given* by the
    caller, or by *works* that follow the table. `leased` is the part of the goal that this worker leases: its bucket
    fills during that lease, and only then.
    """

    goal: int
    began: int
    is_own: bool = False
    leased: _Leased | None = None
    works: set[int] = field(default_factory=set)
    given: int | None = None
    bucket: PacingBucket = field(init=False)
    brake: Brake = field(default_factory=Brake)
    spent: int = 0
    refused: int = 0

    def __post_init__(self) -> None:
        rate = max(self.goal * self._parts // _WHOLE, 1)
        self.bucket = PacingBucket(rate, _burst(rate), self.began)
        if self.leased is not None:
            self.bucket.begin(self.began, self.leased.share.ends_at)

    @property
    def _parts(self) -> int:
        return _WHOLE if self.leased is None else self.leased.parts

    def follow(self, now: int, leased: _Leased, *, is_new: bool) -> None:
        """Fill by another lease, or by the same one that was renewed."""
        self.leased = leased
        if is_new:
            self.bucket.begin(now, leased.share.ends_at)
        self.bucket.fills_until = leased.share.ends_at
        self.follow_brake(now)

    def follow_brake(self, now: int) -> None:
        rate = max(self.goal * self._parts * self.brake.percent // (_WHOLE * 100), 1)
        self.bucket.change(now, rate, _burst(rate))


@dataclass(slots=True, eq=False, weakref_slot=True)
class Pacer:
    """Keeps a process's requests within budgets; may be used from several threads.

    In any window of W seconds, the process requests at most rate * (W + 1) units of a table or index. Single requests
    may exceed that by their cost beyond one second of the rate, and by their cost beyond the estimate. A request that
    costs more than estimated delays the requests after it, however long that takes.

    Attributes:
        clock: Monotonic clock, in nanoseconds.
        pause: Sleeps for the given number of seconds.
        starts_full: Whether a budget starts with one second of its rate. For scans and writes it starts with nothing,
            so that their first minute is within the rate too. A shared budget always starts with nothing.
        patience: Returns the seconds that a request may wait now: one that has to wait longer for its budgets raises
            `WorkEndedError` at once. By default any time.
        region: The region whose tables are named without it. By default that of the first session or client that is
            paced. A table of another region, `eu-west-1/orders`, has a budget of its own, of the same size unless
            `limit` says otherwise.
        shared: Shares the budgets with other workers: this one keeps to its share of each rate. It goes by the same
            clock, and belongs to one pacer. By default the budgets are its own.
        is_shadow: Whether requests do not wait, and what they would have waited is counted in `shadow_seconds`.
        shadow_seconds: The seconds that all requests together would have waited.

    Example:
        ```python
        shared = highwater.Pacer()
        for session in sessions:
            highwater.pace(session, write=200, table="orders", pacer=shared)
        ```
    """

    clock: Callable[[], int] = lambda: time.monotonic_ns()
    pause: Callable[[float], None] = lambda seconds: time.sleep(seconds)
    starts_full: bool = True
    patience: Callable[[], float] = lambda: float("inf")
    region: str | None = None
    shared: Sharing | None = None
    is_shadow: bool = False
    shadow_seconds: float = 0.0
    _budgets: dict[tuple[str, TargetKey], _Budget] = field(default_factory=dict)
    _defaults: dict[tuple[str | None, Dimension], int] = field(default_factory=dict)
    _shares: dict[Lane, _Leased] = field(default_factory=dict)
    _unbraked: dict[tuple[str, Dimension], set[int]] = field(default_factory=dict)
    # a signal handler may send requests while the thread that it interrupts does
    _lock: Any = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        """Have a forked process wait for no thread of its parent."""
        _PACERS.add(self)

    def _begin_anew(self) -> None:
        """In a forked process, a lock that a thread of the parent held would never be released."""
        self._lock = threading.RLock()

    def label(self, table: str, region: str | None) -> str:
        """Return the name of a table's budget: the table's own, behind its region if that is another one."""
        return table if region in (None, self.region) or self.region is None else f"{region}/{table}"

    def limit(self, table: str | None, dimension: Dimension, rate: float) -> None:
        """Limit a table, and each of its indexes, to *rate* units per second; `None` limits each table that has no
        limit of its own. May be changed while requests are under way; debt stays.

        Raises `PaceError` for a rate below 0.001.
        """
        goal = _milliunits_per_second(rate, f"{dimension} rate")
        with self._lock:
            self._defaults[table, dimension] = goal
            for (name, key), budget in list(self._budgets.items()):
                if not budget.is_own and key[1] is dimension and self._goal(name, key) == goal:
                    budget.goal = goal
                    budget.follow_brake(self.clock())

    def limit_index(
        self, table: str, index: str, dimension: Dimension, rate: float, *, by: object | None = None
    ) -> None:
        """Limit one index to another rate than its table; raises `PaceError` for a rate below 0.001.

        The rate of a work, *by*, lasts until `unlimit_index` for the last work that has set one.
        """
        goal = _milliunits_per_second(rate, f"{dimension} rate of index {index!r}")
        at = (table, (index, dimension))
        with self._lock:
            known = self._budgets.get(at)
            if known is None:
                leased = self._shares.get(self._lane_of(at))
                known = self._budgets[at] = _Budget(goal, self._began(self.clock()), leased=leased)
            known.goal, known.is_own = goal, True
            if by is None:
                known.given = goal
            else:
                known.works.add(id(by))
            known.follow_brake(self.clock())

    def unlimit_index(self, table: str, index: str, dimension: Dimension, *, by: object) -> None:
        """End the rate of a work; after the last one an index has the rate that it was given, or its table's."""
        at = (table, (index, dimension))
        with self._lock:
            known = self._budgets.get(at)
            if known is None:
                return
            known.works.discard(id(by))
            goal = self._goal(*at) if known.given is None else known.given
            if known.works:
                return
            if goal is None:
                # the table has no limit
                del self._budgets[at]
                return
            known.goal, known.is_own = goal, known.given is not None
            known.follow_brake(self.clock())

    def ignore_throttles(self, table: str, dimension: Dimension, *, by: object | None = None) -> None:
        """Do not slow down when requests are throttled by the capacity of this table or its indexes.

        For a work, *by*, until `heed_throttles`.
        """
        with self._lock:
            self._unbraked.setdefault((table, dimension), set()).add(0 if by is None else id(by))

    def heed_throttles(self, table: str, dimension: Dimension, *, by: object) -> None:
        """Slow down again when requests are throttled, unless another work asked not to."""
        with self._lock:
            self._unbraked.get((table, dimension), set()).discard(id(by))

    def wait(self, costs: Costs, *, is_retry: bool = False, is_stopped: threading.Event | None = None) -> Paid:
        """Pay for an attempt and block until it may be sent; attempts are served in the order of their calls.

        A retry is no new demand for a share of the budget: `is_retry` says that the request was paid for before.

        Raises `SharedBudgetError` if the budget is shared, and its record cannot be written at all, and
        `WorkEndedError` within a second of the moment in which *is_stopped* is set; nothing is paid then.
        """
        lanes = [] if self.shared is None else self._lanes(costs)
        has_waited, terms = False, self._enter(lanes, is_stopped)
        while True:
            paid, start = self._reserve(costs)
            has_waited = has_waited or paid.has_waited
            try:
                with nullcontext() if self.shared is None else self.shared.waiting(() if is_retry else lanes):
                    entered = self._wait_until(start, lanes, terms, is_stopped)
                _check_work(is_stopped)
            except BaseException:
                # a request that is never sent costs nothing
                self.settle(paid, {})
                raise
            if entered == terms:
                break
            # it had waited for what another lease would have given
            self.settle(paid, {})
            terms = entered
        if self.shared is not None:
            for lane in () if is_retry else lanes:
                self.shared.note(lane, has_waited=has_waited)
        return Paid(paid.milliunits, has_waited)

    def _reserve(self, costs: Costs) -> tuple[Paid, int]:
        """Pay for an attempt; return what was paid, and when it may be sent."""
        with self._lock:
            now = self.clock()
            price = {at: max(round(units * MILLIUNITS), 1) for at, units in costs.items()}
            found = {at: budget for at in price if (budget := self._budget(at, now)) is not None}
            start = max((budget.bucket.starts_at(now, price[at]) for at, budget in found.items()), default=now)
            for at, budget in found.items():
                budget.bucket.reserve(start, price[at])
            if self.is_shadow:
                self.shadow_seconds += (start - now) / NANOSECONDS
        return Paid({at: price[at] for at in found}, has_waited=start > now), start

    def _wait_until(
        self, start: int, lanes: Iterable[Lane], terms: Mapping[Lane, int], is_stopped: threading.Event | None
    ) -> Mapping[Lane, int]:
        """Wait for a request's turn, or until a lease that it waits under was lost; return the terms of the leases."""
        while not self.is_shadow and (left := (start - self.clock()) / NANOSECONDS) > 0:
            _check_work(is_stopped)
            if left > self.patience():
                raise WorkEndedError("the request would have to wait for too long")
            self.pause(left if is_stopped is None and not lanes else min(left, _STEP_SECONDS))
            entered = self._enter(lanes, is_stopped)
            if entered != terms:
                return entered
        return terms

    def most_at_once(
        self, table: str, index: str | None, dimension: Dimension, is_stopped: threading.Event | None = None
    ) -> float:
        """Return the units that one second pays for now, infinite without a limit; a shared budget is leased first.

        Larger requests go beyond the budget, and all workers may send theirs in the same moment.
        """
        at = (table, (index, dimension))
        self._enter([] if self.shared is None else self._lanes({at: 0.0}), is_stopped)
        with self._lock:
            budget = None if self.is_shadow else self._budget(at, self.clock())
            return float("inf") if budget is None else budget.bucket.burst / MILLIUNITS

    def seconds_until(self, costs: Costs) -> float:
        """Return the seconds that a request would wait now, at the present rates; nothing is paid or leased."""
        with self._lock:
            now = self.clock()
            starts = [
                budget.bucket.starts_at(now, max(round(units * MILLIUNITS), 1))
                for at, units in costs.items()
                if (budget := self._budget(at, now)) is not None
            ]
        return (max(starts, default=now) - now) / NANOSECONDS

    def seconds_behind(self) -> float:
        """Return how much later a shadow's requests would have been sent by now if they had kept to the budgets."""
        with self._lock:
            now = self.clock()
            starts = [budget.bucket.starts_at(now, 1) for budget in self._budgets.values()]
        return (max(starts, default=now) - now) / NANOSECONDS

    def give_back(self, table: str | None = None) -> None:
        """Give this worker's shares back to the others, of one table or of all; the next request leases anew."""
        if self.shared is not None:
            for lane in list(self._shares):
                if table in (None, lane[0]):
                    with self._lock:
                        del self._shares[lane]
                        for budget in self._budgets_of(lane):
                            budget.bucket.fills_until = min(budget.bucket.fills_until, self.clock())
                    self.shared.leave(lane)

    def _lanes(self, costs: Costs) -> list[Lane]:
        """Return what has to be leased for these costs; writes of an index follow the lease of its table."""
        return [lane for lane in dict.fromkeys(self._lane_of(at) for at in costs) if self._has_goal(lane)]

    def _has_goal(self, lane: Lane) -> bool:
        table, index, dimension = lane
        with self._lock:
            return self._goal_now((table, (index, dimension))) is not None

    def _enter(self, lanes: Iterable[Lane], is_stopped: threading.Event | None) -> Mapping[Lane, int]:
        """Lease a share of each lane, or wait for one, and follow it; return the terms of the leases."""
        terms: dict[Lane, int] = {}
        left = [*lanes]
        while left and self.shared is not None:
            for lane in left:
                table, index, dimension = lane
                with self._lock:
                    goal = self._goal_now((table, (index, dimension)))
                    known = self._budgets.get((table, (index, dimension)))
                    spent = 0 if known is None else known.spent
                    brakes = [budget.brake.percent for budget in self._budgets_of(lane)]
                if goal is not None:
                    share = self.shared.enter(lane, goal, spent, min(brakes, default=100), is_stopped)
                    terms[lane] = share.term
                    self._follow(lane, _Leased(share, min(share.milliunits * _WHOLE // goal, _WHOLE)))
            # one may have been lost while another was waited for
            left = [lane for lane in terms if not self.shared.may_send(lane)]
        return terms

    def _follow(self, lane: Lane, leased: _Leased) -> None:
        with self._lock:
            before = self._shares.get(lane)
            # a thread that was overtaken may come with an earlier share
            if leased == before or (before is not None and leased.share.number < before.share.number):
                return
            self._shares[lane] = leased
            now = self.clock()
            for budget in self._budgets_of(lane):
                budget.follow(now, leased, is_new=before is None or before.share.term != leased.share.term)

    def _budgets_of(self, lane: Lane) -> list[_Budget]:
        return [budget for at, budget in self._budgets.items() if self._lane_of(at) == lane]

    @staticmethod
    def _lane_of(at: tuple[str, TargetKey]) -> Lane:
        table, (index, dimension) = at
        return table, index if dimension is Dimension.READ else None, dimension

    def settle(self, paid: Paid, costs: Costs) -> None:
        """Replace the amount paid for a request by the units that it consumed."""
        consumed = {at: round(units * MILLIUNITS) for at, units in costs.items()}
        with self._lock:
            now = self.clock()
            for at in {*paid.milliunits, *consumed}:
                budget = self._budget(at, now)
                if budget is not None:
                    budget.spent += consumed.get(at, 0)
                    budget.bucket.settle(now, paid.milliunits.get(at, 0), consumed.get(at, 0))

    def refund(self, paid: Paid, table: str, dimension: Dimension, refusals: Iterable[Throttle]) -> None:
        """Refund an attempt that was throttled, and slow down if more capacity would have helped.

        A hot key slows nothing down, as requests for other keys are not throttled.
        """
        self.settle(paid, {})
        with self._lock:
            now = self.clock()
            for refusal in refusals:
                if refusal.cause is ThrottleCause.PROVISIONED:
                    self._press([(table, (refusal.index, dimension))], now, may_be_allowed=True)
                elif refusal.cause.brakes_all:
                    self._press([at for at in self._budgets if at[1][1] is dimension], now)

    def rate(self, table: str, index: str | None, dimension: Dimension) -> float | None:
        """Return the present rate of a budget in units per second, `None` where there is no limit."""
        with self._lock:
            budget = self._budget((table, (index, dimension)), self.clock())
            return None if budget is None else budget.bucket.rate / MILLIUNITS

    def share(self, table: str, index: str | None, dimension: Dimension) -> float:
        """Return the part of a shared budget that this worker leases now, above 0 and up to 1; 1 if it has no lease."""
        with self._lock:
            leased = self._shares.get(self._lane_of((table, (index, dimension))))
            return 1.0 if leased is None else max(leased.parts, 1) / _WHOLE

    def spent(self, table: str, index: str | None, dimension: Dimension) -> tuple[int, int]:
        """Return the thousandths of a unit known to have been consumed, and the number of throttled requests."""
        with self._lock:
            budget = self._budget((table, (index, dimension)), self.clock())
            return (0, 0) if budget is None else (budget.spent, budget.refused)

    def _press(self, targets: Iterable[tuple[str, TargetKey]], now: int, *, may_be_allowed: bool = False) -> None:
        for at in targets:
            budget = self._budget(at, now)
            if budget is None:
                continue
            budget.refused += 1
            is_allowed = may_be_allowed and bool(self._unbraked.get((at[0], at[1][1])))
            if not is_allowed and budget.brake.press(now):
                budget.follow_brake(now)

    def _budget(self, at: tuple[str, TargetKey], now: int) -> _Budget | None:
        found = self._budgets.get(at)
        if found is None:
            table, key = at
            other = self._budgets.get((table.rpartition("/")[2], key))
            is_own = other is not None and other.is_own
            goal = other.goal if other is not None and is_own else self._goal(table, key)
            if goal is None:
                return None
            found = self._budgets[at] = _Budget(goal, self._began(now), is_own, self._shares.get(self._lane_of(at)))
        if found.brake.recover(now):
            found.follow_brake(now)
        return found

    def _began(self, now: int) -> int:
        # a shared budget has nothing before its first lease
        return _LONG_AGO if self.starts_full and self.shared is None else now

    def _goal_now(self, at: tuple[str, TargetKey]) -> int | None:
        """Return the goal of an index that has its own rate, otherwise the one that it has from its table."""
        known = self._budgets.get(at)
        return known.goal if known is not None and known.is_own else self._goal(*at)

    def _goal(self, table: str, key: TargetKey) -> int | None:
        names: tuple[str | None, ...] = (table, table.rpartition("/")[2], None)
        goals = (self._defaults.get((name, key[1])) for name in names)
        return next((goal for goal in goals if goal is not None), None)


def check_budget(what: str, pacer: Pacer | None, budget: str | None) -> None:
    """Raise `PaceError`, whose message begins with *what*, if both are given."""
    if pacer is not None and budget is not None:
        raise PaceError(f"{what}: give either pacer or budget; a pacer has shared=")


def pacer_for(
    what: str, pacer: Pacer | None, budget: str | None, session: Any = None, coordinator: str | None = None
) -> Pacer:
    """Return the pacer of work: the given one, or a new one that starts with nothing, and shares *budget* if given.

    Raises `PaceError`, whose message begins with *what*, for both, and for a name that is not valid.
    """
    check_budget(what, pacer, budget)
    if budget is None:
        return pacer or Pacer(starts_full=False)
    try:
        shared = shared_budget(budget, session, coordinator)
    except ValueError as error:
        raise PaceError(str(error)) from error
    return Pacer(starts_full=False, shared=shared)


_PACERS: Final = renewed_in_forks(Pacer._begin_anew)


# A wait looks so often whether the work has ended, and whether a lease is to be renewed
_STEP_SECONDS: Final = 1.0


def _check_work(is_stopped: threading.Event | None) -> None:
    if is_stopped is not None and is_stopped.is_set():
        raise WorkEndedError("the work has ended")


def _burst(rate: int) -> int:
    """Return one second of the rate: background work should leave the table's burst capacity to others."""
    return rate


def _milliunits_per_second(rate: float, what: str) -> int:
    try:
        number = float(rate)
    except (ArithmeticError, TypeError, ValueError):
        number = float("nan")
    if not number >= LEAST_RATE:
        message = f"{what}: got {rate:g}, allowed: {LEAST_RATE} or more units per second; leave it out for no limit"
        raise PaceError(message)
    if number * MILLIUNITS == float("inf"):
        got = "infinity" if number == float("inf") else f"{number:g}"
        raise PaceError(f"{what}: got {got}, allowed: a number of units per second; leave it out for no limit")
    return round(number * MILLIUNITS)
