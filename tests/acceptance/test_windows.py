"""The log of custom resources, which CloudWatch has later than the deploy has ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from acceptance.parts.windows import _calls
from tests.acceptance.fake_place import FakePlace, resources, stage_of


@dataclass
class _Logs:
    """Lines, each logged at one time and shown from a later one on."""

    place: FakePlace
    lines: list[tuple[int, datetime, str]] = field(default_factory=list)

    def say(self, request: str, resource: str, *, late: int) -> None:
        text = f"INFO {json.dumps({'request': request, 'resource': resource})}"
        self.lines.append((_milliseconds(self.place.at), self.place.at + timedelta(seconds=late), text))

    def get_paginator(self, operation: str) -> _Logs:
        assert operation == "filter_log_events"
        return self

    def paginate(self, logGroupName: str, startTime: int) -> list[dict[str, Any]]:
        assert logGroupName == "calls"
        there = [(at, text) for at, shown, text in self.lines if at >= startTime and shown <= self.place.at]
        return [{"events": [{"timestamp": at, "message": text} for at, text in there]}]


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def test_late_lines_count_for_the_step_that_made_them(tmp_path: Path) -> None:
    place = FakePlace({"cloudformation": resources(Logs_LogGroup="calls")})
    logs = place.clients["logs"] = _Logs(place)
    stage = stage_of(place, tmp_path)
    logs.say("Create", "OrdersFloors0123", late=100)
    place.let_pass(timedelta(minutes=1))
    began = place.at
    for request, resource, late in (
        ("Update", "OrdersAftermath0123", 60),
        ("Update", "OrdersFloors0123", 30),
        ("Delete", "LeavingFloors4567", 90),
    ):
        place.let_pass(timedelta(seconds=1))
        logs.say(request, resource, late=late)
    assert _calls(stage, began, "Update Floors", "Delete Floors") == "Update Aftermath, Update Floors, Delete Floors"


def test_calls_that_never_come_are_waited_for_two_minutes(tmp_path: Path) -> None:
    place = FakePlace({"cloudformation": resources(Logs_LogGroup="calls")})
    place.clients["logs"] = _Logs(place)
    began = place.at
    assert _calls(stage_of(place, tmp_path), began, "Delete Floors") == "none"
    assert timedelta(minutes=2) <= place.at - began <= timedelta(minutes=3)
