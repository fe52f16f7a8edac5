"""The report that a run leaves."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from acceptance.report import Check, Report
from tests.acceptance.fake_place import ACCOUNT

BEGUN, ENDED = (datetime(2031, 3, 4, hour, 6, tzinfo=UTC) for hour in (5, 8))
WHERE = f"account {ACCOUNT}, eu-west-1"
CHECKS = [
    Check("windows", "floor in the window", "40", "40", holds=True),
    Check("surge", "bounds | of table write", "(40, 90)", "(13, 90)", holds=False),
]
Facts = list[tuple[str, str, str, str]]
FACTS: Facts = [("raises", "raise_quiet_shown_seconds", "31", "35")]


def _write(folder: Path, done: list[str], *, checks: list[Check] = CHECKS, facts: Facts = FACTS) -> str:
    report = Report(where=WHERE, account=ACCOUNT, begun=BEGUN, done=done, checks=checks, facts=facts)
    report.is_whole = bool(done)
    file = report.write(folder, ENDED)
    assert file == folder / "report.md"
    return file.read_text()


def test_report_tells_what_does_not_hold_before_all_else(tmp_path: Path) -> None:
    assert _write(tmp_path / "new", ["windows", "surge", "raises"]).splitlines() == [
        "# Acceptance",
        "",
        "account ACCOUNT, eu-west-1, 2031-03-04 05:06 to 08:06 UTC by its clock: 1 of 2 checks hold.",
        "Parts: windows, surge, raises.",
        "",
        "## What does not hold",
        "",
        "| part | what | planned | actually |",
        "|---|---|---|---|",
        "| surge | bounds \\| of table write | (40, 90) | (13, 90) |",
        "",
        "## What was measured",
        "",
        "| part | fact | value | the lab assumes |",
        "|---|---|---|---|",
        "| raises | `raise_quiet_shown_seconds` | 31 | 35 |",
        "",
        "## What holds",
        "",
        "| part | what | value |",
        "|---|---|---|",
        "| windows | floor in the window | 40 |",
    ]


def test_report_of_a_run_that_ended_early_says_so(tmp_path: Path) -> None:
    assert "Parts: none. The run ended before its end." in _write(tmp_path, [])


def test_number_of_the_account_is_nowhere_in_it(tmp_path: Path) -> None:
    queue = f"queue https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/HwAccept-DLQ"
    refused = f"arn:aws:iam::{ACCOUNT}:user/me is not authorized"
    checks = [Check("deletion", "what is left", "nothing", queue, holds=False)]
    text = _write(tmp_path, [], checks=checks, facts=[("index_build", "index_build_words", refused, "another")])
    lines = text.splitlines()
    assert (
        "| deletion | what is left | nothing | queue https://sqs.eu-west-1.amazonaws.com/ACCOUNT/HwAccept-DLQ |"
        in lines
    )
    assert "| index_build | `index_build_words` | arn:aws:iam::ACCOUNT:user/me is not authorized | another |" in lines
    assert ACCOUNT not in text
