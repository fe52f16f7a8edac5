"""Plans and events that the scaler is given: unreadable ones, many that are cached, tables that tags choose."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from highwater.core import Bounds, Dimension
from highwater.core.names import TargetName
from highwater.core.scaler.metrics import ScalerMetric
from highwater.handlers.scaler.event import ScalerEvent
from highwater.handlers.scaler.run import Options, PlanCache
from tests.memory_aws.stage import MINUTE, NOW, PLAN, Stage
from tests.memory_aws.wire import Call, each, refusal

DENIED = refusal("AccessDeniedException", "not authorized")
PLANNED = Bounds(12, 400)
BY_HAND = Bounds(2, 400)


def _stored(released: bool = False, **changes: Any) -> str:
    return json.dumps({"mode": "floor", "plan": PLAN.to_document() | changes, "released": released})


def _with_window(**changes: Any) -> str:
    window = {"name": "w", "start": "01:00", "end": "02:00", "timezone": "UTC", "days": "MON", "lead_minutes": 5}
    return _stored(windows=[window | {"write_min": 9} | changes])


POISONED = {
    "mode": '{"mode": "sideways"}',
    "list": json.dumps({"mode": "floor", "plan": []}),
    "no-object": "7",
    "deep": f'{{"mode": "floor", "plan": {"[" * 2_000}',
    "infinite-lead": _with_window(lead_minutes=math.inf),
    "infinite-floor": _stored(read={"min": math.inf, "max": 8}),
    "unknown-zone": _with_window(timezone="Mars/Base"),
    "unknown-day": _with_window(days="SOMEDAY"),
    "days-of-numbers": _with_window(days=7),
    "windows-of-text": _stored(windows="none"),
    "capacity-of-text": _stored(read="many"),
    "index-of-a-list": _stored(indexes=[{"name": []}]),
}


@pytest.mark.parametrize("poisoned", POISONED.values(), ids=list(POISONED))
@pytest.mark.parametrize("kind", ["tick", "tables"])
def test_one_bad_plan_fails_alone_and_is_counted(stage: Stage, orders: TargetName, kind: str, poisoned: str) -> None:
    """19: no plan, whatever is in it, stops the scaler for the others."""
    stage.table("broken")
    stage.store("broken", poisoned)
    # the next minutes in which the good table, and the bad one, are due
    for _ in range(5):
        answer = stage.serve({"highwater": kind})
        assert answer.failed == {}
        assert answer.counts[ScalerMetric.UNREADABLE_PLANS] == 1, answer.notes
        assert any("broken" in note for note in answer.notes)
        stage.advance(MINUTE)
    assert stage.bounds(orders) == PLANNED


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({}, "event must be an alarm or say highwater: tick or tables, got {}"),
        ({"highwater": "tick", "time": "noon"}, "time must be an instant such as 2027-03-04T05:06:07Z, got 'noon'"),
        ({"highwater": "tick", "time": "2027-03-04T05:06:07"}, "time must have a zone, got '2027-03-04T05:06:07'"),
        (["tick"], "event must be a JSON object, got ['tick']"),
        (
            {"highwater": "tick", "time": "9999-12-31T23:00:00-09:00"},
            "time must be within the calendar in UTC, got '9999-12-31T23:00:00-09:00'",
        ),
        (
            {
                "source": "aws.cloudwatch",
                "alarmArn": 7,
                "alarmData": {"configuration": {"metrics": [{"metricStat": 1}]}},
            },
            "alarm 7 is on no consumption of a table or index",
        ),
        ({"highwater": "tables", "tables": "orders"}, "tables must be a list of names, got 'orders'"),
        ({"highwater": "tables", "attempt": "1"}, "attempt must be a whole number, got '1'"),
        (
            {"source": "aws.cloudwatch", "alarmArn": "arn:of-another"},
            "alarm 'arn:of-another' is on no consumption of a table or index",
        ),
    ],
)
def test_event_that_is_none_is_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole message is below
        ScalerEvent.read(event)
    assert str(refused.value) == message


def test_many_plans_are_kept_for_five_minutes_and_few_never(stage: Stage) -> None:
    home, cache = stage.region_of(None), PlanCache(most_read_always=0)

    def read(cache: PlanCache, at: Any) -> list[str]:
        return [plan.table for plan in cache.read(home, "scaler", at).plans]

    stage.table("first")
    assert read(cache, NOW) == ["first"]
    stage.table("second")
    assert read(cache, NOW + 4 * MINUTE) == ["first"]
    assert read(cache, NOW + 5 * MINUTE) == ["first", "second"]
    stage.table("third")
    assert len(read(cache, NOW)) == 3, "an event from before"
    stage.table("fourth")
    assert len(read(cache, None)) == 4, "a call by hand"
    always = PlanCache()
    assert len(read(always, NOW)) == 4
    stage.table("fifth")
    assert len(read(always, NOW)) == 5


# Tables that tags choose

_TAGGED = Options(name="a", function="my-scaler", sees_tags=True)
# the minute of scaler "a", whose name is the byte 97
_OF_OTHERS = 23


def test_tables_found_by_tag_are_scaled_with_their_indexes(stage: Stage) -> None:
    tags = {"read-min": "7", "read-max": "900", "write-min": "21", "write-max": "500", "managed": "floor"}
    tagged, plain, wrong = (stage.table(name, plan=None) for name in ("tagged", "plain", "wrong"))
    by_day = replace(tagged, index="by-day")
    resources = stage.account.tables["tagged"].resources
    resources["by-day"] = type(resources[None])({Dimension.READ: 3, Dimension.WRITE: 4})
    for table, changed in (("tagged", {}), ("wrong", {"write-max": "20"})):
        stage.account.tables[table].tags = {f"highwater:{key}": value for key, value in (tags | changed).items()}
    for name in (tagged, plain, wrong, by_day):
        stage.register(name, 2, 400)
    answer = stage.serve({"highwater": "tables", "tables": ["tagged", "plain", "wrong"]}, options=_TAGGED)
    found = [stage.bounds(name) for name in (tagged, by_day, plain, wrong)]
    assert found == [Bounds(21, 500), Bounds(21, 500), BY_HAND, BY_HAND]
    assert answer.counts[ScalerMetric.UNREADABLE_PLANS] == 1


def _asks_for_others(stage: Stage, kind: str = "tick", options: Options = _TAGGED) -> bool:
    stage.wire.reset()
    stage.serve({"highwater": kind, "tables": [] if kind == "tick" else ["orders"]}, options=options)
    return ["lambda:function"] in [body["ResourceTypeFilters"] for body in stage.wire.bodies("GetResources")]


def test_other_scalers_of_tagged_tables_are_asked_for_once_an_hour(stage: Stage) -> None:
    """For each minute of an hour it would be one more call in each region."""
    asked = []
    for _ in range(60):
        if _asks_for_others(stage):
            asked.append(stage.now().minute)
        stage.advance(MINUTE)
    assert asked == [_OF_OTHERS]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("tables", _TAGGED),
        ("tick", replace(_TAGGED, sees_tags=False)),
        ("tick", replace(_TAGGED, function="")),
        ("tick", replace(_TAGGED, dry_run=True)),
    ],
    ids=["tables", "scaler-without-tags", "unknown-function", "dry-run"],
)
def test_other_scalers_of_tagged_tables_are_not_asked_for(stage: Stage, kind: str, options: Options) -> None:
    stage.wait_for_minute(_OF_OTHERS)
    assert not _asks_for_others(stage, kind, options)


def test_tables_are_scaled_where_other_scalers_cannot_be_read(stage: Stage) -> None:
    def refuse(call: Call) -> Any:
        return DENIED(call) if call.body["ResourceTypeFilters"] == ["lambda:function"] else None

    stage.wait_for_minute(_OF_OTHERS)
    stage.wire.fault = each(refuse, "GetResources")
    outcome = stage.serve({"highwater": "tick"}, options=_TAGGED)
    assert outcome.notes == [
        "other scalers of tagged tables in the scaler's region could not be read: ClientError: An error occurred "
        "(AccessDeniedException) when calling the GetResources operation: not authorized"
    ]
    assert outcome.failed == {}


def test_table_that_has_left_the_scaler_is_let_alone(stage: Stage, orders: TargetName, jobs: TargetName) -> None:
    """18: its plan is still there until CloudFormation cleans up."""
    stage.store("orders", _stored(released=True))
    stage.run("orders", "jobs")
    assert (stage.bounds(orders), stage.bounds(jobs)) == (BY_HAND, PLANNED)
