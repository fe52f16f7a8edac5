"""Decisions as they are named, logged and explained."""

from __future__ import annotations

from dataclasses import replace

from highwater.core import Dimension
from highwater.core.scaler import Decision, Limit, LimitCode
from highwater.core.scaler.decision import decision_document

DECISION = Decision(
    index="by-day",
    dimension=Dimension.READ,
    current=40,
    wanted=90,
    granted=70,
    limits=(Limit(LimitCode.CEILING, 90, 80, "the plan's ceiling"), Limit(LimitCode.QUOTA, 80, 70, "the quota")),
    reason="peak of 90 units/s",
    has_hot_key=True,
    lowered_to=60,
)


def test_decision_is_named_by_index_and_dimension() -> None:
    assert (DECISION.key, DECISION.label) == (("by-day", Dimension.READ), "index 'by-day' read")
    of_table = replace(DECISION, index=None, dimension=Dimension.WRITE)
    assert (of_table.key, of_table.label) == ((None, Dimension.WRITE), "table write")


def test_decision_that_grants_the_current_value_changes_nothing() -> None:
    assert DECISION.changes
    assert not replace(DECISION, granted=40).changes


def test_decision_is_limited_by_the_stages_that_changed_it() -> None:
    assert DECISION.limited_by(LimitCode.QUOTA)
    assert not DECISION.limited_by(LimitCode.BASELINE)


def test_document_of_a_decision_holds_all_its_values() -> None:
    document = decision_document(DECISION)
    assert document == {
        "current": 40,
        "wanted": 90,
        "granted": 70,
        "lowered_to": 60,
        "reason": "peak of 90 units/s",
        "limits": [
            {"code": "ceiling", "before": 90, "after": 80, "sentence": "the plan's ceiling"},
            {"code": "quota", "before": 80, "after": 70, "sentence": "the quota"},
        ],
        "hot_key": True,
    }
    assert type(document["limits"][0]["code"]) is str, "a value that JSON has"
