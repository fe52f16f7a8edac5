"""Background work in a rehearsal: how long it takes, whom it hurts, through the pacing that real jobs use."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Dimension
from highwater.core.pacing.following import Start
from highwater_lab.budgets.workers import Workers
from highwater_lab.rehearse import PlannedJob, RehearsalError, Workload, rehearse
from highwater_lab.report.document import rehearsal_document
from highwater_lab.report.terminal import work_lines
from highwater_lab.simulation import JobRun, Run, TableSetup
from highwater_lab.traffic import Traffic
from highwater_lab.traffic.series import Stream
from tests.simulation.tables import START, table, tracked, writes

# three hours of 300 units a second, with seconds
CALM = Traffic.from_counts("calm", {Stream(None, Dimension.WRITE): [300.0] * 3 * 3_600}, bin_seconds=1, start=START)
JOB_AT = START + timedelta(minutes=30)
SETUP = table(tracked(low=20, high=9_000))


def job(**changed: Any) -> PlannedJob:
    given: dict[str, Any] = {"dimension": Dimension.WRITE, "rate": 1_900, "units": 1_700_000, "at": JOB_AT}
    return PlannedJob(**(given | changed))


def run_of(planned: PlannedJob, setup: TableSetup = SETUP, traffic: Traffic = CALM) -> tuple[Run, JobRun]:
    run = rehearse(setup, traffic, workload=Workload(jobs=[planned])).declared
    (found,) = run.jobs
    return run, found


def test_job_at_full_rate_at_once_hurts_others() -> None:
    run, found = run_of(job())
    assert found.start == 1_800
    assert found.full_at == 1_800
    assert found.end is not None
    assert found.units >= 1_700_000
    assert found.others_throttled_units > 500
    assert found.throttled_units + found.others_throttled_units == pytest.approx(run.throttled_units)
    # in proportion to what each asked for, until the brake has slowed the job down
    assert found.throttled_units > found.others_throttled_units


def test_slow_start_hurts_nobody_and_reaches_its_rate_as_the_capacity_follows() -> None:
    run, found = run_of(job(start=Start.SLOW))
    assert run.throttled_units == 0
    assert found.full_at is not None
    assert found.end is not None
    assert 300 < found.full_at - found.start < 1_800
    assert found.end - found.full_at < 1_700_000 / 1_900
    first = run.target(Dimension.WRITE).consumed[30] / 3_600
    # 428 of capacity and a seventh: what the first look leaves beside 300
    assert first == pytest.approx(428 * 8 / 7, rel=0.01)


def test_boosted_job_is_at_its_rate_at_once_and_hurts_nobody() -> None:
    run, found = run_of(job(start=Start.BOOSTED))
    assert run.throttled_units == 0
    assert found.full_at == found.start
    assert found.end is not None
    assert found.end - found.start == pytest.approx(1_700_000 / 1_900, abs=15)
    capacity = list(run.target(Dimension.WRITE).capacity_by_minute())
    assert capacity[29] >= 20 + 1_900 * 100 // 70


def test_self_throttled_job_fits_the_padding() -> None:
    run, found = run_of(job(rate=120, units=100_000))
    assert run.throttled_units == 0
    assert found.end is not None
    assert found.end - found.start == pytest.approx(100_000 / 120, abs=15)


def test_share_follows_the_capacity_and_does_not_drive_it_up() -> None:
    run, found = run_of(job(rate=0, percent=20, units=10_000_000))
    assert found.end is None
    write = run.target(Dimension.WRITE)
    assert max(units for _, units in write.capacity) <= 430, "below the target nothing is raised"
    assert found.units > 3_000


def test_job_that_may_be_throttled_uses_every_bit_of_capacity_and_keeps_asking() -> None:
    fixed = table(replace(tracked(low=700, high=700), tracking=None, units=700))
    quiet = writes(*[0] * 180)
    run, found = run_of(job(allow_throttles=True), fixed, quiet)
    _, gives_way = run_of(job(), fixed, quiet)
    assert found.throttled_units > 100_000
    # quanta are sixtieths of a unit: 700 a second, from when the bucket is empty
    assert run.target(Dimension.WRITE).consumed[50] == 700 * 3_600
    assert found.end is not None
    # a bucket of 300 s, and then the capacity
    assert found.end - found.start == pytest.approx((1_700_000 - 300 * 700) / 700, rel=0.05)
    assert gives_way.throttled_units < found.throttled_units / 2


def test_writes_draw_on_indexes_in_their_shares() -> None:
    index = replace(SETUP.resources[0], index="by_status", write=tracked(low=900, high=900), write_share_percent=200)
    setup = replace(SETUP, resources=(SETUP.resources[0], replace(index, write=replace(index.write, tracking=None))))
    run, found = run_of(job(start=Start.SLOW, units=60_000), setup)
    assert found.end is not None
    assert run.target(Dimension.WRITE, "by_status").consumed[31] == 2 * run.target(Dimension.WRITE).consumed[31]
    # 900 units of the index and what its bucket holds are 450 of the table's: 150 beside 300, and a part of the bucket
    assert found.units / (found.end - found.start) < 250


def test_jobs_of_every_day_and_two_at_once() -> None:
    traffic = writes(*[300] * 2_880)
    planned = [job(at=time(12, 0), rate=50, units=30_000), job(at=time(12, 5), rate=40, units=30_000)]
    run = rehearse(SETUP, traffic, workload=Workload(jobs=planned)).declared
    assert [each.start for each in run.jobs] == [7_200, 7_500, 93_600, 93_900]
    assert all(each.end is not None for each in run.jobs)
    assert run.target(Dimension.WRITE).consumed[126] == (300 + 50 + 40) * 3_600


def test_every_compared_policy_has_the_job_and_the_report_tells_of_it() -> None:
    rehearsal = rehearse(
        SETUP, CALM, workload=Workload(jobs=[job(start=Start.SLOW)]), compare=["native:50", "highwater-direct-pulse"]
    )
    assert [len(run.jobs) for run in rehearsal.runs] == [1, 1, 1]
    (line,) = work_lines(rehearsal.declared)
    assert line.startswith("job write=1900 at 2026-11-03T10:30 for 1700000 units slow: done in 0:")
    assert line.endswith("; never throttled, nobody hurt")
    (told,) = rehearsal_document(rehearsal)["runs"][0]["jobs"]
    found = rehearsal.declared.jobs[0]
    assert found.end is not None
    assert told == {
        "name": "write=1900 at 2026-11-03T10:30 for 1700000 units slow",
        "start": "2026-11-03T10:30:00+00:00",
        "seconds": found.end - 1_800,
        "workers": 1,
        "most_units_in_a_second": 1_900,
        "seconds_to_full_rate": (found.full_at or 0) - 1_800,
        "units": round(found.units, 3),
        "throttled_units": 0,
        "others_throttled_units": 0,
    }


def test_job_that_is_not_done_says_how_far_it_came() -> None:
    _, found = run_of(job(rate=100, units=90_000_000))
    run = rehearse(SETUP, CALM, workload=Workload(jobs=[job(rate=100, units=90_000_000)])).declared
    assert work_lines(run) == [
        f"job {found.job.name}: not done, {found.units:,.0f} of 90,000,000 units, at its full rate after 0:00:00; "
        "never throttled, nobody hurt"
    ]


def test_workers_share_the_rate_and_are_done_when_one_would_be() -> None:
    run, many = run_of(job(rate=110, units=100_000, workers=7))
    _, one = run_of(job(rate=110, units=100_000))
    assert (many.end, many.most_units) == (one.end, 110)
    assert run.throttled_units == 0
    assert work_lines(run) == [
        "job write=110 at 2026-11-03T10:30 for 100000 units by 7 workers: done in 0:15:15, at its full rate after "
        "0:00:00, at most 110 units in a second, where the bound is 220; never throttled, nobody hurt"
    ]


def test_workers_of_a_share_of_the_capacity_have_no_bound_in_units() -> None:
    fixed = table(replace(tracked(low=700, high=700), tracking=None, units=700))
    run, found = run_of(job(rate=0, percent=20, units=10_000, workers=3), fixed, writes(*[0] * 60))
    assert found.most_units == 140
    assert ", at most 140 units in a second; never throttled" in work_lines(run)[0]


def test_workers_that_begin_at_once_soon_have_equal_parts_of_the_whole_rate() -> None:
    workers = Workers(6)
    used = [workers.may_use(second * 1_000, 90_000) for second in range(40)]
    # the first leases all, and then gives way
    assert used[0] == 90_000
    assert used[30:] == [90_000] * 10
    assert min(used) >= 15_000


@given(st.integers(1, 30), st.lists(st.integers(1_000, 900_000), min_size=1, max_size=90))
def test_law_workers_together_never_use_more_than_the_rate(count: int, rates: list[int]) -> None:
    """Also while the rate changes from second to second."""
    workers = Workers(count)
    used = [workers.may_use(second * 1_000, rate) for second, rate in enumerate(rates)]
    assert all(0 <= each <= rate for each, rate in zip(used, rates, strict=True))


@pytest.mark.parametrize(
    ("planned", "said"),
    [
        (
            job(index="nope", dimension=Dimension.READ),
            "job nope.read=1900 at 2026-11-03T10:30 for 1700000 units: table table has no index "
            "'nope'; its indexes: none",
        ),
        (
            job(at=START + timedelta(hours=4)),
            "job write=1900 at 2026-11-03T14:00 for 1700000 units: does not begin within the traffic, from "
            "2026-11-03 10:00 to 2026-11-03 13:00 UTC",
        ),
    ],
)
def test_job_that_cannot_be_is_one_line(planned: PlannedJob, said: str) -> None:
    with pytest.raises(RehearsalError) as error:
        rehearse(SETUP, CALM, workload=Workload(jobs=[planned]))
    assert str(error.value).replace(SETUP.name, "table") == said
