"""How many examples a law is tried with."""

from __future__ import annotations

import os
from typing import Final

_IS_FULL: Final = os.environ.get("HIGHWATER_EXAMPLES") == "full"


def examples(full: int) -> int:
    """Return *full* in `make test`; a quarter of it for pytest by itself, which is run after every change."""
    return full if _IS_FULL else max(full // 4, 1)
