"""Serving events of a mark's custom resource to their very end: through every continuation."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from highwater.core.units import Units
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy import marks
from highwater.handlers.deploy.response import EventOutcome, failure
from highwater.handlers.deploy.waiting import Patience
from tests.memory_aws.bench import Bench
from tests.memory_aws.deploys import custom_resource_event

HOUR = timedelta(hours=1, seconds=5)
Wanted = dict[str | None, Units]


class KilledError(BaseException):
    """The process ended where it stood."""


def marks_event(request: str, table: str, wanted: Wanted, old: Wanted | None = None) -> dict[str, Any]:
    """An event as CloudFormation sends it."""
    before = None if old is None else _properties(table, old)
    properties = _properties(table, wanted)
    return custom_resource_event(deployment.MARKS_TYPE, request, properties, before, "Marks")


def _properties(table: str, wanted: Wanted) -> dict[str, str]:
    listed = [{"index": index, "read": units.read, "write": units.write} for index, units in wanted.items()]
    return {"ServiceToken": "arn", "TableName": table, "Marks": json.dumps(listed)}


@dataclass
class Serving:
    """Invokes as Lambda does: an invocation has so many seconds, each pause takes some, and some call the next.

    Attributes:
        seconds: How long an invocation has.
        between: How far the cloud's clock goes on from one invocation to the next.
        time_is_up_at: The pause, over all invocations, before which time is up all of a sudden; `None` for none.
    """

    bench: Bench
    seconds: float = 60.0
    between: timedelta = HOUR
    time_is_up_at: int | None = None
    pauses: int = 0
    invocations: int = 0
    answers: list[EventOutcome] = field(default_factory=list)
    _left: float = 0.0

    def serve(self, event: dict[str, Any], most: int = 12) -> EventOutcome:
        """Serve the event and its continuations, and return CloudFormation's one answer."""
        self.answers = []
        waiting = [event]
        first = True
        while waiting:
            assert self.invocations < most, "it goes on for ever"
            if not first and self.between:
                self.bench.advance(self.between)
            first = False
            current = json.loads(json.dumps(waiting.pop(0)))
            self.invocations += 1
            self._left = self.seconds
            try:
                patience = Patience(self._remaining, self._sleep)
                outcome = marks.serve(current, self.bench.wired_dynamodb, patience, waiting.append)
            except Exception as error:  # the handler answers for any
                outcome = failure(str(error) or type(error).__name__)
            if outcome is not None and not current.get("HighwaterAnswered"):
                self.answers.append(outcome)
        self.invocations = 0
        assert len(self.answers) == 1, "CloudFormation waits for one answer and takes no second"
        return self.answers[0]

    def _remaining(self) -> float:
        self.pauses += 1
        if self.pauses == self.time_is_up_at:
            self._left = 0.0
        return self._left

    def _sleep(self, seconds: float) -> None:
        self._left -= seconds
        self.bench.advance(timedelta(seconds=seconds))
