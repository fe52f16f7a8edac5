"""Writes a recommended plan as CDK code in Python."""

from __future__ import annotations

import json

from highwater.core import Capacity, IndexCapacity, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.recommend.search import Candidate

_ON_DEMAND = """\
from aws_cdk import aws_dynamodb as dynamodb

dynamodb.Table(
    stack,
    "Table",
    partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
    billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
)
"""


def code_of(candidate: Candidate) -> str:
    """Return the CDK code that declares a candidate; it uses a variable `stack`.

    The partition keys of the table and of its indexes are placeholders.
    """
    plan = candidate.plan
    if plan is None:
        return _ON_DEMAND
    names = ["Capacity", "HighWaterMark", "HighWaterTable"]
    names += (["GlobalSecondaryIndex"] if plan.indexes else []) + (["Window"] if plan.windows else [])
    lines = [
        "from aws_cdk import aws_dynamodb as dynamodb",
        f"from cdk_highwater import {', '.join(sorted(names))}",
        "",
        "table = HighWaterTable(",
        "    stack,",
        '    "Table",',
        '    partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),',
        f"    read={_capacity(plan.read)},",
        f"    write={_capacity(plan.write)},",
    ]
    if plan.windows:
        lines += ["    windows=[", *(f"        {_window(window)}," for window in plan.windows), "    ],"]
    lines.append("    high_water_mark=HighWaterMark.to_ceiling(),")
    if plan.table_quota_units != DEFAULT_TABLE_QUOTA_UNITS:
        lines.append(f"    table_quota_units={_number(plan.table_quota_units)},")
    if plan.indexes:
        lines += ["    indexes=[", *(line for index in plan.indexes for line in _index(index)), "    ],"]
    lines.append(")")
    return "\n".join(lines) + "\n"


def _index(index: IndexCapacity) -> list[str]:
    return [
        "        GlobalSecondaryIndex(",
        f"            index_name={json.dumps(index.index_name)},",
        f"            partition_key=dynamodb.Attribute(name={json.dumps(index.index_name + '_key')}, "
        "type=dynamodb.AttributeType.STRING),",
        "        ),",
    ]


def _capacity(capacity: Capacity) -> str:
    if not capacity.is_autoscaled:
        return f"Capacity.fixed({_number(int(capacity.min_capacity))})"
    target = capacity.target_utilization_percent
    percent = "" if target == 70 else f", target_utilization_percent={target}"
    low, high = _number(int(capacity.min_capacity)), _number(int(capacity.max_capacity))
    return f"Capacity.autoscaled(min_capacity={low}, max_capacity={high}{percent})"


def _window(window: Window) -> str:
    parts = [
        f'"{window.name}"',
        f'days="{window.days}"',
        f'start="{window.start}"',
        f'end="{window.end}"',
        f'timezone="{window.timezone}"',
    ]
    for name in ("read_min", "write_min"):
        units = getattr(window, name)
        if units is not None:
            parts.append(f"{name}={_number(units)}")
    return f"Window.weekly({', '.join(parts)})"


def _number(units: int) -> str:
    return f"{units:_}"
