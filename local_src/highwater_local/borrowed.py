"""Names in the modules of another package that this one calls, or replaces with its own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

_PACKAGE: Final = "ministack"
# every one that a module has declared, in order
DECLARED: Final[list[Value]] = []


class Value:
    """A name in one of the package's modules, and the members that its value must have."""

    def __init__(self, module: str, name: str, *members: str) -> None:
        self._place = f"{_PACKAGE}.{module}"
        self._name = name
        self._members = members
        self._module: Any = None
        DECLARED.append(self)

    @property
    def now(self) -> Any:
        """What the package uses under that name now."""
        return getattr(self._module, self._name)

    def replace(self, new: Any) -> Any:
        """Have the package use *new* from now on; what it used until now."""
        before = self.now
        setattr(self._module, self._name, new)
        return before

    def lacking(self) -> Iterator[str]:
        """Import the module; what cannot be found of the value, by its full name."""
        path = f"{self._place}.{self._name}"
        try:
            self._module = import_module(self._place)
            value = self.now
        except (ImportError, AttributeError):
            yield path
        else:
            yield from self._wrong(path, value)

    def _wrong(self, path: str, value: Any) -> Iterator[str]:
        yield from (f"{path}.{member}" for member in self._members if not hasattr(value, member))


class Function(Value):
    """A function of the package's, to call or to replace."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call what stands under that name now, as the package does."""
        return self.now(*arguments, **options)

    def _wrong(self, path: str, value: Any) -> Iterator[str]:
        if not callable(value):
            yield f"{path} as a function"


class Handlers(Value):
    """Functions by the names of their actions, by kinds of resources."""

    def __init__(self, module: str, name: str, kinds: tuple[str, ...], actions: tuple[str, ...]) -> None:
        super().__init__(module, name)
        self._needed = [(kind, action) for kind in kinds for action in actions]

    def _wrong(self, path: str, value: Any) -> Iterator[str]:
        for kind, action in self._needed:
            if not callable(value.get(kind, {}).get(action)):
                yield f"{path}[{kind!r}][{action!r}] as a function"


class Script(Value):
    """A program in a text, with a line that is looked for."""

    def __init__(self, module: str, name: str, line: str) -> None:
        super().__init__(module, name)
        self._line = line

    def _wrong(self, path: str, value: Any) -> Iterator[str]:
        if not isinstance(value, str) or value.count(self._line) != 1:
            yield f"{path} with the line {self._line!r}"
