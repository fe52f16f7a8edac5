"""The app as the doctor reads it: the stacks of a cloud assembly that go to one account and region."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from highwater_lab.files import read_file
from highwater_lab.template import ListedApp, TemplateError, load_templates, read_app
from highwater_lab.template.assembly import declared_stacks
from highwater_lab.template.document import Environment, Template
from highwater_lab.template.parts import may_exist
from highwater_lab.template.stacks import Stacks

_FUNCTION: Final = "AWS::Lambda::Function"
_MAPPING: Final = "AWS::Lambda::EventSourceMapping"
_MACHINE: Final = "AWS::StepFunctions::StateMachine"
# Types that the registry of a region need not have: custom resources, the CDK's own, and those of a transform
_UNREGISTERED: Final = ("Custom::", "AWS::CloudFormation::CustomResource", "AWS::CDK::")
_WORKERS: Final = re.compile(r'"MaxConcurrency"\s*:\s*(\d+)')
_VERSION: Final = "bootstrapStackVersionSsmParameter"
_ROLE: Final = "cloudFormationExecutionRoleArn"
_LEAST_VERSION: Final = "requiresBootstrapStackVersion"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What a stack needs of `cdk bootstrap`.

    Attributes:
        parameter: The SSM parameter with the version of what is there.
        version: The lowest version that suffices.
        buckets: The buckets that its assets go to.
    """

    parameter: str
    version: int
    buckets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reservation:
    """A function of the app that reserves concurrency.

    Attributes:
        stacks: The names of its stack.
        logical_id: Its logical id.
        runs: How many concurrent runs it reserves.
    """

    stacks: tuple[str, ...]
    logical_id: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The stacks of a cloud assembly that go to one account and region.

    Attributes:
        folder: The assembly's folder, as it was given.
        templates: Their templates, those of nested stacks included.
        listed: What these declare of tables.
        bootstraps: What they need of `cdk bootstrap`, each once.
        roles: The ARNs of the roles that CloudFormation deploys them with, which may name `${AWS::Partition}`.
        elsewhere: The names of the stacks that go to other accounts or regions.
    """

    folder: Path
    templates: tuple[Template, ...]
    listed: ListedApp
    bootstraps: tuple[Bootstrap, ...]
    roles: tuple[str, ...]
    elsewhere: tuple[str, ...]

    @classmethod
    def load(cls, folder: Path, account: str, region: str) -> App:
        """Read the folder that `cdk synth` wrote; raises `TemplateError` if it is none, or nothing goes there."""

        def is_here(environment: Environment) -> bool:
            return environment.account in (None, account) and environment.region in (None, region)

        stacks = list(declared_stacks(folder))
        templates = tuple(each for each in load_templates(folder) if is_here(each.environment))
        if not templates:
            places = sorted({f"{environment.account}/{environment.region}" for environment, _, _ in stacks})
            raise TemplateError(
                f"{folder}: no stack goes to {account}/{region}, only to {', '.join(places)}; give credentials of that "
                "account, and --region"
            )
        bootstraps = dict.fromkeys(
            bootstrap
            for environment, inner, properties in stacks
            if is_here(environment) and (bootstrap := _bootstrap(inner, properties, account, region)) is not None
        )
        return cls(
            folder=folder,
            templates=templates,
            listed=read_app(list(templates)),
            bootstraps=tuple(bootstraps),
            roles=tuple(
                dict.fromkeys(
                    _placed(str(properties[_ROLE]), account, region)
                    for environment, _, properties in stacks
                    if is_here(environment) and properties.get(_ROLE)
                )
            ),
            elsewhere=tuple(environment.stacks[0] for environment, _, _ in stacks if not is_here(environment)),
        )

    @property
    def kinds(self) -> frozenset[str]:
        """The types of the resources of its templates."""
        return frozenset(
            str(template.resource(logical_id).get("Type"))
            for template in self.templates
            for logical_id in template.section("Resources")
        )

    @property
    def registered(self) -> Mapping[str, list[str]]:
        """The resource types that CloudFormation in the region has to offer, with the logical ids that use them.

        Left out are resources whose condition is false, and templates with a transform, which may replace types.
        """
        found: dict[str, list[str]] = {}
        for stack in self._stacks.all:
            if stack.template.body.get("Transform"):
                continue
            for logical_id in stack.template.section("Resources"):
                kind = str(stack.template.resource(logical_id).get("Type"))
                if "::" in kind and not kind.startswith(_UNREGISTERED) and may_exist(stack, logical_id):
                    found.setdefault(kind, []).append(logical_id)
        return found

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """The functions that reserve concurrency."""
        found = []
        for stack in self._stacks.all:
            for logical_id, properties in stack.resources(_FUNCTION):
                runs = _whole(stack.resolver, properties.get("ReservedConcurrentExecutions"))
                if runs is not None:
                    found.append(Reservation(stack.template.environment.stacks, logical_id, runs))
        return tuple(found)

    @property
    def workers(self) -> int:
        """How many runs the app's jobs and queues may have at once: maps of state machines, and mappings of queues."""
        runs = 0
        for stack in self._stacks.all:
            for _, properties in stack.resources(_MAPPING):
                scaling = properties.get("ScalingConfig")
                most = scaling.get("MaximumConcurrency") if isinstance(scaling, dict) else None
                runs += _whole(stack.resolver, most) or 0
            for _, properties in stack.resources(_MACHINE):
                text = _text(stack.resolver, properties.get("DefinitionString"))
                runs += max(map(int, _WORKERS.findall(text)), default=0)
        return runs

    @property
    def _stacks(self) -> Stacks:
        return Stacks(list(self.templates), {})


def _bootstrap(folder: Path, properties: dict[str, Any], account: str, region: str) -> Bootstrap | None:
    """Return what a stack needs; `None` for one that is deployed without `cdk bootstrap`."""
    parameter, version = properties.get(_VERSION), properties.get(_LEAST_VERSION)
    if not isinstance(parameter, str) or not isinstance(version, int):
        return None
    assets = str(properties.get("templateFile", "")).removesuffix(".template.json") + ".assets.json"
    buckets = dict.fromkeys(_placed(name, account, region) for name in _buckets(folder / assets))
    return Bootstrap(parameter, version, tuple(name for name in buckets if "${" not in name))


def _placed(text: str, account: str, region: str) -> str:
    return text.replace("${AWS::AccountId}", account).replace("${AWS::Region}", region)


def _buckets(file: Path) -> Iterator[str]:
    try:
        files = json.loads(read_file(file))["files"].values()
        names = [str(place["bucketName"]) for each in files for place in each["destinations"].values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # the stack has no list of assets, or it is in a form that is not known
        return
    yield from names


def _whole(resolver: Any, value: Any) -> int | None:
    text = _text(resolver, value)
    return int(text) if text.isascii() and text.isdigit() else None


def _text(resolver: Any, value: Any) -> str:
    try:
        return str(resolver.resolve(value))
    except TemplateError:
        return ""
