"""Simulates figures 2 to 7 of "Handle traffic spikes with Amazon DynamoDB provisioned capacity".

The article is by J. Hunter and P. Rawal on the AWS Database Blog. Figure 1 shows a real customer's table and has no
numbers, so it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from highwater.core import Dimension
from highwater.core.boosts import Lease
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.services.autoscaling import TargetTracking
from highwater_lab.services.schedules import At
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import ResourceSetup, Run, ScheduledChange, TableSetup, TargetSetup, simulate
from highwater_lab.simulation.policy import Policy
from highwater_lab.traffic import scenario
from highwater_lab.traffic.csv_files import DEFAULT_START

# The time from the start of each figure's scenario to its surge
SURGE: Final = timedelta(minutes=30)
# A high-water mark above all peaks, because the article's table had served its peak before
_MARK: Final = 40_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: the setup of its table, and the article's result.

    Attributes:
        number: The figure's number in the article.
        title: The title for reports.
        target_percent: The target utilization; `None` on demand.
        units: The provisioned write units at the start.
        scheduled_min: The floor that a scheduled action sets two minutes before the surge; `None` for no action.
        reported: The article's result in short.
        fits: The comparison of the simulation with the article.
        boost_total: The write units in total that a job asks for two minutes before the surge, until it is over; `None`
            for no boost.
    """

    number: int
    title: str
    target_percent: int | None
    units: int
    scheduled_min: int | None
    reported: str
    fits: str
    boost_total: int | None = None

    @property
    def scenario(self) -> str:
        """The name of the scenario with the figure's traffic."""
        return f"figure-{self.number}"

    def run(self, *, seed: int = 1, timing: Timing | None = None) -> Run:
        """Simulate the figure; *seed* determines the jitter of the traffic, *timing* the delays of the AWS services."""
        return simulate(self._setup(), scenario(self.scenario, seed=seed), self._policy(), timing=timing)

    def _policy(self) -> Policy:
        return OnDemandMode() if self.target_percent is None else Declared()

    def _setup(self) -> TableSetup:
        actions: tuple[ScheduledChange, ...] = ()
        if self.scheduled_min is not None:
            surge: datetime = DEFAULT_START + SURGE
            actions = (
                ScheduledChange(
                    name="ahead of the surge",
                    expression=At(surge - timedelta(minutes=2)),
                    min=self.scheduled_min,
                    max=None,
                ),
            )
        tracking = TargetTracking(target_percent=self.target_percent) if self.target_percent else None
        write = TargetSetup(units=self.units, min=100, max=_MARK, tracking=tracking, actions=actions)
        table = ResourceSetup(index=None, read=TargetSetup.fixed(5), write=write, warm_write_units=_MARK)
        return TableSetup(name=f"figure {self.number}", resources=(table,), starts_settled=False, leases=self._leases())

    def _leases(self) -> tuple[Lease, ...]:
        if self.boost_total is None:
            return ()
        start = DEFAULT_START + SURGE - timedelta(minutes=2)
        return (
            Lease(
                id="ahead of the surge",
                table=f"figure {self.number}",
                index=None,
                dimension=Dimension.WRITE,
                units=self.boost_total,
                is_total=True,
                start=start,
                end=start + timedelta(minutes=45),
                owner="job",
            ),
        )


_ALL: Final = (
    Figure(
        2,
        "a jump from 4,500 to 18,000 at 70 %",
        70,
        7_500,
        None,
        "no throttles for four minutes, then two minutes with throttles; 26,000 provisioned six minutes after the "
        "jump, lowered again about 15 minutes after the surge",
        "The burst bucket lasts for 3.5 minutes and capacity rises after 5. The article's minutes are read from a "
        "chart.",
    ),
    Figure(
        3,
        "the same jump at 60 %",
        60,
        9_000,
        None,
        "no throttles; auto scaling raised capacity seven minutes after the jump",
        "Seven minutes at 18,000 need more burst capacity than 300 seconds of 9,000 units. Either DynamoDB gave more "
        "than it documents, or the mean was lower. The scenario has a mean of 17,000, and capacity rises after five "
        "minutes.",
    ),
    Figure(4, "the same jump on demand", None, 1, None, "no throttles of the table", "As reported."),
    Figure(
        5,
        "a jump to 14,000 only, at 70 %",
        70,
        7_500,
        None,
        "no throttles; the highest provisioned was 20,000",
        "As reported.",
    ),
    Figure(
        6,
        "a slow start: 9,000, 14,000, 18,000 within ten minutes, at 70 %",
        70,
        7_500,
        None,
        "no throttles; several increases",
        "As reported.",
    ),
    Figure(
        7,
        "the jump two minutes after a scheduled minimum of 18,000, at 70 %",
        70,
        7_500,
        18_000,
        "no throttles; first 18,000 by schedule, then 33,000 by auto scaling",
        "18,000 units at 70 % need 25,700. A capacity of 33,000 means a minute of 23,100, which the article does not "
        "mention.",
    ),
)

FIGURES: Final[Mapping[int, Figure]] = MappingProxyType({figure.number: figure for figure in _ALL})
# Figure 7 with a job that asks for what the article schedules
BOOSTED: Final = replace(
    FIGURES[7],
    title="the jump two minutes after a boost to 18,000 in total, at 70 %",
    scheduled_min=None,
    boost_total=18_000,
    reported="the figure above; its schedule sets what the job asks for here",
    fits="A boost does what the schedule does, at the time that the job knows, and ends with it.",
)
