"""A clock that runs faster than real time."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from highwater_lab.local import LocalCloud
from highwater_lab.local.control import CloudError

pytestmark = pytest.mark.xdist_group("cloud")


def test_clock_runs_as_many_times_faster_as_asked_for() -> None:
    with LocalCloud(speed=600) as cloud:
        begun, real = cloud.status().now, time.monotonic()
        while time.monotonic() < real + 0.5:
            cloud.status()
        ended, passed = cloud.status().now, time.monotonic() - real
        assert ended - begun == pytest.approx(timedelta(seconds=600 * passed), abs=timedelta(seconds=60))
        # and moves ahead from there
        moved = cloud.advance(timedelta(days=1)).now
        assert timedelta(days=1) <= moved - ended < timedelta(days=1, hours=1)


def test_speed_changes_without_a_jump_of_the_clock() -> None:
    with LocalCloud() as cloud:
        before = cloud.status()
        faster = cloud.run_at(900)
        assert (before.speed, faster.speed) == (1, 900)
        assert timedelta(0) <= faster.now - before.now < timedelta(minutes=1)
        later = cloud.run_at(1)
        assert later.now >= faster.now
        for speed in (0, 1_001):
            with pytest.raises(CloudError) as refused:
                cloud.run_at(speed)
            assert str(refused.value) == f"speed must be a whole number from 1 to 1000, got {speed}"
