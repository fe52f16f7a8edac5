"""One run of the scaler over all its tables, region by region."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from highwater.aws import tagged
from highwater.aws.plans import StoredPlan, StoredPlans
from highwater.handlers.plan_cache import PlanCache
from highwater.handlers.scaled_region import ScaledRegion
from highwater.handlers.scaled_table import Clients, Outcome
from highwater.handlers.scaler_event import TICK, ScalerEvent


@dataclass(slots=True)
class ScalerRun:
    """One run.

    Attributes:
        event: What started it.
        remaining_seconds: How much time is left for it.
        dry_run: Decide, and change nothing.
        sees_tags: Whether tags choose tables too.
        regions: Where tables are looked for by tags, beside its own region.
        outcome: What it did so far.
        plan_cache: Plans of the runs before.
        clients: Those of its own region.
    """

    event: ScalerEvent
    remaining_seconds: Callable[[], float]
    dry_run: bool = False
    sees_tags: bool = False
    regions: tuple[str, ...] = ()
    outcome: Outcome = field(default_factory=Outcome)
    plan_cache: PlanCache = field(default_factory=PlanCache)
    clients: Clients = field(default_factory=Clients)

    def run(self) -> Outcome:
        """Do it all: one table's failure never touches another's, nor one region's another's.

        What fails where the plans are kept fails the run, which Lambda then tries again.
        """
        stored = self._see_plans()
        for line in stored.unreadable:
            self.outcome.notes.append(f"plan left out: {line}")
            self.outcome.count("UnreadablePlans")
        chosen = [plan for plan in stored.plans if not self.event.tables or plan.label in self.event.tables]
        by_region: dict[str | None, list[StoredPlan]] = {}
        for plan in chosen:
            by_region.setdefault(plan.region, []).append(plan)
        # its own region first
        due = sum(self._scale(region, by_region[region]) for region in sorted(by_region, key=lambda name: name or ""))
        counts = {"Tables": len(chosen), "TargetsDue": due, "TablesFailed": len(self.outcome.failed)}
        self.outcome.counts = counts | {"TablesLeft": len(self.outcome.left)} | self.outcome.counts
        return self.outcome

    def _see_plans(self) -> StoredPlans:
        # a run by hand or after a failure sees what is there now
        cache = self.plan_cache if self.event.kind == TICK else PlanCache()
        stored = cache.see(self.clients.ssm, self.event.now)
        if not self.sees_tags:
            return stored
        stored = stored.and_others(tagged.see_tagged(tagged.client()))
        for region in self.regions:
            try:
                stored = stored.and_others(tagged.see_tagged(tagged.client(region), region))
            except Exception as error:
                self.outcome.notes.append(f"no tags of {region}: {type(error).__name__}: {error}")
                self.outcome.count("UnreadablePlans")
        return stored

    def _scale(self, region: str | None, plans: list[StoredPlan]) -> int:
        """Scale the tables of a region; how many targets were due."""
        clients = self.clients if region is None else Clients.elsewhere(region, self.clients.ssm)
        work = ScaledRegion(self.event, plans, clients, self.remaining_seconds, self.dry_run, self.outcome)
        try:
            return work.scale()
        except Exception as error:
            if region is None:
                raise
            self.outcome.failed.update((plan.label, f"{type(error).__name__}: {error}") for plan in plans)
            return 0
