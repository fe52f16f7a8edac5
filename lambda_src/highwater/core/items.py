"""The bytes of an item, and the units that reading and writing so many bytes costs."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

# A read unit is one strongly consistent read of up to 4 KB, or two eventually consistent ones (DynamoDB Developer
# Guide, "DynamoDB read and write operations"); the size of a page is rounded up to 4 KB once.
READ_BLOCK_BYTES: Final = 4_096
PAGE_BYTES: Final = 1_048_576
# A write unit writes up to 1 KB, and an item is rounded up (the same page).
WRITE_BLOCK_BYTES: Final = 1_024
MOST_ITEM_BYTES: Final = 400 * 1024
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
    return max(-(-size_bytes // WRITE_BLOCK_BYTES), 1)


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


def bytes_per_unit(*, is_consistent: bool) -> int:
    """Return the number of bytes that one read unit reads."""
    return READ_BLOCK_BYTES if is_consistent else 2 * READ_BLOCK_BYTES


def page_units(size_bytes: int, *, is_consistent: bool) -> float:
    """Return the read units of a page: one for each 4 KB, rounded up; half as many if eventually consistent."""
    blocks = max(-(-size_bytes // READ_BLOCK_BYTES), 1)
    return float(blocks) if is_consistent else blocks / 2
