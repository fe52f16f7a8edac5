"""Rooms: each feature that can be taken out is reached by the registries alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from highwater.rooms import ROOMS
from tests.cdk_cli import ROOT

PACKAGES = {
    "highwater": ROOT / "lambda_src" / "highwater",
    "cdk_highwater": ROOT / "constructs_pkg" / "cdk_highwater",
    "highwater_lab": ROOT / "lab_src" / "highwater_lab",
    "highwater_local": ROOT / "local_src" / "highwater_local",
}
# public names; they are imported when they are used
REGISTRIES = {PACKAGES["cdk_highwater"] / "__init__.py"}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _room_of(module: str) -> str | None:
    package, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    return name if package in PACKAGES and name in ROOMS else None


def _files(room: str) -> list[Path]:
    return [path for folder in PACKAGES.values() for path in (folder / room).rglob("*.py")]


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_the_rooms_that_it_says(room: str) -> None:
    found = {other for path in _files(room) for module in _imported(path) if (other := _room_of(module)) is not None}
    assert found - {room} == set(ROOMS[room])
    assert _files(room)


def test_nothing_outside_of_rooms_imports_one() -> None:
    rooms = {path for room in ROOMS for path in _files(room)}
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for folder in PACKAGES.values()
        for path in folder.rglob("*.py")
        if path not in rooms and path not in REGISTRIES
        for module in _imported(path)
        if _room_of(module) is not None
    ]
    assert wrong == []
