"""Expands `Fn::ForEach` of the transform AWS::LanguageExtensions.

Source: AWS CloudFormation Template Reference, "Fn::ForEach", read 2026-11.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from highwater_lab.template.document import TemplateError

_LOOP: Final = "Fn::ForEach::"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9]")
# CloudFormation's own limit of resources is 500; loops may also make properties
_MOST_COPIES: Final = 20_000
_MOST_VALUES: Final = 2_000_000


class Loops:
    """Expands the loops of one template.

    Attributes:
        unread: What to say of each loop that cannot be expanded, a line each.
    """

    def __init__(self, resolve: Callable[[Any], Any], error: Callable[[str], TemplateError]) -> None:
        """Take a template's *resolve*, which evaluates a collection, and *error*, which makes its errors."""
        self._resolve = resolve
        self._error = error
        self._copies_left = _MOST_COPIES
        self._values_left = _MOST_VALUES
        # by identity, as an alias of YAML makes one object stand in many places; what is copied stays alive, so that no
        # identity is used twice
        self._has_loop: dict[int, bool] = {}
        self._alive: list[Any] = []
        self.unread: list[str] = []

    def expand(self, value: Any) -> Any:
        """Return *value* with every loop in it replaced by what it makes; *value* itself where it has none."""
        if not self._holds_loop(value):
            return value
        if isinstance(value, list):
            return [self.expand(item) for item in value]
        if not isinstance(value, dict):
            return value
        expanded: dict[Any, Any] = {}
        for key, item in value.items():
            if isinstance(key, str) and key.startswith(_LOOP):
                for name, copy in self._copies(key, item):
                    expanded[name] = copy
            else:
                expanded[key] = self.expand(item)
        return expanded

    def _holds_loop(self, value: Any) -> bool:
        if not isinstance(value, list | dict):
            return False
        if id(value) not in self._has_loop:
            # an alias may lead back to its own mapping
            self._has_loop[id(value)] = False
            is_loop = isinstance(value, dict) and any(str(key).startswith(_LOOP) for key in value)
            items = value.values() if isinstance(value, dict) else value
            self._has_loop[id(value)] = is_loop or any(self._holds_loop(item) for item in items)
        return self._has_loop[id(value)]

    def _copies(self, key: str, loop: Any) -> Iterator[tuple[str, Any]]:
        if (
            not isinstance(loop, list)
            or len(loop) != 3
            or not isinstance(loop[0], str)
            or not isinstance(loop[2], dict)
        ):
            self.unread.append(f"{key} needs an identifier, a collection and what to make of each; it is not read")
            return
        identifier, collection, output = loop
        for item in self._items(key, collection):
            self._copies_left -= 1
            if self._copies_left < 0:
                raise self._error(f"{key} makes more than {_MOST_COPIES:,} copies; no stack may hold so much")
            copy = self._replaced(output, identifier, item)
            self._alive.append(copy)
            yield from self.expand(copy).items()

    def _items(self, key: str, collection: Any) -> list[str]:
        try:
            items = self._resolve(collection)
        except TemplateError as error:
            self.unread.append(f"{key} is not read: {error}")
            return []
        if isinstance(items, str) and not items.startswith("${"):
            # the default of a parameter of type CommaDelimitedList
            items = [item.strip() for item in items.split(",")]
        if not isinstance(items, list) or not all(isinstance(item, str | int) for item in items):
            name = items[2:-1] if isinstance(items, str) else ""
            advice = f"; give them with --parameter {name}=A,B,C" if name.isalnum() else ""
            self.unread.append(f"{key} is not read: the values that it runs over are known only at deployment{advice}")
            return []
        return [str(item) for item in items]

    def _replaced(self, value: Any, identifier: str, item: str) -> Any:
        """Return *value* with every reference to the identifier replaced by the item, in `&{x}` without its symbols."""
        self._values_left -= 1
        if self._values_left < 0:
            raise self._error("is too large once its loops and YAML aliases are expanded")
        if isinstance(value, str):
            return value.replace(f"${{{identifier}}}", item).replace(f"&{{{identifier}}}", _NO_NAME.sub("", item))
        if isinstance(value, list):
            return [self._replaced(each, identifier, item) for each in value]
        if isinstance(value, dict):
            if value == {"Ref": identifier}:
                return item
            return {
                self._replaced(key, identifier, item): self._replaced(each, identifier, item)
                for key, each in value.items()
            }
        return value
