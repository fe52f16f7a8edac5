"""What AWS refuses when a change is deployed, and what it destroys: the guard of a pull request.

Each rule has its source beside it. What cannot be read is no hazard: the reader of tables says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from highwater.core import Dimension
from highwater_lab.template.deployed import Target
from highwater_lab.template.listed import ListedTable
from highwater_lab.template.matching import is_moved, match_tables
from highwater_lab.template.remarks import Remark, RemarkKind

_MOST_LISTED: Final = 3


class HazardKind(StrEnum):
    """What a hazard is of."""

    REMOVED = "removed"
    REPLACED = "replaced"
    MOVED = "moved"
    MARK_LOWERED = "mark-lowered"
    TWO_TARGETS = "two-targets"
    OWNER_CHANGED = "owner-changed"
    INDEXES = "indexes"
    REPLICA = "replica"


class Consequence(StrEnum):
    """What comes of it: AWS refuses the deploy, a table or a target is lost, or nothing is."""

    REFUSED = "refused"
    DESTROYED = "destroyed"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something that goes wrong, or is lost, when a change is deployed.

    Attributes:
        kind: What it is of.
        table: The table's name in reports.
        stage: The table's stage, empty for none.
        consequence: What comes of it.
        what: What happens, in words.
        fix: What to do instead; empty if there is nothing to do.
    """

    kind: HazardKind
    table: str
    stage: str
    consequence: Consequence
    what: str
    fix: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether it ends a comparison with status 1: all but what keeps each table, with its data, in use."""
        return self.kind is HazardKind.REPLACED or self.consequence is not Consequence.KEPT

    @property
    def text(self) -> str:
        """The whole hazard on one line."""
        return f"{self.table}: {self.what}{f'; {self.fix}' if self.fix else ''}"


_Found: TypeAlias = Iterator[tuple[HazardKind, Consequence, str, str]]


def two_deploys(old: str, new: str) -> tuple[str, str]:
    """Return the two deploys in which a table's scalable targets change their owner, from *old* to *new*."""
    # CloudFormation creates before it deletes, and ends with "table/orders|dynamodb:table:ReadCapacityUnits|dynamodb
    # already exists" where a target has another owner, of any stack or none (github.com/sbstjn/
    # serverless-dynamodb-autoscaling, issue 16; github.com/aws/aws-cdk, issue 15318; both read 2026-11)
    return (
        f"deploy 1, in a quiet hour: remove {old}. CloudFormation deletes the scalable targets. The capacity stays as "
        "it is, and nothing scales it until deploy 2",
        f"deploy 2, right after it: add {new}. CloudFormation registers the targets anew, and floors are at work when "
        "it ends. In one deploy it is refused: CloudFormation creates before it deletes, and AWS allows one target",
    )


def hazards_of(
    before: Sequence[ListedTable], after: Sequence[ListedTable], remarks: Sequence[Remark] = ()
) -> tuple[Hazard, ...]:
    """Return what AWS refuses or destroys when an app is changed from *before* to *after*, by table.

    Of the *remarks* on the new app it is those on a second scalable target.
    """
    second = [remark for remark in remarks if remark.kind is RemarkKind.TWO_TARGETS]
    hazards = []
    for old, new in match_tables(before, after):
        table = new or old
        assert table is not None  # noqa: S101 - a table is in one of the apps
        for kind, consequence, what, fix in _hazards(old, new):
            hazards.append(Hazard(kind, table.name, table.stage, consequence, what, fix))
        for remark in second if new is not None else ():
            if table.name in remark.tables:
                consequence = Consequence.KEPT if _is_terraform(table) else Consequence.REFUSED
                what, _, fix = remark.text.rpartition("; ")
                hazards.append(Hazard(HazardKind.TWO_TARGETS, table.name, table.stage, consequence, what, fix))
    return tuple(hazards)


def _hazards(old: ListedTable | None, new: ListedTable | None) -> _Found:
    if new is None:
        if old is not None and old.logical_id is not None:
            yield _removed(old)
        return
    lost = None if old is None else _lost(old, new)
    if lost is not None:
        yield lost
    elif old is not None:
        yield from _lowered(old, new)
        yield from _indexes(old, new)
        yield from _owner_changed(old, new)
    yield from _replica(old, new)


def _is_terraform(table: ListedTable) -> bool:
    return bool(table.dialect.words)


def _removed(old: ListedTable) -> tuple[HazardKind, Consequence, str, str]:
    # CloudFormation Template Reference, "DeletionPolicy attribute", by which tables are deleted by default; HashiCorp,
    # "Remove resources from state" and "JSON Output Format"; both read 2026-11
    seen, is_terraform = old.deployed, _is_terraform(old)
    kept = "it stays in the account, with its data, and is only no longer managed"
    if is_terraform and seen.planned is not None and "forget" in seen.planned.actions:
        return HazardKind.REMOVED, Consequence.KEPT, f"removed from the state: {kept}", ""
    if not is_terraform and seen.on_removal.startswith("Retain"):
        what = f"removed: by its DeletionPolicy, {seen.on_removal}, {kept}"
        return HazardKind.REMOVED, Consequence.KEPT, what, ""
    keep = (
        "to keep it, give it a removed block with destroy = false"
        if is_terraform
        else "to keep it, deploy it with DeletionPolicy: Retain before (in the CDK: RemovalPolicy.RETAIN)"
    )
    if seen.is_protected:
        # Amazon DynamoDB Developer Guide, "Using deletion protection", read 2026-11
        what = "removed, with deletion protection on: DynamoDB refuses to delete it"
        return HazardKind.REMOVED, Consequence.REFUSED, what, f"{keep}; to lose it, turn the protection off before"
    who = "Terraform" if is_terraform else "CloudFormation"
    return HazardKind.REMOVED, Consequence.DESTROYED, f"removed: {who} deletes it, with its data", keep


def _lost(old: ListedTable, new: ListedTable) -> tuple[HazardKind, Consequence, str, str] | None:
    """Return how a table is replaced, or cannot be because its name is taken; `None` if it stays."""
    if old.logical_id is None or new.logical_id is None:
        return None
    return _replaced_by_terraform(old, new) if _is_terraform(new) else _replaced_by_cloudformation(old, new)


def _reasons(old: ListedTable, new: ListedTable) -> list[str]:
    """Return what of a table cannot be changed and is."""
    was, now = old.deployed, new.deployed
    reasons = []
    if (names := _names(old, new)) and names[0] != names[1]:
        reasons.append(f"its name, from {names[0]} to {names[1]},")
    if was.kind != now.kind and not _is_terraform(new):
        # "You cannot convert a resource of type AWS::DynamoDB::Table into a resource of type AWS::DynamoDB::GlobalTable
        # by changing its type": CloudFormation Template Reference, AWS::DynamoDB::GlobalTable, read 2026-11
        return [*reasons, f"its type, from {was.kind} to {now.kind},"]
    # a state has its keys, and a plan those that are known before it is applied
    words = was.fixed.keys() & now.fixed.keys() if _is_terraform(new) else was.fixed.keys() | now.fixed.keys()
    reasons += [each for each in sorted(words) if was.fixed.get(each) != now.fixed.get(each)]
    if now.kind == "AWS::DynamoDB::Table" and not _is_terraform(new):
        # "Replacement if you edit an existing AttributeDefinition": the same reference, AWS::DynamoDB::Table
        both = sorted(was.types.keys() & now.types.keys())
        reasons += [f"the type of {name.strip(chr(34))}" for name in both if was.types[name] != now.types[name]]
    return reasons


def _names(old: ListedTable, new: ListedTable) -> tuple[str, str]:
    names = tuple(each.physical or each.open_name or "one that CloudFormation generates" for each in (old, new))
    if _is_terraform(new) and not (old.physical and new.physical):
        return "", ""
    return names[0], names[1]


def _replaced_by_cloudformation(old: ListedTable, new: ListedTable) -> tuple[HazardKind, Consequence, str, str] | None:
    names = _names(old, new)
    is_named = bool(new.physical or new.open_name) and names[0] == names[1]
    reasons = _reasons(old, new)
    if is_moved(old, new):
        where = [f"{each.logical_id} of {each.stacks[0]}" if each.stacks[0] else each.logical_id for each in (old, new)]
        if is_named:
            # CloudFormation User Guide, "Stack refactoring" and "Import AWS resources", read 2026-11
            return (
                HazardKind.MOVED,
                Consequence.REFUSED,
                f"moved from {where[0]} to {where[1]}: CloudFormation creates before it deletes, and a table "
                f"{names[0]} exists",
                "move it by a refactoring of the stacks (cdk refactor), or keep it with DeletionPolicy: Retain, and "
                "import it",
            )
        reasons.append(f"its logical id, from {where[0]} to {where[1]},")
    if not reasons:
        return None
    why = f"{' and '.join(reasons)} {'changes' if len(reasons) == 1 else 'change'}"
    fix = "leave that as it is, or add a second table, and copy the data before this one is removed"
    if is_named:
        # "If you specify a name, you cannot perform updates that require replacement of this resource": CloudFormation
        # Template Reference, AWS::DynamoDB::Table, TableName, read 2026-11
        what = f"{why}, which replaces a table: CloudFormation refuses that for one with a name of its own"
        return HazardKind.REPLACED, Consequence.REFUSED, what, fix
    # CloudFormation Template Reference, "UpdateReplacePolicy attribute", read 2026-11; for another logical id it is the
    # deletion policy
    policy = old.deployed.on_removal if is_moved(old, new) else old.deployed.on_replacement
    if policy.startswith("Retain") or old.deployed.is_protected:
        rest = "the old one stays in the account, with its data, and is no longer managed"
        return HazardKind.REPLACED, Consequence.KEPT, f"replaced by an empty table, as {why}; {rest}", fix
    what = f"replaced by an empty table, as {why}: CloudFormation deletes the old one, with its data"
    return HazardKind.REPLACED, Consequence.DESTROYED, what, fix


def _replaced_by_terraform(old: ListedTable, new: ListedTable) -> tuple[HazardKind, Consequence, str, str] | None:
    planned = new.deployed.planned
    is_first_created = False
    if planned is None:
        # states are compared, or plans without changes
        why = " and ".join(_reasons(old, new))
    elif {"delete", "create"} <= set(planned.actions):
        is_first_created = planned.actions[0] == "create"
        why = ", ".join(planned.paths) or "the plan says so"
    else:
        why = ""
    if not why:
        return None
    fix = "leave that as it is, or add a second table, and copy the data before this one is removed"
    if planned is not None and any(path.startswith("warm_throughput") for path in planned.paths):
        # provider versions before that of pull request 49032 of hashicorp/terraform-provider-aws (merged 2026-07)
        fix = "leave warm_throughput as it is, or have its changes ignored (lifecycle, ignore_changes)"
    what = f"replaced by an empty table ({why.rstrip(',')})"
    if old.deployed.is_protected:
        what += ": DynamoDB refuses to delete the old one, whose deletion protection is on"
        return HazardKind.REPLACED, Consequence.REFUSED, what, fix
    if is_first_created and old.physical is not None and old.physical == new.physical:
        what += f": Terraform creates before it deletes here, and a table {new.physical} exists"
        return HazardKind.REPLACED, Consequence.REFUSED, what, fix
    return HazardKind.REPLACED, Consequence.DESTROYED, f"{what}: Terraform deletes the old one, with its data", fix


def _lowered(old: ListedTable, new: ListedTable) -> _Found:
    """Yield the lowered high-water marks that the table itself declares; Highwater's own resource lowers none."""
    # "decreasing WarmThroughput is not supported", ValidationException of UpdateTable (aws-controllers-k8s/
    # dynamodb-controller, docs/api-quirks, measured 2026-10); Amazon DynamoDB Developer Guide, "Warm throughput"
    lower = []
    for index, now in new.deployed.marks.items():
        was = old.deployed.marks.get(index)
        if was is None:
            continue
        for name, before, after in (("reads", was.read, now.read), ("writes", was.write, now.write)):
            if 0 < after < before:
                lower.append(f"{_label(index)} from {before:,} to {after:,} {name}")
    if lower:
        yield (
            HazardKind.MARK_LOWERED,
            Consequence.REFUSED,
            f"high-water mark lowered ({_listed(lower)}): DynamoDB refuses to lower warm throughput",
            f"declare no less than before, or no {new.dialect.word('WarmThroughput')} at all",
        )


def _indexes(old: ListedTable, new: ListedTable) -> _Found:
    """Yield the changes of indexes that need more than one update of the table."""
    # "You can only create or delete one global secondary index in a single stack operation", and "If you do both in the
    # same update [...], the update fails": CloudFormation Template Reference, AWS::DynamoDB::GlobalTable and
    # AWS::DynamoDB::Table, GlobalSecondaryIndexes, read 2026-11. Terraform's provider makes one request after another.
    if _is_terraform(new):
        return
    was, now = old.deployed.indexes, new.deployed.indexes
    same = [name for name in now if name in was]
    changes = [
        *(f"{name} is created" for name in now if name not in was),
        *(f"{name} is deleted" for name in was if name not in now),
        *(f"{name} has other keys or another projection" for name in same if was[name] != now[name]),
    ]
    # other keys are another index
    has_other = any(was[name] != now[name] for name in same)
    if len(changes) < 2 and not has_other:
        return
    fix = "deploy one of these changes after the other, each when the index before it is ACTIVE or gone"
    if has_other:
        fix += "; add an index with other keys under another name, and delete the old one later"
    yield (
        HazardKind.INDEXES,
        Consequence.REFUSED,
        f"{_listed(changes)}: CloudFormation refuses more than one index created or deleted in an update",
        fix,
    )


def _owner_changed(old: ListedTable, new: ListedTable) -> _Found:
    """Yield the scalable targets that another resource owns than before."""
    moved: list[tuple[Target, str, str]] = []
    for target, owners in new.deployed.owners.items():
        was = [each.name for each in old.deployed.owners.get(target, ())]
        if was and not set(was) & {each.previous for each in owners}:
            moved.append((target, was[0], owners[0].name))
    if not moved:
        return
    from_, to = (
        _listed(list(dict.fromkeys(names))) for names in ([each[1] for each in moved], [each[2] for each in moved])
    )
    targets = _listed([_target_label(target) for target, _, _ in moved])
    what = f"the scalable target of {targets} changes its owner, from {from_} to {to}"
    if _is_terraform(new):
        # Application Auto Scaling API Reference, RegisterScalableTarget: it updates a target that is registered; read
        # 2026-11. Terraform orders resources by their references, and these two have none.
        what += ": both are one target in AWS, and Terraform deletes it with the old address"
        yield HazardKind.OWNER_CHANGED, Consequence.DESTROYED, what, "add a moved block, so that it stays registered"
        return
    what += ": CloudFormation refuses the second owner"
    yield HazardKind.OWNER_CHANGED, Consequence.REFUSED, what, ". ".join(two_deploys(from_, to))


def _replica(old: ListedTable | None, new: ListedTable) -> _Found:
    """Yield that a replica is new, or writes are newly without auto scaling, where they need it."""
    # "Table write capacity should either be Pay-Per-Request or AutoScaled", and the same of each index: answers of
    # UpdateTable, recorded 2026-11. "If you use PROVISIONED billing mode, you must provide an auto scaling
    # configuration via the WriteProvisionedThroughputSettings property": AWS::DynamoDB::GlobalTable, read 2026-11
    unscaled = _unscaled(new)
    if len(new.deployed.replicas) < 2 or not unscaled:
        return
    if old is not None and set(new.deployed.replicas) <= set(old.deployed.replicas) and unscaled == _unscaled(old):
        return
    what = f"{len(new.deployed.replicas)} replicas, and the writes of {_listed(unscaled)} are not auto scaled"
    fix = "give them WriteCapacityAutoScalingSettings"
    if _is_terraform(new):
        fix = "give them an aws_appautoscaling_target with a target tracking policy before the replica"
    fix += f", or set {new.dialect.word('BillingMode')} to PAY_PER_REQUEST"
    yield HazardKind.REPLICA, Consequence.REFUSED, f"{what}, which DynamoDB refuses for provisioned tables", fix


def _unscaled(table: ListedTable) -> list[str]:
    if not _is_terraform(table):
        return list(table.deployed.unscaled)
    setup = table.setup
    if setup is None or setup.is_on_demand:
        return []
    return [each.label for each in setup.resources if each.write.tracking is None]


def _label(index: str | None) -> str:
    return "table" if index is None else f"index {index}"


def _target_label(target: Target) -> str:
    index, dimension = target
    return f"{_label(index)} {'reads' if dimension is Dimension.READ else 'writes'}"


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_LISTED
    return ", ".join(texts[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
