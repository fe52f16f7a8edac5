"""When a process tells what it counted, whom it wakes, and what it does where nobody answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from highwater import BoostRefusedError, CoordinatorClient, CoordinatorUnavailableError
from highwater.client.coordinator import CoordinatorNotFoundError
from highwater.core import Dimension
from highwater.core.pulses import Hint, hints_text
from tests.client.scripted import driven_pulse

WRITE = (None, Dimension.WRITE)
# a whole minute
BEGAN = 1_795_436_760.0
SLOT = int(BEGAN) // 10
HINT = Hint(SLOT - 1, 100, 6_000, 100, 17)


@dataclass
class Table:
    """The coordinator's table: adds up, and elects.

    Attributes:
        hint: The scaler's hint for writes, or the text of the attribute.
        writes: How many pulses were written.
        elections: How many processes stood for election, and how many lost.
    """

    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    error: Exception | None = None
    hint: Hint | str | None = HINT
    writes: int = 0
    elections: int = 0
    lost: int = 0

    def update_item(self, **request: Any) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        key = request["Key"]["table"]["S"], request["Key"]["item"]["S"]
        item = self.items.setdefault(key, {})
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        if "ConditionExpression" in request:
            self.elections += 1
            if int(values[":slot"]["N"]) <= int(item.get("woken", {"N": "0"})["N"]) <= int(values[":next"]["N"]):
                self.lost += 1
                raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "UpdateItem")
            item["woken"] = values[":slot"]
            return {}
        self.writes += 1
        for name, attribute in names.items():
            if name.startswith("#a"):
                before = float(item.get(attribute, {"N": "0"})["N"])
                item[attribute] = {"N": str(before + float(values[name.replace("#", ":")]["N"]))}
        if self.hint is not None:
            item["hint"] = {"S": self.hint if isinstance(self.hint, str) else hints_text({WRITE: self.hint})}
        return {"Attributes": dict(item)}


@dataclass
class Coordinator(CoordinatorClient):
    """Notes who is woken."""

    woken: list[str] = field(default_factory=list)
    error: Exception | None = None

    def wake(self, table: str) -> None:
        self.woken.append(f"pulse {table}")
        if self.error is not None:
            raise self.error


@dataclass
class Process:
    """A process with a clock of its own."""

    table: Table = field(default_factory=Table)
    coordinator: Coordinator = field(default_factory=Coordinator)
    now: float = BEGAN
    spread: float = 0.5

    def __post_init__(self) -> None:
        self.pulse = driven_pulse(self.table, self.coordinator, lambda: self.now, pause=self._pass, _spread=self.spread)
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

    def surge(self, seconds: int = 20) -> None:
        """Ask for nine times the capacity, second by second."""
        for _ in range(seconds):
            self.ask(900, seconds=1)

    def told_all(self) -> None:
        self.pulse.beat(is_last=True)

    def told(self, table: str = "orders") -> float:
        return sum(
            float(value["N"])
            for (partition, _), item in self.table.items.items()
            if f"{partition}#".startswith(f"pulse#{table}#")
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
def test_table_that_the_process_may_not_tell_of_is_left_alone_for_longer_and_longer(
    code: str, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process(Table(error=ClientError({"Error": {"Code": code, "Message": "no"}}, "UpdateItem")))
    rests = []
    for _ in range(9):
        assert process.pulse.counts.tables() == []
        left_alone_at = process.now
        while not process.pulse.meter.is_told("orders"):
            process.now += 1
        rests.append(process.now - left_alone_at)
        process.ask(10)
        process.ask(10, seconds=11)
    # a quarter less or more, and a second, as the clock goes in seconds here
    for rest, seconds in zip(rests, (15, 30, 60, 120, 240, 480, 900, 900, 900), strict=True):
        assert 0.75 * seconds <= rest <= 1.25 * seconds + 1
    fix = "; give it grant_pulse in the CDK app, and deploy" if code == "AccessDeniedException" else ""
    why = f"An error occurred ({code}) when calling the UpdateItem operation: no{fix}"
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert {re.sub(r"\d+ seconds", "N seconds", warning) for warning in warnings} == {
        f"no pulses of orders for N seconds: {why}"
    }
    process.table.error = None
    process.now += 1_200
    process.ask(10)
    process.ask(10, seconds=11)
    assert process.told() >= 10
    process.table.error = ClientError({"Error": {"Code": code, "Message": "no"}}, "UpdateItem")
    process.ask(10, seconds=61)
    process.now += 19
    assert process.pulse.meter.is_told("orders"), "it was granted in between"


def test_log_says_once_for_each_table_that_its_pulses_arrive(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "highwater.pulse")
    throttled = ClientError({"Error": {"Code": "ThrottlingException", "Message": "no"}}, "UpdateItem")
    process = Process(Table(error=throttled))

    def said() -> list[str]:
        return [message for message in caplog.messages if message.startswith("highwater:")]

    assert said() == []
    process.table.error = None
    for _ in range(3):
        process.ask(10, seconds=31)
        process.ask(7, table="carts")
    assert said() == [
        f"highwater: pulses of table {table} arrive, in the coordinator's table pulses" for table in ("orders", "carts")
    ]
    # as after a fork
    process.pulse.begin_anew()
    process.ask(10, seconds=5)
    process.ask(10, seconds=31)
    assert said()[2:] == said()[:1]


def test_coordinator_that_refuses_ends_the_pulses_of_that_table_alone(caplog: pytest.LogCaptureFixture) -> None:
    process = Process(Table(hint=None), Coordinator(error=BoostRefusedError(404, "orders: no plan")))
    assert not process.pulse.meter.is_told("orders")
    assert process.pulse.meter.is_told("others")
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert re.sub(r"\d+", "N", warning) == (
        "no pulses of orders for N seconds: the coordinator refuses: orders: no plan"
    )


def test_coordinator_that_is_down_changes_nothing() -> None:
    coordinator = Coordinator(error=CoordinatorUnavailableError("no answer"))
    process = Process(Table(hint=replace(HINT, level_units=0)), coordinator)
    process.surge()
    process.told_all()
    assert process.told() == 18_020
    assert process.coordinator.woken == ["pulse orders", "pulse orders"]


@dataclass
class Lost(CoordinatorClient):
    """Is not found, however often it is looked for."""

    searches: list[float] = field(default_factory=list)
    clock: Any = None

    @property
    def pulse_table(self) -> str:
        """Nobody knows."""
        self.searches.append(self.clock())
        raise CoordinatorNotFoundError("there is no coordinator in this account and region")


def test_coordinator_is_looked_for_less_and_less_often_however_many_tables_there_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [BEGAN]
    lost = Lost(clock=lambda: now[0])
    pulse = driven_pulse(Table(), lost, lost.clock, _pulse_table=None)
    while now[0] < BEGAN + 7_200:
        for table in ("orders", "carts", "users"):
            pulse.counts.add(table, int(now[0]) // 10, WRITE, 5.0, refused=int(now[0]) % 7 == 0)
        pulse.beat()
        now[0] += 1
    # 15 s, 30 s, 1, 2, 4, 8 and then 15 minutes, each up to a quarter less or more, and the next pulse after it
    gaps = [after - before for before, after in pairwise(lost.searches)]
    for gap, seconds in zip(gaps, (15, 30, 60, 120, 240, 480, *[900] * 10), strict=False):
        assert 0.75 * seconds <= gap <= 1.25 * seconds + 12
    assert 10 <= len(lost.searches) <= 16
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert {re.sub(r"\d+ seconds", "N seconds", warning) for warning in warnings} == {
        "no pulses for N seconds: there is no coordinator in this account and region"
    }
    # at each search, what is older than two minutes is given up
    for table in ("orders", "carts", "users"):
        assert len({slot for slot, _, _ in pulse.counts.peek(table)}) <= (1.25 * 900 + 3 * 60) / 10 + 2


def test_process_that_does_not_find_the_function_leaves_the_election_to_others() -> None:
    lost = Coordinator(error=CoordinatorNotFoundError("the parameters below /highwater/coordinators/ cannot be read"))
    process = Process(Table(hint=replace(HINT, level_units=0)), lost)
    process.surge()
    assert (process.table.elections, lost.woken) == (1, ["pulse orders"])
    other = Process(process.table, now=process.now)
    other.surge(1)
    assert other.coordinator.woken == ["pulse orders"]


def test_clock_that_is_set_back_delays_no_pulse() -> None:
    process = Process()
    process.ask(10, seconds=15)
    process.now -= 3_600
    before = process.table.writes
    for _ in range(40):
        process.ask(1, seconds=1)
    assert process.table.writes > before
    process.told_all()
    # what was counted last before counts for the slot that the clock was set back to
    assert process.told() == 20 + 10 + 40
    assert process.pulse.counts.tables() == []


def test_clock_that_is_set_back_ends_a_rest() -> None:
    process = Process(Table(error=ClientError({"Error": {"Code": "AccessDeniedException"}}, "UpdateItem")))
    assert not process.pulse.meter.is_told("orders")
    process.now -= 3_600
    assert process.pulse.meter.is_told("orders")


class Slow(Table):
    """Takes three seconds for each write, and then may have written it."""

    process: Process

    def update_item(self, **_: Any) -> dict[str, Any]:
        self.process.now += 3
        self.writes += 1
        raise ConnectTimeoutError(endpoint_url="http://localhost")


def test_end_of_the_process_waits_for_no_more_tables_after_two_seconds() -> None:
    process = Process()
    for number in range(10):
        process.pulse.counts.add(f"table-{number}", SLOT, WRITE, 5.0)
    slow = Slow()
    slow.process = process
    process.pulse.dynamodb = slow
    process.pulse.stop()
    assert slow.writes == 1


class Broken(Table):
    """Answers what DynamoDB cannot."""

    def update_item(self, **request: Any) -> dict[str, Any]:
        super().update_item(**request)
        return {"Attributes": 7}


def test_answers_that_cannot_be_end_no_pulses_and_are_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    broken = Broken()
    process = Process(broken)
    before = broken.writes
    for _ in range(12):
        process.ask(10, seconds=10)
        process.ask(10, table="others")
    assert broken.writes - before > 15
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert {record.getMessage() for record in errors} == {"a pulse failed"}
    assert 1 < len(errors) < 5


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
