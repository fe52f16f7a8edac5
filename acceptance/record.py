"""What a run finds: checks, which hold or do not, and facts, which are measured."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Check:
    """Something that Highwater promises, and what was seen.

    Attributes:
        part: The part of the suite.
        subject: What was looked at.
        planned: The value that was promised, as text.
        actual: The value that was seen, as text.
        holds: Whether the promise was kept.
    """

    part: str
    subject: str
    planned: str
    actual: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that AWS does and does not document.

    Attributes:
        part: The part of the suite that measured it.
        name: Its name in facts.json.
        value: What was measured.
        unit: The unit of a number, such as `s`; empty for a text.
        question: What the fact answers.
        assumed: What the lab's model takes for granted, as text.
    """

    part: str
    name: str
    value: int | float | str | None
    unit: str
    question: str
    assumed: str


@dataclass(slots=True)
class Record:
    """The checks and facts of one run."""

    checks: list[Check] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    @property
    def broken(self) -> list[Check]:
        """The checks that do not hold."""
        return [check for check in self.checks if not check.holds]
