"""The plan: the targets that follow from it, and its document."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan, Window
from tests.core.examples import examples
from tests.core.plans_to_check import READ, WRITE

LOAD = Window.weekly("load", days="MON-FRI", start="05:00", end="06:00", timezone="Europe/Berlin", write_min=44)
SALE = Window.once("sale", start="2027-11-26T00:00", end="2027-11-27T00:00", timezone="UTC", read_min=55, read_max=130)

maybe = st.none() | st.integers(1, 40_000)
names = st.text(min_size=1, max_size=8)
cooldowns = st.integers(0, 3_600).map(lambda seconds: timedelta(seconds=seconds))
capacities: SearchStrategy[Capacity] = st.builds(Capacity.fixed, st.integers(1, 40_000)) | st.builds(
    Capacity.autoscaled,
    min_capacity=st.integers(1, 40_000),
    max_capacity=st.integers(1, 40_000),
    target_utilization_percent=st.integers(20, 90),
    scale_in_cooldown=cooldowns,
    scale_out_cooldown=cooldowns,
    disable_scale_in=st.booleans(),
)
windows: SearchStrategy[Window] = st.builds(
    Window,
    name=names,
    days=st.sampled_from([None, "MON-FRI", "SAT", "sun,TUE"]),
    start=st.sampled_from(["05:00", "2027-11-26T05:00"]),
    end=st.sampled_from(["24:00", "2027-11-27T05:00"]),
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
    read_min=maybe,
    write_min=maybe,
    read_max=maybe,
    write_max=maybe,
    lead=st.integers(0, 1440).map(lambda minutes: timedelta(minutes=minutes)),
)
window_lists = st.lists(windows, max_size=3).map(tuple)
marks = st.sampled_from([HighWaterMark.to_windows(), HighWaterMark.to_ceiling(), HighWaterMark.none()]) | st.builds(
    HighWaterMark.units, read=maybe, write=maybe
)

plans: SearchStrategy[Plan] = st.builds(
    Plan,
    read=capacities,
    write=capacities,
    windows=window_lists,
    indexes=st.lists(
        st.builds(
            IndexCapacity,
            index_name=names,
            read=st.none() | capacities,
            write=st.none() | capacities,
            windows=st.none() | window_lists,
        ),
        max_size=2,
    ).map(tuple),
    mark=marks,
    table_quota_units=st.integers(1, 10**6),
)


def test_managed_plan_leaves_out_indexes_that_are_left_to_themselves() -> None:
    kept, left = (IndexCapacity(index_name=name, is_managed=name == "by_day") for name in ("by_day", "by_week"))
    declared = Plan(read=READ, write=WRITE, windows=(LOAD,), indexes=(left, kept))
    assert declared.managed() == replace(declared, indexes=(kept,))


@settings(max_examples=examples(150))
@given(plans)
def test_plan_read_back_from_its_json_is_the_plan(plan: Plan) -> None:
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert again == Plan.from_document(json.loads(plan.to_json()))
    assert again.to_json() == plan.to_json()


def test_plan_is_always_the_same_text_without_a_needless_character() -> None:
    text = Plan(read=READ, write=WRITE, windows=(LOAD, SALE)).to_json()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert '"lead_minutes":5,' in text


def test_days_told_as_a_list_are_read_back_as_a_text_of_the_same_days() -> None:
    plan = Plan(read=READ, write=WRITE, windows=(replace(LOAD, days=("MON", "THU")),))
    again = Plan.from_document(plan.to_document())
    assert again.windows == (replace(LOAD, days="MON,THU"),)
    assert again.to_json() == plan.to_json()


def test_document_of_a_plan_holds_what_was_declared_and_no_more() -> None:
    plan = Plan(
        read=Capacity.fixed(7),
        write=Capacity.autoscaled(
            min_capacity=22,
            max_capacity=220,
            target_utilization_percent=55,
            scale_in_cooldown=timedelta(seconds=61),
            scale_out_cooldown=timedelta(seconds=32),
            disable_scale_in=True,
        ),
        windows=(replace(LOAD, lead=timedelta(minutes=8)),),
        indexes=(
            IndexCapacity(index_name="by_day", windows=()),
            IndexCapacity(index_name="by_hour", write=Capacity.fixed(9)),
        ),
        mark=HighWaterMark.units(write=600),
        table_quota_units=80_000,
    )
    assert plan.to_document() == {
        "version": 1,
        "read": {"min": 7, "max": 7},
        "write": {
            "min": 22,
            "max": 220,
            "target_utilization_percent": 55,
            "scale_in_cooldown_seconds": 61,
            "scale_out_cooldown_seconds": 32,
            "disable_scale_in": True,
        },
        "windows": [
            {
                "name": "load",
                "days": "MON-FRI",
                "start": "05:00",
                "end": "06:00",
                "timezone": "Europe/Berlin",
                "lead_minutes": 8,
                "write_min": 44,
            }
        ],
        "indexes": [{"name": "by_day", "windows": []}, {"name": "by_hour", "write": {"min": 9, "max": 9}}],
        "mark": {"rule": "units", "write": 600},
        "table_quota_units": 80_000,
    }


def test_document_with_units_as_text_is_read_as_numbers() -> None:
    """CloudFormation writes numbers that it learns at deploy time as texts."""
    document = Plan(read=READ, write=WRITE).to_document() | {"read": {"min": "5", "max": "6"}}
    assert Plan.from_document(document).read == Capacity(min_capacity=5, max_capacity=6, is_autoscaled=False)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param({"version": 2}, "plan has version 2, this code reads 1; deploy both again", id="newer"),
        pytest.param({"version": "1"}, "plan has version '1', this code reads 1; deploy both again", id="text"),
        pytest.param({}, "plan has version None, this code reads 1; deploy both again", id="missing"),
    ],
)
def test_document_of_another_version_is_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Plan.from_document(document)


def test_targets_are_reads_and_writes_of_the_table_then_of_each_index() -> None:
    plan = Plan(read=READ, write=WRITE, indexes=(IndexCapacity(index_name="by_day"), IndexCapacity(index_name="a")))
    assert [target.label for target in plan.targets()] == [
        "table read",
        "table write",
        "index 'by_day' read",
        "index 'by_day' write",
        "index 'a' read",
        "index 'a' write",
    ]


def test_index_follows_the_table_but_for_what_it_states() -> None:
    own = Capacity.fixed(7)
    plan = Plan(
        read=READ,
        write=WRITE,
        windows=(LOAD, SALE),
        indexes=(
            IndexCapacity(index_name="follows"),
            IndexCapacity(index_name="own", read=own, windows=(SALE,)),
            IndexCapacity(index_name="no", windows=()),
        ),
    )
    declared = [(t.capacity, [w.window.name for w in t.windows]) for t in plan.targets()]
    assert declared == [
        *[(READ, ["sale"]), (WRITE, ["load"])],
        *[(READ, ["sale"]), (WRITE, ["load"])],
        *[(own, ["sale"]), (WRITE, [])],
        *[(READ, []), (WRITE, [])],
    ]


def test_target_takes_floor_and_ceiling_of_its_own_dimension() -> None:
    window = replace(SALE, read_min=1, read_max=2, write_min=3, write_max=4)
    read, write = Plan(read=READ, write=WRITE, windows=(window,)).targets()
    assert [(w.min, w.max) for target in (read, write) for w in target.windows] == [(1, 2), (3, 4)]


def test_with_index_adds_one_and_leaves_the_plan_alone() -> None:
    plan = Plan(read=READ, write=WRITE, indexes=(IndexCapacity(index_name="a"),))
    assert [index.index_name for index in plan.with_indexes(["b"]).indexes] == ["a", "b"]
    assert plan.with_indexes(["b", "a"]).indexes == (*plan.indexes, IndexCapacity(index_name="b"))
    assert [index.index_name for index in plan.indexes] == ["a"]


def test_all_windows_are_the_tables_and_then_those_of_the_indexes() -> None:
    plan = Plan(
        read=READ,
        write=WRITE,
        windows=(LOAD,),
        indexes=(IndexCapacity(index_name="a"), IndexCapacity(index_name="b", windows=(SALE,))),
    )
    assert plan.all_windows() == (LOAD, SALE)


@pytest.mark.parametrize(
    ("as_of", "left"),
    [
        pytest.param("2027-11-26T23:59", ["load", "sale"], id="a minute before it ends"),
        pytest.param("2027-11-27T00:00", ["load"], id="as it ends"),
    ],
)
def test_without_past_leaves_out_the_one_off_windows_that_are_over(as_of: str, left: list[str]) -> None:
    indexes = (IndexCapacity(index_name="follows"), IndexCapacity(index_name="own", windows=(SALE, LOAD)))
    plan = Plan(read=READ, write=WRITE, windows=(LOAD, SALE), indexes=indexes)
    shorter = plan.without_past(datetime.fromisoformat(as_of).replace(tzinfo=UTC))
    assert [window.name for window in shorter.windows] == left
    assert shorter.indexes[0] == IndexCapacity(index_name="follows"), "it goes on following the table"
    assert sorted(window.name for window in shorter.indexes[1].windows or ()) == left
    assert replace(shorter, windows=plan.windows, indexes=plan.indexes) == plan, "nothing else changes"


def test_without_windows_keeps_everything_else() -> None:
    own = Capacity.fixed(7)
    plan = Plan(
        read=READ, write=WRITE, windows=(LOAD,), indexes=(IndexCapacity(index_name="own", read=own, windows=(SALE,)),)
    )
    bare = plan.without_windows()
    assert bare == Plan(read=READ, write=WRITE, indexes=(IndexCapacity(index_name="own", read=own),))
    assert [target.windows for target in bare.targets()] == [()] * 4
