"""Reads values of template parameters from a file, in the forms of AWS's tools.

Sources: AWS CLI Command Reference, `cloudformation create-stack` and `cloudformation deploy`; AWS CodePipeline User
Guide, "Template configuration file"; AWS SAM Developer Guide, "AWS SAM CLI configuration file"; read 2026-11.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from highwater_lab.files import read_file
from highwater_lab.template.document import TemplateError, read_document, text_of
from highwater_lab.template.intrinsics import as_text, short

_SAM: Final = re.compile(r"(.+\.(?:toml|ya?ml)):([\w-]+)")
# the commands of SAM whose section may have the values, the one that deploys first
_COMMANDS: Final = ("deploy", "global")
_OVERRIDES: Final = "parameter_overrides"
_FORMS: Final = (
    'give an object of names and values, a list of {"ParameterKey": NAME, "ParameterValue": VALUE} or "NAME=VALUE", or '
    'either of them under "Parameters"; or a samconfig.toml with parameter_overrides'
)


def read_parameters(place: str) -> dict[str, str]:
    """Return the values of template parameters in a file, by name.

    *place* is its path; that of SAM's configuration may end with the name of an environment, as `samconfig.toml:prod`.
    A list, the value of a parameter of a list type, becomes a text with commas.

    Raises `TemplateError` if the file cannot be read, has another form, or does not say which environment is meant.
    """
    match = None if Path(place).exists() else _SAM.fullmatch(place)
    file, environment = (Path(match[1]), match[2]) if match else (Path(place), None)
    body = _toml(file) if file.suffix == ".toml" else read_document(file).body
    overrides = _of_sam(body)
    if overrides:
        return _values(file, overrides[_chosen(file, environment, overrides)])
    if file.suffix == ".toml" or environment is not None:
        raise TemplateError(f"{file}: has no {_OVERRIDES}; {_FORMS}")
    if isinstance(body, dict) and isinstance(body.get("Parameters"), dict | list):
        body = body["Parameters"]
    return _values(file, body)


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(file, read_file(file)))
    except OSError as error:
        raise TemplateError(f"{file}: cannot be read: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise TemplateError(f"{file}: is not valid TOML: {error}") from error


def _of_sam(body: Any) -> dict[str, Any]:
    """Return by environment the values in SAM's configuration; nothing for another file."""
    overrides: dict[str, Any] = {}
    for environment, commands in body.items() if isinstance(body, dict) else ():
        for command in _COMMANDS:
            section = commands.get(command) if isinstance(commands, dict) else None
            parameters = section.get("parameters") if isinstance(section, dict) else None
            if isinstance(parameters, dict) and _OVERRIDES in parameters:
                overrides.setdefault(str(environment), parameters[_OVERRIDES])
    return overrides


def _chosen(file: Path, environment: str | None, overrides: Mapping[str, Any]) -> str:
    chosen = environment or (next(iter(overrides)) if len(overrides) == 1 else None)
    if chosen in overrides:
        return str(chosen)
    names = ", ".join(sorted(overrides))
    if chosen is None:
        raise TemplateError(
            f"{file}: has {_OVERRIDES} of {len(overrides)} environments, {names}; give one of them behind a colon, as "
            f"{file}:{min(overrides)}"
        )
    raise TemplateError(f"{file}: has no {_OVERRIDES} of environment {chosen!r}; it has those of {names}")


def _values(file: Path, body: Any) -> dict[str, str]:
    """Return the values in a text of pairs, a list or an object."""
    if isinstance(body, str):
        body = _pairs(file, body)
    if isinstance(body, Mapping):
        return {str(name): _text(file, str(name), value) for name, value in body.items()}
    if not isinstance(body, list):
        raise TemplateError(f"{file}: has no values of parameters; {_FORMS}")
    values: dict[str, str] = {}
    for entry in body:
        if isinstance(entry, dict) and "ParameterKey" in entry:
            # with UsePreviousValue there is none: what is deployed is not known here
            if "ParameterValue" in entry:
                name = str(entry["ParameterKey"])
                values[name] = _text(file, name, entry["ParameterValue"])
        elif isinstance(entry, str) and not entry.startswith("=") and "=" in entry:
            name, _, value = entry.partition("=")
            values[name] = value
        else:
            raise TemplateError(f"{file}: {short(entry)} is no value of a parameter; {_FORMS}")
    return values


def _pairs(file: Path, text: str) -> list[Any]:
    """Return the entries of SAM's text: `A=1 B="two words"`, or `ParameterKey=A,ParameterValue=1 ...`."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TemplateError(f"{file}: {_OVERRIDES} {short(text)} cannot be split: {error}") from error
    return [re.sub(r"^ParameterKey=([^,=]+),ParameterValue=", r"\1=", word) for word in words]


def _text(file: Path, name: str, value: Any) -> str:
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return ",".join(as_text(each) for each in value)
    if value is None or isinstance(value, list | dict):
        raise TemplateError(f"{file}: {name} is {short(value)}; expected a text, a number or a list of them")
    return as_text(value)
