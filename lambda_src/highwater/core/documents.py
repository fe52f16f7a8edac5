"""JSON that somebody else wrote: one function reads it, and fails with one error, whatever the text is.

HighwaterError
└── DocumentError (also a ValueError): a text is no JSON, or has what cannot be read
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any, Final, Literal

from highwater.core.errors import HighwaterError
from highwater.core.findings import shown

Problem = Literal["syntax", "depth", "number"]
_TOO_DEEP: Final = "is nested too deeply"
# Deeper than any document of ours, and shallow enough to descend into by recursion. Python's own limit differs: 3.11
# reads less than 1,000 levels, 3.14 as many as the stack has room for.
_MOST_LEVELS: Final = 200
_CONTAINERS: Final = (list, dict)
_MOST_DIGITS: Final = 60


class DocumentError(HighwaterError, ValueError):
    """A text is no JSON document, or has what cannot be read.

    Attributes:
        problem: `syntax` for what is no JSON, `depth` for what is nested too deeply, and `number` for a number that
            no `Decimal`, or without decimals no `float`, can have.
    """

    def __init__(self, problem: Problem, why: str) -> None:
        self.problem: Problem = problem
        super().__init__(why)


def read_document(text: object, *, has_decimals: bool = False) -> Any:
    """Return the value of a JSON text, or of bytes in UTF-8.

    Args:
        text: The text; anything else is no document either.
        has_decimals: Whether fractions become `Decimal`, with all of their digits; by default `float`.

    Raises:
        DocumentError: For any text that cannot be read, and nothing else. The message goes on from "the text ...".
    """
    if not isinstance(text, str | bytes | bytearray):
        raise DocumentError("syntax", f"is not JSON (got {shown(text)})")
    fraction = _decimal if has_decimals else _float
    try:
        document = json.loads(text, parse_float=fraction, parse_constant=_refuse_constant)
    except DocumentError:
        raise
    except RecursionError:
        raise DocumentError("depth", _TOO_DEEP) from None
    except (ValueError, ArithmeticError) as error:
        raise DocumentError("syntax", f"is not JSON ({' '.join(str(error).split())})") from None
    if _has_levels_beyond(document, _MOST_LEVELS):
        raise DocumentError("depth", _TOO_DEEP)
    return document


def _has_levels_beyond(document: Any, most: int) -> bool:
    level = [document] if isinstance(document, _CONTAINERS) else []
    for _ in range(most):
        if not level:
            break
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, _CONTAINERS)
        ]
    return bool(level)


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        # int() and timedelta() would raise OverflowError for it
        raise _unreadable(text)
    return number


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        # its exponent has more digits than any number could need
        raise _unreadable(text) from None


def _unreadable(text: str) -> DocumentError:
    return DocumentError("number", f"has a number that cannot be read: {text[:_MOST_DIGITS]}")


def _refuse_constant(name: str) -> None:
    # of Python's JSON only
    raise DocumentError("syntax", f"is not JSON ({name} is not a number of JSON)")
