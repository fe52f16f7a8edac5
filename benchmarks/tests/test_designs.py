"""The article's eight designs with a job that is paced (docs/eight-designs.md)."""

from __future__ import annotations

import pytest

from benchmarks.designs import DESIGNS, PAGE, UNITS, USERS, rows
from highwater.core import Dimension
from highwater_lab.simulation import JobRun, Run

SEEDS = (1, 7, 23)


def _rehearsed(number: int, seed: int = 1) -> tuple[Run, JobRun]:
    run = DESIGNS[number].run(seed=seed)
    (job,) = run.jobs
    assert job.units >= UNITS
    return run, job


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("number", range(2, 8))
def test_six_designs_throttle_nobody(number: int, seed: int) -> None:
    run, job = _rehearsed(number, seed)
    assert (run.throttled_units, job.throttled_units, job.others_throttled_units) == (0, 0, 0)
    assert job.end is not None


@pytest.mark.parametrize("seed", SEEDS)
def test_job_that_is_not_told_to_wait_hurts_users(seed: int) -> None:
    run, job = _rehearsed(1, seed)
    assert job.others_throttled_units > 60 * USERS / 4
    assert job.throttled_units > job.others_throttled_units
    assert run.throttled_units == pytest.approx(job.throttled_units + job.others_throttled_units)


@pytest.mark.parametrize("seed", SEEDS)
def test_self_throttled_job_needs_the_least_capacity_as_in_figure_5(seed: int) -> None:
    run, job = _rehearsed(4, seed)
    assert 19_700 <= max(units for _, units in run.target(Dimension.WRITE).capacity) <= 20_400
    assert job.end is not None
    assert job.end - job.start == pytest.approx(UNITS / 9_500, abs=15)


@pytest.mark.parametrize("seed", SEEDS)
def test_slow_start_is_at_its_rate_within_eleven_minutes_as_in_figure_6(seed: int) -> None:
    run, job = _rehearsed(5, seed)
    assert job.full_at is not None
    assert 5 * 60 <= job.full_at - job.start <= 12 * 60
    consumed = run.target(Dimension.WRITE).consumed
    first = consumed[31] / 3_600
    assert 8_300 <= first <= 9_000, "the article's first step is to 9,000"


@pytest.mark.parametrize("seed", SEEDS)
def test_boosted_job_is_at_its_rate_at_once_as_in_figure_7(seed: int) -> None:
    run, job = _rehearsed(7, seed)
    assert job.full_at == job.start
    assert job.end is not None
    assert job.end - job.start == 20 * 60
    assert list(run.target(Dimension.WRITE).capacity_by_minute())[29] >= 18_000


def test_job_that_may_be_throttled_uses_all_that_is_there() -> None:
    run, job = _rehearsed(8)
    assert job.end is not None
    assert job.throttled_units > 1_000_000
    # a full bucket of 300 s, and ten thousand a second
    assert job.end - job.start == pytest.approx((UNITS - 300 * 10_000) / 10_000, abs=20)
    assert run.bill.provisioned == min(DESIGNS[number].run().bill.provisioned for number in (1, 2, 4, 5, 6, 7, 8))


def test_page_has_what_a_run_gives() -> None:
    page = PAGE.read_text()
    for row in rows({number: design.run() for number, design in DESIGNS.items()}):
        assert row in page, "the page is made by `make benchmark NAME=designs`"
