"""How large an item is, and what writing it costs.

Sizes are those of the DynamoDB Developer Guide, "DynamoDB item sizes and formats", read 2026-11.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

MOST_ITEM_BYTES: Final = 400 * 1024
_WRITE_BLOCK_BYTES: Final = 1_024
_OF_COLLECTION, _OF_ELEMENT = 3, 1
_LONGEST_NUMBER: Final = 21


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the bytes of an item in DynamoDB's own form, `{"name": {"S": "value"}}`: names and values."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def nesting_of(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how many lists and maps lie within each other in an item in DynamoDB's own form."""
    deepest, level = 0, [*item.values()]
    while level:
        inner: list[Any] = []
        for value in level:
            inner += [*value["L"]] if "L" in value else [*value["M"].values()] if "M" in value else []
        deepest, level = deepest + 1, inner
    return max(deepest - 1, 0)


def write_units_of(size_bytes: int) -> int:
    """Return what writing so many bytes costs: a unit for each kilobyte begun."""
    return max(-(-size_bytes // _WRITE_BLOCK_BYTES), 1)


def value_bytes(value: Mapping[str, Any]) -> int:
    """Return the bytes of one value in DynamoDB's own form; 1 for a form that is not known."""
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
    """A byte for two significant digits, and one: approximately, as the guide says."""
    digits = text.lower().partition("e")[0].lstrip("+-").replace(".", "").strip("0")
    return min(-(-len(digits) // 2) + 1 + text.startswith("-"), _LONGEST_NUMBER)


def _binary_bytes(held: Any) -> int:
    if isinstance(held, bytes | bytearray):
        return len(held)
    return len(base64.b64decode(str(held)))
