"""The lines that say which partition keys were hot in a minute: their form, and a file in which they are found."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from highwater.core.documents import read_document
from highwater.core.units import Dimension

_MARK: Final = '{"highwater": "hot-key", '
_SECONDS: Final = 60
# a greater number in a line is none that a process counted in a minute
_MOST: Final = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLine:
    """What a process counted for one partition key in one minute.

    Attributes:
        minute: The beginning of the minute in UTC, such as `2026-12-01T12:00:00Z`.
        region: The region of the table.
        table: Its name.
        dimension: Whether the key was read or written.
        key: The key itself, empty unless the application asked for it.
        key_hash: Otherwise sixteen hexadecimal digits of its keyed hash.
        secret: Which secret the hash is made with: lines with the same one can be compared.
        units: The units consumed, at least.
        units_error: So many more they may be.
        table_units: The units of all counted requests of the process to this table.
        throttled: The requests that were throttled, whatever the cause; each counts once, however often it is retried.
        key_range_throttled: Those of them for which DynamoDB named the limit of a partition.
    """

    minute: str
    region: str
    table: str
    dimension: Dimension
    key: str = ""
    key_hash: str = ""
    secret: str = ""
    units: float
    units_error: float
    table_units: float
    throttled: int
    key_range_throttled: int

    def text(self) -> str:
        """Return the line: JSON, without the members that are empty."""
        members = {name: value for name, value in asdict(self).items() if value != ""}
        return _MARK + json.dumps(members)[1:]


@dataclass(frozen=True, slots=True)
class LoggedKeys:
    """What the lines of a file say of one table.

    Attributes:
        lines: How many lines of any table the file has.
        secrets: How many secrets the hashes of this table's lines are made with.
        peaks: The units a second of each key in its worst minute, of all processes together, and that minute.
    """

    lines: int
    secrets: int
    peaks: dict[str, tuple[float, str | None]]


def read_key_log(text: str, table: str, dimension: Dimension, units_of_request: float) -> LoggedKeys:
    """Read the lines in a log, whatever stands around them: text, or JSON that has them as texts or as objects.

    Args:
        text: The log.
        table: The table whose keys to return.
        dimension: Whether to return those that were read, or those that were written.
        units_of_request: The units of a throttled request.
    """
    units: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    secrets: set[str] = set()
    number = 0
    for line in _lines_in(text):
        number += 1
        if (line.table, line.dimension) == (table, dimension):
            units[line.key or line.key_hash, line.minute, line.region] += line.units + line.throttled * units_of_request
            secrets.add(line.secret)
    peaks: dict[str, tuple[float, str | None]] = {}
    for (key, minute, _), found in units.items():
        peaks[key] = max(peaks.get(key, (0.0, "")), (found / _SECONDS, minute))
    return LoggedKeys(number, len(secrets - {""}), peaks)


def _lines_in(text: str) -> Iterator[KeyLine]:
    try:
        # a whole document, such as the answers of `aws logs`
        documents = [read_document(text)]
    except ValueError:
        documents = [_value_of(line) for line in text.split("\n") if "hot-key" in line]
    for document in documents:
        yield from _lines_of(document)


def _value_of(line: str) -> Any:
    try:
        return read_document(line)
    except ValueError:
        return line


def _lines_of(value: Any) -> Iterator[KeyLine]:
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            # an event of CloudWatch Logs may have several lines
            for text in reversed(value.split("\n")):
                _, mark, rest = text.partition(_MARK)
                if mark:
                    left.append(_members_at(mark + rest))
        elif isinstance(value, list):
            left += reversed(value)
        elif isinstance(value, dict):
            line = _line_of(value)
            if line is None:
                left += reversed(value.values())
            else:
                yield line


def _members_at(text: str) -> Any:
    """Return the JSON object at the beginning of a text, `None` for one that was cut off."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _line_of(members: dict[str, Any]) -> KeyLine | None:
    if members.get("highwater") != "hot-key":
        return None
    try:
        return KeyLine(
            minute=_minute_of(members["minute"]),
            region=str(members.get("region", "")),
            table=str(members["table"]),
            dimension=Dimension(members["dimension"]),
            key=str(members.get("key", "")),
            key_hash=str(members.get("key_hash", "")),
            secret=str(members.get("secret", "")),
            units=_number_of(members["units"]),
            units_error=_number_of(members["units_error"]),
            table_units=_number_of(members["table_units"]),
            throttled=int(_number_of(members["throttled"])),
            key_range_throttled=int(_number_of(members["key_range_throttled"])),
        )
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None


def _minute_of(value: Any) -> str:
    datetime.fromisoformat(value)
    return str(value)


def _number_of(value: Any) -> float:
    number = float(value)
    if not 0 <= number <= _MOST:
        raise ValueError(value)
    return number
