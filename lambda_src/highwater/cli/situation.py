"""What AWS knows of a managed table just now, and what the core says of it: read, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from highwater.aws import autoscaling, decisions, metrics, plans, tables
from highwater.aws.decisions import ToldDecision, see_decisions
from highwater.aws.plans import StoredPlan
from highwater.core import Bounds, Target, bounds_at, timeline
from highwater.core.names import TargetName
from highwater.core.plan.windows import is_open
from highwater.core.scaler import Decision, TargetState, decide
from highwater.core.scaler.attention import THROTTLE_MINUTES
from highwater.core.scaler.settings import Mode, ScalerSettings

_MINUTE = timedelta(minutes=1)
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
        decision: What the scaler would decide, `None` where it would not look.
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
    last_decisions: tuple[ToldDecision, ...] = ()
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
            "decision": None
            if self.decision is None
            else {
                "current": self.decision.current,
                "wanted": self.decision.wanted,
                "granted": self.decision.granted,
                "reason": self.decision.reason,
                "limits": [{"code": str(limit.code), "sentence": limit.sentence} for limit in self.decision.limits],
                "hot_key": self.decision.has_hot_key,
            },
            "last_decisions": [
                {"at": told.at.isoformat(), "current": told.current, "granted": told.granted, "reason": told.reason}
                for told in self.last_decisions
            ],
        }


def find_plans(table: str | None) -> tuple[list[StoredPlan], tuple[str, ...]]:
    """The plans of *table*, one for each region that it is in, or all, by name; and what could not be read."""
    stored = plans.see_plans(plans.client())
    chosen = [plan for plan in stored.plans if table is None or table in (plan.table, plan.label)]
    return sorted(chosen, key=lambda plan: plan.label), stored.unreadable


def see(stored: StoredPlan, *, decides: bool) -> Iterator[Situation]:
    """The situation of every autoscaled target of a plan; *decides* asks for metrics and logs too.

    Raises:
        TableNotFoundError: The table is gone.
    """
    targets = {
        TargetName(stored.table, target.index, target.dimension): target
        for target in stored.plan.targets()
        if target.capacity.is_autoscaled
    }
    live = tables.see_table(tables.client(stored.region), stored.table)
    seen = autoscaling.see_targets(autoscaling.client(stored.region), targets)
    told, log_refused = _told(stored.label, seen.at) if decides else ({}, None)
    for name, target in targets.items():
        if target.index not in live.capacities:
            continue
        planned = bounds_at(target, seen.at)
        changes = timeline(target, seen.at, seen.at + _AHEAD)
        provisioned = live.capacities[target.index].of(target.dimension)
        yield Situation(
            table=stored.label,
            target=target,
            mode=stored.mode,
            at=seen.at,
            planned=planned,
            registered=seen.of(name),
            provisioned=provisioned,
            is_paused=seen.is_suspended(name),
            decreases_used=live.budgets[target.index].used_on(seen.at),
            next_change=changes[1] if len(changes) > 1 else None,
            open_windows=tuple(each.window.name for each in target.windows if is_open(each.window, seen.at)),
            decision=_decision(stored, target, name, planned, seen, live, provisioned) if decides else None,
            last_decisions=told.get(target.label, ()),
            log_refused=log_refused,
        )


def _told(label: str, now: datetime) -> tuple[dict[str, tuple[ToldDecision, ...]], str | None]:
    """The last decisions; who may not read the log still learns all else."""
    try:
        return see_decisions(decisions.client(), label, now), None
    except ClientError as refused:
        return {}, refused.response["Error"]["Code"]


def _decision(
    stored: StoredPlan,
    target: Target,
    name: TargetName,
    planned: Bounds,
    seen: autoscaling.SeenTargets,
    live: tables.SeenTable,
    provisioned: int,
) -> Decision | None:
    registered = seen.of(name)
    if seen.is_suspended(name) or (registered is None) is (stored.mode is Mode.FLOOR):
        return None
    settings = ScalerSettings.of(stored.mode)
    cloudwatch = metrics.client(stored.region)
    observed = metrics.see_consumed(cloudwatch, [name], settings.history // _MINUTE, seen.at)
    observed = metrics.with_throttles(cloudwatch, observed, THROTTLE_MINUTES, seen.at)
    state = TargetState(
        index=target.index,
        dimension=target.dimension,
        current=registered.min if registered else provisioned,
        baseline=planned.min,
        ceiling=planned.max,
        quota_units=stored.plan.table_quota_units,
        budget=live.budgets[target.index],
    )
    return decide(settings, state, observed[name], now=seen.at)


def _bounds(bounds: Bounds | None) -> dict[str, int] | None:
    return None if bounds is None else {"min": bounds.min, "max": bounds.max}
