"""Ctrl-C and SIGTERM, for work that ends best between two of its steps."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Have *stop* called at Ctrl-C and SIGTERM while the block runs; yields the numbers of the signals that came.

    Whoever is impatient sends a signal again: then it does what it did before the block.
    """
    came: list[int] = []

    def hear(number: int, _: object) -> None:
        came.append(number)
        stop()
        signal.signal(number, before[number])

    before = {int(number): signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
