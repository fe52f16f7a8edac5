"""The hazards of a change that Terraform or OpenTofu applies: the plan's actions decide, for old and new addresses.

Sources, read 2026-11-29: HashiCorp, "JSON Output Format" (actions, `previous_address`, `importing`); OpenTofu, the same
page; documentation and source of Terraform's AWS provider 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from highwater_lab.template.deployed import Deployed, Replica
from highwater_lab.template.document import Planned
from highwater_lab.template.guard.comparison import (
    changed_owners,
    changed_units,
    listed,
    lower_marks,
    lowered_marks,
    may_differ,
    units_text,
    unscaled,
)
from highwater_lab.template.guard.hazard import Consequence, HazardKind, TableHazard
from highwater_lab.template.listed import ListedTable
from highwater_lab.template.matching import is_moved
from highwater_lab.template.replacements import NAME, REPLACED_FOR
from highwater_lab.template.terraform import REPLICA, TABLE

_KEEP: Final = "leave that as it is, or add a second table, and copy the data before this one is removed"
_REMOVED_BLOCK: Final = "give it a removed block with destroy = false"
# "An existing replica to be deleted": DynamoDB API Reference, ReplicationGroupUpdate, read 2026-11
_LOST_REPLICA: Final = "DynamoDB deletes the table of that region with its items"
_KEEP_REPLICA: Final = "keep the replica; remove it when nothing reads or writes in that region"
_STAYS: Final = "it stays in the account, with its data, and is only no longer managed"


class PlannedChanges:
    """The plan or plans of a change."""

    def __init__(self, plans: Sequence[Mapping[str, Planned]], after: Sequence[ListedTable]) -> None:
        """Take the changes of each plan by address, and the tables after the change."""
        self._plans = plans
        self._after = after

    def of(self, address: str, own: Planned | None) -> Planned | None:
        """Return the change at an address; *own* is the one that it was read with, for several plans or none."""
        found = [plan[address] for plan in self._plans if address in plan]
        if len(found) == 1:
            return found[0]
        return own if own in found or not self._plans else None

    def created(self, old: ListedTable) -> ListedTable | None:
        """Return the table of the same name and region that the plan creates at another address."""
        for table in self._after:
            planned = table.deployed.planned
            is_created = planned is not None and "create" in planned.actions
            if is_created and old.physical == table.physical and _is_name_taken(old, table):
                return table
        return None

    def is_deleted(self, address: str) -> bool | None:
        """Return whether the plan deletes what is at an address, and creates nothing there; `None` if it has none."""
        planned = self.of(address, None)
        return None if planned is None else "delete" in planned.actions and "create" not in planned.actions

    def without_table(self, before: Sequence[ListedTable]) -> Iterator[tuple[str, TableHazard]]:
        """Yield by address the hazards of resources of no table *before*: deposed tables, replicas of other states."""
        sources = {replica.source for table in before for replica in table.deployed.replicas.values()}
        for plan in self._plans:
            for address, planned in plan.items():
                if planned.actions != ("delete",):
                    continue
                if planned.kind == REPLICA and address not in sources:
                    what = f"is removed: {_LOST_REPLICA}"
                    yield address, TableHazard(HazardKind.REPLICA, Consequence.DESTROYED, what, _KEEP_REPLICA)
                elif planned.kind == TABLE and planned.is_deposed:
                    # a replacement that created the new table, and did not come to delete the old one
                    what = "removed: Terraform deletes the table that an earlier apply replaced, with its data"
                    fix = "to keep it, take it out of the state (terraform state rm)"
                    yield address, TableHazard(HazardKind.REMOVED, Consequence.DESTROYED, what, fix)


def _is_name_taken(old: ListedTable, new: ListedTable) -> bool:
    """Return whether a second table of one name would be in one region; a region that is not known is the same."""
    regions = {old.deployed.region, new.deployed.region} - {None}
    return old.physical is not None and old.physical == new.physical and len(regions) < 2


def of_terraform(old: ListedTable | None, new: ListedTable | None, plan: PlannedChanges) -> Iterator[TableHazard]:
    """Yield the hazards of one table, which a plan or state before and after has; `None` where it has not."""
    if old is not None and old.logical_id is not None and (new is None or new.logical_id is None):
        yield from _removed(old, plan)
    if new is None:
        return
    lost = None if old is None or old.logical_id is None or new.logical_id is None else _lost(old, new)
    if lost is not None:
        yield lost
    elif old is not None and new.logical_id is not None:
        yield from lowered_marks(old.deployed, new.deployed, new.dialect)
        yield from _indexes(old.deployed, new.deployed, plan)
        yield from _owners(old.deployed, new.deployed, plan)
        yield from _removed_replicas(old.deployed, new.deployed, plan)
        yield from _units(old.deployed, new.deployed, plan)
        yield from _added_indexes(old, new)
    yield from _added_replicas(old, new)


def _removed(old: ListedTable, plan: PlannedChanges) -> Iterator[TableHazard]:
    planned, created = plan.of(str(old.logical_id), old.deployed.planned), plan.created(old)
    if planned is not None and "forget" in planned.actions:
        if created is None:
            what = f"removed from the state: {_STAYS}"
            yield TableHazard(HazardKind.REMOVED, Consequence.KEPT, what)
            own = {region: replica for region, replica in old.deployed.replicas.items() if replica.source}
            yield from _removed_replicas(replace(old.deployed, replicas=own), Deployed(), plan)
        else:
            yield TableHazard(
                HazardKind.REMOVED,
                Consequence.REFUSED,
                f"removed from the state, and created at {created.logical_id}: a table {old.physical} exists, and AWS "
                "refuses a second one",
                f"add a moved block from {old.logical_id} to {created.logical_id}, or an import block for the latter",
            )
        return
    if planned is not None and "delete" not in planned.actions:
        return
    what = "removed: Terraform deletes it, with its data"
    keep = f"to keep it, {_REMOVED_BLOCK}"
    if created is not None:
        what += f"; {created.logical_id} creates another, empty table {old.physical}"
        keep = f"to keep it, add a moved block from {old.logical_id} to {created.logical_id}"
    if old.deployed.is_protected:
        # Amazon DynamoDB Developer Guide, "Using deletion protection", read 2026-11
        what = "removed, with deletion protection on: DynamoDB refuses to delete it, and the apply fails"
        lose = f"{keep}; to lose it, turn the protection off before"
        yield TableHazard(HazardKind.REMOVED, Consequence.REFUSED, what, lose)
        return
    if planned is None:
        what += ", or only forgets it, which two states do not tell apart"
    yield TableHazard(HazardKind.REMOVED, Consequence.DESTROYED, what, keep)


def _lost(old: ListedTable, new: ListedTable) -> TableHazard | None:
    """Return how a table is replaced, or cannot be because its name is taken; `None` if it stays."""
    was, planned = old.deployed, new.deployed.planned
    if planned is None:
        return _between_states(old, new)
    if not planned.is_replacement:
        return None
    why = ", ".join(planned.paths) or "the plan says so"
    fix = _KEEP
    if any(path.startswith("warm_throughput") for path in planned.paths):
        # provider versions before that of pull request 49032 of hashicorp/terraform-provider-aws (merged 2026-07)
        fix = "leave warm_throughput as it is, or have its changes ignored (lifecycle, ignore_changes)"
    what = f"replaced by an empty table ({why})"
    is_taken = _is_name_taken(old, new)
    if "forget" in planned.actions:
        if is_taken:
            what += f": Terraform forgets the old one, and AWS refuses a second table {new.physical}"
            return TableHazard(HazardKind.REPLACED, Consequence.REFUSED, what, fix)
        what += ": Terraform forgets the old one; it stays in the account, with its data, and is no longer managed"
        return TableHazard(HazardKind.REPLACED, Consequence.KEPT, what, fix)
    if was.is_protected:
        what += ": DynamoDB refuses to delete the old one, whose deletion protection is on"
        return TableHazard(HazardKind.REPLACED, Consequence.REFUSED, what, fix)
    if planned.actions[0] == "create" and is_taken:
        what += f": Terraform creates before it deletes here, and a table {new.physical} exists"
        return TableHazard(HazardKind.REPLACED, Consequence.REFUSED, what, fix)
    return TableHazard(
        HazardKind.REPLACED, Consequence.DESTROYED, f"{what}: Terraform deletes the old one, with its data", fix
    )


def _between_states(old: ListedTable, new: ListedTable) -> TableHazard | None:
    """Return the hazard of a table in two states, or in plans without changes, which have no actions."""
    was, now = old.deployed, new.deployed
    if is_moved(old, new):
        what = (
            f"its address was {old.logical_id}: whether the table was moved, or deleted and made again, two states do "
            "not say"
        )
        fix = "compare with a plan: terraform show -json of the plan, with --against prior"
        return TableHazard(HazardKind.UNKNOWN, Consequence.UNKNOWN, what, fix)
    names = (was.fixed.get(NAME, ""), now.fixed.get(NAME, ""))
    # a state has its keys, and a plan those that are known before it is applied
    shared = was.fixed.keys() & now.fixed.keys() - {NAME}
    words = REPLACED_FOR.get(now.kind or "", {})
    reasons = [words[each] for each in words if each in shared and may_differ(was.fixed[each], now.fixed[each])]
    if all(names) and names[0] != names[1]:
        reasons.insert(0, f"its name, from {names[0]} to {names[1]}")
    if not reasons:
        return None
    what = f"replaced by an empty table ({', and '.join(reasons)})"
    if was.is_protected:
        what += ": DynamoDB refuses to delete the old one, whose deletion protection is on"
        return TableHazard(HazardKind.REPLACED, Consequence.REFUSED, what, _KEEP)
    return TableHazard(
        HazardKind.REPLACED, Consequence.DESTROYED, f"{what}: Terraform deletes the old one, with its data", _KEEP
    )


def _indexes(was: Deployed, now: Deployed, plan: PlannedChanges) -> Iterator[TableHazard]:
    """Yield the indexes that Terraform deletes and builds again under their names."""
    # The provider's update of a table deletes an index whose keys or projection differ, and creates it again
    # (updateDiffGSI in internal/service/dynamodb/table.go); `replace_paths` has no index
    rebuilt = []
    for name, index in now.indexes.items():
        old = was.indexes.get(name)
        if old is None:
            continue
        planned = plan.of(index.source, index.planned) if index.source else None
        if planned is not None:
            is_new = planned.actions == ("create",) and not planned.is_imported and planned.previous is None
            is_rebuilt = planned.is_replacement or is_new
        elif old.source and not index.source and plan.is_deleted(old.source):
            is_rebuilt = True
        else:
            types = [each for each in index.attributes if each in was.types and each in now.types]
            has_other_types = any(may_differ(was.types[each], now.types[each]) for each in types)
            is_lower = bool(lower_marks(was, now, name))
            is_rebuilt = bool(may_differ(old.keys, index.keys)) or has_other_types or is_lower
        if is_rebuilt:
            rebuilt.append(name)
    if rebuilt:
        noun, them = ("index", "it") if len(rebuilt) == 1 else ("indexes", "them")
        yield TableHazard(
            HazardKind.INDEXES,
            Consequence.INTERRUPTED,
            f"{noun} {listed(rebuilt)}: Terraform deletes {them} and builds {them} again with its other keys, "
            "projection or warm throughput; queries fail meanwhile",
            "add an index under another name, and delete the old one when nothing queries it",
        )


def _added_indexes(old: ListedTable, new: ListedTable) -> Iterator[TableHazard]:
    """Yield that an index is new on a provisioned table with replicas: its scaling can come only after it."""
    was, now = old.deployed, new.deployed
    created = [name for name in now.indexes if name not in was.indexes]
    is_on_demand = new.setup is None or new.setup.is_on_demand
    if not created or is_on_demand or min(len(was.replicas), len(now.replicas)) < 2 or unscaled(new):
        return
    # "Table write capacity should either be Pay-Per-Request or AutoScaled", and the same of each index: answers of
    # UpdateTable, recorded 2026-11; the provider creates the index with the table, and its target after both
    mode = new.dialect.word("BillingMode")
    yield TableHazard(
        HazardKind.INDEXES,
        Consequence.REFUSED,
        f"index {listed(created)} is created on a provisioned table with replicas by the apply that adds its auto "
        "scaling: the index comes first, and DynamoDB refuses one whose writes are not auto scaled",
        f"apply 1: set {mode} to PAY_PER_REQUEST, and add the index. Apply 2: set it back to PROVISIONED, with auto "
        "scaling of the index",
    )


def _owners(was: Deployed, now: Deployed, plan: PlannedChanges) -> Iterator[TableHazard]:
    """Yield the scalable targets whose owner changes, or of whose owners the plan deletes one."""
    changed = changed_owners(was, now, plan.is_deleted)
    if changed is not None:
        targets, from_, to = changed
        # Application Auto Scaling API Reference, RegisterScalableTarget: it updates a target that is registered; read
        # 2026-11. Terraform orders resources by their references, and these two have none.
        what = (
            f"the scalable target of {targets} changes its owner, from {from_} to {to}: both are one target in AWS, "
            "and Terraform deletes it with the old address"
        )
        fix = "add a moved block, so that it stays registered"
        yield TableHazard(HazardKind.OWNER_CHANGED, Consequence.DESTROYED, what, fix)


def _removed_replicas(was: Deployed, now: Deployed, plan: PlannedChanges) -> Iterator[TableHazard]:
    """Yield the replicas that the plan deletes: blocks of the table, and resources of their own."""
    for region, replica in was.replicas.items():
        how = _removal(region, replica, now, plan)
        if not how or _is_home(region, was):
            continue
        what = f"replica {region} {how}"
        if how.startswith("is removed from the state"):
            yield TableHazard(HazardKind.REPLICA, Consequence.KEPT, f"{what}: {_STAYS}")
        elif replica.is_protected:
            what += ", with deletion protection on: DynamoDB refuses to delete it"
            yield TableHazard(
                HazardKind.REPLICA, Consequence.REFUSED, what, "keep it, or turn the protection off before"
            )
        else:
            what += f": {_LOST_REPLICA}"
            yield TableHazard(HazardKind.REPLICA, Consequence.DESTROYED, what, _KEEP_REPLICA)


def _is_home(region: str, table: Deployed) -> bool:
    """Return whether a replica is the table itself, in its own region."""
    return region in (table.region, "${AWS::Region}")


def _removal(region: str, replica: Replica, now: Deployed, plan: PlannedChanges) -> str:
    """Return how a replica is removed; empty if it stays."""
    other = now.replicas.get(region)
    if not replica.source:
        # own replicas are in the plan with actions, and blocks are compared
        if other is None:
            return "is removed"
        if not other.source and _is_made_again(replica, other):
            return "is deleted and created again"
        is_made = other.planned is not None and "create" in other.planned.actions and not other.planned.is_imported
        return f"is removed from the table, and created by {other.source}" if other.source and is_made else ""
    planned = plan.of(replica.source, replica.planned)
    if planned is None:
        return "" if other is not None else "is removed"
    if planned.is_replacement:
        return "is deleted and created again" if "delete" in planned.actions else "is removed from the state"
    if "delete" in planned.actions:
        return "is removed"
    return "is removed from the state" if "forget" in planned.actions and other is None else ""


def _is_made_again(was: Replica, now: Replica) -> bool:
    """Return whether the provider deletes a block's replica and creates another, which it does for these two alone."""
    # updateReplica in internal/service/dynamodb/table.go of the provider, read 2026-11-29. A key that is not declared
    # is the one that the replica has; states of older versions have no consistency mode.
    has_key = bool(now.kms_key) and may_differ(was.kms_key, now.kms_key) is True
    has_mode = bool(was.consistency and now.consistency) and may_differ(was.consistency, now.consistency) is True
    return has_key or has_mode


def _added_replicas(old: ListedTable | None, new: ListedTable) -> Iterator[TableHazard]:
    """Yield that a replica is new where the writes of a provisioned table are not auto scaled before it."""
    replicas = {region for region in new.deployed.replicas if not _is_home(region, new.deployed)}
    before = set() if old is None else old.deployed.replicas.keys()
    parts = unscaled(new)
    if len(new.deployed.replicas) < 2:
        return
    # "Table write capacity should either be Pay-Per-Request or AutoScaled", and the same of each index: answers of
    # UpdateTable, recorded 2026-11
    refused = "which DynamoDB refuses for provisioned tables"
    mode = f"or set {new.dialect.word('BillingMode')} to PAY_PER_REQUEST"
    if parts:
        if old is None or not (replicas <= before and parts == unscaled(old)):
            number = len(new.deployed.replicas)
            what = f"{number} replicas, and the writes of {listed(parts)} are not auto scaled, {refused}"
            fix = f"give them an aws_appautoscaling_target with a target tracking policy before the replica, {mode}"
            yield TableHazard(HazardKind.REPLICA, Consequence.REFUSED, what, fix)
        return
    # blocks are part of the table, which comes before its targets (github.com/terraform-aws-modules/
    # terraform-aws-dynamodb-table, issue 109, read 2026-11-29)
    added = sorted(region for region in replicas - before if not new.deployed.replicas[region].source)
    late = _all_parts(new) if old is None else [each for each in unscaled(old) if each in _all_parts(new)]
    if added and late and not (new.setup is None or new.setup.is_on_demand):
        what = f"replica {listed(added)} is added by the apply that adds auto scaling of the writes of {listed(late)}"
        yield TableHazard(
            HazardKind.REPLICA,
            Consequence.REFUSED,
            f"{what}: the table comes first, and DynamoDB refuses a replica of a provisioned table whose writes are "
            "not auto scaled",
            f"apply twice: first the target and its policy, then the replica, {mode}",
        )


def _all_parts(table: ListedTable) -> list[str]:
    return [] if table.setup is None else [each.label for each in table.setup.resources]


def _units(was: Deployed, now: Deployed, plan: PlannedChanges) -> Iterator[TableHazard]:
    """Yield that an apply sets scaled capacity to the plan's units."""
    own = {name: plan.of(index.source, index.planned) for name, index in now.indexes.items() if index.source}
    changed = [
        each
        for each in changed_units(was, now)
        if (planned := own.get(each[0][0] or "", now.planned)) is not None and "update" in planned.actions
    ]
    if not changed:
        return
    is_lower = any(after < before for _, before, after in changed)
    effect = "requests are throttled until it has scaled out again, and it costs one of the day's decreases"
    what = (
        f"the apply sets scaled capacity to the units of the configuration ({units_text(changed)})"
        f"{f': {effect}' if is_lower else ', whatever auto scaling has made of it'}"
    )
    fix = "ignore changes of read_capacity and write_capacity (lifecycle, ignore_changes)"
    yield TableHazard(HazardKind.CAPACITY, Consequence.INTERRUPTED if is_lower else Consequence.KEPT, what, fix)
