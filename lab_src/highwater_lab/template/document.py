"""Loads CloudFormation templates: those of a `cdk.out` folder, or one JSON or YAML file.

HighwaterError
└── TemplateError (also a ValueError): a template cannot be read; the message is one line with place, problem and fix
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from highwater.core import HighwaterError
from highwater_lab.files import read_file


class TemplateError(HighwaterError, ValueError):
    """A template cannot be read, or does not contain what the caller needs."""


@dataclass(frozen=True, slots=True)
class Template:
    """One CloudFormation template.

    Attributes:
        where: The template's file, as messages name it.
        body: The parsed document.
    """

    where: str
    body: dict[str, Any]

    def section(self, name: str) -> dict[str, Any]:
        """Return a top-level section such as `Resources`; an empty mapping if the template has no such section."""
        section = self.body.get(name)
        return {str(key): value for key, value in section.items()} if isinstance(section, dict) else {}


def load_templates(path: Path) -> list[Template]:
    """Load the templates of a cloud assembly (`cdk.out`), including stages and nested stacks, or one template file.

    Raises `TemplateError` if *path* is neither a folder with templates nor a readable template.
    """
    try:
        if not path.exists():
            raise TemplateError(f"{path}: does not exist; give a cdk.out folder (made by cdk synth) or a template file")
        if not path.is_dir():
            return [_load(path)]
        files = sorted(_files_of(path))
    except OSError as error:
        where = error.filename or path
        raise TemplateError(f"{where}: cannot be read: {error.strerror}") from error
    if not files:
        raise TemplateError(f"{path}: contains no template; run cdk synth first, or give a template file")
    return [_load(file) for file in files]


def _files_of(folder: Path) -> Iterator[Path]:
    """Yield the template files of an assembly, nested stacks included, and of the stages' assemblies inside it."""
    for entry in folder.iterdir():
        if entry.name.endswith(".template.json"):
            yield entry
        elif entry.name.startswith("assembly-") and entry.is_dir() and not entry.is_symlink():
            yield from _files_of(entry)


def _load(file: Path) -> Template:
    try:
        text = read_file(file).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a UTF-8 text file"
        raise TemplateError(f"{file}: cannot be read: {reason}") from error
    try:
        body = json.loads(text) if file.suffix == ".json" else yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except json.JSONDecodeError as error:
        raise TemplateError(f"{file}, line {error.lineno}: is not valid JSON: {error.msg}") from error
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise TemplateError(f"{file}{line}: is not valid YAML: {problem or 'it cannot be parsed'}") from error
    except RecursionError as error:
        raise TemplateError(f"{file}: is nested too deeply to be a CloudFormation template") from error
    except (KeyError, TypeError, ValueError) as error:
        raise TemplateError(f"{file}: contains a value that cannot be read: {str(error).splitlines()[0]}") from error
    if not isinstance(body, dict) or not isinstance(body.get("Resources"), dict):
        raise TemplateError(f"{file}: has no Resources section; give a CloudFormation template")
    return Template(str(file), body)


class _Loader(yaml.SafeLoader):
    """Loads YAML with CloudFormation's short forms (`!Ref x`, `!GetAtt a.b`, `!Sub ...`); refuses duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; raise `ConstructorError` if a key occurs twice, where PyYAML would keep the last."""
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys and key.value != "<<":
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} occurs twice in one mapping", key.start_mark
                    )
                keys.add(key.value)
        return super().construct_mapping(node, deep)


def _short_form(loader: yaml.Loader, tag: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else None
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}


_Loader.add_multi_constructor("!", _short_form)
# CloudFormation reads dates as text, so YAML's timestamp type is switched off
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in _Loader.yaml_implicit_resolvers.items()
}
