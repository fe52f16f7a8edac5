"""The files through which a boost's request passes, from the job until its leases are written."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import boto3

import highwater
from highwater.core import Window
from highwater.core.plan.plan import IndexCapacity
from highwater.handlers.coordinator.handler import read_request
from tests.client.scripted import listening
from tests.handlers.boost_world import PLAN, World
from tests.handlers.test_boost_calls import request_of

PACKAGE = Path(highwater.__file__).parent
# with all that a plan may ask for and CloudWatch may be asked for
PLAN_WITH_ALL = replace(
    PLAN,
    windows=(Window.daily("load", start="03:00", end="04:10", timezone="Europe/Berlin", write_min=70),),
    indexes=(IndexCapacity(index_name="by_day"),),
)


@dataclass
class Way:
    """The files of the package that are handed a request, by its id, or what has become of it.

    Attributes:
        id: The boost's id, which its request and its leases have.
        is_over: Whether the leases are being written.
        files: The files with a function that got the id in one of its arguments.
    """

    id: str
    is_over: bool = False
    files: set[str] = field(default_factory=set)

    def look(self, frame: FrameType, event: str, _: Any) -> None:
        """Note the file of a function that is called; for `sys.setprofile`."""
        file = Path(frame.f_code.co_filename)
        if event != "call" or self.is_over or not file.is_relative_to(PACKAGE):
            return
        given = inspect.getargvalues(frame)
        for name in [*given.args, *filter(None, (given.varargs, given.keywords))]:
            # an object that is being made has no attributes to show yet
            with suppress(AttributeError):
                if self.id in repr(given.locals[name]):
                    self.files.add(str(file.relative_to(PACKAGE)))

    def write(self, operation: str) -> None:
        """End the way with the first update, which writes the leases."""
        self.is_over = self.is_over or operation == "update_item"


def test_request_passes_eleven_files_until_its_leases_are_written() -> None:
    world = World(plan=PLAN_WITH_ALL)
    way = Way("")

    def serve(body: bytes, _: Mapping[str, str]) -> tuple[int, bytes]:
        sys.setprofile(way.look)
        try:
            answer = world.coordinator().serve(read_request(request_of(body.decode())))
        finally:
            sys.setprofile(None)
        return 200, json.dumps(answer).encode()

    session = boto3.Session(aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="x", region_name="eu-central-1")
    with listening(serve) as url:
        at = world.stage.now() + timedelta(hours=3)
        boost = highwater.boost("orders", write=100, minutes=30, at=at, coordinator=f"{url}/", session=session)
        way.id, world.dynamodb.before = boost.id, way.write
        sys.setprofile(way.look)
        try:
            outcome = boost.begin().outcome
        finally:
            sys.setprofile(None)
    assert (outcome, way.is_over) == ("whole", True)
    assert sorted(way.files) == [
        "aws/coordinator_table.py",
        "calls/records.py",
        "client/boost.py",
        "client/coordinator.py",
        "core/boosts/lease.py",
        "core/boosts/request.py",
        "core/codec.py",
        "core/documents.py",
        "handlers/coordinator/coordinator.py",
        "handlers/coordinator/handler.py",
        "handlers/coordinator/state.py",
    ]
