"""Deletion: one thing that cannot be deleted keeps nothing else from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acceptance.cleanup import Cleanup, CleanupError
from acceptance.ledger import Ledger
from acceptance.leftovers import find_leftovers
from tests.acceptance.fake_place import Pages, Stacks, Tables, place_of

AT = datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC)
FOR_EVER = 1_000


def _ledger(build: Path, stacks: list[str], tables: list[str]) -> Ledger:
    ledger = Ledger.begin(build, AT, account="123456789012", region="eu-west-1", profile="trial")
    for stack in stacks:
        ledger.add_stack(stack)
    for table in tables:
        ledger.add_table(table)
    return ledger


def test_everything_else_is_deleted_and_one_message_names_what_is_left(tmp_path: Path) -> None:
    stacks, tables = Stacks({"first": 0, "stuck": FOR_EVER}), Tables(["kept", "gone"], refused=("kept",))
    ledger = _ledger(tmp_path, ["first", "stuck"], ["kept", "gone"])
    with pytest.raises(CleanupError) as failed:
        Cleanup(place_of(stacks, tables), ledger, lambda _: None).run()
    assert str(failed.value) == (
        "2 not deleted: stack stuck: DELETE_FAILED for 15 minutes of trying; its events in the console say why; "
        "table kept: An error occurred (AccessDeniedException) when calling the DeleteTable operation: not allowed; "
        "try again with: make acceptance CLEAN=yes"
    )
    assert (stacks.status["first"], tables.names) == ("DELETE_COMPLETE", ["kept"])
    (left,) = Ledger.unfinished(tmp_path)
    assert isinstance(left, Ledger)
    assert left.entries == ["stack stuck", "table kept"]


def test_deletion_that_fails_while_a_mark_rises_is_tried_again_each_minute(tmp_path: Path) -> None:
    stacks = Stacks({"warming": 9})
    place = place_of(stacks, Tables([]))
    began, told = place.at, list[str]()
    Cleanup(place, _ledger(tmp_path, ["warming"], []), told.append).run()
    assert stacks.deleted == ["warming"] * 10
    assert place.at - began == timedelta(minutes=9)
    assert told == ["delete stack warming"] * 10


@pytest.mark.parametrize("gone", [BrokenPipeError(), OSError(5, "Input/output error"), SystemExit(1)])
def test_terminal_that_is_gone_does_not_end_a_deletion(tmp_path: Path, gone: BaseException) -> None:
    stacks, tables = Stacks({"first": 0, "second": 0}), Tables(["one"])

    def tell(_: str) -> None:
        raise gone

    ledger = _ledger(tmp_path, ["first", "second"], ["one"])
    Cleanup(place_of(stacks, tables), ledger, tell).run()
    assert (stacks.deleted, tables.names, ledger.entries) == (["second", "first"], [], [])


def test_schedule_is_found_by_its_group() -> None:
    place = place_of(Stacks({}), Tables([]))
    group = "HwAccept20310304050607SideBySide-Boosts-Wakes-54D9860B"
    place.clients["scheduler"] = Pages(
        {
            "list_schedules": [{"Schedules": [{"Name": "0f1e", "GroupName": group}]}],
            "list_schedule_groups": [{"ScheduleGroups": [{"Name": group}, {"Name": "default"}]}],
        }
    )
    place.clients["dynamodb"] = Pages({"list_tables": [{"TableNames": ["orders"]}]})
    assert find_leftovers(place, "HwAccept20310304050607") == [f"schedule {group}/0f1e", f"schedule group {group}"]
