"""The public names: as the file of the repository has them, and one line for each that is not."""

from __future__ import annotations

from pathlib import Path

from release.names import differences, public_names, stated_names

BEFORE = '''
"""A package."""

from lib.inner import Table, grow

__all__ = ["LIMIT", "Table", "grow"]

LIMIT = 40
'''
INNER = '''
"""The package's inside."""

from dataclasses import dataclass


class _Base:
    def inherited(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Table(_Base):
    name: str
    units: int = 5

    @property
    def is_large(self) -> bool: ...

    @classmethod
    def of(cls, name: str) -> "Table": ...

    def _private(self) -> None: ...


async def grow(table: Table, *, by: int = 3) -> None: ...


def not_exported() -> None: ...
'''
LINES = [
    "lib.LIMIT = 40",
    "lib.Table(*, name: str, units: int = 5), a _Base",
    "lib.Table.inherited() -> int",
    "lib.Table.is_large: bool",
    "lib.Table.name: str",
    "lib.Table.of(name: str) -> Table [classmethod]",
    "lib.Table.units: int",
    "lib.grow(table: Table, *, by: int = 3) -> None [async]",
]


def _lines(folder: Path, inner: str) -> list[str]:
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "__init__.py").write_text(BEFORE)
    (folder / "lib" / "inner.py").write_text(inner)
    return public_names([folder], ["lib"])


def test_names_are_those_of_the_file() -> None:
    """An unannounced change fails here: what is meant is written by `make public-api`, with a line in CHANGELOG.md."""
    assert differences(stated_names(), public_names()) == []


def test_names_are_read_with_their_signatures_and_what_is_private_is_not(tmp_path: Path) -> None:
    assert _lines(tmp_path, INNER) == LINES


def test_each_difference_is_one_line(tmp_path: Path) -> None:
    changed = (
        INNER.replace("by: int = 3", "by: int = 4")
        .replace("    units: int = 5\n", "    units: int\n")
        .replace("def is_large", "def is_huge")
    )
    assert differences(LINES, _lines(tmp_path, changed)) == [
        "lib.Table: is lib.Table(*, name: str, units: int), a _Base, "
        "was: lib.Table(*, name: str, units: int = 5), a _Base",
        "lib.Table.is_huge: is new: lib.Table.is_huge: bool",
        "lib.Table.is_large: is gone, was: lib.Table.is_large: bool",
        "lib.grow: is lib.grow(table: Table, *, by: int = 4) -> None [async], "
        "was: lib.grow(table: Table, *, by: int = 3) -> None [async]",
    ]
