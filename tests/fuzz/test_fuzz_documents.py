"""Documents of others, changed at random: each reader lets only its own error out, or answers that it cannot read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from highwater import PacedWorkError
from highwater.budgets.shares import Member, members_of_text, members_text
from highwater.bulk.checkpoint import Checkpoint, ScanHeader, WritePlace
from highwater.bulk.items import put_of_line
from highwater.bulk.send import Rejected, WriteJob, job_of
from highwater.cli.items import read_lines
from highwater.core.pulses import hints_of_text
from highwater.core.units import Dimension
from highwater.queues.messages import BufferedAction, Message, Poison, newest_first, read_action
from highwater.shards.key import ShardError
from highwater.shards.key_log import KeyLine, read_key_log
from highwater.shards.merge import read_cursor, write_cursor
from tests.fuzz.mutations import as_json, changed_document, changed_text

RUNS = 40 * int(os.environ.get("HIGHWATER_FUZZ_RUNS", "20"))
FIRST_SEED = int(os.environ.get("HIGHWATER_FUZZ_SEED", "1"))
NUMBERS = (
    "1e9999999999999999999",
    "-1E-9999999999999999999",
    "9" * 5_000,
    "1e400",
    "1e-400",
    "0.1" + "1" * 60,
    "Infinity",
)
TYPED = {
    "Item": {"pk": {"S": "a"}, "n": {"N": "5"}, "b": {"B": "AP8="}, "l": {"L": [{"M": {"x": {"NS": ["1", "2"]}}}]}}
}
PLAIN = {"put": {"pk": "a", "sk": 7, "version": 3.5, "tags": ["x", {"y": None}], "n": 1.25}}
HEADER = ScanHeader("eu-central-1 orders", None, 4, is_consistent=False, request="d")
SCAN = {
    "format": 1,
    "kind": "a scan",
    "header": {name: getattr(HEADER, name) for name in ScanHeader.__slots__},
    "done": [0, 2],
    "keys": {"1": {"pk": {"S": "a"}}, "3": {"pk": {"B": {"base64": "AP8="}}}},
    "scanned": 120,
    "units": 7.5,
    "output": 900,
}
WRITES = {"format": 1, "kind": "writes", "table": "eu-central-1 orders", "table_id": None, "done": 120, "actions": "0f"}

KEY_LINE = KeyLine(
    minute="2026-12-01T12:00:00Z",
    region="eu-central-1",
    table="orders",
    dimension=Dimension.WRITE,
    key_hash="3fa94d0c11de6a52",
    secret="5ec4e7ab",
    units=5_000.5,
    units_error=0.0,
    table_units=9_000.0,
    throttled=12,
    key_range_throttled=7,
).text()


def _changed(document: object, random: Random) -> str:
    """The document as JSON, with values, the text, or a number of it changed."""
    text = as_json(changed_document(document, random)) if random.random() < 0.7 else json.dumps(document)
    if random.random() < 0.5:
        text = changed_text(text, random)
    if random.random() < 0.5:
        at = [place for place, letter in enumerate(text) if letter in "0123456789"]
        if at:
            place = random.choice(at)
            text = text[:place] + random.choice(NUMBERS) + text[place + 1 :]
    return text


def _read_message(text: str, _: Path) -> None:
    for version in (None, "version"):
        found = read_action(Message("m", "r", text, 5), ("pk", "sk"), version)
        assert isinstance(found, Poison | BufferedAction)
        if isinstance(found, BufferedAction):
            other = read_action(Message("n", "r", json.dumps(PLAIN), 6), ("pk", "sk"), version)
            assert isinstance(other, BufferedAction)
            assert 1 <= len(newest_first([found, other])) <= 2


def _read_line(text: str, _: Path) -> None:
    assert isinstance(job_of(0, put_of_line(text)), WriteJob | Rejected)


def _read_file(text: str, folder: Path) -> None:
    file = folder / "orders.jsonl"
    file.write_bytes(text.encode("utf-8", "surrogatepass" if "\ud800" not in text else "replace"))
    for line in read_lines(file, frozenset()):
        assert isinstance(job_of(0, line.action), WriteJob | Rejected)


def _read_members(text: str, _: Path) -> None:
    assert all(isinstance(each, Member) for each in members_of_text(text))


def _read_key_log(text: str, _: Path) -> None:
    found = read_key_log(text, "orders", Dimension.WRITE, 1.0)
    assert all(0 <= units < 1e12 for units, _ in found.peaks.values())


def _read_cursor(text: str, _: Path) -> None:
    with suppress(ShardError):
        read_cursor(text, "q")


def _read_scan(text: str, folder: Path) -> None:
    file = folder / "scan.checkpoint"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    for read in (
        lambda: Checkpoint.segments_of(file),
        lambda: Checkpoint.output_of(file),
        lambda: Checkpoint(file, HEADER).pending(),
    ):
        with suppress(PacedWorkError):
            read()


def _read_writes(text: str, folder: Path) -> None:
    file = folder / "writes.checkpoint"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(PacedWorkError):
        WritePlace(file, "eu-central-1 orders").skip([])


@pytest.mark.parametrize(
    ("document", "read"),
    [
        pytest.param(PLAIN, _read_message, id="message of a queue"),
        pytest.param(TYPED, _read_line, id="line of a load job"),
        pytest.param(PLAIN, _read_line, id="plain line"),
        pytest.param(TYPED, _read_file, id="file of a load"),
        pytest.param(json.loads(members_text([Member("a", 7, 5, 3, 9)] * 2)), _read_members, id="record of a budget"),
        pytest.param({"w": [1, 2, 3]}, lambda text, _: hints_of_text(text), id="hints"),
        pytest.param(json.loads(write_cursor("q", {3: None, 5: {"pk": "a"}})), _read_cursor, id="cursor"),
        pytest.param({"message": f"INFO {KEY_LINE}"}, _read_key_log, id="log of keys"),
        pytest.param(json.loads(KEY_LINE), _read_key_log, id="line of a key"),
        pytest.param(SCAN, _read_scan, id="checkpoint of a scan"),
        pytest.param(WRITES, _read_writes, id="checkpoint of writes"),
    ],
)
def test_reader_lets_only_its_own_error_out(
    document: object, read: Callable[[str, Path], None], tmp_path: Path
) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + RUNS):
        text = _changed(document, Random(seed))
        try:
            read(text, tmp_path)
        except Exception as error:
            error.add_note(f"seed {seed}: {text[:300]!r}")
            raise
