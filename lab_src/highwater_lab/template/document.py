"""Reads CloudFormation templates: JSON, or YAML with short forms, and reports duplicate keys.

HighwaterError
└── TemplateError (also a ValueError): a template cannot be read; the message is one line with place, problem and fix
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from highwater.core import HighwaterError
from highwater_lab.files import read_file


class TemplateError(HighwaterError, ValueError):
    """A template cannot be read, or does not contain what the caller needs."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment that a stack is deployed to, as far as the assembly says.

    Attributes:
        account: The account's number; `None` if the stack is not bound to one.
        region: The region's name; `None` if the stack is not bound to one.
        stack: The stack's name.
    """

    account: str | None = None
    region: str | None = None
    stack: str | None = None


@dataclass(frozen=True, slots=True)
class Doubled:
    """A duplicate key of a mapping; CloudFormation uses the last one, or rejects the template.

    Attributes:
        path: The keys that lead to the mapping, from the top.
        key: The key itself.
        line: The line of its second occurrence, `None` if that is not known.
    """

    path: tuple[str, ...]
    key: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Template:
    """One CloudFormation template.

    Attributes:
        where: The template's file, as messages name it.
        body: The parsed document.
        environment: The environment that its stack is deployed to.
        doubled: Duplicate keys.
        nested: By logical id the file of each nested stack's template, if the assembly contains it.
        paths: By logical id the path of the construct that made it, if the assembly has it.
    """

    where: str
    body: dict[str, Any]
    environment: Environment = field(default_factory=Environment)
    doubled: tuple[Doubled, ...] = ()
    nested: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder that the file is in."""
        return str(Path(self.where).parent)

    @property
    def stem(self) -> str:
        """The file's name without its endings, by which references from other templates name this one."""
        return Path(self.where).name.split(".template")[0].split(".nested")[0]

    def section(self, name: str) -> dict[str, Any]:
        """Return a top-level section such as `Resources`; an empty mapping if the template has no such section."""
        section = self.body.get(name)
        return {str(key): value for key, value in section.items()} if isinstance(section, dict) else {}

    def resource(self, logical_id: str) -> dict[str, Any]:
        """Return a resource; an empty mapping if the template has none of that logical id."""
        resource = self.section("Resources").get(logical_id)
        return resource if isinstance(resource, dict) else {}

    def doubled_error(self, found: Doubled) -> TemplateError:
        """Return, without raising it, the error about a duplicate key that matters."""
        line = "" if found.line is None else f", line {found.line}"
        kind = "JSON" if found.line is None else "YAML"
        return TemplateError(
            f"{self.where}{line}: is not valid {kind}: the key {found.key!r} occurs twice in one mapping"
        )


def load_template(file: Path, *, may_be_empty: bool = False) -> Template:
    """Load one template; *may_be_empty* allows one without resources, which a stack of an assembly may be.

    Raises `TemplateError` if it cannot be read, is neither JSON nor YAML, or is not a template.
    """
    try:
        text = read_file(file).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a UTF-8 text file"
        raise TemplateError(f"{file}: cannot be read: {reason}") from error
    try:
        body, doubled = _parse(text, is_json=file.suffix == ".json")
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
    if may_be_empty and isinstance(body, dict) and "Resources" not in body:
        body = {**body, "Resources": {}}
    if not isinstance(body, dict) or not isinstance(body.get("Resources"), dict):
        raise TemplateError(f"{file}: has no Resources section; give a CloudFormation template")
    return Template(str(file), body, doubled=tuple(doubled))


def _parse(text: str, is_json: bool) -> tuple[Any, list[Doubled]]:
    """Return the document, and its duplicate keys."""
    if is_json or text.lstrip().startswith("{"):
        # tried whatever the file's name is: JSON may be indented by tabs, which YAML forbids
        try:
            return _parse_json(text)
        except json.JSONDecodeError as no_json:
            if is_json:
                raise
            try:
                return _parse_yaml(text)
            except yaml.YAMLError:
                raise no_json from None
    return _parse_yaml(text)


def _parse_json(text: str) -> tuple[Any, list[Doubled]]:
    body = json.loads(text, object_pairs_hook=_Pairs)
    return body, list(_doubled_pairs(body, ()))


class _Pairs(dict[str, Any]):
    """A JSON object that remembers its duplicate keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        keys = [key for key, _ in pairs]
        self.doubled = tuple(key for key in self if keys.count(key) > 1) if len(keys) > len(self) else ()


def _doubled_pairs(value: Any, path: tuple[str, ...]) -> Iterator[Doubled]:
    if isinstance(value, _Pairs):
        yield from (Doubled(path, key, None) for key in value.doubled)
        for key, item in value.items():
            yield from _doubled_pairs(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _doubled_pairs(item, path)


def _parse_yaml(text: str) -> tuple[Any, list[Doubled]]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, []
        doubled = list(_doubled_nodes(node, (), set()))
        return loader.construct_document(node), doubled
    finally:
        loader.dispose()


def _doubled_nodes(node: yaml.Node, path: tuple[str, ...], seen: set[int]) -> Iterator[Doubled]:
    # an alias leads to a node that was visited before
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if name in keys and name not in ("", "<<"):
                yield Doubled(path, name, key.start_mark.line + 1)
            keys.add(name)
            yield from _doubled_nodes(value, (*path, name), seen)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _doubled_nodes(value, path, seen)


class _Loader(yaml.SafeLoader):
    """Loads YAML with CloudFormation's short forms (`!Ref x`, `!GetAtt a.b`, `!Sub ...`)."""


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
# CloudFormation reads dates as text, and also the single `=` of old YAML
_NOT_TEXT = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_TEXT]
    for letter, resolvers in _Loader.yaml_implicit_resolvers.items()
}


_ENVIRONMENT: Final = re.compile(r"aws://([^/]+)/([^/]+)")
_UNKNOWN: Final = ("unknown-account", "unknown-region")
_ENDING: Final = ".template.json"
_NESTED: Final = "AWS::CloudFormation::Stack"
# path and logical id of each construct
_Ids: TypeAlias = list[tuple[str, str]]


def load_templates(path: Path) -> list[Template]:
    """Load the templates of a cloud assembly (`cdk.out`), including stages and nested stacks, or one template file.

    Raises `TemplateError` if *path* is neither a folder with templates nor a readable template.
    """
    try:
        if not path.exists():
            raise TemplateError(f"{path}: does not exist; give a cdk.out folder (made by cdk synth) or a template file")
        if not path.is_dir():
            known = (_stacks(path.parent) or {}).get(path.name)
            template = load_template(path)
            return [template if known is None else replace(template, environment=known[0], paths=_own(known[1], []))]
        templates = list(_templates_of(path))
    except OSError as error:
        where = error.filename or path
        raise TemplateError(f"{where}: cannot be read: {error.strerror}") from error
    if not templates:
        raise TemplateError(f"{path}: contains no template; run cdk synth first, or give a template file")
    return sorted(templates, key=lambda template: Path(template.where))


def _templates_of(folder: Path) -> Iterator[Template]:
    """Yield the templates of an assembly, nested stacks included, and of the stages' assemblies inside it."""
    stacks = _stacks(folder)
    for name in _stages(folder):
        yield from _templates_of(folder / name)
    if stacks is None:
        # not an assembly, but a folder of templates
        yield from (load_template(entry) for entry in folder.iterdir() if entry.name.endswith(_ENDING))
        return
    # files that an earlier cdk synth left behind do not belong to this assembly
    for name, (environment, ids) in stacks.items():
        yield from _with_nested(folder / name, environment, _assets(folder / name), ids)


def _with_nested(
    file: Path, environment: Environment, assets: dict[str, str], ids: _Ids, outer: tuple[Path, ...] = ()
) -> Iterator[Template]:
    template = load_template(file, may_be_empty=True)
    if file in outer:
        raise TemplateError(f"{file}: is nested in itself")
    nested = dict(_nested_of(template, file.parent, assets))
    # a nested stack's resource is Shop/Inner.NestedStack/Inner.NestedStackResource; its contents are Shop/Inner/...
    inner = {logical_id: path.partition(".NestedStack/")[0] + "/" for path, logical_id in ids if logical_id in nested}
    yield replace(template, environment=environment, nested=nested, paths=_own(ids, inner.values()))
    for logical_id, child in nested.items():
        within = [(path, each) for path, each in ids if path.startswith(inner.get(logical_id, "/"))]
        # CloudFormation chooses the name of a nested stack
        yield from _with_nested(Path(child), replace(environment, stack=None), assets, within, (*outer, file))


def _own(ids: _Ids, inner: Collection[str]) -> dict[str, str]:
    """Return the constructs' paths by logical id, without those of nested stacks, whose paths begin as *inner* says."""
    return {logical_id: path for path, logical_id in ids if not path.startswith(tuple(inner))}


def _nested_of(template: Template, folder: Path, assets: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the logical id of each nested stack with its template's file, if the assembly contains it."""
    for logical_id in template.section("Resources"):
        resource = template.resource(logical_id)
        if resource.get("Type") != _NESTED:
            continue
        metadata, properties = resource.get("Metadata"), resource.get("Properties")
        # the CDK CLI has it written into the resource's metadata; without that, the asset's hash is in the URL
        noted = metadata.get("aws:asset:path") if isinstance(metadata, dict) else None
        url = json.dumps(properties.get("TemplateURL")) if isinstance(properties, dict) else ""
        name = noted or next((path for asset, path in assets.items() if asset in url), None)
        if isinstance(name, str) and (folder / name).is_file():
            yield logical_id, str(folder / name)


def _assets(template: Path) -> dict[str, str]:
    """Return by hash the files of a stack's assets; empty if its list of assets cannot be read."""
    listed = template.with_name(template.name.removesuffix(_ENDING) + ".assets.json")
    try:
        files = json.loads(read_file(listed))["files"]
        return {str(asset): str(file["source"]["path"]) for asset, file in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _stacks(folder: Path) -> dict[str, tuple[Environment, _Ids]] | None:
    """Return by template file its environment and its constructs; `None` without a readable manifest."""
    try:
        manifest = json.loads(read_file(folder / "manifest.json"))
        artifacts = manifest["artifacts"].values()
        stacks = [artifact for artifact in artifacts if artifact["type"] == "aws:cloudformation:stack"]
        return {
            stack["properties"]["templateFile"]: (_environment(stack), list(_ids(stack, folder))) for stack in stacks
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _stages(folder: Path) -> list[str]:
    """Return the folders of the stages of an assembly, as its manifest has them."""
    try:
        artifacts = json.loads(read_file(folder / "manifest.json"))["artifacts"].values()
        names = [
            str(artifact["properties"]["directoryName"])
            for artifact in artifacts
            if artifact["type"] == "cdk:cloud-assembly"
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        names = [entry.name for entry in folder.iterdir() if entry.name.startswith("assembly-")]
    return [name for name in names if (folder / name).is_dir() and not (folder / name).is_symlink()]


def _ids(artifact: dict[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and logical id of the constructs of a stack, nested stacks included."""
    entries = artifact.get("metadata")
    # newer versions of the CDK write them to a separate file
    if not entries and (name := artifact.get("additionalMetadataFile")):
        try:
            entries = json.loads(read_file(folder / name))
        except (OSError, ValueError, RecursionError):
            return
    for path, notes in entries.items() if isinstance(entries, dict) else ():
        for note in notes if isinstance(notes, list) else ():
            if isinstance(note, dict) and note.get("type") == "aws:cdk:logicalId":
                yield path.removeprefix("/"), str(note.get("data"))


def _environment(artifact: dict[str, Any]) -> Environment:
    match = _ENVIRONMENT.fullmatch(str(artifact.get("environment")))
    account, region = (None if part in _UNKNOWN else part for part in match.groups()) if match else (None, None)
    stack = artifact["properties"].get("stackName")
    return Environment(account, region, str(stack) if stack else None)
