"""What a run finds: checks, which hold or do not, and facts, which are measured; and the file that tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Check:
    """Something that Highwater promises: what was looked at, what was promised and seen, and whether that holds."""

    part: str
    subject: str
    planned: str
    actual: str
    holds: bool


@dataclass(slots=True, kw_only=True)
class Report:
    """The checks of one run, the parts that ran to their end, whether all did that were asked for, and the facts:
    what AWS does and does not document, by part, name in docs/acceptance.md, value, and what the lab assumes.

    Times are the place's. The file has `ACCOUNT` instead of the account's number, so that it can be shown to others.
    """

    where: str
    account: str
    begun: datetime
    done: list[str] = field(default_factory=list)
    is_whole: bool = False
    checks: list[Check] = field(default_factory=list)
    facts: list[tuple[str, str, str, str]] = field(default_factory=list)

    @property
    def broken(self) -> list[Check]:
        """The checks that do not hold."""
        return [check for check in self.checks if not check.holds]

    def write(self, folder: Path, ended: datetime) -> Path:
        """Write the file to *folder* and return it."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "report.md"
        file.write_text("\n".join(self._lines(ended)).replace(self.account, "ACCOUNT") + "\n")
        return file

    def _lines(self, ended: datetime) -> list[str]:
        held = len(self.checks) - len(self.broken)
        lines = [
            "# Acceptance",
            "",
            f"{self.where}, {self.begun:%Y-%m-%d %H:%M} to {ended:%H:%M} UTC by its clock: "
            f"{held} of {len(self.checks)} checks hold.",
            f"Parts: {', '.join(self.done) or 'none'}." + ("" if self.is_whole else " The run ended before its end."),
            "",
        ]
        if self.broken:
            rows = [(check.part, check.subject, check.planned, check.actual) for check in self.broken]
            lines += [*_table("What does not hold", "part | what | planned | actually", rows), ""]
        facts = [(part, f"`{name}`", value, assumed) for part, name, value, assumed in self.facts]
        lines += [*_table("What was measured", "part | fact | value | the lab assumes", facts), ""]
        kept = [(check.part, check.subject, check.actual) for check in self.checks if check.holds]
        return lines + _table("What holds", "part | what | value", kept)


def _table(title: str, heads: str, rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"## {title}", "", f"| {heads} |", f"|{'---|' * len(heads.split('|'))}", *(_row(*row) for row in rows)]


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
