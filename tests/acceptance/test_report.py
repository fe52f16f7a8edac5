"""The files that a run leaves: report.md and facts.json."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from acceptance.record import Check, Fact, Record
from acceptance.report import Circumstances, write_report

ACCOUNT = "123456789012"
BEGUN, ENDED = (datetime(2031, 3, 4, hour, 6, tzinfo=UTC) for hour in (5, 8))
RECORD = Record(
    [
        Check("windows", "floor in the window", "40", "40", holds=True),
        Check("surges", "bounds | of table write", "(40, 90)", "(13, 90)", holds=False),
    ],
    [Fact("raises", "raise_quiet_shown_seconds", 31.5, "s", "seconds to capacity:", "35 s")],
)


def _write(folder: Path, *, is_whole: bool = True) -> str:
    parts = ["windows", "surges", "raises"] if is_whole else []
    write_report(folder, RECORD, Circumstances("AWS account", ACCOUNT, "eu-west-1", BEGUN, ENDED, parts, is_whole))
    return (folder / "report.md").read_text()


def test_report_tells_what_does_not_hold_before_all_else(tmp_path: Path) -> None:
    assert _write(tmp_path / "new").splitlines() == [
        "# Acceptance",
        "",
        "AWS account, eu-west-1, 2031-03-04 05:06 to 08:06 UTC by its clock: 1 of 2 checks hold.",
        "Parts: windows, surges, raises.",
        "",
        "## What does not hold",
        "",
        "| part | what | planned | actually |",
        "|---|---|---|---|",
        "| surges | bounds \\| of table write | (40, 90) | (13, 90) |",
        "",
        "## What was measured",
        "",
        "| part | what | value | the lab assumes |",
        "|---|---|---|---|",
        "| raises | seconds to capacity: | 31.5 s | 35 s |",
        "",
        "## What holds",
        "",
        "| part | what | value |",
        "|---|---|---|",
        "| windows | floor in the window | 40 |",
    ]


def test_report_of_a_run_that_ended_early_says_so(tmp_path: Path) -> None:
    assert "Parts: none. The run ended before its end." in _write(tmp_path, is_whole=False)


def test_facts_are_for_programs(tmp_path: Path) -> None:
    _write(tmp_path)
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["facts"] == [
        {
            "part": "raises",
            "name": "raise_quiet_shown_seconds",
            "value": 31.5,
            "unit": "s",
            "question": "seconds to capacity:",
            "assumed": "35 s",
        }
    ]
    assert [check["holds"] for check in facts["checks"]] == [True, False]
    assert (facts["place"], facts["region"], facts["is_whole"]) == ("AWS account", "eu-west-1", True)


def test_number_of_the_account_is_in_neither_file(tmp_path: Path) -> None:
    queue = f"queue https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/HwAccept-DLQ"
    refused = f"arn:aws:iam::{ACCOUNT}:user/me is not authorized"
    record = Record(
        [Check("deletion", "what is left", "nothing", queue, holds=False)],
        [Fact("rules", "role_policies_refusal", refused, "", "refused:", "")],
    )
    write_report(tmp_path, record, Circumstances("AWS account", ACCOUNT, "eu-west-1", BEGUN, ENDED, [], False))
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["checks"][0]["actual"] == "queue https://sqs.eu-west-1.amazonaws.com/ACCOUNT/HwAccept-DLQ"
    assert facts["facts"][0]["value"] == "arn:aws:iam::ACCOUNT:user/me is not authorized"
    assert (
        "| deletion | what is left | nothing | queue https://sqs.eu-west-1.amazonaws.com/ACCOUNT/HwAccept-DLQ |"
        in (tmp_path / "report.md").read_text().splitlines()
    )
    assert ACCOUNT not in (tmp_path / "report.md").read_text()
