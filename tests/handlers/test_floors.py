"""Floors after a deploy: what the plan asks for at the cloud's own now.

Base 5..500 reads and 7..700 writes; the window's floors are 120 reads and 140 writes.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from highwater.aws import autoscaling
from highwater.aws.tables import ForbiddenError, TableNotFoundError, TableRefusedError
from highwater.core import Capacity, IndexCapacity, Plan, Window
from highwater.handlers import floors
from highwater.handlers.patience import Patience
from tests.handlers.bench import Bench, Call, Wire, answer, at, refusal, rewritten

READ = Capacity.autoscaled(min_capacity=5, max_capacity=500)
WRITE = Capacity.autoscaled(min_capacity=7, max_capacity=700)
DIMENSIONS = ("Read", "Write")

AssertFloors = Callable[..., str]

pytestmark = pytest.mark.usefixtures("wire")


@pytest.fixture(scope="module")
def wire_of_autoscaling(shared_bench: tuple[Bench, dict[str, str]]) -> Wire:
    assert shared_bench[0].cloud.port  # the variables that point to it are set
    return Wire(autoscaling.client())


@pytest.fixture
def wire(bench: Bench, wire_of_autoscaling: Wire) -> Iterator[Wire]:
    wire_of_autoscaling.reset()
    yield wire_of_autoscaling
    registered = bench.autoscaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]
    for target in registered:
        bench.autoscaling.deregister_scalable_target(
            ServiceNamespace="dynamodb",
            ResourceId=target["ResourceId"],
            ScalableDimension=target["ScalableDimension"],
        )


@pytest.fixture
def now(bench: Bench) -> datetime:
    return bench.cloud.status().now


@pytest.fixture
def assert_floors(bench: Bench, wire: Wire) -> AssertFloors:
    """The function over the wires, with so many seconds, of which each look and each pause takes five."""

    def run(table: str, plan_json: str, seconds: float = 300.0) -> str:
        left = itertools.count(seconds, -5.0)
        patience = Patience(lambda: next(left), lambda _: None)
        return floors.assert_floors(table, plan_json, bench.wire.client, wire.client, patience).reason

    return run


def _window(now: datetime, opens: int, closes: int, name: str = "sale", **units: int) -> Window:
    """A one-off window around the cloud's now, told in hours from it, with no lead."""
    start, end = (
        now.replace(minute=0, second=0, microsecond=0, tzinfo=None) + timedelta(hours=hours)
        for hours in (opens, closes)
    )
    return Window.once(name, start=start, end=end, timezone="UTC", lead=timedelta(0), **units)


def _register(bench: Bench, table: str, bounds: dict[str, tuple[int, int]], index: str | None = None) -> None:
    for dimension, (low, high) in bounds.items():
        bench.autoscaling.register_scalable_target(**_name(table, dimension, index), MinCapacity=low, MaxCapacity=high)


def _name(table: str, dimension: str, index: str | None = None) -> dict[str, Any]:
    return {
        "ServiceNamespace": "dynamodb",
        "ResourceId": f"table/{table}" + (f"/index/{index}" if index else ""),
        "ScalableDimension": f"dynamodb:{'index' if index else 'table'}:{dimension}CapacityUnits",
    }


def _bounds(bench: Bench, table: str, index: str | None = None) -> dict[str, tuple[int, int]]:
    found = bench.autoscaling.describe_scalable_targets(
        ServiceNamespace="dynamodb", ResourceIds=[_name(table, "Read", index)["ResourceId"]]
    )["ScalableTargets"]
    return {
        dimension: (target["MinCapacity"], target["MaxCapacity"])
        for target in found
        for dimension in DIMENSIONS
        if target["ScalableDimension"].endswith(f"{dimension}CapacityUnits")
    }


def _told(sentence: str) -> str:
    """The sentence without its time, which must be there."""
    match = re.fullmatch(r"at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: (.*)", sentence)
    assert match is not None, sentence
    return match[1]


BASE = {"Read": (5, 500), "Write": (7, 700)}


@pytest.mark.parametrize(
    ("windows", "expected", "told"),
    [
        pytest.param(
            [(-1, 2, {"read_min": 120, "write_min": 140})],
            {"Read": (120, 500), "Write": (140, 700)},
            "table read to 120..500, table write to 140..700",
            id="inside",
        ),
        pytest.param(
            [(2, 3, {"read_min": 120, "write_min": 140})], BASE, "floors and ceilings were as planned", id="outside"
        ),
        pytest.param(
            [(-1, 2, {"write_min": 140})],
            {"Read": (5, 500), "Write": (140, 700)},
            "table write to 140..700",
            id="one-dimension",
        ),
        pytest.param(
            [(-1, 2, {"write_min": 140}), (-2, 3, {"write_min": 90}), (4, 5, {"write_min": 600})],
            {"Read": (5, 500), "Write": (140, 700)},
            "table write to 140..700",
            id="overlapping-takes-the-highest-open",
        ),
        pytest.param(
            [(-1, 2, {"read_min": 120, "read_max": 900}), (-2, 3, {"read_max": 800, "write_max": 1100})],
            {"Read": (120, 900), "Write": (7, 1100)},
            "table read to 120..900, table write to 7..1100",
            id="ceilings",
        ),
        pytest.param(
            [(-1, 2, {"read_min": 3, "read_max": 400})], BASE, "floors and ceilings were as planned", id="below-base"
        ),
    ],
)
def test_assert_floors_when_at_base_sets_what_the_plan_asks_for_now(
    bench: Bench,
    wire: Wire,
    now: datetime,
    windows: list[tuple[int, int, dict[str, int]]],
    expected: dict[str, tuple[int, int]],
    told: str,
    assert_floors: AssertFloors,
) -> None:
    table = bench.make_table()
    _register(bench, table, BASE)
    planned = tuple(
        _window(now, opens, closes, f"window-{place}", **units) for place, (opens, closes, units) in enumerate(windows)
    )
    sentence = assert_floors(table, Plan(read=READ, write=WRITE, windows=planned).to_json())
    assert _bounds(bench, table) == expected
    assert _told(sentence) == told
    changed = sum(expected[dimension] != BASE[dimension] for dimension in DIMENSIONS)
    assert wire.operations.count("RegisterScalableTarget") == changed, "registering clamps capacity: only where needed"


def test_assert_floors_when_a_window_is_open_lifts_capacity_at_once(
    bench: Bench, now: datetime, assert_floors: AssertFloors
) -> None:
    table = bench.make_table()
    _register(bench, table, BASE)
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, -1, 2, read_min=120, write_min=140),))
    assert_floors(table, plan.to_json())
    capacity = bench.capacities(table)[None]
    assert (capacity.read, capacity.write) == (120, 140)


def test_assert_floors_when_a_window_has_closed_lets_the_floor_down(
    bench: Bench, now: datetime, assert_floors: AssertFloors
) -> None:
    table = bench.make_table()
    _register(bench, table, {"Read": (120, 500), "Write": (140, 900)})
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, -3, -1, read_min=120, write_min=140, write_max=900),))
    assert _told(assert_floors(table, plan.to_json())) == "table read to 5..500, table write to 7..700"
    assert _bounds(bench, table) == BASE


def test_assert_floors_when_asked_twice_registers_once(
    bench: Bench, wire: Wire, now: datetime, assert_floors: AssertFloors
) -> None:
    table = bench.make_table()
    _register(bench, table, BASE)
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, -1, 2, write_min=140),))
    assert_floors(table, plan.to_json())
    assert _told(assert_floors(table, plan.to_json())) == "floors and ceilings were as planned"
    assert wire.operations.count("RegisterScalableTarget") == 1


def test_assert_floors_when_capacity_is_fixed_moves_floor_and_ceiling(
    bench: Bench, now: datetime, assert_floors: AssertFloors
) -> None:
    table = bench.make_table()
    _register(bench, table, {"Read": (5, 5), "Write": (7, 700)})
    plan = Plan(read=Capacity.fixed(5), write=WRITE, windows=(_window(now, -1, 2, read_min=120, read_max=300),))
    assert _told(assert_floors(table, plan.to_json())) == "table read to 120..120"
    assert _bounds(bench, table) == {"Read": (120, 120), "Write": (7, 700)}


def test_assert_floors_when_an_index_has_own_windows_follows_those(
    bench: Bench, now: datetime, assert_floors: AssertFloors
) -> None:
    table = bench.make_table(by_status=(3, 4), by_day=(3, 4), by_hour=(3, 4))
    for index in (None, "by_status", "by_day", "by_hour"):
        _register(bench, table, BASE, index)
    plan = Plan(
        read=READ,
        write=WRITE,
        windows=(_window(now, -1, 2, write_min=140),),
        indexes=(
            IndexCapacity(index_name="by_status", windows=(_window(now, -2, 2, "own", read_min=60),)),
            IndexCapacity(index_name="by_day", windows=()),
            IndexCapacity(index_name="by_hour"),
        ),
    )
    sentence = assert_floors(table, plan.to_json())
    assert _told(sentence) == (
        "table write to 140..700, index 'by_status' read to 60..500, index 'by_hour' write to 140..700"
    )
    assert _bounds(bench, table) == {"Read": (5, 500), "Write": (140, 700)}
    assert _bounds(bench, table, "by_status") == {"Read": (60, 500), "Write": (7, 700)}
    assert _bounds(bench, table, "by_day") == BASE
    assert _bounds(bench, table, "by_hour") == {"Read": (5, 500), "Write": (140, 700)}


def test_assert_floors_when_a_target_was_set_otherwise_puts_it_right(
    bench: Bench, now: datetime, assert_floors: AssertFloors
) -> None:
    """What is declared holds after a deploy; another table's bounds are nobody's business here."""
    table, other = bench.make_table(), bench.make_table()
    _register(bench, table, {"Read": (33, 44), "Write": (7, 700)})
    _register(bench, other, {"Read": (34, 45), "Write": (8, 701)})
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, -1, 2, write_min=140),))
    assert_floors(table, plan.to_json())
    assert _bounds(bench, table) == {"Read": (5, 500), "Write": (140, 700)}
    assert _bounds(bench, other) == {"Read": (34, 45), "Write": (8, 701)}


def test_assert_floors_when_capacity_was_left_behind_registers_again_until_it_follows(
    bench: Bench, assert_floors: AssertFloors
) -> None:
    """Bounds are right, but the table was busy when they were registered: nothing would lift it any more."""
    table = bench.make_table()
    _register(bench, table, BASE)
    bench.dynamodb.update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 2}
    )
    sentence = assert_floors(table, Plan(read=READ, write=WRITE).to_json())
    assert _told(sentence) == "table read to 5..500, table write to 7..700"
    throughput = bench.dynamodb.describe_table(TableName=table)["Table"]["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (5, 7)


def test_assert_floors_when_the_table_is_still_growing_lets_the_deploy_end(
    bench: Bench, assert_floors: AssertFloors
) -> None:
    """A raise above the high-water mark may take longer than a deploy should wait."""
    table = bench.make_table()
    _register(bench, table, BASE)
    bench.dynamodb.update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 2}
    )

    def growing(description: dict[str, Any]) -> None:
        description["Table"]["TableStatus"] = "UPDATING"

    seen = rewritten(growing)
    bench.wire.fault = lambda call: seen(call) if call.operation == "DescribeTable" else None
    assert assert_floors(table, Plan(read=READ, write=WRITE).to_json()) == "table write is still being raised"


def test_assert_floors_when_capacity_never_follows_fails_with_where_it_stands(
    bench: Bench, wire: Wire, assert_floors: AssertFloors
) -> None:
    table = bench.make_table()
    _register(bench, table, BASE)
    bench.dynamodb.update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 2}
    )
    unheard = answer(200, b"{}")
    wire.fault = lambda call: unheard(call) if call.operation == "RegisterScalableTarget" else None
    message = (
        "table write has 2 units per second and its floor is 7; the table's scaling activities show why the capacity "
        "was not raised"
    )
    with pytest.raises(floors.FloorsNotReachedError, match=f"^{re.escape(message)}$"):
        assert_floors(table, Plan(read=READ, write=WRITE).to_json())


def test_assert_floors_when_this_machine_is_days_off_goes_by_the_cloud(
    bench: Bench, assert_floors: AssertFloors
) -> None:
    bench.cloud.advance(timedelta(days=9))
    now = bench.cloud.status().now
    assert now - datetime.now(UTC) > timedelta(days=8)
    table = bench.make_table()
    _register(bench, table, BASE)
    here = datetime.now(UTC)
    plan = Plan(
        read=READ,
        write=WRITE,
        windows=(_window(now, -1, 2, "cloud", write_min=140), _window(here, -1, 2, "here", write_min=600)),
    )
    sentence = assert_floors(table, plan.to_json())
    assert _bounds(bench, table)["Write"] == (140, 700), "the window of this machine's now must not count"
    told = datetime.strptime(sentence[3:26], "%Y-%m-%d %H:%M:%S %Z").replace(tzinfo=UTC)
    assert timedelta(0) <= told - now < timedelta(minutes=1)


def test_assert_floors_when_the_edge_comes_while_it_works_leaves_the_bounds_of_after(
    bench: Bench, wire: Wire, now: datetime, assert_floors: AssertFloors
) -> None:
    """The scheduled action lifts the floor just before the stale one is registered; nothing would lift it again."""
    table = bench.make_table()
    _register(bench, table, {"Read": (5, 500), "Write": (90, 700)})
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, 2, 5, write_min=140),))

    def window_opens(_call: Call) -> None:
        opens = now.replace(minute=0, second=0) + timedelta(hours=2, seconds=1)
        bench.cloud.advance(opens - bench.cloud.status().now + timedelta(seconds=1))
        _register(bench, table, {"Write": (140, 700)})

    wire.fault = at(1, window_opens, "RegisterScalableTarget")
    assert_floors(table, plan.to_json())
    assert _bounds(bench, table)["Write"] == (140, 700), "the window would stay at the base floor to its end"


def test_assert_floors_when_a_target_is_not_seen_registers_it(
    bench: Bench, now: datetime, assert_floors: AssertFloors
) -> None:
    """A target registered a moment ago may not be listed yet."""
    table = bench.make_table()
    _register(bench, table, {"Read": (5, 500)})
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, -1, 2, read_min=120, write_min=140),))
    sentence = assert_floors(table, plan.to_json())
    assert _told(sentence) == "table read to 120..500, table write to 140..700"
    assert _bounds(bench, table) == {"Read": (120, 500), "Write": (140, 700)}


def test_assert_floors_when_the_table_is_missing_names_it(
    now: datetime,
    assert_floors: AssertFloors,
) -> None:
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, -1, 2, write_min=140),))
    with pytest.raises(TableNotFoundError, match=r"^Requested resource not found: Table: no-such-table not found$"):
        assert_floors("no-such-table", plan.to_json())


def test_assert_floors_when_an_index_is_missing_names_it(
    bench: Bench,
    assert_floors: AssertFloors,
) -> None:
    table = bench.make_table()
    _register(bench, table, BASE)
    plan = Plan(read=READ, write=WRITE, indexes=(IndexCapacity(index_name="by_night"),))
    missing = re.escape(f"DynamoDB table does not exist: table/{table}/index/by_night")
    with pytest.raises(TableRefusedError, match=missing):
        assert_floors(table, plan.to_json())


def test_assert_floors_when_the_plan_has_no_windows_tells_no_made_up_time(
    bench: Bench, wire: Wire, assert_floors: AssertFloors
) -> None:
    table = bench.make_table()
    _register(bench, table, BASE)
    sentence = assert_floors(table, Plan(read=READ, write=WRITE).to_json())
    assert not sentence.startswith(("at 1-", "at 0001-")), sentence
    assert "RegisterScalableTarget" not in wire.operations


@pytest.mark.parametrize(("version", "shown"), [(2, "2"), ("1", "'1'"), (None, "None")], ids=["newer", "text", "none"])
def test_assert_floors_when_the_plan_has_an_unknown_version_says_what_to_do(
    wire: Wire, version: object, shown: str, assert_floors: AssertFloors
) -> None:
    document = json.dumps({"version": version})
    message = f"plan has version {shown}, this code reads 1; deploy both again"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        assert_floors("orders", document)
    assert wire.calls == []


def test_assert_floors_when_throttled_waits_and_goes_on(
    bench: Bench, wire: Wire, now: datetime, monkeypatch: pytest.MonkeyPatch, assert_floors: AssertFloors
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    table = bench.make_table()
    _register(bench, table, BASE)
    throttled = refusal("ThrottlingException", "Rate exceeded")
    wire.fault = lambda call: throttled(call) if call.number in (1, 2, 4, 5, 6) else None
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, -1, 2, write_min=140),))
    assert _told(assert_floors(table, plan.to_json())) == "table write to 140..700"
    assert _bounds(bench, table)["Write"] == (140, 700)


def test_assert_floors_when_a_target_is_refused_fails_with_the_service_text(
    bench: Bench, wire: Wire, now: datetime, assert_floors: AssertFloors
) -> None:
    table = bench.make_table()
    _register(bench, table, BASE)
    wire.fault = at(1, refusal("ValidationException", "Unable to assume IAM role: x"), "RegisterScalableTarget")
    plan = Plan(read=READ, write=WRITE, windows=(_window(now, -1, 2, read_min=120, write_min=140),))
    with pytest.raises(TableRefusedError, match=re.escape("Unable to assume IAM role: x")):
        assert_floors(table, plan.to_json())


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ConcurrentUpdateException", "You already have a pending update to an Auto Scaling resource"),
        ("AccessDeniedException", "not authorized to perform: application-autoscaling:RegisterScalableTarget"),
        ("ValidationException", "User is missing the following permissions: dynamodb:UpdateTable"),
    ],
)
def test_assert_floors_when_refused_for_a_moment_tries_again(
    bench: Bench, wire: Wire, assert_floors: AssertFloors, code: str, text: str
) -> None:
    """12: targets of a table are registered at once, and the role has just been changed."""
    table = bench.make_table()
    wire.fault = at(2, refusal(code, text), "RegisterScalableTarget")
    plan = Plan(read=READ, write=WRITE)
    assert _told(assert_floors(table, plan.to_json())) == "table read to 5..500, table write to 7..700"
    assert wire.operations.count("RegisterScalableTarget") == 3


def test_assert_floors_when_a_permission_stays_missing_fails_with_the_service_text(
    bench: Bench, wire: Wire, assert_floors: AssertFloors
) -> None:
    """12: patience ends after two minutes."""
    table = bench.make_table()
    wire.fault = lambda call: (
        refusal("AccessDeniedException", "not authorized")(call) if call.operation == "RegisterScalableTarget" else None
    )
    with pytest.raises(ForbiddenError, match=r"^not authorized$"):
        assert_floors(table, Plan(read=READ, write=WRITE).to_json(), 900.0)
    assert wire.operations.count("RegisterScalableTarget") == 25
