"""Public names of a package that are imported when they are first used.

So `import highwater` costs next to nothing, and code that uses only the core does not import boto3.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exported(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Args:
        package: The package's name.
        homes: The module of each of its public names.

    The first one raises `AttributeError` for another name, as Python does.
    """

    def get(name: str) -> Any:
        if name not in homes:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        found = getattr(import_module(homes[name]), name)
        # the next use does not come here
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted(homes)
