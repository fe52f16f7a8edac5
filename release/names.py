"""The public names of the packages with their signatures, in a file: `make public-api` writes it, checks compare it.

A name that users may import changes only on purpose: whoever changes one writes the file anew, in the same commit, and
the changelog says what changed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import griffe

# the packages whose names docs/names.md promises
CONTRACT: Final = (
    "cdk_highwater",
    "highwater",
    *(f"highwater.{room}" for room in ("budgets", "jobs", "queues", "shards")),
    "highwater_lab.local",
    "highwater_lab.testing",
)
_ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = _ROOT / "release" / "public_api.txt"
_SOURCES: Final = ("constructs_pkg", "lambda_src", "lab_src")


def public_names(sources: Sequence[Path] | None = None, packages: Sequence[str] = CONTRACT) -> list[str]:
    """Return a line for each public name: functions with their signatures, classes with bases, and their members.

    The sources are read and not imported. Members that a class has from other libraries are not listed.

    Args:
        sources: The folders with the packages; by default those of this repository.
        packages: The modules whose public names are listed.
    """
    folders = [_ROOT / folder for folder in _SOURCES] if sources is None else sources
    loader = griffe.GriffeLoader(search_paths=[*folders])
    for top in sorted({package.split(".")[0] for package in packages}):
        loader.load(top)
    loader.resolve_aliases(implicit=False)
    lines: list[str] = []
    for package in packages:
        module = loader.modules_collection[package]
        for name in _exports(module):
            lines += _described(f"{package}.{name}", _target(module[name]))
    return lines


def differences(stated: Sequence[str], found: Sequence[str]) -> list[str]:
    """Return a sentence for each name that is not as it is stated, in the order of the names."""
    before, after = ({_name(line): line for line in lines} for lines in (stated, found))
    said = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None:
            said.append(f"{name}: is new: {new}")
        elif new is None:
            said.append(f"{name}: is gone, was: {old}")
        elif old != new:
            said.append(f"{name}: is {new}, was: {old}")
    return said


def stated_names() -> list[str]:
    """Return the lines of the file."""
    return FILE.read_text().splitlines()


def _name(line: str) -> str:
    return re.split(r"[^\w.]", line, maxsplit=1)[0]


def _exports(module: griffe.Object | griffe.Alias) -> list[str]:
    if module.exports is not None:
        return sorted(str(name) for name in module.exports)
    # a module without a list has the names that it defines itself
    return sorted(name for name, member in module.members.items() if not (name.startswith("_") or member.is_alias))


def _target(found: griffe.Object | griffe.Alias) -> griffe.Object:
    return found.final_target if isinstance(found, griffe.Alias) else found


def _described(name: str, found: griffe.Object) -> Iterator[str]:
    if isinstance(found, griffe.Class):
        bases = ", ".join(str(base) for base in found.bases)
        yield f"{name}{_signature(found)}" + (f", a {bases}" if bases else "")
        members = {**found.inherited_members, **found.members}
        for each, member in sorted(members.items()):
            target = _target(member)
            # a class that is defined within is imported by nobody
            if not (each.startswith("_") or isinstance(target, griffe.Class)):
                yield from _described(f"{name}.{each}", target)
    elif isinstance(found, griffe.Function):
        labels = [label for label in ("async", "classmethod", "staticmethod") if label in found.labels]
        yield " ".join([f"{name}{_signature(found)}", *(f"[{label}]" for label in labels)])
    elif isinstance(found, griffe.Attribute):
        of_its_own = found.annotation is None and found.value is not None
        yield f"{name} = {found.value}" if of_its_own else f"{name}: {found.annotation}"


def _signature(found: griffe.Class | griffe.Function) -> str:
    written = found.signature()
    for parameter in found.parameters:
        default = parameter.default
        if isinstance(default, griffe.ExprName) and default.name.isupper():
            # a default is part of the contract, whatever it is called
            module, _, name = default.canonical_path.rpartition(".")
            constant = found.modules_collection[module].members.get(name) if module else found.module.members.get(name)
            if isinstance(constant, griffe.Attribute):
                written = written.replace(f"= {default.name}", f"= {constant.value}")
    # griffe begins with the name, and a class has no signature if it defines no way to make one
    return written[written.index("(") :] if "(" in written else ""


def _main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--write"]:
        FILE.write_text("".join(f"{line}\n" for line in public_names()))
        return 0
    said = differences(stated_names(), public_names())
    for line in said:
        print(line)
    if said:
        print("if that is meant: make public-api, and a line in CHANGELOG.md", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
