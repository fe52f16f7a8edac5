"""Rehearsals: a template is simulated under traffic before it is deployed."""

from highwater_lab.rehearse.app import (
    AppRehearsal,
    Cheapest,
    FixedCost,
    Outcome,
    TableChange,
    TableRehearsal,
    rehearse_app,
)
from highwater_lab.rehearse.jobs import PlannedBoost, PlannedJob
from highwater_lab.rehearse.limits import Limits, Passed
from highwater_lab.rehearse.rehearsal import Rehearsal, RehearsalError, rehearse
from highwater_lab.template import Consequence, Hazard, HazardKind

__all__ = [
    "AppRehearsal",
    "Cheapest",
    "Consequence",
    "FixedCost",
    "Hazard",
    "HazardKind",
    "Limits",
    "Outcome",
    "Passed",
    "PlannedBoost",
    "PlannedJob",
    "Rehearsal",
    "RehearsalError",
    "TableChange",
    "TableRehearsal",
    "rehearse",
    "rehearse_app",
]
