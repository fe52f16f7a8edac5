"""A clock that runs faster than real time."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from highwater_lab.local import LocalCloud

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
