"""The log of custom resources, which CloudWatch has later than the deploy has ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from acceptance.parts.stack_order import _CallLog
from tests.acceptance.fake_place import FakePlace, resources, stage_of


@dataclass
class _Logs:
    """Lines, each from its own time on."""

    place: FakePlace
    lines: list[tuple[datetime, str]] = field(default_factory=list)

    def say(self, request: str, resource: str, *, seconds: int) -> None:
        text = f"INFO {json.dumps({'request': request, 'resource': resource})}"
        self.lines.append((self.place.at + timedelta(seconds=seconds), text))

    def get_paginator(self, _: str) -> _Logs:
        return self

    def paginate(self, **_: Any) -> list[dict[str, Any]]:
        there = [text for at, text in self.lines if at <= self.place.at]
        return [{"events": [{"timestamp": number, "message": text} for number, text in enumerate(there)]}]


def test_late_lines_count_for_the_step_that_made_them(tmp_path: Path) -> None:
    place = FakePlace({"cloudformation": resources(Logs_LogGroup="calls")})
    logs = place.clients["logs"] = _Logs(place)
    for seconds in (40, 50):
        logs.say("Create", "OrdersFloors", seconds=seconds)
    log = _CallLog(stage_of(place, tmp_path))
    logs.say("Update", "OrdersFloors", seconds=30)
    logs.say("Delete", "OrdersFloors", seconds=90)
    assert log.new("Update Floors", "Delete Floors") == "Update Floors, Delete Floors"
    began = place.at
    assert log.new("Delete Floors") == "none"
    assert timedelta(minutes=2) <= place.at - began <= timedelta(minutes=3)
