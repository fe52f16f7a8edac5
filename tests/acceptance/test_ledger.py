"""The list of what a run creates: on disk before it is created, until nothing is found of the run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from acceptance.ledger import Ledger
from tests.acceptance.fake_place import ledger_of
from tests.cdk_cli import ROOT


def _only(build: Path) -> Ledger:
    (found,) = Ledger.unfinished(build)
    return found


def test_what_a_run_made_is_found_again_until_nothing_is_left_of_it(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    assert ledger.prefix == "HwAccept20310304050607"
    assert Ledger.unfinished(tmp_path) == []
    ledger.add("first")
    ledger.add("second")
    ledger.add("first")
    found = _only(tmp_path)
    assert found == ledger
    assert (found.profile, found.account, found.region) == ("trial", "123456789012", "eu-west-1")
    assert found.stacks == ["first", "second"]

    found.remove("first")
    left = _only(tmp_path)
    assert left.stacks == ["second"]
    left.remove("second")
    # something that it does not list may be left, which only a look in the account can tell
    assert _only(tmp_path).stacks == []
    left.finish()
    assert Ledger.unfinished(tmp_path) == []


def test_local_cloud_needs_no_later_deletion(tmp_path: Path) -> None:
    ledger_of(tmp_path, "gone-with-the-cloud", profile="")
    assert Ledger.unfinished(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ('{"account": ', "Expecting value: line 1 column 13 (char 12)"),
        ("[]", "acceptance.ledger.Ledger() argument after ** must be a mapping, not list"),
        ('{"account": "1", "colour": "red"}', "Ledger.__init__() got an unexpected keyword argument 'colour'"),
    ],
    ids=["empty", "torn", "list", "other"],
)
def test_ledger_that_cannot_be_read_says_what_to_do_and_hides_no_other(tmp_path: Path, text: str, why: str) -> None:
    torn = tmp_path / "HwAccept20300101000000" / "ledger.json"
    torn.parent.mkdir()
    torn.write_text(text)
    ledger_of(tmp_path, "a-stack")
    broken, found = Ledger.unfinished(tmp_path)
    assert broken.unreadable == (
        f"ledger {torn} cannot be read: {why}; delete the stacks whose names begin with HwAccept20300101000000 in the "
        "account yourself, and then this file"
    )
    assert (found.unreadable, found.stacks) == ("", ["a-stack"])


def test_ledger_belongs_to_one_process_at_a_time(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, "a-stack")
    other = _only(tmp_path)
    with ledger.locked() as is_ours, other.locked() as is_theirs:
        assert (is_ours, is_theirs) == (True, False)
    with other.locked() as is_theirs:
        assert is_theirs


def _clean(folder: Path) -> tuple[int, str]:
    command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "clean"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.splitlines()[0] if done.stderr else ""


def test_make_clean_is_refused_while_a_run_in_an_account_is_unfinished(tmp_path: Path) -> None:
    """Nothing else knows what a run in an account made."""
    ledger = ledger_of(tmp_path / "build" / "acceptance", "a-stack")
    file = "build/acceptance/HwAccept20310304050607/ledger.json"
    said = (
        f"make: runs in accounts may have left something, and only {file} knows what; first: make acceptance CLEAN=yes"
    )
    assert _clean(tmp_path) == (2, said)
    (tmp_path / file).write_text("")
    assert _clean(tmp_path) == (2, said)
    ledger.finish()
    assert _clean(tmp_path) == (0, "")
    assert not (tmp_path / "build").exists()


def test_make_clean_removes_ledgers_of_local_clouds(tmp_path: Path) -> None:
    ledger_of(tmp_path / "build" / "acceptance", "a-stack", profile="")
    assert _clean(tmp_path) == (0, "")
    assert not (tmp_path / "build").exists()
