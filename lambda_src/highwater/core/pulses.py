"""Pulses: what the processes of a fleet ask of a table, reported within seconds.

The wire format is in docs/pulse-protocol.md. Demand is counted in slots of ten seconds (`Slots`). The processes add
it up in one item for each table and minute, in which the scaler leaves a hint for them (`Hint`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

from highwater.core.bucket import BELIEVED_SECONDS, level_after, outlasts
from highwater.core.documents import DocumentError, read_document
from highwater.core.plan.plan import TargetKey
from highwater.core.units import Dimension

SLOT_SECONDS: Final = 10
SLOTS_PER_MINUTE: Final = 60 // SLOT_SECONDS
# A calm process tells every half minute, and one near the capacity in each slot.
CALM_SLOTS: Final = 3


def slot_at(now: datetime) -> int:
    """Return the slot that the aware instant *now* is in, counted since 1970."""
    return int(now.astimezone(UTC).timestamp()) // SLOT_SECONDS


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots up to the newest that may be known, oldest first; both series have the same length.

    Attributes:
        newest: The last slot, counted since 1970.
        consumed_units: Capacity units that the fleet's requests consumed in each slot, rounded up; `None` where no
            process told anything.
        refused_units: Units that it estimates for requests refused for want of provisioned capacity, attempts to send
            a request again not counted twice.
    """

    newest: int
    consumed_units: Sequence[int | None]
    refused_units: Sequence[int]

    def __post_init__(self) -> None:
        """Raises `ValueError` for series of two lengths, and for amounts below zero."""
        if len(self.consumed_units) != len(self.refused_units):
            message = f"{len(self.consumed_units)} slots consumed and {len(self.refused_units)} refused"
            raise ValueError(message)
        if min(filter(None, self.consumed_units), default=0) < 0 or min(self.refused_units, default=0) < 0:
            message = "units below zero"
            raise ValueError(message)

    @property
    def first(self) -> int:
        """The oldest slot, counted since 1970."""
        return self.newest + 1 - len(self.consumed_units)

    @property
    def is_empty(self) -> bool:
        """Whether no process told anything."""
        return all(units is None for units in self.consumed_units) and not any(self.refused_units)

    def since(self, slot: int) -> Slots:
        """The slots from *slot* on."""
        skipped = min(max(slot - self.first, 0), len(self.consumed_units))
        return Slots(self.newest, self.consumed_units[skipped:], self.refused_units[skipped:]) if skipped else self

    def consumed_in(self, minute: int) -> int:
        """Units consumed in a minute since 1970; 0 unless all its slots are here."""
        at = minute * SLOTS_PER_MINUTE - self.first
        if at < 0 or at + SLOTS_PER_MINUTE > len(self.consumed_units):
            return 0
        return sum(filter(None, self.consumed_units[at : at + SLOTS_PER_MINUTE]))

    def asked_units(self, coverage_percent: int = 100) -> list[int]:
        """Units asked for in each slot, consumed and refused, by a fleet of which so many percent tell.

        The last slots may not be told yet: up to three of them count as the newest that was.
        """
        asked = [
            (consumed or 0) + refused for consumed, refused in zip(self.consumed_units, self.refused_units, strict=True)
        ]
        if coverage_percent != 100:
            asked = [-(-units * 100 // coverage_percent) for units in asked]
        untold = 0
        while untold < min(CALM_SLOTS, len(asked) - 1) and self._is_untold(len(asked) - 1 - untold):
            untold += 1
        for place in range(len(asked) - untold, len(asked)):
            asked[place] = asked[place - 1]
        return asked

    def _is_untold(self, place: int) -> bool:
        return self.consumed_units[place] is None and not self.refused_units[place]


# The rate is that of the highest of so many last slots, as a slot may be told late by some processes.
RATE_SLOTS: Final = 2


@dataclass(frozen=True, slots=True)
class Hint:
    """One target as the last turn left it.

    Attributes:
        slot: The newest slot that the turn knew, counted since 1970.
        capacity_units: Units per second that the turn granted, which are there or on their way.
        level_units: The tokens that it believed to be in the burst bucket.
        coverage_percent: The share of requests that pulses tell of.
        help_seconds: How long help takes.
        burst_seconds: How many seconds of capacity the burst bucket is believed to hold.
        is_most: Whether no more capacity is to be had, as at a ceiling, so that nobody need ask for help.
    """

    slot: int
    capacity_units: int
    level_units: int
    coverage_percent: int
    help_seconds: int
    burst_seconds: int = BELIEVED_SECONDS
    is_most: bool = False

    def needs_help(self, slots: Slots) -> bool:
        """Whether the bucket will not last until help is there, or requests are refused when it should be."""
        if self.is_most:
            return False
        later = slots.since(self.slot + 1)
        asked = later.asked_units(self.coverage_percent)
        if not asked:
            return False
        if any(slots.since(self._helped_slot).refused_units):
            return True
        level = level_after(self.level_units, self.capacity_units, asked, SLOT_SECONDS, self.burst_seconds)
        return not outlasts(level, self.capacity_units, rate_of(asked), self.help_seconds)

    def is_urgent(self, slot: int) -> bool:
        """Whether refusals of a slot are to be told at once: there is more to be had, and none is on its way."""
        return not self.is_most and slot >= self._helped_slot

    @property
    def _helped_slot(self) -> int:
        """The first slot in which what the turn granted is there."""
        return self.slot + 1 + -(-self.help_seconds // SLOT_SECONDS)

    def is_near(self, slots: Slots) -> bool:
        """Whether the fleet asks for so much that its pulses should come often.

        The newest slot has just begun, and the one before may not be told by all yet, so one more counts.
        """
        asked = slots.asked_units(self.coverage_percent)
        return bool(asked) and rate_of(asked, RATE_SLOTS + 1) * 100 >= self.capacity_units * _NEAR_PERCENT


_NEAR_PERCENT: Final = 80


def rate_of(asked_units: list[int], last_slots: int = RATE_SLOTS) -> int:
    """Units per second asked for in the highest of the last slots."""
    return -(-max(asked_units[-last_slots:]) // SLOT_SECONDS)


HINT_ATTRIBUTE: Final = "hint"
WOKEN_ATTRIBUTE: Final = "woken"
# How long DynamoDB keeps an item at least; the scaler looks back a third of an hour.
KEPT_SECONDS: Final = 3_600
_PARTITION: Final = "pulse#"
_CONSUMED, _REFUSED = "c", "t"
_CODES: Final = {Dimension.READ: "r", Dimension.WRITE: "w"}
_DIMENSIONS: Final = {code: dimension for dimension, code in _CODES.items()}
_AMOUNT: Final = re.compile(rf"([ct])([0-{SLOTS_PER_MINUTE - 1}])([rw])(?::(.+))?", re.DOTALL)
# Larger amounts per slot are ignored as corrupt
_MOST_UNITS: Final = 10**12
# What a hint may say: whoever pulses can write to its item too. Slots until the year 2286; a target has less capacity
# than 10**9 units per second; help is there within a day; a bucket holds 300 seconds of capacity.
_HINT_RANGES: Final = ((0, 10**9), (0, 10**9), (0, _MOST_UNITS), (1, 100), (0, 86_400), (0, 3_600), (0, 1))
_NEEDED: Final = 5


# A partition of DynamoDB takes 1,000 writes a second. A process whose pulse is throttled goes on in another shard.
PULSE_SHARDS: Final = 8
# A shard that reports less of the fleet's demand than this percentage gets no hint: it knows too little.
_LEAST_SHARE_PERCENT: Final = 5


def pulse_partition(label: str, shard: int = 0) -> str:
    """Return the partition key of a table's items in a shard; permissions to pulse are for partition keys."""
    return f"{_PARTITION}{label}#{shard}" if shard else f"{_PARTITION}{label}"


def pulse_partition_patterns(label: str) -> list[str]:
    """Return patterns, with `?`, of the partition keys of all of a table's shards."""
    return [f"{_PARTITION}{label}", f"{_PARTITION}{label}#?"]


def hints_of_shards(
    hints: Mapping[TargetKey, Hint], units_by_shard: Mapping[int, int]
) -> dict[int, dict[TargetKey, Hint]]:
    """Return the hints for the items of each shard, whose processes see only what was reported there.

    Args:
        hints: The hints for a process that sees all that the fleet reports.
        units_by_shard: Units that were reported lately in each shard.
    """
    total = sum(units_by_shard.values())
    shares = {shard: units * 100 // total for shard, units in units_by_shard.items() if units}
    # the first shard always gets a hint: most fleets have no other, and anybody with the grant may write to the others
    found = {0: shares.get(0, 0 if shares else 100)}
    found |= {shard: percent for shard, percent in shares.items() if percent >= _LEAST_SHARE_PERCENT}
    return {shard: {key: _share_of(hint, percent) for key, hint in hints.items()} for shard, percent in found.items()}


def _share_of(hint: Hint, percent: int) -> Hint:
    return replace(hint, coverage_percent=max(hint.coverage_percent * percent // 100, 1))


def pulse_sort_key(minute: int) -> str:
    """Return the sort key of the item of a minute since 1970."""
    return f"{minute:010}"


def amount_attribute(slot: int, key: TargetKey, *, refused: bool) -> str:
    """Return the attribute in which the units of one target in a slot since 1970 add up."""
    index, dimension = key
    code = f"{_REFUSED if refused else _CONSUMED}{slot % SLOTS_PER_MINUTE}{_CODES[dimension]}"
    return code if index is None else f"{code}:{index}"


PULSE_SOURCE: Final = "highwater.pulse"
# of tables whose name does not fit: at synth a name is often unknown, and then a policy cannot contain a part of it
LONG_NAME_DETAIL_TYPE: Final = "Highwater Pulse"
# EventBridge API Reference, PutEventsRequestEntry, read 2026-11
_LONGEST_DETAIL_TYPE: Final = 128


def pulse_detail_type(label: str) -> str:
    """Return the detail type of the events that ask for help for a table, so that IAM can tell tables apart.

    EventBridge takes 128 characters, so tables whose names have more than 112 share one type.
    """
    own = f"{LONG_NAME_DETAIL_TYPE} {label}"
    return own if len(own) <= _LONGEST_DETAIL_TYPE else LONG_NAME_DETAIL_TYPE


def told_attributes() -> list[str]:
    """Return patterns, with `*` and `?`, of the attributes that a process writes; a hint is the scaler's alone."""
    codes = [f"{kind}?{code}" for kind in (_CONSUMED, _REFUSED) for code in sorted(_DIMENSIONS)]
    return [WOKEN_ATTRIBUTE, *codes, *(f"{code}:*" for code in codes)]


def hints_text(hints: Mapping[TargetKey, Hint]) -> str:
    """Write hints down for an item."""
    document = {_code(key): _numbers(hint) for key, hint in hints.items()}
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def hints_of_text(text: str) -> dict[TargetKey, Hint]:
    """Read the hints of an item; targets whose hint makes no sense are left out, as nothing must fail by it."""
    try:
        document = read_document(text)
    except DocumentError:
        return {}
    found = {}
    for code, numbers in document.items() if isinstance(document, dict) else ():
        letter, colon, index = code.partition(":")
        hint = _hint(numbers)
        if hint is not None and letter in _DIMENSIONS:
            found[index if colon else None, _DIMENSIONS[letter]] = hint
    return found


def slots_of_items(
    items: Iterable[tuple[int, Mapping[str, str]]], first_minute: int, newest_slot: int
) -> dict[TargetKey, Slots]:
    """Return each target's slots from *first_minute* to *newest_slot*, both since 1970.

    Args:
        items: Minutes, and their attributes with numbers as text; several items of a minute add up.
        first_minute: The minute that the slots begin with.
        newest_slot: The last slot.
    """
    first = first_minute * SLOTS_PER_MINUTE
    length = newest_slot + 1 - first
    consumed: dict[TargetKey, list[int | None]] = {}
    refused: dict[TargetKey, list[int]] = {}
    for minute, attributes in items:
        for name, text in attributes.items():
            found = _AMOUNT.fullmatch(name)
            units = None if found is None else _units(text)
            if found is None or units is None:
                continue
            at = minute * SLOTS_PER_MINUTE + int(found[2]) - first
            if not 0 <= at < length:
                continue
            key = found[4], _DIMENSIONS[found[3]]
            consumed.setdefault(key, [None] * length)
            refused.setdefault(key, [0] * length)
            if found[1] == _CONSUMED:
                consumed[key][at] = units + (consumed[key][at] or 0)
            else:
                refused[key][at] += units
    return {key: Slots(newest_slot, tuple(consumed[key]), tuple(refused[key])) for key in consumed}


def _units(text: str) -> int | None:
    """Whole units, rounded up; `None` for what no fleet can have asked for."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    if not amount.is_finite() or not 0 <= amount <= _MOST_UNITS:
        return None
    return math.ceil(amount)


def _code(key: TargetKey) -> str:
    index, dimension = key
    return _CODES[dimension] if index is None else f"{_CODES[dimension]}:{index}"


def _numbers(hint: Hint) -> list[int]:
    *numbers, is_most = astuple(hint)
    return [*numbers, 1] if is_most else numbers


def _hint(numbers: object) -> Hint | None:
    """Read the numbers of one hint; those that a later version adds are left out."""
    if not isinstance(numbers, list) or len(numbers) < _NEEDED:
        return None
    known = numbers[: len(_HINT_RANGES)]
    for number, (least, most) in zip(known, _HINT_RANGES, strict=False):
        if not isinstance(number, int) or not least <= number <= most:
            return None
    slot, capacity, level, coverage, seconds, *further = map(int, known)
    burst = further[0] if further else BELIEVED_SECONDS
    return Hint(slot, capacity, level, coverage, seconds, burst, is_most=further[1:] == [1])
