"""Writes a recommended plan as Terraform code, in HCL.

Source of the resources' arguments: the documentation of Terraform's AWS provider 6, read 2026-11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from highwater.core import Plan, Target, compile_actions, marks_of
from highwater.core.plan.plan import Mark
from highwater.core.schedule.compiler import ScheduledAction
from highwater_lab.recommend.search import Candidate

_TABLE: Final = "aws_dynamodb_table.table"
# What the provider accepts at least; a new table has it without being asked for
_LEAST_WARM_READS, _LEAST_WARM_WRITES = 12_000, 4_000
_INDEXES_ARE_NOT_IGNORED: Final = (
    "# Not global_secondary_index: that would hide every change of the indexes, new and removed ones included. An",
    "# apply therefore sets the capacity of the indexes back to that above; auto scaling raises it again.",
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
    blocks = [list(_table(candidate.plan))]
    labels: set[str] = set()
    for target in candidate.plan.targets():
        actions = compile_actions(target)
        if _is_scaled(target):
            label = _label(target, labels)
            blocks.append(list(_target(target, label, bool(actions))))
            if target.capacity.is_autoscaled:
                blocks.append(list(_policy(target, label)))
            blocks += [list(_action(action, label, number)) for number, action in enumerate(actions, 1)]
    return "\n".join("\n".join(lines) + "\n" for lines in blocks)


def _table(plan: Plan) -> Iterator[str]:
    marks = {mark.index: mark for mark in marks_of(plan)}
    (_, read, write), *indexes = plan.resources()
    yield 'resource "aws_dynamodb_table" "table" {'
    yield '  name           = "table"'
    yield '  billing_mode   = "PROVISIONED"'
    yield '  hash_key       = "id"'
    yield f"  read_capacity  = {int(read.capacity.min_capacity)}"
    yield f"  write_capacity = {int(write.capacity.min_capacity)}"
    for key in ("id", *(f"{index}_key" for index, _, _ in indexes)):
        yield from ("", "  attribute {", f"    name = {_text(key)}", '    type = "S"', "  }")
    for index, index_read, index_write in indexes:
        yield ""
        yield "  global_secondary_index {"
        yield f"    name            = {_text(str(index))}"
        yield f"    hash_key        = {_text(f'{index}_key')}"
        yield '    projection_type = "ALL"'
        yield f"    read_capacity   = {int(index_read.capacity.min_capacity)}"
        yield f"    write_capacity  = {int(index_write.capacity.min_capacity)}"
        yield from (f"  {line}" if line else "" for line in _warm(marks.get(index)))
        yield "  }"
    yield from _warm(marks.get(None))
    scaled = [f"{each.dimension}_capacity" for each in (read, write) if _is_scaled(each)]
    if scaled:
        yield ""
        yield "  lifecycle {"
        yield "    # auto scaling changes these"
        yield from (f"    {line}" for line in _INDEXES_ARE_NOT_IGNORED if indexes)
        yield f"    ignore_changes = [{', '.join(scaled)}]"
        yield "  }"
    yield "}"


def _is_scaled(target: Target) -> bool:
    """Return whether a policy or scheduled actions change a capacity."""
    return target.capacity.is_autoscaled or bool(compile_actions(target))


def _warm(mark: Mark | None) -> Iterator[str]:
    reads = mark.read if mark is not None and mark.read > _LEAST_WARM_READS else None
    writes = mark.write if mark is not None and mark.write > _LEAST_WARM_WRITES else None
    if reads is None and writes is None:
        return
    yield from ("", "  warm_throughput {")
    if reads is not None:
        yield f"    {'read_units_per_second':<{22 if writes is not None else 21}} = {reads}"
    if writes is not None:
        yield f"    write_units_per_second = {writes}"
    yield "  }"


def _target(target: Target, label: str, has_actions: bool) -> Iterator[str]:
    capacity = target.capacity
    kind = "table" if target.index is None else "index"
    resource = f"table/${{{_TABLE}.name}}"
    yield f'resource "aws_appautoscaling_target" "{label}" {{'
    yield '  service_namespace  = "dynamodb"'
    if target.index is None:
        yield f'  resource_id        = "{resource}"'
    else:
        yield f'  resource_id        = "{resource}/index/{_text(target.index)[1:-1]}"'
    yield f'  scalable_dimension = "dynamodb:{kind}:{target.dimension.title()}CapacityUnits"'
    yield f"  min_capacity       = {int(capacity.min_capacity)}"
    yield f"  max_capacity       = {int(capacity.max_capacity)}"
    if has_actions:
        yield ""
        yield "  lifecycle {"
        yield "    # the scheduled actions below set both, whenever a window opens or closes"
        yield "    ignore_changes = [min_capacity, max_capacity]"
        yield "  }"
    yield "}"


def _scaled(label: str) -> Iterator[str]:
    """Yield the arguments that say which target a policy or a scheduled action is of."""
    for argument in ("service_namespace", "resource_id", "scalable_dimension"):
        yield f"  {argument:<18} = aws_appautoscaling_target.{label}.{argument}"


def _policy(target: Target, label: str) -> Iterator[str]:
    capacity = target.capacity
    yield f'resource "aws_appautoscaling_policy" "{label}" {{'
    yield f'  name               = "{target.dimension}-utilization"'
    yield '  policy_type        = "TargetTrackingScaling"'
    yield from _scaled(label)
    yield ""
    yield "  target_tracking_scaling_policy_configuration {"
    yield f"    target_value       = {capacity.target_utilization_percent}"
    yield f"    scale_in_cooldown  = {int(capacity.scale_in_cooldown.total_seconds())}"
    yield f"    scale_out_cooldown = {int(capacity.scale_out_cooldown.total_seconds())}"
    if capacity.disable_scale_in:
        yield "    disable_scale_in   = true"
    yield ""
    yield "    predefined_metric_specification {"
    yield f'      predefined_metric_type = "DynamoDB{target.dimension.title()}CapacityUtilization"'
    yield from ("    }", "  }", "}")


def _action(action: ScheduledAction, label: str, number: int) -> Iterator[str]:
    yield f'resource "aws_appautoscaling_scheduled_action" "{label}_{number}" {{'
    yield f"  name               = {_text(action.name)}"
    yield from _scaled(label)
    yield f"  schedule           = {_text(action.schedule)}"
    yield f"  timezone           = {_text(action.timezone)}"
    for name, at in (("start_time", action.start), ("end_time", action.end)):
        if at is not None:
            yield f"  {name:<18} = {_text(_instant(at))}"
    yield ""
    yield "  scalable_target_action {"
    yield f"    min_capacity = {action.bounds.min}"
    yield f"    max_capacity = {action.bounds.max}"
    yield from ("  }", "}")


def _label(target: Target, taken: set[str]) -> str:
    """Return a name for the resources of a target that no other has; *taken* gets it."""
    name = "table" if target.index is None else re.sub(r"[^A-Za-z0-9_-]", "_", f"index_{target.index}")
    label, number = f"{name}_{target.dimension}", 1
    while label in taken:
        number += 1
        label = f"{name}_{number}_{target.dimension}"
    taken.add(label)
    return label


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
