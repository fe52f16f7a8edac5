"""Deletion: one stack that cannot be deleted keeps nothing else from it, at a run's end and later."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from acceptance.cleanup import Cleanup, CleanupError, clean_earlier_runs, tell_unfinished
from acceptance.ledger import Ledger
from acceptance.place import AccountError
from tests.acceptance.fake_place import AT, FakePlace, Pages, Stacks, Targets, ledger_of, place_of

PREFIX, OLD = "HwAccept20310304050607", "HwAccept20310202050607"
FOR_EVER = 1_000


def _lines() -> tuple[Console, io.StringIO]:
    output = io.StringIO()
    return Console(file=output, soft_wrap=True), output


def test_everything_else_is_deleted_and_one_message_names_what_is_left(tmp_path: Path) -> None:
    stacks = Stacks({"first": 0, "stuck": FOR_EVER, "kept": 0}, refused=("kept",))
    with pytest.raises(CleanupError) as failed:
        Cleanup(place_of(stacks), ledger_of(tmp_path, "first", "stuck", "kept"), Console(quiet=True)).run()
    assert str(failed.value) == (
        "not deleted: kept: An error occurred (AccessDenied) when calling the DeleteStack operation: not allowed; "
        "stuck: DELETE_FAILED for 15 minutes of trying; its events in the console say why; "
        "try again with: make acceptance CLEAN=yes"
    )
    assert stacks.status == {"first": "DELETE_COMPLETE", "stuck": "DELETE_FAILED", "kept": "CREATE_COMPLETE"}
    (left,) = Ledger.unfinished(tmp_path)
    assert left.stacks == ["stuck", "kept"]


def test_deletion_that_fails_while_an_index_is_built_is_tried_again_each_minute(tmp_path: Path) -> None:
    stacks = Stacks({"building": 9})
    place, (console, output) = place_of(stacks), _lines()
    began = place.at
    Cleanup(place, ledger_of(tmp_path, "building"), console).run()
    assert stacks.deleted == ["building"] * 10
    assert place.at - began == timedelta(minutes=9)
    assert output.getvalue().splitlines() == ["delete stack building"] * 10


@pytest.mark.parametrize("gone", [BrokenPipeError(), OSError(5, "Input/output error"), SystemExit(1)])
def test_terminal_that_is_gone_does_not_end_a_deletion(tmp_path: Path, gone: BaseException) -> None:
    class Gone(Console):
        def print(self, *_: Any, **__: Any) -> None:
            raise gone

    stacks = Stacks({"first": 0, "second": 0})
    ledger = ledger_of(tmp_path, "first", "second")
    Cleanup(place_of(stacks), ledger, Gone()).run()
    assert (stacks.deleted, ledger.stacks) == (["second", "first"], [])


def test_targets_that_a_part_registered_itself_go_after_its_table_and_no_others(tmp_path: Path) -> None:
    place = place_of(Stacks({}))
    place.clients["application-autoscaling"] = targets = Targets(tables=[f"{PREFIX}-IndexBuild-Bare", "orders"])
    Cleanup(place, ledger_of(tmp_path), Console(quiet=True)).run()
    assert targets.tables == ["orders"]


def _clean(build: Path, place: FakePlace) -> tuple[int, list[str]]:
    console, output = _lines()

    def open_place(profile: str, account: str, region: str) -> FakePlace:
        if profile == "gone":
            raise AccountError("profile 'gone' cannot be used")
        assert (profile, account, region) == ("trial", "123456789012", "eu-west-1")
        return place

    status = clean_earlier_runs(console, build, open_place)
    return status, output.getvalue().splitlines()


def test_ledger_that_cannot_be_reached_or_read_is_named_and_the_others_are_cleaned(tmp_path: Path) -> None:
    (tmp_path / "HwAccept20300101000000").mkdir()
    torn = tmp_path / "HwAccept20300101000000" / "ledger.json"
    torn.write_text("")
    ledger_of(tmp_path, "lost", profile="gone", at=AT - timedelta(days=30))
    ledger_of(tmp_path, "found")
    stacks = Stacks({"found": 0})
    assert _clean(tmp_path, place_of(stacks)) == (
        1,
        [
            f"{PREFIX} in account 123456789012, eu-west-1",
            "delete stack found",
            f"left: ledger {torn} cannot be read: Expecting value: line 1 column 1 (char 0); delete the stacks whose "
            "names begin with HwAccept20300101000000 in the account yourself, and then this file",
            f"left: {OLD}: profile 'gone' cannot be used",
        ],
    )
    assert stacks.status == {"found": "DELETE_COMPLETE"}
    assert [ledger.prefix for ledger in Ledger.unfinished(tmp_path)] == ["HwAccept20300101000000", OLD]


def test_without_ledgers_it_says_that_no_account_was_looked_at(tmp_path: Path) -> None:
    said = f"no ledger of an unfinished run below {tmp_path}; no account was looked at"
    assert _clean(tmp_path, FakePlace()) == (0, [said])


def test_run_that_goes_on_is_not_cleaned(tmp_path: Path) -> None:
    with ledger_of(tmp_path, "running").locked() as is_ours:
        assert is_ours
        said = f"left: {PREFIX}: its run goes on in another terminal; wait for its end, or interrupt it there"
        assert _clean(tmp_path, FakePlace()) == (1, [said])


def test_what_no_ledger_lists_is_named_until_it_is_gone(tmp_path: Path) -> None:
    ledger_of(tmp_path, "gone")
    place = place_of(Stacks({"gone": 0}))
    place.clients["cloudwatch"] = Pages({"list_dashboards": [{"DashboardEntries": [{"DashboardName": f"{PREFIX}-d"}]}]})
    began = place.at
    status, told = _clean(tmp_path, place)
    # alarms and the like may be listed for some minutes once they are deleted
    assert timedelta(minutes=5) < place.at - began < timedelta(minutes=6)
    assert status == 1
    assert told[-1] == (
        f"left: dashboard {PREFIX}-d: no ledger lists it; delete it yourself, then: make acceptance CLEAN=yes"
    )
    place.clients["cloudwatch"] = Pages()
    assert _clean(tmp_path, place) == (
        0,
        [f"{PREFIX} in account 123456789012, eu-west-1", "nothing is left of earlier runs"],
    )
    assert Ledger.unfinished(tmp_path) == []


def test_end_of_a_run_lists_what_is_left_and_how_to_go_on(tmp_path: Path) -> None:
    ledger_of(tmp_path, f"{PREFIX}-Surge", f"{PREFIX}-Raises")
    console, output = _lines()
    tell_unfinished(console, tmp_path)
    assert output.getvalue() == (
        f"not deleted in account 123456789012, eu-west-1: {PREFIX}-Surge, {PREFIX}-Raises; "
        "run: make acceptance CLEAN=yes\n"
    )
