"""A table of an app, and the names by which people know it: in options, in files of traffic, in an account."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from highwater.core import Plan
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.template.deployed import Declaration, Deployed
from highwater_lab.template.document import Dialect
from highwater_lab.template.intrinsics import OPEN

# What CloudFormation appends to a logical id: eight to sixteen characters, mostly capitals. Seen: 1F6H4LDFTFI3O and
# QHOIR25MRDJL (github.com/kcwinner/cdk-appsync-transformer, issue 214), arZJxYWqV4wX (github.com/aws-samples/
# sample-autonomous-cloud-coding-agents, issue 865), both read 2026-11.
_SUFFIX: Final = "[A-Za-z0-9]{8,16}"
_STACK: Final = "[A-Za-z][A-Za-z0-9-]*"
# the CDK ends logical ids with a hash of the construct's path
_HASH: Final = re.compile(r"[0-9A-F]{8}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTable:
    """One of all tables of an app.

    Attributes:
        name: Its name in reports, unique in the app: the path of its construct where the assembly has it.
        stage: The path of the `cdk.Stage` that its stack belongs to; empty for a stack outside of stages.
        stacks: The name of its stack; in a nested stack that of the outermost one, then the logical ids of the nested
            stacks down to its own. The name is empty where the assembly does not say it.
        logical_id: Its logical id, `None` if no template defines it.
        physical: Its physical name, `None` where CloudFormation generates it, or only the deployment knows it.
        open_name: The physical name that the template declares with references that only the deployment knows, such as
            `orders-${AWS::Region}`; empty where it declares none, or the whole name.
        setup: Its capacity and scaling, `None` if that could not be read.
        problem: Why it could not be read; empty if it was.
        dialect: The words of its template.
        is_global: Whether it is an `AWS::DynamoDB::GlobalTable`, whose scalable targets CloudFormation makes itself.
        is_managed: Whether Highwater manages its capacity already.
        plan: What Highwater keeps it at; `None` for other tables, and if it cannot be read.
        deployed: The properties that decide whether AWS can bring it from one declaration to another.
        declaration: Where these were read, to read them with other values of references; `None` for a table of a test.
    """

    name: str
    stage: str
    stacks: tuple[str, ...] = ("",)
    logical_id: str | None
    physical: str | None
    open_name: str = ""
    setup: TableSetup | None
    problem: str = ""
    dialect: Dialect = field(default_factory=Dialect)
    is_global: bool = False
    is_managed: bool = False
    plan: Plan | None = None
    deployed: Deployed = field(default_factory=Deployed)
    declaration: Declaration | None = field(default=None, repr=False, compare=False)

    def name_among(self, names: Iterable[str]) -> str | None:
        """Return which of these names is the table's; `None` if none is, or if several may be.

        A table is known by its physical name, by the form of a name that the template leaves open or that
        CloudFormation generates, by the path of its construct or an end of it, in capitals or not, and by its logical
        id, with or without the hash at its end; in this order. A table that has a physical name is not known by the
        last part of its path alone, or by its logical id: that may be the name of another table.
        """
        given = list(names)
        for fits in self._meanings(is_named=self.physical is not None):
            found = [name for name in given if fits(name)]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def sureness(self, name: str) -> int | None:
        """Return how sure it is that people mean this table by *name*, 0 for the surest; `None` if they do not."""
        found = next((number for number, fits in enumerate(self._meanings()) if fits(name)), None)
        if found is None and name and (self.logical_id or self.name).startswith(name):
            return len(self._meanings())
        return found

    def _meanings(self, *, is_named: bool = False) -> list[Callable[[str], bool]]:
        """Return the tests of a name, the surest first; *is_named* leaves out those that another table may pass."""
        sure: list[Callable[[str], bool]] = [
            lambda name: name == self.physical,
            self._is_open_name,
            self._is_generated,
            lambda name: name == self.name,
        ]
        if is_named:
            return sure
        last = self.name.rpartition(self.dialect.separator)[2].lower()
        return [
            *sure,
            lambda name: self.dialect.is_end(name, self.name),
            lambda name: name.lower() == last,
            lambda name: name == self.logical_id,
            lambda name: bool(self.logical_id) and name == _HASH.sub("", self.logical_id or ""),
        ]

    def _is_open_name(self, name: str) -> bool:
        """Whether the name is what the template declares, with some value for each reference in it."""
        pieces = OPEN.split(self.open_name)[::2]
        # a name that is nothing but a reference may be any table's
        return any(pieces) and re.fullmatch(".+".join(map(re.escape, pieces)), name) is not None

    def _is_generated(self, name: str) -> bool:
        """Whether CloudFormation may have generated the name: STACK-LOGICALID-SUFFIX, a nested stack's name likewise.

        CloudFormation cuts the logical id in the name of a nested stack where that would be too long.
        """
        if self.physical is not None or self.open_name or self.logical_id is None:
            return False
        stack, *nested = self.stacks
        parts = [re.escape(stack) if stack else _STACK, *(f"([A-Za-z0-9]+)-{_SUFFIX}" for _ in nested)]
        match = re.fullmatch(f"{'-'.join(parts)}-{re.escape(self.logical_id)}-{_SUFFIX}", name)
        return match is not None and all(
            whole.startswith(cut) for whole, cut in zip(nested, match.groups(), strict=True)
        )


def tables_called(tables: Iterable[ListedTable], name: str) -> tuple[ListedTable, ...]:
    """Return the tables that people mean by *name*: those of which it is the surest.

    It is the physical name, also a form of it that the template leaves open or that CloudFormation generates, the path
    of the construct or the address, any end of that, its last part in capitals or not, or the logical id or the start
    of it.
    """
    found = [(table, sureness) for table in tables if (sureness := table.sureness(name)) is not None]
    surest = min((sureness for _, sureness in found), default=None)
    return tuple(table for table, sureness in found if sureness == surest)
