"""Reading templates: a `cdk.out` folder, JSON or YAML.

HighwaterError
└── TemplateError (also a ValueError): a template that cannot be read; one line says where, what, and what would do
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from highwater.core import HighwaterError


class TemplateError(HighwaterError, ValueError):
    """A template that cannot be read or understood."""


@dataclass(frozen=True, slots=True)
class Template:
    """One CloudFormation template.

    Attributes:
        where: How messages name it: its file.
        body: What is in it.
    """

    where: str
    body: dict[str, Any]

    def section(self, name: str) -> dict[str, Any]:
        """One of its top-level sections; empty where it is missing."""
        found = self.body.get(name)
        return found if isinstance(found, dict) else {}


def load_templates(path: Path) -> list[Template]:
    """The templates of a cloud assembly (`cdk.out`), nested ones included, or the one template that *path* is.

    Raises `TemplateError` for what is neither.
    """
    if not path.exists():
        raise TemplateError(f"{path}: is not there; give a cdk.out folder (made by cdk synth) or a template file")
    if not path.is_dir():
        return [_load(path)]
    files = sorted(_files_of(path))
    if not files:
        raise TemplateError(f"{path}: holds no template; run cdk synth first, or give a template file")
    return [_load(file) for file in files]


def _files_of(folder: Path) -> Iterator[Path]:
    """Template files of an assembly and of the assemblies in it: those of stages, and of nested stacks."""
    yield from folder.glob("*.template.json")
    for inner in folder.glob("assembly-*"):
        if inner.is_dir():
            yield from _files_of(inner)


def _load(file: Path) -> Template:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as unreadable:
        reason = unreadable.strerror if isinstance(unreadable, OSError) else "is no text file"
        raise TemplateError(f"{file}: cannot be read: {reason}") from unreadable
    try:
        body = json.loads(text) if file.suffix == ".json" else yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except json.JSONDecodeError as broken:
        raise TemplateError(f"{file}, line {broken.lineno}: is no JSON: {broken.msg}") from broken
    except yaml.YAMLError as broken:
        mark, problem = getattr(broken, "problem_mark", None), getattr(broken, "problem", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise TemplateError(f"{file}{line}: is no YAML: {problem or 'cannot be read'}") from broken
    except RecursionError as too_deep:
        raise TemplateError(f"{file}: is nested too deeply to be a template") from too_deep
    if not isinstance(body, dict) or not isinstance(body.get("Resources"), dict):
        raise TemplateError(f"{file}: has no Resources; is it a CloudFormation template?")
    return Template(str(file), body)


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms: `!Ref x`, `!GetAtt a.b`, `!Sub ...` and so on."""


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
# a date in a template is text
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for letter, found in _Loader.yaml_implicit_resolvers.items()
}
