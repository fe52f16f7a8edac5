"""The segments of a scan, and of a file that workers load: how many there are, and what a scan costs with them."""

from __future__ import annotations

from typing import Final

from highwater.core.items import PAGE_BYTES, bytes_per_unit

# DynamoDB API Reference, Scan: TotalSegments from 1 to 1,000,000
MOST_SEGMENTS: Final = 1_000_000
# a segment of a scan, and of a file that workers load
SCAN_SEGMENT_BYTES: Final = 256 * 1024 * 1024
_LOAD_SEGMENT_BYTES: Final = 64 * 1024 * 1024
# a small file is divided for so many workers, but not into less than 64 KB each
_LOAD_SEGMENTS, _LEAST_LOAD_BYTES = 32, 64 * 1024
_LEAST_FOR_EACH_WORKER: Final = 4
# Rounding costs up to half a unit for each segment and each page
_PER_SEGMENT_UNITS, _PER_PAGE_UNITS = 0.5, 0.25


def count_segments(size_bytes: int, workers: int) -> int:
    """Return the number of segments for a table: one for each 256 MB, and at least four for each worker."""
    return min(max(-(-size_bytes // SCAN_SEGMENT_BYTES), _LEAST_FOR_EACH_WORKER * workers, 1), MOST_SEGMENTS)


def count_load_segments(size_bytes: int) -> int:
    """Return the number of segments for a file: one for each 64 MB, and 32 of a small one, of 64 KB or more each."""
    return max(-(-size_bytes // _LOAD_SEGMENT_BYTES), min(_LOAD_SEGMENTS, -(-size_bytes // _LEAST_LOAD_BYTES)), 1)


def scan_units(size_bytes: int, *, is_consistent: bool, page_milliunits: int, segments: int) -> int:
    """Return the read units of a scan of *size_bytes*, including the rounding of its pages.

    Args:
        size_bytes: The size of the table or index.
        is_consistent: Whether reads are strongly consistent, which costs twice as much.
        page_milliunits: The wanted cost of a page, in thousandths of a unit.
        segments: The number of segments.
    """
    per_unit = bytes_per_unit(is_consistent=is_consistent)
    page = min(page_milliunits * per_unit // 1_000, PAGE_BYTES)
    pages = -(-size_bytes // max(page, 1))
    rounding = (2 if is_consistent else 1) * (pages * _PER_PAGE_UNITS + segments * _PER_SEGMENT_UNITS)
    return -(-size_bytes // per_unit) + int(rounding)
