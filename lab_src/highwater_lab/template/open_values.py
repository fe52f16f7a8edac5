"""Finds the references of a table that have no value before a deployment, and the values that are worth trying."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final

from highwater_lab.template.document import TemplateError
from highwater_lab.template.intrinsics import OPEN, as_text
from highwater_lab.template.stacks import Stack

_PSEUDO: Final = ("AWS::Region", "AWS::AccountId", "AWS::StackName", "AWS::Partition")
_VARIABLE: Final = re.compile(r"\$\{([^!{}][^{}]*)\}")
# Stands for any other value: a character of the private use area, which no template has
_ANY: Final = "\ue000"
_MOST_WORLDS: Final = 64
_MOST_STEPS: Final = 20_000
# Parts of a table and of a replica that no hazard is about
UNREAD: Final = frozenset(
    {
        "ContributorInsightsSpecification",
        "KinesisStreamSpecification",
        "PointInTimeRecoverySpecification",
        "ReplicaSSESpecification",
        "ReplicaStreamSpecification",
        "ResourcePolicy",
        "SSESpecification",
        "StreamSpecification",
        "TableClass",
        "Tags",
        "TimeToLiveSpecification",
    }
)


@dataclass(frozen=True, slots=True)
class OpenValues:
    """The references of one table without a value.

    Attributes:
        candidates: By name of a parameter, or of a pseudo parameter such as `AWS::Region`, the values to try: the
            allowed values, the keys of the mappings that it chooses from, and the values that conditions compare it
            with. One that may have any value is a placeholder.
        parameters: Those of them that are parameters of the template.
        defaults: By name of each other parameter the default that is taken for its value.
        closed: Those that have no other value than a candidate.
    """

    candidates: Mapping[str, frozenset[str]]
    parameters: frozenset[str]
    defaults: Mapping[str, str]
    closed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class World:
    """One choice of values for all open references of a table, before a change and after it."""

    before: Mapping[str, str]
    after: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Worlds:
    """The choices of values to compare.

    Attributes:
        each: The choices, one without values if nothing is open.
        are_all: Whether there is no other choice.
    """

    each: tuple[World, ...]
    are_all: bool


def worlds_of(before: OpenValues, after: OpenValues) -> Worlds:
    """Return the choices of values to compare.

    Above 64 there are fewer: each of them changes the value of one reference, and leaves the others at their first.

    A reference has one value before and after. A parameter whose default changes has the old default or the new one
    after the change: a stack that exists keeps its value, unless the deploy gives none.
    """
    names = {
        name: sorted(
            before.candidates[name]
            # a stack that exists has one of the values that its template allows
            if name in before.closed
            else before.candidates.get(name, frozenset()) | after.candidates.get(name, frozenset())
        )
        for name in sorted(before.candidates.keys() | after.candidates.keys())
    }
    changed = {
        name: sorted({default, after.defaults[name]})
        for name, default in sorted(before.defaults.items())
        if after.defaults.get(name, default) != default
    }
    chosen, are_all = _choices([*names.values(), *changed.values()])
    worlds = [
        World(dict(zip(names, values, strict=False)), dict(zip((*names, *changed), values, strict=True)))
        for values in chosen
    ]
    return Worlds(tuple(worlds), are_all)


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
    """Return the open references of a table, and of the conditions by which it and its nested stacks exist."""
    search = _Search(stack)
    search.walk(stack.template.resource(logical_id))
    for outer, nested in stack.parents:
        condition = outer.template.resource(nested).get("Condition")
        search.add(_Search(outer).of({"Condition": condition}))
    return search.found()


def as_placeholders(text: str) -> str:
    """Return a text in which placeholders of any value are written as references, as `${Stage}`."""
    return re.sub(f"{_ANY}([^{_ANY}]*){_ANY}", r"${\1}", text)


def _choices(values: Sequence[Sequence[str]]) -> tuple[Iterable[tuple[str, ...]], bool]:
    if prod(map(len, values)) <= _MOST_WORLDS:
        return product(*values), True
    first = tuple(each[0] for each in values)
    others = ((*first[:at], value, *first[at + 1 :]) for at, each in enumerate(values) for value in each[1:])
    return (first, *others), False


class _Search:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._declared = stack.template.section("Parameters")
        self._mappings = stack.template.section("Mappings")
        self._conditions = stack.template.section("Conditions")
        self._found: dict[str, set[str]] = {}
        self._closed: set[str] = set()
        self._parameters: set[str] = set()
        self._defaults: dict[str, str] = {}
        self._seen: set[str] = set()
        self._steps_left = _MOST_STEPS

    def of(self, value: Any) -> OpenValues:
        self.walk(value)
        return self.found()

    def add(self, other: OpenValues) -> None:
        """Add the references of a template that nests this one, by the same names."""
        for name, candidates in other.candidates.items():
            self._found.setdefault(name, set()).update(candidates)
        self._closed |= other.closed
        self._parameters |= other.parameters
        self._defaults = {**other.defaults, **self._defaults}

    def found(self) -> OpenValues:
        candidates = {}
        for name, found in self._found.items():
            allowed = self._allowed(name)
            candidates[name] = frozenset(allowed or found or {_any(name)})
            if allowed:
                self._closed.add(name)
        parameters = self._parameters | {name for name in candidates if name in self._declared}
        return OpenValues(candidates, frozenset(parameters), self._defaults, frozenset(self._closed))

    def walk(self, value: Any) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            return
        if isinstance(value, list):
            for each in value:
                self.walk(each)
            return
        if not isinstance(value, dict):
            return
        if len(value) == 1:
            ((name, argument),) = value.items()
            self._function(str(name), argument)
        else:
            # of a resource
            self._condition(value.get("Condition"))
        for name, each in value.items():
            if name not in UNREAD:
                self.walk(each)

    def _allowed(self, name: str) -> list[str]:
        parameter = self._declared.get(name)
        allowed = parameter.get("AllowedValues") if isinstance(parameter, dict) else None
        return [as_text(each) for each in allowed] if isinstance(allowed, list) else []

    def _function(self, name: str, argument: Any) -> None:
        if name == "Ref":
            self._note(str(argument))
        elif name == "Fn::Sub":
            text = argument[0] if isinstance(argument, list) and argument else argument
            for variable in _VARIABLE.findall(str(text)):
                self._note(variable)
        elif name == "Fn::FindInMap" and isinstance(argument, list) and len(argument) >= 3:
            entries = self._mappings.get(str(argument[0]))
            entries = entries if isinstance(entries, dict) else {}
            inner = (each for each in entries.values() if isinstance(each, dict))
            has_default = len(argument) > 3
            self._choose(argument[1], map(as_text, entries), is_open=has_default)
            self._choose(argument[2], (as_text(key) for each in inner for key in each), is_open=has_default)
        elif name == "Fn::Equals" and isinstance(argument, list) and len(argument) == 2:
            for one, other in (argument, argument[::-1]):
                text = self._text(other)
                self._choose(one, () if text is None else (text,), is_open=True)
        condition = argument[0] if name == "Fn::If" and isinstance(argument, list) and argument else None
        self._condition(argument if name == "Condition" else condition)

    def _condition(self, condition: Any) -> None:
        if isinstance(condition, str) and condition not in self._seen:
            self._seen.add(condition)
            self.walk(self._conditions.get(condition))

    def _text(self, value: Any) -> str | None:
        """Return a value as a text in which other references stand for any value; `None` if it cannot be evaluated."""
        self.walk(value)
        try:
            resolved = self._stack.resolver_with({name: _any(name) for name in self._found}).resolve(value)
        except TemplateError:
            return None
        is_scalar = resolved is not None and not isinstance(resolved, dict | list)
        return OPEN.sub(lambda match: _any(match[1]), as_text(resolved)) if is_scalar else None

    def _choose(self, expression: Any, texts: Iterable[str], *, is_open: bool) -> None:
        """Note the values of the one reference in an expression for which it is one of *texts*."""
        text = self._text(expression)
        if text is None:
            return
        head, *rest = text.split(_ANY)
        if len(rest) != 2 or not self._note(rest[0]):
            return
        name, tail = rest
        for each in texts:
            if each.startswith(head) and each.endswith(tail) and len(each) >= len(head) + len(tail):
                self._found[name].add(each[len(head) : len(each) - len(tail)])
        if is_open:
            self._found[name].add(_any(name))
        else:
            self._closed.add(name)

    def _note(self, name: str) -> bool:
        """Record a reference, and return whether it has no value before the deployment."""
        if name in self._found:
            return True
        if name not in self._declared and name not in _PSEUDO:
            return False
        passed = self._stack.passed(name)
        if passed is not None:
            return self._note_passed(name, *passed)
        parameter = self._declared.get(name)
        default = as_text(parameter["Default"]) if isinstance(parameter, dict) and "Default" in parameter else None
        if default is not None and not self._stack.is_given(name):
            # that of Systems Manager's is the name of a parameter there
            self._defaults[name] = default
        if self._stack.is_open(name):
            self._found[name] = set()
            return True
        return False

    def _note_passed(self, name: str, outer: Stack, value: Any) -> bool:
        """Note a parameter whose value the parent's template passes, with the values that it may have there."""
        found = _Search(outer).of(value)
        worlds, are_all = _choices([sorted(each) for each in found.candidates.values()])
        texts = {
            text
            for values in worlds
            if (text := _resolved(outer, value, dict(zip(found.candidates, values, strict=True)))) is not None
        }
        if found.candidates:
            self._parameters |= found.parameters
            closed = {text for text in texts if _ANY not in text}
            # the parent's references have no meaning here
            self._found[name] = closed | ({_any(name)} if closed and closed != texts else set())
            if are_all and found.closed == found.candidates.keys():
                self._closed.add(name)
            return True
        if found.defaults:
            self._defaults[name] = next(iter(texts), "")
        return False


def _resolved(stack: Stack, value: Any, values: Mapping[str, str]) -> str | None:
    try:
        resolved = stack.resolver_with(values).resolve(value)
    except TemplateError:
        return None
    return None if resolved is None or isinstance(resolved, dict | list) else as_text(resolved)


def _any(name: str) -> str:
    return f"{_ANY}{name}{_ANY}"
