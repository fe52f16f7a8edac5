"""Writes a recommended plan, or the capacity that a table has, as CDK code in Python."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from typing import Final

from highwater.core import Capacity, Dimension, HighWaterMark, IndexCapacity, Plan, Units, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.plan.capacity import DEFAULT_TARGET_PERCENT
from highwater_lab.recommend.candidates import Candidate
from highwater_lab.simulation import KeyAttribute, Keys, KnownTable, TableSetup
from highwater_lab.simulation.plans import declared_plan

_TYPES: Final = {"S": "STRING", "N": "NUMBER", "B": "BINARY"}
_NAMES: Final = (
    "Capacity",
    "GlobalSecondaryIndex",
    "HighWaterMark",
    "HighWaterTable",
    "IndexCapacity",
    "OnDemandTable",
    "PreWarm",
    "ThrottleAwareScaler",
    "Window",
    "manage_capacity",
)
_NOTHING: Final = KnownTable()


def code_of(candidate: Candidate, table: TableSetup | None = None) -> str:
    """Return the CDK code that declares a candidate; it uses a variable `stack`.

    Args:
        candidate: What is declared.
        table: The table that it is for, whose name, keys and mode count. A provisioned table that exists is managed
            where it is, by `manage_capacity`, in a variable made of its name; a table that changes its mode is declared
            anew. By default it is a table that exists nowhere. Keys that are not known are placeholders, and say so.
    """
    return _document([*_lines(candidate, table), *_raised(candidate, table)])


def scaler_code_of(policy: str, candidate: Candidate, table: TableSetup | None = None) -> str:
    """Return the CDK code that declares a candidate which Highwater's scaler scales, by the policy's name.

    It uses a variable `stack`, and in DIRECT mode one for a table that no account has. A fleet's pulses are not in it.
    """
    plan = candidate.plan
    assert plan is not None  # noqa: S101 - the scaler scales provisioned capacity
    needs = ["# clients that call highwater.pulse(session)"] * policy.endswith("-pulse")
    variable = _variable(table)
    if policy.startswith("highwater-floor"):
        lines = _lines(candidate, table)
        if "manage_capacity(" in lines:
            lines[lines.index("manage_capacity(")] = "capacity = manage_capacity("
            variable = "capacity"
        return _document([*lines, f'ThrottleAwareScaler(stack, "Scaler").add_table({variable})'], needs)
    return _document(
        [
            "# a table with provisioned capacity, which nothing else scales",
            *_imported(table),
            'ThrottleAwareScaler(stack, "Scaler").add_direct_table(',
            f"    {variable},",
            f"    read={_capacity(plan.read)},",
            f"    write={_capacity(plan.write)},",
            ")",
        ],
        needs,
    )


def managed_code_of(setup: TableSetup) -> str:
    """Return the call of `manage_capacity` that keeps what a table has; it uses a variable made of the table's name.

    Where only an account has the table, the code imports it by its name, into a variable `stack`.
    """
    plan = declared_plan(setup, attrgetter("capacity"))
    # an account that has more than the default quota
    most = max(int(target.capacity.max_capacity) for target in plan.targets())
    return _document(_managed(replace(plan, table_quota_units=max(most, DEFAULT_TABLE_QUOTA_UNITS)), setup))


def _lines(candidate: Candidate, table: TableSetup | None) -> list[str]:
    plan, known = candidate.plan, table.known if table is not None else None
    if table is None or known is None:
        return _anew(plan, None)
    if plan is None or table.is_on_demand:
        return _switched(plan, table) if known.is_global else _anew(plan, table)
    lines = _managed(plan, table)
    if known.is_global and known.is_in_app:
        # its scalable targets are made from its billing, and manage_capacity changes their bounds
        lines.insert(0, "# the TableV2 keeps its billing, and highwater migrate has the way")
    elif any(resource.target(dimension).has_target for resource in table.resources for dimension in Dimension):
        lines.insert(0, "# in place of what scales it now; highwater migrate has the deploys in their order")
    return lines


def _raised(candidate: Candidate, table: TableSetup | None) -> list[str]:
    """Return the lines that raise the high-water marks of a table on demand."""
    if not candidate.mark:
        return []
    variable, lines = _variable(table), []
    if table is not None and table.known is not None and table.known.is_global:
        lines.append(f"# {variable} is the TableV2")
    lines += ["PreWarm(", "    stack,", f'    "{_construct_id(table)}Marks",', f"    table={variable},"]
    if None in candidate.mark:
        lines.append(f"    warm_throughput={_warm(candidate.mark[None])},")
    indexes = [f"{json.dumps(index)}: {_warm(mark)}" for index, mark in candidate.mark.items() if index is not None]
    lines += ["    indexes={", *(f"        {index}," for index in indexes), "    },"] if indexes else []
    return [*lines, ")"]


def _warm(mark: Units) -> str:
    read, write = _number(mark.read), _number(mark.write)
    return f"dynamodb.WarmThroughput(read_units_per_second={read}, write_units_per_second={write})"


def _document(lines: Sequence[str], needs: Sequence[str] = ()) -> str:
    """Return lines as code that has the imports that they need."""
    body = "\n".join(lines)
    names = [name for name in _NAMES if re.search(rf'(?<![\w."/]){name}[.(]', body)]
    imports = [f"from cdk_highwater import {', '.join(names)}"] if names else []
    if "dynamodb." in body:
        imports.insert(0, "from aws_cdk import aws_dynamodb as dynamodb")
    if "timedelta(" in body:
        imports[:0] = ["from datetime import timedelta", ""]
    return "\n".join([*needs, *imports, "", body]) + "\n"


def _anew(plan: Plan | None, table: TableSetup | None) -> list[str]:
    """Return the lines of a `HighWaterTable`, or without a plan of an `OnDemandTable`."""
    known = (table.known if table is not None else None) or _NOTHING
    indexes = dict.fromkeys(table.indexes if table is not None else ())
    if plan is not None:
        indexes |= dict.fromkeys(index.index_name for index in plan.indexes)
    variable = _variable(table)
    lines = [
        f"{variable} = {'OnDemandTable' if plan is None else 'HighWaterTable'}(",
        "    stack,",
        f"    {json.dumps(_construct_id(table))},",
        *([f"    table_name={json.dumps(known.table_name)},"] if known.table_name else []),
        *(f"    {line}" for line in _key_lines(known.keys.get(None), "id")),
    ]
    if table is not None and table.is_infrequent_access:
        lines.append("    table_class=dynamodb.TableClass.STANDARD_INFREQUENT_ACCESS,")
    if plan is None:
        lines += [*_on_demand_lines(table), ")"]
        lines += [line for name in indexes for line in _added(variable, "global", name, known.keys.get(name))]
    else:
        lines += [f"    {line}" for line in _plan_lines(plan)]
        if table is not None and table.is_on_demand:
            lines += [
                "    # what DynamoDB switches the table to; target tracking lowers it, and these never change",
                f"    initial_read_units={_number(int(plan.read.max_capacity))},",
                f"    initial_write_units={_number(int(plan.write.max_capacity))},",
            ]
        if indexes:
            lines += ["    indexes=[", *(line for name in indexes for line in _index(name, known)), "    ],"]
        lines.append(")")
    lines += [line for name, keys in known.local_keys.items() for line in _added(variable, "local", name, keys)]
    if table is None or table.known is None:
        return lines
    what = (
        f"in place of the construct of {table.name}, in its scope and with its id"
        if known.is_in_app
        else (f"in place of what declares {table.name}; else import it")
    )
    protected = (
        "# point-in-time recovery, which costs by the GB, and deletion protection are on unless you turn them off"
    )
    return [
        f"# {what}, so that its items stay; keep its other settings",
        *([protected] if known.is_in_app else []),
        *lines,
    ]


def _switched(plan: Plan | None, table: TableSetup) -> list[str]:
    """Return the lines that change the mode of a `TableV2`, which has to stay what it is."""
    lines = [f"# in the TableV2 of {table.name}, for its argument billing"]
    if plan is None:
        return [*lines, "billing = dynamodb.Billing.on_demand()"]
    lines.append("billing = dynamodb.Billing.provisioned(")
    for name, capacity in (("read", plan.read), ("write", plan.write)):
        low, high = _number(int(capacity.min_capacity)), _number(int(capacity.max_capacity))
        # CloudFormation switches the table to the seed
        bounds = f"min_capacity={low}, max_capacity={high}, seed_capacity={high}"
        lines.append(f"    {name}_capacity=dynamodb.Capacity.autoscaled({bounds}),")
    return [*lines, ")", *_managed(plan, table)]


def _managed(plan: Plan, table: TableSetup) -> list[str]:
    """Return the lines of `manage_capacity` for a table that exists."""
    lines = [*_imported(table), "manage_capacity(", f"    {_variable(table)},  # {table.name}"]
    lines += [f"    {line}" for line in _plan_lines(plan)]
    if plan.indexes:
        lines += ["    indexes=[", *(f"        {_index_capacity(index)}," for index in plan.indexes), "    ],"]
    return [*lines, ")"]


def _plan_lines(plan: Plan) -> list[str]:
    """Return the arguments of the capacity, without indexes."""
    lines = [f"read={_capacity(plan.read)},", f"write={_capacity(plan.write)},"]
    if plan.windows:
        lines += ["windows=[", *(f"    {_window(window)}," for window in plan.windows), "],"]
    if plan.mark == HighWaterMark.to_ceiling():
        lines.append("high_water_mark=HighWaterMark.to_ceiling(),")
    if plan.table_quota_units != DEFAULT_TABLE_QUOTA_UNITS:
        lines.append(f"table_quota_units={_number(plan.table_quota_units)},")
    return lines


def _on_demand_lines(table: TableSetup | None) -> list[str]:
    own = table.resources[0] if table is not None else None
    most = {"max_read": own.max_read_units, "max_write": own.max_write_units} if own is not None else {}
    given = ", ".join(f"{name}={_number(units)}" for name, units in most.items() if units is not None)
    if given:
        return [f"    capacity=Capacity.on_demand({given}),"]
    return ["    capacity=Capacity.on_demand(),  # max_read= and max_write= bound what a mistake can cost"]


def _imported(table: TableSetup | None) -> list[str]:
    """Return the line that imports a table which no app of the CDK declares, as far as its name is known."""
    known = (table.known if table is not None else None) or _NOTHING
    if known.is_in_app or known.table_name is None:
        return []
    name = json.dumps(known.table_name)
    return [f"{_variable(table)} = dynamodb.Table.from_table_name(stack, {name}, {name})"]


def _variable(table: TableSetup | None) -> str:
    if table is None or table.known is None:
        return "table"
    last = table.name.rpartition("/")[2]
    if not table.known.is_in_app and not table.known.is_live:
        # the label of an address of Terraform's, without its instance
        last = re.sub(r"\[[^\[]*\]$", "", last).rpartition(".")[2]
    variable = re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last)).lower()
    return variable if variable.isidentifier() and not keyword.iskeyword(variable) else "table"


def _construct_id(table: TableSetup | None) -> str:
    if table is None or table.known is None:
        return "Table"
    return table.name.rpartition("/")[2] if table.known.is_in_app else table.known.table_name or "Table"


def _key_lines(keys: Keys | None, placeholder: str) -> list[str]:
    """Return the arguments of keys; where they are not known, a placeholder that says so."""
    if keys is None:
        key = _attribute(KeyAttribute(placeholder, "S"))
        return [f"partition_key={key},  # a placeholder: its keys are not known"]
    return [*_one_or_more("partition", keys.partition), *_one_or_more("sort", keys.sort)]


def _one_or_more(part: str, attributes: Sequence[KeyAttribute]) -> list[str]:
    if len(attributes) > 1:
        return [f"{part}_keys=[{', '.join(map(_attribute, attributes))}],"]
    return [f"{part}_key={_attribute(each)}," for each in attributes]


def _attribute(key: KeyAttribute) -> str:
    return f"dynamodb.Attribute(name={json.dumps(key.name)}, type=dynamodb.AttributeType.{_TYPES[key.type]})"


def _projection(keys: Keys | None) -> list[str]:
    if keys is None or keys.projection == "ALL":
        return []
    others = ", ".join(map(json.dumps, keys.non_key))
    return [
        f"projection_type=dynamodb.ProjectionType.{keys.projection},",
        *([f"non_key_attributes=[{others}],"] if others else []),
    ]


def _index(name: str, known: KnownTable) -> list[str]:
    keys = known.keys.get(name)
    arguments = [f"index_name={json.dumps(name)},", *_key_lines(keys, f"{name}_key"), *_projection(keys)]
    return ["        GlobalSecondaryIndex(", *(f"            {line}" for line in arguments), "        ),"]


def _added(variable: str, kind: str, name: str, keys: Keys | None) -> list[str]:
    """Return the call that adds an index, `global` or `local`, to a table; a local one has a sort key only."""
    own = _one_or_more("sort", keys.sort) if kind == "local" and keys else _key_lines(keys, f"{name}_key")
    arguments = [f"index_name={json.dumps(name)},", *own, *_projection(keys)]
    return [f"{variable}.add_{kind}_secondary_index(", *(f"    {line}" for line in arguments), ")"]


def _index_capacity(index: IndexCapacity) -> str:
    parts = [f"index_name={json.dumps(index.index_name)}"]
    parts += [
        f"{name}={_capacity(each)}" for name, each in (("read", index.read), ("write", index.write)) if each is not None
    ]
    return f"IndexCapacity({', '.join(parts)})"


def _capacity(capacity: Capacity) -> str:
    if not capacity.is_autoscaled:
        return f"Capacity.fixed({_number(int(capacity.min_capacity))})"
    low, high = _number(int(capacity.min_capacity)), _number(int(capacity.max_capacity))
    parts = [f"min_capacity={low}", f"max_capacity={high}"]
    if capacity.target_utilization_percent != DEFAULT_TARGET_PERCENT:
        parts.append(f"target_utilization_percent={capacity.target_utilization_percent}")
    for name, cooldown in (("in", capacity.scale_in_cooldown), ("out", capacity.scale_out_cooldown)):
        if cooldown:
            parts.append(f"scale_{name}_cooldown=timedelta(seconds={cooldown.total_seconds():.0f})")
    if capacity.disable_scale_in:
        parts.append("disable_scale_in=True")
    return f"Capacity.autoscaled({', '.join(parts)})"


def _window(window: Window) -> str:
    kind, days = "weekly", [f'days="{window.days}"']
    if window.month_day is not None:
        kind, days = (
            "monthly",
            [
                f"{name}={value}" if isinstance(value, int) else f'{name}="{value}"'
                for name, value in asdict(window.month_day).items()
                if value is not None
            ],
        )
    parts = [
        f'"{window.name}"',
        *days,
        f'start="{window.start}"',
        f'end="{window.end}"',
        f'timezone="{window.timezone}"',
    ]
    for name in ("read_min", "write_min"):
        units = getattr(window, name)
        if units is not None:
            parts.append(f"{name}={_number(units)}")
    return f"Window.{kind}({', '.join(parts)})"


def _number(units: int) -> str:
    return f"{units:_}"
