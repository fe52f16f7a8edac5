"""One table under traffic, minute by minute: physics and services put together."""

from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.simulation.events import Event, EventKind
from highwater_lab.simulation.job import Job, JobRun
from highwater_lab.simulation.run import Run, TargetRun
from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.simulation.simulator import simulate

__all__ = [
    "Event",
    "EventKind",
    "Job",
    "JobRun",
    "ResourceSetup",
    "Run",
    "ScheduledChange",
    "TableSetup",
    "TargetRun",
    "TargetSetup",
    "simulate",
]
