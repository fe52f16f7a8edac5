"""Rules for names, in the words with which services refuse what does not fit.

The limits are those of the services' API references, read 2026-11; the words are those that users report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NameRule:
    """What a service asks of a name.

    Attributes:
        place: What the service calls the member.
        most: How many characters it has at most.
        characters: The pattern that it has to match as the service writes it, `None` where any character will do.
    """

    place: str
    most: int
    characters: str | None = None

    def refusal(self, name: str) -> str | None:
        """The service's text for a name that does not fit, `None` for one that does."""
        unmet = [f"Value '{name}' at '{self.place}' failed to satisfy constraint: {each}" for each in self._unmet(name)]
        if not unmet:
            return None
        return f"{len(unmet)} validation error{'s' if len(unmet) > 1 else ''} detected: {'; '.join(unmet)}"

    def _unmet(self, name: str) -> Iterator[str]:
        if len(name) > self.most:
            yield f"Member must have length less than or equal to {self.most}"
        if self.characters is not None and not re.fullmatch(self.characters, name, re.ASCII):
            yield f"Member must satisfy regular expression pattern: {self.characters}"


@dataclass(frozen=True, slots=True)
class IamNameRule:
    """What IAM asks of a name, which has its own words for characters."""

    place: str
    most: int

    def refusal(self, name: str) -> str | None:
        """IAM's text for a name that does not fit, `None` for one that does."""
        too_long = NameRule(self.place, self.most).refusal(name)
        if too_long is not None or re.fullmatch(r"[\w+=,.@-]+", name, re.ASCII):
            return too_long
        return (
            f"The specified value for {self.place} is invalid. It must contain only alphanumeric characters and/or the "
            "following: +=,.@_-"
        )
