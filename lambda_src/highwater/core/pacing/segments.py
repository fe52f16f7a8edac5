"""The segments of a parallel scan: how many, and in which order their pages are read."""

from __future__ import annotations

from typing import Final

from highwater.core.pacing.pages import PAGE_BYTES, bytes_per_unit

# DynamoDB API Reference, Scan: TotalSegments from 1 to 1,000,000
MOST_SEGMENTS: Final = 1_000_000
_SEGMENT_BYTES: Final = 256 * 1024 * 1024
_LEAST_FOR_EACH_WORKER: Final = 4
# Each segment and each page costs up to half a unit that reads nothing
_PER_SEGMENT_UNITS, _PER_PAGE_UNITS = 0.5, 0.25


def count_segments(size_bytes: int, workers: int) -> int:
    """Return into how many segments to divide a table: a segment for each 256 MB, and four for each worker."""
    return min(max(-(-size_bytes // _SEGMENT_BYTES), _LEAST_FOR_EACH_WORKER * workers, 1), MOST_SEGMENTS)


def scan_units(size_bytes: int, *, is_consistent: bool, page_milliunits: int, segments: int) -> int:
    """Return what a scan of so many bytes costs in read units, with what the rounding of its pages adds.

    Args:
        size_bytes: The size of the table or index.
        is_consistent: Whether reads are strongly consistent, which costs twice as much.
        page_milliunits: What a page is to cost, in thousandths of a unit.
        segments: Into how many segments the scan is divided.
    """
    per_unit = bytes_per_unit(is_consistent=is_consistent)
    page = min(page_milliunits * per_unit // 1_000, PAGE_BYTES)
    pages = -(-size_bytes // max(page, 1))
    rounding = (2 if is_consistent else 1) * (pages * _PER_PAGE_UNITS + segments * _PER_SEGMENT_UNITS)
    return -(-size_bytes // per_unit) + int(rounding)
