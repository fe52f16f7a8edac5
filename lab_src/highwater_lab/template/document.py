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
from highwater_lab.files import read_file


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
        return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


def load_templates(path: Path) -> list[Template]:
    """The templates of a cloud assembly (`cdk.out`), nested ones included, or the one template that *path* is.

    Raises `TemplateError` for what is neither.
    """
    try:
        if not path.exists():
            raise TemplateError(f"{path}: is not there; give a cdk.out folder (made by cdk synth) or a template file")
        if not path.is_dir():
            return [_load(path)]
        files = sorted(_files_of(path))
    except OSError as unreadable:
        where = unreadable.filename or path
        raise TemplateError(f"{where}: cannot be read: {unreadable.strerror}") from unreadable
    if not files:
        raise TemplateError(f"{path}: holds no template; run cdk synth first, or give a template file")
    return [_load(file) for file in files]


def _files_of(folder: Path) -> Iterator[Path]:
    """Template files of an assembly and of the assemblies in it: those of stages, and of nested stacks."""
    for inner in folder.iterdir():
        if inner.name.endswith(".template.json"):
            yield inner
        elif inner.name.startswith("assembly-") and inner.is_dir() and not inner.is_symlink():
            yield from _files_of(inner)


def _load(file: Path) -> Template:
    try:
        text = read_file(file).decode("utf-8-sig")
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
    except (KeyError, TypeError, ValueError) as odd:
        raise TemplateError(f"{file}: holds a value that cannot be read: {str(odd).splitlines()[0]}") from odd
    if not isinstance(body, dict) or not isinstance(body.get("Resources"), dict):
        raise TemplateError(f"{file}: has no Resources; is it a CloudFormation template?")
    return Template(str(file), body)


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms: `!Ref x`, `!GetAtt a.b`, `!Sub ...` and so on; no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are all different."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.value != "<<":
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value!r} stands there twice", key.start_mark
                    )
                seen.add(key.value)
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
# a date in a template is text
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for letter, found in _Loader.yaml_implicit_resolvers.items()
}
