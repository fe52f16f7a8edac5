"""What AWS knows of a managed table just now, and what the core says of it: read, never changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from highwater.aws import decisions
from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.decisions import LoggedDecision, read_decisions
from highwater.aws.plans import ScaledPlans
from highwater.aws.region import AwsRegion
from highwater.aws.tables import DescribedTable, seen_resources
from highwater.core import Bounds, Target, timeline
from highwater.core.names import TargetName
from highwater.core.plan.plan import TargetKey
from highwater.core.plan.windows import is_open
from highwater.core.scaler import (
    Clock,
    Decision,
    Mode,
    ScaledPlan,
    SeenTable,
    SeenTarget,
    SkipReason,
    TableReview,
    minutes_to_observe,
    review,
)
from highwater.core.scaler.attention import THROTTLE_MINUTES, scaled_targets
from highwater.core.scaler.decisions import decision_document

_AHEAD = timedelta(days=8)


@dataclass(frozen=True, slots=True)
class Situation:
    """One target: what its plan asks for, what is live, and what the scaler would decide.

    Attributes:
        table: Its table, with the region ahead where that is another than the plan's.
        target: The target, as planned.
        mode: What the scaler moves.
        at: The time of all this, the services' own.
        planned: Floor and ceiling that the plan alone asks for now.
        registered: Floor and ceiling of the scalable target, `None` where none is.
        provisioned: Units now.
        is_paused: Whether its scaling is suspended.
        decreases_used: Of the table or index today, reads and writes together.
        next_change: When the plan next asks for other bounds within eight days, and for which.
        open_windows: Names of the windows that are open now.
        decision: What the scaler would decide, `None` where it would leave the target alone.
        skip: Why it would leave the target alone, `None` where it would not.
        last_decisions: What it decided lately, as its log has it, the newest last.
        log_refused: Why its log could not be read, `None` where it could.
    """

    table: str
    target: Target
    mode: Mode
    at: datetime
    planned: Bounds
    registered: Bounds | None
    provisioned: int
    is_paused: bool
    decreases_used: int
    next_change: tuple[datetime, Bounds] | None
    open_windows: tuple[str, ...]
    decision: Decision | None
    skip: SkipReason | None = None
    last_decisions: tuple[LoggedDecision, ...] = ()
    log_refused: str | None = None

    @property
    def relief(self) -> int:
        """Units that the floor is above what the plan asks for."""
        return max(0, self.registered.min - self.planned.min) if self.registered else 0

    def document(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "table": self.table,
            "target": self.target.label,
            "mode": str(self.mode),
            "at": self.at.isoformat(),
            "planned": _bounds(self.planned),
            "registered": _bounds(self.registered),
            "provisioned": self.provisioned,
            "relief": self.relief,
            "paused": self.is_paused,
            "decreases_used": self.decreases_used,
            "open_windows": list(self.open_windows),
            "next_change": None
            if self.next_change is None
            else {"at": self.next_change[0].isoformat(), **(_bounds(self.next_change[1]) or {})},
            "decision": None if self.decision is None else decision_document(self.decision),
            "skip": None if self.skip is None else str(self.skip),
            "last_decisions": [
                {"at": told.at.isoformat(), "current": told.current, "granted": told.granted, "reason": told.reason}
                for told in self.last_decisions
            ],
        }


def find_plans(table: str | None, region: AwsRegion) -> tuple[list[ScaledPlan], tuple[str, ...]]:
    """The plans of *table*, one for each region that it is in, or all plans; and for each unreadable plan why.

    *region* is where the plans are kept. Tables that tags choose in that region are among them.
    """
    read = region.read_plans()
    try:
        read = read.and_others(region.read_tagged_plans())
    except ClientError as refused:
        # who may not search by tags still learns of all tables that constructs made
        read = read.and_others(ScaledPlans((), (f"tables chosen by tags: {refused}",)))
    chosen = [plan for plan in read.plans if table is None or table in (plan.table, plan.label)]
    return sorted(chosen, key=lambda plan: plan.label), read.unreadable


def read_situations(scaled: ScaledPlan, home: str | None, *, decides: bool) -> Iterator[Situation]:
    """The situation of every autoscaled target of a plan; *decides* asks for metrics and logs too.

    *home* is the scaler's region, `None` for the one of the environment.

    Raises:
        TableNotFoundError: The table is gone.
    """
    region = AwsRegion(scaled.region or home)
    described = region.describe_table(scaled.table)
    if scaled.is_tagged:
        scaled = scaled.with_indexes(index for index in described.capacities if index is not None)
    names = {
        target.key: TargetName(scaled.table, *target.key)
        for target in scaled_targets(scaled)
        if target.index in described.capacities
    }
    registered = region.read_targets(names.values())
    clock = Clock(int(registered.at.timestamp()) // 60, registered.at)
    reviewed = _review(scaled, names, region, described, registered, clock) if decides else None
    by_key = {} if reviewed is None else {each.decision.key: each.decision for each in reviewed.targets}
    skipped = {} if reviewed is None else {skip.target.key: skip.reason for skip in reviewed.skips}
    logged, log_refused = logged_decisions(decisions.client(home), scaled.label, clock.now) if decides else ({}, None)
    for target in scaled_targets(scaled):
        if target.key not in names:
            continue
        name = names[target.key]
        changes = timeline(target, clock.now, clock.now + _AHEAD)
        yield Situation(
            table=scaled.label,
            target=target,
            mode=scaled.mode,
            at=clock.now,
            planned=changes[0][1],
            registered=registered.of(name),
            provisioned=described.capacities[target.index].of(target.dimension),
            is_paused=registered.is_suspended(name),
            decreases_used=described.budgets[target.index].used_on(clock.now),
            next_change=changes[1] if len(changes) > 1 else None,
            open_windows=tuple(each.window.name for each in target.windows if is_open(each.window, clock.now)),
            decision=by_key.get(target.key),
            skip=skipped.get(target.key),
            last_decisions=logged.get(target.label, ()),
            log_refused=log_refused,
        )


def _review(
    scaled: ScaledPlan,
    names: Mapping[TargetKey, TargetName],
    region: AwsRegion,
    described: DescribedTable,
    registered: RegisteredTargets,
    clock: Clock,
) -> TableReview:
    """What the scaler would do now; throttles are asked for even where they are unlikely."""
    consumed = region.read_consumption(names.values(), minutes_to_observe(scaled, clock), clock.now)
    observed = region.with_throttles(consumed, THROTTLE_MINUTES, clock.now)
    targets = {
        key: SeenTarget(
            registered=registered.of(name), is_suspended=registered.is_suspended(name), observation=observed[name]
        )
        for key, name in names.items()
    }
    return review(scaled, SeenTable(seen_resources(described), targets), clock)


def logged_decisions(logs: Any, label: str, now: datetime) -> tuple[dict[str, tuple[LoggedDecision, ...]], str | None]:
    """The last decisions by target, or the error for which the log could not be read.

    Who may not read the log still learns everything else.
    """
    try:
        return read_decisions(logs, label, now), None
    except ClientError as refused:
        return {}, refused.response["Error"]["Code"]


def _bounds(bounds: Bounds | None) -> dict[str, int] | None:
    return None if bounds is None else {"min": bounds.min, "max": bounds.max}
