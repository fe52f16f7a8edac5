"""Compressed files of items: each line of a whole one, and no silence about one that is cut or broken."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from highwater.cli.items import InputError, ItemOutput, OutputError, read_lines

TEXT = "".join(f'{{"pk": "order-{number}"}}\n' for number in range(1_000)).encode()
FRAME = zstandard.ZstdCompressor().compress(TEXT)
BROKEN = bytearray(gzip.compress(TEXT, mtime=0))
BROKEN[20] ^= 0xFF


def test_output_whose_name_no_file_can_have_is_refused() -> None:
    with pytest.raises(OutputError) as refused:
        ItemOutput(Path("orders\0.jsonl"), None)
    assert str(refused.value) == "orders\0.jsonl: cannot be written: embedded null byte"


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_all_frames_of_a_file_are_read(tmp_path: Path, frames: int) -> None:
    path = tmp_path / "orders.jsonl.zst"
    path.write_bytes(FRAME * frames)
    assert len(list(read_lines(path, frozenset()))) == 1_000 * frames


CASES = {
    "cut.zst": (FRAME[:-1], "it ends within a compressed frame; copy it again"),
    "half.zst": (FRAME + FRAME[:70], "it ends within a compressed frame; copy it again"),
    "text.zst": (TEXT, "is no Zstandard file: zstd decompressor error: Unknown frame descriptor"),
    "cut.gz": (gzip.compress(TEXT)[:-9], "Compressed file ended before the end-of-stream marker was reached"),
    "broken.gz": (bytes(BROKEN), "Error -3 while decompressing data: invalid bit length repeat"),
}


@pytest.mark.parametrize("name", CASES)
def test_file_that_is_cut_or_broken_is_told(tmp_path: Path, name: str) -> None:
    content, why = CASES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as failed:
        list(read_lines(path, frozenset()))
    assert str(failed.value) == f"{path}: cannot be read: {why}"
