"""The part that starts a job slowly, as the lab sees it."""

from __future__ import annotations

from acceptance.parts.slow_start import _ANSWERED_WITHIN, _CEILING, _RATE, _TARGET_PERCENT, _USERS, _WITHIN, _simulated


def test_promises_of_the_part_hold_in_the_lab() -> None:
    found = _simulated()
    assert (found.throttled_units, found.others_throttled_units) == (0, 0)
    assert found.full_at is not None
    # more than auto scaling's first answer, as the rate needs several raises
    assert _ANSWERED_WITHIN.total_seconds() < found.full_at - found.start < _WITHIN * 60


def test_ceiling_leaves_target_tracking_its_room() -> None:
    assert (_USERS + _RATE) * 100 / _TARGET_PERCENT < _CEILING
