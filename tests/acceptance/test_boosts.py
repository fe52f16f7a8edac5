"""The part that boosts: whether it sees that a lease's schedule stays too long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acceptance.parts.boosts import _schedules, _see_schedule_go
from acceptance.record import Check
from tests.acceptance.fake_place import FakePlace, Paginator, resources, stage_of

GROUP = "HwAccept20310304050607SideBySide-Boosts-Wakes-54D9860B"


@dataclass
class _Scheduler:
    """Has one schedule in the stack's group until a time."""

    place: FakePlace
    gone_at: datetime

    def get_paginator(self, operation: str) -> _Scheduler:
        assert operation == "list_schedules"
        return self

    def paginate(self, **asked: Any) -> list[dict[str, Any]]:
        assert asked == {"GroupName": GROUP}
        there = [{"Name": "0f1e", "GroupName": GROUP}] if self.place.at < self.gone_at else []
        return Paginator([{"Schedules": there}]).paginate()


@pytest.mark.parametrize(("late", "took"), [(0, 0), (60, 60), (3_600, None)], ids=["at-once", "a-minute", "stays"])
def test_schedule_is_looked_for_in_the_stacks_group_until_it_is_gone(
    tmp_path: Path, late: int, took: int | None
) -> None:
    place = FakePlace({"cloudformation": resources(Scheduler_ScheduleGroup=GROUP, Logs_LogGroup="other")})
    end = place.at + timedelta(minutes=18)
    place.clients["scheduler"] = _Scheduler(place, end + timedelta(seconds=late))
    stage = stage_of(place, tmp_path)
    assert _schedules(stage) == ["0f1e"]
    _see_schedule_go(stage, end)
    assert stage.record.checks == [
        Check(
            "any",
            "the schedule of a lease that has ended deletes itself",
            "within 5 minutes of its end",
            str(took),
            holds=took is not None,
        )
    ]
