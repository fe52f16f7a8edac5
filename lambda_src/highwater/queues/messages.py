"""Writes that wait in a queue: what a message asks for, which of several for one item counts, and when one comes back.

Nothing here knows a clock or a client: `highwater.queues.drain` writes, answers the queue and tells the time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal, TypeVar

from highwater.core.documents import DocumentError, read_document
from highwater.core.findings import shown

# Seconds. A message that is returned waits at least a tenth of its age: young ones come back soon, and in two weeks
# no message is received more than some 150 times for this reason.
_SHORTEST_DELAY: Final = 1
_PART_OF_AGE: Final = 10
# SQS allows 12 hours from the time at which a message was received, and a function runs up to 15 minutes
# (Amazon SQS Developer Guide, "Amazon SQS visibility timeout", read 2026-11)
LONGEST_DELAY_SECONDS: Final = 12 * 3_600 - 15 * 60
# Amazon SQS API Reference, SetQueueAttributes: maxReceiveCount, read 2026-11
_MOST_RECEIVES: Final = 1_000
_SPARE_RECEIVES: Final = 5
# Amazon SQS API Reference, SendMessageBatch, read 2026-11: the entries of a request, and the bytes of a message and of
# all entries together (256 KiB before August 2025)
MOST_ENTRIES: Final = 10
MOST_MESSAGE_BYTES: Final = 1_048_576
_WORDS: Final = ("put", "delete")
_VALUES: Final = "text, Decimal, whole numbers, True, False, None, lists and maps"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the queue.

    Attributes:
        id: Its id.
        receipt: The handle by which its visibility is changed.
        body: Its text.
        sent_ms: When it was sent, in milliseconds since 1970, by SQS's clock.
    """

    id: str
    receipt: str
    body: str
    sent_ms: int


@dataclass(frozen=True, slots=True)
class BufferedAction:
    """What a message asks for.

    Attributes:
        message: The message.
        is_delete: Whether the item is deleted; otherwise it is put.
        values: The item, or the key of the one that is deleted.
        key: The values of the key's attributes.
        version: The item's version, `None` where the queue has none.
    """

    message: Message
    is_delete: bool
    values: Mapping[str, Any]
    key: tuple[Any, ...]
    version: Decimal | None


@dataclass(frozen=True, slots=True)
class Poison:
    """A message that can never be written, and the reason."""

    message: Message
    why: str


def read_action(message: Message, key: Sequence[str], version: str | None) -> BufferedAction | Poison:
    """Return what a message asks for, or why it asks for nothing that could be written.

    The body is `{"put": {...}}`, `{"delete": {...}}`, or an item alone, in plain JSON.

    Args:
        message: The message.
        key: The names of the attributes of the table's key.
        version: The attribute with the item's version, `None` if there is none.
    """
    try:
        # numbers of JSON are decimal, and DynamoDB's are too
        document = read_document(message.body, has_decimals=True)
    except DocumentError as error:
        return Poison(message, f"body: {error}; send one action as JSON")
    if not isinstance(document, dict):
        return Poison(message, f"body: got {_kind(document)}, allowed: an object; send one action a message")
    word = next(iter(document)) if len(document) == 1 else ""
    # an item whose only attribute has one of these names is one unless the attribute is a map
    is_wrapped = word in _WORDS and isinstance(document[word], dict)
    values: dict[str, Any] = document[word] if is_wrapped else document
    is_delete = is_wrapped and word == "delete"
    what = "delete" if is_delete else "put"
    for name in key:
        value = values.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
            got = f"got {shown(value)}" if name in values else "is missing"
            return Poison(message, f"{what}: {name}: {got}, allowed: a text or a number; it is part of the key")
    number = None
    if version is not None:
        found = values.get(version)
        if isinstance(found, bool) or not isinstance(found, int | Decimal):
            got = f"got {shown(found)}" if version in values else "is missing"
            return Poison(message, f"{what}: {version}: {got}, allowed: a number; the queue orders writes by it")
        number = Decimal(found)
    if is_delete:
        unknown = sorted(set(values) - {*key} - {version})
        if unknown:
            why = f"delete: {unknown[0]}: is no part of the key, allowed: {', '.join(key)}; leave it out"
            return Poison(message, why)
        values = {name: values[name] for name in key}
    return BufferedAction(message, is_delete, values, tuple(values[name] for name in key), number)


def body_of(what: Literal["put", "delete"], values: object) -> str:
    """Return the message for *values*, an item or a key, which `read_action` reads as the same.

    Raises `ValueError` for what plain JSON cannot express. Whether DynamoDB takes the values is not looked at.
    """
    if not isinstance(values, Mapping) or not values:
        message = f"{what}: got {shown(values)}, allowed: a map of attributes; give a dict with the key"
        raise ValueError(message)
    try:
        return f'{{"{what}":{_json_of(values, what)}}}'
    except RecursionError:
        message = f"{what}: the item is nested too deeply; allowed: 32 levels"
        raise ValueError(message) from None


def newest_first(actions: Iterable[BufferedAction]) -> list[list[BufferedAction]]:
    """Return the actions for each item, the newest first; items are in the order of their first action.

    The newest has the highest version. Among equal versions, and without versions, it is the one that was sent last, by
    SQS's clock; of those sent in the same millisecond, the one that comes last.
    """
    groups: dict[tuple[Any, ...], list[tuple[Decimal, int, int, BufferedAction]]] = {}
    for position, action in enumerate(actions):
        rank = action.version or Decimal(0), action.message.sent_ms, position, action
        # 1 and "1" are different keys
        group = tuple((isinstance(value, str), value) for value in action.key)
        groups.setdefault(group, []).append(rank)
    return [[rank[3] for rank in sorted(group, key=lambda rank: rank[:3], reverse=True)] for group in groups.values()]


def delay_seconds(wait: float, age_seconds: float) -> int:
    """Return the whole seconds after which a message that could not be written comes back.

    Args:
        wait: The seconds until the budget has room for it, as far as that is known.
        age_seconds: The seconds since it was sent.
    """
    longest = max(wait, age_seconds / _PART_OF_AGE, _SHORTEST_DELAY)
    return min(math.ceil(longest), LONGEST_DELAY_SECONDS)


def most_receives(drain_seconds: int, visibility_seconds: int) -> int:
    """Return how often a message may be received before the queue gives up: no throttling for that time reaches it.

    A message is received again after its delay, or after the visibility timeout where a delay could not be set or the
    function ended without an answer.

    Args:
        drain_seconds: The time within which messages are to be written, however throttled the table is.
        visibility_seconds: The queue's visibility timeout.
    """
    age, returns = 0, 0
    while age < drain_seconds:
        age += delay_seconds(0, age)
        returns += 1
    timeouts = -(-drain_seconds // visibility_seconds)
    return min(returns + timeouts + _SPARE_RECEIVES, _MOST_RECEIVES)


def in_tens(entries: Sequence[T], sizes: Sequence[int], most_bytes: int) -> list[list[T]]:
    """Return *entries* in lists of up to ten, each of at most *most_bytes*, or of one that is larger alone."""
    lists: list[list[T]] = []
    held = 0
    for entry, size in zip(entries, sizes, strict=True):
        if not lists or len(lists[-1]) == MOST_ENTRIES or held + size > most_bytes:
            lists.append([])
            held = 0
        lists[-1].append(entry)
        held += size
    return lists


def _json_of(value: object, place: str) -> str:
    """Return *value* in JSON, with all digits of its numbers; *place* names it in messages."""
    match value:
        case None | bool():
            return json.dumps(value)
        case int() | Decimal():
            return str(Decimal(value))
        case str():
            # two characters that JSON takes and SQS does not
            return json.dumps(value, ensure_ascii=False).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
        case list() | tuple():
            return f"[{','.join(_json_of(each, f'{place}[{number}]') for number, each in enumerate(value))}]"
        case Mapping():
            return f"{{{','.join(_member(name, each, place) for name, each in value.items())}}}"
        case float():
            fix = f"write Decimal('{value!r}')"
        case set() | frozenset():
            fix = "write a list, or the item to the table itself"
        case _:
            fix = "write it as text, or the item to the table itself"
    message = f"{place}: got {shown(value)}, allowed: {_VALUES}; {fix}"
    raise ValueError(message)


def _member(name: object, value: object, place: str) -> str:
    if not isinstance(name, str):
        message = f"{place}: got {shown(name)} as a name, allowed: text; put it in quotes"
        raise ValueError(message)
    return f"{_json_of(name, place)}:{_json_of(value, f'{place}: {name}')}"


def _kind(document: object) -> str:
    kinds: dict[type, str] = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(document), "a number")
