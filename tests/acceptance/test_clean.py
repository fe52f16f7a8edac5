"""CLEAN=yes: each ledger is tried, whatever becomes of the others."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from acceptance.account import AccountError
from acceptance.clean import clean, tell_unfinished
from acceptance.ledger import Ledger
from tests.acceptance.fake_place import FakePlace, Pages, Stacks, Tables, place_of

AT = datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC)
PREFIX, OLD = "HwAccept20310304050607", "HwAccept20310202050607"


def _ledger(build: Path, *, profile: str = "trial", at: datetime = AT) -> Ledger:
    ledger = Ledger.begin(build, at, account="123456789012", region="eu-west-1", profile=profile)
    ledger.add_table(f"{ledger.prefix}-raises")
    return ledger


def _clean(build: Path, place: FakePlace) -> tuple[int, list[str]]:
    output = io.StringIO()

    def open_place(profile: str, account: str, region: str) -> FakePlace:
        if profile == "gone":
            raise AccountError("profile 'gone' cannot be used")
        assert (profile, account, region) == ("trial", "123456789012", "eu-west-1")
        return place

    status = clean(Console(file=output, soft_wrap=True), build, open_place)
    return status, output.getvalue().splitlines()


def test_ledger_that_cannot_be_reached_is_named_and_the_others_are_cleaned(tmp_path: Path) -> None:
    _ledger(tmp_path, profile="gone", at=AT - timedelta(days=30))
    _ledger(tmp_path)
    tables = Tables([f"{PREFIX}-raises"])
    assert _clean(tmp_path, place_of(Stacks({}), tables)) == (
        1,
        [
            f"{PREFIX} in account 123456789012, eu-west-1",
            f"delete table {PREFIX}-raises",
            f"left: {OLD}: profile 'gone' cannot be used",
        ],
    )
    assert tables.names == []
    (left,) = Ledger.unfinished(tmp_path)
    assert isinstance(left, Ledger)
    assert left.prefix == OLD


def test_without_ledgers_it_says_that_no_account_was_looked_at(tmp_path: Path) -> None:
    said = f"no ledger of an unfinished run below {tmp_path}; no account was looked at"
    assert _clean(tmp_path, FakePlace()) == (0, [said])


def test_run_that_goes_on_is_not_cleaned(tmp_path: Path) -> None:
    running = _ledger(tmp_path)
    assert running.lock()
    said = f"left: {PREFIX}: its run goes on in another terminal; wait for its end, or interrupt it there"
    assert _clean(tmp_path, FakePlace()) == (1, [said])
    running.unlock()


def test_what_no_ledger_lists_is_named_until_it_is_gone(tmp_path: Path) -> None:
    _ledger(tmp_path)
    place = place_of(Stacks({}), Tables([]))
    listed = [{"TableNames": list[str]()}]
    place.clients["dynamodb"].pages["list_tables"] = listed
    place.clients["cloudwatch"] = Pages({"list_dashboards": [{"DashboardEntries": [{"DashboardName": f"{PREFIX}-d"}]}]})
    status, told = _clean(tmp_path, place)
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
    _ledger(tmp_path).add_stack(f"{PREFIX}-BulkLoad")
    output = io.StringIO()
    tell_unfinished(Console(file=output, soft_wrap=True), tmp_path)
    assert output.getvalue() == (
        f"not deleted in account 123456789012, eu-west-1: stack {PREFIX}-BulkLoad, table {PREFIX}-raises; "
        "run: make acceptance CLEAN=yes\n"
    )
