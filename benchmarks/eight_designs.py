"""Writes docs/eight-designs.md: the eight designs of the article, how each is had here, and its rehearsal as a picture.

Run it with `make designs`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from highwater.core import Dimension
from highwater_lab.designs import DESIGNS, RATE, TOTAL, UNITS, USERS
from highwater_lab.report.picture import write_run
from highwater_lab.simulation import Run

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
`HighWaterTable` is for provisioned capacity; a table of the CDK with `billing_mode=PAY_PER_REQUEST` is on demand.
`highwater rehearse cdk.out --compare on-demand` says what it would cost, and `recommend` says so where it is
cheaper. [Tables](tables.md) has how a table comes back from on-demand without a throttle.""",
    4: """\
`highwater load orders --write 9500 --from orders.jsonl.zst`, or `highwater.write("orders", actions, write=9_500)`;
`highwater.pace` keeps an existing session within a budget. [Pacing](pace.md).""",
    5: """\
`highwater load orders --write 13500 --start slow --from orders.jsonl.zst`, or in Python `start="slow"`. The rate goes
by what the table shows, not by a timer. [Pacing](pace.md#rates-that-follow-the-table).""",
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
`highwater boost orders --write 18000 --for 25m -- COMMAND`, `with highwater.boost(...)`, Step Functions or an
event. [Boosts](boosts.md).""",
    8: f"""\
{_code("Capacity.fixed(10_000)")}

`highwater load orders --write 13500 --allow-throttles --from orders.jsonl.zst`: on a table that nobody else uses,
every bit of capacity is used. What is refused is sent again for as long as it takes.""",
}


HEAD = f"""\
# Eight designs for a surge

Made by `make designs`. "Handle traffic spikes with Amazon DynamoDB provisioned capacity" (J. Hunter and P. Rawal, AWS
Database Blog) describes eight designs. Each is to be had here. This page says how, and rehearses it with a job that
writes {UNITS:,} units beside users who write {USERS:,} a second: at {RATE:,} a second it takes twenty minutes and
brings the total to {TOTAL:,}. The job is paced as `highwater load` paces it: it asks again for what is refused, and
ends when it is done. Design 8 has its table to itself. The cost is that of the hundred minutes shown, billed as two
hours.
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
        "Which to choose: [bulk work](bulk-work.md).",
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
