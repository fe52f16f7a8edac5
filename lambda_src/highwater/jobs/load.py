"""`highwater.jobs.start_load`: the lines of an object in S3, which workers put into a table together.

A segment is a range of bytes. A line belongs to the range in which its first byte is, so each line is read by one
worker, wherever the borders are.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError

from highwater.bulk.budget import LEAST_RATE, PacedWorkError, Retries
from highwater.bulk.items import MOST_LINE_BYTES, Put, Unreadable, put_of_line
from highwater.bulk.scan import Key
from highwater.bulk.send import Rejected
from highwater.bulk.write import BlockWriter, PacedWrite
from highwater.calls.attempts import WORKED_ON, client_config
from highwater.client.sessions import check_session
from highwater.core.items import write_units_of
from highwater.core.pacing.segments import count_load_segments
from highwater.core.units import Dimension
from highwater.jobs.job_table import JobError, JobTable, LoadSpec, Page, Pages, allowed_segments, check_name
from highwater.jobs.segments import MOST_SEGMENT_REJECTS, OTHER_KINDS, JobProgress, Reject

_SCHEME: Final = "s3://"
_CHUNK_BYTES: Final = 2**20
# A block is put before it is recorded: some seconds of the worker's share, so that its lease is not over meanwhile. Its
# share is not known before the first one.
_FIRST_UNITS, _BLOCK_SECONDS, _BLOCK_LINES = 25.0, 5, 1_000
_MOST_WHY_CHARACTERS: Final = 120
_MOST_KEPT_BYTES: Final = 1_000
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ObjectLine:
    """One line of an object.

    Attributes:
        at: The offset of its first byte.
        ends: The offset behind it and its newline.
        content: Its bytes with the newline; of a line that is too long only the first ones.
    """

    at: int
    ends: int
    content: bytes

    @property
    def is_too_long(self) -> bool:
        """Whether it is longer than any item can be."""
        return len(self.content) < self.ends - self.at

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing in it."""
        mark = _BYTE_ORDER_MARK if self.at == 0 else b""
        return not self.is_too_long and not self.content.removeprefix(mark).strip()

    def put(self) -> Put:
        """Return the put of its item; for an invalid line, sending it raises `ValueError`."""
        if self.is_too_long:
            return Unreadable({}, why=f"the line is too long; allowed: {MOST_LINE_BYTES:,} bytes")
        try:
            return put_of_line(self.content.decode("utf-8" if self.at else "utf-8-sig").strip())
        except UnicodeDecodeError:
            return Unreadable({}, why="the line is no text in UTF-8")

    def document(self, why: str) -> dict[str, Any]:
        """Return what is written of it among the rejected lines; of one that is too long only the first kilobyte."""
        content = self.content[:_MOST_KEPT_BYTES] if self.is_too_long else self.content
        return {"at": self.at, "why": why, "line": content.decode(errors="replace").strip()}


@dataclass(slots=True)
class LineReader:
    """Reads lines of an object in ranges of bytes.

    Attributes:
        read: Returns the bytes from an offset up to another one.
        size_bytes: The size of the object.
        chunk_bytes: So many bytes are read at once. By default a megabyte.
        most_line_bytes: A longer line is too long. By default 4 MB.
    """

    read: Callable[[int, int], bytes]
    size_bytes: int
    chunk_bytes: int = _CHUNK_BYTES
    most_line_bytes: int = MOST_LINE_BYTES
    _at: int = 0
    _chunk: bytes = b""

    def first(self, start: int, end: int) -> int:
        """Return the offset of the first line that begins from *start* on; *end* or more if none does before *end*."""
        return self.line(start - 1, end).ends if start else 0

    def line(self, at: int, end: int) -> ObjectLine:
        """Return the line at an offset. Of one that is too long, what is behind *end* is not read."""
        parts: list[bytes] = []
        place, has_ended = at, False
        while not has_ended and place < (self.size_bytes if place - at <= self.most_line_bytes else end):
            if not self._at <= place < self._at + len(self._chunk):
                self._at, self._chunk = place, self.read(place, min(place + self.chunk_bytes, self.size_bytes))
            first = place - self._at
            newline = self._chunk.find(b"\n", first)
            has_ended = newline >= 0
            stop = newline + 1 if has_ended else len(self._chunk)
            place = self._at + stop
            if place - at <= self.most_line_bytes:
                parts.append(self._chunk[first:stop])
        return ObjectLine(at, place, b"".join(parts))


def start_load(
    id: str,
    *,
    table: str,
    source: str,
    write: float,
    segments: int | None = None,
    budget: str | None = None,
    rejects: str | None = None,
    coordinator: str | None = None,
    session: Any = None,
) -> JobProgress:
    """Define a job: a load of an object in S3 that workers do together with `run_worker(id)`.

    The object has items as lines of JSON, as `highwater load` takes them, and is not compressed. Each is put at least
    once, in no order: an item that is there twice ends as either. With the id of a job that exists, and the same
    arguments, this changes nothing.

    Args:
        id: The job's id, 1 to 121 characters. A job that is done stays so: give each run its own.
        table: The table's name.
        source: The object, `s3://bucket/key`.
        write: Write units per second of all workers together, fractions allowed; each index has a budget of the same
            size.
        segments: The number of segments, 1 to 10,000; no more workers can be busy at once. By default one for each
            64 MB, at least 32; a small object has fewer.
        budget: The name of the shared budget. By default the job's id, so that the job has a budget of its own.
        rejects: Where the lines go that are no items, or that DynamoDB rejects: `s3://bucket/prefix`, to which the
            job's id is added. By default `rejects` in the bucket of the source.
        coordinator: The coordinator whose table has the job. By default the only one in the account and region.
        session: A boto3 session. By default a new one.

    Returns:
        How far the job is.

    Raises:
        JobError: An argument is not valid, the object cannot be read, there is a job with this id and other arguments
            or of another content, or the coordinator's table cannot be written.

    Example:
        ```python
        highwater.jobs.start_load("load-7", table="orders", source="s3://exports/orders.jsonl", write=500)
        ```
    """
    check_name("job: id", id)
    check_name(f"job {id}: budget", budget or id)
    if not isinstance(write, int | float) or not LEAST_RATE <= write < float("inf"):
        raise JobError(f"job {id}: write: got {write!r}, allowed: write units per second, from {LEAST_RATE}")
    bucket, key = _place_of(f"job {id}: source", source)
    if not key or key.endswith("/"):
        raise JobError(f"job {id}: source: got {source!r}, allowed: s3://bucket/key; name one object")
    other = next((kind for kind in OTHER_KINDS if key.endswith(kind)), None)
    if other is not None:
        raise JobError(f"job {id}: {source}: is {other}, allowed: lines of JSON, not compressed; convert it first")
    rejects = rejects or f"{_SCHEME}{bucket}/rejects"
    _place_of(f"job {id}: rejects", rejects)
    try:
        head = _client(session).head_object(Bucket=bucket, Key=key)
    except (ClientError, BotoCoreError) as error:
        raise JobError(f"job {id}: {_unreadable(source, error)}") from error
    size = int(head["ContentLength"])
    usual = count_load_segments(size)
    spec = LoadSpec(
        table=table,
        source=source,
        etag=head["ETag"],
        size_bytes=size,
        segments=allowed_segments(id, usual if segments is None else segments, is_given=segments is not None),
        given_segments=segments,
        write=float(write),
        budget=budget or id,
        rejects=f"{rejects.rstrip('/')}/{id}/",
    )
    return JobTable(coordinator, session).begin(id, spec)


@contextmanager
def load_pages(id: str, spec: LoadSpec, coordinator: str | None, session: Any) -> Iterator[Pages]:
    """Yield the blocks of lines of a load, within its budget; the share of it is given back at the end."""
    work = PacedWrite(table=spec.table, write=spec.write, budget=spec.budget, coordinator=coordinator, session=session)
    with work.opened() as writer:
        writer.sender.goes_on = f"run a worker of job {id} again to go on"
        yield Pages(writer.sender.pacer, _Load(spec, writer, _client(session)).do)


@dataclass(slots=True)
class _Load:
    """Puts the lines of one object, block by block."""

    spec: LoadSpec
    writer: BlockWriter
    s3: Any
    _block_units: float = _FIRST_UNITS
    _lines: LineReader = field(init=False)

    def __post_init__(self) -> None:
        self._lines = LineReader(self._read, self.spec.size_bytes)

    def do(self, segment: int, cursor: Key, hold: Callable[[], None]) -> Page:
        """Put one block of lines, and write those that are rejected to their place."""
        start, end = self.spec.range_of(segment)
        begin = int(cursor["offset"]["N"]) if cursor else self._lines.first(start, end)
        lines, puts, place = self._block(begin, end)
        hold()
        rejected: list[Rejected] = []
        sent = self.writer.write(puts, 0, rejected.append)
        rate = self.writer.sender.pacer.rate(self.spec.table, None, Dimension.WRITE)
        self._block_units = (rate or 0.0) * _BLOCK_SECONDS
        if rejected:
            self._keep(begin, place, [lines[each.number].document(each.why) for each in rejected])
        return Page(
            None if place >= end else {"offset": {"N": str(place)}},
            items=len(lines) - len(rejected),
            scanned=len(lines),
            units=sent.units,
            rejected=len(rejected),
            rejects=tuple(
                Reject(lines[each.number].at, each.why[:_MOST_WHY_CHARACTERS])
                for each in rejected[:MOST_SEGMENT_REJECTS]
            ),
        )

    def _block(self, begin: int, end: int) -> tuple[list[ObjectLine], list[Put], int]:
        """Return the next lines, without empty ones, their puts, and the offset behind them."""
        lines: list[ObjectLine] = []
        puts: list[Put] = []
        place, units = begin, 0
        while place < end and place - begin < MOST_LINE_BYTES and len(lines) < _BLOCK_LINES:
            line = self._lines.line(place, end)
            if not line.is_blank:
                put = line.put()
                # an item is about as long as its text; what is not sent costs nothing
                cost = 0 if isinstance(put, Unreadable) else write_units_of(len(line.content))
                if lines and units + cost > self._block_units:
                    break
                units += cost
                lines.append(line)
                puts.append(put)
            place = line.ends
        return lines, puts, place

    def _keep(self, begin: int, end: int, rejected: Sequence[dict[str, Any]]) -> None:
        """Write the rejected lines of a block; a block that is repeated writes the same object, or one beside it."""
        bucket, prefix = _place_of("rejects", self.spec.rejects)
        body = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in rejected).encode()
        name = f"{prefix}{begin:015}-{end:015}.jsonl"
        try:
            self.s3.put_object(Bucket=bucket, Key=name, Body=body)
        except (ClientError, BotoCoreError) as error:
            fix = "give the role s3:PutObject there"
            raise PacedWorkError(f"{self.spec.rejects}: rejected lines cannot be written: {error}; {fix}") from error

    def _read(self, start: int, end: int) -> bytes:
        bucket, key = _place_of("source", self.spec.source)
        retries = Retries(lambda error: _unreadable(self.spec.source, error))
        while True:
            try:
                answer = self.s3.get_object(
                    Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}", IfMatch=self.spec.etag
                )
                found: bytes = answer["Body"].read()
            except (ClientError, BotoCoreError) as error:
                if isinstance(error, ClientError) and error.response["Error"]["Code"] == "PreconditionFailed":
                    message = "is another one than when the job began; start a job with another id for it"
                    raise PacedWorkError(f"{self.spec.source}: {message}") from error
                cut = HTTPClientError(error=error) if isinstance(error, IncompleteReadError) else error
                time.sleep(retries.pause_after(cut, is_throttled=False))
            else:
                return found


def _client(session: Any) -> Any:
    check_session(session, "session")
    return (session or boto3.Session()).client("s3", config=client_config(WORKED_ON))


def _place_of(what: str, text: object) -> tuple[str, str]:
    """Return the bucket and the key or prefix; raises `JobError` for what is no place in S3."""
    bucket, _, key = text.removeprefix(_SCHEME).partition("/") if isinstance(text, str) else ("", "", "")
    if not bucket or not str(text).startswith(_SCHEME):
        raise JobError(f"{what}: got {text!r}, allowed: s3://bucket/key; give the place in S3")
    return bucket, key


def _unreadable(source: str, error: Exception) -> str:
    return f"{source}: cannot be read: {error}; check the key, and that the role has s3:GetObject for it"
