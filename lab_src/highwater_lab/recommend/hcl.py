"""Writes a recommended plan as Terraform code, in HCL.

Source of the resources' arguments: the documentation of Terraform's AWS provider 6, read 2026-11. Indexes are resources
of their own, which are not experimental since 6.44: only these let Terraform ignore the capacity that auto scaling
changes, and nothing else of an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    "# auto scaling changes these, and nothing else;",
    "# global_secondary_index here would hide new, changed and removed indexes",
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
    blocks = [list(_table(table_read, table_write, marks.get(None)))]
    for index, read, write in indexes:
        blocks.append(list(_index(labels[str(index)], read, write, marks.get(index))))
    for target in candidate.plan.targets():
        actions = compile_actions(target)
        if _is_scaled(target):
            of = "table" if target.index is None else labels[target.index]
            label = f"{of}_{target.dimension}"
            blocks.append(list(_target(target, label, of, bool(actions))))
            if target.capacity.is_autoscaled:
                blocks.append(list(_policy(target, label)))
            blocks += [list(_action(action, label, number)) for number, action in enumerate(actions, 1)]
    text = "\n".join("\n".join(lines) + "\n" for lines in blocks)
    return f"# needs version 6.44 or newer of the AWS provider\n\n{text}" if indexes else text


def _labels(indexes: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each index with the name of its resources, which no other index has."""
    taken = set()
    for index in indexes:
        wanted = re.sub(r"[^A-Za-z0-9_-]", "_", f"index_{index}")
        numbered = (f"{wanted}_{number}" for number in count(2))
        label = next(each for each in chain([wanted], numbered) if each not in taken)
        taken.add(label)
        yield index, label


def _table(read: Target, write: Target, mark: Mark | None) -> Iterator[str]:
    yield 'resource "aws_dynamodb_table" "table" {'
    yield '  name           = "table"'
    yield '  billing_mode   = "PROVISIONED"'
    yield '  hash_key       = "id"'
    yield f"  read_capacity  = {int(read.capacity.min_capacity)}"
    yield f"  write_capacity = {int(write.capacity.min_capacity)}"
    yield from ("", "  attribute {", '    name = "id"', '    type = "S"', "  }")
    reads = mark.read if mark is not None and mark.read > _LEAST_WARM_READS else None
    writes = mark.write if mark is not None and mark.write > _LEAST_WARM_WRITES else None
    if reads is not None or writes is not None:
        yield from ("", "  warm_throughput {")
        if reads is not None:
            yield f"    {'read_units_per_second':<{22 if writes is not None else 21}} = {reads}"
        if writes is not None:
            yield f"    write_units_per_second = {writes}"
        yield "  }"
    if scaled := [f"{each.dimension}_capacity" for each in (read, write) if _is_scaled(each)]:
        yield ""
        yield "  lifecycle {"
        yield from (f"    {line}" for line in _NOTHING_ELSE)
        yield f"    ignore_changes = [{', '.join(scaled)}]"
        yield "  }"
    yield "}"


def _index(label: str, read: Target, write: Target, mark: Mark | None) -> Iterator[str]:
    name = str(read.index)
    yield f'resource "aws_dynamodb_global_secondary_index" "{label}" {{'
    yield f"  table_name = {_TABLE}.name"
    yield f"  index_name = {_text(name)}"
    if mark is not None and (mark.read > _LEAST_WARM_READS or mark.write > _LEAST_WARM_WRITES):
        yield "  warm_throughput = {"
        yield f"    read_units_per_second  = {max(mark.read, _LEAST_WARM_READS)}"
        yield f"    write_units_per_second = {max(mark.write, _LEAST_WARM_WRITES)}"
        yield "  }"
    yield ""
    yield "  key_schema {"
    yield f"    attribute_name = {_text(f'{name}_key')}"
    yield '    attribute_type = "S"'
    yield '    key_type       = "HASH"'
    yield from ("  }", "", "  projection {", '    projection_type = "ALL"', "  }", "")
    yield "  provisioned_throughput {"
    yield f"    read_capacity_units  = {int(read.capacity.min_capacity)}"
    yield f"    write_capacity_units = {int(write.capacity.min_capacity)}"
    yield "  }"
    if _is_scaled(read) or _is_scaled(write):
        yield ""
        yield "  lifecycle {"
        yield "    # auto scaling changes it"
        yield "    ignore_changes = [provisioned_throughput]"
        yield "  }"
    yield "}"


def _is_scaled(target: Target) -> bool:
    """Return whether a policy or scheduled actions change a capacity."""
    return target.capacity.is_autoscaled or bool(compile_actions(target))


def _target(target: Target, label: str, of: str, has_actions: bool) -> Iterator[str]:
    capacity = target.capacity
    kind = "table" if target.index is None else "index"
    resource = f"table/${{{_TABLE}.name}}"
    yield f'resource "aws_appautoscaling_target" "{label}" {{'
    yield '  service_namespace  = "dynamodb"'
    if target.index is None:
        yield f'  resource_id        = "{resource}"'
    else:
        index = f"${{aws_dynamodb_global_secondary_index.{of}.index_name}}"
        yield f'  resource_id        = "{resource}/index/{index}"'
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
