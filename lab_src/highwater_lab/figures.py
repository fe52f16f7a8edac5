"""The six figures with numbers of "Handle traffic spikes with Amazon DynamoDB provisioned capacity", as simulations.

AWS Database Blog, J. Hunter and P. Rawal; figure 1 is of a real customer and has no numbers to start from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from highwater_lab.policies.declared import Declared
from highwater_lab.policies.on_demand import OnDemandMode
from highwater_lab.services.schedules import At
from highwater_lab.services.target_tracking import TargetTracking
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import ResourceSetup, Run, ScheduledChange, TableSetup, TargetSetup, simulate
from highwater_lab.simulation.policy import Policy
from highwater_lab.traffic import scenario
from highwater_lab.traffic.csv_files import DEFAULT_START

# When the surge of every figure's scenario comes
SURGE: Final = timedelta(minutes=30)
# The article's table had been at its peak before
_MARK: Final = 40_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its table, and what the article reports.

    Attributes:
        number: The article's.
        title: What it shows.
        target_percent: The target utilization; `None` on demand.
        units: Provisioned write units at the start.
        scheduled_min: A floor that a scheduled action sets two minutes ahead of the surge.
        reported: The article's words in short.
        fits: How the model compares.
    """

    number: int
    title: str
    target_percent: int | None
    units: int
    scheduled_min: int | None
    reported: str
    fits: str

    @property
    def scenario(self) -> str:
        """The scenario of its traffic."""
        return f"figure-{self.number}"

    def run(self, *, seed: int = 1, timing: Timing | None = None) -> Run:
        """Simulate it."""
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
        return TableSetup(name=f"figure {self.number}", resources=(table,), starts_settled=False)


_ALL: Final = (
    Figure(
        2,
        "a jump from 4,500 to 18,000 at 70 %",
        70,
        7_500,
        None,
        "no throttles for four minutes, then two minutes of them; 26,000 provisioned six minutes after the jump; back "
        "down about 15 minutes after the surge",
        "The burst bucket holds for 3.5 minutes and capacity comes after 5: the article's minutes, read off a chart.",
    ),
    Figure(
        3,
        "the same jump at 60 %",
        60,
        9_000,
        None,
        "no throttles; auto scaling raised capacity seven minutes after the jump",
        "Seven minutes at 18,000 need more burst than 300 seconds of 9,000 hold: DynamoDB gave more than it promises, "
        "or the mean was lower. The scenario has a mean of 17,000, and the raise comes after five minutes.",
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
        "18,000 units at 70 % make 25,700; 33,000 would take a minute of 23,100, which the article does not speak of.",
    ),
)

FIGURES: Final[Mapping[int, Figure]] = MappingProxyType({figure.number: figure for figure in _ALL})
