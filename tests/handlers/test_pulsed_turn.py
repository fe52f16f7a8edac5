"""A run of the scaler with a fleet that tells: what it reads, what it sets, and what it tells the fleet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from highwater.aws.coordinator_table import PulseTable
from highwater.aws.observe import Kept
from highwater.core import Capacity, Dimension, Plan
from highwater.core.names import TargetName
from highwater.core.pulses import amount_attribute, hints_of_text, pulse_sort_key, slot_at
from highwater.core.scaler import Mode, ScaledPlan
from highwater.core.scaler.metrics import ScalerMetric
from highwater.handlers.scaler.gather import RunOutcome
from highwater.handlers.scaler.run import Options
from tests.memory_aws.stage import NOW, Stage

PLAN = Plan(
    read=Capacity.autoscaled(min_capacity=7, max_capacity=900),
    write=Capacity.autoscaled(min_capacity=12, max_capacity=4_000),
)
WRITE = (None, Dimension.WRITE)
ORDERS = TargetName("orders", *WRITE)
_NEWEST = slot_at(NOW) - 1


@dataclass
class PulseItems:
    """The items of one table's pulses, as DynamoDB has them."""

    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    refuses: str | None = None
    is_crowded: bool = False
    units_of_an_item: float = 1.0

    def tell(self, slot: int, units: float, *, refused: bool = False) -> None:
        item = self.items.setdefault(pulse_sort_key(slot // 6), {"item": {"S": pulse_sort_key(slot // 6)}})
        item[amount_attribute(slot, WRITE, refused=refused)] = {"N": str(units)}

    def query(self, **request: Any) -> dict[str, Any]:
        self._may("query")
        values = request["ExpressionAttributeValues"]
        if values[":table"] != {"S": "pulse#orders"}:
            assert values[":table"]["S"].startswith("pulse#orders#")
            return {"Items": []}
        if self.is_crowded:
            return {"Items": [], "LastEvaluatedKey": {"item": values[":first"]}}
        within = range(int(values[":first"]["S"]), int(values[":last"]["S"]) + 1)
        return {"Items": [item for key, item in sorted(self.items.items()) if int(key) in within]}

    def get_item(self, **request: Any) -> dict[str, Any]:
        item = self.items.get(request["Key"]["item"]["S"])
        found = {} if item is None or request["Key"]["table"]["S"] != "pulse#orders" else {"Item": item}
        return found | {"ConsumedCapacity": {"CapacityUnits": self.units_of_an_item}}

    def update_item(self, **request: Any) -> dict[str, Any]:
        self._may("update_item")
        item = self.items.setdefault(request["Key"]["item"]["S"], dict(request["Key"]))
        item["hint"] = request["ExpressionAttributeValues"][":hint"]
        return {}

    def _may(self, operation: str) -> None:
        if self.refuses == operation:
            raise ClientError({"Error": {"Code": "InternalServerError", "Message": "it rests"}}, operation)


@dataclass
class World:
    """One table of 100 write units, of which its fleet told 90 a second for a quarter of an hour."""

    mode: Mode
    told: int = 90
    stage: Stage = field(default_factory=Stage)
    pulses: PulseItems = field(default_factory=PulseItems)

    def __post_init__(self) -> None:
        client: Any = self.pulses
        self.stage.kept = Kept(pulses=PulseTable("coordinator", client))
        self.stage.table("orders", PLAN, self.mode, (7, 100))
        self.stage.consume(ORDERS, 90)
        for slot in range(_NEWEST - 119, _NEWEST + 1):
            self.pulses.tell(slot, self.told * 10)

    def jump(self, units: int) -> None:
        self.pulses.tell(_NEWEST, units * 10)

    def serve(self, *, is_dry_run: bool = False) -> RunOutcome:
        event = {"highwater": "boost", "tables": ["orders"]}
        return self.stage.serve(event, options=Options(dry_run=is_dry_run))

    @property
    def writes(self) -> int:
        return self.stage.capacity("orders").write

    def hints(self) -> dict[str, Any]:
        return {
            key: hints_of_text(item["hint"]["S"])[WRITE]
            for key, item in sorted(self.pulses.items.items())
            if "hint" in item
        }


def _surging(mode: Mode = Mode.DIRECT) -> World:
    """A table whose fleet asks for ten times as much in the newest slot."""
    world = World(mode)
    world.jump(900)
    return world


def test_fleet_that_asks_for_the_tenfold_gets_it_in_one_turn_long_before_cloudwatch_knows() -> None:
    direct = _surging()
    outcome = direct.serve()
    # 900 units a second over 97 %
    assert direct.writes == 928
    (document,) = [each for each in outcome.decisions if each["target"] == "table write"]
    assert [each["code"] for each in document["limits"]] == ["bucket"]
    floor = _surging(Mode.FLOOR)
    floor.serve()
    assert floor.stage.bounds(ORDERS).min == 928


def test_pulses_are_found_among_what_else_a_client_wrote_there() -> None:
    world = _surging()
    world.pulses.is_crowded = True
    outcome = world.serve()
    assert world.writes == 928
    assert outcome.notes == [
        "orders: its fleet's pulses take more than 1 MB; a client with grant_pulse writes more than pulses there, or "
        "the table has many indexes with long names"
    ]


def test_items_that_are_filled_up_are_not_read_whole_and_cloudwatch_counts_alone() -> None:
    world = _surging()
    world.pulses.is_crowded, world.pulses.units_of_an_item = True, 100.0
    outcome = world.serve()
    assert world.writes == 100
    assert outcome.notes == [
        "orders: its fleet's pulses could not be read: the items of 21 minutes take more than 4 MB, which no fleet "
        "writes"
    ]


def test_turn_leaves_hints_for_the_present_minute_and_until_the_next_full_tick() -> None:
    world = _surging()
    world.serve()
    minute = int(NOW.timestamp()) // 60
    assert list(world.hints()) == [pulse_sort_key(minute + later) for later in range(6)]
    (hint,) = set(world.hints().values())
    # the capacity is that which was just asked for, and the bucket is taken as empty after it
    assert (hint.capacity_units, hint.help_seconds, hint.coverage_percent) == (928, 18, 100)


def test_fleet_that_tells_more_than_was_consumed_is_told_of() -> None:
    world = World(Mode.DIRECT, told=225)
    outcome = world.serve()
    assert outcome.counts[ScalerMetric.PULSES_DISAGREE] == 1
    assert outcome.notes == [
        "table/orders write: pulses tell of more than 150 % of what CloudWatch counts, consumed and throttled; a "
        "client with grant_pulse counts what was not requested"
    ]
    agreeing = World(Mode.DIRECT, told=135).serve()
    assert ScalerMetric.PULSES_DISAGREE not in agreeing.counts


def test_refusals_that_never_were_and_pulses_of_an_idle_table_are_told_of() -> None:
    refusing = World(Mode.DIRECT)
    refusing.pulses.tell(_NEWEST - 40, 10**9, refused=True)
    assert refusing.serve().counts[ScalerMetric.PULSES_DISAGREE] == 1
    idle = World(Mode.DIRECT)
    idle.stage.consume(ORDERS, 0)
    assert idle.serve().counts[ScalerMetric.PULSES_DISAGREE] == 1
    quiet = World(Mode.DIRECT, told=0)
    quiet.stage.consume(ORDERS, 0)
    assert ScalerMetric.PULSES_DISAGREE not in quiet.serve().counts


@pytest.mark.parametrize(
    ("operation", "note", "floor"),
    [
        # as without pulses
        ("query", "orders: its fleet's pulses could not be read: ", 90),
        # as with them: 135 units/s are 97 %
        ("update_item", "orders: its fleet could not be told: ", 140),
    ],
)
def test_pulses_that_cannot_be_read_or_told_change_nothing_else(operation: str, note: str, floor: int) -> None:
    world = World(Mode.FLOOR, told=135)
    world.pulses.refuses = operation
    outcome = world.serve()
    error = f"An error occurred (InternalServerError) when calling the {operation} operation: it rests"
    assert outcome.notes == [note + error]
    assert outcome.failed == {}
    assert world.stage.bounds(ORDERS).min == floor


def test_dry_run_tells_the_fleet_nothing() -> None:
    world = _surging()
    outcome = world.serve(is_dry_run=True)
    assert world.writes == 100
    assert world.hints() == {}
    assert [each["granted"] for each in outcome.decisions if each["target"] == "table write"] == [928]


def test_boosts_alone_read_no_pulses() -> None:
    world = World(Mode.FLOOR)
    world.stage.store("orders", ScaledPlan(table="orders", mode=Mode.BOOSTS, plan=PLAN).to_json())
    world.pulses.refuses = "query"
    assert world.serve().notes == []
