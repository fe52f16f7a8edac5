"""A partition key spread over several: the form of a shard's key, the shard of an item, and the shards to be read."""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from highwater.core.errors import HighwaterError

BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
_END: Final = datetime.max.replace(tzinfo=UTC)
# How far the clocks of writers may be apart
CLOCKS_APART: Final = timedelta(minutes=5)
# DynamoDB Developer Guide, "Quotas": bytes of a partition key
_MOST_KEY_BYTES: Final = 2_048
_MOST_DIGITS: Final = 4
Hashed = str | bytes | int
# the number of a shard, `None` for the plain key
Shard = int | None


class ShardError(HighwaterError, ValueError):
    """A sharded key, a key, a cursor or an argument that is not valid."""


@dataclass(frozen=True, slots=True)
class Shards:
    """The number of shards of a key from an instant on.

    Attributes:
        number: How many shards, 1 to 10 to the power of the key's `digits`.
        since: The instant from which writers use them, with a time zone. By default the beginning of time.

    Example:
        ```python
        eight = highwater.shards.Shards(8, since=datetime(2026, 12, 1, tzinfo=UTC))
        ```
    """

    number: int
    since: datetime = BEGINNING


@dataclass(frozen=True, slots=True)
class ShardedKey:
    """Spreads items with one partition key over several partition keys, its shards: `TENANT#1` over `TENANT#1#s00`,
    `TENANT#1#s01`, and so on.

    Every program that reads or writes the key declares the same. A later number of shards is added to *periods*, never
    put in the place of an earlier one: items that were written before remain where they are, and are read there.

    The shard of a hash is the first four bytes of the SHA-256 of the hashed value, as a big-endian number, modulo the
    number of shards: the same in every process and language. A text is hashed as UTF-8, a whole number as its decimal
    digits.

    Attributes:
        periods: The numbers of shards, in the order of their instants; at least one.
        unsharded_until: The instant until which items are also read under the plain key, as they were written before
            there were shards. `None`: there are none, or no longer any. Until the first of *periods* begins, items are
            written under the plain key.
        is_random: Whether writers choose a shard at random. By default it is the hash of a value that writers and
            readers know, so that a single item is found by one request.
        separator: Stands between the plain key and the number of the shard; not empty. By default `#s`.
        digits: The number of digits of that number, filled with zeros, 1 to 4. By default 2, for up to 100 shards.

    Raises:
        ShardError: A value is not valid.

    Example:
        ```python
        orders = highwater.shards.ShardedKey(
            (highwater.shards.Shards(8, since=datetime(2026, 12, 1, tzinfo=UTC)),),
            unsharded_until=datetime(2027, 3, 1, tzinfo=UTC),
        )
        table.put_item(Item={"pk": orders.key_for("TENANT#1", at=now, hashed="o-17"), "sk": "o-17"})
        ```
    """

    periods: Sequence[Shards]
    # no default: who forgets it no longer sees the items that were there before
    unsharded_until: datetime | None = field(kw_only=True)
    is_random: bool = field(default=False, kw_only=True)
    separator: str = field(default="#s", kw_only=True)
    digits: int = field(default=2, kw_only=True)

    def __post_init__(self) -> None:
        """Check the declaration."""
        object.__setattr__(self, "periods", tuple(self.periods))
        if not self.separator:
            raise ShardError("sharded key: separator: got '', allowed: at least one character, such as '#s'")
        if not 1 <= self.digits <= _MOST_DIGITS:
            raise ShardError(f"sharded key: digits: got {self.digits}, allowed: 1 to {_MOST_DIGITS}")
        if not self.periods:
            raise ShardError("sharded key: periods: got none, allowed: at least one, such as Shards(8)")
        most = 10**self.digits
        for before, each in zip((None, *self.periods), self.periods, strict=False):
            if not 1 <= each.number <= most:
                raise ShardError(
                    f"sharded key: number of shards: got {each.number}, allowed: 1 to {most:,} with {self.digits} "
                    "digits; a new key may have more digits"
                )
            _with_zone("since", each.since)
            if before is not None and each.since <= before.since:
                raise ShardError(
                    f"sharded key: periods: got {each.since.isoformat()} behind {before.since.isoformat()}, allowed: "
                    "each later than the one before"
                )
        if self.unsharded_until is not None:
            _with_zone("unsharded_until", self.unsharded_until)
            if self.unsharded_until <= self.periods[0].since:
                raise ShardError(
                    f"sharded key: unsharded_until: got {self.unsharded_until.isoformat()}, allowed: later than the "
                    f"first period, {self.periods[0].since.isoformat()}; None if there are no unsharded items"
                )

    def key_for(
        self, plain: str, *, at: datetime, hashed: Hashed | None = None, pick: Callable[[int], int] | None = None
    ) -> str:
        """Return the partition key under which an item is written.

        Args:
            plain: The key without a shard, such as `TENANT#1`.
            at: When the item is first written, with a time zone: now, for a new item; the same instant again when it is
                updated or put once more, so that it stays in its shard though their number has changed.
            hashed: The value whose hash is the shard; it must never change. Best is the sort key, which every reader
                knows.
            pick: For a random key: returns a number from 0 to below its argument, such as `random.randrange`.

        Raises:
            ShardError: The key cannot be told from a shard's, or is too long; or *hashed*, *pick* or *at* is missing or
                of the wrong kind.
        """
        return self.key_of(plain, self.shard_for(at=at, hashed=hashed, pick=pick))

    def shard_for(
        self, *, at: datetime, hashed: Hashed | None = None, pick: Callable[[int], int] | None = None
    ) -> Shard:
        """Return the number of the shard of an item, `None` for the plain key; the arguments are those of `key_for`."""
        _with_zone("at", at)
        found = bisect_right([each.since for each in self.periods], at) - 1
        if found < 0 and self.unsharded_until is not None:
            return None
        number = self.periods[max(found, 0)].number
        if not self.is_random:
            return hash_of(self._hashed(hashed)) % number
        if pick is None:
            raise ShardError("sharded key: pick: got none, allowed for a random key: such as random.randrange")
        return pick(number)

    def key_of(self, plain: str, shard: Shard) -> str:
        """Return the partition key of a shard; raises `ShardError` for a plain key that is not valid."""
        before, is_shard = self.split(_text(plain))
        if is_shard is not None:
            raise ShardError(
                f"sharded key: key {plain!r}: is the key of a shard of {before!r}; give that key, or another separator"
            )
        key = plain if shard is None else f"{plain}{self.separator}{shard:0{self.digits}d}"
        size = len(key.encode())
        if size > _MOST_KEY_BYTES:
            raise ShardError(
                f"sharded key: key: got {size:,} bytes with the shard, allowed: {_MOST_KEY_BYTES:,}; give a shorter key"
            )
        return key

    def attributes_of(self, plain: str, shard: Shard, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the partition key of a shard in DynamoDB's JSON: its one attribute, or the plain key and the shard's
        number in an attribute each; raises `ShardError` for a plain key that is not valid.
        """
        if len(names) == 1:
            return {names[0]: {"S": self.key_of(plain, shard)}}
        return {names[0]: {"S": _text(plain)}, names[1]: {"N": str(shard)}}

    def split(self, key: str) -> tuple[str, Shard]:
        """Return the plain key and the shard of a partition key, as it is read from an item."""
        plain, digits = key[: -self.digits], key[-self.digits :]
        if digits.isascii() and digits.isdigit() and len(plain) > len(self.separator):
            before = plain.removesuffix(self.separator)
            if before != plain:
                return before, int(digits)
        return key, None

    def shards_of(
        self, *, now: datetime, written_from: datetime | None = None, written_to: datetime | None = None
    ) -> tuple[Shard, ...]:
        """Return the shards that may hold items that were first written in a span; `None` among them is the plain key.

        Clocks of writers may be up to five minutes apart. The first period also counts for what was written before it:
        items that were moved into shards are in its shards.

        Args:
            now: The present time, which decides whether the plain key is still read.
            written_from: The span's begin. By default the beginning of time.
            written_to: The span's end. By default it has none.

        Raises:
            ShardError: An instant has no time zone, or the span ends before it begins.
        """
        _with_zone("now", now)
        begin, end = _with_zone("written_from", written_from or BEGINNING), _with_zone("written_to", written_to or _END)
        if end < begin:
            raise ShardError(
                f"sharded key: written_to: got {end.isoformat()}, allowed: not before written_from, {begin.isoformat()}"
            )
        number = max(
            each.number
            for each, since, until in self._spans()
            if begin - until <= CLOCKS_APART and since - end <= CLOCKS_APART
        )
        return (*self._plain(now), *range(number))

    def shards_with(self, hashed: Hashed | None, *, now: datetime) -> tuple[Shard, ...]:
        """Return the shards that may hold one item, the likeliest first: one for each number of shards that there was,
        or all shards of a random key.

        Raises:
            ShardError: *hashed* is missing or of the wrong kind, or *now* has no time zone.
        """
        _with_zone("now", now)
        if self.is_random:
            return tuple(sorted(self.shards_of(now=now), key=lambda shard: shard is None))
        begun = [each for each in self.periods if each.since <= now]
        order = [*reversed(begun), *(each for each in self.periods if each.since > now)]
        value = hash_of(self._hashed(hashed))
        return (*dict.fromkeys(value % each.number for each in order), *self._plain(now))

    def document(self) -> dict[str, Any]:
        """Return all that decides where items are, for comparison."""
        return {
            "periods": [(each.since.astimezone(UTC).isoformat(), each.number) for each in self.periods],
            "unsharded_until": None if self.unsharded_until is None else self.unsharded_until.timestamp(),
            "form": (self.separator, self.digits),
        }

    def _plain(self, now: datetime) -> tuple[None, ...]:
        return (None,) if self.unsharded_until is not None and now < self.unsharded_until else ()

    def _spans(self) -> list[tuple[Shards, datetime, datetime]]:
        since = [BEGINNING, *(each.since for each in self.periods[1:])]
        return list(zip(self.periods, since, [*since[1:], _END], strict=True))

    def _hashed(self, hashed: Hashed | None) -> Hashed:
        if hashed is None:
            raise ShardError(
                "sharded key: hashed: got none, allowed: the value whose hash is the shard, such as the sort key"
            )
        return hashed


def hash_of(value: Hashed) -> int:
    """Return the first four bytes of the SHA-256 of a text, bytes or a whole number, as a big-endian number.

    Raises `ShardError` for a value of another type: there is no one form of it in all languages.
    """
    if isinstance(value, Decimal) and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes | bytearray):
        raise ShardError(
            f"sharded key: hashed: got {value!r}, allowed: a text, bytes or a whole number; give other values as text"
        )
    return int.from_bytes(hashlib.sha256(value).digest()[:4], "big")


def shards_needed(units: float, per_partition: int, headroom_percent: int) -> int:
    """Return the number of shards for a key.

    Args:
        units: The highest rate of the key in units per second, 0 or more.
        per_partition: What one partition serves, in units per second.
        headroom_percent: The share of it that is left free, 0 to 99: hashes and random numbers are never quite even.
    """
    return max(math.ceil(units * 100 / (per_partition * (100 - headroom_percent))), 1)


def _text(plain: str) -> str:
    if not isinstance(plain, str) or not plain:
        raise ShardError(f"sharded key: key: got {plain!r}, allowed: a text that is not empty")
    return plain


def _with_zone(what: str, at: datetime) -> datetime:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise ShardError(f"sharded key: {what}: got {at!r}, allowed: a datetime with a time zone, such as UTC")
    return at
