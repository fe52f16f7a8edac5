"""How many examples a law is tried with, and whether they are the same in each run."""

from __future__ import annotations

import os
from typing import Final

# unset: a quarter of the examples, the same in each run; full: all of them; nightly: all of them, new in each run
_WANTED: Final = os.environ.get("HIGHWATER_EXAMPLES", "")
SAME_EACH_TIME: Final = _WANTED != "nightly"


def examples(full: int) -> int:
    """Return *full* in `make nightly` and `make coverage`; elsewhere, where tests run after every change, a quarter."""
    return full if _WANTED in ("full", "nightly") else max(full // 4, 1)
