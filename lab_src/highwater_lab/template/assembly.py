"""Loads the templates of a cloud assembly with its stages and nested stacks, of a folder or of one file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

from highwater_lab.files import read_file
from highwater_lab.template.document import Environment, Template, TemplateError, load_template
from highwater_lab.template.forms import entries_of, find_templates, read_templates
from highwater_lab.template.terraform import DIALECT

# what a manifest calls a stack
STACK: Final = "aws:cloudformation:stack"
_ENVIRONMENT: Final = re.compile(r"aws://([^/]+)/([^/]+)")
_UNKNOWN: Final = ("unknown-account", "unknown-region")
_ENDING: Final = ".template.json"
_NESTED: Final = "AWS::CloudFormation::Stack"
_MANIFEST: Final = "manifest.json"
_MOST_NAMES: Final = 6
# CloudFormation changes up to 2,500 resources of nested stacks at once (AWS CloudFormation User Guide, "Understand
# CloudFormation quotas", read 2026-11); a file that is nested twice by each level counts each time
_MOST_STACKS: Final = 1_000
_DEEPEST_STAGE: Final = 30
# path and logical id of each construct
_Ids: TypeAlias = list[tuple[str, str]]


def load_templates(path: Path) -> list[Template]:
    """Load the templates of a cloud assembly (`cdk.out`), including stages and nested stacks, of a folder, or a file.

    A file is a template, or plans and states of Terraform or OpenTofu as JSON: a template for each plan and region. A
    folder has such files, in folders within it too; what else is in it is ignored.

    Raises `TemplateError` if *path* is neither a folder with templates nor such a readable file.
    """
    try:
        if not path.exists():
            raise TemplateError(f"{path}: does not exist; give a cdk.out folder (made by cdk synth) or a template file")
        if not path.is_dir():
            templates = read_templates(path)
            known = (_stacks(path.parent) or {}).get(path.name)
            if known is None:
                return templates
            return [replace(each, environment=known[0], paths=_own(known[1], [])) for each in templates]
        ignored: list[Path] = []
        templates = list(_templates_of(path, ignored))
    except OSError as error:
        where = error.filename or path
        raise TemplateError(f"{where}: cannot be read: {error.strerror}") from error
    if not templates:
        raise TemplateError(_nothing_in(path, ignored))
    return sorted(templates, key=lambda template: Path(template.where))


def _nothing_in(folder: Path, ignored: list[Path]) -> str:
    """Return the error about a folder without a template; raises `TemplateError` for a broken file in it."""
    for file in ignored:
        # one that cannot be parsed is then the likely reason
        find_templates(file, is_strict=True)
    message = f"{folder}: contains no template and no plan; run cdk synth first, or give a template file"
    if not ignored:
        return message
    names = [str(file.relative_to(folder)) for file in ignored[:_MOST_NAMES]]
    more = f" and {len(ignored) - _MOST_NAMES} more" if len(ignored) > _MOST_NAMES else ""
    return f"{message}; neither are {', '.join(names)}{more}"


def is_plan(path: Path) -> bool:
    """Return whether *path* has plans or states of Terraform or OpenTofu only; `False` if it cannot be read."""
    try:
        return all(template.dialect is DIALECT for template in load_templates(path))
    except TemplateError:
        return False


def load_prior(path: Path) -> list[Template]:
    """Load the tables of the states that Terraform plans were made from; none before the first apply.

    Raises `TemplateError` if *path* is neither a plan as JSON nor a folder of plans.
    """
    if not path.is_dir():
        return read_templates(path, is_prior=True)
    return sorted(_templates_of(path, [], is_prior=True), key=lambda template: Path(template.where))


def _templates_of(
    folder: Path, ignored: list[Path], *, is_prior: bool = False, outer: tuple[Path, ...] = ()
) -> Iterator[Template]:
    """Yield the templates of an assembly, nested stacks and stages included, or of a folder within *outer* ones.

    Files of a folder in which there is none are added to *ignored*.
    """
    if len(outer) > _DEEPEST_STAGE or folder.resolve() in outer:
        raise TemplateError(f"{folder}: is within itself, or in too many folders")
    within = (*outer, folder.resolve())
    stacks = _stacks(folder)
    if stacks is None:
        for entry in entries_of(folder):
            if entry.is_dir():
                yield from _templates_of(entry, ignored, is_prior=is_prior, outer=within)
                continue
            found = find_templates(entry, is_prior=is_prior)
            if not found:
                ignored.append(entry)
            yield from found
        return
    for name in stages_of(folder):
        yield from _templates_of(folder / name, ignored, is_prior=is_prior, outer=within)
    # files that an earlier cdk synth left behind do not belong to this assembly
    for name, (environment, ids) in stacks.items():
        yield from _with_nested(folder / name, environment, _assets(folder / name), ids, count())


def _with_nested(
    file: Path,
    environment: Environment,
    assets: dict[str, str],
    ids: _Ids,
    number: Iterator[int],
    outer: tuple[Path, ...] = (),
) -> Iterator[Template]:
    """Yield a template and those that it nests; *number* counts them all."""
    if next(number) > _MOST_STACKS:
        raise TemplateError(f"{(*outer, file)[0]}: nests more than {_MOST_STACKS:,} stacks")
    if file in outer:
        raise TemplateError(f"{file}: is nested in itself")
    template = load_template(file, may_be_empty=True)
    nested = dict(_nested_of(template, file.parent, assets))
    # a nested stack's resource is Shop/Inner.NestedStack/Inner.NestedStackResource; its contents are Shop/Inner/...
    inner = {logical_id: path.partition(".NestedStack/")[0] + "/" for path, logical_id in ids if logical_id in nested}
    yield replace(template, environment=environment, nested=nested, paths=_own(ids, inner.values()))
    for logical_id, child in nested.items():
        within = [(path, each) for path, each in ids if path.startswith(inner.get(logical_id, "/"))]
        yield from _with_nested(Path(child), environment.nested(logical_id), assets, within, number, (*outer, file))


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


def artifacts_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the artifacts of a cloud assembly's manifest by id; raise `TemplateError` without one that can be read."""
    place = folder / _MANIFEST
    try:
        artifacts = json.loads(read_file(place))["artifacts"]
        return {str(name): artifact for name, artifact in artifacts.items() if isinstance(artifact, dict)}
    except OSError as error:
        raise TemplateError(
            f"{folder}: is not a cloud assembly: {_MANIFEST} cannot be read: {error.strerror}; give the folder that "
            "cdk synth wrote, such as cdk.out"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TemplateError(f"{place}: is not a manifest of a cloud assembly; synthesize the app again") from error


def declared_stacks(folder: Path) -> Iterator[tuple[Environment, Path, dict[str, Any]]]:
    """Yield of each stack of a cloud assembly, those of stages included, where it goes, its folder and its properties.

    Raises `TemplateError` if a manifest cannot be read.
    """
    for name, artifact in artifacts_of(folder).items():
        properties = artifact.get("properties")
        if artifact.get("type") == STACK and isinstance(properties, dict):
            yield _environment(name, artifact), folder, properties
    for stage in stages_of(folder):
        yield from declared_stacks(folder / stage)


def _stacks(folder: Path) -> dict[str, tuple[Environment, _Ids]] | None:
    """Return by template file its environment and its constructs; `None` without a readable manifest."""
    try:
        artifacts = artifacts_of(folder)
        return {
            stack["properties"]["templateFile"]: (_environment(name, stack), list(_ids(stack, folder)))
            for name, stack in artifacts.items()
            if stack["type"] == STACK
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def stages_of(folder: Path) -> list[str]:
    """Return the folders of the stages of an assembly, as its manifest has them."""
    try:
        names = [
            str(artifact["properties"]["directoryName"])
            for artifact in artifacts_of(folder).values()
            if artifact["type"] == "cdk:cloud-assembly"
        ]
    except (ValueError, KeyError, TypeError):
        names = [entry.name for entry in folder.iterdir() if entry.name.startswith("assembly-")]
    return [name for name in names if (folder / name).is_dir() and not (folder / name).is_symlink()]


def notes_of(artifact: dict[str, Any], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and metadata entry of the constructs of a stack of an assembly in *folder*, nested stacks included."""
    entries = artifact.get("metadata")
    # newer versions of the CDK write them to a separate file
    if not entries and (name := artifact.get("additionalMetadataFile")):
        try:
            entries = json.loads(read_file(folder / name))
        except (OSError, ValueError, RecursionError):
            return
    for path, notes in entries.items() if isinstance(entries, dict) else ():
        for note in notes if isinstance(notes, list) else ():
            if isinstance(note, dict):
                yield path.removeprefix("/"), note


def _ids(artifact: dict[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and logical id of the constructs of a stack, nested stacks included."""
    for path, note in notes_of(artifact, folder):
        if note.get("type") == "aws:cdk:logicalId":
            yield path, str(note.get("data"))


def _environment(name: str, artifact: dict[str, Any]) -> Environment:
    """Return the environment of the stack that is the manifest's artifact of this id."""
    match = _ENVIRONMENT.fullmatch(str(artifact.get("environment")))
    account, region = (None if part in _UNKNOWN else part for part in match.groups()) if match else (None, None)
    # the CDK leaves stackName out where it equals the artifact's id (aws-cdk, Cloud Assembly Schema,
    # AwsCloudFormationStackProperties, read 2026-11)
    stack = artifact["properties"].get("stackName") or name
    return Environment(account, region, (str(stack),))
