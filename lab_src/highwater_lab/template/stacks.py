"""Expands `Fn::ForEach` of the transform AWS::LanguageExtensions.

Source: AWS CloudFormation Template Reference, "Fn::ForEach", read 2026-11.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from highwater_lab.template.document import LeftOut, Template, TemplateError
from highwater_lab.template.intrinsics import OPEN, PSEUDO_PARAMETERS, TABLE_TYPES, Resolver

_LOOP: Final = "Fn::ForEach::"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9]")
# CloudFormation's own limit of resources is 500; loops may also make properties
_MOST_COPIES: Final = 20_000
_MOST_VALUES: Final = 2_000_000


class Loops:
    """Expands the loops of one template.

    Attributes:
        left_out: Each loop that cannot be expanded.
    """

    def __init__(self, resolver: Resolver) -> None:
        """Use a template's *resolver* to evaluate collections."""
        self._resolver = resolver
        self._copies_left = _MOST_COPIES
        self._values_left = _MOST_VALUES
        # By identity, as with a YAML alias one object is in many places. Copied objects are kept alive, so that no
        # identity is reused.
        self._has_loop: dict[int, bool] = {}
        self._alive: list[Any] = []
        self.left_out: list[LeftOut] = []

    def expand(self, value: Any) -> Any:
        """Return *value* with every loop expanded; *value* itself if it has none."""
        if not self._holds_loop(value):
            return value
        if isinstance(value, list):
            return [self.expand(item) for item in value]
        if not isinstance(value, dict):
            return value
        expanded: dict[Any, Any] = {}
        for key, item in value.items():
            if isinstance(key, str) and key.startswith(_LOOP):
                for name, copy in self._copies(key, item):
                    expanded[name] = copy
            else:
                expanded[key] = self.expand(item)
        return expanded

    def _holds_loop(self, value: Any) -> bool:
        if not isinstance(value, list | dict):
            return False
        if id(value) not in self._has_loop:
            # an alias may lead back to its own mapping
            self._has_loop[id(value)] = False
            is_loop = isinstance(value, dict) and any(str(key).startswith(_LOOP) for key in value)
            items = value.values() if isinstance(value, dict) else value
            self._has_loop[id(value)] = is_loop or any(self._holds_loop(item) for item in items)
        return self._has_loop[id(value)]

    def _copies(self, key: str, loop: Any) -> Iterator[tuple[str, Any]]:
        if (
            not isinstance(loop, list)
            or len(loop) != 3
            or not isinstance(loop[0], str)
            or not isinstance(loop[2], dict)
        ):
            self._leave_out(key, loop, "needs an identifier, a collection and what to make of each")
            return
        identifier, collection, output = loop
        for item in self._items(key, loop, collection):
            self._copies_left -= 1
            if self._copies_left < 0:
                raise self._resolver.error(f"{key} makes more than {_MOST_COPIES:,} copies; no stack may hold so much")
            copy = self._replaced(output, identifier, item)
            self._alive.append(copy)
            yield from self.expand(copy).items()

    def _leave_out(self, key: str, loop: Any, why: str) -> None:
        what = f"is a loop that is not expanded, and may make tables: {why}"
        self.left_out.append(LeftOut(key, what, json.dumps(loop, sort_keys=True, default=str)))

    def _items(self, key: str, loop: Any, collection: Any) -> list[str]:
        try:
            items = self._resolver.resolve(collection)
        except TemplateError as error:
            self._leave_out(key, loop, str(error))
            return []
        if isinstance(items, str) and not is_open(items):
            # the default of a parameter of type CommaDelimitedList
            items = [item.strip() for item in items.split(",")]
        names = self._resolver.missing(str(items))
        # a parameter without a value is one text, however many it has when it is split
        is_one_text = isinstance(items, list) and len(items) == 1 and not PSEUDO_PARAMETERS.issuperset(names)
        if not isinstance(items, list) or not all(isinstance(item, str | int) for item in items) or is_one_text:
            advice = f"; give them with --parameter {names[0]}=A,B,C" if names else ""
            self._leave_out(key, loop, f"the values that it runs over are known only at deployment{advice}")
            return []
        return [str(item) for item in items]

    def _replaced(self, value: Any, identifier: str, item: str) -> Any:
        """Return *value* with every reference to the identifier replaced by the item, in `&{x}` without its symbols."""
        self._values_left -= 1
        if self._values_left < 0:
            raise self._resolver.error("is too large once its loops and YAML aliases are expanded")
        if isinstance(value, str):
            return value.replace(f"${{{identifier}}}", item).replace(f"&{{{identifier}}}", _NO_NAME.sub("", item))
        if isinstance(value, list):
            return [self._replaced(each, identifier, item) for each in value]
        if isinstance(value, dict):
            if value == {"Ref": identifier}:
                return item
            return {
                self._replaced(key, identifier, item): self._replaced(each, identifier, item)
                for key, each in value.items()
            }
        return value


# A reference to its own template: neither to a pseudo parameter of AWS's nor to another template
_LOCAL: Final = re.compile(r"\$\{([A-Za-z0-9]+|AWS::Stack(?:Name|Id))((?:\.[^}:]*)?)\}")
_PATH_ENDINGS: Final = ("/Resource", "/Default")


class Stack:
    """One template with its values: loops expanded, and joined to the other stacks of its assembly.

    Attributes:
        template: The template, with its loops expanded.
        resolver: Evaluates its values.
        left_out: The parts that were not read.
        notes: What was taken for granted, a line each.
        twins: Table names of this stack that are also in another stack of its scope: two deployments of one app, whose
            accounts the assembly does not say.
    """

    def __init__(self, template: Template, parameters: Mapping[str, Any], stacks: Stacks) -> None:
        """Read *template* as one of *stacks*, with these values of its parameters."""
        plain = Resolver(template, parameters)
        loops = Loops(plain)
        try:
            self.template = replace(template, body=loops.expand(template.body))
        except RecursionError as error:
            raise plain.error("is nested too deeply to be a CloudFormation template") from error
        self.resolver = Resolver(self.template, parameters, self)
        self._parameters = parameters
        self._stacks = stacks
        self.left_out = (*template.left_out, *loops.left_out)
        self.notes = template.notes
        self.twins: frozenset[str] = frozenset()

    def resolver_with(self, values: Mapping[str, str]) -> Resolver:
        """Return a resolver to which *values* are those of parameters and pseudo parameters."""
        # those of a parent stack are evaluated when they are needed
        given = ChainMap(dict(values), self._parameters)  # type: ignore[arg-type] # it is only read
        return Resolver(self.template, given, self)

    def is_given(self, name: str) -> bool:
        """Return whether a parameter has a value from the user, or from the stack that nests this one."""
        return name in self._parameters

    def passed(self, name: str) -> tuple[Stack, Any] | None:
        """Return the stack that passes a parameter to this nested one, with the value as it is written there."""
        return self._stacks.passed(self, name)

    @property
    def parents(self) -> Iterator[tuple[Stack, str]]:
        """Each stack that this one is nested in, from the inside, with the logical id of the nested stack in it."""
        found = self._stacks.parent(self)
        while found is not None:
            yield found
            found = self._stacks.parent(found[0])

    def is_open(self, name: str) -> bool:
        """Return whether a parameter or pseudo parameter has no value here."""
        return not self.is_given(name) and self.resolver.resolve({"Ref": name}) == f"${{{name}}}"

    def exported(self, name: str, depth: int) -> Any:
        """Return what the one stack of this scope exports by that name, `None` if it is not one."""
        found = list(self._stacks.exporters(self.scope, name, depth))
        return _known(*found[0], depth) if len(found) == 1 else None

    def output(self, nested_stack: str, name: str, depth: int) -> Any:
        """Return an output of a nested stack, by the stack's logical id; `None` for an unknown one."""
        nested = self._stacks.nested(self, nested_stack)
        output = None if nested is None else nested.template.section("Outputs").get(name)
        if nested is None or not isinstance(output, dict):
            return None
        return _known(nested, output.get("Value"), depth)

    def is_parameter(self, name: str) -> bool:
        """Return whether a template of the app declares a parameter of this name."""
        return self._stacks.is_parameter(name)

    @property
    def scope(self) -> tuple[str, ...]:
        """The scope in which names of tables and exports are unique: an account and region, or an assembly's folder."""
        environment = self.template.environment
        # an account or region that the assembly does not say is assumed to be the same for the whole assembly
        return environment.account or self.template.folder, environment.region or self.template.folder

    def resources(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield logical id and unresolved properties of each resource of type *kind*, whatever its condition."""
        for logical_id, resource in self.template.section("Resources").items():
            if isinstance(resource, dict) and resource.get("Type") == kind:
                properties = resource.get("Properties")
                yield logical_id, properties if isinstance(properties, dict) else {}

    def name_of(self, logical_id: str) -> str:
        """Return the name of a table, or a reference to it if its name cannot be evaluated."""
        try:
            return str(self.resolver.resolve({"Ref": logical_id}))
        except TemplateError:
            return f"${{{logical_id}}}"

    def exists(self, logical_id: str) -> bool:
        """Return whether a resource's condition is true; raises `TemplateError` if that is not known."""
        return self.exists_with({}, logical_id)

    def exists_with(self, values: Mapping[str, str], logical_id: str) -> bool:
        """Return whether a resource exists, and the stacks around it, if parameters have these *values*."""
        for stack, name in ((self, logical_id), *self.parents):
            condition = stack.template.resource(name).get("Condition")
            if condition is not None and not stack.resolver_with(values).holds(str(condition)):
                return False
        return True

    def holds(self, output: dict[str, Any]) -> bool:
        """Return whether an output's condition is true, or cannot be read."""
        try:
            return output.get("Condition") is None or self.resolver.holds(str(output["Condition"]))
        except TemplateError:
            return True

    def outward(self, value: Any) -> Any:
        """Return a resolved value for use by another stack: its references name this template."""
        if self.template.dialect.words:
            # addresses are unique in a plan; those of tables of several plans are told apart as twins
            return value
        if isinstance(value, list):
            return [self.outward(item) for item in value]
        return _LOCAL.sub(rf"${{{self.template.stem}:\1\2}}", value) if isinstance(value, str) else value

    def construct_path(self, logical_id: str) -> str | None:
        """Return the path of the construct that made a resource (`Shop/Orders`); `None` if the assembly lacks it."""
        metadata = self.template.resource(logical_id).get("Metadata")
        noted = metadata.get("aws:cdk:path") if isinstance(metadata, dict) else None
        path = noted or self.template.paths.get(logical_id)
        if not isinstance(path, str) or not path:
            return None
        for ending in _PATH_ENDINGS:
            path = path.removesuffix(ending)
        return path


class Stacks:
    """The stacks of an assembly, in the order of its templates."""

    def __init__(self, templates: list[Template], parameters: Mapping[str, str]) -> None:
        """Join *templates*; *parameters* are values for the parameters of any of them."""
        self._given = parameters
        self._templates = {template.where: template for template in templates}
        found = list(self._find_parents())
        self._parents = dict(found)
        self._times_nested = Counter(nested for nested, _ in found)
        self._made: dict[str, Stack] = {}
        self.all: list[Stack] = []
        # a template that is nested twice is listed twice
        self.all = list(dict.fromkeys(self._stack(template.where) for template in templates))
        self._find_twins()

    def exporters(self, scope: tuple[str, ...], name: str, depth: int) -> Iterator[tuple[Stack, Any]]:
        """Yield each stack of that scope that exports *name*, with the unresolved value."""
        for stack in self.all:
            if stack.scope != scope:
                continue
            for output in stack.template.section("Outputs").values():
                export = output.get("Export") if isinstance(output, dict) and stack.holds(output) else None
                if isinstance(export, dict) and stack.resolver.resolve(export.get("Name"), depth) == name:
                    yield stack, output.get("Value")

    def parent(self, nested: Stack) -> tuple[Stack, str] | None:
        """Return the stack that nests another, with the logical id of the nested stack in it; `None` for no nested."""
        parent, logical_id, _ = self._parents.get(nested.template.where, (None, "", {}))
        outer = None if parent is None else self._made.get(parent)
        return None if outer is None or outer is nested else (outer, logical_id)

    def passed(self, nested: Stack, name: str) -> tuple[Stack, Any] | None:
        """Return the stack that passes a parameter to a nested one, with the value; `None` if the user gives it."""
        parent, _, given = self._parents.get(nested.template.where, (None, "", {}))
        outer = None if parent is None else self._made.get(parent)
        return None if outer is None or name not in given or name in self._given else (outer, given[name])

    def is_parameter(self, name: str) -> bool:
        """Return whether a template declares a parameter of this name."""
        return any(name in template.section("Parameters") for template in self._templates.values())

    def nested(self, parent: Stack, logical_id: str) -> Stack | None:
        """Return the stack that a resource of *parent* nests, `None` if its template is not available."""
        return self._made.get(parent.template.nested.get(logical_id, ""))

    def _find_twins(self) -> None:
        names = {
            stack: {stack.name_of(logical_id) for kind in TABLE_TYPES for logical_id, _ in stack.resources(kind)}
            for stack in self.all
        }
        for stack, own in names.items():
            others = [names[other] for other in self.all if other is not stack and other.scope == stack.scope]
            # open names of templates are told apart by `outward`, those of plans, their addresses, are not
            stack.twins = frozenset(
                name
                for name in own
                if (stack.template.dialect.words or not is_open(name)) and any(name in each for each in others)
            )

    def _find_parents(self) -> Iterator[tuple[str, tuple[str, str, dict[str, Any]]]]:
        """Yield the file of each nested template, with its parent's file, its logical id there and its parameters."""
        for where, template in self._templates.items():
            for logical_id, nested in template.nested.items():
                properties = template.resource(logical_id).get("Properties")
                given = properties.get("Parameters") if isinstance(properties, dict) else None
                yield nested, (where, logical_id, given if isinstance(given, dict) else {})

    def _stack(self, where: str, depth: int = 0) -> Stack:
        if where not in self._made:
            parent, _, unresolved = self._parents.get(where, (None, "", {}))
            given: dict[str, Any] = {}
            if parent is not None and depth < len(self._templates):
                outer = self._stack(parent, depth + 1)
                given = {str(name): _Later(outer, value) for name, value in unresolved.items()}
            stack = Stack(self._templates[where], _Values(given, self._given), self)
            if (times := self._times_nested[where]) > 1:
                what = f"is nested {times} times; it is read once, as the last of them"
                stack.left_out += (LeftOut(where, what, str(times)),)
            self._made[where] = stack
        return self._made[where]


class _Later:
    """A value of a parent's template, evaluated when a nested stack asks for it."""

    def __init__(self, parent: Stack, value: Any) -> None:
        self._parent = parent
        self._value = value
        self._is_asked = False

    def now(self) -> Any:
        if self._is_asked:
            raise self._parent.resolver.error("references form a circle, or are nested too deeply")
        self._is_asked = True
        try:
            return self._parent.outward(self._parent.resolver.resolve(self._value))
        finally:
            self._is_asked = False


class _Values(Mapping[str, Any]):
    """The values of a stack's parameters: those given by the user, then those that its parent passes."""

    def __init__(self, by_parent: Mapping[str, _Later], by_hand: Mapping[str, str]) -> None:
        self._by_parent = by_parent
        self._by_hand = by_hand

    def __getitem__(self, name: str) -> Any:
        return self._by_hand[name] if name in self._by_hand else self._by_parent[name].now()

    def __contains__(self, name: object) -> bool:
        # without evaluating it, as the inherited method does
        return name in self._by_hand or name in self._by_parent

    def __iter__(self) -> Iterator[str]:
        return iter({**self._by_parent, **self._by_hand})

    def __len__(self) -> int:
        return len({**self._by_parent, **self._by_hand})


def _known(stack: Stack, value: Any, depth: int) -> Any:
    return stack.outward(stack.resolver.resolve(value, depth + 1))


def is_open(text: str) -> bool:
    """Return whether a text contains a reference whose value is known only at deployment."""
    return OPEN.search(text) is not None
