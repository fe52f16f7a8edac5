"""Which segments of a job are free, and how far a job is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from highwater.budgets.shares import SKEW_MS
from highwater.jobs.segments import JobProgress, JobSegment, free_segments, next_free_ms, progress_of

NOW = 1_805_000_000_000


def _progress(*begun: JobSegment, count: int = 8, expected_items: int = 0, is_stopped: bool = False) -> JobProgress:
    return progress_of(
        "backfill",
        {each.number: each for each in begun},
        count=count,
        expected_items=expected_items,
        is_stopped=is_stopped,
        now=NOW,
    )


def test_segment_is_free_before_it_is_taken_after_its_lease_and_when_it_was_given_back() -> None:
    leased = JobSegment(3, "a", until=NOW + 60_000)
    begun = {
        0: JobSegment(0, "a", until=NOW + 60_000, is_done=True),
        1: JobSegment(1, "b", until=NOW - SKEW_MS),
        2: JobSegment(2, "c", until=NOW - SKEW_MS + 1),
        3: leased,
        4: replace(leased, number=4, until=0),
    }
    assert free_segments(begun, 6, NOW) == [1, 4, 5]
    assert next_free_ms(begun, NOW) == 1
    assert free_segments(begun, 6, NOW + 1) == [1, 2, 4, 5]
    assert next_free_ms({3: leased}, NOW) == 60_000 + SKEW_MS
    assert next_free_ms({}, NOW) == 0


SEGMENTS = st.dictionaries(
    st.integers(0, 19),
    st.builds(
        JobSegment,
        number=st.just(0),
        owner=st.sampled_from("abc"),
        until=st.integers(NOW - 10_000, NOW + 10_000),
        is_done=st.booleans(),
        items=st.integers(0, 50),
        scanned=st.integers(0, 99),
        units=st.floats(0, 100),
        worked_ms=st.integers(0, 10**6),
    ),
)


@given(SEGMENTS, st.integers(0, 20_000))
def test_each_segment_is_done_free_or_leased_and_frees_itself_in_time(
    begun: dict[int, JobSegment], later_ms: int
) -> None:
    begun = {number: replace(each, number=number) for number, each in begun.items()}
    progress = progress_of("backfill", begun, count=20, expected_items=700, is_stopped=False, now=NOW)
    free = free_segments(begun, 20, NOW)
    assert progress.segments_done + progress.workers + len(free) == 20
    assert set(free) <= set(free_segments(begun, 20, NOW + later_ms))
    # nobody looks too early, and who looks then finds one
    wait = next_free_ms(begun, NOW)
    if wait:
        assert len(free_segments(begun, 20, NOW + wait - 1)) == len(free)
        assert len(free_segments(begun, 20, NOW + wait)) > len(free)
    if progress.skew is not None:
        assert 1 <= progress.skew <= len(begun)
    assert progress.seconds_left is None or progress.seconds_left >= 0


def test_job_waits_runs_is_stopped_and_is_done() -> None:
    live = JobSegment(1, "a", until=NOW + 30_000)
    done = JobSegment(0, "a", until=NOW + 30_000, is_done=True)
    assert _progress().state == "waiting"
    assert _progress(live).state == "running"
    assert _progress(done).state == "waiting"
    assert _progress(live, is_stopped=True).state == "stopped"
    assert _progress(done, count=1, is_stopped=True).state == "done"


def test_rest_is_estimated_from_the_segments_that_are_done_at_the_rate_of_those_at_work() -> None:
    done = [
        JobSegment(number, "a", is_done=True, items=80, scanned=100, units=7.5, worked_ms=9_000) for number in (0, 1)
    ]
    live = [JobSegment(number, "b", until=NOW + 9, items=20, scanned=40, worked_ms=4_000) for number in (2, 3)]
    gone = JobSegment(4, "c", until=0, scanned=150, worked_ms=30_000)
    assert _progress(*done, *live, gone) == JobProgress(
        id="backfill",
        state="running",
        segments=8,
        segments_done=2,
        workers=2,
        items=200,
        scanned=430,
        units=15.0,
        # twice 40 items in 4 s
        scanned_per_second=20.0,
        # 60 of each that is at work, none of the one that has more than the mean, and three whole ones
        seconds_left=(60 + 60 + 0 + 300) // 20,
        # 30 s beside a mean of 56 s / 5
        skew=2.68,
        slowest=4,
    )


def test_rest_is_estimated_from_dynamodbs_count_before_a_segment_is_done() -> None:
    live = JobSegment(5, "b", until=NOW + 9, scanned=40, worked_ms=8_000)
    assert _progress(live, expected_items=800).seconds_left == (800 - 40) // 5
    assert _progress(live).seconds_left is None
    assert _progress(replace(live, until=0), expected_items=800).seconds_left is None
    assert _progress(JobSegment(0, is_done=True), count=1).seconds_left == 0
