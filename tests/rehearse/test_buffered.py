"""Rehearsals of tables whose writes pass through a queue: from a template or an option, and what reports say."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import BoostCoordinator, BufferedWrites, Capacity, HighWaterTable
from highwater.core import Dimension
from highwater_lab.rehearse import Limits, Rehearsal, RehearsalError, Workload, rehearse, rehearse_app
from highwater_lab.report.document import rehearsal_document
from highwater_lab.report.page import write_page
from highwater_lab.report.terminal import share_text, work_lines
from highwater_lab.simulation import Buffer, TargetSetup
from highwater_lab.template import TemplateError, find_table, load_templates, read_app
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import START, table, tracked, writes

SETUP = table(tracked(low=350))
SURGE = writes(*[190] * 30, *[1_100] * 30, *[190] * 180)


@pytest.fixture(name="shop", scope="module")
def _shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop") / "cdk.out"
    app = cdk.App(outdir=str(folder))
    data, work = cdk.Stack(app, "Data"), cdk.Stack(app, "Work")
    for name in ("Orders", "Visits"):
        made = HighWaterTable(
            data,
            name,
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            read=Capacity.fixed(5),
            write=Capacity.autoscaled(min_capacity=90, max_capacity=9_000),
        )
        if name == "Orders":
            coordinator = BoostCoordinator(work, "Boosts")
            hours = cdk.Duration.hours(7)
            BufferedWrites(work, "One", table=made, coordinator=coordinator, write=310, drain_time=hours, budget="both")
            BufferedWrites(work, "Two", table=made, coordinator=coordinator, write=290, budget="both")
            BufferedWrites(work, "Three", table=made, coordinator=coordinator, write=45)
    app.synth()
    return folder


def test_queue_of_the_template_is_found_in_another_stack_with_rate_and_drain_time(shop: Path) -> None:
    templates = load_templates(shop)
    # a budget of two queues counts once, at the lower of its rates
    assert find_table(templates, name="Orders").buffer == Buffer(units=290 + 45, drain_seconds=7 * 3_600)
    assert find_table(templates, name="Visits").buffer is None


def test_rate_that_is_no_number_is_told(shop: Path, tmp_path: Path) -> None:
    for path in shop.iterdir():
        if path.suffix == ".json":
            (tmp_path / path.name).write_text(
                path.read_text().replace('"HIGHWATER_WRITE": "45"', '"HIGHWATER_WRITE": "x"')
            )
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(tmp_path), name="Orders")
    where = f"{tmp_path / 'Work.template.json'}: ThreeFunction338FCE58"
    assert str(refused.value) == f"{where} HIGHWATER_WRITE is 'x'; expected a number"


def test_rehearsal_of_the_template_compares_with_writing_directly(shop: Path) -> None:
    found = rehearse(shop, SURGE, table="Orders", compare=["on-demand"])
    assert [run.policy for run in found.runs] == ["declared", "without queue", "on-demand"]
    declared, direct, on_demand = found.runs
    assert declared.bill.per_month < direct.bill.per_month
    assert (declared.throttled_units, direct.throttled_units > 0) == (0, True)
    assert (direct.queue, on_demand.queue) == (None, declared.queue)
    assert found.setup.notes[-1] == "all writes pass through a queue, at 335 write units a second"


def test_option_puts_a_queue_in_front_of_any_table_and_stands_before_the_templates(shop: Path) -> None:
    assert _lines(rehearse(shop, SURGE, table="Orders", workload=Workload(buffer=Buffer(units=420)))) == [
        "queue at 420 units/s: at most 1,224,000 units wait (Tue 2026-11-03 11:00 UTC), the oldest for 0:48:14 (Tue "
        "2026-11-03 11:48 UTC), empty from Tue 2026-11-03 12:29 UTC on"
    ]


def _lines(found: Rehearsal) -> list[str]:
    return work_lines(found.declared)


def test_lines_say_what_waits_what_came_back_and_what_is_late(tmp_path: Path) -> None:
    hour = Buffer(units=500, drain_seconds=3_600)
    assert _lines(rehearse(SETUP, writes(340, 90), workload=Workload(buffer=hour))) == [
        "queue at 500 units/s: nothing ever waits"
    ]
    refusing = rehearse(table(TargetSetup.fixed(280)), SURGE, workload=Workload(buffer=hour))
    throttled = refusing.declared.throttled_units
    queue = refusing.declared.queue
    assert queue is not None
    oldest_at = START + timedelta(seconds=queue.oldest_at)
    assert _lines(refusing) == [
        f"queue at 500 units/s: at most {queue.most_units:,} units wait (Tue 2026-11-03 11:00 UTC), the oldest for "
        f"{timedelta(seconds=queue.oldest_seconds)} ({oldest_at:%a %Y-%m-%d %H:%M} UTC)"
        f", {queue.left_units:,} wait at the end; {throttled:,.0f} units throttled, which came back",
        "writes wait for the drain time of 1:00:00 or longer; raise the rate of the queue, or send less",
    ]
    write_page(refusing, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "writes wait for the drain time of 1:00:00 or longer" in page
    assert "What the template declares, but with all writes sent to the table at once." in page


def _report(found: Rehearsal, file: Path) -> tuple[str, dict[str, Any]]:
    """The verdict of a report as text, and what its charts draw."""
    write_page(found, file, Limits().passed(found))
    page = file.read_text()
    verdict = re.search("<p class='verdict'>(.*)</p>", page)
    data = re.search("id='data'>(.*)</script>", page)
    assert verdict is not None
    assert data is not None
    return re.sub("<.*?>", "", verdict[1]), json.loads(zlib.decompress(base64.b64decode(data[1])))


def test_queue_that_does_not_drain_is_the_verdict_and_exceeds_a_limit(tmp_path: Path) -> None:
    flood = writes(*[190] * 30, *[1_100] * 210)
    found = rehearse(
        SETUP, flood, workload=Workload(buffer=Buffer(units=500, drain_seconds=3_600)), compare=["on-demand"]
    )
    declared, direct, _ = found.runs
    verdict, data = _report(found, tmp_path / "page.html")
    assert verdict == (
        "The queue does not drain: 7,560,000 write units are unwritten at the end, and the oldest has waited for "
        f"1:54:33, where 1:00:00 is declared. As declared, Orders costs ${declared.bill.per_month:,.0f} a month and "
        "throttles nothing. That leaves out what waits: without queue, all is written at once, for "
        f"${direct.bill.per_month:,.0f}, with {share_text(direct)} of the requested units throttled."
    )
    assert [(each.what, each.got, each.allowed, each.text) for each in Limits().passed(found)] == [
        (
            "queue",
            6_873,
            3_600,
            "queued writes wait for up to 1:54:33, the limit is the declared drain time of 1:00:00",
        )
    ]
    ages, written = data["targets"]
    assert (ages["limit"], ages["demand"], ages["runs"][1]["units"]) == (1, [], [])
    assert ages["runs"][0]["units"][:2] == [[0, 0], [2_100, 0.1]]
    assert ages["runs"][0]["units"][-1][1] == 1.9
    # what is asked for, and what the queue writes of it, are two series
    assert (written["demand"][40], written["written"][40]) == (1_100, 500)
    page = (tmp_path / "page.html").read_text()
    assert "Blue is what was requested, dark blue what the queue writes;" in page
    rows = [
        re.findall("<td data-label='unwritten'>(.*?)</td>", row)[0] for row in re.findall("<tr data-row=.*?</tr>", page)
    ]
    assert rows == ["7,560,000", "", "7,560,000"]


def test_queue_that_is_late_exceeds_a_limit_among_all_tables_of_an_app_too(shop: Path) -> None:
    app = read_app(load_templates(shop))
    flood = writes(*[1_100] * 60 * 12)
    flooded = rehearse_app(app, lambda table: flood if table.name.endswith("Orders") else None, processes=1)
    (alone,) = Limits().passed(rehearse(shop, flood, table="Orders"))
    (late,) = Limits().passed_by_app(flooded)
    assert late == replace(alone, text=f"Data/Orders: {alone.text}", where="Data/Orders")
    assert late.text == (
        "Data/Orders: queued writes wait for up to 8:20:44, the limit is the declared drain time of 7:00:00"
    )
    calm = rehearse_app(app, lambda _: writes(*[90] * 60), processes=1)
    assert Limits().passed_by_app(calm) == ()


def test_queue_that_was_late_but_drains_is_told_and_one_in_time_is_not(tmp_path: Path) -> None:
    late, _ = _report(
        rehearse(SETUP, SURGE, workload=Workload(buffer=Buffer(units=350, drain_seconds=3_600))), tmp_path / "late.html"
    )
    assert late.startswith("The queue is late: a write waits for up to 1:04:06, where 1:00:00 is declared. As declared")
    in_time = rehearse(SETUP, SURGE, workload=Workload(buffer=Buffer(units=350)))
    verdict, _ = _report(in_time, tmp_path / "in_time.html")
    assert verdict.startswith("As declared, Orders costs $")
    assert verdict.endswith("No compared policy costs less without throttling more.")
    assert Limits().passed(in_time) == ()


def test_messages_that_sqs_deletes_are_told() -> None:
    fortnight = writes(*[700] * 1_440 * 16)
    *_, late = _lines(rehearse(SETUP, fortnight, workload=Workload(buffer=Buffer(units=70))))
    assert late == "writes are lost: SQS deletes what waits for longer than 14 days; raise the rate of the queue"


def test_document_has_the_queue_in_whole_numbers() -> None:
    document = rehearsal_document(rehearse(SETUP, SURGE, workload=Workload(buffer=Buffer(units=350))))
    assert document["runs"][1]["queue"] is None
    assert document["runs"][0]["queue"] == {
        "units_per_second": 350,
        "drain_seconds": 43_200,
        "most_waiting_units": 750 * 1_800,
        "most_waiting_at": "2026-11-03T11:00:00+00:00",
        # the surge's last write is written 3,857 s after it was sent, eleven seconds after a minute's end
        "oldest_seconds": 3_846,
        "oldest_at": "2026-11-03T12:04:00+00:00",
        "empty_at": "2026-11-03T13:21:00+00:00",
        "left_units": 0,
        "written_units": 190 * 60 * 210 + 1_100 * 1_800,
        "throttled_units": 0,
    }


def test_queue_needs_writes() -> None:
    reads = Traffic.from_counts("reads", {Stream(None, Dimension.READ): [60]}, bin_seconds=60, start=START)
    with pytest.raises(RehearsalError) as refused:
        rehearse(SETUP, reads, workload=Workload(buffer=Buffer(units=350)))
    assert str(refused.value) == "traffic reads has no writes for the queue; give a column writes"
    # one of the template has nothing to do
    assert len(rehearse(table(tracked(), buffer=Buffer(units=350)), reads).runs) == 1
