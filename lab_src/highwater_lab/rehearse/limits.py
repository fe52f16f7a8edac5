"""Limits that a rehearsal must keep, for continuous integration."""

from __future__ import annotations

from dataclasses import dataclass

from highwater_lab.rehearse.rehearsal import Rehearsal


@dataclass(frozen=True, slots=True)
class Passed:
    """A limit that was passed.

    Attributes:
        what: What is limited.
        got: What came out.
        allowed: The limit.
        text: The sentence for a person.
    """

    what: str
    got: float
    allowed: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is allowed of what is declared.

    Attributes:
        max_throttled_percent: Percent of the units asked for that may be throttled, `None` for any.
        max_cost_per_month: USD a month that it may cost, `None` for any.
    """

    max_throttled_percent: float | None = None
    max_cost_per_month: float | None = None

    def passed(self, rehearsal: Rehearsal) -> tuple[Passed, ...]:
        """The limits that were passed."""
        found = []
        throttled, cost = rehearsal.throttled_percent, rehearsal.cost_per_month
        if self.max_throttled_percent is not None and throttled > self.max_throttled_percent:
            found.append(
                Passed(
                    "throttled",
                    throttled,
                    self.max_throttled_percent,
                    f"{throttled:.4g} % of the units asked for are throttled, allowed are "
                    f"{self.max_throttled_percent:g} %",
                )
            )
        if self.max_cost_per_month is not None and cost > self.max_cost_per_month:
            found.append(
                Passed(
                    "cost",
                    cost,
                    self.max_cost_per_month,
                    f"it costs ${cost:,.2f} a month, allowed are ${self.max_cost_per_month:,.2f}",
                )
            )
        return tuple(found)
