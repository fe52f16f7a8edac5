"""The part that uses up a day's decreases, begun shortly before midnight."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from acceptance.costs import longest
from acceptance.parts.decreases import DECREASES
from highwater.core.limits import FREE_DECREASES_PER_DAY
from tests.acceptance.fake_place import FakePlace, stage_of


class _Dynamo:
    """A table that accepts the decreases of a day."""

    class exceptions:
        """As boto3 has it."""

        class LimitExceededException(Exception):
            """No more decreases today."""

            response: ClassVar[Any] = {"Error": {"Message": "no more today"}}

    def __init__(self) -> None:
        self.accepted = 0

    def create_table(self, **_: Any) -> None:
        pass

    def describe_table(self, **_: Any) -> dict[str, Any]:
        return {"Table": {"TableStatus": "ACTIVE"}}

    def update_table(self, **_: Any) -> None:
        if self.accepted == FREE_DECREASES_PER_DAY:
            raise self.exceptions.LimitExceededException
        self.accepted += 1


def test_waiting_for_a_new_day_does_not_use_up_the_parts_time(tmp_path: Path) -> None:
    place = FakePlace({"dynamodb": _Dynamo()}, at=datetime(2031, 3, 4, 23, 50, tzinfo=UTC))
    stage = stage_of(place, tmp_path)
    stage.deadline = place.at + longest(DECREASES.minutes)
    DECREASES.run(stage)
    assert place.at == datetime(2031, 3, 5, 0, 1, tzinfo=UTC)
    assert stage.deadline == place.at + longest(DECREASES.minutes)
    assert [check.holds for check in stage.record.checks] == [True]
    assert longest(DECREASES.minutes) < timedelta(minutes=11)
