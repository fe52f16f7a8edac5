"""Loads of an object in S3 by workers: each line once, rejected ones kept, an object that changes, errors."""

from __future__ import annotations

import json
import re
from typing import Any

import boto3
import pytest

import highwater.jobs
from highwater.core.units import Dimension
from highwater.jobs.job_table import JobTable
from highwater.jobs.segments import Reject
from highwater.jobs.worker import handler
from highwater_lab.local import LocalCloud
from tests.local.world import create_tables, told, unique, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("loads")]
ITEMS = 300


@pytest.fixture(scope="module", autouse=True)
def _orders(cloud: LocalCloud) -> None:
    create_tables(cloud.client("dynamodb"), units(5_000, 5_000), orders=["pk"], leases=["table", "item"])
    cloud.client("s3").create_bucket(Bucket="exports")


def _put(session: boto3.Session, key: str, content: bytes) -> str:
    session.client("s3").put_object(Bucket="exports", Key=key, Body=content)
    return f"s3://exports/{key}"


def _found(session: boto3.Session, prefix: str) -> dict[str, Any]:
    pages = session.client("dynamodb").get_paginator("scan").paginate(TableName="orders")
    items = [item for page in pages for item in page["Items"]]
    return {item["pk"]["S"]: item["n"] for item in items if item["pk"]["S"].startswith(prefix)}


def _rejects(session: boto3.Session, place: str) -> list[dict[str, Any]]:
    s3 = session.client("s3")
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", ())]
    bodies = [s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in sorted(keys)]
    return [json.loads(line) for body in bodies for line in body.splitlines()]


def test_lines_are_put_and_rejected_ones_are_kept(session: boto3.Session) -> None:
    job = unique("load")
    lines = [
        json.dumps({"pk": f"{job}-{number}", "n": number, "x": "ä🌊"}, ensure_ascii=False) for number in range(ITEMS)
    ]
    lines[17], lines[130], lines[131] = '{"pk"', '{"n": 131}', ""
    content = "\r\n".join(lines).encode()
    source = _put(session, f"{job}.jsonl", content)
    begun = highwater.jobs.start_load(job, table="orders", source=source, write=5_000, segments=7, session=session)
    assert (begun.state, begun.segments, begun.dimension) == ("waiting", 7, Dimension.WRITE)
    done = highwater.jobs.run_worker(job, session=session)
    expected = {f"{job}-{number}": {"N": str(number)} for number in range(ITEMS) if number not in (17, 130, 131)}
    assert _found(session, f"{job}-") == expected
    bad, keyless = content.index(b'{"pk"\r'), content.index(b'{"n": 131}')
    no_key = "One or more parameter values were invalid: Missing the key pk in the item"
    assert (done.state, done.items, done.scanned, done.rejected) == ("done", ITEMS - 3, ITEMS - 1, 2)
    assert done.first_rejects == (Reject(bad, "the line is no JSON"), Reject(keyless, no_key))
    assert done.rejects_at == f"s3://exports/rejects/{job}/"
    assert _rejects(session, done.rejects_at) == [
        {"at": bad, "why": "the line is no JSON", "line": '{"pk"'},
        {"at": keyless, "why": no_key, "line": '{"n": 131}'},
    ]
    assert highwater.jobs.run_worker(job, session=session) == done


def test_empty_object_is_a_load_that_is_done(session: boto3.Session) -> None:
    job = unique("load")
    highwater.jobs.start_load(
        job, table="orders", source=_put(session, f"{job}.jsonl", b""), write=5_000, session=session
    )
    done = highwater.jobs.run_worker(job, session=session)
    assert (done.state, done.segments, done.items, done.rejected) == ("done", 1, 0, 0)


def test_start_with_the_same_arguments_changes_nothing_and_another_object_is_another_job(
    session: boto3.Session,
) -> None:
    job = unique("load")
    source = _put(session, f"{job}.jsonl", b'{"pk": "o-1", "n": 1}\n' * 10_000)
    asked: dict[str, Any] = {"table": "orders", "source": source, "write": 5_000, "session": session}
    first = highwater.jobs.start_load(job, **asked)
    assert (first.segments, first.scanned) == (4, 0)
    assert highwater.jobs.start_load(job, **asked, segments=4) == first
    _put(session, f"{job}.jsonl", b'{"pk": "o-2", "n": 2}\n')
    text = f"job {job}: there is one already, with another etag, size_bytes; give the same, or another id"
    with told(highwater.jobs.JobError, text):
        highwater.jobs.start_load(job, **asked)
    text = f"{source}: is another one than when the job began; start a job with another id for it"
    with told(highwater.PacedWorkError, text):
        highwater.jobs.run_worker(job, session=session)
    table = JobTable(session=session)
    # its segment was given back
    assert table.read(job).progress(table.time.now()).workers == 0
    text = f"job {job}: there is one already, with another kind of work; give the same, or another id"
    with told(highwater.jobs.JobError, text):
        highwater.jobs.start_job(job, table="orders", read=5_000, session=session)


def test_worker_is_told_of_work_that_a_load_has_not_and_a_scan_needs(session: boto3.Session) -> None:
    load, scan = unique("load"), unique("backfill")
    source = _put(session, f"{load}.jsonl", b"")
    highwater.jobs.start_load(load, table="orders", source=source, write=5_000, session=session)
    highwater.jobs.start_job(scan, table="orders", read=5_000, session=session)
    with told(highwater.jobs.JobError, f"job {load}: is a load, which calls no work; call run_worker({load!r}) alone"):
        highwater.jobs.run_worker(load, print, session=session)
    text = f"job {scan}: is a scan, and work is missing; give a function of the items of a page"
    with told(highwater.jobs.JobError, text):
        highwater.jobs.run_worker(scan, session=session)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"write": "30%"}, "job x: write: got '30%', allowed: write units per second, from 0.001"),
        (
            {"source": "orders.jsonl"},
            "job x: source: got 'orders.jsonl', allowed: s3://bucket/key; give the place in S3",
        ),
        ({"source": "s3://exports/"}, "job x: source: got 's3://exports/', allowed: s3://bucket/key; name one object"),
        (
            {"source": "s3://exports/orders.jsonl.gz"},
            "job x: s3://exports/orders.jsonl.gz: is .gz, allowed: lines of JSON, not compressed; convert it first",
        ),
        ({"rejects": "exports"}, "job x: rejects: got 'exports', allowed: s3://bucket/key; give the place in S3"),
        ({"segments": 10_001}, "job x: segments: got 10,001, allowed: 1 to 10,000"),
        (
            {"source": "s3://exports/gone.jsonl"},
            "job x: s3://exports/gone.jsonl: cannot be read: An error occurred (404) when calling the HeadObject "
            "operation: Not Found; check the key, and that the role has s3:GetObject for it",
        ),
    ],
)
def test_misuse_is_told_in_a_line(session: boto3.Session, more: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"table": "orders", "source": _put(session, "some.jsonl", b""), "write": 7, **more}
    with told(highwater.jobs.JobError, message):
        highwater.jobs.start_load("x", session=session, **asked)


def test_state_machine_is_told_what_the_input_lacks() -> None:
    event = {"job": "x", "coordinator": None, "workers": 7, "start": {"bucket": "exports"}, "input": {"kee": "a"}}
    allowed = 'allowed: {"key": "the key of an object"}, or an event of S3 about an object in exports'
    with told(highwater.jobs.JobError, f"job x: input: got {{'kee': 'a'}}, {allowed}"):
        handler(event, None)
    elsewhere = {"detail": {"bucket": {"name": "other"}, "object": {"key": "a"}}}
    with told(highwater.jobs.JobError, f"job x: input: got {elsewhere}, {allowed}"):
        handler({**event, "input": elsewhere}, None)


_START = {"job": "x", "coordinator": None, "workers": 7, "start": {"bucket": "exports"}, "input": {"key": "a"}}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        pytest.param({"Records": []}, "KeyError: 'job'", id="job"),
        pytest.param({"job": "x"}, "KeyError: 'coordinator'", id="coordinator"),
        pytest.param({"job": "x", "coordinator": None, "start": {}}, "KeyError: 'workers'", id="workers"),
        pytest.param(_START | {"start": {}}, "KeyError: 'bucket'", id="bucket"),
        # the rest of these is Python's own text
        pytest.param(None, "TypeError: ", id="no-mapping"),
        pytest.param(_START | {"workers": "7"}, "TypeError: ", id="workers-text"),
        pytest.param(_START | {"start": None}, "TypeError: ", id="start-none"),
        pytest.param(_START | {"start": "exports"}, "ValueError: ", id="start-text"),
        pytest.param(_START, "TypeError: start_load() ", id="table"),
    ],
)
def test_event_of_another_form_is_one_error(event: Any, why: str) -> None:
    got = re.escape(f"PacedLoad: got {str(event)[:120]} ({why}")
    allowed = re.escape(
        "), allowed: an event with job and coordinator, and at first with start, workers and input; have its state "
        "machine call it"
    )
    with pytest.raises(highwater.jobs.JobError, match=f"^{got}.*{allowed}$"):
        handler(event, None)
