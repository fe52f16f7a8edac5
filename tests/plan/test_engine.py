"""From a plan of the page to its answer, in memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.core import Capacity, HighWaterMark, Plan, Window
from highwater_lab.plan.engine import Engine, ProposalError
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.services.prices import load_prices
from highwater_lab.simulation.plans import table_of
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import READ, START, WRITE, writes

# 10:00 to 16:00 UTC on a Tuesday: quiet, and a surge at 12:00 of 700 units for an hour
SURGE = writes(*[70] * 120, *[700] * 60, *[70] * 180)
ENGINE = Engine(traffic=SURGE, prices=load_prices(), timezone="Europe/Berlin")
WRITES = {"min_capacity": 110, "max_capacity": 1_300, "target_utilization_percent": 65}
NOON = {"name": "noon", "days": "MON-FRI", "start": "13:00", "end": "14:00", "write_min": 1_100}
BOOST = {"dimension": "write", "start": "2026-11-03T11:58", "minutes": 63, "units": 1_100}


def proposal(**more: Any) -> dict[str, Any]:
    return {"write": WRITES, "windows": [], "boost": None} | more


def test_page_begins_with_auto_scaling_alone_between_the_needs_of_the_quietest_and_the_busiest_minute() -> None:
    begun = ENGINE.opening()
    # 70 and 700 units/s are 70 % of 100 and 1,000, and a quarter of room is above
    plan = {"min_capacity": 100, "max_capacity": 1_300, "target_utilization_percent": 70}
    assert begun["plan"] == {"write": plan, "windows": [], "boost": None}
    assert begun["answer"] == ENGINE.answer(begun["plan"])
    run = run_policy("on-demand", table_of(Plan(read=Capacity.fixed(1), write=Capacity.fixed(1)), "table"), SURGE)
    assert begun["on_demand_usd"] == run.bill.per_month
    assert begun["demand"] == {"write": [70] * 120 + [700] * 60 + [70] * 180}
    assert (begun["name"], begun["start"], begun["minutes"]) == ("made", int(START.timestamp()), 360)
    assert (begun["timezone"], begun["indexes"], begun["prices"]) == ("Europe/Berlin", [], ENGINE.prices.name)


def test_answer_is_the_rehearsal_of_the_plan() -> None:
    answer = ENGINE.answer(proposal(windows=[NOON]))
    window = Window.weekly(
        "noon", days="MON-FRI", start="13:00", end="14:00", timezone="Europe/Berlin", write_min=1_100
    )
    plan = Plan(
        read=Capacity.fixed(1),
        write=Capacity.autoscaled(min_capacity=110, max_capacity=1_300, target_utilization_percent=65),
        windows=(window,),
        mark=HighWaterMark.to_ceiling(),
    )
    run = run_policy("declared", table_of(plan, "table"), SURGE)
    assert answer["usd_per_month"] == run.bill.per_month
    assert answer["throttled_percent"] == run.throttled_per_million / 10_000
    target = run.target(WRITE)
    assert (answer["targets"]["write"]["units"], answer["targets"]["write"]["bounds"]) == (
        target.capacity,
        target.bounds,
    )
    # the window opens five minutes early, and Berlin's 13:00 is 12:00 UTC, two hours after the start
    assert answer["openings"] == [[(2 * 3600 - 300, 3 * 3600)]]
    line = (
        'Window.weekly("noon", days="MON-FRI", start="13:00", end="14:00", timezone="Europe/Berlin", write_min=1_100)'
    )
    assert line in answer["code"]
    assert (
        "write=Capacity.autoscaled(min_capacity=110, max_capacity=1_300, target_utilization_percent=65)"
        in (answer["code"])
    )


def test_floor_window_and_boost_each_serve_the_surge_at_their_own_price() -> None:
    alone, floor, window, boost = (
        ENGINE.answer(each)
        for each in (
            proposal(),
            proposal(write=WRITES | {"min_capacity": 1_100}),
            proposal(windows=[NOON]),
            proposal(boost=BOOST),
        )
    )
    assert alone["throttled_percent"] > 1
    assert alone["throttled_minutes"] == len(alone["targets"]["write"]["throttled"]) > 0
    assert [each["throttled"] for each in (floor, window, boost)] == ["0", "0", "0"]
    assert floor["usd_per_month"] > window["usd_per_month"] > alone["usd_per_month"]
    assert floor["usd_per_month"] > boost["usd_per_month"] > alone["usd_per_month"]
    assert boost["code"] == alone["code"] + (
        "\n# in the job that begins at 2026-11-03T11:58 UTC; it needs a BoostCoordinator\n"
        "import highwater\n\n"
        'with highwater.boost("table", write_total=1_100, minutes=63):\n'
        "    ...  # the job's work\n"
    )


def test_reads_and_indexes_of_the_traffic_are_in_the_plan() -> None:
    counts = {
        Stream(None, READ): [3_000] * 60,
        Stream(None, WRITE): [600] * 60,
        Stream("by_day", WRITE): [660] * 60,
    }
    engine = Engine(
        traffic=Traffic.from_counts("two", counts, bin_seconds=60, start=START), prices=load_prices("eu-central-1")
    )
    begun = engine.opening()
    assert list(begun["demand"]) == ["write", "read"]
    assert begun["plan"]["read"]["min_capacity"] == 72
    # the index needs more than the table
    assert begun["plan"]["write"]["min_capacity"] == 16
    assert begun["indexes"] == ["by_day"]
    assert 'index_name="by_day"' in begun["answer"]["code"]


def test_warnings_are_told_beside_the_answer() -> None:
    answer = ENGINE.answer(proposal(windows=[NOON | {"write_min": 90}]))
    assert answer["warnings"] == [
        "plan: window 'noon': the window never raises a floor or ceiling above the base and the other windows; raise "
        "the window's units, or remove the window [highwater:windowWithoutEffect]"
    ]


REFUSALS: list[tuple[object, str]] = [
    (7, "plan: got 7, allowed: an object with write, windows, boost"),
    ({"windows": []}, "plan: write is missing; its members are write, windows, boost"),
    (proposal(read=WRITES), "plan: 'read' is unknown; its members are write, windows, boost"),
    (proposal(windows="noon"), "plan windows: got 'noon', allowed: a list of windows"),
    (
        proposal(write={"units": 5}),
        "plan write: min_capacity is missing; its members are min_capacity, max_capacity, target_utilization_percent",
    ),
    (
        proposal(write=WRITES | {"min_capacity": 1_301, "target_utilization_percent": 91}),
        "plan: table write max_capacity: got 1300, allowed: 1301 (min_capacity) or more; raise max_capacity or lower "
        "min_capacity [highwater:maxBelowMin] (and 1 more)",
    ),
    (
        proposal(write=WRITES | {"min_capacity": None}),
        "plan: table write min_capacity: got None, allowed: whole units per second, 1 or more; write a whole "
        "number [highwater:unitsNotPositive]",
    ),
    (
        proposal(windows=[NOON, {"name": "x"}]),
        "window 2: days is missing; its members are name, days, start, end, write_min",
    ),
    (
        proposal(windows=[NOON | {"lead": 3}]),
        "window 1: 'lead' is unknown; its members are name, days, start, end, write_min",
    ),
    (proposal(windows=[NOON | {"days": None}]), "window 1 days: got None, allowed: days such as 'MON-FRI'"),
    (
        proposal(windows=[NOON | {"write_min": 1_400}]),
        "plan: window 'noon' write_min of table write: got 1400, allowed: 1 to 1300 (max_capacity); raise "
        "max_capacity, or give the window write_max=1400 or more [highwater:windowAboveCeiling]",
    ),
    (proposal(boost=[]), "boost: got [], allowed: an object with dimension, start, minutes, units"),
    (proposal(boost=BOOST | {"dimension": "read"}), "boost dimension: got 'read', allowed: write"),
    (proposal(boost=BOOST | {"minutes": 1_441}), "boost minutes: got 1441, allowed: a whole number from 1 to 1,440"),
    (proposal(boost=BOOST | {"units": True}), "boost units: got True, allowed: a whole number from 1 to 40,000"),
    (
        proposal(boost=BOOST | {"start": "2026-11-03T16:00"}),
        "boost start: got '2026-11-03T16:00', allowed: a time of the traffic in UTC, 2026-11-03T10:00 to "
        "2026-11-03T15:59",
    ),
    (
        proposal(boost=BOOST | {"start": 12}),
        "boost start: got 12, allowed: a time of the traffic in UTC, 2026-11-03T10:00 to 2026-11-03T15:59",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSALS)
def test_plan_that_cannot_be_read_or_cannot_work_is_one_line(wrong: object, message: str) -> None:
    with pytest.raises(ProposalError) as refused:
        ENGINE.answer(wrong)
    assert str(refused.value) == message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["MON", "13:00", "write", "é\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NOON, *WRITES, *BOOST]), inner),
    max_leaves=6,
)


def _changed(member: str, inner: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    changes = st.dictionaries(st.sampled_from(list(inner)), JSON, min_size=1)
    return changes.map(lambda changed: {member: inner | changed})


SHORT = Engine(traffic=writes(70, 700, 70), prices=load_prices())


@given(
    st.one_of(
        JSON,
        st.dictionaries(st.sampled_from(["write", "windows", "boost"]), JSON).map(lambda more: proposal(**more)),
        _changed("write", WRITES).map(lambda more: proposal(**more)),
        _changed("window", NOON).map(lambda more: proposal(windows=[more["window"]])),
        _changed("boost", BOOST | {"start": "2026-11-03T10:01"}).map(lambda more: proposal(**more)),
    )
)
def test_any_json_is_answered_or_refused_with_one_line(given_plan: object) -> None:
    said = ""
    try:
        said = SHORT.answer(given_plan)["throttled"]
    except ProposalError as refused:
        said = str(refused)
    assert len(said.splitlines()) == 1
