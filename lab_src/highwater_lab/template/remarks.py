"""What templates declare that was not read and may scale or make tables, and what contradicts itself: one list."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from highwater_lab.template.document import Template, TemplateError
from highwater_lab.template.intrinsics import TABLE_TYPES, as_text
from highwater_lab.template.parts import Part, Parts, Scope, identity, may_exist
from highwater_lab.template.scaling import why_not_tracked
from highwater_lab.template.stacks import Stack, Stacks
from highwater_lab.template.unread import find_unread, is_unread


class RemarkKind(StrEnum):
    """Why a remark is made."""

    NOT_READ = "not read"
    CONTRADICTION = "contradiction"
    TWO_TARGETS = "two-targets"
    # a resource of the catalogue that scales nothing, as a person says, or because its tables are on demand
    VOUCHED = "vouched"
    ON_DEMAND = "on demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A part of a template that is not read, or that cannot be as it is declared.

    Attributes:
        kind: Which of these; two scalable targets for one capacity are a contradiction that AWS sees only in a change.
        where: Its place: logical id or address, with its type.
        what: What that means, in a sentence without a period.
        stage: The folder's stage that its stack belongs to, empty for none.
        stack: The stack, as it is compared: its name or its template's file.
        tables: The tables that it names, as reports name them; none if it may be about any table of its stack.
        content: What is declared there, as text, to be compared.
        may_change: Whether it may change any table of its stack, and not only make others.
        scales: The logical id or address of a resource that may scale its tables; empty for another.
    """

    kind: RemarkKind
    where: str
    what: str
    stage: str = ""
    stack: str = ""
    tables: tuple[str, ...] = ()
    content: str = ""
    may_change: bool = False
    scales: str = ""

    @property
    def text(self) -> str:
        """The remark in a sentence without a period."""
        return f"{self.where} {self.what}"

    def is_of(self, template: Template) -> bool:
        """Return whether it is about a template."""
        return (self.stage, self.stack) == (template.stage, _stack_of(template))

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same in two versions of an app."""
        return self.stage, self.stack, self.where


# the name of each table in reports, by scope and identity
Labels: TypeAlias = Mapping[tuple[Scope, str], str]
# in the metadata of a resource, with the value false: it does not scale
_SCALES: Final = "highwater:scales"
_SCALING: Final = ("AWS::ApplicationAutoScaling::ScalableTarget", "AWS::ApplicationAutoScaling::ScalingPolicy")
_TRANSFORMS: Final = re.compile(
    r"AWS::(?:Serverless-.*|LanguageExtensions|CodeDeployBlueGreen|CodeStar|SecretsManager-.*|ServiceCatalog)"
)


def remarks_of(
    stacks: Stacks, parts: Parts, labels: Labels, *, on_demand: Collection[str] = (), no_scaling: Collection[str] = ()
) -> tuple[Remark, ...]:
    """Return what all templates declare that is not read, then what contradicts itself; each in a remark.

    *labels* has the names of tables in reports, by scope and identity, *on_demand* the names of those that are billed
    by request, and *no_scaling* the logical ids or addresses of resources that do not scale, as the user says.
    """
    found = [
        *(remark for stack in stacks.all for remark in _not_read_of(stack, parts, labels, on_demand, no_scaling)),
        *(remark for stack in stacks.all for remark in _transforms_of(stack, labels)),
        *_policies(parts, labels),
        *_contradictions(stacks, parts, labels),
    ]
    return tuple(dict.fromkeys(found))


def scaling_resources(templates: Iterable[Template]) -> set[str]:
    """Return the logical ids or addresses of all resources that are not read and may scale tables."""
    return {
        logical_id
        for template in templates
        for logical_id in template.section("Resources")
        if (row := find_unread(str(template.resource(logical_id).get("Type")))) is not None and row.may_scale
    }


def _not_read_of(
    stack: Stack, parts: Parts, labels: Labels, on_demand: Collection[str], no_scaling: Collection[str]
) -> Iterator[Remark]:
    """Yield a remark for each resource of the catalogue, and for each line that the stack's reader left behind."""
    names = dict(_names_of(stack, parts, labels))
    for logical_id, resource in stack.template.section("Resources").items():
        kind = str(resource.get("Type")) if isinstance(resource, dict) else ""
        row = find_unread(kind)
        if row is None or logical_id in stack.template.nested or not may_exist(stack, logical_id):
            continue
        content = _content(stack, resource.get("Properties"))
        if row.only_of is not None and re.search(row.only_of, content) is None:
            continue
        named = tuple(dict.fromkeys(table for name, table in names.items() if name.search(content)))
        if row.only_if_named and not named:
            continue
        # what is deployed beside a table on demand has no capacity to change
        scaled = tuple(table for table in named if not (row.only_if_named and table in on_demand))
        what = row.what.format(tables=", ".join(scaled or named) or "tables")
        remark = _remark(stack, _where(stack, logical_id), what, content, () if row.makes_tables else scaled or named)
        if row.may_scale and (voucher := _voucher(resource, logical_id, no_scaling)):
            tables = f", and names {', '.join(named)}" if named else ""
            what = f"is not read{tables}; {voucher} says that it does not scale"
            yield replace(remark, kind=RemarkKind.VOUCHED, what=what)
        elif named and not scaled:
            yield replace(remark, kind=RemarkKind.ON_DEMAND)
        else:
            yield replace(remark, scales=logical_id if row.may_scale else "")
    for left in stack.left_out:
        yield _remark(stack, left.where, left.what, left.content, ())


def _voucher(resource: Mapping[str, Any], logical_id: str, no_scaling: Collection[str]) -> str:
    """Return who says that a resource does not scale: the option, or its metadata; empty if neither does."""
    if logical_id in no_scaling:
        return f"--no-scaling {logical_id}"
    metadata = resource.get("Metadata")
    declared = metadata.get(_SCALES) if isinstance(metadata, dict) else None
    return f"its metadata {_SCALES}" if as_text(declared) == "false" else ""


def _transforms_of(stack: Stack, labels: Labels) -> Iterator[Remark]:
    """Yield a remark for each macro of an account, of the template and of its resources."""
    listed = stack.template.body.get("Transform")
    for macro in listed if isinstance(listed, list) else [listed]:
        name = macro.get("Name") if isinstance(macro, dict) else macro
        if isinstance(name, str) and not _TRANSFORMS.fullmatch(name):
            body = {key: stack.template.body[key] for key in stack.template.body if key != "Metadata"}
            what = "is a macro, which is not run here, and may make or change tables"
            content = json.dumps(body, sort_keys=True, default=str)
            yield replace(_remark(stack, f"Transform {name}", what, content, ()), may_change=True)
    resources = stack.template.section("Resources")
    if "Fn::Transform" in resources:
        what = "includes resources by Fn::Transform, which is not run here, and may make or change tables"
        content = json.dumps(resources["Fn::Transform"], sort_keys=True, default=str)
        yield replace(_remark(stack, "Resources", what, content, ()), may_change=True)
    for logical_id, resource in resources.items():
        kind = str(resource.get("Type")) if isinstance(resource, dict) else ""
        content = json.dumps(resource, sort_keys=True, default=str)
        # in other resources, such as the body of an API, it concerns no table
        if "Fn::Transform" in content and (kind in (*TABLE_TYPES, *_SCALING) or is_unread(kind)):
            own = labels.get((stack.scope, identity(stack, stack.name_of(logical_id)))) if kind in TABLE_TYPES else None
            what = "is changed by Fn::Transform, which is not run here"
            yield _remark(stack, _where(stack, logical_id), what, content, () if own is None else (own,))


def _policies(parts: Parts, labels: Labels) -> Iterator[Remark]:
    """Yield a remark for each scaling policy of a table that is no target tracking on DynamoDB's own metric."""
    for part in parts.policies:
        if part.dimension is None or not may_exist(part.stack, part.logical_id):
            continue
        try:
            why = why_not_tracked(part.stack.resolver, part.logical_id, part.properties, part.dimension)
        except TemplateError:
            # the reader of the table says it
            continue
        if why:
            content = _content(part.stack, part.properties)
            yield _remark(part.stack, _where(part.stack, part.logical_id), why, content, _labels(part, labels))


def _contradictions(stacks: Stacks, parts: Parts, labels: Labels) -> Iterator[Remark]:
    """Yield a remark for each declaration that AWS refuses beside another, or that points at nothing."""
    for first, second in _twice(parts.targets):
        beside = first.logical_id
        if first.stack is not second.stack and (other := _stack_of(first.stack.template)):
            beside += f" of {other}"
        # the sources are those of an owner that changes, in the guard
        refusal = (
            "both are one target in AWS, with the bounds that are applied last, and gone with either"
            if second.stack.template.is_plan
            else "CloudFormation refuses the second"
        )
        what = f"is a second scalable target for {_label(second)}, beside {beside}: {refusal}; keep one"
        yield replace(_contradiction(second, what, labels), kind=RemarkKind.TWO_TARGETS)
    tracked = [part for part in parts.policies if _is_tracking(part)]
    for first, second in _twice(tracked):
        what = (
            f"is a second policy of {_label(second)} on the same metric, beside {first.logical_id}: AWS refuses it; "
            "keep one"
        )
        yield _contradiction(second, what, labels)
    indexes = {
        (stack.scope, identity(stack, stack.name_of(logical_id))): _indexes_of(stack, properties)
        for stack in stacks.all
        for kind in TABLE_TYPES
        for logical_id, properties in stack.resources(kind)
    }
    for part in parts.targets:
        known = indexes.get((part.scope, part.table))
        if part.index is not None and known is not None and part.index not in known and "${" not in part.index:
            listed = ", ".join(sorted(known)) or "none"
            what = f"scales index {part.index}, which the table does not have; its indexes: {listed}; remove it"
            yield _contradiction(part, what, labels)


def _twice(parts: Iterable[Part]) -> Iterator[tuple[Part, Part]]:
    """Yield the first and each further part of one table, index and dimension."""
    seen: dict[tuple[Any, ...], Part] = {}
    for part in parts:
        if part.dimension is None or not may_exist(part.stack, part.logical_id):
            continue
        first = seen.setdefault((part.scope, part.table, part.index, part.dimension), part)
        if first is not part and "${" not in (part.index or ""):
            yield first, part


def _is_tracking(part: Part) -> bool:
    try:
        return part.dimension is not None and not why_not_tracked(
            part.stack.resolver, part.logical_id, part.properties, part.dimension
        )
    except TemplateError:
        return False


def _indexes_of(stack: Stack, properties: Mapping[str, Any]) -> set[str] | None:
    """Return the names of a table's indexes; `None` if they cannot be read."""
    try:
        indexes = stack.resolver.mappings(properties.get("GlobalSecondaryIndexes"), "indexes")
    except TemplateError:
        return None
    names = {str(index.get("IndexName")) for index in indexes}
    return None if any("${" in name for name in names) else names


def _labels(part: Part, labels: Labels) -> tuple[str, ...]:
    label = labels.get((part.scope, part.table))
    return () if label is None else (label,)


def _label(part: Part) -> str:
    return f"{part.dimension}s of {'the table' if part.index is None else f'index {part.index}'}"


def _contradiction(part: Part, what: str, labels: Labels) -> Remark:
    remark = _remark(part.stack, _where(part.stack, part.logical_id), what, "", _labels(part, labels))
    return replace(remark, kind=RemarkKind.CONTRADICTION)


def _stack_of(template: Template) -> str:
    """Return what tells the stack of a template from others of its app, whatever the template's file is called."""
    if template.is_plan:
        return template.environment.region or ""
    return "/".join(template.environment.stacks)


def _where(stack: Stack, logical_id: str) -> str:
    """Return a resource as its users know it: a logical id with its type, or an address, which has its type in it."""
    kind = stack.template.resource(logical_id).get("Type")
    return logical_id if stack.template.is_plan else f"{logical_id} ({kind})"


def _remark(stack: Stack, where: str, what: str, content: str, tables: tuple[str, ...]) -> Remark:
    template = stack.template
    return Remark(
        kind=RemarkKind.NOT_READ,
        where=where,
        what=what,
        stage=template.stage,
        stack=_stack_of(template),
        tables=tables,
        content=content,
    )


def _content(stack: Stack, properties: Any) -> str:
    """Return properties as text with their references resolved; unresolved if they cannot be."""
    try:
        resolved = stack.resolver.resolve(properties)
    except TemplateError:
        resolved = properties
    return json.dumps(resolved, sort_keys=True, default=str)


def _names_of(stack: Stack, parts: Parts, labels: Labels) -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield what each table of the scope, or a target of it, is called in resolved properties, with its label."""
    for part in parts.targets:
        for label in _labels(part, labels) if part.stack is stack else ():
            yield _reference(part.logical_id), label
    for (scope, table), label in labels.items():
        if scope == stack.scope:
            yield re.compile(rf"(?<![\w.-]){re.escape(table)}(?![\w.-])"), label
    for kind in TABLE_TYPES:
        for logical_id, _ in stack.resources(kind):
            own = labels.get((stack.scope, identity(stack, stack.name_of(logical_id))))
            if own is not None:
                yield _reference(logical_id), own


def _reference(logical_id: str) -> re.Pattern[str]:
    """Return a pattern of a reference to a resource whose value only the deployment knows."""
    return re.compile(rf"\$\{{{re.escape(logical_id)}(?:\.\w+)?\}}")
