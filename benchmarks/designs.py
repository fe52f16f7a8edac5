"""Rehearses the eight designs of "Handle traffic spikes with Amazon DynamoDB provisioned capacity".

The article is by J. Hunter and P. Rawal on the AWS Database Blog. Its test is a table with users' traffic of 4,500
write units a second, beside which a bulk job writes so much that the total comes to 18,000 for twenty minutes. Here the
job is one that reacts: it is paced as `highwater load` paces it, asks again for what was refused, and ends when it is
done.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

from highwater.core import Dimension
from highwater.core.pacing.following import Start
from highwater.core.tracking import TargetTracking
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.rehearse import PlannedJob
from highwater_lab.rehearse.jobs import boosts_of, jobs_of, leases_of
from highwater_lab.report.picture import write_run
from highwater_lab.services.schedules import At
from highwater_lab.simulation import ResourceSetup, Run, ScheduledChange, TableSetup, TargetSetup, simulate
from highwater_lab.traffic import Traffic, scenario
from highwater_lab.traffic.series import DEFAULT_START

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
        allow_throttles: Whether the job keeps its rate where it is refused; then it has the table to itself.
    """

    number: int
    title: str
    target_percent: int | None = 70
    rate: int = RATE
    start: Start = Start.FULL
    scheduled_min: int | None = None
    is_on_demand: bool = False
    allow_throttles: bool = False

    @property
    def job(self) -> PlannedJob:
        """The bulk job."""
        return PlannedJob(
            dimension=Dimension.WRITE,
            rate=self.rate,
            units=UNITS,
            start=self.start,
            allow_throttles=self.allow_throttles,
            at=STARTS,
        )

    def run(self, *, seed: int = 1) -> Run:
        """Rehearse the design; *seed* determines the jitter of the users' traffic."""
        traffic = scenario("figures-calm", seed=seed)
        if self.allow_throttles:
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
        if self.allow_throttles:
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
    Design(8, "throttles that are allowed", None, allow_throttles=True),
)
DESIGNS: Final = MappingProxyType({design.number: design for design in _ALL})


ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "eight-designs.md"
PICTURES = ROOT / "docs" / "pictures"
_TABLE = """\
orders = HighWaterTable(
    stack,
    "Orders",
    partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
    read=Capacity.fixed(5),
    write={write},{more}
)"""
_WRITE = "Capacity.autoscaled(min_capacity=100, max_capacity=40_000)"


def _code(write: str = _WRITE, more: str = "") -> str:
    return f"```python\n{_TABLE.format(write=write, more=more)}\n```"


HOW = {
    1: f"""Nothing but a table with auto scaling:

{_code()}

The job writes at its full rate at once. It is paced, so it gives way when it is refused, but others are refused with
it. [The scaler](scaler.md) and [pulses](pulse.md) shorten what is throttled here.""",
    2: f"""{_code("Capacity.autoscaled(min_capacity=100, max_capacity=40_000, target_utilization_percent=40)")}

`highwater recommend` says whether a lower target is worth its price for your traffic.""",
    3: """\
[`OnDemandTable`](on-demand.md) is billed by request, up to a maximum.
`highwater simulate cdk.out --compare on-demand` says what it would cost, and `recommend` says so where it is
cheaper. A table [comes back from it](existing-tables.md#a-table-that-is-on-demand-so-far) without a throttle.""",
    4: """\
`highwater load orders --write 9500 --from orders.jsonl.zst`, or `highwater.write("orders", actions, write=9_500)`;
`highwater.pace` keeps an existing session within a budget. [Pacing](pace.md).""",
    5: """\
`highwater load orders --write 13500 --start slow --from orders.jsonl.zst`, or in Python `start="slow"`. The rate goes
by what the table shows, not by a timer. [Pacing](pace-in-detail.md#rates-that-follow-the-table).""",
    6: f"""{
        _code(
            more='''
    windows=[
        Window.daily("load", start="04:58", end="05:28", timezone="America/New_York", write_min=18_000),
    ],'''
        )
    }

[Windows](windows.md).""",
    7: """\
`highwater load orders --write 13500 --start boosted --from orders.jsonl.zst` asks first. Any other job does so with
`highwater boost run orders --write 18000 --for 25m -- COMMAND`, `with highwater.boost(...)`, Step Functions or an
event. [Boosts](boosts.md).""",
    8: f"""\
{_code("Capacity.fixed(10_000)")}

`highwater load orders --write 13500 --allow-throttles --from orders.jsonl.zst`: on a table that nobody else uses,
every bit of capacity is used. What is refused is sent again for as long as it takes.""",
}


HEAD = f"""\
# Eight designs for a surge

Made by `make benchmark NAME=designs`. "Handle traffic spikes with Amazon DynamoDB provisioned capacity" (J. Hunter and
P. Rawal, AWS Database Blog) describes eight designs. Each is to be had here. This page says how, and rehearses it with
a job that writes {UNITS:,} units beside users who write {USERS:,} a second: at {RATE:,} a second it takes twenty
minutes and brings the total to {TOTAL:,}. The job is paced as `highwater load` paces it: it asks again for what is
refused, and ends when it is done. Design 8 has its table to itself. The cost is that of the hundred minutes shown,
billed as two hours.
"""


def main() -> int:
    """Write the page and the pictures; return 0."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    runs = {number: design.run() for number, design in DESIGNS.items()}
    lines = [
        HEAD,
        "| design | the job takes | others throttled | its own throttled | highest capacity | USD |",
        "|---|---:|---:|---:|---:|---:|",
        *rows(runs),
        "",
        "Which to choose: [choosing](choosing.md), and for bulk work [its page](bulk-work.md).",
        "",
    ]
    for number, run in runs.items():
        design, name = DESIGNS[number], f"design-{number}.png"
        write_run(run, f"{number}. {design.title}", PICTURES / name)
        lines += [f"## {number}. {design.title}", "", HOW[number], "", f"![design {number}](pictures/{name})", ""]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)} and {len(runs)} pictures")
    return 0


def rows(runs: Mapping[int, Run]) -> list[str]:
    """Return the rows of the page's table, by the number of the design."""
    return [_row(number, run) for number, run in runs.items()]


def _row(number: int, run: Run) -> str:
    (job,) = run.jobs
    took = "not done" if job.end is None else str(timedelta(seconds=job.end - job.start))
    write = run.target(Dimension.WRITE)
    highest = max(units for _, units in write.capacity)
    usd = run.bill.provisioned + run.bill.on_demand
    cells = [
        f"{number}. {DESIGNS[number].title}",
        took,
        f"{job.others_throttled_units:,.0f}",
        f"{job.throttled_units:,.0f}",
        f"{highest:,}" if highest else "on demand",
        f"{usd:,.2f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
