"""CloudFormation's functions of values alone, and the texts that stand for what only a deployment knows."""

from __future__ import annotations

import json
import re
from typing import Any, Final

# A reference whose value is known only at deployment
OPEN: Final = re.compile(r"\$\{([^}]+)\}")


def evaluate(name: str, resolved: Any) -> Any:
    """Return what a function makes of resolved arguments, a placeholder where it is none of values alone.

    `Fn::Length` and `Fn::ToJsonString` are of the transform AWS::LanguageExtensions. Raises `TypeError`, `ValueError`
    or `LookupError` for arguments that the function does not take.
    """
    if name == "Fn::Join":
        return str(resolved[0]).join(as_text(part) for part in resolved[1])
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
    """Return a scalar as CloudFormation has it, to which all scalars are text: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def placeholder(name: str, argument: Any) -> str:
    """Return the placeholder for a function that only a deployment can evaluate; equal arguments give equal texts."""
    return f"${{{name} {re.sub('[{}$]', '', str(argument))}}}"


def parameter_value(kind: str, value: Any) -> Any:
    """Return a parameter's value: a list for a type that is one, else text or a number."""
    if kind == "CommaDelimitedList" or kind.startswith("List<"):
        return value if isinstance(value, list) else [item.strip() for item in as_text(value).split(",")]
    return as_text(value) if isinstance(value, bool) else value


def _split(delimiter: str, text: str) -> list[str]:
    """Split a text, but not inside a placeholder such as `${AWS::Region}`."""
    if not delimiter:
        raise ValueError(delimiter)
    left = iter([match[0] for match in OPEN.finditer(text)])
    parts = OPEN.sub("\0", text).split(delimiter)
    return [re.sub("\0", lambda _: next(left), part) for part in parts]
