"""One table under traffic, minute by minute: physics and services put together."""

from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.simulation.run import Event, EventKind, Run, TargetRun
from highwater_lab.simulation.setup import (
    Buffer,
    Job,
    JobRun,
    QueueRun,
    ResourceSetup,
    Scaling,
    TableSetup,
    TargetSetup,
)
from highwater_lab.simulation.simulator import simulate

__all__ = [
    "Buffer",
    "Event",
    "EventKind",
    "Job",
    "JobRun",
    "QueueRun",
    "ResourceSetup",
    "Run",
    "Scaling",
    "ScheduledChange",
    "TableSetup",
    "TargetRun",
    "TargetSetup",
    "simulate",
]
