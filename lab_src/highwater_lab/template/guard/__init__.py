"""Reports the parts of a change that AWS refuses, that destroy something, or whose effect is not known.

Each rule has its source beside it. A part that cannot be read is no hazard: the reader of tables reports it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from highwater_lab.template.document import Planned
from highwater_lab.template.guard.cloudformation import of_cloudformation, two_deploys
from highwater_lab.template.guard.hazard import Consequence, Hazard, HazardKind, TableHazard
from highwater_lab.template.guard.terraform import PlannedChanges, of_terraform
from highwater_lab.template.listed import ListedTable
from highwater_lab.template.matching import Pair, match_tables
from highwater_lab.template.remarks import Remark, RemarkKind

__all__ = ["Consequence", "Hazard", "HazardKind", "accept", "hazards_of", "two_deploys"]


def hazards_of(
    before: Sequence[ListedTable],
    after: Sequence[ListedTable],
    remarks: Sequence[Remark] = (),
    plans: Sequence[Mapping[str, Planned]] = (),
    absent: Sequence[ListedTable] = (),
    stacks: Collection[tuple[str, ...]] = (),
) -> tuple[Hazard, ...]:
    """Return the hazards of a change of an app from *before* to *after*, by table.

    Args:
        before: The tables of the app before the change.
        after: Its tables after the change.
        remarks: The remarks on the new app, of which those on a second scalable target are hazards.
        plans: The Terraform plans of the new app; by default those that the tables of the old app were read with.
        absent: The tables of the new app whose condition is false.
        stacks: The stacks of the new app, nested ones too, as far as an assembly names them.
    """
    second = [remark for remark in remarks if remark.kind is RemarkKind.TWO_TARGETS]
    plan = PlannedChanges(plans, after)
    hazards = []
    for old, new in _pairs(before, after, absent):
        is_gone = new is None or (new.logical_id is None and old is not None)
        table = old if is_gone else new
        assert table is not None  # noqa: S101 - a table is in one of the apps
        is_terraform = bool(table.dialect.words)
        found = [*(of_terraform(old, new, plan) if is_terraform else of_cloudformation(old, new, stacks))]
        for remark in second if new is not None else ():
            if table.name in remark.tables:
                consequence = Consequence.KEPT if is_terraform else Consequence.REFUSED
                what, _, fix = remark.text.rpartition("; ")
                found.append(TableHazard(HazardKind.TWO_TARGETS, consequence, what, fix))
        hazards += [Hazard(each.kind, table.name, table.stage, each.consequence, each.what, each.fix) for each in found]
    for address, each in plan.without_table(before):
        hazards.append(Hazard(each.kind, address, "", each.consequence, each.what, each.fix))
    return tuple(hazards)


def _pairs(
    before: Sequence[ListedTable], after: Sequence[ListedTable], absent: Sequence[ListedTable]
) -> Iterator[Pair]:
    """Yield the tables in pairs; one that is gone is paired with its declaration, if it has one with a condition."""
    others = {(each.stacks, each.deployed.region, each.logical_id): each for each in absent}
    for old, new in match_tables(before, after):
        key = None if old is None else (old.stacks, old.deployed.region, old.logical_id)
        yield (old, others.get(key) if new is None and key is not None else new)


def accept(hazards: Sequence[Hazard], keys: Sequence[str]) -> tuple[tuple[Hazard, ...], tuple[str, ...]]:
    """Return the hazards, those of *keys* as accepted, and the keys that fit none; a key is `removed=Shop/Orders`."""
    found = {each.key for each in hazards}
    return (
        tuple(replace(each, is_accepted=each.key in keys) for each in hazards),
        tuple(key for key in dict.fromkeys(keys) if key not in found),
    )
