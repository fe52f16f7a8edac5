"""Paced scans: every item, within the budget, and on again from where they were."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from hypothesis import given
from hypothesis import strategies as st

import highwater
from highwater import PacedWorkError, PaceError, ScanPage, ScanProgress, TableScan
from highwater.bulk.checkpoint import Checkpoint, ScanHeader
from highwater.bulk.scan import SegmentPages
from highwater.bulk.send import PageReader
from highwater.core.pacing.pages import PageSize
from highwater.core.units import Dimension
from tests.client.memory_table import MemoryTable, refused
from tests.client.virtual_clock import SECOND, Clock
from tests.core.examples import examples

GOES_ON = "start it again with the same checkpoint to go on"


def items(count: int, size: int = 900) -> dict[str, int]:
    return {f"order-{number:05}": size for number in range(count)}


def scan(table: MemoryTable, clock: Clock | None = None, **more: Any) -> Iterator[ScanPage]:
    arguments: dict[str, Any] = {"read": 200, "workers": 1, "session": table, "pacer": (clock or Clock()).pacer()}
    return highwater.scan("orders", **arguments | more)


def reader(table: MemoryTable, clock: Clock) -> PageReader:
    arguments = {"TotalSegments": 1, "ConsistentRead": False, "TableName": "orders"}
    return PageReader(table, clock.pacer(), "orders", None, PageSize(200_000, is_consistent=False), arguments)


def keys(pages: list[ScanPage]) -> list[str]:
    return sorted(item["pk"] for page in pages for item in page.items)


def test_every_item_comes_once_and_pages_come_from_all_over_the_table() -> None:
    table = MemoryTable(items(3_000))
    pages = list(scan(table))
    assert keys(pages) == sorted(table.sizes)
    assert sum(page.units for page in pages) == table.units
    assert sum(page.scanned for page in pages) == 3_000
    # four segments in turn, from the first page on
    assert len({page.segment for page in pages[:8]}) == 4


def test_scan_keeps_to_its_budget_from_the_first_second_to_the_last() -> None:
    table, clock = MemoryTable(items(20_000, 3_000)), Clock()
    spent: list[tuple[int, float]] = []
    for page in scan(table, clock, read=250):
        spent.append((clock.now, page.units))
    took = clock.now / SECOND
    assert table.units / took == pytest.approx(250, rel=0.05)
    for at, _ in spent:
        within = sum(units for later, units in spent if at <= later < at + 60 * SECOND)
        assert within <= 250 * 61 + 26


def test_threads_read_everything_once_too() -> None:
    table = MemoryTable(items(4_000))
    assert keys(list(highwater.scan("orders", read=1e9, workers=6, session=table, segments=37))) == sorted(table.sizes)


@pytest.mark.parametrize(
    ("table_items", "more", "segments", "message"),
    [
        (
            items(580),
            {"segments": 999},
            64,
            "scan of orders: segments: got 999, uses 64: each costs 0.5 units even if it is empty, "
            "and all its items 64",
        ),
        (
            items(580),
            {"segments": 999, "is_consistent": True},
            64,
            "scan of orders: segments: got 999, uses 64: each costs 1 unit even if it is empty, and all its items 128",
        ),
        (
            items(580),
            {"segments": 999, "index": "by_status"},
            32,
            "scan of index by_status of orders: segments: got 999, uses 32: each costs 0.5 units even if it is empty, "
            "and all its items 32",
        ),
        (
            {},
            {"segments": 999},
            999,
            "scan of orders: segments: got 999, and DynamoDB has counted no items yet: each costs 0.5 units even if it "
            "is empty, 500 together; give 4 or fewer for a small table",
        ),
        (items(580), {"segments": 30}, 30, None),
        ({}, {"segments": 4}, 4, None),
    ],
)
def test_segments_of_a_small_table_are_no_more_than_it_is_worth(
    table_items: dict[str, int],
    more: dict[str, Any],
    segments: int,
    message: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = MemoryTable(table_items)
    paced = TableScan(table="orders", read=200, request={}, session=table, workers=1, pacer=Clock().pacer(), **more)
    assert paced.plan.segments == segments
    assert len(keys(list(paced.pages()))) == len(table_items)
    assert {request["TotalSegments"] for request in table.asked} == {segments}
    assert [record.getMessage() for record in caplog.records] == ([] if message is None else [message])


def test_pages_fit_a_small_budget_and_large_items() -> None:
    table = MemoryTable(items(300, 30_000))
    pages = list(scan(table, read=25))
    # a quarter of a second of 25 units, where an item costs four
    assert max(page.units for page in pages[4:]) <= 8
    assert keys(pages) == sorted(table.sizes)


@given(
    st.integers(0, 400),
    st.integers(1, 40),
    st.lists(st.integers(1, 30), max_size=6),
    st.integers(1, 30),
)
def test_scan_that_is_killed_anywhere_goes_on_and_misses_nothing(
    count: int, segments: int, kills: list[int], limit: int
) -> None:
    table = MemoryTable(items(count, 40_960 // limit))
    header = ScanHeader("t", None, segments, False, "")
    kept: set[str] = set()
    written: str | None = None

    class Kept(Checkpoint):
        """A checkpoint whose file is a text, written after each page."""

        def write(self) -> None:
            nonlocal written
            document = {"done": sorted(self.done), "keys": {str(s): k for s, k in self._keys.items()}}
            written = json.dumps(document)

    for pages_until in [*kills, 10_000]:
        place = Kept(None, header)
        if written is not None:
            found = json.loads(written)
            place.done = {int(each) for each in found["done"]}
            place._keys = {int(segment): key for segment, key in found["keys"].items()}
        pending = dict(place.pending())
        for _ in range(pages_until):
            if not pending:
                break
            segment, key = next(iter(pending.items()))
            page = table.scan(
                TotalSegments=segments,
                Segment=segment,
                Limit=limit,
                ConsistentRead=False,
                **({} if key is None else {"ExclusiveStartKey": key}),
            )
            kept |= {item["pk"]["S"] for item in page["Items"]}
            following = page.get("LastEvaluatedKey")
            place.note(segment, following, 1, 1.0)
            place.write()
            if following is None:
                del pending[segment]
            else:
                pending[segment] = following
    assert kept == set(table.sizes)


def test_kills_at_random_lose_nothing_and_repeat_no_more_than_five_seconds(tmp_path: Path) -> None:
    """Each run is a process of its own that ends between two instructions, as after kill -9."""
    sizes, numbers = items(6_000, 3_000), random.Random(20_261_123)  # noqa: S311 - the same kills in each run
    whole = sum(page.units for page in scan(MemoryTable(sizes)))
    kills = scans = 0
    while kills < examples(100):
        place, seen_file = tmp_path / f"{scans}.checkpoint", tmp_path / f"{scans}.seen"
        scans, killed = scans + 1, 0
        while _run_until(numbers.randint(1, 60), sizes, place, seen_file):
            killed += 1
        rows = [line.split() for line in seen_file.read_text().splitlines()]
        assert {key for row in rows for key in row[1:]} == set(sizes)
        # what came since the last place, with a full bucket at the start, and the page that was under way
        assert sum(float(row[0]) for row in rows) - whole <= killed * (6 * 200 + 60)
        assert not place.exists()
        kills += killed


def _run_until(pages: int, sizes: dict[str, int], place: Path, seen_file: Path) -> bool:
    """Go on with a scan until so many pages came, in a process that is killed then; whether it was."""
    child = os.fork()
    if child == 0:
        try:
            with seen_file.open("a") as file:
                for number, page in enumerate(scan(MemoryTable(sizes), checkpoint=place), 1):
                    file.write(f"{page.units} {' '.join(item['pk'] for item in page.items)}\n")
                    file.flush()
                    if number == pages:
                        os._exit(9)
            os._exit(0)
        finally:
            # whatever happens, there is one run of the tests
            os._exit(1)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, 9)
    return ended == 9


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_every_segment_has_its_turn(lengths: list[int]) -> None:
    """Between two pages of a segment each other one that is being read has exactly one."""
    reads: list[int] = []

    def read(segment: int, key: Any) -> dict[str, Any]:
        reads.append(segment)
        done = 1 + (0 if key is None else key["done"])
        return {} if done == lengths[segment] else {"LastEvaluatedKey": {"done": done}}

    list(SegmentPages(read, dict.fromkeys(range(len(lengths))), lambda: 1))
    assert sorted(reads) == sorted(segment for segment, length in enumerate(lengths) for _ in range(length))
    places = {segment: [at for at, each in enumerate(reads) if each == segment] for segment in range(len(lengths))}
    for segment, turns in places.items():
        for before, after in itertools.pairwise(turns):
            between = reads[before + 1 : after]
            assert len(between) == len(set(between)) <= 4
            for other, others in places.items():
                if other != segment and others[0] < before and others[-1] > after:
                    assert other in between


def test_scan_that_stops_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    table, place = MemoryTable(items(3_000)), tmp_path / "orders.checkpoint"
    first: list[ScanPage] = []
    running = scan(table, checkpoint=place)
    for page in running:
        first.append(page)
        if len(first) == 9:
            break
    running.close()  # type: ignore[attr-defined] # a generator
    asked = len(table.asked)
    told: list[ScanProgress] = []
    rest = list(scan(table, checkpoint=place, progress=told.append))
    # the page on which the first scan stopped comes again, as nobody said that it was done
    assert sorted({*keys(first), *keys(rest)}) == sorted(table.sizes)
    assert len(keys(rest)) == 3_000 - len(keys(first[:8]))
    assert len(table.asked) > asked
    assert not place.exists(), "a scan that is done needs no checkpoint"
    assert (told[-1].scanned, told[-1].percent, told[-1].segments_done) == (3_000, 100.0, 4)
    assert told[0].scanned > len(keys(first[:8]))


@pytest.mark.parametrize(
    ("more", "differs"),
    [
        ({"index": "by_status"}, "index"),
        ({"is_consistent": True}, "consistency"),
        ({"FilterExpression": "a = b"}, "filter or projection"),
    ],
)
def test_checkpoint_of_another_scan_is_refused(tmp_path: Path, more: dict[str, Any], differs: str) -> None:
    table, place = MemoryTable(items(300)), tmp_path / "orders.checkpoint"
    running = scan(table, checkpoint=place)
    next(running)
    running.close()  # type: ignore[attr-defined] # a generator
    before = place.read_text()
    with pytest.raises(PacedWorkError) as told:
        next(scan(table, checkpoint=place, **more))
    what = f"is of a scan with another {differs}; give the same arguments, or another file to begin anew"
    assert str(told.value) == f"checkpoint {place}: {what}"
    assert place.read_text() == before


def test_checkpoint_of_a_table_that_was_made_anew_is_refused(tmp_path: Path) -> None:
    table, place = MemoryTable(items(300)), tmp_path / "orders.checkpoint"
    running = scan(table, checkpoint=place)
    next(running)
    running.close()  # type: ignore[attr-defined] # a generator
    known = json.loads(place.read_text())
    known["header"]["table_id"] = "7"
    place.write_text(json.dumps(known))
    with pytest.raises(PacedWorkError) as told:
        next(scan(table, checkpoint=place))
    what = "is of a scan with another table of that name; give the same arguments, or another file to begin anew"
    assert str(told.value) == f"checkpoint {place}: {what}"


def test_checkpoint_that_cannot_be(tmp_path: Path) -> None:
    place = tmp_path / "orders.checkpoint"
    place.write_text("{}")
    with pytest.raises(PacedWorkError) as none:
        next(scan(MemoryTable(items(3)), checkpoint=place))
    assert str(none.value) == f"checkpoint {place}: is no checkpoint of a scan; give another file"
    elsewhere, nowhere = tmp_path / "missing" / "checkpoint", tmp_path / "orders\0.checkpoint"
    for path, why in (
        (elsewhere, "cannot be written: No such file or directory"),
        (nowhere, "cannot be read: embedded null byte"),
    ):
        with pytest.raises(PacedWorkError) as told:
            next(scan(MemoryTable(items(3)), checkpoint=path))
        assert str(told.value) == f"checkpoint {path}: {why}"


def test_checkpoint_is_one_process_s(tmp_path: Path) -> None:
    table, place = MemoryTable(items(3_000)), tmp_path / "orders.checkpoint"
    first: Any = scan(table, checkpoint=place)
    next(first)
    with pytest.raises(PacedWorkError) as other:
        next(scan(MemoryTable(items(3_000)), checkpoint=place))
    why = "another process goes on from it now; wait for it, or give another file"
    assert str(other.value) == f"checkpoint {place}: {why}"
    first.close()
    assert len(list(scan(table, checkpoint=place))) > 10
    assert list(tmp_path.iterdir()) == []


def test_requests_refused_for_capacity_are_sent_again_for_as_long_as_it_takes() -> None:
    table, clock = MemoryTable(items(40)), Clock()
    left = [40]

    def throttle(_: dict[str, Any]) -> None:
        if left[0]:
            left[0] -= 1
            reason = {"reason": "TableReadProvisionedThroughputExceeded", "resource": "arn"}
            raise refused("ProvisionedThroughputExceededException", ThrottlingReasons=[reason])

    table.before = throttle
    assert reader(table, clock).read(0, None)["ScannedCount"] == 1
    assert len(clock.waited) == 40
    assert max(clock.waited) <= 20


class LocallyIndexed(MemoryTable):
    """A table with a local index, whose capacity is its table's."""

    def describe_table(self, TableName: str) -> dict[str, Any]:
        described = super().describe_table(TableName)
        described["Table"]["LocalSecondaryIndexes"] = [{"IndexName": "by_day", "IndexSizeBytes": 9, "ItemCount": 7}]
        return described


def test_scan_of_a_local_index_has_the_budget_of_its_table() -> None:
    table, pacer = LocallyIndexed(items(40)), Clock().pacer()
    refusals = ["TableReadProvisionedThroughputExceeded"]

    def throttle(_: dict[str, Any]) -> None:
        if refusals:
            reason = {"reason": refusals.pop(), "resource": "arn"}
            raise refused("ProvisionedThroughputExceededException", ThrottlingReasons=[reason])

    table.before = throttle
    scan = TableScan(table="orders", read=200, request={}, index="by_day", workers=1, session=table, pacer=pacer)
    pages = scan.pages()
    next(pages)
    assert table.asked[0]["IndexName"] == "by_day"
    # the next pages have the 70 % to which a throttled request reduces a budget
    assert pacer.rate("orders", None, Dimension.READ) == 140.0
    assert pacer.spent("orders", None, Dimension.READ)[1] == 1
    assert pacer.spent("orders", "by_day", Dimension.READ) == (0, 0)
    pages.close()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            refused("ExpiredTokenException"),
            "An error occurred (ExpiredTokenException) when calling the Scan operation: it rests",
        ),
        (NoCredentialsError(), "Unable to locate credentials"),
    ],
)
def test_request_that_is_refused_for_good_ends_the_scan_and_keeps_its_place(
    tmp_path: Path, error: Exception, message: str
) -> None:
    table, place = MemoryTable(items(3_000)), tmp_path / "orders.checkpoint"

    def fail(_: dict[str, Any]) -> None:
        if len(table.asked) == 8:
            raise error

    table.before = fail
    pages: list[ScanPage] = []
    with pytest.raises(PacedWorkError) as told:
        pages.extend(scan(table, checkpoint=place))
    assert str(told.value) == f"scan of orders stopped: {message}; {GOES_ON}"
    table.before = lambda _: None
    rest = list(scan(table, checkpoint=place))
    assert sorted([*keys(pages), *keys(rest)]) == sorted(table.sizes)


def test_network_that_fails_again_and_again_ends_the_scan() -> None:
    table = MemoryTable(items(3))

    def fail(_: dict[str, Any]) -> None:
        raise EndpointConnectionError(endpoint_url="https://dynamodb.eu-central-1.amazonaws.com")

    table.before = fail
    with pytest.raises(PacedWorkError) as told:
        reader(table, Clock()).read(0, None)
    assert str(told.value) == (
        'scan of orders stopped: Could not connect to the endpoint URL: "https://dynamodb.eu-central-1.amazonaws.com"; '
        f"{GOES_ON} (tried 8 times)"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "other"}, "scan: there is no table 'other' in eu-central-1; give its name and region"),
        ({"index": "by_day"}, "scan: table 'orders' has no index 'by_day'; its indexes: by_status"),
        ({"read": 0}, "read rate: got 0, allowed: 0.001 or more units per second"),
        ({"start": "fast"}, "start: got 'fast', allowed: full, slow, boosted"),
        ({"segments": 0}, "scan: segments: got 0, allowed: 1 to 1,000,000"),
        ({"workers": 65}, "scan: workers: got 65, allowed: 1 to 64"),
        (
            {"index": "by_status", "is_consistent": True},
            "scan: an index has no strongly consistent reads; leave out is_consistent, or the index",
        ),
        (
            {"Limit": 5},
            "scan: Limit cannot be passed on; allowed: ExpressionAttributeNames, ExpressionAttributeValues, "
            "FilterExpression, ProjectionExpression, Select",
        ),
        (
            {"segmens": 5},
            "scan: segmens cannot be passed on; allowed: ExpressionAttributeNames, ExpressionAttributeValues, "
            "FilterExpression, ProjectionExpression, Select; did you mean segments?",
        ),
    ],
)
def test_scans_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    given_arguments: dict[str, Any] = {"table": "orders", "read": 5, "session": MemoryTable(items(3))} | arguments
    table = given_arguments.pop("table")
    with pytest.raises((PacedWorkError, PaceError)) as told:
        next(highwater.scan(table, **given_arguments))
    assert str(told.value) == message
    if "there is no table" in message or "has no index" in message:
        # only DynamoDB knows that
        highwater.scan(table, **given_arguments)
        return
    with pytest.raises((PacedWorkError, PaceError), match=re.escape(message)):
        highwater.scan(table, **given_arguments)


def test_index_is_scanned_and_filters_are_passed_on() -> None:
    table = MemoryTable(items(30))
    list(scan(table, index="by_status", FilterExpression="a = :b", ExpressionAttributeValues={":b": {"N": "5"}}))
    for request in table.asked:
        assert (request["IndexName"], request["FilterExpression"]) == ("by_status", "a = :b")


def test_keys_of_bytes_survive_a_checkpoint(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    header = ScanHeader("eu-central-1 orders", None, 2, False, "digest")
    with Checkpoint(place, header) as kept:
        kept.note(1, {"pk": {"B": b"\x00\xff"}, "sk": {"N": "5"}}, 7, 2.5)
    again = Checkpoint(place, header)
    assert again.pending() == {0: None, 1: {"pk": {"B": b"\x00\xff"}, "sk": {"N": "5"}}}
    assert (again.scanned, again.units) == (7, 2.5)
