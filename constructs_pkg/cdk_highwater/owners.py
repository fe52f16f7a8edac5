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
    """Note that *owner* manages a table in a *role*. Return the path of the construct that does so already, if any.

    A table may be given by its construct, by its resource in the template, and by its name: all of them are noted.
    """
    others = []
    if subject.template is not None:
        others.append(claim_place(role, owner, "template", subject.template.node.path))
    name = subject.literal_name
    if name is not None:
        is_known = not any(map(cdk.Token.is_unresolved, (subject.account, subject.region)))
        where = "" if is_known else cdk.Stack.of(subject.construct).node.path
        others.append(claim_place(role, owner, name, subject.account, subject.region, where))
    elif subject.template is None:
        others.append(_claim(subject.construct, owner, role))
    return next((other for other in others if other is not None), None)


def claim_place(role: str, owner: IConstruct, *place: str) -> str | None:
    """Note that *owner* manages what is at a place of its app, as `claim` does."""
    return _claim(owner.node.root, owner, role, *place)


def _claim(of: IConstruct, owner: IConstruct, *key: str) -> str | None:
    first = _OWNERS.setdefault(of, {}).setdefault(key, owner)
    return None if first == owner else first.node.path
