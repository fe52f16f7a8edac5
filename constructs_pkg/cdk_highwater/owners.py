"""Who manages which table of an app: a table has one plan and one scaler."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import aws_cdk as cdk
from constructs import IConstruct

from cdk_highwater.subject import Subject

PLAN, SCALER, TAGS = "plan", "scaler", "tags"

# By table or app, the constructs that manage it, by their role; of an app, also by the table's name and place.
_OWNERS: WeakKeyDictionary[IConstruct, dict[tuple[str, ...], IConstruct]] = WeakKeyDictionary()


def claim(role: str, owner: IConstruct, subject: Subject) -> str | None:
    """Note that *owner* manages a table in a *role*. Return the path of the construct that does so already, if any."""
    if subject.template is not None or cdk.Token.is_unresolved(subject.name):
        return _claim(subject.construct, owner, role)
    # two imports of one table have two constructs and one name
    is_known = not any(map(cdk.Token.is_unresolved, (subject.account, subject.region)))
    where = "" if is_known else cdk.Stack.of(subject.construct).node.path
    return claim_place(role, owner, subject.name, subject.account, subject.region, where)


def claim_place(role: str, owner: IConstruct, *place: str) -> str | None:
    """Note that *owner* manages what is at a place of its app, as `claim` does."""
    return _claim(owner.node.root, owner, role, *place)


def _claim(of: IConstruct, owner: IConstruct, *key: str) -> str | None:
    first = _OWNERS.setdefault(of, {}).setdefault(key, owner)
    return None if first == owner else first.node.path
