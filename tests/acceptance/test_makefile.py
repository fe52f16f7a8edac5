"""`make clean` keeps the ledgers of runs in accounts, as nothing else knows what they made."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

from acceptance.ledger import Ledger
from tests.cdk_cli import ROOT

AT = datetime(2031, 3, 4, 5, 6, 7, tzinfo=UTC)


def _clean(folder: Path) -> tuple[int, str]:
    command = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "clean"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.splitlines()[0] if done.stderr else ""


def _begin(folder: Path, profile: str) -> Ledger:
    build = folder / "build" / "acceptance"
    ledger = Ledger.begin(build, AT, account="123456789012", region="eu-west-1", profile=profile)
    ledger.add("a-stack")
    return ledger


def test_clean_is_refused_while_a_run_in_an_account_is_unfinished(tmp_path: Path) -> None:
    ledger = _begin(tmp_path, "trial")
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


def test_clean_removes_ledgers_of_local_clouds(tmp_path: Path) -> None:
    _begin(tmp_path, "")
    assert _clean(tmp_path) == (0, "")
    assert not (tmp_path / "build").exists()
