"""The tables with boosts, which each tick reviews: so a lease that begins or ends changes a floor within a minute."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from highwater.aws.coordinator_table import LeasesUnavailableError, LeaseTable, TableLeases
from highwater.aws.parameters import ScaledPlans
from highwater.core.scaler.metrics import ScalerMetric
from highwater.handlers.scaler.gather import RunOutcome

_THREADS = 8


@dataclass(slots=True)
class BoostedTables:
    """The tables with boosts in one tick.

    Attributes:
        leases: The coordinator's table; `None` without a coordinator, and in runs that are no ticks.
        outcome: The outcome of the run.
        listed: The labels that the coordinator's table lists: their boosts are live, booked or not lowered yet.
        due: The labels of the tables to review in this tick.
        over: The leases of those whose boosts are over, and of which no floor has a part any more.
    """

    leases: LeaseTable | None
    outcome: RunOutcome
    listed: tuple[str, ...] = ()
    due: set[str] = field(default_factory=set)
    over: dict[str, TableLeases] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the list; without it, this tick serves the boosts of tables with a full tick only."""
        if self.leases is None:
            return
        try:
            self.listed = self.leases.listed_tables()
        except LeasesUnavailableError as error:
            self.outcome.notes.append(f"the tables with boosts could not be read: {error}")
            self.outcome.count(ScalerMetric.LEASES_MISSING)

    def find_due(self, plans: ScaledPlans, at: datetime) -> None:
        """Find the listed tables to review at the aware instant *at*, and those whose boosts are over."""
        if self.leases is None or not self.listed:
            return
        managed = {plan.label for plan in plans.plans if not plan.is_released}
        with ThreadPoolExecutor(_THREADS) as pool:
            found = pool.map(partial(_find, self.leases), self.listed)
            for label, known in zip(self.listed, found, strict=True):
                if known is None:
                    # the review reads them again, and notes why it lowers nothing
                    self.due.add(label)
                    continue
                # the deploy that removed a table has set its floors
                has_left = label not in managed and not plans.unreadable
                is_over = all(lease.ends <= at for lease in known.leases)
                if is_over and (has_left or not known.boosted):
                    self.over[label] = known
                # once more where all is over: a run that began before the end may have raised the floor again
                if is_over or known.boosted or any(lease.is_live(at) for lease in known.leases):
                    self.due.add(label)

    def unlist(self, at: datetime) -> None:
        """Unlist the tables whose boosts are over, once they are reviewed; what fails is done by a later tick."""
        for label, known in self.over.items():
            if self.leases is not None and label not in self.outcome.failed and label not in self.outcome.left:
                with suppress(LeasesUnavailableError):
                    self.leases.unlist_table(label, known, at)


def _find(leases: LeaseTable, label: str) -> TableLeases | None:
    try:
        return leases.read(label)
    except LeasesUnavailableError:
        return None
