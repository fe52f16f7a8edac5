"""Paced work beside other processes' on the same table: it warns of those that can be known, and of no others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import highwater
from highwater import Put
from tests.client.memory_table import MemoryTable
from tests.client.memory_writes import MemoryWrites
from tests.client.virtual_clock import Clock

SIZES = {f"order-{number:04}": 900 for number in range(600)}
DIVIDE = "a budget applies to one process, so together they consume the sum of their budgets; divide yours between them"


def scan(place: Path, **more: Any) -> Any:
    return highwater.scan(
        "orders", read=200, workers=1, session=MemoryTable(SIZES), pacer=Clock().pacer(), checkpoint=place, **more
    )


def write(place: Path, count: int = 300, **more: Any) -> None:
    actions = [Put({"pk": f"order-{number}"}) for number in range(count)]
    table = MemoryWrites()
    highwater.write(
        "orders", actions, write=200, workers=1, session=table, pacer=Clock().pacer(), checkpoint=place, **more
    )


@contextmanager
def in_another_process(place: Path, work: str, **more: Any) -> Iterator[int]:
    """While another process is in the middle of work with this checkpoint; yields its number."""
    ready, told = os.pipe()
    end, ends = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ends)

            def hold(*_: Any) -> None:
                os.write(told, b"1")
                # until the other end is closed
                os.read(end, 1)

            if work == "scan":
                next(pages := scan(place, **more))
                hold()
                pages.close()
            else:
                write(place, progress=hold, **more)
        finally:
            os._exit(0)
    os.close(told)
    os.close(end)
    try:
        assert os.read(ready, 1) == b"1"
        yield child
    finally:
        os.close(ends)
        os.close(ready)
        os.waitpid(child, 0)


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What paced work has logged; the pulse of an earlier test may still end meanwhile."""
    return [record.getMessage() for record in caplog.records if record.name == "highwater.pace"]


@pytest.mark.parametrize(
    ("work", "more", "what"),
    [
        ("scan", {}, "eu-central-1 orders"),
        ("scan", {"index": "by_status"}, "eu-central-1 orders, index by_status"),
        ("write", {}, "eu-central-1 orders"),
    ],
)
def test_second_process_on_the_same_table_warns_in_a_line(
    work: str, more: dict[str, Any], what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = tmp_path / "first.checkpoint", tmp_path / "second.checkpoint"
    with in_another_process(first, work, **more):
        if work == "scan":
            list(scan(second, **more))
        else:
            write(second)
    assert _told(caplog) == [f"checkpoint {second}: another process works on {what} now (first.checkpoint): {DIVIDE}"]


def test_other_indexes_other_work_and_the_same_process_are_no_cause_to_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with in_another_process(tmp_path / "first.checkpoint", "scan", index="by_status"):
        list(scan(tmp_path / "second.checkpoint"))
        write(tmp_path / "third.load")
    pages = scan(tmp_path / "fourth.checkpoint")
    next(pages)
    list(scan(tmp_path / "second.checkpoint"))
    pages.close()
    assert _told(caplog) == []


def test_work_that_was_killed_or_has_no_number_is_no_cause_to_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, lock = tmp_path / "first.checkpoint", tmp_path / "first.checkpoint.lock"
    child = os.fork()
    if child == 0:
        pages = scan(first)
        next(pages)
        os._exit(9)
    os.waitpid(child, 0)
    assert (first.exists(), lock.read_text()) == (True, str(child))
    list(scan(tmp_path / "second.checkpoint"))
    # another process has its number now
    lock.write_text(str(os.getppid()))
    list(scan(tmp_path / "second.checkpoint"))
    for text in ("", "no number", "-5", "9" * 30):
        lock.write_text(text)
        list(scan(tmp_path / "second.checkpoint"))
    assert _told(caplog) == []
