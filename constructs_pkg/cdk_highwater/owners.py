"""Who manages which table of an app: a table has one plan and one scaler."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import aws_cdk as cdk
from constructs import IConstruct

from cdk_highwater.subject import Subject

# by app: the paths of the constructs that manage a table, by their role and the table
_OWNERS: WeakKeyDictionary[IConstruct, dict[tuple[str, ...], str]] = WeakKeyDictionary()

PLAN, SCALER, TAGS = "plan", "scaler", "tags"


def claim(role: str, owner: IConstruct, *table: str) -> str | None:
    """Note that *owner* manages a table in a *role*. Return the path of the construct that does so already, if any."""
    owners = _OWNERS.setdefault(owner.node.root, {})
    first = owners.setdefault((role, *table), owner.node.path)
    return None if first == owner.node.path else first


def place_of(subject: Subject) -> tuple[str, ...]:
    """Return what a table is known by in an app: its name, account and region, or its path where it has no name yet.

    Two imports of one table have two constructs and one name.
    """
    if cdk.Token.is_unresolved(subject.name):
        return (subject.construct.node.path,)
    stack = cdk.Stack.of(subject.construct)
    return (subject.name, subject.account, subject.region, "" if _is_known(subject) else stack.node.path)


def _is_known(subject: Subject) -> bool:
    return not cdk.Token.is_unresolved(subject.account) and not cdk.Token.is_unresolved(subject.region)
