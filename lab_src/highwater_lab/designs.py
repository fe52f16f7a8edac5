"""Rehearses the eight designs of "Handle traffic spikes with Amazon DynamoDB provisioned capacity".

The article is by J. Hunter and P. Rawal on the AWS Database Blog. Its test is a table with users' traffic of 4,500
write units a second, beside which a bulk job writes so much that the total comes to 18,000 for twenty minutes. Here the
job is one that reacts: it is paced as `highwater load` paces it, asks again for what was refused, and ends when it is
done.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from highwater.core import Dimension
from highwater.core.pacing import Start
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.rehearse import PlannedJob
from highwater_lab.rehearse.jobs import boosts_of, jobs_of, leases_of
from highwater_lab.services.autoscaling import TargetTracking
from highwater_lab.services.schedules import At
from highwater_lab.simulation import ResourceSetup, Run, ScheduledChange, TableSetup, TargetSetup, simulate
from highwater_lab.traffic import Traffic, scenario
from highwater_lab.traffic.csv_files import DEFAULT_START

STARTS: Final = DEFAULT_START + timedelta(minutes=30)
USERS, TOTAL = 4_500, 18_000
RATE: Final = TOTAL - USERS
UNITS: Final = RATE * 20 * 60
_UNITS_AT_START: Final = 7_500
_MARK: Final = 40_000
_ALONE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Design:
    """One of the eight designs.

    Attributes:
        number: Its number in the article.
        title: What it does.
        target_percent: The target utilization; `None` on demand, or where nothing scales.
        rate: What the job asks for, write units per second.
        start: How the job begins.
        scheduled_min: The floor that a window sets from two minutes before the job on, for half an hour.
        is_on_demand: Whether the table is billed by request.
        allows_throttles: Whether the job keeps its rate where it is refused; then it has the table to itself.
    """

    number: int
    title: str
    target_percent: int | None = 70
    rate: int = RATE
    start: Start = Start.FULL
    scheduled_min: int | None = None
    is_on_demand: bool = False
    allows_throttles: bool = False

    @property
    def job(self) -> PlannedJob:
        """The bulk job."""
        return PlannedJob(
            dimension=Dimension.WRITE,
            rate=self.rate,
            units=UNITS,
            start=self.start,
            allows_throttles=self.allows_throttles,
            at=STARTS,
        )

    def run(self, *, seed: int = 1) -> Run:
        """Rehearse the design; *seed* determines the jitter of the users' traffic."""
        traffic = scenario("figures-calm", seed=seed)
        if self.allows_throttles:
            # nobody else uses the table
            nothing = array("q", bytes(8 * 60 * traffic.minutes))
            traffic = replace(traffic, rates=dict.fromkeys(traffic.rates, nothing))
        policy = OnDemandMode() if self.is_on_demand else Declared()
        return simulate(self._setup(traffic), traffic, policy)

    def _setup(self, traffic: Traffic) -> TableSetup:
        actions: tuple[ScheduledChange, ...] = ()
        if self.scheduled_min is not None:
            opens = STARTS - timedelta(minutes=2)
            actions = (
                ScheduledChange(name="the window opens", expression=At(opens), min=self.scheduled_min, max=None),
                ScheduledChange(
                    name="the window closes", expression=At(opens + timedelta(minutes=30)), min=100, max=None
                ),
            )
        if self.allows_throttles:
            write = TargetSetup.fixed(_ALONE)
        else:
            tracking = None if self.target_percent is None else TargetTracking(target_percent=self.target_percent)
            # settled: what auto scaling provisions for the users alone
            units = _UNITS_AT_START if self.target_percent in (None, 70) else USERS * 100 // (self.target_percent or 1)
            write = TargetSetup(units=units, min=100, max=_MARK, tracking=tracking, actions=actions)
        table = ResourceSetup(index=None, read=TargetSetup.fixed(5), write=write, warm_write_units=_MARK)
        setup = TableSetup(name=f"design {self.number}", resources=(table,), starts_settled=False)
        boosts = boosts_of([self.job], setup)
        return replace(setup, jobs=jobs_of([self.job], traffic), leases=leases_of(boosts, setup.name, traffic))


_ALL: Final = (
    Design(1, "auto scaling and burst capacity"),
    Design(2, "a lower target utilization", 40),
    Design(3, "on-demand", None, is_on_demand=True),
    Design(4, "background work that self-throttles", rate=14_000 - USERS),
    Design(5, "background work that starts slowly", start=Start.SLOW),
    Design(6, "a schedule, where the time is known", scheduled_min=TOTAL),
    Design(7, "a request for capacity, where the moment is known", start=Start.BOOSTED),
    Design(8, "throttles that are allowed", None, allows_throttles=True),
)
DESIGNS: Final = MappingProxyType({design.number: design for design in _ALL})
