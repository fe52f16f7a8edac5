"""When a process tells what it counted, whom it wakes, and what it does where nobody answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from highwater import BoostRefusedError, CoordinatorClient, CoordinatorUnavailableError, Pulse
from highwater.core import Dimension
from highwater.core.pulses import Hint, hints_text

WRITE = (None, Dimension.WRITE)
# a whole minute
BEGAN = 1_795_436_760.0
SLOT = int(BEGAN) // 10
HINT = Hint(SLOT - 1, 100, 6_000, 100, 17)


@dataclass
class Table:
    """The coordinator's table: adds up, and elects."""

    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    error: Exception | None = None
    hint: Hint | None = HINT
    writes: int = 0

    def update_item(self, **request: Any) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        key = request["Key"]["table"]["S"], request["Key"]["item"]["S"]
        item = self.items.setdefault(key, {})
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        if "ConditionExpression" in request:
            if int(item.get("woken", {"N": "0"})["N"]) >= int(values[":slot"]["N"]):
                raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "UpdateItem")
            item["woken"] = values[":slot"]
            return {}
        self.writes += 1
        for name, attribute in names.items():
            if name.startswith("#a"):
                before = float(item.get(attribute, {"N": "0"})["N"])
                item[attribute] = {"N": str(before + float(values[name.replace("#", ":")]["N"]))}
        if self.hint is not None:
            item["hint"] = {"S": hints_text({WRITE: self.hint})}
        return {"Attributes": dict(item)}


@dataclass
class Coordinator(CoordinatorClient):
    """Notes who is woken."""

    woken: list[str] = field(default_factory=list)
    error: Exception | None = None

    def send(self, action: str, **members: Any) -> dict[str, Any]:
        self.woken.append(f"{action} {members['table']}")
        if self.error is not None:
            raise self.error
        return {}


@dataclass
class Process:
    """A process with a clock of its own."""

    table: Table = field(default_factory=Table)
    coordinator: Coordinator = field(default_factory=Coordinator)
    now: float = BEGAN

    def __post_init__(self) -> None:
        self.pulse = Pulse(
            dynamodb=self.table,
            coordinator=self.coordinator,
            clock=lambda: self.now,
            pause=self._pass,
            _pulse_table="pulses",
            _spread=0.5,
        )
        # the first pulse
        self.ask(10, seconds=5)
        self.ask(10, seconds=6)

    def _pass(self, seconds: float) -> None:
        self.now += seconds

    def ask(self, units: float, seconds: float = 0, *, refused: bool = False, table: str = "orders") -> None:
        """Count units, after so many seconds, and let the pulse look."""
        self.now += seconds
        self.pulse.counts.add(table, int(self.now) // 10, WRITE, units, refused=refused)
        self.pulse.beat()

    def told_all(self) -> None:
        self.pulse.beat(is_last=True)

    def told(self, table: str = "orders") -> float:
        return sum(
            float(value["N"])
            for (partition, _), item in self.table.items.items()
            if partition == f"pulse#{table}"
            for name, value in item.items()
            if name[0] in "ct"
        )


def test_calm_process_tells_every_half_minute_after_the_end_of_a_slot() -> None:
    process = Process()
    assert process.table.writes == 1
    written = []
    for _ in range(70):
        before = process.table.writes
        process.ask(1, seconds=1)
        if process.table.writes > before:
            written.append(process.now - BEGAN)
    assert written == [31, 61]
    assert process.coordinator.woken == []


def test_process_with_little_to_say_tells_within_a_minute() -> None:
    process = Process()
    process.told_all()
    before = process.table.writes
    for _ in range(4):
        process.ask(0.3, seconds=10)
    assert process.table.writes == before
    # those with little to say spread over most of a slot
    process.ask(0.3, seconds=12)
    assert process.table.writes == before + 1
    assert process.told() == pytest.approx(21.2)


def test_process_whose_fleet_nears_the_capacity_tells_in_every_slot() -> None:
    process = Process()
    process.pulse.pause = lambda _: None
    process.ask(27_000, seconds=28)
    assert process.told() == 27_020, "a surge is told at once"
    before = process.table.writes
    for _ in range(12):
        process.ask(850, seconds=10)
    # the first two are told together, when the second one's slot has begun
    assert process.table.writes == before + 10


def test_jump_is_told_at_the_end_of_its_slot_and_wakes_the_scaler_once() -> None:
    table = Table()
    one, other = Process(table), Process(table)
    for process in (one, other):
        process.ask(200, seconds=30)
    for process in (one, other):
        process.ask(9_000, seconds=4)
    assert one.coordinator.woken + other.coordinator.woken == []
    for process in (one, other):
        process.ask(1, seconds=6)
    assert one.coordinator.woken + other.coordinator.woken == ["pulse orders"]


def test_refused_request_is_told_within_a_second() -> None:
    process = Process()
    process.ask(3, seconds=25, refused=True)
    assert process.told() == 23
    process.ask(3, seconds=11, refused=True)
    assert process.coordinator.woken == ["pulse orders"]


def test_fleet_without_a_hint_has_the_scaler_look() -> None:
    assert Process(Table(hint=None)).coordinator.woken == ["pulse orders"]


def test_pulse_of_two_minutes_is_told_in_two_items() -> None:
    process = Process()
    process.ask(7, seconds=25)
    process.ask(11, seconds=24)
    process.ask(13, seconds=6)
    process.told_all()
    assert sorted(item for _, item in process.table.items) == ["0029923946", "0029923947"]
    assert process.told() == 51


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_table_that_the_process_may_not_tell_of_is_left_alone_for_a_while(
    code: str, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process(Table(error=ClientError({"Error": {"Code": code, "Message": "no"}}, "UpdateItem")))
    assert [record.getMessage() for record in caplog.records] == [
        f"no pulses of orders for 15 minutes: An error occurred ({code}) when calling the UpdateItem operation: no"
    ]
    assert process.pulse.counts.tables() == []
    assert not process.pulse.meter.is_told("orders")
    process.now += 900
    assert process.pulse.meter.is_told("orders")


def test_coordinator_that_refuses_ends_the_pulses_of_that_table_alone() -> None:
    process = Process(Table(hint=None), Coordinator(error=BoostRefusedError(404, "orders: no plan")))
    assert not process.pulse.meter.is_told("orders")
    assert process.pulse.meter.is_told("others")


def test_coordinator_that_is_down_changes_nothing() -> None:
    process = Process(Table(hint=None), Coordinator(error=CoordinatorUnavailableError("no answer")))
    process.ask(20, seconds=55)
    process.told_all()
    assert process.told() == 40
    assert process.coordinator.woken == ["pulse orders", "pulse orders"]


def test_throttled_pulse_is_told_later_and_one_that_may_have_arrived_is_not_told_again() -> None:
    process = Process()
    process.table.error = ClientError({"Error": {"Code": "ThrottlingException"}}, "UpdateItem")
    process.ask(20, seconds=31)
    process.table.error = None
    process.ask(5, seconds=55)
    process.told_all()
    assert process.told() == 45
    process.table.error = ConnectTimeoutError(endpoint_url="http://localhost")
    process.ask(90, seconds=45)
    process.table.error = None
    process.ask(5, seconds=55)
    process.told_all()
    assert process.told() == 50


def test_end_of_the_process_tells_what_is_left() -> None:
    process = Process()
    process.ask(15, seconds=3)
    assert process.told() == 10
    process.told_all()
    assert process.told() == 35
    process.pulse.stop()
    assert not process.pulse.meter.is_told("orders")
