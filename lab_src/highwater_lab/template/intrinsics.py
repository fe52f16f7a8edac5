"""CloudFormation's functions that need only their arguments, and placeholders for values known only at deployment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

from highwater_lab.template.document import DEPLOYED_BY_SERVERLESS, Template, TemplateError

# A reference whose value is known only at deployment
OPEN: Final = re.compile(r"\$\{([^{}]+)\}")
# No text of a template is longer than the template itself, which may have a megabyte (AWS CloudFormation User Guide,
# "Understand CloudFormation quotas", read 2026-11); functions that nest each other could make any length of a few
LONGEST_TEXT: Final = 2**20


def evaluate(name: str, resolved: Any) -> Any:
    """Evaluate a function of resolved arguments; return a placeholder if it needs more than its arguments.

    `Fn::Length` and `Fn::ToJsonString` are of the transform AWS::LanguageExtensions. Raises `TypeError`, `ValueError`
    or `LookupError` for arguments that the function does not accept.
    """
    if name == "Fn::Join":
        return _joined(str(resolved[0]), [as_text(part) for part in resolved[1]])
    if name == "Fn::Select":
        number = int(resolved[0])
        if number < 0 or not isinstance(resolved[1], list):
            raise IndexError(number)
        return resolved[1][number]
    if name == "Fn::Split":
        return _split(str(resolved[0]), str(resolved[1]))
    if name == "Fn::Length" and isinstance(resolved, list):
        return len(resolved)
    if name == "Fn::ToJsonString":
        return json.dumps(resolved, separators=(",", ":"))
    if name == "Fn::Not":
        return not resolved[0]
    if name in ("Fn::And", "Fn::Or"):
        return all(resolved) if name == "Fn::And" else any(resolved)
    return placeholder(name, resolved)


def as_text(value: Any) -> str:
    """Return a scalar as text, as CloudFormation treats all scalars: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def placeholder(name: str, argument: Any) -> str:
    """Return the placeholder for a function that only a deployment can evaluate; equal arguments give equal texts.

    References in its argument stay in it, in angle brackets: `${Fn::FindInMap ['By', '<Stage>', 'Min']}`.
    """
    inner = re.sub("[{}$]", "", OPEN.sub(r"<\1>", str(argument)))
    return f"${{{name} {inner}}}"


def parameter_value(kind: str, value: Any) -> Any:
    """Return a parameter's value: a list for a list type, else text or a number."""
    if kind == "CommaDelimitedList" or kind.startswith("List<"):
        return value if isinstance(value, list) else [item.strip() for item in as_text(value).split(",")]
    return as_text(value) if isinstance(value, bool) else value


class TextTooLongError(Exception):
    """A function makes a longer text than a template may have."""


def _joined(delimiter: str, parts: list[str]) -> str:
    # before it is made
    if len(delimiter) * len(parts) + sum(map(len, parts)) > LONGEST_TEXT:
        raise TextTooLongError
    return delimiter.join(parts)


def _split(delimiter: str, text: str) -> list[str]:
    """Split a text, but not inside a placeholder such as `${AWS::Region}`."""
    if not delimiter:
        raise ValueError(delimiter)
    left = iter([match[0] for match in OPEN.finditer(text)])
    parts = OPEN.sub("\0", text).split(delimiter)
    return [re.sub("\0", lambda _: next(left), part) for part in parts]


_VARIABLE: Final = re.compile(r"\$\{(!?)([^{}]+)\}")
_DYNAMIC: Final = re.compile(r"\{\{(resolve:[^{}]*)\}\}")
_DEEPEST: Final = 60
# A template with as many resources as CloudFormation allows has about ten thousand values; this limit stops YAML
# aliases whose expansion grows without end
_MOST_VALUES: Final = 2_000_000
# and this one functions whose texts do
_MOST_CHARACTERS: Final = 2**25
_MOST_UNITS: Final = 10_000_000
_LONGEST_SHOWN: Final = 60
_NO_VALUE: Final = "AWS::NoValue"
# AWS CloudFormation Template Reference, "Pseudo parameters reference", read 2026-11
PSEUDO_PARAMETERS: Final = frozenset(
    f"AWS::{name}"
    for name in ("AccountId", "NotificationARNs", "NoValue", "Partition", "Region", "StackId", "StackName", "URLSuffix")
)
# A reference in a placeholder, or the placeholder itself; another template's name may stand before it
_REFERENCE: Final = re.compile(r"[<{](?:[^<>{}:]+:(?!:))?((?:AWS::)?[A-Za-z0-9]+)[>}]")
# Variables of the Serverless Framework (its guide, "Variables", read 2026-11)
OF_SERVERLESS: Final = re.compile(
    r"\$\{(?:self|opt|env|param|sls|file|ssm|cf|s3|aws|git|strToBool)(?:\([^{}]*\))?:(?!:)"
)
# Resource types from which a table and its scaling are read, or the beginning of their names
_SCALED: Final = ("AWS::DynamoDB::", "AWS::Serverless::SimpleTable", "AWS::ApplicationAutoScaling::")
# Resource types whose Ref returns the table name
TABLE_TYPES: Final = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "AWS::Serverless::SimpleTable")


class Elsewhere(Protocol):
    """Values of the other stacks of an assembly; `None` for unknown ones."""

    def exported(self, name: str, depth: int) -> Any:
        """Return the value of an export."""

    def output(self, nested_stack: str, name: str, depth: int) -> Any:
        """Return an output of a nested stack, by the stack's logical id."""

    def is_parameter(self, name: str) -> bool:
        """Return whether a template declares a parameter of this name."""


class Resolver:
    """Resolves the values of one template.

    A value that is known only at deployment becomes a placeholder text: `${Orders}` for a resource, `${Orders.Arn}`
    for its attribute, `${AWS::Region}` for a pseudo parameter. The ARN of a table is a text with its name in it.
    """

    def __init__(self, template: Template, parameters: Mapping[str, Any], elsewhere: Elsewhere | None = None) -> None:
        """Read *template* with these values of parameters, and with the values of other stacks."""
        self._template = template
        self._elsewhere = elsewhere
        self._resources = template.section("Resources")
        self._declared = template.section("Parameters")
        self._mappings = template.section("Mappings")
        self._conditions = template.section("Conditions")
        self._given = parameters
        self._values_left, self._characters_left = _MOST_VALUES, _MOST_CHARACTERS
        self.notes: list[str] = []
        # parameters whose defaults were taken for units: by name the default, and what it was taken for
        self.defaults: dict[str, tuple[Any, list[str]]] = {}
        self._taken: dict[str, Any] = {}

    def error(self, text: str) -> TemplateError:
        """Return, without raising it, a `TemplateError` with the template's file name before *text*."""
        return TemplateError(f"{self._template.where}: {text}")

    def word(self, name: str) -> str:
        """Return a term of CloudFormation's, such as `MinCapacity`, as the template's format calls it."""
        return self._template.dialect.word(name)

    def resolve(self, value: Any, depth: int = 0) -> Any:
        """Return the value with its functions evaluated; `None` for `AWS::NoValue`.

        *depth* is the nesting level. Raises `TemplateError` above 60 levels, or if a function has wrong arguments.
        """
        self._values_left -= 1
        if self._values_left < 0:
            raise self.error("is too large once its YAML aliases are expanded")
        if depth > _DEEPEST:
            raise self.error("references form a circle, or are nested too deeply")
        if isinstance(value, list):
            # AWS::NoValue removes a member; null, which CloudFormation does not allow, remains and is rejected later
            resolved = [(item, self.resolve(item, depth + 1)) for item in value]
            return [result for item, result in resolved if result is not None or item is None]
        if isinstance(value, str):
            # a dynamic reference is known only at deployment, like any other
            return _DYNAMIC.sub(r"${\1}", value)
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref":
                # functions in its argument are allowed by AWS::LanguageExtensions
                return self._ref(as_text(self.resolve(argument, depth + 1)), depth)
            if name == "Condition" and isinstance(argument, str):
                return self.holds(argument, depth)
            if isinstance(name, str) and name.startswith("Fn::"):
                return self._counted(name, self._function(name, argument, depth))
        members = {key: (item, self.resolve(item, depth + 1)) for key, item in value.items()}
        return {key: result for key, (item, result) in members.items() if result is not None or item is None}

    def _counted(self, name: str, value: Any) -> Any:
        """Return what a function made; raises `TemplateError` for a text that is too long, or the last of too many."""
        if isinstance(value, str):
            self._characters_left -= len(value)
            if len(value) > LONGEST_TEXT or self._characters_left < 0:
                raise self._too_long(name)
        return value

    def _too_long(self, name: str) -> TemplateError:
        return self.error(f"{name} makes a text of more than {LONGEST_TEXT:,} characters, or too many long ones")

    def holds(self, condition: str, depth: int = 0) -> bool:
        """Return whether a condition of the template is true; raises `TemplateError` if it is not defined."""
        if condition not in self._conditions:
            defined = ", ".join(sorted(self._conditions)) or "none"
            raise self.error(f"condition {condition!r} is not defined; the template's conditions: {defined}")
        return bool(self.resolve(self._conditions[condition], depth + 1))

    def mapping(self, value: Any, label: str) -> dict[str, Any]:
        """Return *value* as an object, an empty one for `None`; raises `TemplateError`, naming *label*, otherwise."""
        resolved = self._resolve_noting(value, label)
        if resolved is None:
            return {}
        if not isinstance(resolved, dict):
            raise self.error(f"{label} is {short(self.closed(resolved, label))}; expected an object")
        return {str(key): item for key, item in resolved.items()}

    def mappings(self, value: Any, label: str) -> list[dict[str, Any]]:
        """Return *value* as a list of objects, an empty one for `None`; raises `TemplateError` otherwise."""
        resolved = self._resolve_noting(value, label)
        if resolved is None:
            return []
        if not isinstance(resolved, list):
            raise self.error(f"{label} is {short(self.closed(resolved, label))}; expected a list")
        return [self.mapping(item, f"{label}[{number}]") for number, item in enumerate(resolved)]

    def _resolve_noting(self, value: Any, label: str) -> Any:
        """Return the value evaluated, and note in `defaults` each parameter whose default, a number, it rests on."""
        self._taken = {}
        resolved = self.resolve(value)
        for name, default in self._taken.items():
            if re.fullmatch(r"\d+", str(default)):
                self.defaults.setdefault(name, (default, []))[1].append(label)
        return resolved

    def text(self, value: Any, label: str) -> str:
        """Return *value* as a text of one character or more; raises `TemplateError`, naming *label*, otherwise."""
        resolved = self.resolve(value)
        if not isinstance(resolved, str) or not resolved:
            raise self.error(f"{label} is {short(resolved)}; expected a name")
        return resolved

    def units(self, value: Any, label: str) -> int | None:
        """Return *value* as a whole number from 0 to 10,000,000, or `None` if it is `None`.

        Raises `TemplateError`, naming *label*, for any other value.
        """
        resolved = self._resolve_noting(value, label)
        if resolved is None:
            return None
        number = self.number(resolved, label)
        if number != int(number) or not 0 <= number <= _MOST_UNITS:
            raise self.error(f"{label} is {short(resolved)}; expected a whole number from 0 to {_MOST_UNITS:,}")
        return int(number)

    def number(self, value: Any, label: str) -> float:
        """Return *value* as a number; raises `TemplateError`, naming *label*, if it is not a number."""
        resolved = self.closed(value, label)
        try:
            number = float(resolved) if not isinstance(resolved, bool) else float("nan")
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not abs(number) < float("inf"):
            raise self.error(f"{label} is {short(resolved)}; expected a number")
        return number

    def closed(self, value: Any, label: str) -> Any:
        """Return the value evaluated; raises `TemplateError`, naming *label*, if only a deployment knows the text."""
        resolved = self.resolve(value)
        if isinstance(resolved, str) and OPEN.search(resolved):
            raise self.error(f"{label} is {resolved!r}, {self._advice(resolved)}")
        return resolved

    def missing(self, text: str) -> list[str]:
        """Return the parameters that a text which only a deployment knows refers to, also below functions.

        They are those of any template, and pseudo parameters such as `AWS::Region`.
        """
        if self._template.is_plan:
            return []
        return [name for name in references_of(text) if self._is_parameter(name)]

    def _is_parameter(self, name: str) -> bool:
        is_elsewhere = self._elsewhere is not None and self._elsewhere.is_parameter(name)
        return name in self._declared or name in PSEUDO_PARAMETERS or is_elsewhere

    def _advice(self, text: str) -> str:
        """Return the remedy for a text with a reference that is known only at deployment."""
        missing = self.missing(text)
        if missing:
            what = "a parameter" if text == f"${{{missing[0]}}}" else "which depends on a parameter"
            names = sorted(self._missing_parameters() | set(missing))
            return f"{what} whose value is known only at deployment; {how_to_give(names)}"
        if OF_SERVERLESS.search(text):
            return (
                "a variable of the Serverless Framework; run serverless package, and give "
                f".serverless/{DEPLOYED_BY_SERVERLESS}"
            )
        return (
            f"whose value is {self.word('known only at deployment')}; "
            f"{self.word('write the number itself, or use a parameter with a default')}"
        )

    def _missing_parameters(self) -> set[str]:
        """Return the parameters without a value that the tables, their scaling and their conditions refer to."""
        names: set[str] = set()
        waiting: list[Any] = [
            each
            for each in self._resources.values()
            if isinstance(each, dict) and str(each.get("Type", "")).startswith(_SCALED)
        ]
        seen: set[int] = set()
        while waiting:
            value = waiting.pop()
            if isinstance(value, list | dict):
                # an alias leads to a value that was visited before
                if id(value) not in seen:
                    seen.add(id(value))
                    waiting += value.values() if isinstance(value, dict) else value
            elif isinstance(value, str):
                found = {value, *OPEN.findall(value)} - names
                names |= found
                waiting += [self._conditions[each] for each in found if each in self._conditions]
        return {each for each in names if each in self._declared and _is_without_value(self._declared[each])} - set(
            self._given
        )

    def _ref(self, name: str, depth: int) -> Any:
        parameter = self._declared.get(name)
        parameter = parameter if isinstance(parameter, dict) else {}
        kind = str(parameter.get("Type", ""))
        if name in self._given:
            return parameter_value(kind, self._given[name])
        if not _is_without_value(parameter):
            self._taken[name] = parameter["Default"]
            return parameter_value(kind, parameter["Default"])
        if name == _NO_VALUE:
            return None
        environment = self._template.environment
        pseudo = {
            "AWS::Region": environment.region,
            "AWS::AccountId": environment.account,
            "AWS::StackName": environment.stack,
        }
        if (known := pseudo.get(name)) is not None:
            return known
        if self._is_table(name):
            properties = self._resources[name].get("Properties")
            table_name = properties.get("TableName") if isinstance(properties, dict) else None
            if table_name is not None and (text := self.resolve(table_name, depth + 1)) is not None:
                return str(text)
        return f"${{{name}}}"

    def _is_table(self, name: str) -> bool:
        resource = self._resources.get(name)
        return isinstance(resource, dict) and str(resource.get("Type", "")) in TABLE_TYPES

    def _attribute(self, argument: Any, depth: int) -> Any:
        parts = argument if isinstance(argument, list) else str(argument).split(".", 1)
        if not parts:
            raise self.error("Fn::GetAtt needs a resource and an attribute, got []")
        name, *rest = (str(self.resolve(part, depth + 1)) for part in parts)
        attribute = ".".join(rest)
        if attribute in ("Arn", "StreamArn") and self._is_table(name):
            partition, region, account = (
                self._ref(f"AWS::{part}", depth) for part in ("Partition", "Region", "AccountId")
            )
            arn = f"arn:{partition}:dynamodb:{region}:{account}:table/{self._ref(name, depth)}"
            return arn if attribute == "Arn" else f"{arn}/stream/${{{name}.StreamLabel}}"
        if self._elsewhere and attribute.startswith("Outputs."):
            output = self._elsewhere.output(name, attribute.removeprefix("Outputs."), depth + 1)
            if output is not None:
                return output
        return f"${{{name}.{attribute}}}" if rest else f"${{{name}}}"

    def _function(self, name: str, argument: Any, depth: int) -> Any:
        if name == "Fn::GetAtt":
            return self._attribute(argument, depth)
        if name == "Fn::Sub":
            return self._sub(argument, depth)
        if name == "Fn::If":
            if not isinstance(argument, list) or len(argument) != 3:
                raise self.error(f"Fn::If needs a condition and two values, got {short(argument)}")
            condition, *branches = argument
            return self.resolve(branches[0 if self.holds(str(condition), depth) else 1], depth + 1)
        if name == "Fn::ImportValue":
            exported = str(self.resolve(argument, depth + 1))
            value = self._elsewhere.exported(exported, depth + 1) if self._elsewhere else None
            return placeholder(name, exported) if value is None else value
        is_list = isinstance(argument, list)
        resolved = (
            [self.resolve(each, depth + 1) for each in argument] if is_list else self.resolve(argument, depth + 1)
        )
        try:
            return self._apply(name, resolved)
        except TemplateError:
            raise
        except TextTooLongError:
            raise self._too_long(name) from None
        except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
            if OPEN.search(str(resolved)):
                return placeholder(name, resolved)
            raise self.error(f"{name} cannot be evaluated with {short(resolved)}") from None

    def _apply(self, name: str, resolved: Any) -> Any:
        if name == "Fn::FindInMap":
            return self._find(*resolved)
        if name == "Fn::Equals":
            return self._equals(*resolved)
        return evaluate(name, resolved)

    def _find(self, mapping: Any, first: Any, second: Any, otherwise: Any = None) -> Any:
        if any(OPEN.search(str(key)) for key in (mapping, first, second)):
            # the member may exist, but its value is not known
            raise KeyError(first)
        try:
            entries = self._mappings
            for key in (mapping, first, second):
                entries = {as_text(name): entry for name, entry in entries.items()}[as_text(key)]
            return self.resolve(entries)
        except (KeyError, TypeError, AttributeError):
            if isinstance(otherwise, dict) and "DefaultValue" in otherwise:
                return otherwise["DefaultValue"]
            raise

    def _equals(self, left: Any, right: Any) -> bool:
        """Return whether two values are equal.

        A value that is known only at deployment counts as different, and a note says so. Raises `TemplateError` for a
        parameter without a value.
        """
        for side in map(str, (left, right)):
            missing = self.missing(side)
            if not PSEUDO_PARAMETERS.issuperset(missing):
                raise self.error(f"a condition compares {side!r}, {self._advice(side)}")
            if OPEN.search(side) and as_text(left) != as_text(right):
                note = (
                    f"a condition compares {side!r}, whose value is {self.word('known only at deployment')}; "
                    f"the rehearsal assumes that the two values differ{f'; {how_to_give(missing)}' if missing else ''}"
                )
                if note not in self.notes:
                    self.notes.append(note)
        return as_text(left) == as_text(right)

    def _sub(self, argument: Any, depth: int) -> str:
        text, values = argument if isinstance(argument, list) and len(argument) == 2 else (argument, {})
        if not isinstance(text, str):
            raise self.error(f"Fn::Sub needs a text, got {short(argument)}")

        length = 0

        def value(match: re.Match[str]) -> str:
            nonlocal length
            found = replaced(match)
            length += len(found)
            if length > LONGEST_TEXT:
                raise self._too_long("Fn::Sub")
            return found

        def replaced(match: re.Match[str]) -> str:
            is_literal, name = match.groups()
            if is_literal:
                return f"${{{name}}}"
            if isinstance(values, dict) and name in values:
                return as_text(self.resolve(values[name], depth + 1))
            return as_text(self.resolve({"Fn::GetAtt": name} if "." in name else {"Ref": name}, depth + 1))

        return _DYNAMIC.sub(r"${\1}", _VARIABLE.sub(value, text))


def references_of(text: str) -> list[str]:
    """Return the names that a text which only a deployment knows refers to, also below functions."""
    return list(dict.fromkeys(_REFERENCE.findall(text)))


def how_to_give(parameters: list[str]) -> str:
    """Return the options that give parameters their values, for the end of a message."""
    if len(parameters) == 1:
        return f"give it with --parameter {parameters[0]}=VALUE"
    return (
        "give all that the tables refer to with --parameter NAME=VALUE, or in a file with --parameters: "
        + ", ".join(parameters)
    )


def _is_without_value(parameter: Any) -> bool:
    """Whether a declared parameter has no default; that of Systems Manager's is the name there, not the value."""
    is_default = isinstance(parameter, dict) and "Default" in parameter
    return not is_default or str(parameter.get("Type", "")).startswith("AWS::SSM::")


def short(value: Any) -> str:
    """Return a value as messages show it: not more than the first sixty characters."""
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."
