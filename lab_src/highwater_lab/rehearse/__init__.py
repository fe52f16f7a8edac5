"""Rehearsals: a template is simulated under traffic before it is deployed."""

from highwater_lab.rehearse.app import (
    AppRehearsal,
    FixedCost,
    TableChange,
    TableRehearsal,
    UnreadChange,
    rehearse_app,
)
from highwater_lab.rehearse.jobs import PlannedBoost, PlannedJob
from highwater_lab.rehearse.limits import Limits, Passed
from highwater_lab.rehearse.outcome import Cheapest, Outcome
from highwater_lab.rehearse.plans import PlanGoals, PlanSum, Sums, TablePlan, advise_commitments, plan_app, sum_plans
from highwater_lab.rehearse.rehearsal import Conditions, Rehearsal, RehearsalError, Workload, rehearse
from highwater_lab.template import Consequence, Hazard, HazardKind

__all__ = [
    "AppRehearsal",
    "Cheapest",
    "Conditions",
    "Consequence",
    "FixedCost",
    "Hazard",
    "HazardKind",
    "Limits",
    "Outcome",
    "Passed",
    "PlanGoals",
    "PlanSum",
    "PlannedBoost",
    "PlannedJob",
    "Rehearsal",
    "RehearsalError",
    "Sums",
    "TableChange",
    "TablePlan",
    "TableRehearsal",
    "UnreadChange",
    "Workload",
    "advise_commitments",
    "plan_app",
    "rehearse",
    "rehearse_app",
    "sum_plans",
]
