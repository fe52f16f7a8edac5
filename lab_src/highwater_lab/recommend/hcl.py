"""Writes a recommended plan as Terraform code, in HCL.

Source of the resources' arguments: the documentation of Terraform's AWS provider 6, read 2026-11. Indexes are resources
of their own, which are not experimental since 6.44: only these let Terraform ignore the capacity that auto scaling
changes, and nothing else of an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count
from typing import Final

from highwater.core import Target, compile_actions, marks_of
from highwater.core.plan.plan import Mark
from highwater.core.schedule.compiler import ScheduledAction
from highwater_lab.recommend.candidates import Candidate
from highwater_lab.simulation import KeyAttribute, Keys, ResourceSetup, TableSetup

# What the provider accepts at least; a new table has it without being asked for
_LEAST_WARM_READS, _LEAST_WARM_WRITES = 12_000, 4_000
_NOTHING_ELSE: Final = (
    "what changes by itself, and nothing else;",
    "global_secondary_index here would hide new, changed and removed indexes",
)
_TYPES_OF_ADDRESS: Final = re.compile(r"(?:.*\.)?aws_dynamodb_table\.([\w-]+)(?:\[.*\])?")


def hcl_of(candidate: Candidate, table: TableSetup | None = None) -> str:
    """Return the Terraform code that declares a candidate: the table, its targets, policies and scheduled actions.

    Args:
        candidate: What is declared.
        table: The table that it is for, whose name, keys, class, replicas and mode count. By default it is a table that
            exists nowhere. A name and keys that are not known are placeholders, and say so.
    """
    return "\n".join("\n".join(lines) + "\n" for lines in _Hcl(candidate, table).blocks())


class _Hcl:
    """The blocks of one table."""

    def __init__(self, candidate: Candidate, table: TableSetup | None) -> None:
        plan = candidate.plan
        self._plan, self._table, self._raised = plan, table, candidate.mark
        self._known = table.known if table is not None else None
        self._label = _label_of(table)
        self._address = f"aws_dynamodb_table.{self._label}"
        names = [str(index) for index, _, _ in plan.resources()][1:] if plan is not None else []
        own = table.indexes if table is not None and self._known is not None else ()
        # so that the code of several tables may stand in one module
        self._prefix = "" if self._label == "table" else f"{self._label}_"
        labels = _labels(list(dict.fromkeys((*own, *names))))
        self._labels = {index: f"{self._prefix}{label}" for index, label in labels}

    def blocks(self) -> Iterator[list[str]]:
        """Yield the lines of each block, in the order in which they are read."""
        notes = ["needs version 6.44 or newer of the AWS provider"] if self._labels else []
        if self._known is not None:
            notes += [
                f"for the resource that declares {self._name or 'the table'}, which keeps its other arguments, such as",
                "ttl, streams, point-in-time recovery and tags; in place of what scales it now",
            ]
        if self._labels and self._known is not None and self._name is not None and not self._known.is_live:
            index, label = next(iter(self._labels.items()))
            address = f"aws_dynamodb_global_secondary_index.{label}"
            notes.append(f"indexes that exist are imported first: terraform import {address} '{self._name},{index}'")
        if notes:
            yield [f"# {note}" for note in notes]
        yield from self._imports()
        marks = {index: Mark(index, mark.read, mark.write, 0, 0) for index, mark in self._raised.items()}
        marks |= {mark.index: mark for mark in marks_of(self._plan)} if self._plan is not None else {}
        declared = {index: (read, write) for index, read, write in self._plan.resources()} if self._plan else {}
        yield self._table_block(declared.get(None), marks.get(None))
        for index, label in self._labels.items():
            yield self._index_block(index, label, declared.get(index), marks.get(index))
        for target in self._plan.targets() if self._plan is not None else ():
            yield from self._scaling(target)

    @property
    def _name(self) -> str | None:
        return self._known.table_name if self._known is not None else None

    @property
    def _is_switched(self) -> bool:
        """Whether a table that is on demand becomes provisioned."""
        return self._table is not None and self._known is not None and self._table.is_on_demand

    def _keys(self, index: str | None) -> Keys | None:
        return self._known.keys.get(index) if self._known is not None else None

    def _imports(self) -> Iterator[list[str]]:
        """Yield what lets Terraform take over a table of an account, and its indexes, which it would else create."""
        if self._known is None or not self._known.is_live or self._name is None:
            return
        yield _block("import", {"to": self._address, "id": _text(self._name)})
        for index, label in self._labels.items():
            to = f"aws_dynamodb_global_secondary_index.{label}"
            yield _block("import", {"to": to, "id": _text(f"{self._name},{index}")})

    def _table_block(self, declared: tuple[Target, Target] | None, mark: Mark | None) -> list[str]:
        keys = self._keys(None)
        partition = keys.partition[0] if keys else KeyAttribute("id", "S")
        arguments: dict[str, object] = {
            "name": _text(self._name or "table"),
            "billing_mode": '"PAY_PER_REQUEST"' if declared is None else '"PROVISIONED"',
        }
        if self._table is not None and self._table.is_infrequent_access:
            arguments["table_class"] = '"STANDARD_INFREQUENT_ACCESS"'
        arguments["hash_key"] = _text(partition.name)
        if keys is not None and keys.sort:
            arguments["range_key"] = _text(keys.sort[0].name)
        for target in declared or ():
            arguments[f"{target.dimension}_capacity"] = self._units(target)
        replicas = self._table.replicas if self._table is not None else ()
        if replicas:
            arguments |= {"stream_enabled": "true", "stream_view_type": '"NEW_AND_OLD_IMAGES"'}
        local = self._known.local_keys if self._known is not None else {}
        attributes = [partition, *(keys.sort if keys else ()), *(each for own in local.values() for each in own.sort)]
        blocks = [
            _block("attribute", {"name": _text(each.name), "type": _text(each.type)})
            for each in dict.fromkeys(attributes)
        ]
        for index, own in local.items():
            named = {"name": _text(index), "range_key": _text(own.sort[0].name)}
            blocks.append(_block("local_secondary_index", named | _projection(own)))
        blocks += [_block("replica", {"region_name": _text(replica.region)}) for replica in replicas]
        most = self._table.resources[0] if self._table is not None and declared is None else None
        if most is not None and (maximums := _maximums(most)):
            blocks.append(_block("on_demand_throughput", maximums))
        if self._known is None and mark is not None:
            raised = {name: units for name, units, least in _warm(mark) if units > least}
            blocks += [_block("warm_throughput", raised)] if raised else []
        blocks += self._lifecycle(declared or (), has_mark=any(block[0] == "warm_throughput {" for block in blocks))
        notes = []
        if self._known is not None and self._name is None:
            notes.append("its name is known only after a deploy: table is a placeholder")
        if keys is None:
            notes.append("its keys are not known: id is a placeholder")
        if self._known is not None and mark is not None:
            notes += self._mark_notes(mark)
        return _block(f'resource "aws_dynamodb_table" "{self._label}"', arguments, *blocks, notes=notes)

    def _units(self, target: Target) -> int:
        """Return the capacity that Terraform sets: the floor, or where the mode is switched, enough for all traffic."""
        return int(target.capacity.max_capacity if self._is_switched else target.capacity.min_capacity)

    def _lifecycle(self, declared: Iterable[Target], *, has_mark: bool) -> list[list[str]]:
        scaled = [f"{each.dimension}_capacity" for each in declared if _is_scaled(each)]
        ignored, notes = list(scaled), list(_NOTHING_ELSE)
        if self._is_switched and scaled:
            ignored = []
            notes.insert(0, f"add {', '.join(scaled)} after the apply that switches the mode, which else is to 1 unit;")
        if has_mark or self._known is not None:
            ignored.append("warm_throughput")
        # a key or a local index that is not known would make Terraform replace a table that exists
        arguments: dict[str, object] = {"prevent_destroy": "true"} if self._known is not None else {}
        if not ignored:
            return []
        return [_block("lifecycle", arguments | {"ignore_changes": f"[{', '.join(ignored)}]"}, notes=notes)]

    def _mark_notes(self, mark: Mark) -> list[str]:
        """Return the lines on a mark above what the table is known to have: Terraform does not raise it here."""
        own = self._table.resources[0] if self._table is not None else None
        known = (own.warm_read_units, own.warm_write_units) if own is not None else (0, 0)
        wanted = [
            f"{name}={units}"
            for name, (_, units, least), has in zip(
                ("ReadUnitsPerSecond", "WriteUnitsPerSecond"), _warm(mark), known, strict=True
            )
            if units > max(least, has)
        ]
        if not wanted:
            return []
        return [
            "warm_throughput is left as it is; where it is less, raise it once, so that no increase has to wait:",
            f"aws dynamodb update-table --table-name {self._name or 'NAME'} --warm-throughput {','.join(wanted)}",
        ]

    def _index_block(
        self, name: str, label: str, declared: tuple[Target, Target] | None, mark: Mark | None
    ) -> list[str]:
        keys = self._keys(name)
        blocks = []
        if self._known is None and mark is not None and any(units > least for _, units, least in _warm(mark)):
            # an index declares both
            blocks.append(_block("warm_throughput =", {key: max(units, least) for key, units, least in _warm(mark)}))
        for kind, attributes in (
            ("HASH", keys.partition if keys else (KeyAttribute(f"{name}_key", "S"),)),
            ("RANGE", keys.sort if keys else ()),
        ):
            for each in attributes:
                key = {"attribute_name": _text(each.name), "attribute_type": _text(each.type)}
                blocks.append(_block("key_schema", key | {"key_type": _text(kind)}))
        blocks.append(_block("projection", _projection(keys)))
        own = None
        if self._table is not None and declared is None:
            own = next((each for each in self._table.resources if each.index == name), None)
        if own is not None and (maximums := _maximums(own)):
            blocks.append(_block("on_demand_throughput", maximums))
        ignored = ["warm_throughput"] if self._known is not None or "warm_throughput = {" in map(_head, blocks) else []
        if declared is not None:
            units = {f"{each.dimension}_capacity_units": self._units(each) for each in declared}
            blocks.append(_block("provisioned_throughput", units))
            if any(map(_is_scaled, declared)) and not self._is_switched:
                ignored.insert(0, "provisioned_throughput")
        if ignored:
            note = ["what changes by itself, and nothing else"]
            if self._is_switched:
                note.insert(0, "add provisioned_throughput after the apply that switches the mode;")
            blocks.append(_block("lifecycle", {"ignore_changes": f"[{', '.join(ignored)}]"}, notes=note))
        arguments = {"table_name": f"{self._address}.name", "index_name": _text(name)}
        notes = ["its keys are not known: they are placeholders"] if keys is None else []
        return _block(f'resource "aws_dynamodb_global_secondary_index" "{label}"', arguments, *blocks, notes=notes)

    def _scaling(self, target: Target) -> Iterator[list[str]]:
        """Yield the target, its policy and its actions, one after the other: AWS refuses two changes at once."""
        if not _is_scaled(target):
            return
        actions = compile_actions(target)
        of = f"{self._prefix}table" if target.index is None else self._labels[target.index]
        label = f"{of}_{target.dimension}"
        yield self._target(target, label, bool(actions))
        last = f"aws_appautoscaling_target.{label}"
        if target.capacity.is_autoscaled:
            yield _policy(target, label)
            last = f"aws_appautoscaling_policy.{label}"
        for number, action in enumerate(actions, 1):
            yield _action(action, label, number, last)
            last = f"aws_appautoscaling_scheduled_action.{label}_{number}"

    def _target(self, target: Target, label: str, has_actions: bool) -> list[str]:
        kind, index = "table", ""
        if target.index is not None:
            kind = "index"
            index = f"/index/${{aws_dynamodb_global_secondary_index.{self._labels[target.index]}.index_name}}"
        arguments = {
            "service_namespace": '"dynamodb"',
            "resource_id": f'"table/${{{self._address}.name}}{index}"',
            "scalable_dimension": f'"dynamodb:{kind}:{target.dimension.title()}CapacityUnits"',
            "min_capacity": int(target.capacity.min_capacity),
            "max_capacity": int(target.capacity.max_capacity),
        }
        blocks = []
        if has_actions:
            note = "the scheduled actions below set both, whenever a window opens or closes"
            blocks.append(_block("lifecycle", {"ignore_changes": "[min_capacity, max_capacity]"}, notes=[note]))
        return _block(f'resource "aws_appautoscaling_target" "{label}"', arguments, *blocks)


def _label_of(table: TableSetup | None) -> str:
    """Return the label of the table's resource: its own in Terraform, or one made of its name."""
    if table is None or table.known is None:
        return "table"
    if own := _TYPES_OF_ADDRESS.fullmatch(table.name):
        return own[1]
    label = re.sub(r"[^A-Za-z0-9_-]", "_", table.known.table_name or table.name.rpartition("/")[2])
    return label if re.match(r"[A-Za-z_]", label) else f"table_{label}"


def _projection(keys: Keys | None) -> dict[str, object]:
    """Return the arguments for what an index contains; by default all."""
    arguments: dict[str, object] = {"projection_type": _text(keys.projection if keys else "ALL")}
    if keys is not None and keys.non_key:
        arguments["non_key_attributes"] = f"[{', '.join(map(_text, keys.non_key))}]"
    return arguments


def _maximums(own: ResourceSetup) -> dict[str, object]:
    most = {"max_read_request_units": own.max_read_units, "max_write_request_units": own.max_write_units}
    return {name: units for name, units in most.items() if units is not None}


def _head(block: list[str]) -> str:
    return block[0]


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


def _warm(mark: Mark) -> tuple[tuple[str, int, int], tuple[str, int, int]]:
    """Return for reads and writes the argument's name, the units of the mark, and the least that can be asked for."""
    return (
        ("read_units_per_second", mark.read, _LEAST_WARM_READS),
        ("write_units_per_second", mark.write, _LEAST_WARM_WRITES),
    )


def _is_scaled(target: Target) -> bool:
    """Return whether a policy or scheduled actions change a capacity."""
    return target.capacity.is_autoscaled or bool(compile_actions(target))


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


def _action(action: ScheduledAction, label: str, number: int, after: str) -> list[str]:
    times = {"start_time": action.start, "end_time": action.end}
    return _block(
        f'resource "aws_appautoscaling_scheduled_action" "{label}_{number}"',
        {"name": _text(action.name)}
        | _scaled(label)
        | {"schedule": _text(action.schedule), "timezone": _text(action.timezone)}
        | {name: _text(_instant(at)) for name, at in times.items() if at is not None}
        | {"depends_on": f"[{after}]"},
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
