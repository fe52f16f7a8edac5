"""Checks of the arguments of constructs: types and ranges, with what to give instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from highwater.core.findings import is_whole, shown
from highwater.core.names import MOST_BUDGET_CHARACTERS

T = TypeVar("T")


def require(name: str, value: object, kind: type[object] | str, allowed: str, fix: str) -> None:
    """Raise `TypeError` if the argument *name* is of another type than documented.

    Args:
        name: The argument's name.
        value: Its value.
        kind: Its class; for an interface of the CDK, the name of one of its members, because imported constructs are
            proxies without a class to test for.
        allowed: What the value must be, for the message.
        fix: What to give instead, for the message.
    """
    # a class passed instead of an object has the members too
    fits = hasattr(value, kind) and not isinstance(value, type) if isinstance(kind, str) else isinstance(value, kind)
    if not fits:
        message = f"{name} must be {allowed}, got {shown(value)}; {fix}"
        raise TypeError(message)


def require_or_none(name: str, value: object, kind: type[object] | str, allowed: str, fix: str) -> None:
    """Raise `TypeError` as `require` does, except for `None`."""
    if value is not None:
        require(name, value, kind, allowed, fix)


def require_number(name: str, value: object, least: int, most: int | None) -> None:
    """Raise `ValueError` if *value* is not a whole number from *least* to *most*, or without a highest if `None`."""
    if not isinstance(value, int) or not is_whole(value) or value < least or (most is not None and value > most):
        allowed = f"{least} or more" if most is None else f"from {least} to {most:,}"
        given = f"{value:,}" if isinstance(value, int) and is_whole(value) else shown(value)
        message = f"{name} is {given}; allowed: whole numbers, {allowed}"
        raise ValueError(message)


def require_topic(topic: object) -> None:
    """Raise `TypeError` if *topic* is neither an SNS topic nor `None`."""
    fix = "give an sns.Topic; an existing one is sns.Topic.from_topic_arn(...)"
    require_or_none("topic", topic, "topic_arn", "an SNS topic", fix)


def require_budget(budget: str | None) -> None:
    """Raise `TypeError` or `ValueError` if *budget* is neither the name of a shared budget nor `None`."""
    require_or_none("budget", budget, str, "the name of a budget", "give it in quotes")
    if budget is not None and not 1 <= len(budget) <= MOST_BUDGET_CHARACTERS:
        message = f"budget is {budget[:120]!r}; allowed: 1 to {MOST_BUDGET_CHARACTERS} characters"
        raise ValueError(message)


def list_of(name: str, values: object, kind: type[T]) -> tuple[T, ...]:
    """Return *values* as a tuple; raises `TypeError` if they are not a list whose members are all of *kind*.

    An iterator is rejected: it would be empty when the argument is read again.
    """
    if isinstance(values, kind):
        message = f"{name} must be a list of {kind.__name__}, got one {kind.__name__}; put it in brackets"
        raise TypeError(message)
    if isinstance(values, Iterator):
        message = f"{name} must be a list of {kind.__name__}, got {shown(values)}; make a list of it with list(...)"
        raise TypeError(message)
    members: list[T] = []
    for position, member in enumerate(items_of(name, values, kind.__name__, "leave the argument out for none")):
        if not isinstance(member, kind):
            message = f"{name}[{position}] must be {_one(kind.__name__)}, got {type(member).__name__} {member!r}"[:200]
            raise TypeError(message)
        members.append(member)
    return tuple(members)


def items_of(name: str, values: object, kind: str, fix: str) -> tuple[object, ...]:
    """Return *values* as a tuple; raises `TypeError` for text, or for a single value that is not a list."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        message = f"{name} must be a list of {kind}, got {shown(values)}; {fix}"
        raise TypeError(message)
    return tuple(values)


def _one(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
