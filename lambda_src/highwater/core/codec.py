"""Value types as JSON objects: a table beside each type lists its members once, for writing and for reading.

Reading raises `AttributeError`, `LookupError`, `TypeError` or `ValueError` for a document that is not as written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
_REQUIRED: Final = object()


@dataclass(frozen=True, slots=True)
class Form:
    """How the values of a member are in JSON: by default as they are."""

    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value


AS_IT_IS: Final = Form()
WHOLE: Final = Form(read=int)
SECONDS: Final = Form(lambda time: int(time.total_seconds()), lambda seconds: timedelta(seconds=seconds))
MINUTES: Final = Form(lambda time: time // timedelta(minutes=1), lambda minutes: timedelta(minutes=minutes))


def instant_of_text(text: str) -> datetime:
    """Return an aware instant; raises `ValueError` for one without its zone."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        message = f"{text!r} has no zone"
        raise ValueError(message)
    return at


INSTANT: Final = Form(lambda at: at.astimezone(UTC).isoformat(), instant_of_text)


def one_of(kind: type[StrEnum]) -> Form:
    """Return the form of an enumeration's members: their texts."""
    return Form(str, kind)


def many(form: Form | Codec[Any] = AS_IT_IS) -> Form:
    """Return the form of a tuple: a list."""
    return Form(lambda values: [form.write(each) for each in values], lambda values: tuple(map(form.read, values)))


def or_none(form: Form | Codec[Any]) -> Form:
    """Return the form of a value that may be `None`: null."""
    write, read = form.write, form.read
    return Form(
        lambda value: None if value is None else write(value), lambda value: None if value is None else read(value)
    )


@dataclass(frozen=True, slots=True)
class Field:
    """One member of a JSON object.

    Attributes:
        attribute: The value's attribute.
        name: The member's name. By default the attribute's.
        form: How the value is in JSON.
        left_out: The value that is left out, and that a missing member has. By default none is.
    """

    attribute: str
    name: str = ""
    form: Form | Codec[Any] = AS_IT_IS
    left_out: object = _REQUIRED


class Codec(Generic[T]):
    """A value type as a JSON object.

    Args:
        kind: Makes a value of its attributes.
        *members: The members, in the order in which they are written and read.
    """

    def __init__(self, kind: Callable[..., T], *members: Field) -> None:
        self._kind, self._members = kind, members

    def write(self, value: Any) -> dict[str, Any]:
        """Return a value as JSON-ready values; `read` is the inverse."""
        found = ((each, getattr(value, each.attribute)) for each in self._members)
        return {each.name or each.attribute: each.form.write(what) for each, what in found if what != each.left_out}

    def read(self, document: Any) -> T:
        """Return the value that `write` wrote. Members that a later version adds are left out."""
        found = {}
        try:
            for each in self._members:
                name = each.name or each.attribute
                what = document[name] if each.left_out is _REQUIRED else document.get(name, _REQUIRED)
                found[each.attribute] = each.left_out if what is _REQUIRED else each.form.read(what)
            return self._kind(**found)
        except ArithmeticError as error:
            # such as a number of seconds that no timedelta can have
            raise ValueError(str(error)) from error
