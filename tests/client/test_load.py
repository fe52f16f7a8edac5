"""Lines of an object in ranges of bytes: each is read once, whatever the borders and the contents; its put."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from highwater.jobs.load import LineReader, ObjectLine

# parts of lines: ends of both kinds, blanks, characters of two and four bytes, and bytes that are no text
PARTS = [b"\n", b"\r\n", b"\n\n", b" ", b"a", b"{}", "ä".encode(), "🌊".encode(), b"\xff", b"x" * 9]
CONTENTS = st.lists(st.sampled_from(PARTS), max_size=40).map(b"".join)


def _ranges(size: int, count: int) -> list[tuple[int, int]]:
    return [(size * number // count, size * (number + 1) // count) for number in range(count)]


def _lines(content: bytes, segments: int, chunk: int, most: int) -> list[ObjectLine]:
    """The lines that the workers of all segments read, each with a reader of its own."""
    found = []
    for start, end in _ranges(len(content), segments):
        reader = LineReader(lambda low, high: content[low:high], len(content), chunk, most)
        place = reader.first(start, end)
        while place < end:
            line = reader.line(place, end)
            found.append(line)
            place = line.ends
    return found


@given(CONTENTS, st.integers(1, 50), st.integers(1, 30))
@example(b"a\nb", 2, 1)
@example(b"\n", 1, 1)
@example(b"a\nb\n", 4, 2)
def test_each_line_is_read_once_by_any_ranges(content: bytes, segments: int, chunk: int) -> None:
    lines = _lines(content, segments, chunk, most=1_000)
    assert [line.at for line in lines] == [0, *(line.ends for line in lines[:-1])][: len(lines)]
    assert [line.content for line in lines] == BytesIO(content).readlines()


@given(CONTENTS, st.integers(1, 50), st.integers(1, 30), st.integers(1, 12))
def test_line_that_is_too_long_is_told_once_and_hides_no_other(
    content: bytes, segments: int, chunk: int, most: int
) -> None:
    whole = _lines(content, 1, chunk, most=1_000)
    found = _lines(content, segments, chunk, most)
    assert [line.at for line in found] == [line.at for line in whole]
    for line, expected in zip(found, whole, strict=True):
        assert line.is_too_long == (len(expected.content) > most)
        assert expected.content.startswith(line.content)
        assert line.is_too_long or line == expected


def test_range_without_the_begin_of_a_line_reads_no_further_than_its_end() -> None:
    content, asked = b"x" * 900 + b"\na\n", []

    def read(low: int, high: int) -> bytes:
        asked.append((low, high))
        return content[low:high]

    reader = LineReader(read, len(content), chunk_bytes=10, most_line_bytes=20)
    assert reader.first(300, 400) >= 400
    assert max(high for _, high in asked) < 420


@pytest.mark.parametrize(
    ("content", "raw"),
    [
        (b'{"Item": {"pk": {"S": "o-1"}, "b": {"B": "AAE="}}}\r\n', {"pk": {"S": "o-1"}, "b": {"B": b"\x00\x01"}}),
        (b'\xef\xbb\xbf{"pk": "o-2", "n": 1.5}', {"pk": {"S": "o-2"}, "n": {"N": "1.5"}}),
    ],
)
def test_line_becomes_a_put(content: bytes, raw: object) -> None:
    line = ObjectLine(0, len(content), content)
    assert not line.is_blank
    assert line.put().raw() == raw


def test_blank_line_is_none() -> None:
    assert ObjectLine(0, 5, b"\xef\xbb\xbf\r\n").is_blank
    assert ObjectLine(7, 9, b"\r\n").is_blank
    assert not ObjectLine(7, 10, b"\xef\xbb\xbf").is_blank


@pytest.mark.parametrize(
    ("line", "why", "kept"),
    [
        (ObjectLine(7, 12, b"{\xff}\r\n"), "the line is no text in UTF-8", "{\ufffd}"),
        (ObjectLine(7, 11, b"[7]\n"), "the line is no JSON object", "[7]"),
        (
            ObjectLine(7, 50, b'{"pk": "a", "n": 1e9999999999999999999}    '),
            "the line has a number that DynamoDB cannot represent",
            '{"pk": "a", "n": 1e9999999999999999999}',
        ),
        (ObjectLine(7, 5_000_000, b"x" * 4_000_000), "the line is too long; allowed: 4,194,304 bytes", "x" * 1_000),
    ],
)
def test_line_that_is_no_item_is_kept_with_the_reason(line: ObjectLine, why: str, kept: str) -> None:
    with pytest.raises(ValueError, match="line") as refused:
        line.put().raw()
    assert str(refused.value) == why
    assert line.document(why) == {"at": 7, "why": why, "line": kept}
