"""Writes a recommended plan as Terraform code, in HCL.

Source of the resources' arguments: the documentation of Terraform's AWS provider 6, read 2026-11. Indexes are resources
of their own, which are not experimental since 6.44: only these let Terraform ignore the capacity that auto scaling
changes, and nothing else of an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count
from typing import Final

from highwater.core import Target, compile_actions, marks_of
from highwater.core.plan.plan import Mark
from highwater.core.schedule.compiler import ScheduledAction
from highwater_lab.recommend.candidates import Candidate

_TABLE: Final = "aws_dynamodb_table.table"
# What the provider accepts at least; a new table has it without being asked for
_LEAST_WARM_READS, _LEAST_WARM_WRITES = 12_000, 4_000
_NOTHING_ELSE: Final = (
    "auto scaling changes these, and nothing else;",
    "global_secondary_index here would hide new, changed and removed indexes",
)
_ON_DEMAND: Final = f"""\
resource "{_TABLE.replace(".", '" "')}" {{
  name         = "table"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"

  attribute {{
    name = "id"
    type = "S"
  }}
}}
"""


def hcl_of(candidate: Candidate) -> str:
    """Return the Terraform code that declares a candidate: the table, its targets, policies and scheduled actions.

    The names and the partition keys of the table and of its indexes are placeholders.
    """
    if candidate.plan is None:
        return _ON_DEMAND
    marks = {mark.index: mark for mark in marks_of(candidate.plan)}
    (_, table_read, table_write), *indexes = candidate.plan.resources()
    labels = dict(_labels([str(index) for index, _, _ in indexes]))
    blocks = [_table(table_read, table_write, marks.get(None))]
    blocks += [_index(labels[str(index)], read, write, marks.get(index)) for index, read, write in indexes]
    for target in candidate.plan.targets():
        actions = compile_actions(target)
        if _is_scaled(target):
            of = "table" if target.index is None else labels[target.index]
            label = f"{of}_{target.dimension}"
            blocks.append(_target(target, label, of, bool(actions)))
            if target.capacity.is_autoscaled:
                blocks.append(_policy(target, label))
            blocks += [_action(action, label, number) for number, action in enumerate(actions, 1)]
    text = "\n".join("\n".join(lines) + "\n" for lines in blocks)
    return f"# needs version 6.44 or newer of the AWS provider\n\n{text}" if indexes else text


def _block(head: str, arguments: Mapping[str, object], *blocks: list[str], notes: Sequence[str] = ()) -> list[str]:
    """Return the lines of a block: its notes, its arguments with their values below each other, and its blocks."""
    width = max(map(len, arguments), default=0)
    lines = [*(f"# {note}" for note in notes), *(f"{name:<{width}} = {value}" for name, value in arguments.items())]
    for block in blocks:
        # an object is one more argument, and other blocks stand apart
        lines += [*([""] if lines and not block[0].endswith("= {") else []), *block]
    return [f"{head} {{", *(f"  {line}".rstrip() for line in lines), "}"]


def _labels(indexes: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each index with the name of its resources, which no other index has."""
    taken = set()
    for index in indexes:
        wanted = re.sub(r"[^A-Za-z0-9_-]", "_", f"index_{index}")
        numbered = (f"{wanted}_{number}" for number in count(2))
        label = next(each for each in chain([wanted], numbered) if each not in taken)
        taken.add(label)
        yield index, label


def _table(read: Target, write: Target, mark: Mark | None) -> list[str]:
    blocks = [_block("attribute", {"name": '"id"', "type": '"S"'})]
    if mark is not None and (raised := {name: units for name, units, least in _warm(mark) if units > least}):
        blocks.append(_block("warm_throughput", raised))
    if scaled := [f"{each.dimension}_capacity" for each in (read, write) if _is_scaled(each)]:
        blocks.append(_block("lifecycle", {"ignore_changes": f"[{', '.join(scaled)}]"}, notes=_NOTHING_ELSE))
    arguments = {
        "name": '"table"',
        "billing_mode": '"PROVISIONED"',
        "hash_key": '"id"',
        "read_capacity": int(read.capacity.min_capacity),
        "write_capacity": int(write.capacity.min_capacity),
    }
    return _block('resource "aws_dynamodb_table" "table"', arguments, *blocks)


def _warm(mark: Mark) -> tuple[tuple[str, int, int], tuple[str, int, int]]:
    """Return for reads and writes the argument's name, the units of the mark, and the least that can be asked for."""
    return (
        ("read_units_per_second", mark.read, _LEAST_WARM_READS),
        ("write_units_per_second", mark.write, _LEAST_WARM_WRITES),
    )


def _index(label: str, read: Target, write: Target, mark: Mark | None) -> list[str]:
    name = str(read.index)
    blocks = []
    if mark is not None and any(units > least for _, units, least in _warm(mark)):
        # an index declares both
        blocks.append(_block("warm_throughput =", {key: max(units, least) for key, units, least in _warm(mark)}))
    key = {"attribute_name": _text(f"{name}_key"), "attribute_type": '"S"', "key_type": '"HASH"'}
    blocks += [_block("key_schema", key), _block("projection", {"projection_type": '"ALL"'})]
    units = {f"{each.dimension}_capacity_units": int(each.capacity.min_capacity) for each in (read, write)}
    blocks.append(_block("provisioned_throughput", units))
    if _is_scaled(read) or _is_scaled(write):
        ignored = {"ignore_changes": "[provisioned_throughput]"}
        blocks.append(_block("lifecycle", ignored, notes=["auto scaling changes it"]))
    arguments = {"table_name": f"{_TABLE}.name", "index_name": _text(name)}
    return _block(f'resource "aws_dynamodb_global_secondary_index" "{label}"', arguments, *blocks)


def _is_scaled(target: Target) -> bool:
    """Return whether a policy or scheduled actions change a capacity."""
    return target.capacity.is_autoscaled or bool(compile_actions(target))


def _target(target: Target, label: str, of: str, has_actions: bool) -> list[str]:
    kind = "table" if target.index is None else "index"
    index = "" if target.index is None else f"/index/${{aws_dynamodb_global_secondary_index.{of}.index_name}}"
    arguments = {
        "service_namespace": '"dynamodb"',
        "resource_id": f'"table/${{{_TABLE}.name}}{index}"',
        "scalable_dimension": f'"dynamodb:{kind}:{target.dimension.title()}CapacityUnits"',
        "min_capacity": int(target.capacity.min_capacity),
        "max_capacity": int(target.capacity.max_capacity),
    }
    blocks = []
    if has_actions:
        note = "the scheduled actions below set both, whenever a window opens or closes"
        blocks.append(_block("lifecycle", {"ignore_changes": "[min_capacity, max_capacity]"}, notes=[note]))
    return _block(f'resource "aws_appautoscaling_target" "{label}"', arguments, *blocks)


def _scaled(label: str) -> dict[str, object]:
    """Return the arguments that say which target a policy or a scheduled action is of."""
    names = ("service_namespace", "resource_id", "scalable_dimension")
    return {name: f"aws_appautoscaling_target.{label}.{name}" for name in names}


def _policy(target: Target, label: str) -> list[str]:
    capacity = target.capacity
    tracking: dict[str, object] = {
        "target_value": capacity.target_utilization_percent,
        "scale_in_cooldown": int(capacity.scale_in_cooldown.total_seconds()),
        "scale_out_cooldown": int(capacity.scale_out_cooldown.total_seconds()),
    }
    if capacity.disable_scale_in:
        tracking["disable_scale_in"] = "true"
    metric = {"predefined_metric_type": f'"DynamoDB{target.dimension.title()}CapacityUtilization"'}
    return _block(
        f'resource "aws_appautoscaling_policy" "{label}"',
        {"name": f'"{target.dimension}-utilization"', "policy_type": '"TargetTrackingScaling"'} | _scaled(label),
        _block(
            "target_tracking_scaling_policy_configuration",
            tracking,
            _block("predefined_metric_specification", metric),
        ),
    )


def _action(action: ScheduledAction, label: str, number: int) -> list[str]:
    times = {"start_time": action.start, "end_time": action.end}
    return _block(
        f'resource "aws_appautoscaling_scheduled_action" "{label}_{number}"',
        {"name": _text(action.name)}
        | _scaled(label)
        | {"schedule": _text(action.schedule), "timezone": _text(action.timezone)}
        | {name: _text(_instant(at)) for name, at in times.items() if at is not None},
        _block("scalable_target_action", {"min_capacity": action.bounds.min, "max_capacity": action.bounds.max}),
    )


def _instant(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _text(value: str) -> str:
    """Return a text as HCL writes it: quoted, and without templates."""
    quoted = "".join(
        _ESCAPES.get(
            each, each if each.isprintable() else f"\\U{ord(each):08x}" if ord(each) > 0xFFFF else f"\\u{ord(each):04x}"
        )
        for each in value
    )
    return '"' + quoted.replace("${", "$${").replace("%{", "%%{") + '"'
