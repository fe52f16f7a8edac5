"""Rehearsals: a template is simulated under traffic before it is deployed."""

from highwater_lab.rehearse.jobs import PlannedBoost, PlannedJob
from highwater_lab.rehearse.limits import Limits, Passed
from highwater_lab.rehearse.rehearsal import Rehearsal, RehearsalError, rehearse

__all__ = ["Limits", "Passed", "PlannedBoost", "PlannedJob", "Rehearsal", "RehearsalError", "rehearse"]
