"""Compares parts of two declarations of a table: the rules that hold whichever engine deploys it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from highwater.core import Dimension
from highwater_lab.template.deployed import Deployed, Target
from highwater_lab.template.document import Dialect
from highwater_lab.template.guard.hazard import Consequence, HazardKind, TableHazard
from highwater_lab.template.intrinsics import OPEN
from highwater_lab.template.listed import ListedTable
from highwater_lab.template.stacks import is_open

_MOST_LISTED: Final = 3


def may_differ(was: str, now: str) -> bool | None:
    """Return whether two texts with open references differ; `None` if that depends on the references' values."""
    if was == now:
        return False
    if not (is_open(was) or is_open(now)) or sorted(OPEN.findall(was)) == sorted(OPEN.findall(now)):
        return True
    if not (is_open(was) and is_open(now)):
        closed, other = (now, was) if is_open(was) else (was, now)
        return None if _fits(closed, OPEN.split(other)[::2]) else True
    (first_was, last_was), (first_now, last_now) = (
        (pieces[0], pieces[-1]) for pieces in (OPEN.split(text)[::2] for text in (was, now))
    )
    begins = first_was.startswith(first_now) or first_now.startswith(first_was)
    ends = last_was.endswith(last_now) or last_now.endswith(last_was)
    return None if begins and ends else True


def _fits(text: str, pieces: Sequence[str]) -> bool:
    """Return whether a text has these pieces in their order, from its start to its end, with something between them."""
    if not (text.startswith(pieces[0]) and text.endswith(pieces[-1])):
        return False
    at = len(pieces[0])
    for piece in pieces[1:-1]:
        at = text.find(piece, at + 1)
        if at < 0:
            return False
        at += len(piece)
    return at < len(text) - len(pieces[-1])


def lowered_marks(was: Deployed, now: Deployed, dialect: Dialect) -> Iterator[TableHazard]:
    """Yield the lowered high-water marks that a declaration has; Highwater's own resource lowers none."""
    # "decreasing WarmThroughput is not supported", ValidationException of UpdateTable (aws-controllers-k8s/
    # dynamodb-controller, docs/api-quirks, measured 2026-10); Amazon DynamoDB Developer Guide, "Warm throughput"
    lower = []
    for index in now.marks:
        if index is not None and dialect.words:
            # Terraform builds such an index again
            continue
        for name, before, after in lower_marks(was, now, index):
            lower.append(f"{label(index)} from {before:,} to {after:,} {name}")
    if lower:
        yield TableHazard(
            HazardKind.MARK_LOWERED,
            Consequence.REFUSED,
            f"high-water mark lowered ({listed(lower)}): DynamoDB refuses to lower warm throughput",
            f"declare no less than before, or no {dialect.word('WarmThroughput')} at all",
        )


def lower_marks(was: Deployed, now: Deployed, index: str | None) -> list[tuple[str, int, int]]:
    """Return the marks of a table or index that are lower than before: `reads` or `writes`, and both numbers."""
    old, mark = was.marks.get(index), now.marks.get(index)
    if old is None or mark is None:
        return []
    both = (("reads", old.read, mark.read), ("writes", old.write, mark.write))
    return [(name, before, after) for name, before, after in both if 0 < after < before]


def changed_owners(
    was: Deployed, now: Deployed, is_deleted: Callable[[str], bool | None] = lambda _: None
) -> tuple[str, str, str] | None:
    """Return the targets that another resource owns than before, with the old and new owners; `None` for none.

    *is_deleted* returns whether a plan deletes the resource of that name; `None` if no plan says it.
    """
    moved: list[tuple[Target, str, str]] = []
    for target, owners in now.owners.items():
        old = [each.name for each in was.owners.get(target, ())]
        fates = {name: is_deleted(name) for name in old}
        if not all(fate is None for fate in fates.values()):
            moved += [(target, name, owners[0].name) for name, fate in fates.items() if fate][:1]
            continue
        # the prior state of a plan has the addresses that its moved blocks lead to
        if old and not set(old) & {name for each in owners for name in (each.previous, each.name)}:
            moved.append((target, old[0], owners[0].name))
    if not moved:
        return None
    from_, to = (
        listed(list(dict.fromkeys(names))) for names in ([each[1] for each in moved], [each[2] for each in moved])
    )
    return listed([target_label(target) for target, _, _ in moved]), from_, to


def changed_units(was: Deployed, now: Deployed) -> list[tuple[Target, int, int]]:
    """Return each target that the new declaration scales and whose units change, with the units before and after."""
    if was.is_on_demand or now.is_on_demand:
        return []
    return [
        (target, was.units[target], units)
        for target, units in now.units.items()
        if target in now.owners and was.units.get(target, units) != units
    ]


def units_text(changed: Sequence[tuple[Target, int, int]]) -> str:
    """Return changed units in words."""
    return listed([f"{target_label(target)} from {before:,} to {after:,} units" for target, before, after in changed])


def unscaled(table: ListedTable) -> list[str]:
    """Return the parts of a provisioned table of Terraform without auto scaling of writes."""
    if table.setup is None or table.setup.is_on_demand:
        return []
    return [each.label for each in table.setup.resources if each.write.tracking is None]


def label(index: str | None) -> str:
    """Return the words for a table or index."""
    return "table" if index is None else f"index {index}"


def target_label(target: Target) -> str:
    """Return the words for a target: `index by-state writes`."""
    index, dimension = target
    return f"{label(index)} {'reads' if dimension is Dimension.READ else 'writes'}"


def listed(texts: Sequence[str]) -> str:
    """Return the first texts in a row, and the number of the others."""
    more = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
