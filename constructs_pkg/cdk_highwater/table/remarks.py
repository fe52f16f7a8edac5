"""What synth says of every managed table: what its floors cost, and what a revert of drift does to it."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from constructs import Construct

from cdk_highwater.support.nag import annotate_at_end
from cdk_highwater.table.subject import Subject
from highwater.core import Finding, Plan
from highwater.core.findings import remark
from highwater.core.prices import prices_or_usual
from highwater.core.schedule.charge import cents, floors_text, least_charge

# a message names no more tables than this
_MOST_NAMED: Final = 10

# For each stack with managed tables, these tables
_DRIFTING: WeakKeyDictionary[cdk.Stack, list[Subject]] = WeakKeyDictionary()


def charge_findings(subject: Subject, plan: Plan) -> list[Finding]:
    """Return the information about the least that the table's declared capacity costs in a month."""
    targets = plan.targets()
    charges = [
        least_charge(targets, prices_or_usual(region, is_infrequent_access=subject.is_infrequent_access))
        for region in subject.charged_regions()
    ]
    usd = sum(charge.usd for charge in charges)
    if not usd:
        return []
    own, *others = charges
    text = f"at least ${own.usd} a month at {own.prices.region} prices"
    if own.windows:
        text += f", ${cents(own.windows)} of them for windows"
    text += f", for floors of {floors_text(targets)}"
    if others:
        text += "".join(f", at {charge.prices.region} prices ${charge.usd}" for charge in others)
        text += f", ${usd} together"
    fix = "what traffic, boosts and a scaler need above that comes to it; lower min_capacity or the windows to pay less"
    return [remark("leastCharge", "declared capacity", text, fix)]


def tell_drift(by: Construct, subject: Subject) -> None:
    """Have synth say once for the table's stack what a revert of drift does to its managed tables; *by* asks for it.

    Of a global table CloudFormation reverts bounds alone, and imported tables are in no template.
    """
    if subject.template is None or subject.is_global:
        return
    stack = subject.stack
    if stack not in _DRIFTING:
        _DRIFTING[stack] = []
        annotate_at_end(by, stack, lambda: [_drift(_DRIFTING[stack])])
    _DRIFTING[stack].append(subject)


def _drift(tables: list[Subject]) -> Finding:
    told = ", ".join(_left(table) for table in tables[:_MOST_NAMED])
    told += f" and {len(tables) - _MOST_NAMED:,} more" if len(tables) > _MOST_NAMED else ""
    problem = (
        "there always is drift, as capacity and floors change without a deploy; a revert (cdk deploy --revert-drift) "
        f"closes open windows, and may set capacity to the units in the template: {told}"
    )
    fix = "do not revert it; docs/drift.md tells what to ignore and how to recover"
    return remark("drift", "the stack", problem, fix)


def _left(table: Subject) -> str:
    name = table.literal_name or table.construct.node.path
    capacities = table.template_capacities().values()
    if not capacities:
        return name
    read, write = (min(units) for units in zip(*capacities, strict=True))
    return f"{name} {read:,} RCU and {write:,} WCU"
