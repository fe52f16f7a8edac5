"""The hazards of a change that CloudFormation deploys: what it replaces a table for, and what it refuses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from highwater.core import Dimension
from highwater_lab.template.deployed import Declaration, Deployed
from highwater_lab.template.guard.comparison import (
    changed_owners,
    changed_units,
    label,
    listed,
    lowered_marks,
    may_differ,
    units_text,
)
from highwater_lab.template.guard.hazard import Consequence, HazardKind, TableHazard
from highwater_lab.template.listed import ListedTable
from highwater_lab.template.matching import is_moved
from highwater_lab.template.open_values import OpenValues, parameters_between, worlds_of
from highwater_lab.template.replacements import GLOBAL_TABLE, NAME, REPLACED_FOR, TABLE
from highwater_lab.template.stacks import is_open

_KEEP: Final = "leave that as it is, or add a second table, and copy the data before this one is removed"
_GENERATED: Final = "one that CloudFormation generates"
_IMPORT: Final = "keep it with DeletionPolicy: Retain, remove it from the template, and import it"
_MOST_REPLICAS: Final = {False: 1, True: 3}


def two_deploys(old: str, new: str) -> tuple[str, str]:
    """Return the two deploys in which a table's scalable targets change their owner, from *old* to *new*."""
    # CloudFormation creates before it deletes, and ends with "table/orders|dynamodb:table:ReadCapacityUnits|dynamodb
    # already exists" where a target has another owner, of any stack or none (github.com/sbstjn/
    # serverless-dynamodb-autoscaling, issue 16; github.com/aws/aws-cdk, issue 15318; both read 2026-11)
    return (
        f"deploy 1, in a quiet hour: remove {old}. CloudFormation deletes the scalable targets. The capacity stays as "
        "it is, and nothing scales it until deploy 2",
        f"deploy 2, right after it: add {new}. CloudFormation registers the targets again, and floors are in effect "
        "when it ends. In one deploy it is refused: CloudFormation creates before it deletes, and AWS allows one "
        "target",
    )


def of_cloudformation(
    old: ListedTable | None, new: ListedTable | None, stacks: Collection[tuple[str, ...]] = ()
) -> Iterator[TableHazard]:
    """Yield the hazards of one table, which an app before and after a change declare; `None` where one does not.

    *stacks* are those of the app after the change, as far as an assembly names them.
    """
    if old is not None and old.stacks[0] and stacks and old.logical_id is not None:
        staying = _staying_stack(old, stacks)
        if staying and (new is None or not new.physical):
            yield _left_behind(new is not None, staying)
            return
    if old is not None and old.logical_id is not None and (new is None or new.logical_id is None):
        # its scalable targets may stay
        yield _removed(old.deployed)
    elif new is None:
        return
    elif old is None:
        yield from _unscaled_replica(None, new.deployed)
    elif old.declaration is None or new.declaration is None:
        yield from _changed(old, new, old.deployed, new.deployed)
    else:
        yield from _in_all_worlds(old, new, old.declaration, new.declaration)


def _in_all_worlds(
    old: ListedTable, new: ListedTable, before: Declaration, after: Declaration
) -> Iterator[TableHazard]:
    """Yield the hazards that hold for all values of open references; one that depends on them is unknown."""
    opened, closed = before.open_values(), after.open_values()
    worlds = worlds_of(opened, closed)
    is_same = before.reads_as(after)
    outcomes: list[list[TableHazard]] = []
    for world in worlds.each[: 1 if is_same else None]:
        if not before.exists(world.before):
            outcomes.append([])
        elif not after.exists(world.after):
            outcomes.append([_removed(before.read(world.before))])
        else:
            outcomes.append(list(_changed(old, new, before.read(world.before), after.read(world.after))))
    every = {(found.kind, found.consequence): found for outcome in reversed(outcomes) for found in outcome}
    uncertain, is_open_in_a_world = [], any(consequence is Consequence.UNKNOWN for _, consequence in every)
    for (kind, consequence), found in every.items():
        is_shared = all(any((each.kind, each.consequence) == (kind, consequence) for each in one) for one in outcomes)
        is_harmless = consequence is Consequence.KEPT and kind is not HazardKind.REPLACED
        if consequence is Consequence.UNKNOWN or not (is_shared or is_harmless):
            uncertain.append(found.subject or _SUBJECTS[kind])
        elif is_shared:
            yield from (each for each in outcomes[0] if (each.kind, each.consequence) == (kind, consequence))
        else:
            yield found
    if not (worlds.are_all or is_same or every):
        # not all values are tried
        uncertain.append("it is replaced or removed")
    if uncertain:
        parameters = parameters_between(opened, closed, are_all=is_open_in_a_world)
        yield _unknown(list(dict.fromkeys(uncertain)), opened, closed, parameters)


# the parts that a hazard changes, for one that depends on values
_SUBJECTS: Final = {
    HazardKind.REMOVED: "it is removed",
    HazardKind.REPLACED: "its name or keys change",
    HazardKind.MOVED: "its name changes",
    HazardKind.MARK_LOWERED: "its high-water mark is lowered",
    HazardKind.OWNER_CHANGED: "a scalable target changes its owner",
    HazardKind.INDEXES: "its indexes change",
    HazardKind.REPLICA: "its replicas change",
    HazardKind.CAPACITY: "its capacity changes",
}


def _unknown(subjects: Sequence[str], before: OpenValues, after: OpenValues, parameters: Sequence[str]) -> TableHazard:
    what = f"whether {' and '.join(subjects)} is not known: "
    if not parameters:
        return TableHazard(HazardKind.UNKNOWN, Consequence.UNKNOWN, f"{what}it depends on a value of the deployment")
    changed = [name for name in parameters if name in before.defaults and name in after.defaults]
    defaults = [f"{name} from {before.defaults[name]} to {after.defaults[name]}" for name in changed]
    if len(changed) == len(parameters):
        reason = f"the default of a parameter changes ({listed(defaults)}), and a stack may keep its value"
    else:
        reason = "it depends on a parameter without a value"
    given = " ".join(f"--parameter {name}=VALUE" for name in parameters)
    return TableHazard(HazardKind.UNKNOWN, Consequence.UNKNOWN, what + reason, f"give {given}")


def _staying_stack(old: ListedTable, stacks: Collection[tuple[str, ...]]) -> str:
    """Return the stack of a table that is not in the app any more, and that no deploy deletes; empty for none."""
    if not any(each[0] == old.stacks[0] for each in stacks):
        # AWS CDK Developer Guide, "cdk deploy": it deploys the stacks of the app, and `cdk destroy` deletes stacks
        return f"stack {old.stacks[0]}"
    if old.stacks in stacks or old.declaration is None:
        return ""
    for outer, nested in old.declaration.found.stack.parents:
        # CloudFormation Template Reference, "DeletionPolicy attribute", read 2026-11: it holds for a nested stack
        if str(outer.template.resource(nested).get("DeletionPolicy")).startswith("Retain"):
            return f"nested stack {nested}"
    return ""


def _left_behind(is_declared: bool, stack: str) -> TableHazard:
    rest = f"the old one stays, with its data, in {stack}, which leaves the app and which no deploy of it deletes"
    if is_declared:
        what = f"replaced by an empty table in another stack; {rest}"
        return TableHazard(HazardKind.REPLACED, Consequence.KEPT, what, _KEEP)
    return TableHazard(HazardKind.REMOVED, Consequence.KEPT, f"removed: {rest.removeprefix('the old one ')}")


def _removed(was: Deployed) -> TableHazard:
    # CloudFormation Template Reference, "DeletionPolicy attribute": by default tables are deleted; read 2026-11
    if was.on_removal.startswith("Retain"):
        what = (
            f"removed: by its DeletionPolicy, {was.on_removal}, it stays in the account, with its data, and is only no "
            "longer managed"
        )
        return TableHazard(HazardKind.REMOVED, Consequence.KEPT, what)
    keep = "to keep it, deploy it with DeletionPolicy: Retain before (in the CDK: RemovalPolicy.RETAIN)"
    if was.is_protected:
        # Amazon DynamoDB Developer Guide, "Using deletion protection", read 2026-11
        what = "removed, with deletion protection on: DynamoDB refuses to delete it"
        lose = f"{keep}; to lose it, turn the protection off before"
        return TableHazard(HazardKind.REMOVED, Consequence.REFUSED, what, lose)
    what = "removed: CloudFormation deletes it, with its data"
    return TableHazard(HazardKind.REMOVED, Consequence.DESTROYED, what, keep)


def _changed(old: ListedTable, new: ListedTable, was: Deployed, now: Deployed) -> Iterator[TableHazard]:
    """Yield the hazards of a table that both apps declare."""
    if old.logical_id is None or new.logical_id is None:
        lost: list[TableHazard] = []
    else:
        lost = list(_lost(old, new, was, now))
    yield from lost
    if any(found.consequence is not Consequence.UNKNOWN for found in lost):
        return
    yield from lowered_marks(was, now, new.dialect)
    yield from _indexes(was, now)
    yield from _owners(was, now)
    yield from _replicas(was, now)
    yield from _unscaled_replica(was, now)
    yield from _capacity(old, new, was, now)


def _lost(old: ListedTable, new: ListedTable, was: Deployed, now: Deployed) -> Iterator[TableHazard]:
    """Yield how a table is replaced, or why it cannot be."""
    elsewhere = _elsewhere(was, now)
    if elsewhere is not None:
        yield elsewhere
        return
    has_moved = is_moved(old, new)
    if was.kind != now.kind and not has_moved:
        # "You cannot convert a resource of type AWS::DynamoDB::Table into a resource of type AWS::DynamoDB::GlobalTable
        # by changing its type": CloudFormation Template Reference, AWS::DynamoDB::GlobalTable, read 2026-11
        yield TableHazard(
            HazardKind.REPLACED,
            Consequence.REFUSED,
            f"its type changes, from {was.kind} to {now.kind}: CloudFormation refuses to change the type of a "
            "resource, and deletes nothing",
            f"{_IMPORT} as {now.kind}, under another logical id",
        )
        return
    reasons, maybe = _reasons(was, now)
    name, other = was.fixed.get(NAME, ""), now.fixed.get(NAME, "")
    is_named = bool(other) and may_differ(name, other) is False
    if has_moved:
        before, after = (_place(each) for each in (old, new))
        if is_named:
            # CloudFormation User Guide, "Stack refactoring" and "Import AWS resources", read 2026-11: a refactoring
            # moves resources, and changes no type
            has_type = was.kind == now.kind
            import_it = "keep it with DeletionPolicy: Retain, and import it"
            fix = f"move it by a refactoring of the stacks (cdk refactor), or {import_it}" if has_type else import_it
            as_type = "" if has_type else f" as {now.kind}"
            yield TableHazard(
                HazardKind.MOVED,
                Consequence.REFUSED,
                f"moved from {before} to {after}{as_type}: CloudFormation creates before it deletes, and a table "
                f"{name} exists",
                f"{fix}{as_type}",
            )
            return
        if was.kind != now.kind:
            reasons.append(f"its type, from {was.kind} to {now.kind},")
        reasons.append(f"its logical id, from {before} to {after},")
    if reasons:
        subject = _may_change([each.partition(", from ")[0] for each in reasons])
        yield replace(_replaced(was, now, reasons, is_named=is_named, has_moved=has_moved), subject=subject)
    elif maybe:
        yield TableHazard(HazardKind.REPLACED, Consequence.UNKNOWN, "", subject=_may_change(maybe))


def _may_change(parts: Sequence[str]) -> str:
    is_plural = len(parts) > 1 or parts[0].endswith("indexes")
    return f"{' and '.join(parts)} {'change' if is_plural else 'changes'}"


def _place(table: ListedTable) -> str:
    return f"{table.logical_id} of {table.stacks[0]}" if table.stacks[0] else str(table.logical_id)


def _elsewhere(was: Deployed, now: Deployed) -> TableHazard | None:
    """Return that the stack of a table goes to another region or account than before."""
    places = [
        (old, new)
        for old, new in ((was.region, now.region), (was.account, now.account))
        if old is not None and new is not None and old != new
    ]
    if not places:
        return None
    before, after = (" of account ".join(names) for names in zip(*places, strict=True))
    what = (
        f"its stack goes to {after}, and was in {before}: CloudFormation creates an empty table there; the old one and "
        "its stack stay where they are, with the data"
    )
    fix = f"leave the stack in {before}, or copy the data, and remove the stack there later"
    return TableHazard(HazardKind.REPLACED, Consequence.KEPT, what, fix)


def _reasons(was: Deployed, now: Deployed) -> tuple[list[str], list[str]]:
    """Return in words the changes that replace a table, and those that replace it for some values only."""
    reasons, maybe = [], []
    words = REPLACED_FOR.get(now.kind or "", {})
    for each in words:
        before, after = was.fixed.get(each, ""), now.fixed.get(each, "")
        differs = may_differ(before, after)
        if each == NAME and differs:
            names = [text or _GENERATED for text in (before, after)]
            reasons.append(f"its name, from {names[0]} to {names[1]},")
        elif differs:
            reasons.append(words[each])
        elif differs is None:
            maybe.append(words[each])
    for name in sorted(was.types.keys() & now.types.keys()):
        differs = may_differ(was.types[name], now.types[name])
        if differs:
            reasons.append(f"the type of {name}")
        elif differs is None:
            maybe.append(f"the type of {name}")
    return reasons, maybe


def _replaced(was: Deployed, now: Deployed, reasons: Sequence[str], *, is_named: bool, has_moved: bool) -> TableHazard:
    why = f"{' and '.join(reasons)} {'changes' if len(reasons) == 1 else 'change'}"
    types = [each for each in reasons if each.startswith("the type of ")]
    if was.kind == GLOBAL_TABLE and types and len(types) == len(reasons):
        # the type of a key is no property that replaces a GlobalTable, and UpdateTable has no way to change one
        what = f"{why}: DynamoDB refuses to change the type of a key"
        return TableHazard(HazardKind.REPLACED, Consequence.REFUSED, what, _KEEP)
    if is_named:
        # "If you specify a name, you cannot perform updates that require replacement of this resource": CloudFormation
        # Template Reference, AWS::DynamoDB::Table, TableName, read 2026-11
        what = f"{why}, which replaces a table: CloudFormation refuses that for one with a name of its own"
        return TableHazard(HazardKind.REPLACED, Consequence.REFUSED, what, _KEEP)
    # CloudFormation Template Reference, "UpdateReplacePolicy attribute", read 2026-11; for another logical id it is the
    # deletion policy. The page does not say which template's policy counts, so both have to retain.
    policies = (was.on_removal,) if has_moved else (was.on_replacement, now.on_replacement)
    if all(each.startswith("Retain") for each in policies) or was.is_protected:
        rest = "the old one stays in the account, with its data, and is no longer managed"
        return TableHazard(
            HazardKind.REPLACED, Consequence.KEPT, f"replaced by an empty table, as {why}; {rest}", _KEEP
        )
    what = f"replaced by an empty table, as {why}: CloudFormation deletes the old one, with its data"
    return TableHazard(HazardKind.REPLACED, Consequence.DESTROYED, what, _KEEP)


def _indexes(was: Deployed, now: Deployed) -> Iterator[TableHazard]:
    """Yield the changes of indexes that need more than one update of the table, or that DynamoDB refuses."""
    # "You can only create or delete one global secondary index in a single stack operation", and "If you do both in the
    # same update [...], the update fails": CloudFormation Template Reference, AWS::DynamoDB::GlobalTable and
    # AWS::DynamoDB::Table, GlobalSecondaryIndexes, read 2026-11
    created = [name for name in now.indexes if name not in was.indexes]
    deleted = [name for name in was.indexes if name not in now.indexes]
    same = [
        (name, may_differ(was.indexes[name].keys, now.indexes[name].keys))
        for name in now.indexes
        if name in was.indexes
    ]
    other = [name for name, differs in same if differs]
    changes = [
        *(f"{name} is created" for name in created),
        *(f"{name} is deleted" for name in deleted),
        *(f"{name} has other keys or another projection" for name in other),
    ]
    if any(differs is None for _, differs in same) or (created and deleted and any(map(is_open, (*created, *deleted)))):
        yield TableHazard(HazardKind.INDEXES, Consequence.UNKNOWN, "")
    elif other or len(changes) > 1:
        fix = "deploy one of these changes after the other, each when the index before it is ACTIVE or gone"
        if other:
            fix += "; add an index with other keys under another name, and delete the old one later"
        yield TableHazard(
            HazardKind.INDEXES,
            Consequence.REFUSED,
            f"{listed(changes)}: CloudFormation refuses more than one index created or deleted in an update",
            fix,
        )
    elif created and now.kind == TABLE and was.replicas and not now.is_on_demand:
        # github.com/aws/aws-cdk, issue 19083: UpdateTable adds the index before its writes are scaled; a GlobalTable
        # takes index and scaling in one request (issue 23217); both read 2026-11-29
        yield TableHazard(
            HazardKind.INDEXES,
            Consequence.REFUSED,
            f"{created[0]} is created on a provisioned table with replicas: DynamoDB refuses an index whose writes are "
            "not auto scaled, and its scaling can be added only after it",
            "deploy 1: set BillingMode to PAY_PER_REQUEST, and add the index. Deploy 2: set it back to PROVISIONED, "
            "with auto scaling of the index. A GlobalTable (the CDK's TableV2) accepts the index at once",
        )


def _owners(was: Deployed, now: Deployed) -> Iterator[TableHazard]:
    """Yield the scalable targets that another resource owns than before."""
    changed = changed_owners(was, now)
    if changed is not None:
        targets, from_, to = changed
        what = (
            f"the scalable target of {targets} changes its owner, from {from_} to {to}: CloudFormation refuses the "
            "second owner"
        )
        yield TableHazard(HazardKind.OWNER_CHANGED, Consequence.REFUSED, what, ". ".join(two_deploys(from_, to)))


def _replicas(was: Deployed, now: Deployed) -> Iterator[TableHazard]:
    """Yield the replicas that are removed, or that cannot be added or removed in one update."""
    if was.region is None or now.region is None:
        # an app that was not bound to a region, or no longer is
        was, now = (_in_region(each, was.region or now.region) for each in (was, now))
    removed = [region for region in was.replicas if region not in now.replicas]
    added = [region for region in now.replicas if region not in was.replicas]
    if removed and added and any(map(is_open, (*removed, *added))):
        yield TableHazard(HazardKind.REPLICA, Consequence.UNKNOWN, "")
        return
    # "An existing replica to be deleted": DynamoDB API Reference, ReplicationGroupUpdate, read 2026-11
    lost = "DynamoDB deletes the table of that region with its items"
    home = [region for region in removed if region in (was.region, "${AWS::Region}")]
    is_global = now.kind == GLOBAL_TABLE
    if home and is_global:
        # "You cannot remove the replica in the stack region": CloudFormation Template Reference,
        # AWS::DynamoDB::GlobalTable, Replicas, read 2026-11-29
        what = f"the replica of the stack's region, {home[0]}, is removed: CloudFormation refuses that"
        fix = "keep it; to leave the region, import the table into a stack of another region"
        yield TableHazard(HazardKind.REPLICA, Consequence.REFUSED, what, fix)
        return
    most = _MOST_REPLICAS[now.is_strong]
    if is_global and was.replicas and len(removed) + len(added) > most:
        # "You can only add or remove a single replica in each update. For Multi-Region Strong Consistency (MRSC), you
        # can add or remove up to 3 replicas": the same page
        changes = [*(f"{region} is added" for region in added), *(f"{region} is removed" for region in removed)]
        what = (
            f"replicas: {listed(changes)}: CloudFormation refuses to add or remove more than "
            f"{'one replica' if most == 1 else f'{most} replicas'} in an update"
        )
        fix = "deploy one of these changes after the other"
        if removed:
            fix += f"; when a replica is removed, {lost}"
        yield TableHazard(HazardKind.REPLICA, Consequence.REFUSED, what, fix)
        return
    exchanged = [
        region
        for region, replica in now.replicas.items()
        if region in was.replicas and replica.source != was.replicas[region].source
    ]
    for region in (*removed, *exchanged):
        replica = was.replicas[region]
        how = (
            "is removed" if region in removed else f"is declared by {now.replicas[region].source}, not {replica.source}"
        )
        if replica.is_kept:
            what = f"replica {region} {how}: the table of that region stays, and is no longer managed"
            yield TableHazard(HazardKind.REPLICA, Consequence.KEPT, what)
        elif replica.is_protected:
            what = f"replica {region} {how}, with deletion protection on: DynamoDB refuses to delete it"
            yield TableHazard(
                HazardKind.REPLICA, Consequence.REFUSED, what, "keep the replica, or turn the protection off before"
            )
        else:
            fix = "keep the replica; remove it when nothing reads or writes in that region"
            yield TableHazard(HazardKind.REPLICA, Consequence.DESTROYED, f"replica {region} {how}: {lost}", fix)


def _in_region(table: Deployed, region: str | None) -> Deployed:
    own = "${AWS::Region}"
    replicas = {region if region and name == own else name: replica for name, replica in table.replicas.items()}
    return replace(table, replicas=replicas)


def _unscaled_replica(was: Deployed | None, now: Deployed) -> Iterator[TableHazard]:
    """Yield that DynamoDB refuses replicas of a provisioned table whose writes are not auto scaled."""
    # "Table write capacity should either be Pay-Per-Request or AutoScaled", and the same of each index: answers of
    # UpdateTable, recorded 2026-11. "If you use PROVISIONED billing mode, you must provide an auto scaling
    # configuration via the WriteProvisionedThroughputSettings property": AWS::DynamoDB::GlobalTable, read 2026-11
    parts, replicas = now.unscaled, now.replicas
    if len(replicas) < 2 or not parts:
        return
    if was is not None and replicas.keys() <= was.replicas.keys() and parts == was.unscaled:
        return
    what = (
        f"{len(replicas)} replicas, and the writes of {listed(parts)} are not auto scaled, which DynamoDB refuses for "
        "provisioned tables"
    )
    fix = "give them WriteCapacityAutoScalingSettings, or set BillingMode to PAY_PER_REQUEST"
    yield TableHazard(HazardKind.REPLICA, Consequence.REFUSED, what, fix)


def _capacity(old: ListedTable, new: ListedTable, was: Deployed, now: Deployed) -> Iterator[TableHazard]:
    """Yield that a deploy sets live capacity to the template's units, or that a failed one would."""
    changed = [each for each in changed_units(was, now) if each[0] in was.owners]
    if changed:
        until = "; Highwater sets the floors again before the deploy ends" if new.is_managed else ""
        yield TableHazard(
            HazardKind.CAPACITY,
            Consequence.KEPT,
            f"the units in the template change ({units_text(changed)}): CloudFormation sets the live capacity to them, "
            f"whatever auto scaling has made of it{until}",
            "leave the units in the template as they are",
        )
    is_scaled = old.setup is not None and old.setup.scaler is not None
    if old.is_managed and not was.is_on_demand and now.is_on_demand and not is_scaled and not new.is_managed:
        units = [
            f"{was.units.get((None, dimension), 1):,} {name}"
            for dimension, name in ((Dimension.READ, "read"), (Dimension.WRITE, "write"))
        ]
        indexes = ", and its indexes likewise" * bool(was.indexes)
        yield TableHazard(
            HazardKind.CAPACITY,
            Consequence.KEPT,
            f"switches to on demand: if this deploy fails, the {label(None)} is rolled back to {' and '.join(units)} "
            f"units{indexes}",
            f"after a failed deploy: highwater resume {old.physical or 'NAME'}",
        )
