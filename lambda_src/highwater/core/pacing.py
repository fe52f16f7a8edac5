"""Pacing: how requests keep within a budget of capacity units. Integers and times that are passed in; no clock, no AWS.

In this order: the budget of one table or index, how throttling reduces it, the rate of background work that adapts to
its table, the size and cost of items, and the pages and segments of scans.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from highwater.core.bucket import BURST_SECONDS, settle

MILLIUNITS: Final = 1_000
NANOSECONDS: Final = 1_000_000_000


@dataclass(slots=True)
class PacingBucket:
    """A token bucket: fills at *rate* up to *burst*, and may be in debt, which is never forgiven.

    In any window of W seconds, requests cost at most rate * W + burst. Single requests may exceed that by their cost
    above the burst, and by their cost above the amount paid for them. Requests are served in the order in which they
    reserve.

    Attributes:
        rate: Thousandths of a unit per second, at least 1.
        burst: The bucket's capacity in thousandths of a unit, at least 1.
        empty_at: When it was, or will be, empty: its level is what has flowed in since. By default it is full.
        fills_from: The time before which nothing has flowed in. By default none.
        fills_until: The time after which nothing flows in, neither a level nor against a debt. By default none.
    """

    rate: int
    burst: int
    empty_at: int = -(10**30)
    fills_from: int = -(10**30)
    fills_until: int = 10**30

    def __post_init__(self) -> None:
        """Raise `ValueError` for a rate or burst below 1, with which no request could start."""
        if self.rate < 1 or self.burst < 1:
            message = f"pacing needs a rate and a burst above 0, got {self.rate / 1000:g} and {self.burst / 1000:g}"
            raise ValueError(message)

    def starts_at(self, now: int, cost: int) -> int:
        """Return the earliest time at which a request of that cost may start: when it is paid, or the bucket full."""
        return max(now, self._empty_at(now) + self._time_for(min(cost, self.burst)))

    def reserve(self, start: int, cost: int) -> None:
        """Pay for a request that starts at *start*, which `starts_at` has returned, or later."""
        self.empty_at = self._empty_at(start) + self._time_for(cost)

    def settle(self, now: int, paid: int, cost: int) -> None:
        """Replace the amount paid for a request by its actual cost, once that is known."""
        self.empty_at = self._empty_at(now)
        if cost >= paid:
            self.empty_at += self._time_for(cost - paid)
        else:
            # rounded so that less is given back
            self.empty_at -= (paid - cost) * NANOSECONDS // self.rate

    def change(self, now: int, rate: int, burst: int) -> None:
        """Fill at another rate from *now* on. Debt in units does not change; a level above the new burst is cut."""
        changed = PacingBucket(rate, burst)
        now = min(now, self.fills_until)
        held = (now - self._empty_at(now)) * self.rate
        changed.empty_at = now - min(held, burst * NANOSECONDS) // rate
        self.rate, self.burst, self.empty_at = changed.rate, changed.burst, changed.empty_at

    def begin(self, now: int, until: int) -> None:
        """Fill from *now* on, until another time, with nothing but the debt that was left when it last filled."""
        debt = max(-self._flowed(now), 0)
        self.empty_at, self.fills_from, self.fills_until = now + debt, now, until

    def held(self, now: int) -> int:
        """Return the level in thousandths of a unit, below zero if the bucket is in debt."""
        return self._flowed(now) * self.rate // NANOSECONDS

    def _flowed(self, now: int) -> int:
        """Return for how long it has filled since it was empty, below zero if it is in debt."""
        now = min(now, self.fills_until)
        return now - self._empty_at(now)

    def _empty_at(self, now: int) -> int:
        filled = min(now, self.fills_until) - self.burst * NANOSECONDS // self.rate
        return max(self.empty_at, self.fills_from, filled)

    def _time_for(self, cost: int) -> int:
        return -(-cost * NANOSECONDS // self.rate)


# One cut for all requests that are throttled at about the same time
_BRAKED_EVERY: Final = 5 * NANOSECONDS
_BRAKED_PERCENT: Final = 70
_RECOVERS_EVERY: Final = 10 * NANOSECONDS
_RECOVERED_PERCENT: Final = 5
_LEAST_PERCENT: Final = 1


@dataclass(slots=True)
class Brake:
    """The share of its rate that a budget uses now.

    A throttled request cuts the share to 70 % of its present value, at most every five seconds; every ten seconds
    without one add five percentage points.

    Attributes:
        percent: The share, 1 to 100.
        changed_at: When it last changed, in nanoseconds.
    """

    percent: int = 100
    changed_at: int = -(10**30)

    def press(self, now: int) -> bool:
        """Cut the share after a throttled request; return whether it has changed."""
        if now - self.changed_at < _BRAKED_EVERY:
            return False
        self.percent = max(self.percent * _BRAKED_PERCENT // 100, _LEAST_PERCENT)
        self.changed_at = now
        return True

    def recover(self, now: int) -> bool:
        """Raise the share by the time that has passed; return whether it has changed."""
        steps = (now - self.changed_at) // _RECOVERS_EVERY
        if self.percent == 100 or steps < 1:
            return False
        self.percent = min(self.percent + steps * _RECOVERED_PERCENT, 100)
        self.changed_at += steps * _RECOVERS_EVERY
        return True


# The usual target utilization of target tracking, assumed where it is unknown
USUAL_TARGET_PERCENT: Final = 70
# Half of the documented burst capacity is counted on, as AWS does not guarantee it
_HALF_SECONDS: Final = BURST_SECONDS // 2
# Auto scaling raises capacity within seven minutes in the article's figures 2 and 3 (docs/figures.md); until then a
# slow start spends at most one minute's capacity of the burst
_ANSWERED_SECONDS: Final = 420
_BURST_SECONDS: Final = 60
# The share of the provisioned capacity that is used when there is no burst capacity
_FULL_PERCENT: Final = 95
_STILL_NANOSECONDS: Final = 2 * _ANSWERED_SECONDS * NANOSECONDS
_LEAST_PARTS: Final = 100


class Start(StrEnum):
    """How background work starts."""

    FULL = "full"
    SLOW = "slow"
    BOOSTED = "boosted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateGoal:
    """The rate that background work was given: either *milliunits* or *percent*.

    Attributes:
        milliunits: Thousandths of a unit per second.
        percent: A share of the provisioned capacity, 1 to 100.
        is_slow: Whether it starts at the rate for which there is capacity, and speeds up as the capacity rises.
    """

    milliunits: int | None = None
    percent: int | None = None
    is_slow: bool = False

    @property
    def follows(self) -> bool:
        """Whether its rate depends on the table."""
        return self.is_slow or self.percent is not None

    def rate_at(self, provisioned_units: int) -> int:
        """Return the rate for this provisioned capacity, in thousandths of a unit per second."""
        if self.milliunits is not None:
            return self.milliunits
        return max(provisioned_units * MILLIUNITS * (self.percent or 0) // 100, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """State and metrics of one dimension of a table or index.

    Attributes:
        provisioned: Provisioned units per second.
        ceiling: The most that auto scaling provisions; `None` if nothing scales it, or it cannot be read.
        target_percent: The target utilization of auto scaling; `None` likewise.
        others: Thousandths of a unit per second that others consumed in the busiest of the newest known minutes;
            `None` if that cannot be read.
    """

    provisioned: int
    ceiling: int | None = None
    target_percent: int | None = None
    others: int | None = None


@dataclass(slots=True)
class Follower:
    """Decides on the rate of background work on one table or index; times are of a monotonic clock, in nanoseconds.

    A slow start uses the provisioned capacity and a part of the burst capacity, less the consumption of others. That is
    above auto scaling's target, so capacity rises, and the rate with it. The remaining burst capacity is estimated:
    half of the documented amount at the start, less the consumption above the provisioned capacity since, and none
    after a throttled request. No burst capacity is used at the ceiling.

    A share below auto scaling's target utilization is limited so that it stays below the target together with the
    consumption of others. Otherwise the work itself would raise the capacity, and with it the share, up to the ceiling.

    Attributes:
        goal: The rate that the work was given.
    """

    goal: RateGoal
    _provisioned: int = 0
    _risen_at: int | None = None
    _burst: int = 0
    _asked: int = 0
    _looked_at: int | None = None
    _guessed: int | None = None

    def refuse(self) -> None:
        """Note that a request was throttled because of insufficient capacity: no burst capacity is left."""
        self._burst = 0

    def rate(self, now: int, shown: Shown) -> int:
        """Return the rate from *now* on, in thousandths of a unit per second, 1 or more."""
        others = self._others(shown)
        self._estimate_burst(now, others)
        if self._risen_at is None or shown.provisioned > self._provisioned:
            self._risen_at = now
        self._provisioned = shown.provisioned
        if self._looked_at is None:
            self._burst = shown.provisioned * MILLIUNITS * _HALF_SECONDS
        self._looked_at = now
        rate = self.goal.rate_at(shown.provisioned)
        least = min(rate, max(rate // _LEAST_PARTS, MILLIUNITS))
        if self.goal.percent is not None and not self.ratchets(shown) and shown.others is not None:
            target = shown.target_percent or USUAL_TARGET_PERCENT
            rate = min(rate, shown.provisioned * MILLIUNITS * target // 100 - shown.others)
        if self.goal.is_slow:
            rate = min(rate, self._room(shown) - others)
        self._asked = max(rate, least) + others
        return max(rate, least)

    def is_still(self, now: int) -> bool:
        """Whether the capacity has not risen for 14 minutes, so that nothing seems to scale it."""
        return self._risen_at is not None and now - self._risen_at > _STILL_NANOSECONDS

    def ratchets(self, shown: Shown) -> bool:
        """Whether the share alone is so large that auto scaling raises the capacity, and with it the share."""
        return self.goal.percent is not None and self.goal.percent >= (shown.target_percent or USUAL_TARGET_PERCENT)

    def _room(self, shown: Shown) -> int:
        """Return the provisioned capacity and the part of the burst that may be spent until auto scaling raises it."""
        whole = shown.provisioned * MILLIUNITS
        if shown.ceiling is not None and shown.provisioned >= shown.ceiling:
            return whole * _FULL_PERCENT // 100
        most = whole + whole * _BURST_SECONDS // _ANSWERED_SECONDS
        return min(whole * _FULL_PERCENT // 100 + self._burst // _ANSWERED_SECONDS, most)

    def _estimate_burst(self, now: int, others: int) -> None:
        """Subtract the demand above the capacity since the last call from the burst, or add the capacity not used."""
        if self._looked_at is None:
            return
        whole = self._provisioned * MILLIUNITS
        used = (max(self._asked, others) - whole) * (now - self._looked_at) // NANOSECONDS
        self._burst, _ = settle(self._burst, 0, used, max(whole * _HALF_SECONDS, self._burst))

    def _others(self, shown: Shown) -> int:
        """Return the others' consumption; if unknown, the one for which auto scaling keeps the first capacity seen."""
        if shown.others is not None:
            return shown.others
        if self._guessed is None:
            target = shown.target_percent or USUAL_TARGET_PERCENT
            self._guessed = shown.provisioned * MILLIUNITS * target // 100
        return self._guessed


MOST_ITEM_BYTES: Final = 400 * 1024
_WRITE_BLOCK_BYTES: Final = 1_024
_OF_COLLECTION, _OF_ELEMENT = 3, 1
_LONGEST_NUMBER: Final = 21


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the bytes of an item in DynamoDB's JSON, `{"name": {"S": "value"}}`: names and values."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def nesting_of(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how deeply lists and maps are nested in an item in DynamoDB's JSON."""
    deepest, level = 0, [*item.values()]
    while level:
        inner: list[Any] = []
        for value in level:
            inner += [*value["L"]] if "L" in value else [*value["M"].values()] if "M" in value else []
        deepest, level = deepest + 1, inner
    return max(deepest - 1, 0)


def write_units_of(size_bytes: int) -> int:
    """Return the write units for an item of *size_bytes*: one for each kilobyte, rounded up."""
    return max(-(-size_bytes // _WRITE_BLOCK_BYTES), 1)


def value_bytes(value: Mapping[str, Any]) -> int:
    """Return the bytes of one value in DynamoDB's JSON; 1 for an unknown type."""
    for kind, held in value.items():
        match kind:
            case "S":
                return len(str(held).encode())
            case "N":
                return _number_bytes(str(held))
            case "B":
                return _binary_bytes(held)
            case "SS":
                return sum(len(str(each).encode()) for each in held)
            case "NS":
                return sum(_number_bytes(str(each)) for each in held)
            case "BS":
                return sum(_binary_bytes(each) for each in held)
            case "L":
                return _OF_COLLECTION + sum(_OF_ELEMENT + value_bytes(each) for each in held)
            case "M":
                return _OF_COLLECTION + _OF_ELEMENT * len(held) + item_bytes(held)
    return 1


def _number_bytes(text: str) -> int:
    """Return the approximate size of a number, as the guide states it: a byte for two significant digits, plus one."""
    digits = text.lower().partition("e")[0].lstrip("+-").replace(".", "").strip("0")
    return min(-(-len(digits) // 2) + 1 + text.startswith("-"), _LONGEST_NUMBER)


def _binary_bytes(held: Any) -> int:
    if isinstance(held, bytes | bytearray):
        return len(held)
    return len(base64.b64decode(str(held)))


@dataclass(frozen=True, slots=True)
class IndexParts:
    """The part of an item that is copied to an index.

    Attributes:
        name: The index.
        keys: Attributes that an item must have to be in the index: the index's own keys.
        projected: The attributes that are copied, those keys and the table's among them; `None` for all.
        is_local: Whether it is a local index, whose writes the table pays for.
    """

    name: str
    keys: frozenset[str]
    projected: frozenset[str] | None
    is_local: bool

    def units_for(self, item: Mapping[str, Mapping[str, Any]]) -> int:
        """Return the index's write units for a new item: none if the item lacks one of the keys."""
        if not self.keys <= item.keys():
            return 0
        if self.projected is None:
            return write_units_of(item_bytes(item))
        return write_units_of(item_bytes({name: item[name] for name in self.projected & item.keys()}))


@dataclass(slots=True)
class WriteCost:
    """The sum of the cost of new items.

    An item that replaces a larger one, or one with other keys, costs more.

    Attributes:
        indexes: The table's indexes.
        items: The number of items.
        size_bytes: Their total size.
        table_units: Write units of the table, including its local indexes.
        index_units: Write units of each global index.
    """

    indexes: Sequence[IndexParts]
    items: int = 0
    size_bytes: int = 0
    table_units: int = 0
    index_units: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set the units of each global index to 0."""
        self.index_units = {index.name: 0 for index in self.indexes if not index.is_local}

    def add(self, item: Mapping[str, Mapping[str, Any]]) -> None:
        """Add an item in DynamoDB's JSON, `{"name": {"S": "value"}}`."""
        size = item_bytes(item)
        self.items += 1
        self.size_bytes += size
        self.table_units += write_units_of(size)
        for index in self.indexes:
            units = index.units_for(item)
            if index.is_local:
                self.table_units += units
            else:
                self.index_units[index.name] += units

    @property
    def units(self) -> int:
        """The units of the table and all of its indexes."""
        return self.table_units + sum(self.index_units.values())

    @property
    def units_by_target(self) -> dict[str | None, int]:
        """The units of the table, `None`, and of each global index."""
        return dict([(None, self.table_units), *self.index_units.items()])

    def seconds_at(self, rates: Mapping[str | None, float]) -> int:
        """Return the lower bound of the duration, at a rate in units per second for the table and for each index."""
        return max(
            -(-units * 1_000_000 // round(rates[target] * 1_000_000)) for target, units in self.units_by_target.items()
        )


# A read unit is one strongly consistent read of up to 4 KB, or two eventually consistent ones (DynamoDB Developer
# Guide, "DynamoDB read and write operations"); the size of a page is rounded up to 4 KB once.
BLOCK_BYTES: Final = 4_096
PAGE_BYTES: Final = 1_048_576
_USUAL_MILLIUNITS: Final = 25_000
# 800 KB of the megabyte that a page may have; 400 KB of strongly consistent reads
_MOST_MILLIUNITS: Final = 100_000
_LEAST_MILLIUNITS: Final = 1_000
# Weight of the newest page in the mean size of an item
_WEIGHT_PERCENT: Final = 30


def bytes_per_unit(*, is_consistent: bool) -> int:
    """Return the number of bytes that one read unit reads."""
    return BLOCK_BYTES if is_consistent else 2 * BLOCK_BYTES


def page_units(size_bytes: int, *, is_consistent: bool) -> float:
    """Return the read units of a page: one for each 4 KB, rounded up; half as many if eventually consistent."""
    blocks = max(-(-size_bytes // BLOCK_BYTES), 1)
    return float(blocks) if is_consistent else blocks / 2


@dataclass(slots=True)
class PageSize:
    """Chooses how many items to request, from the size of the items in earlier pages.

    Attributes:
        rate: The budget in thousandths of a unit per second.
        is_consistent: Whether reads are strongly consistent.
        item_bytes: The mean size of an item, in thousandths of a byte; `None` before the first page.
    """

    rate: int
    is_consistent: bool
    item_bytes: int | None = None

    @property
    def milliunits(self) -> int:
        """The wanted cost of a page: a quarter of a second of the budget, from 1 to 25 units; for a large budget a
        twentieth of a second, up to 100 units.
        """
        most = min(max(self.rate // 20, _USUAL_MILLIUNITS), _MOST_MILLIUNITS)
        return min(max(self.rate // 4, _LEAST_MILLIUNITS), most)

    @property
    def limit(self) -> int:
        """The number of items to request: the `Limit` of Scan and Query. One while their size is unknown."""
        if self.item_bytes is None:
            return 1
        wanted = self.milliunits * bytes_per_unit(is_consistent=self.is_consistent)
        return max(wanted // max(self.item_bytes, 1), 1)

    def expect(self, size_bytes: int, items: int) -> None:
        """Use the table's or index's mean item size until a page was read.

        DynamoDB's counts are some hours old, so this is done only if the largest possible page, of a megabyte, would
        cost no more than a second of the budget.
        """
        dearest = PAGE_BYTES * 1_000 // bytes_per_unit(is_consistent=self.is_consistent)
        if self.item_bytes is None and items > 0 and self.rate >= dearest:
            self.item_bytes = max(size_bytes * 1_000 // items, 1)

    def learn(self, units: float, scanned: int) -> None:
        """Learn the mean item size from the cost of a page of *scanned* items, filtered ones included."""
        if scanned < 1:
            return
        blocks = units if self.is_consistent else 2 * units
        # the last block of a page is half full on average
        size = int(max(blocks - 0.5, 0.5) * BLOCK_BYTES * 1_000) // scanned
        if self.item_bytes is None:
            self.item_bytes = size
        else:
            self.item_bytes += (size - self.item_bytes) * _WEIGHT_PERCENT // 100


# DynamoDB API Reference, Scan: TotalSegments from 1 to 1,000,000
MOST_SEGMENTS: Final = 1_000_000
_SEGMENT_BYTES: Final = 256 * 1024 * 1024
_LEAST_FOR_EACH_WORKER: Final = 4
# Rounding costs up to half a unit for each segment and each page
_PER_SEGMENT_UNITS, _PER_PAGE_UNITS = 0.5, 0.25


def count_segments(size_bytes: int, workers: int) -> int:
    """Return the number of segments for a table: one for each 256 MB, and at least four for each worker."""
    return min(max(-(-size_bytes // _SEGMENT_BYTES), _LEAST_FOR_EACH_WORKER * workers, 1), MOST_SEGMENTS)


def scan_units(size_bytes: int, *, is_consistent: bool, page_milliunits: int, segments: int) -> int:
    """Return the read units of a scan of *size_bytes*, including the rounding of its pages.

    Args:
        size_bytes: The size of the table or index.
        is_consistent: Whether reads are strongly consistent, which costs twice as much.
        page_milliunits: The wanted cost of a page, in thousandths of a unit.
        segments: The number of segments.
    """
    per_unit = bytes_per_unit(is_consistent=is_consistent)
    page = min(page_milliunits * per_unit // 1_000, PAGE_BYTES)
    pages = -(-size_bytes // max(page, 1))
    rounding = (2 if is_consistent else 1) * (pages * _PER_PAGE_UNITS + segments * _PER_SEGMENT_UNITS)
    return -(-size_bytes // per_unit) + int(rounding)
