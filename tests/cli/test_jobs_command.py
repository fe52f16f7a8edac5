"""`highwater jobs`: what it shows, and how it stops, resumes and deletes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest

import highwater.jobs as library
from highwater.core.units import Dimension
from highwater.jobs.command import lines_of
from highwater.jobs.segments import JobProgress, Reject
from highwater_lab.local import LocalCloud
from tests.command import Command
from tests.local.world import create_tables, units

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("jobs command")]


RUNNING = JobProgress(
    id="backfill",
    state="running",
    segments=1_024,
    segments_done=300,
    workers=7,
    items=90_000,
    scanned=120_000,
    units=8_765.5,
    scanned_per_second=123.4,
    seconds_left=5_025,
    skew=3.2,
    slowest=17,
)


def test_progress_is_told_in_sentences() -> None:
    assert list(lines_of(RUNNING)) == [
        "job backfill: running",
        "segments: 300 of 1,024 done, 7 at work",
        "items: 90,000 of 120,000 read, for 8,765.5 read units",
        "rate: 123.4 items read a second; time left: 1:23:45",
        "slowest segment: 17, 3.2 times the mean; more segments divide the work more evenly",
    ]


def test_rejected_lines_of_a_load_are_told() -> None:
    done = replace(RUNNING, id="load", state="done", segments=32, segments_done=32, workers=0, skew=None)
    loaded = replace(
        done,
        items=1_988,
        scanned=2_000,
        units=4_321.0,
        dimension=Dimension.WRITE,
        rejected=12,
        first_rejects=(Reject(1_345, "the line is no JSON"),),
        rejects_at="s3://exports/rejects/load/",
    )
    assert list(lines_of(loaded)) == [
        "job load: done",
        "segments: 32 of 32 done, 0 at work",
        "items: 1,988 of 2,000 read, for 4,321.0 write units",
        "lines rejected: 12, with the reasons in s3://exports/rejects/load/",
        "rejected at byte 1,345: the line is no JSON",
    ]
    assert loaded.document()["first_rejects"] == [{"at": 1_345, "why": "the line is no JSON"}]


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", has_instant_updates=True) as running:
        dynamodb = running.client("dynamodb")
        create_tables(dynamodb, units(5_000, 5_000), orders=["pk"], leases=["table", "item"])
        for number in range(30):
            dynamodb.put_item(TableName="orders", Item={"pk": {"S": str(number)}})
        dynamodb.close()
        yield running


def test_job_is_listed_shown_stopped_resumed_and_deleted(
    cloud: LocalCloud, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = dict(cloud.environment()) | {"HIGHWATER_PULSES": "leases"}
    highwater = Command(command.folder, environment)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def jobs(*arguments: str) -> tuple[int, str, str]:
        done = highwater("jobs", *arguments)
        return done.returncode, done.stdout, done.stderr

    assert jobs("list") == (0, "there are no jobs; start one with highwater.jobs.start_job\n", "")
    library.start_job("backfill", table="orders", read=5_000, segments=4, session=boto3.Session())
    waiting = "job backfill: waiting\nsegments: 0 of 4 done, 0 at work\nitems: 0, for 0.0 read units\n"
    assert jobs("show", "backfill") == (1, waiting, "")
    stopped = (
        "job backfill: stopped; its workers end after their present page; go on with: highwater jobs resume backfill\n"
    )
    assert jobs("stop", "backfill") == (0, stopped, "")
    status, shown, _ = jobs("show", "backfill", "--json")
    assert (status, json.loads(shown)["state"]) == (1, "stopped")
    assert jobs("resume", "backfill") == (0, "job backfill: may go on; start its workers again\n", "")
    refused = []

    def work(_: list[dict[str, Any]]) -> None:
        refused.append(jobs("delete", "backfill"))

    ended = library.run_worker("backfill", work, session=boto3.Session())
    busy = "highwater: job backfill: a worker is at work on it; first: highwater jobs stop backfill\n"
    assert refused[0] == (1, "", busy)
    status, shown, _ = jobs("list", "--json")
    assert (status, json.loads(shown)) == (0, [ended.document()])
    status, shown, _ = jobs("list")
    assert (status, shown.split()[-11:-1]) == (0, ["backfill", "done", "4", "of", "4", "0", "30", "-", "0.0", "-"])
    status, shown, _ = jobs("show", "backfill")
    assert (status, shown.splitlines()[:2]) == (0, ["job backfill: done", "segments: 4 of 4 done, 0 at work"])
    assert jobs("delete", "backfill") == (0, "job backfill: deleted\n", "")
    gone = "highwater: job backfill: there is no such job in leases; start it with highwater.jobs.start_job\n"
    assert jobs("show", "backfill") == (2, "", gone)
