"""Writes a recommended plan, or the capacity that a table has, as CDK code in Python."""

from __future__ import annotations

import json
import keyword
import re

from highwater.core import Capacity, IndexCapacity, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater_lab.recommend.candidates import Candidate
from highwater_lab.simulation import TableSetup

_ON_DEMAND = """\
from aws_cdk import aws_dynamodb as dynamodb
from cdk_highwater import Capacity, OnDemandTable

table = OnDemandTable(
    stack,
    "Table",
    partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
    capacity=Capacity.on_demand(),  # max_read= and max_write= bound what a mistake can cost
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


def scaler_code_of(policy: str, candidate: Candidate) -> str:
    """Return the CDK code that declares a candidate which Highwater's scaler scales, by the policy's name.

    It uses a variable `stack`, and in DIRECT mode a variable `table`. A fleet's pulses are not in it.
    """
    plan = candidate.plan
    assert plan is not None  # noqa: S101 - the scaler scales provisioned capacity
    needs = "# clients that call highwater.pulse(session)\n" * policy.endswith("-pulse")
    if policy.startswith("highwater-floor"):
        table = code_of(candidate).replace("HighWaterTable\n", "HighWaterTable, ThrottleAwareScaler\n", 1)
        return f'{needs}{table}ThrottleAwareScaler(stack, "Scaler").add_table(table)\n'
    return (
        f"{needs}from cdk_highwater import Capacity, ThrottleAwareScaler\n\n"
        "# a table with provisioned capacity, which nothing else scales\n"
        'ThrottleAwareScaler(stack, "Scaler").add_direct_table(\n'
        f"    table,\n    read={_capacity(plan.read)},\n    write={_capacity(plan.write)},\n)\n"
    )


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
    low, high = _number(int(capacity.min_capacity)), _number(int(capacity.max_capacity))
    parts = [f"min_capacity={low}", f"max_capacity={high}"]
    if capacity.target_utilization_percent != 70:
        parts.append(f"target_utilization_percent={capacity.target_utilization_percent}")
    for name, cooldown in (("in", capacity.scale_in_cooldown), ("out", capacity.scale_out_cooldown)):
        if cooldown:
            parts.append(f"scale_{name}_cooldown=timedelta(seconds={cooldown.total_seconds():.0f})")
    if capacity.disable_scale_in:
        parts.append("disable_scale_in=True")
    return f"Capacity.autoscaled({', '.join(parts)})"


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


def managed_code_of(name: str, setup: TableSetup) -> str:
    """Return the call of `manage_capacity` that keeps what a table has; it uses a variable made of the table's name."""
    own, *indexes = setup.resources
    variable = re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition("/")[2])).lower()
    if not variable.isidentifier() or keyword.iskeyword(variable):
        variable = "table"
    lines = [
        f"from cdk_highwater import {'Capacity, IndexCapacity' if indexes else 'Capacity'}, manage_capacity",
        "",
        "manage_capacity(",
        f"    {variable},  # {name}",
        f"    read={_capacity(own.read.capacity)},",
        f"    write={_capacity(own.write.capacity)},",
    ]
    if indexes:
        lines += [
            "    indexes=[",
            *(
                f"        IndexCapacity(index_name={json.dumps(each.index)}, read={_capacity(each.read.capacity)}, "
                f"write={_capacity(each.write.capacity)}),"
                for each in indexes
            ),
            "    ],",
        ]
    code = "\n".join([*lines, ")"]) + "\n"
    return f"from datetime import timedelta\n\n{code}" if "timedelta(" in code else code
