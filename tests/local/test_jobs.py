"""Jobs of many workers on a driven clock: each item once, workers killed or frozen, stops, deadlines, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import boto3
import pytest

import highwater.jobs
from highwater.jobs.job_table import JobTable
from highwater_lab.local import LocalCloud
from tests.local.world import create_tables, told, unique, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("jobs")]
ITEMS = 240
NUMBERS = list(range(ITEMS))
# a worker as a user writes it, in lock-step with the cloud; how it misbehaves is an argument
PROCESS = """
import json, os, signal, sys, time
from datetime import UTC, datetime, timedelta
import highwater.jobs
from highwater.jobs.job_table import JobTable
from highwater_lab.local.control import CloudControl
from highwater_lab.local.lockstep import take_part
port, seat, job, trouble = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
pages, began = [], 0.0
def work(items):
    pages.append([int(item["n"]) for item in items])
    if len(pages) == 3 and trouble == "killed":
        print(json.dumps([pages, None, 0]), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if len(pages) == 3 and trouble == "frozen":
        time.sleep(90)
    if len(pages) == 3 and trouble == "stops":
        JobTable().stop(job, is_stopped=True)
with take_part(CloudControl(port), seat):
    began = time.time()
    until = datetime.fromtimestamp(began, UTC) + timedelta(minutes=14) if trouble == "14 minutes" else None
    progress = highwater.jobs.run_worker(job, work, until=until)
    print(json.dumps([pages, progress.document(), time.time() - began]))
"""


@dataclass(frozen=True)
class Ran:
    """What one worker did: the numbers of each page, how far the job was at its end, its seconds, and its log."""

    pages: list[list[int]]
    progress: dict[str, Any] | None
    seconds: float
    log: str


@pytest.fixture(scope="module", autouse=True)
def _orders(clients: dict[str, Any]) -> None:
    create_tables(clients["dynamodb"], units(200, 5_000), orders=["pk"], leases=["table", "item"])
    for number in NUMBERS:
        item = {"pk": {"S": f"order-{number}"}, "n": {"N": str(number)}, "x": {"S": "y" * 1_900}}
        clients["dynamodb"].put_item(TableName="orders", Item=item)


def _start(session: boto3.Session, **asked: Any) -> str:
    job = unique("backfill")
    _start_again(session, job, **asked)
    return job


def _start_again(session: boto3.Session, job: str, **asked: Any) -> None:
    highwater.jobs.start_job(job, table="orders", session=session, **{"read": 20, "segments": 12} | asked)


def _run(cloud: LocalCloud, job: str, *troubles: str) -> list[Ran]:
    """Run a worker for each of *troubles*, all at once, until all have ended."""
    environment = os.environ | cloud.environment() | {"HIGHWATER_PULSES": "leases"}
    processes = [
        (
            seat,
            subprocess.Popen(
                [sys.executable, "-c", PROCESS, str(cloud.port), str(seat), job, trouble],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ),
        )
        for seat, trouble in zip(cloud.control.take_seats(len(troubles)), troubles, strict=True)
    ]
    ran: dict[int, Ran] = {}
    # who is to be killed first, as the clock waits for its seat
    for (seat, process), trouble in sorted(zip(processes, troubles, strict=True), key=lambda each: each[1] != "killed"):
        said, failed = process.communicate()
        if trouble == "killed":
            cloud.control.leave(seat)
        assert process.returncode == (-9 if trouble == "killed" else 0), failed
        pages, progress, seconds = json.loads(said)
        ran[seat] = Ran(pages, progress, seconds, failed)
    return [ran[seat] for seat, _ in processes]


def _counts(ran: list[Ran]) -> Counter[int]:
    return Counter(number for each in ran for page in each.pages for number in page)


@pytest.mark.parametrize("workers", [1, 3, 6])
def test_any_number_of_workers_gives_each_item_once(cloud: LocalCloud, session: boto3.Session, workers: int) -> None:
    job = _start(session)
    ran = _run(cloud, job, *["fine"] * workers)
    assert _counts(ran) == Counter(NUMBERS)
    for each in ran:
        assert each.progress is not None
        assert {name: each.progress[name] for name in ("state", "segments_done", "items", "workers")} == {
            "state": "done",
            "segments_done": 12,
            "items": ITEMS,
            "workers": 0,
        }
    assert all(each.pages for each in ran), "all have taken part"
    # within one budget: some 60 units and half a unit for each of the segments, at 20 a second and a second of burst
    assert max(each.seconds for each in ran) >= 60 / 20 - 1


def test_segment_of_a_worker_that_is_killed_goes_on_where_it_was_after_its_lease(
    cloud: LocalCloud, session: boto3.Session
) -> None:
    job = _start(session)
    killed, other = _run(cloud, job, "killed", "fine")
    # the page that it was at is given again, and no other one
    again = Counter(killed.pages[-1])
    assert _counts([killed, other]) == Counter(NUMBERS) + again
    assert other.progress is not None
    assert (other.progress["state"], other.progress["items"]) == ("done", ITEMS)
    assert 60 <= other.seconds <= 100


def test_late_write_of_a_worker_that_was_frozen_past_its_lease_is_refused(
    cloud: LocalCloud, session: boto3.Session
) -> None:
    job = _start(session)
    frozen, other = _run(cloud, job, "frozen", "fine")
    assert _counts([frozen, other]) == Counter(NUMBERS) + Counter(frozen.pages[2])
    assert frozen.progress is not None
    assert (frozen.progress["state"], frozen.progress["items"]) == ("done", ITEMS)
    assert "another worker has it, as this one's lease had ended; if pages take longer than 60 s, give a longer" in (
        frozen.log
    )
    assert other.log == ""


def test_job_that_is_stopped_ends_within_seconds_and_goes_on_when_it_is_resumed(
    cloud: LocalCloud, session: boto3.Session
) -> None:
    job = _start(session, read=4)
    stopped = _run(cloud, job, "stops", "fine", "fine")
    assert [each.progress and each.progress["state"] for each in stopped] == ["stopped"] * 3
    assert _counts(stopped).total() < ITEMS
    assert max(each.seconds for each in stopped) - min(each.seconds for each in stopped) <= 5 + 10
    assert [each.progress and each.progress["state"] for each in _run(cloud, job, "fine")] == ["stopped"]
    table = JobTable(session=session)
    # all segments were given back
    assert table.read(job).progress(table.time.now()).workers == 0
    table.stop(job, is_stopped=False)
    ran = _run(cloud, job, "fine", "fine")
    assert _counts([*stopped, *ran]) == Counter(NUMBERS)


def test_job_goes_on_past_fifteen_minutes_in_runs_that_end_in_time(cloud: LocalCloud, session: boto3.Session) -> None:
    job = _start(session, read=0.02, segments=3)
    ran: list[Ran] = []
    while not ran or (ran[-1].progress or {})["state"] != "done":
        ran += _run(cloud, job, "14 minutes")
    assert len(ran) >= 4
    # No page is begun later. One is paid for in up to 50 s, and up to 25 s that the page before still owes come first;
    # `worker_handler` leaves two leases, 120 s, for both.
    assert max(each.seconds for each in ran) <= 14 * 60 + 75
    assert _counts(ran) == Counter(NUMBERS)


def test_start_with_the_same_arguments_changes_nothing(session: boto3.Session) -> None:
    job = unique("backfill")
    asked: dict[str, Any] = {"table": "orders", "read": 20, "session": session}
    first = highwater.jobs.start_job(
        job, **asked, FilterExpression="n < :n", ExpressionAttributeValues={":n": {"N": "7"}}
    )
    assert (first.state, first.segments) == ("waiting", 32)
    again = highwater.jobs.start_job(
        job,
        **asked,
        segments=32,
        FilterExpression="n < :n",
        ExpressionAttributeValues={":n": {"N": "7"}},
    )
    assert again == first
    text = f"job {job}: there is one already, with another read, request, segments; give the same, or another id"
    with told(highwater.jobs.JobError, text):
        highwater.jobs.start_job(job, **asked | {"read": 21}, segments=31)


def test_start_changes_nothing_after_dynamodb_has_counted_the_table_anew(session: boto3.Session) -> None:
    job = _start(session, segments=12)
    table = JobTable(session=session)
    spec = table.read(job).spec
    # a small table has fewer segments than were asked for, and it has grown
    assert (spec.segments, spec.given_segments) == (12, 12)
    assert table.begin(job, replace(spec, segments=11)).segments == 12


def test_late_worker_of_a_deleted_job_has_nothing_of_the_next_with_its_id(session: boto3.Session) -> None:
    job, table = _start(session), JobTable(session=session)
    deleted = table.read(job)
    table.delete(job)
    # a worker that had read the job before
    taken = table.take(deleted, 3, "late", 60_000)
    assert taken is not None
    _start_again(session, job)
    assert table.keep(deleted, replace(taken[0], is_done=True, items=7), None)
    found = table.read(job)
    assert (found.begun, found.progress(table.time.now()).items) == ({}, 0)
    counted = Counter[str]()
    highwater.jobs.run_worker(job, lambda items: counted.update(each["pk"] for each in items), session=session)
    assert len(counted) == ITEMS
    table.delete(job)
    left = session.client("dynamodb").query(
        TableName="leases",
        KeyConditionExpression="#table = :job",
        ExpressionAttributeNames={"#table": "table"},
        ExpressionAttributeValues={":job": {"S": f"job#{job}"}},
    )
    assert left["Items"] == []


def test_worker_of_a_deleted_job_ends_as_stopped_though_another_has_its_id(session: boto3.Session) -> None:
    job, table = _start(session, read=5_000), JobTable(session=session)
    seen: list[int] = []

    def work(items: list[dict[str, Any]]) -> None:
        if not seen:
            table.delete(job)
            _start_again(session, job, read=5_000, segments=7)
        seen.extend(int(each["n"]) for each in items)

    ended = highwater.jobs.run_worker(job, work, session=session)
    assert (ended.state, ended.items) == ("stopped", 0)
    assert len(seen) < ITEMS
    assert table.read(job).begun == {}


def test_filtered_items_are_not_given_to_the_work_and_an_index_may_have_binary_values(session: boto3.Session) -> None:
    job = unique("backfill")
    highwater.jobs.start_job(
        job,
        table="orders",
        read=5_000,
        session=session,
        FilterExpression="n < :n AND #x <> :b",
        ExpressionAttributeNames={"#x": "x"},
        ExpressionAttributeValues={":n": {"N": "7"}, ":b": {"B": b"\x00"}},
    )
    seen: list[int] = []
    progress = highwater.jobs.run_worker(
        job, lambda items: seen.extend(int(each["n"]) for each in items), session=session
    )
    assert sorted(seen) == list(range(7))
    assert (progress.items, progress.scanned) == (7, ITEMS)


def test_work_that_raises_gives_its_segment_back(session: boto3.Session) -> None:
    job = _start(session, read=5_000, segments=32)

    def fail(items: list[dict[str, Any]]) -> None:
        raise ZeroDivisionError(len(items))

    with pytest.raises(ZeroDivisionError):
        highwater.jobs.run_worker(job, fail, session=session)
    table = JobTable(session=session)
    found = table.read(job)
    assert found.progress(table.time.now()).workers == 0
    # the page that failed is not recorded
    assert found.progress(table.time.now()).items == 0
    counted = Counter[str]()
    highwater.jobs.run_worker(job, lambda items: counted.update(each["pk"] for each in items), session=session)
    assert set(counted.values()) == {1}
    assert len(counted) == ITEMS


class _Soon:
    """The context of a function that has little time."""

    def get_remaining_time_in_millis(self) -> int:
        return 90_000


NO_COORDINATOR = (
    "job backfill-x: its record cannot be read or written: An error occurred (ResourceNotFoundException) when calling "
    "the Query operation: Requested resource not found; give the role grant_job in the CDK app, and deploy"
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda session: highwater.jobs.run_worker("unknown", print, session=session),
            "job unknown: there is no such job in leases; start it with highwater.jobs.start_job",
        ),
        (
            lambda session: highwater.jobs.run_worker("", print, session=session),
            "job: id: got '', allowed: a text of 1 to 121 characters",
        ),
        (
            lambda session: highwater.jobs.run_worker("x", print, until=datetime(2027, 3, 4), session=session),  # noqa: DTZ001
            "job x: until: got 2027-03-04 00:00:00, allowed: an instant with its time zone, such as datetime.now(UTC)",
        ),
        (
            lambda session: highwater.jobs.run_worker("x", print, lease=timedelta(seconds=9), session=session),
            "job x: lease: got 0:00:09, allowed: a timedelta of 10 seconds to 12 hours",
        ),
        (
            lambda session: highwater.jobs.start_job(
                "x",
                table="orders",
                read="30%",  # type: ignore[arg-type]
                session=session,
            ),
            "job x: read: got '30%', allowed: read units per second; give a number",
        ),
        (
            lambda session: highwater.jobs.start_job("x", table="orders", read=5, budget="b" * 122, session=session),
            f"job x: budget: got {'b' * 120!r}, allowed: a text of 1 to 121 characters",
        ),
        (
            lambda session: highwater.jobs.worker_handler(print, lease=timedelta(days=1), session=session),
            "worker_handler: lease: got 1 day, 0:00:00, allowed: a timedelta of 10 seconds to 12 hours",
        ),
        (
            lambda session: highwater.jobs.worker_handler(print, session=session)({"Records": []}, None),
            "worker_handler: got {'Records': []} (KeyError: 'job'), allowed: an event with job and coordinator, and at "
            "first with start and workers; have a PacedScan call it",
        ),
        (
            lambda session: highwater.jobs.worker_handler(print, session=session)(
                {"job": "x", "coordinator": "y"}, _Soon()
            ),
            "job x: the function has 90 s left, allowed: more than two leases of 60 s; give it a timeout of 15 minutes",
        ),
    ],
)
def test_misuse_is_told_in_a_line(session: boto3.Session, call: Any, message: str) -> None:
    with told(highwater.jobs.JobError, message):
        call(session)


def test_missing_table_of_the_coordinator_is_told(session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHWATER_PULSES", "gone")
    with told(highwater.jobs.JobError, NO_COORDINATOR):
        highwater.jobs.run_worker("backfill-x", print, session=session)
