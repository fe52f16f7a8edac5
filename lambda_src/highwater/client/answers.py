"""What the coordinator answers: what a job gets, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class GrantedTarget:
    """What a boost gets of one target.

    Attributes:
        target: The table or index and dimension, such as `table write`.
        asked: The units per second that were asked for.
        units: Those that were granted, 0 for none.
        limits: What left it so many, a sentence each; empty if it got all.
        usd_per_hour: What the granted units cost per hour in US dollars; `None` where the price is not known.
    """

    target: str
    asked: int
    units: int
    limits: tuple[str, ...]
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class BoostAnswer:
    """The answer to a request for a boost.

    Attributes:
        id: The boost's id, for `renew`, `release` and `highwater unboost`.
        table: The table's name.
        outcome: `whole`, `part` or `refused`.
        start: The instant from which it counts.
        end: The instant at which it ends by itself.
        targets: What it gets, the table first; its indexes follow where it writes.
        notes: What the job should know, such as growth that comes before the capacity.
    """

    id: str
    table: str
    outcome: str
    start: datetime
    end: datetime
    targets: tuple[GrantedTarget, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> BoostAnswer:
        """Read the coordinator's JSON."""
        return cls(
            document["id"],
            document["table"],
            document["outcome"],
            datetime.fromisoformat(document["start"]),
            datetime.fromisoformat(document["end"]),
            tuple(
                GrantedTarget(
                    each["target"],
                    each["asked"],
                    each["units"],
                    tuple(limit["sentence"] for limit in each["limits"]),
                    each["usd_per_hour"],
                )
                for each in document["targets"]
            ),
            tuple(document.get("notes", ())),
        )

    @property
    def usd_per_hour(self) -> float | None:
        """What it costs per hour in US dollars, of all its targets; `None` where a price is not known."""
        prices = [each.usd_per_hour for each in self.targets]
        return None if None in prices else sum(price for price in prices if price is not None)

    def lines(self) -> list[str]:
        """Return the answer in sentences."""
        lines = []
        for each in self.targets:
            granted = f"{each.units:,} units/s" if each.units else "nothing"
            of = "" if each.units == each.asked else f" of {each.asked:,}"
            lines.append(f"{self.table}, {each.target}: {granted}{of} until {self.end:%Y-%m-%d %H:%M:%S} UTC")
            lines.extend(f"  {limit}" for limit in each.limits)
        if self.usd_per_hour:
            lines.append(f"about {self.usd_per_hour:,.2f} USD an hour; an hour is billed at its highest capacity")
        return [*lines, *self.notes]


@dataclass(frozen=True, slots=True)
class TargetState:
    """How far one target is, in units per second.

    Attributes:
        target: The table or index and dimension, such as `table write`.
        wanted: What plan and boosts ask for now.
        floor: Its floor, `None` where no scalable target is registered.
        provisioned: Its capacity.
        is_ready: Whether it has what it is to have, and the table is not being changed.
    """

    target: str
    wanted: int
    floor: int | None
    provisioned: int
    is_ready: bool


@dataclass(frozen=True, slots=True)
class BoostState:
    """How far a boost is.

    Attributes:
        is_ready: Whether the capacity can be used.
        targets: Its targets.
        notes: What the job should know.
    """

    is_ready: bool
    targets: tuple[TargetState, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> BoostState:
        """Read the coordinator's JSON."""
        targets = tuple(
            TargetState(each["target"], each["wanted"], each["floor"], each["provisioned"], each["is_ready"])
            for each in document["targets"]
        )
        return cls(document["is_ready"], targets, tuple(document["notes"]))

    def line(self) -> str:
        """Return the state in one line: capacity of what is to be there, by target."""
        return ", ".join(f"{each.target} {each.provisioned:,} of {each.wanted:,}" for each in self.targets)
