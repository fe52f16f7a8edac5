"""Whom a fleet has ask for help, and how often: at a ceiling, without hints, and where hints make no sense."""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from highwater.client.fleet import FleetTable
from highwater.core import Dimension
from highwater.core.pulses import Hint
from tests.client.scripted import driven_pulse
from tests.client.test_pulse import BEGAN, HINT, SLOT, WRITE, Coordinator, Process, Table

READ = (None, Dimension.READ)
# the bucket is empty, and help should have been there long ago
EMPTY = replace(HINT, slot=SLOT - 7, level_units=0)
MINUTES = 10


def at_a_ceiling(table: Table, processes: int) -> list[Process]:
    """So many processes whose requests are refused ten times a second, for ten minutes."""
    fleet = [Process(table, now=BEGAN, spread=1.5 * number / processes) for number in range(processes)]
    table.writes = table.elections = table.lost = 0
    for process in fleet:
        process.coordinator.woken.clear()
    for _ in range(MINUTES * 600):
        for process in fleet:
            if isinstance(table.hint, Hint):
                table.hint = replace(table.hint, slot=int(process.now) // 10 - 8)
            process.ask(1, seconds=0.1 / processes, refused=True)
            # one that is elected waits for the others' pulses, and time passes for all
            for each in fleet:
                each.now = process.now
    return fleet


def test_refused_requests_have_the_scaler_woken_once_a_slot_and_cost_few_writes() -> None:
    table = Table(hint=EMPTY)
    (process,) = at_a_ceiling(table, 1)
    # a process whose clock is driven waits for the others' pulses while it is elected
    slots = (process.now - BEGAN) // 10
    assert slots - 1 <= len(process.coordinator.woken) <= slots + 1
    assert table.elections == len(process.coordinator.woken)
    assert table.writes <= 2 * slots


def test_nobody_stands_for_election_where_the_answer_shows_that_somebody_was_elected() -> None:
    table = Table(hint=EMPTY)
    fleet = at_a_ceiling(table, 5)
    slots = (max(process.now for process in fleet) - BEGAN) // 10
    assert slots - 5 <= sum(len(process.coordinator.woken) for process in fleet) <= slots + 1
    # at the beginning of a minute, its item is not known yet
    assert table.lost <= 4 * (slots / 6 + 1)
    assert table.writes <= 5 * 2 * slots


def test_nobody_asks_for_what_is_not_to_be_had_and_refused_requests_are_told_slot_by_slot() -> None:
    table = Table(hint=replace(EMPTY, is_most=True))
    fleet = at_a_ceiling(table, 3)
    assert [process.coordinator.woken for process in fleet] == [[], [], []]
    assert table.elections == 0
    assert table.writes <= 3 * (MINUTES * 6 + 1)


def test_refused_requests_are_told_at_once_unless_the_scaler_has_just_raised() -> None:
    def writes(slots_ago: int) -> int:
        """Pulses of five seconds within a slot, in which requests are refused and no election is seen."""
        process = Process(Table(hint=replace(HINT, slot=SLOT + 2 - slots_ago)))
        process.ask(10, seconds=11)
        before = process.table.writes
        for _ in range(50):
            process.ask(1, seconds=0.1, refused=True)
        return process.table.writes - before

    # help takes 17 seconds, and was granted in the slot after the hint's; one pulse is of the slot before
    assert [writes(slots_ago) for slots_ago in (0, 1, 2, 3, 4)] == [1, 1, 1, 4, 4]


def calm(table: Table, processes: int, minutes: int) -> list[Process]:
    fleet = [Process(table, now=BEGAN, spread=1.5 * number / processes) for number in range(processes)]
    for _ in range(minutes * 60):
        for process in fleet:
            process.pulse.counts.add("orders", int(process.now) // 10, READ, 0.1)
            process.ask(0.1, seconds=1)
    return fleet


def test_target_that_the_hints_leave_out_asks_for_no_help() -> None:
    table = Table(hint=HINT)
    fleet = calm(table, 10, 10)
    assert [process.coordinator.woken for process in fleet] == [[]] * 10
    assert table.elections == 0


def test_fleet_without_any_hint_asks_for_help_once_in_five_minutes() -> None:
    table = Table(hint=None)
    fleet = calm(table, 10, 30)
    assert 6 <= sum(len(process.coordinator.woken) for process in fleet) <= 7
    assert table.elections <= 10 * 7
    at_it = Table(hint=None)
    assert sum(len(process.coordinator.woken) for process in at_a_ceiling(at_it, 3)) <= 3
    assert at_it.writes <= 3 * (MINUTES * 6 + 1)


@pytest.mark.parametrize(
    "hint",
    [
        "7",
        "[" * 100_000,
        json.dumps({"w": [SLOT - 1, 10**400, 6_000, 100, 17]}),
        json.dumps({"w": [SLOT - 1, 100, 6_000, 0, 17]}),
        '{"w":[1e400,1,1,1,1]}',
        json.dumps({"w": [10**9, 100, 6_000, 100, 17]}),
    ],
    ids=["number", "deep", "huge capacity", "no coverage", "infinite slot", "a slot to come"],
)
def test_hint_that_makes_no_sense_is_as_none(hint: str, caplog: pytest.LogCaptureFixture) -> None:
    process = Process(Table(hint=hint))
    assert process.coordinator.woken == ["pulse orders"]
    before = process.table.writes
    for _ in range(70):
        process.ask(100, seconds=1)
    assert process.table.writes - before >= 2
    assert process.coordinator.woken == ["pulse orders"]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_hint_of_a_later_version_is_read_as_far_as_it_is_known() -> None:
    process = Process(Table(hint=json.dumps({"w": [SLOT - 1, 100, 6_000, 100, 17, 60, 0, 5, "new"]})))
    assert process.coordinator.woken == []
    process.surge(12)
    assert process.coordinator.woken == ["pulse orders"]


@pytest.mark.parametrize("woken", ["9" * 38, "1E+30", "-1", str(SLOT + 60), str(SLOT + 5)])
def test_nobody_can_be_kept_from_asking_by_a_slot_that_is_none_of_the_minute(woken: str) -> None:
    class Marked(Table):
        """Somebody has written who was elected."""

        def update_item(self, **request: Any) -> dict[str, Any]:
            if "ConditionExpression" not in request:
                found = super().update_item(**request)
                return {"Attributes": found["Attributes"] | {"woken": {"N": woken}}}
            condition = request["ConditionExpression"]
            assert condition == "attribute_not_exists(#woken) OR #woken < :slot OR #woken > :next"
            return super().update_item(**request)

    process = Process(Marked(hint=EMPTY))
    process.surge(12)
    assert process.coordinator.woken == ["pulse orders"]


def test_client_that_marks_every_slot_as_woken_delays_help_by_a_minute_at_most() -> None:
    class Silencing(Table):
        """In each slot somebody writes, before anybody else, that he was elected in it, and wakes nobody."""

        def update_item(self, **request: Any) -> dict[str, Any]:
            if "ConditionExpression" in request:
                raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "UpdateItem")
            return super().update_item(**request)

    process = Process(Silencing(hint=EMPTY))
    woken_at = []
    for second in range(5 * 60):
        process.ask(12, seconds=1, refused=True)
        if process.coordinator.woken:
            woken_at.append(second)
            process.coordinator.woken.clear()
    assert 4 <= len(woken_at) <= 5
    assert woken_at[0] <= 100
    assert all(later - earlier <= 70 for earlier, later in itertools.pairwise(woken_at))


def test_election_leaves_an_item_that_expires() -> None:
    class Noted(Table):
        """Keeps what is asked."""

        def update_item(self, **request: Any) -> dict[str, Any]:
            self.asked = request
            return {}

    table = Noted()
    assert FleetTable(table, "pulses", "orders").is_elected(SLOT)
    assert table.asked["UpdateExpression"] == "SET #woken = :slot, #expires = :expires"
    assert table.asked["ExpressionAttributeValues"][":expires"] == {"N": str(int(BEGAN) + 3_600)}


def test_fleet_of_eight_shards_elects_one_process() -> None:
    table = Table()
    fleets = [FleetTable(table, "pulses", "orders", shard=shard) for shard in (3, 0, 7, 7, 0, 1, 2, 4, 5, 6)]
    for slot in (SLOT, SLOT + 1):
        # the first of a shard stands in the first shard's item too
        assert [fleet.is_elected(slot) for fleet in fleets] == [True] + [False] * 9
    assert table.elections == 2 * (10 + 7)


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ThrottlingException"])
def test_process_asks_where_the_first_shard_is_too_full_to_elect_in(code: str) -> None:
    class Full(Table):
        """The first shard takes no more."""

        def update_item(self, **request: Any) -> dict[str, Any]:
            if request["Key"]["table"]["S"] == "pulse#orders":
                raise ClientError({"Error": {"Code": code}}, "UpdateItem")
            return super().update_item(**request)

    fleets = [FleetTable(Full(), "pulses", "orders", shard=shard) for shard in (5, 6, 0)]
    assert [fleet.is_elected(SLOT) for fleet in fleets[:2]] == [True, True]
    with pytest.raises(ClientError, match=code):
        fleets[2].is_elected(SLOT)


def test_process_that_may_not_write_the_first_shard_is_not_elected() -> None:
    class Closed(Table):
        """Only the other shards may be written."""

        def update_item(self, **request: Any) -> dict[str, Any]:
            if request["Key"]["table"]["S"] == "pulse#orders":
                raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "UpdateItem")
            return super().update_item(**request)

    with pytest.raises(ClientError, match="AccessDeniedException"):
        FleetTable(Closed(), "pulses", "orders", shard=5).is_elected(SLOT)


class Hanging(Coordinator):
    """A function that does not answer until it is let go."""

    may_answer: threading.Event

    def wake(self, table: str) -> None:
        assert self.may_answer.wait(60)
        super().wake(table)


class Telling(Table):
    """Says when it was told of the other table after somebody was elected."""

    is_told: threading.Event

    def update_item(self, **request: Any) -> dict[str, Any]:
        if self.elections and request["Key"]["table"]["S"] == "pulse#others":
            self.is_told.set()
        return super().update_item(**request)


def test_other_tables_do_not_wait_for_a_function_that_hangs() -> None:
    hanging, telling = Hanging(), Telling(hint=EMPTY)
    hanging.may_answer, telling.is_told = threading.Event(), threading.Event()
    now = [BEGAN]
    pulse = driven_pulse(telling, hanging, lambda: now[0], _spread=0.5)
    # the clock goes on until the thread has asked for help for one table, and then has told of the other
    while not telling.is_told.wait(0.01):
        now[0] += 1
        assert now[0] < BEGAN + 6_000
        pulse.counts.add("others" if telling.elections else "orders", int(now[0]) // 10, WRITE, 9_000.0)
        pulse.meter.notice()
    assert hanging.woken == []
    hanging.may_answer.set()
    pulse.stop()


def test_amounts_of_a_table_with_many_indexes_are_told_in_expressions_of_less_than_4_kb() -> None:
    table = Table()
    lengths: list[int] = []
    tell = table.update_item

    def update_item(**request: Any) -> dict[str, Any]:
        lengths.append(len(request["UpdateExpression"]))
        return tell(**request)

    table.update_item = update_item  # type: ignore[method-assign]
    indexes = [None, *(f"by_attribute_{number:02}" for number in range(20))]
    amounts = {
        (SLOT // 6 * 6 + slot, (index, dimension), is_refused): 7.0
        for slot, index, dimension, is_refused in itertools.product(range(6), indexes, Dimension, (False, True))
    }
    FleetTable(table, "pulses", "orders").add(dict(amounts))
    assert len(lengths) == 3
    assert max(lengths) < 4 * 1_024
    (item,) = table.items.values()
    assert sum(float(units["N"]) for name, units in item.items() if name != "hint") == 7 * len(amounts)
