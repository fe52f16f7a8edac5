"""Throughput of a table or index in one dimension: provisioned, and in on-demand capacity mode."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Final, Literal

from highwater.core import Dimension
from highwater.core.bucket import BURST_SECONDS, Bucket, OnRaise
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS, ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics.partitions import PARTITION_UNITS, QUANTA_PER_UNIT, Partitions

# Why a table throttles a write that one of its indexes throttles. DynamoDB reports such a write under the index's own
# cause; this model counts it as INDEX on the table, and under the index's cause on the index.
INDEX: Final = "index"
Cause = ThrottleCause | Literal["index"]


class Provisioned:
    """Provisioned capacity with its burst bucket, behind the partitions' limits.

    The partitions' limits are checked first: a request that a partition throttles spends no tokens of the bucket.

    Attributes:
        units: The provisioned units per second.
        refused: Throttled quanta by cause, since the caller last cleared the mapping.
    """

    __slots__ = ("_partitions", "bucket", "dimension", "refused", "units")

    def __init__(
        self,
        dimension: Dimension,
        units: int,
        partitions: Partitions,
        burst_seconds: int = BURST_SECONDS,
        on_raise: OnRaise = OnRaise.KEEP,
    ) -> None:
        self.dimension = dimension
        self.units = units
        self.bucket = Bucket(units * QUANTA_PER_UNIT, burst_seconds, on_raise)
        self._partitions = partitions
        self.refused: dict[Cause, int] = {}

    def resize(self, units: int) -> None:
        """Change the provisioned units per second at once."""
        self.units = units
        self.bucket.resize(units * QUANTA_PER_UNIT)

    def serve(self, rate: int, seconds: int) -> int:
        """Advance by *seconds*, at least one, at a constant *rate* (quanta per second); return the quanta served."""
        bucket = self.bucket
        if rate <= bucket.fill and rate <= self._partitions.hot_rate[self.dimension]:
            # the most frequent case, a rate within the capacity: `Bucket.serve` written out here saves a call
            level = bucket.tokens + bucket.fill
            if level > bucket.cap:
                level = bucket.cap
            level += (seconds - 1) * (bucket.fill - rate)
            bucket.tokens = (level if level < bucket.cap else bucket.cap) - rate
            return rate * seconds
        if rate > self._partitions.hot_rate[self.dimension]:
            over = self._partitions.refused(rate, self.dimension)
            self.refuse(ThrottleCause.KEY_RANGE, over * seconds)
            rate -= over
        served = bucket.serve(rate, seconds)
        if served != rate * seconds:
            self.refuse(ThrottleCause.PROVISIONED, rate * seconds - served)
        return served

    def serve_each(self, rates: array[int]) -> int:
        """Advance by one second at each of *rates*; return the quanta served, the same as `serve` second by second."""
        if max(rates) > self._partitions.hot_rate[self.dimension]:
            return sum(self.serve(rate, 1) for rate in rates)
        bucket = self.bucket
        tokens, fill, cap = bucket.tokens, bucket.fill, bucket.cap
        served = refused = 0
        for rate in rates:
            tokens += fill
            if tokens > cap:  # faster than min() in this loop
                tokens = cap
            if rate <= tokens:
                tokens -= rate
                served += rate
            else:
                served += tokens
                refused += rate - tokens
                tokens = 0
        bucket.tokens = tokens
        self.refuse(ThrottleCause.PROVISIONED, refused)
        return served

    def holds(self, rate: int, seconds: int) -> bool:
        """Return whether a constant *rate* would be served for *seconds* without throttling."""
        return rate <= self._partitions.hot_rate[self.dimension] and self.bucket.holds(rate, seconds)

    def available(self, rate: int) -> tuple[int, ThrottleCause]:
        """Return how much of *rate* the next second can serve, and the cause of throttling if that is less."""
        over = self._partitions.refused(rate, self.dimension)
        tokens = self.bucket.available()
        return (rate - over, ThrottleCause.KEY_RANGE) if rate - over <= tokens else (tokens, ThrottleCause.PROVISIONED)

    def take(self, amount: int) -> None:
        """Advance by one second that serves *amount*, which must not exceed `available`."""
        self.bucket.take(amount)

    def refuse(self, cause: Cause, amount: int) -> None:
        """Count *amount* as throttled."""
        if amount:
            self.refused[cause] = self.refused.get(cause, 0) + amount


# Amazon DynamoDB Developer Guide, "On-demand capacity mode", read 2026-11: a table serves up to twice its previous peak
# at once; traffic that more than doubles within 30 minutes may be throttled
PEAK_AGE_MINUTES: Final = 30

_WARM = {Dimension.READ: ON_DEMAND_WARM_READ_UNITS, Dimension.WRITE: ON_DEMAND_WARM_WRITE_UNITS}


class OnDemandThroughput:
    """One dimension of an on-demand table or index.

    It serves up to its warm throughput or twice its previous peak, whichever is more. The previous peak is the highest
    rate of a minute at least 30 minutes ago. Requests above that, and requests above a partition's limit, are throttled
    with the cause KEY_RANGE; above *max_units* with MAX_ON_DEMAND; above *quota_units* with ACCOUNT. There is no burst
    bucket: unused throughput of one second is not available in the next.

    Attributes:
        units: Always 0, because no capacity is provisioned.
        refused: Throttled quanta by cause, since the caller last cleared the mapping.
    """

    __slots__ = (
        "_configured_limits",
        "_partitions",
        "_peak",
        "_quota",
        "_recent",
        "_warm",
        "dimension",
        "refused",
        "units",
    )

    def __init__(
        self,
        dimension: Dimension,
        partitions: Partitions,
        warm_units: int = 0,
        max_units: int | None = None,
        quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
    ) -> None:
        self.dimension = dimension
        self.units = 0
        self.refused: dict[Cause, int] = {}
        self._partitions = partitions
        self._warm = max(_WARM[dimension], warm_units) * QUANTA_PER_UNIT
        self._quota = quota_units * QUANTA_PER_UNIT
        self.limit_to(max_units)
        self._recent: deque[int] = deque()
        self._peak = 0

    def limit_to(self, max_units: int | None) -> None:
        """Serve at most so many units per second from now on, `None` for as many as there is throughput for."""
        self._configured_limits = [(self._quota, ThrottleCause.ACCOUNT)]
        if max_units is not None:
            self._configured_limits.append((max_units * QUANTA_PER_UNIT, ThrottleCause.MAX_ON_DEMAND))

    def warm_to(self, units: int) -> None:
        """Take at least *units* per second at once from now on."""
        self._warm = max(self._warm, units * QUANTA_PER_UNIT)

    @property
    def limit(self) -> int:
        """The throughput that the partitions serve now, in quanta per second."""
        return max(self._warm, 2 * self._peak)

    def room(self) -> tuple[int, ThrottleCause]:
        """Return the most that one second can serve of evenly spread requests, in quanta, and the cause above that."""
        return min([(self.limit, ThrottleCause.KEY_RANGE), *self._configured_limits])

    def available(self, rate: int) -> tuple[int, ThrottleCause]:
        """Return how much of *rate* the next second can serve, and the cause of throttling if that is less."""
        lowest_limit, cause = self.room()
        passed = rate - self._partitions.refused(rate, self.dimension)
        return (passed, ThrottleCause.KEY_RANGE) if passed <= lowest_limit else (lowest_limit, cause)

    def holds(self, rate: int, seconds: int) -> bool:  # noqa: ARG002 - all seconds are alike
        """Return whether a constant *rate* would be served for *seconds* without throttling."""
        return self.available(rate)[0] == rate

    def take(self, amount: int) -> None:
        """Advance by one second that serves *amount*; without a burst bucket nothing changes."""

    def serve(self, rate: int, seconds: int) -> int:
        """Advance by *seconds* at a constant *rate* (quanta per second); return the quanta served."""
        served, cause = self.available(rate)
        if served < rate:
            self.refuse(cause, (rate - served) * seconds)
        return served * seconds

    def serve_each(self, rates: array[int]) -> int:
        """Advance by one second at each of *rates*; return the quanta served."""
        return sum(self.serve(rate, 1) for rate in rates)

    def refuse(self, cause: Cause, amount: int) -> None:
        """Count *amount* as throttled."""
        self.refused[cause] = self.refused.get(cause, 0) + amount

    def end_minute(self, consumed: int) -> None:
        """End a minute that consumed this many quanta; a rate becomes the previous peak 30 minutes later."""
        self._recent.append(consumed // 60)
        if len(self._recent) > PEAK_AGE_MINUTES:
            rate = self._recent.popleft()
            if rate > self._peak:
                self._peak = rate
                per_partition = PARTITION_UNITS[self.dimension] * QUANTA_PER_UNIT
                self._partitions.grow(-(-2 * rate // per_partition))
