"""Rates that adapt to the table: slow starts, shares of its provisioned capacity, and starts with a boost."""

from __future__ import annotations

import itertools
import logging
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from highwater.bulk.budget import (
    LEAST_RATE,
    PacedWorkError,
    PaceError,
    Pacer,
    describe_table,
    paced_client,
    pacer_for,
)
from highwater.bulk.in_flight import MOST_AT_FIRST, MOST_IN_FLIGHT, InFlight
from highwater.client.boost import boost
from highwater.client.coordinator import BoostError
from highwater.core.names import TargetName
from highwater.core.pacing.following import Follower, RateGoal, Shown, Start
from highwater.core.tracking import NATIVE_TARGET_PERCENT
from highwater.core.units import MILLIUNITS, Dimension

_LOG: Final = logging.getLogger("highwater.pace")
_METRIC_MINUTES: Final = 10


@dataclass(slots=True, kw_only=True)
class TableShows:
    """Reads one dimension of a table and its indexes from DynamoDB, Application Auto Scaling and CloudWatch.

    Where the caller lacks a permission, that part is left out, and logged once.

    Attributes:
        table: The table's name.
        dimension: READ or WRITE.
        client: A DynamoDB client.
        session: The boto3 session that makes the other clients. By default a new one.
    """

    table: str
    dimension: Dimension
    client: Any
    session: Any = None
    _untold: set[str] = field(default_factory=lambda: {"application-autoscaling", "cloudwatch"})
    _clients: dict[str, Any] = field(default_factory=dict)

    def provisioned(self, index: str | None = None) -> dict[str | None, int]:
        """Return the provisioned units per second of the targets whose capacity requests consume, by index.

        Writes consume the table's and all its indexes'; reads the table's, or only that of *index*. Raises
        `PacedWorkError` for a table that is on demand, or cannot be described.
        """
        described = describe_table(self.client, self.table, "pace")
        name = f"{self.dimension.title()}CapacityUnits"
        found: dict[str | None, int] = {None: int(described["ProvisionedThroughput"][name])}
        found |= {
            each["IndexName"]: int(each["ProvisionedThroughput"][name])
            for each in described.get("GlobalSecondaryIndexes", ())
        }
        if not found[None]:
            raise PacedWorkError(
                f"pace: table {self.table!r} is on demand, so a percentage and a slow start have no meaning; pass a "
                "rate in units per second, and start with it"
            )
        if self.dimension is Dimension.WRITE:
            # an index that is being created may have no capacity yet
            return {key: units for key, units in found.items() if units}
        # reads of a local index consume the table's capacity
        return {index: found[index]} if index in found else {None: found[None]}

    def scaling(self, index: str | None) -> tuple[int | None, int | None]:
        """Return the most units per second to which auto scaling scales a target, and its target utilization.

        `None` for each where it does not scale the target, or where the caller may not read it.
        """
        name = TargetName(self.table, index, self.dimension)
        asked: Any = {"ServiceNamespace": "dynamodb", "ScalableDimension": name.scalable_dimension}
        try:
            client = self._client("application-autoscaling")
            targets = client.describe_scalable_targets(ResourceIds=[name.resource_id], **asked)["ScalableTargets"]
            policies = client.describe_scaling_policies(ResourceId=name.resource_id, **asked)["ScalingPolicies"]
        except (ClientError, BotoCoreError) as error:
            self._tell("application-autoscaling", "how it is scaled is not known", error)
            return None, None
        tracking = [each["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] for each in policies]
        ceiling = int(targets[0]["MaxCapacity"]) if targets else None
        return ceiling, round(float(tracking[0])) if tracking else None

    def consumed(self, index: str | None, now: float) -> Mapping[int, float] | None:
        """Return a target's consumed units by minute since 1970, of the last ten minutes as far as CloudWatch has them.

        `None` where the caller may not read metrics.
        """
        dimensions = [{"Name": "TableName", "Value": self.table}]
        if index is not None:
            dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": index})
        metric = {
            "Namespace": "AWS/DynamoDB",
            "MetricName": f"Consumed{self.dimension.title()}CapacityUnits",
            "Dimensions": dimensions,
        }
        end = int(now) // 60 * 60
        query: Any = {"Id": "consumed", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
        try:
            answer = self._client("cloudwatch").get_metric_data(
                MetricDataQueries=[query],
                StartTime=datetime.fromtimestamp(end - _METRIC_MINUTES * 60, UTC),
                EndTime=datetime.fromtimestamp(end, UTC),
            )
        except (ClientError, BotoCoreError) as error:
            self._tell("cloudwatch", "what others consume is not known", error)
            return None
        (found,) = answer["MetricDataResults"]
        return {
            int(at.timestamp()) // 60: float(value)
            for at, value in zip(found["Timestamps"], found["Values"], strict=False)
        }

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            region = self.client.meta.region_name
            session: Any = self.session or boto3.Session()
            self._clients[service] = session.client(service, region_name=region)
        return self._clients[service]

    def _tell(self, service: str, what: str, error: Exception) -> None:
        if service in self._untold:
            self._untold.discard(service)
            _LOG.info("%s: %s: %s", self.table, what, error)


_LOOKS_EVERY: Final = 15.0
# CloudWatch has a new datapoint every minute
_ASKS_EVERY: Final = 60.0
_SCALING_EVERY: Final = 600.0
# The others' demand is estimated as the busiest of this many minutes
_MINUTES: Final = 5
_LEASE_MINUTES: Final = 15
_SHARE: Final = re.compile(r"([0-9]{1,3})%")


def check_rate(rate: float | str, start: Start, dimension: Dimension) -> RateGoal:
    """Return the goal for *rate*, units per second or a share such as `"50%"`, with this start.

    Raises `PaceError` for anything else, and for a share with a boost.
    """
    what, is_slow = f"{dimension} rate", start is not Start.FULL
    if not isinstance(rate, str):
        if not LEAST_RATE <= rate < float("inf"):
            raise PaceError(f"{what}: got {rate:g}, allowed: {LEAST_RATE} or more units per second")
        return RateGoal(milliunits=round(rate * MILLIUNITS), is_slow=is_slow)
    share = _SHARE.fullmatch(rate.strip())
    if share is None or not 1 <= int(share[1]) <= 100:
        is_more = share is not None and int(share[1]) > 100
        more = "; a table has no more than its capacity: for a higher rate give units per second" if is_more else ""
        raise PaceError(
            f"{what}: got {rate!r}, allowed: units per second, or a share of the provisioned capacity from '1%' to "
            f"'100%'{more}"
        )
    if start is Start.BOOSTED:
        raise PaceError(f"{what}: got {rate!r} with a boost; give the units per second to ask for")
    return RateGoal(percent=int(share[1]), is_slow=is_slow)


def read_start(start: Start | str) -> Start:
    """Parse a start: `full`, `slow` or `boosted`; raises `PaceError` for anything else."""
    try:
        return Start(start)
    except ValueError:
        raise PaceError(f"start: got {start!r}, allowed: {', '.join(Start)}") from None


@dataclass(slots=True, kw_only=True)
class FollowedRate:
    """Adapts the budgets of one table's reads or writes to the table's capacity and other traffic, while a block runs.

    Attributes:
        pacer: Has the budgets.
        wanted: The rate that was asked for: units per second, or a share of the provisioned capacity such as `"50%"`.
        shows: Reads the table's capacity and metrics.
        start: Whether the work begins at the whole rate, slowly, or after a boost from a coordinator.
        allow_throttles: Whether the rates stay as they are when requests are throttled.
        index: The index that is read, `None` for the table.
        coordinator: Name or URL of the coordinator. By default the only one.
        clock: Seconds since 1970.
        looks_every: Seconds between two reads of the table's state.

    Raises:
        PaceError: The rate is not valid.
    """

    pacer: Pacer
    wanted: float | str
    shows: TableShows
    start: Start
    allow_throttles: bool = False
    index: str | None = None
    coordinator: str | None = None
    clock: Callable[[], float] = lambda: time.time()
    looks_every: float = _LOOKS_EVERY
    _goal: RateGoal = field(init=False)
    _watched: dict[str | None, _Watched] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        """Raise `PaceError` for a rate that is not valid with this start."""
        self._goal = check_rate(self.wanted, self.start, self.shows.dimension)

    def __enter__(self) -> FollowedRate:
        """Request a boost if there is to be one, set the first rates, and adapt them every 15 seconds from then on.

        Raises `PacedWorkError` if the table cannot be described, `PaceError` for a rate that is too low.
        """
        table, dimension = self.shows.table, self.shows.dimension
        if self.allow_throttles:
            self.pacer.ignore_throttles(table, dimension, by=self)
        if not self._goal.follows:
            self.pacer.limit(table, dimension, (self._goal.milliunits or 0) / MILLIUNITS)
            return self
        self._boost()
        try:
            self.beat()
            self._warn()
        except BaseException:
            self._stack.close()
            raise
        thread = threading.Thread(target=self._run, name="highwater-pace", daemon=True)
        thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop adapting the rates, release the boost if there is one, and give a share of a budget back.

        Indexes have their table's rate again, and throttled requests slow down again, so that the next work with the
        pacer does not inherit what this one set.
        """
        with self._lock:
            # from now on no rate is set, although a look at the table may be under way
            self._ended.set()
        table, dimension = self.shows.table, self.shows.dimension
        self.pacer.give_back(table)
        for index in filter(None, tuple(self._watched)):
            self.pacer.unlimit_index(table, index, dimension, by=self)
        if self.allow_throttles:
            self.pacer.heed_throttles(table, dimension, by=self)
        self._stack.close()

    def rate(self) -> float:
        """Return the goal in units per second now; raises `PacedWorkError` if the table cannot be described."""
        return self.rates([self.index])[self.index]

    def rates(self, targets: Iterable[str | None]) -> dict[str | None, float]:
        """Return the same for the table (`None`) and indexes: a share is of the capacity of each."""
        if self._goal.milliunits is not None:
            return dict.fromkeys(targets, self._goal.milliunits / MILLIUNITS)
        provisioned = self.shows.provisioned(self.index)
        table = provisioned.get(None, 0)
        return {each: self._goal.rate_at(provisioned.get(each, table)) / MILLIUNITS for each in targets}

    def beat(self) -> None:
        """Read the table's state and set the rates; raises `PacedWorkError` if the table cannot be described."""
        now, table, dimension = self.clock(), self.shows.table, self.shows.dimension
        for index, units in self.shows.provisioned(self.index).items():
            watched = self._watched.get(index)
            if watched is None:
                watched = self._watched[index] = _Watched(Follower(self._goal))
            if now - watched.asked_at >= _ASKS_EVERY:
                watched.asked_at = now
                watched.newest = self.shows.consumed(index, now)
            if now - watched.scaling_at >= _SCALING_EVERY:
                watched.scaling_at = now
                watched.ceiling, watched.target_percent = self.shows.scaling(index)
            spent, refused = self.pacer.spent(table, index, dimension)
            share = self.pacer.share(table, index, dimension)
            nanoseconds = round(now * 1_000_000_000)
            if refused > watched.refused and not self.allow_throttles:
                watched.follower.refuse()
            watched.refused = refused
            watched.note_spent(now, spent, share)
            watched.shown = watched.show(units)
            rate = watched.follower.rate(nanoseconds, watched.shown)
            with self._lock:
                if self._ended.is_set():
                    return
                if index is None:
                    self.pacer.limit(table, dimension, rate / MILLIUNITS)
                else:
                    self.pacer.limit_index(table, index, dimension, rate / MILLIUNITS, by=self)
            is_held_back = self._goal.is_slow and rate < self._goal.rate_at(units)
            if is_held_back and watched.follower.is_still(nanoseconds) and not watched.is_told_still:
                watched.is_told_still = True
                _LOG.warning("%s has stayed at %d units/s: nothing seems to scale it", self._label(index), units)

    def _boost(self) -> None:
        if self.start is not Start.BOOSTED or self._goal.milliunits is None:
            return
        units: Any = {f"{self.shows.dimension}_rate": max(-(-self._goal.milliunits // MILLIUNITS), 1)}
        wanted = boost(
            self.shows.table,
            minutes=_LEASE_MINUTES,
            reason="paced work",
            index=self.index,
            coordinator=self.coordinator,
            session=self.shows.session,
            **units,
        )
        try:
            self._stack.enter_context(wanted)
        except BoostError as error:
            _LOG.warning("%s: no boost, so the work starts slowly: %s", self.shows.table, error)

    def _warn(self) -> None:
        for index, watched in self._watched.items():
            if watched.shown is not None and watched.follower.ratchets(watched.shown):
                _LOG.warning(
                    "%s: %d %% of the provisioned capacity is not below auto scaling's target of %d %%: the work "
                    "itself drives the capacity up, to the ceiling",
                    self._label(index),
                    self._goal.percent,
                    watched.shown.target_percent or NATIVE_TARGET_PERCENT,
                )

    def _label(self, index: str | None) -> str:
        what = self.shows.table if index is None else f"{self.shows.table}, index {index}"
        return f"{what}, {self.shows.dimension}s"

    def _run(self) -> None:
        while not self._ended.wait(self.looks_every):
            try:
                self.beat()
            except PacedWorkError as error:
                _LOG.info("%s: the rates stay as they are: %s", self.shows.table, error)
            except Exception:
                # whatever the error, the work continues
                _LOG.exception("%s: the rates stay as they are", self.shows.table)


@dataclass(slots=True)
class _Watched:
    """The newest state of one table or index; `own` is a list of times and this work's consumption up to each.

    Of a shared budget, this work is that of all workers.
    """

    follower: Follower
    ceiling: int | None = None
    target_percent: int | None = None
    newest: Any = None
    own: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=80))
    spent: int = 0
    share: float = 0.0
    shown: Shown | None = None
    asked_at: float = float("-inf")
    scaling_at: float = float("-inf")
    refused: int = 0
    is_told_still: bool = False

    def note_spent(self, now: float, spent: int, share: float) -> None:
        """Add what this worker has *spent* up to now, which has that *share* of the budget.

        The others are taken to spend as much of their shares as this one does of its own. Of a share that has changed
        meanwhile the larger one counts, so that they are not taken to spend too much.
        """
        before = self.own[-1][1] if self.own else 0.0
        self.own.append((now, before + (spent - self.spent) / max(share, self.share)))
        self.spent, self.share = spent, share

    def show(self, units: int) -> Shown:
        return Shown(provisioned=units, ceiling=self.ceiling, target_percent=self.target_percent, others=self._others())

    def _others(self) -> int | None:
        """Return the others' consumption in the busiest of the newest minutes, in thousandths of a unit per second."""
        if self.newest is None:
            return None
        minutes = sorted(self.newest)[-_MINUTES:]
        found = (round(self.newest[minute] * MILLIUNITS - self._own_in(minute)) // 60 for minute in minutes)
        return max(max(found, default=0), 0)

    def _own_in(self, minute: int) -> float:
        return self._spent_at(minute * 60 + 60) - self._spent_at(minute * 60)

    def _spent_at(self, at: float) -> float:
        """Return this work's consumption up to *at*, interpolated linearly between two entries of `own`."""
        if at <= self.own[0][0]:
            return float(self.own[0][1])
        for (before, less), (after, more) in itertools.pairwise(self.own):
            if before <= at <= after:
                return less + (more - less) * (at - before) / max(after - before, 1e-9)
        return float(self.own[-1][1])


class PacedWork:
    """What a scan of a table and writes to one have in common; each of them declares the attributes as arguments.

    `_what` is the name of the work in errors. The rate is the argument that is named like `_dimension`.
    """

    _what: ClassVar[str]
    _dimension: ClassVar[Dimension]
    table: str
    start: Start | str
    allow_throttles: bool
    coordinator: str | None
    index: str | None = None
    workers: int | None
    session: Any
    pacer: Pacer | None
    budget: str | None

    @cached_property
    def _client(self) -> Any:
        """The DynamoDB client of the work, without retries."""
        return paced_client(self.session)

    @cached_property
    def described(self) -> Mapping[str, Any]:
        """The table, as DescribeTable returns it; raises `PacedWorkError` if it cannot be described."""
        return describe_table(self._client, self.table, self._what)

    @property
    def target(self) -> str | None:
        """The index whose capacity the work consumes; `None` if that is the table's."""
        return self.index

    @cached_property
    def followed(self) -> FollowedRate:
        """Adapts the budget to the table while the work runs."""
        return FollowedRate(
            pacer=pacer_for(self._what, self.pacer, self.budget, self.session, self.coordinator),
            wanted=getattr(self, self._dimension),
            shows=TableShows(table=self.table, dimension=self._dimension, client=self._client, session=self.session),
            start=read_start(self.start),
            allow_throttles=self.allow_throttles,
            index=self.target,
            coordinator=self.coordinator,
        )

    @cached_property
    def rate(self) -> float:
        """The rate that was asked for, in units per second; a share is taken of the present capacity."""
        return self.followed.rate()

    def _workers_at_first(self, expected: float) -> int:
        """Return how many requests are under way at once before a latency is measured: *expected* unless given."""
        return self.workers or min(max(math.ceil(expected), 1), MOST_AT_FIRST)

    def _in_flight(self, at_first: int) -> InFlight:
        """Return the number of requests that may be under way at once, which begins with *at_first*."""
        pacer = self.followed.pacer
        return InFlight(
            lambda: pacer.rate(self.table, self.target, self._dimension), at_first, self.workers or MOST_IN_FLIGHT
        )
