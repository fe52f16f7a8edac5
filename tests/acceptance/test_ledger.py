"""The list of what a run creates: on disk before it is created, until it is deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from acceptance.ledger import Ledger

AT = datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC)


def _begin(build: Path, profile: str = "trial") -> Ledger:
    return Ledger.begin(build, AT, account="123456789012", region="eu-west-1", profile=profile)


def test_what_a_run_made_is_found_again_until_it_is_deleted(tmp_path: Path) -> None:
    ledger = _begin(tmp_path)
    assert ledger.prefix == "HwAccept20310304050607"
    assert list(Ledger.unfinished(tmp_path)) == []
    ledger.add_stack("a-stack")
    ledger.add_stack("a-stack")
    ledger.add_table("a-table")
    (found,) = Ledger.unfinished(tmp_path)
    assert found == ledger
    assert (found.profile, found.account, found.region) == ("trial", "123456789012", "eu-west-1")
    assert (found.stacks, found.tables) == (["a-stack"], ["a-table"])

    found.remove("a-stack")
    (left,) = Ledger.unfinished(tmp_path)
    assert (left.stacks, left.tables) == ([], ["a-table"])
    left.remove("a-table")
    assert list(Ledger.unfinished(tmp_path)) == []


def test_local_cloud_needs_no_later_deletion(tmp_path: Path) -> None:
    _begin(tmp_path, profile="").add_stack("gone-with-the-cloud")
    assert list(Ledger.unfinished(tmp_path)) == []
