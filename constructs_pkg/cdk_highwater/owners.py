"""Who manages which table of an app: a table has one plan and one scaler."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from constructs import IConstruct

from cdk_highwater.subject import Subject

PLAN, SCALER, DIRECT, TAGS = "plan", "scaler", "direct", "tags"

_Key = tuple[str, ...]
# By app, the constructs that manage what is at a key; its first part is their role.
_OWNERS: WeakKeyDictionary[IConstruct, dict[_Key, IConstruct]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Claim:
    """That a construct manages a table in a role."""

    role: str
    owner: IConstruct
    subject: Subject


_CLAIMS: WeakKeyDictionary[IConstruct, list[Claim]] = WeakKeyDictionary()


def claim(role: str, owner: IConstruct, subject: Subject, stack: cdk.Stack | None = None) -> str | None:
    """Note that *owner* manages a table in a *role*. Return the path of the construct that does so already, if any.

    A table may be given by its construct, by its resource in the template, and by its name: all of them are noted.
    *stack* is the one that manages the table, by default the owner's.
    """
    _CLAIMS.setdefault(owner.node.root, []).append(Claim(role, owner, subject))
    keys = _keys(subject, stack or cdk.Stack.of(owner))
    others = [claim_place(role, owner, *key) for key in keys]
    return next((other for other in others if other is not None), None)


def claim_place(role: str, owner: IConstruct, *place: str) -> str | None:
    """Note that *owner* manages what is at a place of its app, as `claim` does."""
    first = _OWNERS.setdefault(owner.node.root, {}).setdefault((role, *place), owner)
    return None if first == owner else first.node.path


def owner_of(role: str, subject: Subject, stack: cdk.Stack) -> str | None:
    """Return the path of the construct that manages a table in a *role*, if any; *stack* is the one that asks."""
    owners = _OWNERS.get(stack.node.root, {})
    found = (owners.get((role, *key)) for key in _keys(subject, stack))
    return next((owner.node.path for owner in found if owner is not None), None)


def claims(role: str, scope: IConstruct) -> list[Claim]:
    """Return what was noted in a *role* in the app of *scope*, in the order of the calls of `claim`."""
    return [each for each in _CLAIMS.get(scope.node.root, []) if each.role == role]


def _keys(subject: Subject, stack: cdk.Stack) -> list[_Key]:
    """The keys of a table that is managed from *stack*. Two that have one key in common are the same table."""
    if subject.template is not None:
        keys: list[_Key] = [("template", subject.template.node.path)]
    else:
        keys = [("construct", subject.construct.node.path)]
    name = subject.literal_name
    if name is None:
        # one text of a name that is known only at deploy time, for instance a parameter's, is one name within a stack
        return [*keys, ("text", subject.name, subject.stack.node.path)]
    of_table, of_stack = (subject.account, subject.region), (stack.account, stack.region)
    # Where the managing stack cannot be compared with the table, the table of this name in the stack's place is scaled.
    account, region = (
        own if cdk.Token.is_unresolved(table) or cdk.Token.is_unresolved(own) else table
        for table, own in zip(of_table, of_stack, strict=True)
    )
    places = [(subject.stack, of_table), (stack, (account, region))]
    places += [(subject.stack, (subject.account, region)) for region in subject.replica_regions()]
    return [*keys, *dict.fromkeys(("place", name, *known_place(where, place)) for where, place in places)]


def known_place(stack: cdk.Stack, place: tuple[str, str]) -> tuple[str, ...]:
    """Return the account and region of *place*, or the path of the stack for what is known only at deploy time.

    Stacks whose place is not known may be deployed to different places, and a nested stack goes where its parent goes.
    """
    if not any(map(cdk.Token.is_unresolved, place)):
        return place
    outermost = stack
    while (parent := outermost.nested_stack_parent) is not None:
        outermost = parent
    return tuple(f"of {outermost.node.path}" if cdk.Token.is_unresolved(part) else part for part in place)
