"""Live throughput of one dimension of a table or index: the lab's physics, asked request by request."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Final

from highwater.core import Dimension
from highwater_lab.physics import Cause, KeyDistribution, OnDemand, Partitions, Provisioned
from highwater_lab.physics.on_demand import PEAK_AGE_MINUTES
from highwater_lab.physics.partitions import PARTITION_QUANTA

# Whole minutes in which a partition refused, until it is split: as `Timing.heat_split_minutes`
_HEAT_SPLIT_MINUTES: Final = 10
# As long as CloudWatch keeps minutes
MINUTES_KEPT: Final = 15 * 24 * 60
_MOST_KEYS: Final = 10_000
_WHOLE: Final = 1_000_000


def hash_of(key: object) -> int:
    """Where a partition key's value lies in the space of hashes."""
    digest = hashlib.md5(str(key).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


class Meter:
    """What one dimension of one resource has left in this second, and what it gave in each minute.

    Requests of one second draw on what the second began with, so a second here is a second of the simulator. Times are
    seconds since 1970 of the cloud's clock, amounts quanta.

    Attributes:
        consumed: Quanta by minute.
        requests: How many requests that were, by minute.
        throttled: Quanta by minute and cause.
        events: Throttle events by minute and cause.
    """

    def __init__(
        self, dimension: Dimension, throughput: Provisioned | OnDemand, partitions: Partitions, second: int
    ) -> None:
        self.dimension = dimension
        self.throughput = throughput
        self.consumed: Counter[int] = Counter()
        self.requests: Counter[int] = Counter()
        self.throttled: dict[int, Counter[Cause]] = {}
        self.events: dict[int, Counter[Cause]] = {}
        self._partitions = partitions
        self._changes = [(second, throughput.units)]
        self._second = second
        self._spent = 0
        self._by_partition: Counter[int] = Counter()
        self._asked: Counter[int] = Counter()
        self._refused = 0
        self._peak = 0
        self._hot_minutes = 0

    def pass_to(self, second: int) -> None:
        """Let the time until *second* pass; earlier ones change nothing."""
        gap = second - self._second
        if gap <= 0:
            return
        if isinstance(self.throughput, Provisioned):
            self.throughput.bucket.take(self._spent)
            if gap > 1:
                self.throughput.bucket.serve(0, gap - 1)
        self._peak = max(self._peak, self._spent + self._refused)
        self._spent = self._refused = 0
        self._by_partition.clear()
        first, last = self._second // 60, second // 60
        self._second = second
        if last > first:
            self._end_minutes(first, last)

    def resize(self, units: int) -> None:
        """Other provisioned units from now on."""
        if isinstance(self.throughput, Provisioned) and units != self.throughput.units:
            self.throughput.resize(units)
            self._changes.append((self._second, units))

    def warm_to(self, units: int) -> None:
        """On demand, take at least *units* at once from now on."""
        if isinstance(self.throughput, OnDemand):
            self.throughput.warm_to(units)

    def units_at(self, second: int) -> int:
        """Units that were provisioned then; 0 on demand and before there was a table."""
        return next((units for at, units in reversed(self._changes) if at <= second), 0)

    def refusal(self, amount: int, key_hash: int) -> Cause | None:
        """Why *amount* could not be given now, `None` where it could.

        A request for more than a full bucket, or than a partition, ever holds goes through when nothing was taken.
        """
        place = self._partitions.find(key_hash)
        taken = self._by_partition[place]
        if taken and taken + amount > PARTITION_QUANTA[self.dimension]:
            return Cause.KEY_RANGE
        if isinstance(self.throughput, OnDemand):
            most, cause = self.throughput.room()
            return cause if self._spent and self._spent + amount > most else None
        bucket = self.throughput.bucket
        left = bucket.available() - self._spent
        return Cause.PROVISIONED if amount > left and left < bucket.cap else None

    def spend(self, amount: int, key_hash: int) -> None:
        """Give *amount*."""
        self._spent += amount
        self._by_partition[self._partitions.find(key_hash)] += amount
        self.consumed[self._second // 60] += amount
        self.requests[self._second // 60] += 1
        if self._hot_minutes or self._second // 60 in self.events:
            self._asked[key_hash] += amount

    def refuse(self, cause: Cause, amount: int, key_hash: int) -> None:
        """Record that *amount* was refused."""
        minute = self._second // 60
        self.throttled.setdefault(minute, Counter())[cause] += amount
        self.events.setdefault(minute, Counter())[cause] += 1
        self._refused += amount
        if cause is Cause.KEY_RANGE and len(self._asked) < _MOST_KEYS:
            self._asked[key_hash] += amount

    def _end_minutes(self, first: int, last: int) -> None:
        """Close the minutes from *first* to before *last*."""
        if isinstance(self.throughput, OnDemand):
            # after so many idle minutes nothing changes any more
            for minute in range(first, min(last, first + PEAK_AGE_MINUTES + 2)):
                self.throughput.end_minute(self.consumed[minute])
        is_hot = Cause.KEY_RANGE in self.events.get(first, ()) and last == first + 1
        self._hot_minutes = self._hot_minutes + 1 if is_hot else 0
        if self._hot_minutes >= _HEAT_SPLIT_MINUTES:
            self._split()
            self._hot_minutes = 0
        if not self._hot_minutes:
            self._asked.clear()
            self._peak = 0
        for kept in (self.consumed, self.requests, self.throttled, self.events):
            while kept and (oldest := next(iter(kept))) < last - MINUTES_KEPT:
                del kept[oldest]

    def _split(self) -> None:
        """Split the partitions that the keys of the last minutes filled, where that helps."""
        whole = sum(self._asked.values())
        heavy = tuple(sorted((key, amount * _WHOLE // whole) for key, amount in self._asked.items()))
        self._partitions.observe(KeyDistribution("observed", heavy))
        self._partitions.split_for_heat(self._peak, self.dimension)
