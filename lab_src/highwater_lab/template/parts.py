"""Assigns targets, policies, high-water marks and plans of all stacks of an assembly to tables.

Each part is found first, and read later when its table is requested, so that an error in one table does not prevent a
rehearsal of another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from highwater.core import Dimension, Plan, Units
from highwater.core.names import ALARM_PREFIX, PLANS_PATH, TargetName, names_of_parameter
from highwater.core.scaler.plan import ScaledPlan
from highwater_lab.simulation.setup import Buffer
from highwater_lab.template.document import TemplateError
from highwater_lab.template.intrinsics import OPEN, TABLE_TYPES
from highwater_lab.template.scaling import Key, TemplateScaling, read_policy, read_target, take_base
from highwater_lab.template.stacks import Stack, Stacks, is_open

_TARGET: Final = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY: Final = "AWS::ApplicationAutoScaling::ScalingPolicy"
_FLOORS: Final = "Custom::HighwaterFloors"
_MARKS: Final = "Custom::HighwaterMarks"
_PLAN: Final = "AWS::SSM::Parameter"
_ALARM: Final = "AWS::CloudWatch::Alarm"
_FUNCTION: Final = "AWS::Lambda::Function"
_SCHEDULE: Final = "AWS::Scheduler::Schedule"
# by this variable a function knows whose plans it reads; a coordinator's has it too, and no schedule
_SCALER_VARIABLE: Final = "HIGHWATER_SCALER"
_BUFFER_VARIABLES: Final = {"HIGHWATER_TABLE", "HIGHWATER_WRITE", "HIGHWATER_QUEUE_URL"}
_AGE: Final = "ApproximateAgeOfOldestMessage"
_DIMENSION: Final = re.compile(r"dynamodb:(table|index):(Read|Write)CapacityUnits")
_OWN: Final = re.compile(r"\$\{([A-Za-z0-9]+)\}")
Scope = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A resource that belongs to a table.

    Attributes:
        stack: Its stack.
        logical_id: Its logical id.
        properties: Its properties, unresolved.
        table: The table's identity: its name, or a reference that names its template.
        index: The index's name, which may be a reference; `None` for the table itself.
        dimension: Reads or writes, if it belongs to one of them.
        place: The scope of the table, if it differs from the stack's: one of them says account and region, and the
            other leaves them open.
    """

    stack: Stack
    logical_id: str
    properties: dict[str, Any]
    table: str
    index: str | None = None
    dimension: Dimension | None = None
    place: Scope | None = None

    @property
    def scope(self) -> Scope:
        """The scope in which the table's name is unique."""
        return self.place or self.stack.scope

    @property
    def where(self) -> str:
        """The part's name in messages."""
        return f"{self.logical_id} of {self.stack.template.where}"


class Parts:
    """The parts of every table, by scope and the table's identity."""

    def __init__(self, stacks: Stacks, bound: Mapping[str, tuple[str, str | None]]) -> None:
        """Find the parts in *stacks*; *bound* has the table's identity and the index of some targets, by logical id."""
        self._bound = bound
        self.tables = {
            (stack.scope, identity(stack, stack.name_of(logical_id)))
            for stack in stacks.all
            for kind in TABLE_TYPES
            for logical_id, _ in stack.resources(kind)
        }
        self.targets = [self._placed(part) for stack in stacks.all for part in self._targets(stack)]
        self._by_target = {(part.stack.template.where, part.logical_id): part for part in self.targets}
        self.policies = [self._placed(part) for stack in stacks.all for part in self._policies_of(stack)]
        self._floors = [self._placed(part) for stack in stacks.all for part in _custom(stack, _FLOORS)]
        self._marks = [self._placed(part) for stack in stacks.all for part in _custom(stack, _MARKS)]
        self._buffers = [self._placed(part) for stack in stacks.all for part in _buffers_of(stack)]
        self._plans = [self._placed(part) for stack in stacks.all for part in _plans_of(stack)]

    def scaling(self, scope: Scope, table: str) -> dict[Key, TemplateScaling]:
        """Return the targets of a table, by identity, index and dimension; raises `TemplateError`."""
        targets: dict[Key, TemplateScaling] = {}
        for part in _of(self.targets, scope, table):
            if part.dimension is not None:
                targets[table, part.index, part.dimension] = read_target(
                    part.stack.resolver, part.logical_id, part.properties
                )
        for part in _of(self.policies, scope, table):
            target = targets.get((table, part.index, part.dimension)) if part.dimension else None
            if target is not None and part.dimension is not None:
                resolver = part.stack.resolver
                tracking = read_policy(resolver, part.logical_id, part.properties, part.dimension, target.notes)
                target.tracking = tracking or target.tracking
        for part in _of(self._floors, scope, table):
            take_base(targets, table, _text(part.stack, part.properties.get("Plan")))
        return targets

    def owners(self, scope: Scope, table: str) -> Iterator[Part]:
        """Yield the scalable targets of a table whose condition is true, or cannot be read."""
        for part in self.targets:
            if part.table == table and part.scope == scope and may_exist(part.stack, part.logical_id):
                yield part

    def is_managed(self, scope: Scope, table: str) -> bool:
        """Whether Highwater manages the capacity of a table already."""
        return any(True for _ in _of(self._floors, scope, table))

    def plan(self, scope: Scope, table: str) -> Plan | None:
        """Return the plan of a table that Highwater manages; `None` for others, and if it cannot be read."""
        for part in _of(self._floors, scope, table):
            try:
                return Plan.from_json(_text(part.stack, part.properties.get("Plan")))
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
                return None
        return None

    def marks(self, scope: Scope, table: str) -> dict[str | None, Units]:
        """Return each high-water mark that Highwater raises, by index."""
        marks: dict[str | None, Units] = {}
        for part in _of(self._marks, scope, table):
            resolver = part.stack.resolver
            text, where = resolver.resolve(part.properties.get("Marks")), f"{part.logical_id} Marks"
            try:
                document = json.loads(text) if isinstance(text, str) else None
            except (ValueError, RecursionError):
                document = None
            for mark in resolver.mappings(document if isinstance(document, list) else "no list", where):
                read = resolver.units(mark.get("read"), f"{where} read") or 0
                marks[mark.get("index")] = Units(read, resolver.units(mark.get("write"), f"{where} write") or 0)
        return marks

    def scaler(self, scope: Scope, table: str) -> ScaledPlan | None:
        """Return the plan that Highwater's scaler has for a table; if there are several, one for its own region.

        A coordinator of boosts without a scaler has a plan too, and leaves demand to target tracking.
        """
        found: ScaledPlan | None = None
        for part in _of(self._plans, scope, table):
            scaled = _parse_plan(part)
            if scaled.mode.follows_demand and (scaled.region is None or found is None):
                found = scaled
        return found

    def buffer(self, scope: Scope, table: str) -> Buffer | None:
        """Return the queue that `BufferedWrites` puts in front of a table; several are one with all their budgets.

        Raises `TemplateError` if its rate or its alarm on age cannot be read.
        """
        rates: dict[str, int] = {}
        drains: list[int] = []
        for part in _of(self._buffers, scope, table):
            resolver, variables = part.stack.resolver, part.properties
            budget = _text(part.stack, variables.get("HIGHWATER_BUDGET"))
            rate = resolver.units(variables.get("HIGHWATER_WRITE"), f"{part.logical_id} HIGHWATER_WRITE") or 1
            # workers of one budget that were told different rates keep to the lowest
            rates[budget] = min(rate, rates.get(budget, rate))
            drains += _drain_seconds(part)
        if not rates:
            return None
        buffer = Buffer(units=sum(rates.values()))
        return replace(buffer, drain_seconds=min(drains)) if drains else buffer

    def concerned(self, scope: Scope, table: str) -> Iterator[tuple[Stack, str]]:
        """Yield stack and logical id of all resources from which a table is read, except the table itself."""
        for parts in (self.targets, self.policies, self._floors, self._marks, self._plans, self._buffers):
            yield from ((part.stack, part.logical_id) for part in _of(parts, scope, table))

    def only_scaled(self) -> Iterator[Part]:
        """Yield the first target of each table that no template defines."""
        seen = set(self.tables)
        for part in self.targets:
            if part.index is not None and is_open(part.index) and is_open(part.table):
                # an index of which nothing is known makes no table
                continue
            if (part.scope, part.table) not in seen and may_exist(part.stack, part.logical_id):
                seen.add((part.scope, part.table))
                yield part

    def left_open(self) -> Iterator[Part]:
        """Yield the targets of tables that are known only at deployment."""
        for part in self.targets:
            is_known = not is_open(part.table) or (part.scope, part.table) in self.tables
            if not is_known and may_exist(part.stack, part.logical_id):
                yield part

    def _placed(self, part: Part) -> Part:
        """Return the part, with the scope of the only table that it can belong to if its account or region is open."""
        if (part.scope, part.table) in self.tables:
            return part
        folder = part.stack.template.folder
        places = [
            scope
            for scope, table in self.tables
            if table == part.table
            and all(one == other or folder in (one, other) for one, other in zip(scope, part.scope, strict=True))
        ]
        return replace(part, place=places[0]) if len(places) == 1 else part

    def _targets(self, stack: Stack) -> Iterator[Part]:
        for logical_id, properties in stack.resources(_TARGET):
            part = _part(stack, logical_id, properties, properties.get("ResourceId"))
            if part is not None:
                bound = self._bound.get(logical_id)
                yield part if bound is None else replace(part, table=bound[0], index=bound[1] or part.index)

    def _policies_of(self, stack: Stack) -> Iterator[Part]:
        for logical_id, properties in stack.resources(_POLICY):
            target_id = _text(stack, properties.get("ScalingTargetId"))
            reference = re.fullmatch(r"\$\{(?:[^}:]+:)?([^}.:]+)(?:\.Id)?\}", target_id)
            own = self._by_target.get((stack.template.where, target_id[2:-1]))
            if own is not None:
                yield Part(stack, logical_id, properties, own.table, own.index, own.dimension)
            elif properties.get("ScalingTargetId") is None or target_id == "None":
                part = _part(stack, logical_id, properties, properties.get("ResourceId"))
                if part is not None:
                    yield part
            elif reference is None:
                resource_id, _, rest = target_id.partition("|")
                name = TargetName.find(resource_id, rest.partition("|")[0])
                if name is not None:
                    table = identity(stack, name.table)
                    yield Part(stack, logical_id, properties, table, name.index, name.dimension)
            else:
                target = self._target(stack, target_id, reference[1])
                if target is not None:
                    yield Part(stack, logical_id, properties, target.table, target.index, target.dimension)

    def _target(self, stack: Stack, reference: str, logical_id: str) -> Part | None:
        """Return the target that a policy refers to, in the policy's template or in the one named by the reference."""
        own = self._by_target.get((stack.template.where, logical_id))
        stem = reference[2:].partition(":")[0] if ":" in reference else None
        others = [part for part in self.targets if part.logical_id == logical_id and part.stack.template.stem == stem]
        return own if stem is None else next(iter(others), None)


def fixed_of(stack: Stack) -> Iterator[str]:
    """Yield `alarm` for each alarm of a stack and `scaler` for each scaler, which are paid for whatever the traffic is.

    A scaler's alarms on the consumption of tables are left out: they belong to the tables.
    """
    functions = {
        f"${{{logical_id}.Arn}}"
        for logical_id, properties in stack.resources(_FUNCTION)
        if _SCALER_VARIABLE in str(properties.get("Environment"))
    }
    for logical_id, properties in stack.resources(_ALARM):
        if may_exist(stack, logical_id) and not _text(stack, properties.get("AlarmName")).startswith(ALARM_PREFIX):
            yield "alarm"
    for logical_id, properties in stack.resources(_SCHEDULE):
        target = properties.get("Target")
        if isinstance(target, dict) and may_exist(stack, logical_id) and _text(stack, target.get("Arn")) in functions:
            yield "scaler"


def identity(stack: Stack, name: str) -> str:
    """Return the identity of a table in all templates of its scope: its name, or a reference with its template."""
    if name in stack.twins:
        return f"${{{stack.template.stem}:{name.removeprefix('${').removesuffix('}')}}}"
    return str(stack.outward(name)) if is_open(name) else name


def could_be(part: Part, table: str) -> bool:
    """Return whether a target whose table is known only at deployment may turn out to be of that table."""
    if is_open(table):
        return True
    pattern = ".*".join(re.escape(piece) for piece in OPEN.split(part.table)[::2])
    return re.fullmatch(pattern, table) is not None


def _of(parts: list[Part], scope: Scope, table: str) -> Iterator[Part]:
    return (
        part for part in parts if part.table == table and part.scope == scope and part.stack.exists(part.logical_id)
    )


def may_exist(stack: Stack, logical_id: str) -> bool:
    """Return whether a resource's condition is true, or cannot be read."""
    try:
        return stack.exists(logical_id)
    except TemplateError:
        return True


def _text(stack: Stack, value: Any) -> str:
    """Return a value as text; a value that cannot be evaluated is treated as known only at deployment."""
    try:
        return str(stack.resolver.resolve(value))
    except TemplateError:
        return "${unknown}"


def _part(stack: Stack, logical_id: str, properties: dict[str, Any], resource_id: Any) -> Part | None:
    """Return a resource as the part that its ResourceId names; `None` if it belongs to another service."""
    text = _text(stack, resource_id)
    dimension = _DIMENSION.fullmatch(_text(stack, properties.get("ScalableDimension")))
    if dimension is None:
        return None
    name = TargetName.find(text, dimension[0])
    if name is None:
        # the whole ResourceId is a reference
        index = text if dimension[1] == "index" else None
        return Part(stack, logical_id, properties, identity(stack, text), index, Dimension(dimension[2].lower()))
    return Part(stack, logical_id, properties, identity(stack, name.table), name.index, name.dimension)


def _custom(stack: Stack, kind: str) -> Iterator[Part]:
    for logical_id, properties in stack.resources(kind):
        yield Part(stack, logical_id, properties, identity(stack, _text(stack, properties.get("TableName"))))


def _buffers_of(stack: Stack) -> Iterator[Part]:
    """Yield the functions of `BufferedWrites`, with their environments as properties."""
    for logical_id, properties in stack.resources(_FUNCTION):
        variables = properties.get("Environment")
        variables = variables.get("Variables") if isinstance(variables, dict) else None
        if isinstance(variables, dict) and variables.keys() >= _BUFFER_VARIABLES:
            table = identity(stack, _text(stack, variables["HIGHWATER_TABLE"]))
            yield Part(stack, logical_id, variables, table, None, Dimension.WRITE)


def _drain_seconds(part: Part) -> Iterator[int]:
    """Yield the age at which the alarm of a buffering queue goes off: the queue's drain time."""
    queue = _text(part.stack, part.properties["HIGHWATER_QUEUE_URL"])
    for logical_id, properties in part.stack.resources(_ALARM):
        if properties.get("MetricName") == _AGE and f"{queue[:-1]}.QueueName}}" in _text(
            part.stack, properties.get("Dimensions")
        ):
            yield part.stack.resolver.units(properties.get("Threshold"), f"{logical_id} Threshold") or 0


def _plans_of(stack: Stack) -> Iterator[Part]:
    for logical_id, properties in stack.resources(_PLAN):
        name = _text(stack, properties.get("Name"))
        if name.startswith(PLANS_PATH):
            _, table, _ = names_of_parameter(name)
            yield Part(stack, logical_id, properties, identity(stack, table))


def _parse_plan(part: Part) -> ScaledPlan:
    resolver = part.stack.resolver
    name, value = (str(resolver.resolve(part.properties.get(member))) for member in ("Name", "Value"))
    try:
        return ScaledPlan.from_parameter(name, value)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise resolver.error(
            f"{part.logical_id} (Parameter) Value is not a valid plan for Highwater's scaler: {reason}; run cdk synth "
            "again"
        ) from error
