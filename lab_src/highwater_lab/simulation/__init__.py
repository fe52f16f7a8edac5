"""One table under traffic, minute by minute: physics and services put together."""

from highwater_lab.services.autoscaling import ScheduledChange
from highwater_lab.simulation.known import KeyAttribute, Keys, KnownTable
from highwater_lab.simulation.run import Event, EventKind, Run, TargetRun
from highwater_lab.simulation.setup import (
    Buffer,
    JobRun,
    JobSetup,
    QueueRun,
    ReplicaSetup,
    ResourceSetup,
    ScalableTargetSetup,
    TableSetup,
    TargetSetup,
)
from highwater_lab.simulation.simulator import simulate

__all__ = [
    "Buffer",
    "Event",
    "EventKind",
    "JobRun",
    "JobSetup",
    "KeyAttribute",
    "Keys",
    "KnownTable",
    "QueueRun",
    "ReplicaSetup",
    "ResourceSetup",
    "Run",
    "ScalableTargetSetup",
    "ScheduledChange",
    "TableSetup",
    "TargetRun",
    "TargetSetup",
    "simulate",
]
