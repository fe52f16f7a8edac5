"""Provisioned throughput of one dimension of a table or index."""

from __future__ import annotations

from array import array

from highwater.core import Dimension
from highwater_lab.physics.bucket import Bucket
from highwater_lab.physics.causes import Cause
from highwater_lab.physics.partitions import Partitions


class Provisioned:
    """Partitions in front, the bucket behind them: a request that a partition refuses spends no tokens.

    Attributes:
        units: Provisioned units per second.
        refused: Quanta refused by cause since they were last cleared.
    """

    __slots__ = ("_partitions", "bucket", "dimension", "refused", "units")

    def __init__(self, dimension: Dimension, units: int, partitions: Partitions) -> None:
        self.dimension = dimension
        self.units = units
        self.bucket = Bucket(units)
        self._partitions = partitions
        self.refused: dict[Cause, int] = {}

    def resize(self, units: int) -> None:
        """Change what is provisioned, as of now."""
        self.units = units
        self.bucket.resize(units)

    def serve(self, rate: int, seconds: int) -> int:
        """Pass *seconds* of a constant *rate*, quanta per second; the quanta served."""
        bucket = self.bucket
        if rate <= bucket.fill and rate <= self._partitions.hot_rate[self.dimension]:
            # what `Bucket.serve` does for a rate within the capacity, without a call
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
        """Pass a second of each rate; the quanta served. Just what `serve` gives second by second."""
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
        """Whether *seconds* of *rate* would be served whole."""
        return rate <= self._partitions.hot_rate[self.dimension] and self.bucket.holds(rate, seconds)

    def available(self, rate: int) -> tuple[int, Cause]:
        """What of *rate* the next second could serve, and the cause where that is less."""
        over = self._partitions.refused(rate, self.dimension)
        tokens = self.bucket.available()
        return (rate - over, Cause.KEY_RANGE) if rate - over <= tokens else (tokens, Cause.PROVISIONED)

    def take(self, amount: int) -> None:
        """Pass one second in which *amount*, at most what is available, is served."""
        self.bucket.take(amount)

    def refuse(self, cause: Cause, amount: int) -> None:
        """Count *amount* as throttled."""
        if amount:
            self.refused[cause] = self.refused.get(cause, 0) + amount
