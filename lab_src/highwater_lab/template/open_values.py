"""Finds the references of a table that have no value before a deployment, and the values that are worth trying."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

from highwater_lab.template.intrinsics import as_text
from highwater_lab.template.stacks import Stack

_PSEUDO: Final = ("AWS::Region", "AWS::AccountId", "AWS::StackName", "AWS::Partition")
_VARIABLE: Final = re.compile(r"\$\{([^!{}][^{}]*)\}")
# Stands for any other value: a character of the private use area, which no template has
_ANY: Final = "\ue000"
_MOST_WORLDS: Final = 256
_MOST_STEPS: Final = 20_000


@dataclass(frozen=True, slots=True)
class OpenValues:
    """The references of one table without a value.

    Attributes:
        candidates: By name of a parameter, or of a pseudo parameter such as `AWS::Region`, the values to try: the
            allowed values, the keys of the mappings that it chooses from, and the values that conditions compare it
            with. One that may have any value is a placeholder.
        parameters: Those of them that are parameters of the template.
        defaults: By name of each other parameter the default that is taken for its value.
    """

    candidates: Mapping[str, frozenset[str]]
    parameters: frozenset[str]
    defaults: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class World:
    """One choice of values for all open references of a table, before a change and after it."""

    before: Mapping[str, str]
    after: Mapping[str, str]


def worlds_of(before: OpenValues, after: OpenValues) -> list[World]:
    """Return the choices to compare, at most 256; one without values if nothing is open.

    A reference has one value before and after. A parameter whose default changes has the old default or the new one
    after the change: a stack that exists keeps its value, unless the deploy gives none.
    """
    names = {
        name: sorted(before.candidates.get(name, frozenset()) | after.candidates.get(name, frozenset()))
        for name in sorted(before.candidates.keys() | after.candidates.keys())
    }
    changed = {
        name: sorted({default, after.defaults[name]})
        for name, default in sorted(before.defaults.items())
        if after.defaults.get(name, default) != default
    }
    choices = product(*names.values(), *changed.values())
    return [
        World(dict(zip(names, values, strict=False)), dict(zip((*names, *changed), values, strict=True)))
        for values in islice(choices, _MOST_WORLDS)
    ]


def parameters_between(before: OpenValues, after: OpenValues, *, are_all: bool) -> list[str]:
    """Return the parameters that a comparison depends on: those without a value, and those whose default changes.

    Unless *are_all*, those that may have any value are left out, as they are the same before and after.
    """
    changed = {name for name, default in before.defaults.items() if after.defaults.get(name, default) != default}
    every = before.parameters | after.parameters
    tried = {
        name
        for name in every
        if len(before.candidates.get(name, frozenset()) | after.candidates.get(name, frozenset())) > 1
    }
    return sorted((every if are_all else tried) | changed)


def open_values(stack: Stack, logical_id: str) -> OpenValues:
    """Return the open references of a table."""
    resource = stack.template.resource(logical_id)
    return _Search(stack).of([resource.get("Properties"), {"Condition": resource.get("Condition")}])


def as_placeholders(text: str) -> str:
    """Return a text in which placeholders of any value are written as references, as `${Stage}`."""
    return re.sub(f"{_ANY}([^{_ANY}]*){_ANY}", r"${\1}", text)


class _Search:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._declared = stack.template.section("Parameters")
        self._mappings = stack.template.section("Mappings")
        self._conditions = stack.template.section("Conditions")
        self._found: dict[str, set[str]] = {}
        self._defaults: dict[str, str] = {}
        self._seen: set[str] = set()
        self._steps_left = _MOST_STEPS

    def of(self, value: Any) -> OpenValues:
        self._walk(value)
        candidates = {}
        for name, found in self._found.items():
            allowed = self._allowed(name)
            candidates[name] = frozenset(allowed or found or {f"{_ANY}{name}{_ANY}"})
        parameters = frozenset(name for name in candidates if name in self._declared)
        return OpenValues(candidates, parameters, self._defaults)

    def _allowed(self, name: str) -> list[str]:
        parameter = self._declared.get(name)
        allowed = parameter.get("AllowedValues") if isinstance(parameter, dict) else None
        return [as_text(each) for each in allowed] if isinstance(allowed, list) else []

    def _walk(self, value: Any) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            return
        if isinstance(value, list):
            for each in value:
                self._walk(each)
            return
        if not isinstance(value, dict):
            return
        if len(value) == 1:
            ((name, argument),) = value.items()
            self._function(str(name), argument)
        for each in value.values():
            self._walk(each)

    def _function(self, name: str, argument: Any) -> None:
        if name == "Ref":
            self._add(str(argument))
        elif name == "Fn::Sub":
            text = argument[0] if isinstance(argument, list) and argument else argument
            for variable in _VARIABLE.findall(str(text)):
                self._add(variable)
        elif name == "Fn::FindInMap" and isinstance(argument, list) and len(argument) >= 3:
            entries = self._mappings.get(str(argument[0]))
            entries = entries if isinstance(entries, dict) else {}
            self._add_all(argument[1], map(as_text, entries))
            inner = (each for each in entries.values() if isinstance(each, dict))
            self._add_all(argument[2], (as_text(key) for each in inner for key in each))
        elif name == "Fn::Equals" and isinstance(argument, list) and len(argument) == 2:
            for one, other in (argument, argument[::-1]):
                if not isinstance(other, dict | list) and (reference := _reference(one)):
                    self._add_all(one, (as_text(other), f"{_ANY}{reference}{_ANY}"))
        condition = argument[0] if name == "Fn::If" and isinstance(argument, list) and argument else None
        condition = argument if name == "Condition" else condition
        if isinstance(condition, str) and condition not in self._seen:
            self._seen.add(condition)
            self._walk(self._conditions.get(condition))

    def _add_all(self, reference: Any, values: Iterator[str] | tuple[str, ...]) -> None:
        name = _reference(reference)
        if name is not None and self._add(name):
            self._found[name].update(values)

    def _add(self, name: str) -> bool:
        """Note a reference; return whether it is open."""
        if name not in self._declared and name not in _PSEUDO:
            return False
        if self._stack.is_open(name):
            self._found.setdefault(name, set())
            return True
        parameter = self._declared.get(name)
        if isinstance(parameter, dict) and "Default" in parameter and not self._stack.is_given(name):
            self._defaults[name] = as_text(parameter["Default"])
        return False


def _reference(value: Any) -> str | None:
    return str(value["Ref"]) if isinstance(value, dict) and list(value) == ["Ref"] else None
