"""Provisioned throughput of one dimension of a table or index."""

from __future__ import annotations

from array import array

from highwater.core import Dimension
from highwater_lab.physics.bucket import BURST_SECONDS, Bucket
from highwater_lab.physics.causes import Cause
from highwater_lab.physics.partitions import Partitions


class Provisioned:
    """Provisioned capacity with its burst bucket, behind the partitions' limits.

    The partitions' limits are checked first: a request that a partition throttles spends no tokens of the bucket.

    Attributes:
        units: The provisioned units per second.
        refused: Throttled quanta by cause, since the caller last cleared the mapping.
    """

    __slots__ = ("_partitions", "bucket", "dimension", "refused", "units")

    def __init__(
        self, dimension: Dimension, units: int, partitions: Partitions, burst_seconds: int = BURST_SECONDS
    ) -> None:
        self.dimension = dimension
        self.units = units
        self.bucket = Bucket(units, burst_seconds)
        self._partitions = partitions
        self.refused: dict[Cause, int] = {}

    def resize(self, units: int) -> None:
        """Change the provisioned units per second at once."""
        self.units = units
        self.bucket.resize(units)

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
            self.refuse(Cause.KEY_RANGE, over * seconds)
            rate -= over
        served = bucket.serve(rate, seconds)
        if served != rate * seconds:
            self.refuse(Cause.PROVISIONED, rate * seconds - served)
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
        self.refuse(Cause.PROVISIONED, refused)
        return served

    def holds(self, rate: int, seconds: int) -> bool:
        """Return whether a constant *rate* would be served for *seconds* without throttling."""
        return rate <= self._partitions.hot_rate[self.dimension] and self.bucket.holds(rate, seconds)

    def available(self, rate: int) -> tuple[int, Cause]:
        """Return how much of *rate* the next second can serve, and the cause of throttling if that is less."""
        over = self._partitions.refused(rate, self.dimension)
        tokens = self.bucket.available()
        return (rate - over, Cause.KEY_RANGE) if rate - over <= tokens else (tokens, Cause.PROVISIONED)

    def take(self, amount: int) -> None:
        """Advance by one second that serves *amount*, which must not exceed `available`."""
        self.bucket.take(amount)

    def refuse(self, cause: Cause, amount: int) -> None:
        """Count *amount* as throttled."""
        if amount:
            self.refused[cause] = self.refused.get(cause, 0) + amount
