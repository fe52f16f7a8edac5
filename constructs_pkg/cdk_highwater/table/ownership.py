"""Which construct manages which table of an app: one plan and one scaler per table, and findings about second ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from constructs import Construct, IConstruct

from cdk_highwater.support.arguments import list_of
from cdk_highwater.table.subject import Subject
from highwater.core import Finding
from highwater.core.errors import did_you_mean
from highwater.core.findings import conflict, error
from highwater.core.names import table_of_label
from highwater.core.scaler.plan import MANAGED_TAG, TAG_MODES

PLAN, SCALER, DIRECT, TAGS = "plan", "scaler", "direct", "tags"

_Key = tuple[str, ...]
# For each app, the managing construct by key; the first part of a key is the role.
_OWNERS: WeakKeyDictionary[IConstruct, dict[_Key, IConstruct]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Claim:
    """A record that a construct manages a table in a role."""

    role: str
    owner: IConstruct
    subject: Subject


_CLAIMS: WeakKeyDictionary[IConstruct, list[Claim]] = WeakKeyDictionary()


def claim(role: str, owner: IConstruct, subject: Subject, stack: cdk.Stack | None = None) -> str | None:
    """Record that *owner* manages a table in a *role*. Return the path of the construct that does so already, if any.

    A table may be given by its construct, by its resource in the template, or by its name: all three are recorded.
    *stack* is the one that manages the table, by default the owner's.
    """
    _CLAIMS.setdefault(owner.node.root, []).append(Claim(role, owner, subject))
    keys = _keys(subject, stack or cdk.Stack.of(owner))
    others = [claim_place(role, owner, *key) for key in keys]
    return next((other for other in others if other is not None), None)


def claim_place(role: str, owner: IConstruct, *place: str) -> str | None:
    """Record that *owner* manages a place, such as an account and region, as `claim` does for a table."""
    first = _OWNERS.setdefault(owner.node.root, {}).setdefault((role, *place), owner)
    return None if first == owner else first.node.path


def owner_of(role: str, subject: Subject, stack: cdk.Stack) -> str | None:
    """Return the path of the construct that manages a table in a *role*, if any, as seen from *stack*."""
    owners = _OWNERS.get(stack.node.root, {})
    found = (owners.get((role, *key)) for key in _keys(subject, stack))
    return next((owner.node.path for owner in found if owner is not None), None)


def claims(role: str, scope: IConstruct) -> list[Claim]:
    """Return the claims in a *role* in the app of *scope*, in the order of the calls of `claim`."""
    return [each for each in _CLAIMS.get(scope.node.root, []) if each.role == role]


def _keys(subject: Subject, stack: cdk.Stack) -> list[_Key]:
    """Return the keys of a table that is managed from *stack*. Tables with a common key are the same table."""
    if subject.template is not None:
        keys: list[_Key] = [("template", subject.template.node.path)]
    else:
        keys = [("construct", subject.construct.node.path)]
    name = subject.literal_name
    if name is None:
        # a name known only at deploy time, such as a parameter's value: equal texts in a stack are the same name
        return [*keys, ("text", subject.name, subject.stack.node.path)]
    of_table, of_stack = (subject.account, subject.region), (stack.account, stack.region)
    # If the table's place and the stack's cannot be compared, the table of this name in the stack's place is scaled.
    account, region = (
        own if cdk.Token.is_unresolved(table) or cdk.Token.is_unresolved(own) else table
        for table, own in zip(of_table, of_stack, strict=True)
    )
    places = [(subject.stack, of_table), (stack, (account, region))]
    places += [(subject.stack, (subject.account, region)) for region in subject.replica_regions()]
    return [*keys, *dict.fromkeys(("place", name, *known_place(where, place)) for where, place in places)]


def known_place(stack: cdk.Stack, place: tuple[str, str]) -> tuple[str, ...]:
    """Return the account and region of *place*; a part known only at deploy time is replaced by the stack's path.

    Stacks whose place is not known may be deployed to different places; a nested stack is deployed with its parent.
    """
    if not any(map(cdk.Token.is_unresolved, place)):
        return place
    outermost = stack
    while (parent := outermost.nested_stack_parent) is not None:
        outermost = parent
    return tuple(f"of {outermost.node.path}" if cdk.Token.is_unresolved(part) else part for part in place)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedTables:
    """Let a scaler also manage the tables of the account that have the tag `highwater:managed`.

    Attributes:
        regions: Regions in which to search for tagged tables, in addition to the scaler's region. By default none.

    Example:
        ```python
        ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables(regions=["eu-west-1"]))
        ```
    """

    regions: Sequence[str] = ()

    def __post_init__(self) -> None:
        list_of("regions", self.regions, str)


def second_scaler(scaler: Construct, subject: Subject) -> list[Finding]:
    """Record that *scaler* manages a table; return the finding if another scaler manages it already."""
    other = claim(SCALER, scaler, subject)
    if other is None:
        return []
    problem = f"scaler {other} manages the table already; two scalers would set each other's floors"
    return [conflict("secondScaler", "the table", problem, "add the table to one of the two")]


def twice_direct(scaler: Construct, subject: Subject) -> list[Finding]:
    """Return the finding about a table that *scaler* already manages in DIRECT mode by another construct."""
    # the table's construct is the owner here, because both claims are the same scaler's
    other = claim(DIRECT, subject.construct, subject, cdk.Stack.of(scaler))
    if other is None:
        return []
    problem = f"{subject.construct.node.path} and {other} are one table, and the scaler would have two plans for it"
    return [conflict("secondPlan", "the table", problem, "remove one of the two calls of add_direct_table")]


def second_tagged_scaler(scaler: Construct, tagged: TaggedTables) -> list[Finding]:
    """Record that *scaler* manages tagged tables; return a finding for each scaler that does so in the same places."""
    stack = cdk.Stack.of(scaler)
    shared: dict[str, list[str]] = {}
    for region in (stack.region, *tagged.regions):
        other = claim_place(TAGS, scaler, stack.account, region)
        if other is not None:
            shared.setdefault(other, []).append(region)
    return [
        conflict(
            "secondScaler",
            "tagged tables",
            f"scaler {other} manages the tagged tables of {_text_of_places(regions)} already",
            "pass tagged= to one of the two, or give them different regions",
        )
        for other, regions in shared.items()
    ]


def _text_of_places(regions: list[str]) -> str:
    if any(map(cdk.Token.is_unresolved, regions)):
        return "the same account and region"
    return f"the same account in {', '.join(dict.fromkeys(regions))}"


def plan_beside_direct(scaler: Construct, subject: Subject) -> list[Finding]:
    """Return the finding about scalable targets of a table that *scaler* manages in DIRECT mode."""
    other = owner_of(PLAN, subject, cdk.Stack.of(scaler))
    if other is None:
        return []
    problem = (
        f"{other} makes scalable targets for {subject.construct.node.path}, and DIRECT mode is for "
        "tables that nothing else scales"
    )
    fix = "remove the call of add_direct_table, and pass the result of manage_capacity to add_table"
    return [conflict("secondPlan", "the table", problem, fix)]


def tagged_tables_of_others(scaler: Construct, tagged: TaggedTables) -> list[Finding]:
    """Return a finding for each table of another scaler whose tag lets *scaler*, of tagged tables, find it."""
    stack = cdk.Stack.of(scaler)
    searched = {known_place(stack, (stack.account, region)) for region in (stack.region, *tagged.regions)}
    others = [each for each in claims(SCALER, scaler) if each.owner != scaler]
    return [_tagged(each) for each in others if not searched.isdisjoint(_tagged_places(each))]


def _tagged_places(claim: Claim) -> set[tuple[str, ...]]:
    """Return the places in which the table, or a replica of it, has a tag by which a scaler manages it."""
    subject = claim.subject
    return {
        known_place(subject.stack, (subject.account, region))
        for region, tags in subject.tags_by_region().items()
        if tags.get(MANAGED_TAG) in TAG_MODES
    }


# a message names no more tables than this
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A grant for tables of a coordinator, which may be added to it after the grant.

    Attributes:
        coordinator: The coordinator.
        manager: The construct to which its tables are added: its scaler, or the coordinator itself.
        call: The method that was called, such as `grant_boost`.
        tables: The tables, by name or as subjects.
        max_write: The write units per second that may be boosted, 0 for none.
    """

    coordinator: Construct
    manager: Construct
    call: str
    tables: tuple[str | Subject, ...]
    max_write: int

    def findings(self) -> list[Finding]:
        """Return the findings about tables that the coordinator cannot know, or whose writes cannot be boosted."""
        managed = [each.subject for each in claims(SCALER, self.manager) if each.owner == self.manager]
        if self.call == "grant_pulse" and self._finds_tagged_tables():
            return []
        unknown = [self._unknown(each, managed) for each in self.tables if self._is_unknown(each, managed)]
        return unknown + [self._replicated(each) for each in managed if self._boosts_one_replica(each)]

    def _boosts_one_replica(self, table: Subject) -> bool:
        """Whether the table has replicas, and the grant would boost the writes of only one of them."""
        if not self.max_write or not table.replica_regions():
            return False
        return any(not self._is_unknown(each, [table]) for each in self.tables)

    def _replicated(self, table: Subject) -> Finding:
        name = table.literal_name or table.construct.node.path
        return error(
            "globalTableBoost",
            f"{self.call} of {self.coordinator.node.path}",
            f"max_write {self.max_write:,} for {name}, which has replicas in {', '.join(table.replica_regions())}",
            "0, as a boost raises one replica, and the others have to take the same writes",
            "set max_write=0, and declare a window, which every replica gets",
        )

    def _finds_tagged_tables(self) -> bool:
        # their names are known from their tags only; they have pulses, and no boosts
        owners = _OWNERS.get(self.manager.node.root, {}).items()
        return any(role == TAGS and owner == self.manager for (role, *_), owner in owners)

    def _is_unknown(self, table: str | Subject, managed: list[Subject]) -> bool:
        if isinstance(table, str):
            return not any(_may_be_called(each, table) for each in managed)
        stack = cdk.Stack.of(self.manager)
        keys = set(_keys(table, stack))
        return all(keys.isdisjoint(_keys(each, stack)) for each in managed)

    def _unknown(self, table: str | Subject, managed: list[Subject]) -> Finding:
        manager = self.manager.node.path
        names = [each.literal_name or each.construct.node.path for each in managed]
        shown = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED))
        allowed = f"the tables of {manager}: {shown}" if names else f"the tables of {manager}, which has none"
        if isinstance(table, str):
            got = repr(table)
            fix = f"correct the name, or add the table to {manager}{did_you_mean(table_of_label(table)[0], names)}"
        else:
            other = owner_of(SCALER, table, cdk.Stack.of(self.manager))
            got = table.construct.node.path + ("" if other is None else f", a table of {other}")
            own = f"add the table to {manager}"
            fix = own if other is None else f"call {self.call} of the coordinator of {other}"
        return error("grantedTableUnmanaged", f"{self.call} of {self.coordinator.node.path}", got, allowed, fix)


def _may_be_called(subject: Subject, label: str) -> bool:
    """Whether a job may call the table *label*: its name, or its region and name; a generated name is not known."""
    if cdk.Token.is_unresolved(label):
        return True
    table, region = table_of_label(label)
    regions = {subject.region, *subject.replica_regions()}
    if region is not None and region not in regions and not any(map(cdk.Token.is_unresolved, regions)):
        return False
    name = subject.literal_name
    if name is not None:
        return table == name
    # CloudFormation begins the names that it generates with the stack's
    stack = subject.stack.stack_name
    return subject.template is None or cdk.Token.is_unresolved(stack) or table.startswith(f"{stack}-")


def _tagged(claim: Claim) -> Finding:
    problem = (
        f"{claim.owner.node.path} manages {claim.subject.construct.node.path}, whose tag {MANAGED_TAG} lets this "
        "scaler manage it too; two scalers would set each other's floors"
    )
    fix = "remove the tag, or add the table to this scaler"
    return conflict("secondScaler", "tagged tables", problem, fix)
