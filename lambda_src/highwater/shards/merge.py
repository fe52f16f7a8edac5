"""Pages of several shards merged in the order of their sort key, and the cursor that says where each shard is."""

from __future__ import annotations

import base64
import binascii
import hashlib
import heapq
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from highwater.core.documents import read_document
from highwater.shards.key import Shard, ShardError

Item = Mapping[str, Any]
# exclusive: the attributes of the last item before it, without the partition key; `None` for a shard's begin
Position = Mapping[str, Any] | None
_VERSION: Final = 1
_PLAIN: Final = "plain"


def rank_of(value: Mapping[str, Any]) -> Any:
    """Return what a sort key in DynamoDB's JSON is compared by: numbers by value, texts by UTF-8, binaries by bytes."""
    ((kind, held),) = value.items()
    return Decimal(held) if kind == "N" else held.encode() if kind == "S" else bytes(held)


@dataclass(slots=True)
class ShardStream:
    """What was read of one shard and is not given out yet.

    Attributes:
        order: Its place among the shards, by which items with equal sort keys are ordered.
        position: Where the next item is read from, if the read ends now.
        following: Where the next page begins; it is meaningless where *is_last*.
        is_last: Whether there is no next page.
        items: The items, in the order of the query.
    """

    order: int
    position: Position = None
    following: Position = None
    is_last: bool = False
    items: deque[Item] = field(default_factory=deque)

    def take_page(self, items: Iterable[Item], following: Position, *, is_last: bool) -> None:
        """Hold a page; without items the position moves to the page's end."""
        self.items.extend(items)
        self.following, self.is_last = following, is_last
        self._leave_page()

    def take_item(self, position_of: Callable[[Item], Position]) -> Item:
        """Return the next item, and move the position behind it."""
        item = self.items.popleft()
        self.position = position_of(item)
        self._leave_page()
        return item

    def _leave_page(self) -> None:
        if not self.items and not self.is_last:
            self.position = self.following

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of the shard."""
        return self.is_last and not self.items


@dataclass(slots=True)
class _Head:
    rank: Any
    stream: ShardStream
    is_forward: bool

    def __lt__(self, other: _Head) -> bool:
        one, two = (self.rank, self.stream.order), (other.rank, other.stream.order)
        return one < two if self.is_forward else two < one


def merged(
    streams: Iterable[ShardStream],
    *,
    sort_keys: Sequence[str],
    is_forward: bool,
    fill: Callable[[ShardStream], None],
    position_of: Callable[[Item], Position],
) -> Iterator[Item]:
    """Yield the items of all streams in the order of the sort key; equal ones in the order of the shards.

    Args:
        streams: The shards.
        sort_keys: The attributes that a query orders by, the first before the others; none for one shard after the
            other.
        is_forward: Whether the order rises.
        fill: Is called for a stream without items that is not over, when its next item is needed; afterwards the stream
            has items or is over.
        position_of: Returns the position behind an item.
    """

    def head_of(stream: ShardStream) -> _Head | None:
        if not stream.items and not stream.is_last:
            fill(stream)
        if not stream.items:
            return None
        return _Head([rank_of(stream.items[0][name]) for name in sort_keys], stream, is_forward)

    heads = [head for stream in streams if (head := head_of(stream)) is not None]
    heapq.heapify(heads)
    while heads:
        stream = heads[0].stream
        yield stream.take_item(position_of)
        following = head_of(stream)
        if following is None:
            heapq.heappop(heads)
        else:
            heapq.heapreplace(heads, following)


def query_digest(document: Mapping[str, Any]) -> str:
    """Return what a query is recognized by: equal for equal queries of equally declared keys, in every process."""
    text = json.dumps(document, sort_keys=True, default=_plain_value)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_cursor(query: str, positions: Mapping[Shard, Position]) -> str:
    """Return the cursor of a query, by its digest, that continues these shards there; the others are read."""
    shards = {_PLAIN if shard is None else str(shard): position for shard, position in positions.items()}
    return json.dumps({"v": _VERSION, "query": query, "shards": shards}, separators=(",", ":"), default=_plain_value)


def read_cursor(text: str, query: str) -> dict[Shard, Position]:
    """Return the positions of a cursor.

    Raises `ShardError` for what is no cursor, for one of another version, query or schedule.
    """
    try:
        found = read_document(text)
        version, digest, shards = found["v"], found["query"], dict(found["shards"])
    except (TypeError, ValueError, KeyError):
        raise _no_cursor(text) from None
    if version != _VERSION:
        raise ShardError(
            f"scatter_query: cursor: got version {version!r}, allowed: {_VERSION}; begin the query without a cursor"
        )
    if digest != query:
        raise ShardError(
            "scatter_query: cursor: is of another query, or the key's shards were declared otherwise since; begin the "
            "query without a cursor"
        )
    try:
        return {_shard(name): None if position is None else _position(position) for name, position in shards.items()}
    except (TypeError, ValueError, AttributeError, binascii.Error):
        raise _no_cursor(text) from None


def _no_cursor(text: object) -> ShardError:
    shown = repr(text) if len(repr(text)) <= 60 else f"{repr(text)[:60]}..."
    return ShardError(f"scatter_query: cursor: got {shown}, allowed: the cursor of an earlier scatter_query, unchanged")


def _shard(name: str) -> Shard:
    if name == _PLAIN:
        return None
    if not name.isdecimal():
        raise ValueError
    return int(name)


def _position(position: Mapping[str, Mapping[str, str]]) -> Position:
    found: dict[str, Any] = {}
    for name, value in position.items():
        ((kind, held),) = value.items()
        if kind not in {"S", "N", "B"} or not isinstance(held, str):
            raise ValueError
        found[name] = {kind: base64.b64decode(held, validate=True) if kind == "B" else held}
    return found


def _plain_value(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return str(value)
