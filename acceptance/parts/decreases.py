"""The decreases of a day: how many a table accepts, and how DynamoDB refuses the next."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from acceptance.bare_table import make_bare_table
from acceptance.parts.part import Part
from acceptance.stage import Stage
from highwater.core.limits import FREE_DECREASES_PER_DAY

_MINUTE: Final = timedelta(minutes=1)
_START: Final = 12
_MOST_TRIES: Final = 8
# Some minutes before midnight a new day's decreases would be counted with the old
_DAYS_END: Final = timedelta(minutes=15)


def _run(stage: Stage) -> None:
    now = stage.now()
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    if midnight - now < _DAYS_END:
        stage.wait_before_the_part(midnight + _MINUTE, "a new day in UTC")
    table = make_bare_table(stage, "decreases", units=(1, _START))
    dynamodb = stage.place.client("dynamodb")
    accepted, refusal = 0, ""
    for units in range(_START - 1, _START - 1 - _MOST_TRIES, -1):
        try:
            dynamodb.update_table(
                TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": units}
            )
        except dynamodb.exceptions.LimitExceededException as refused:
            refusal = str(refused.response["Error"]["Message"])
            break
        accepted += 1
        stage.seconds_until(lambda: _is_active(dynamodb, table), 5 * _MINUTE, f"{units} units")
    stage.check("decreases that a table accepts at once", FREE_DECREASES_PER_DAY, accepted)
    stage.measure(
        "decreases_at_once",
        accepted,
        question="decreases in a row that a new table accepts:",
        assumed=str(FREE_DECREASES_PER_DAY),
    )
    stage.measure(
        "decrease_refusal", refusal, question="DynamoDB refuses the next one with:", assumed="LimitExceededException"
    )


def _is_active(dynamodb: Any, table: str) -> bool:
    return str(dynamodb.describe_table(TableName=table)["Table"]["TableStatus"]) == "ACTIVE"


DECREASES: Final = Part(name="decreases", title="the decreases of a day", minutes=4, bare_units=_START + 1, run=_run)
