"""CloudFormation's functions, resolved as far as a template alone allows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from highwater_lab.template.document import Template, TemplateError

_VARIABLE: Final = re.compile(r"\$\{(!?)([^}]+)\}")
# A reference to what only a deploy gives a value
_OPEN: Final = re.compile(r"\$\{([^}]+)\}")
_DEEPEST: Final = 60
_NO_VALUE: Final = "AWS::NoValue"
# Their Ref is their name
_TABLES: Final = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "AWS::Serverless::SimpleTable")


class Resolver:
    """Resolves the values of one template.

    What only a deploy knows stays as text: `${Orders}` for a resource, `${Orders.Arn}` for its attribute,
    `${AWS::Region}` for a pseudo parameter.
    """

    def __init__(self, template: Template, parameters: Mapping[str, str]) -> None:
        self._template = template
        self._resources = template.section("Resources")
        self._declared = template.section("Parameters")
        self._mappings = template.section("Mappings")
        self._conditions = template.section("Conditions")
        self._given = parameters

    def error(self, text: str) -> TemplateError:
        """An error of this template: *text* behind the file's name."""
        return TemplateError(f"{self._template.where}: {text}")

    def resolve(self, value: Any, depth: int = 0) -> Any:
        """The value with its functions carried out; `None` for `AWS::NoValue`."""
        if depth > _DEEPEST:
            raise self.error("references go round in a circle, or are nested too deeply")
        if isinstance(value, list):
            return [self.resolve(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref":
                return self._ref(str(argument), depth)
            if name == "Condition" and isinstance(argument, str):
                return self.holds(argument, depth)
            if isinstance(name, str) and name.startswith("Fn::"):
                return self._function(name, argument, depth)
        return {key: self.resolve(item, depth + 1) for key, item in value.items()}

    def holds(self, condition: str, depth: int = 0) -> bool:
        """Whether a condition of the template holds; one that it does not have does."""
        return bool(self.resolve(self._conditions.get(condition, True), depth + 1))

    def units(self, value: Any, what: str) -> int | None:
        """A whole number, `None` where nothing is given; raises `TemplateError` for anything else, naming *what*."""
        resolved = self.resolve(value)
        if resolved is None:
            return None
        number = self.number(resolved, what)
        if number != int(number) or number < 0:
            raise self.error(f"{what} is {resolved!r}; expected a whole number from 0")
        return int(number)

    def number(self, value: Any, what: str) -> float:
        """A number; raises `TemplateError` for anything else, naming *what*."""
        resolved = self.resolve(value)
        if isinstance(resolved, str) and (missing := _OPEN.search(resolved)):
            raise self.error(f"{what} is {resolved!r}, {self._advice(missing[1])}")
        try:
            number = float(resolved) if not isinstance(resolved, bool) else float("nan")
        except (TypeError, ValueError):
            number = float("nan")
        if not abs(number) < float("inf"):
            raise self.error(f"{what} is {resolved!r}; expected a number")
        return number

    def _advice(self, name: str) -> str:
        if name in self._declared:
            return f"a parameter without a default; give its value with --parameter {name}=VALUE"
        return "which only a deploy gives a value; write the number itself, or use a parameter with a default"

    def _ref(self, name: str, depth: int) -> Any:
        if name in self._given:
            return self._given[name]
        if name in self._declared:
            parameter = self._declared[name]
            has_default = isinstance(parameter, dict) and "Default" in parameter
            # a parameter of Systems Manager has its key as its default
            if has_default and not str(parameter.get("Type", "")).startswith("AWS::SSM::"):
                return parameter["Default"]
        if name == _NO_VALUE:
            return None
        resource = self._resources.get(name)
        if isinstance(resource, dict) and str(resource.get("Type", "")) in _TABLES:
            properties = resource.get("Properties")
            named = properties.get("TableName") if isinstance(properties, dict) else None
            if named is not None and (text := self.resolve(named, depth + 1)) is not None:
                return str(text)
        return f"${{{name}}}"

    def _function(self, name: str, argument: Any, depth: int) -> Any:
        if name == "Fn::GetAtt":
            parts = argument if isinstance(argument, list) else str(argument).split(".", 1)
            return f"${{{'.'.join(str(part) for part in parts)}}}"
        if name == "Fn::Sub":
            return self._sub(argument, depth)
        if name == "Fn::If":
            condition, *branches = argument if isinstance(argument, list) and len(argument) == 3 else ("", None, None)
            return self.resolve(branches[0 if self.holds(str(condition), depth) else 1], depth + 1)
        resolved = self.resolve(argument, depth + 1)
        try:
            return self._apply(name, resolved)
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
            return f"${{{name}}}"

    def _apply(self, name: str, resolved: Any) -> Any:
        if name == "Fn::Join":
            return str(resolved[0]).join(str(part) for part in resolved[1])
        if name == "Fn::Select":
            return resolved[1][int(resolved[0])]
        if name == "Fn::Split":
            return str(resolved[1]).split(str(resolved[0]))
        if name == "Fn::FindInMap":
            return self.resolve(self._mappings[resolved[0]][resolved[1]][resolved[2]])
        if name == "Fn::Equals":
            return str(resolved[0]) == str(resolved[1])
        if name == "Fn::Not":
            return not resolved[0]
        if name == "Fn::And":
            return all(resolved)
        if name == "Fn::Or":
            return any(resolved)
        return f"${{{name}}}"

    def _sub(self, argument: Any, depth: int) -> str:
        text, values = argument if isinstance(argument, list) and len(argument) == 2 else (argument, {})

        def value(match: re.Match[str]) -> str:
            is_literal, name = match.groups()
            if is_literal:
                return f"${{{name}}}"
            if isinstance(values, dict) and name in values:
                return str(self.resolve(values[name], depth + 1))
            return str(self.resolve({"Fn::GetAtt": name} if "." in name else {"Ref": name}, depth + 1))

        return _VARIABLE.sub(value, str(text))
