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
        earliest = time.monotonic()
        begun = cloud.status().now
        latest = time.monotonic()
        while time.monotonic() < latest + 0.5:
            cloud.status()
        # each time is read at some moment of its request, which takes long on a busy machine
        least = time.monotonic() - latest
        ended = cloud.status().now
        most = time.monotonic() - earliest
        assert 600 * least - 1 <= (ended - begun).total_seconds() <= 600 * most + 1
        # and moves ahead from there
        moved = cloud.advance(timedelta(days=1)).now
        assert timedelta(days=1) <= moved - ended < timedelta(days=1, hours=1)


def test_speed_changes_without_a_jump_of_the_clock() -> None:
    with LocalCloud() as cloud:
        real = time.monotonic()
        before = cloud.status()
        faster = cloud.run_at(900)
        most = timedelta(seconds=900 * (time.monotonic() - real) + 1)
        assert (before.speed, faster.speed) == (1, 900)
        assert timedelta(0) <= faster.now - before.now < most
        later = cloud.run_at(1)
        assert later.now >= faster.now
        for speed in (0, 1_001):
            with pytest.raises(CloudError) as refused:
                cloud.run_at(speed)
            assert str(refused.value) == f"speed must be a whole number from 1 to 1000, got {speed}"
