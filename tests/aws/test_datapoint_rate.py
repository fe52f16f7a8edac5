"""The rate of CloudWatch's datapoints: calls are spaced, and the first one never waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from highwater.aws.cloudwatch import DatapointRate, metrics_per_call


@dataclass
class _Clock:
    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


def test_calls_wait_until_those_before_have_had_their_time() -> None:
    clock = _Clock()
    rate = DatapointRate(lambda: clock.now, clock.sleep)
    for datapoints in (100_800, 100_800, 330_000, 480):
        rate.wait_for(datapoints)
        clock.now += 0.1
    assert clock.slept == [0.205, 0.205, 0.9]


def test_calls_that_come_slowly_never_wait() -> None:
    clock = _Clock()
    rate = DatapointRate(lambda: clock.now, clock.sleep)
    for _ in range(5):
        rate.wait_for(330_000)
        clock.now += 1.0
    assert clock.slept == []


def test_call_has_no_more_metrics_than_its_page_has_room_for() -> None:
    """A day and an hour of minutes, eight hours, a quarter of an hour, one minute."""
    assert [metrics_per_call(minutes) for minutes in (1_500, 480, 15, 1)] == [67, 210, 500, 500]
