"""The items in which a fleet adds up its pulses, one for each table and minute: docs/pulse-protocol.md."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from decimal import Decimal, InvalidOperation
from typing import Final

from highwater.core.plan.plan import TargetKey
from highwater.core.pulses.hint import Hint
from highwater.core.pulses.slots import SLOTS_PER_MINUTE, Slots
from highwater.core.units import Dimension

HINT_ATTRIBUTE: Final = "hint"
WOKEN_ATTRIBUTE: Final = "woken"
# How long DynamoDB keeps an item at least; the scaler looks back a third of an hour.
KEPT_SECONDS: Final = 3_600
_PARTITION: Final = "pulse#"
_CONSUMED, _REFUSED = "c", "t"
_CODES: Final = {Dimension.READ: "r", Dimension.WRITE: "w"}
_DIMENSIONS: Final = {code: dimension for dimension, code in _CODES.items()}
_AMOUNT: Final = re.compile(r"([ct])([0-5])([rw])(?::(.+))?", re.DOTALL)
# Whoever tells more than this for ten seconds tells nonsense
_MOST_UNITS: Final = 10**12


def pulse_partition(label: str) -> str:
    """Return the partition key of a table's items; permissions to pulse are for partition keys."""
    return f"{_PARTITION}{label}"


def pulse_sort_key(minute: int) -> str:
    """Return the sort key of the item of a minute since 1970."""
    return f"{minute:010}"


def amount_attribute(slot: int, key: TargetKey, *, refused: bool) -> str:
    """Return the attribute in which the units of one target in a slot since 1970 add up."""
    index, dimension = key
    code = f"{_REFUSED if refused else _CONSUMED}{slot % SLOTS_PER_MINUTE}{_CODES[dimension]}"
    return code if index is None else f"{code}:{index}"


def hints_text(hints: Mapping[TargetKey, Hint]) -> str:
    """Write hints down for an item."""
    document = {_code(key): list(astuple(hint)) for key, hint in hints.items()}
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def hints_of_text(text: str) -> dict[TargetKey, Hint]:
    """Read the hints of an item; what makes no sense is left out, as nothing must fail by it."""
    try:
        document = json.loads(text)
        return {_key(code): Hint(*(int(value) for value in values)) for code, values in document.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def slots_of_items(
    items: Iterable[tuple[int, Mapping[str, str]]], first_minute: int, newest_slot: int
) -> dict[TargetKey, Slots]:
    """Return each target's slots from *first_minute* to *newest_slot*, both since 1970.

    Args:
        items: Minutes, and their attributes with numbers as text.
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
                consumed[key][at] = units
            else:
                refused[key][at] = units
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


def _key(code: str) -> TargetKey:
    letter, colon, index = code.partition(":")
    return index if colon else None, _DIMENSIONS[letter]
