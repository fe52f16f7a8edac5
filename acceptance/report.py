"""Writes what a run found: report.md to read, facts.json for programs.

Both have `ACCOUNT` where a text of AWS has the account's number, so that they can be shown to others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from acceptance.record import Record

REPORT: Final = "report.md"
FACTS: Final = "facts.json"
_PLACEHOLDER: Final = "ACCOUNT"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """When and where a run was.

    Attributes:
        kind: `local cloud` or `AWS account`.
        account: The account's number.
        region: The region.
        begun: When it began, by the place's clock.
        ended: When it ended, likewise.
        parts: Names of the parts that ran to their end.
        is_whole: Whether all parts that were asked for did.
    """

    kind: str
    account: str
    region: str
    begun: datetime
    ended: datetime
    parts: Sequence[str]
    is_whole: bool


def write_report(folder: Path, record: Record, circumstances: Circumstances) -> None:
    """Write both files to *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / REPORT, "\n".join(_lines(record, circumstances)), circumstances.account)
    document = {
        "place": circumstances.kind,
        "region": circumstances.region,
        "begun": circumstances.begun.isoformat(),
        "ended": circumstances.ended.isoformat(),
        "parts": list(circumstances.parts),
        "is_whole": circumstances.is_whole,
        "checks": [asdict(check) for check in record.checks],
        "facts": [asdict(fact) for fact in record.facts],
    }
    _write(folder / FACTS, json.dumps(document, indent=2), circumstances.account)


def _write(file: Path, text: str, account: str) -> None:
    file.write_text(text.replace(account, _PLACEHOLDER) + "\n")


def _lines(record: Record, at: Circumstances) -> list[str]:
    held = len(record.checks) - len(record.broken)
    lines = [
        "# Acceptance",
        "",
        f"{at.kind}, {at.region}, {at.begun:%Y-%m-%d %H:%M} to {at.ended:%H:%M} UTC by its clock: "
        f"{held} of {len(record.checks)} checks hold.",
        f"Parts: {', '.join(at.parts) or 'none'}." + ("" if at.is_whole else " The run ended before its end."),
        "",
    ]
    if record.broken:
        lines += ["## What does not hold", "", "| part | what | planned | actually |", "|---|---|---|---|"]
        lines += [_row(c.part, c.subject, c.planned, c.actual) for c in record.broken]
        lines.append("")
    lines += ["## What was measured", "", "| part | what | value | the lab assumes |", "|---|---|---|---|"]
    lines += [_row(f.part, f.question, f"{f.value} {f.unit}".strip(), f.assumed) for f in record.facts]
    lines += ["", "## What holds", "", "| part | what | value |", "|---|---|---|"]
    lines += [_row(c.part, c.subject, c.actual) for c in record.checks if c.holds]
    return lines


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
