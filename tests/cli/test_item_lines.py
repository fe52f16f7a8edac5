"""Lines and rows of files that are too long, or compressed until they are: read in bounded memory, or refused."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard

from highwater.bulk.items import MOST_LINE_BYTES, Put, Unreadable
from highwater.cli.items import InputError, Line, read_lines

LONG = 96 * 2**20
MOST_MEMORY = 64 * 2**20


def _write(path: Path, parts: list[tuple[bytes, int]]) -> None:
    """Write parts so often, compressed as the name says."""
    with path.open("wb") as file:
        made: Any = file
        if path.suffix == ".gz":
            made = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1)
        elif path.suffix == ".zst":
            made = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
        for part, times in parts:
            for _ in range(times):
                made.write(part)
        if made is not file:
            made.close()


def _read(path: Path) -> tuple[list[Line], int]:
    """Return the lines, the long ones of which are cut, and the most memory that reading took."""
    tracemalloc.start()
    try:
        return list(read_lines(path, frozenset())), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_line_that_no_item_can_need_is_rejected_in_bounded_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    _write(path, [(b'{"pk": "', 1), (b"x" * 2**20, LONG // 2**20), (b'"}\n{"pk": "b"}\n\n{"pk": "c"}', 1)])
    lines, memory = _read(path)
    assert [line.place for line in lines] == [f"{name}, line {number}" for number in (1, 2, 4)]
    assert isinstance(lines[0].action, Unreadable)
    assert lines[0].action.why == "the line is too long; allowed: 4,194,304 characters"
    assert len(lines[0].text) == 1_000
    assert [line.action for line in lines[1:]] == [Put({"pk": "b"}), Put({"pk": "c"})]
    assert memory < MOST_MEMORY


def test_longest_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    spare = MOST_LINE_BYTES - len(b'{"pk": ""}')
    for end in (b"", b"\n"):
        _write(path, [(b'{"pk": "', 1), (b"x", spare - len(end)), (b'"}' + end, 1)])
        (line,), _ = _read(path)
        assert not isinstance(line.action, Unreadable)


@pytest.mark.parametrize(
    "row",
    [[(b"x" * 2**20, LONG // 2**20)], [(b'"a\n",' * 1_000, LONG // 5_000)]],
    ids=["a cell", "cells of lines"],
)
def test_row_that_no_item_can_need_is_refused_in_bounded_memory(row: list[tuple[bytes, int]], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    _write(path, [(b"pk,x\n", 1), (b"a,b\n", 3_000), *row])
    tracemalloc.start()
    with pytest.raises(InputError) as refused:
        sum(1 for _ in read_lines(path, frozenset()))
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(refused.value) == "a.csv: has a row of more than 4,194,304 characters; is it CSV?"
    assert memory < MOST_MEMORY
