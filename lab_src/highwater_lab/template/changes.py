"""Reads the changes of a Terraform plan, by address: its actions for each resource."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from highwater_lab.template.blocks import blocks_of
from highwater_lab.template.document import Planned
from highwater_lab.template.references import as_object

_DEEPEST: Final = 60


def changes_of(body: Mapping[str, Any]) -> Iterator[tuple[str, Planned]]:
    """Yield the address and the change of each resource in a plan. A state has no changes.

    Source: HashiCorp, "JSON Output Format", change representation, read 2026-11.
    """
    prior = dict(_values(as_object(as_object(body.get("prior_state")).get("values")).get("root_module")))
    for each in blocks_of(body.get("resource_changes")):
        resource, change = as_object(each), as_object(as_object(each).get("change"))
        actions = tuple(str(action) for action in blocks_of(change.get("actions")))
        previous = resource.get("previous_address")
        paths = tuple(_path_text(path) for path in blocks_of(change.get("replace_paths")) if isinstance(path, list))
        address, deposed = str(resource.get("address")), resource.get("deposed")
        yield (
            f"{address} (deposed {deposed})" if deposed else address,
            Planned(
                actions,
                previous if isinstance(previous, str) else None,
                paths,
                str(resource.get("type") or _kind_of(address)),
                bool(change.get("importing")),
                as_object(change.get("before")) or prior.get(address, {}),
                bool(deposed),
            ),
        )


def _kind_of(address: str) -> str:
    """Return the type of the resource that has an address, such as `module.shop.aws_dynamodb_table.orders["eu"]`."""
    return re.sub(r'\[(?:"(?:[^"\\]|\\.)*"|\d+)\]', "", address).split(".")[-2:][0]


def _values(module: Any, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield address and attributes of each resource of a module and of the modules in it."""
    content = as_object(module)
    for each in map(as_object, blocks_of(content.get("resources"))):
        yield str(each.get("address")), as_object(each.get("values"))
    for child in blocks_of(content.get("child_modules")) if depth < _DEEPEST else ():
        yield from _values(child, depth + 1)


def _path_text(steps: list[Any]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
