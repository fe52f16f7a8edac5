"""Functions of the core with one change, as mutmut makes it."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from types import FunctionType
from typing import Any

import libcst as cst
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

# The three imports above are not mutmut's public ones: with another version, see first whether they still fit.
MUTMUT_VERSION = "3.8.1"
if metadata.version("mutmut") != MUTMUT_VERSION:
    raise ImportError(f"made for mutmut {MUTMUT_VERSION}, found {metadata.version('mutmut')}")

CORE = Path(__file__).resolve().parents[2] / "lambda_src" / "highwater" / "core"
# mutmut leaves decorated functions alone; beneath these decorators are plain ones
_DECORATOR = re.compile(r"^( *)@(property|lru_cache\(maxsize=\d+\))$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A function of the core, and its text with one change."""

    path: Path
    owner: str | None
    name: str
    original: str
    changed: str

    @property
    def function(self) -> str:
        return f"{self.path.relative_to(CORE)}: {f'{self.owner}.' if self.owner else ''}{self.name}"

    @property
    def diff(self) -> str:
        lines = difflib.unified_diff(self.original.splitlines(), self.changed.splitlines(), n=0, lineterm="")
        return "\n".join([self.function, *(line for line in [*lines][2:] if line[0] in "+-")])

    @property
    def namespace(self) -> dict[str, Any]:
        parts = self.path.relative_to(CORE.parents[1]).with_suffix("").parts
        return vars(import_module(".".join(parts).removesuffix(".__init__")))

    def put(self, text: str, first: str = "") -> None:
        """Give the function the code of *text*, after the statement *first*, wherever it is already referred to."""
        # a method is compiled in a class, for `super()`
        tree = ast.parse(f"class {self.owner}:\n{textwrap.indent(text, '    ')}" if self.owner else text)
        definition = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        definition.body[:0] = ast.parse(first).body
        namespace = dict(self.namespace)
        exec(compile(ast.fix_missing_locations(tree), self.function, "exec"), namespace)  # noqa: S102
        function, other = self._find(self.namespace), self._find(namespace)
        function.__code__, function.__defaults__ = other.__code__, other.__defaults__
        function.__kwdefaults__ = other.__kwdefaults__

    def _find(self, namespace: dict[str, Any]) -> FunctionType:
        found = vars(namespace[self.owner])[self.name] if self.owner else namespace[self.name]
        for wrapped in ("__func__", "fget", "__wrapped__"):
            found = getattr(found, wrapped, found)
        assert isinstance(found, FunctionType)
        return found


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a source file, always in the same order."""
    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = cst.MetadataWrapper(cst.parse_module(_DECORATOR.sub(r"\1# \2", path.read_text()))).visit(visitor)
    classes = [statement for statement in module.body if isinstance(statement, cst.ClassDef)]
    owners = {id(node): statement.name.value for statement in classes for node in statement.body.body}
    for mutation in visitor.mutations:
        definition = mutation.contained_by_top_level_function
        if isinstance(definition, cst.FunctionDef):
            changed = definition.deep_replace(mutation.original_node, mutation.mutated_node)
            assert isinstance(changed, cst.FunctionDef)
            original, text = (cst.Module([node]).code.strip() for node in (definition, changed))
            yield Mutant(path, owners.get(id(definition)), definition.name.value, original, text)
