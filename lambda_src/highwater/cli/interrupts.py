"""Ctrl-C and SIGTERM: that they are heard, and work that ends best between two of its steps."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

_AGAIN_SECONDS: Final = 0.05


def hear_interrupts(*numbers: signal.Signals) -> None:
    """Have these signals raise `KeyboardInterrupt` from now on, by default Ctrl-C alone, wherever they come.

    Python drops an exception that is raised in a finalizer or in a callback of a weak reference, and an import has many
    of both. Such an interrupt comes again a moment later. A shell starts background programs with Ctrl-C ignored; this
    ends that too.
    """
    heard = numbers or (signal.SIGINT,)
    for number in heard:
        signal.signal(number, signal.default_int_handler)
    hearing = threading.get_ident()
    before = sys.unraisablehook

    def hook(dropped: Any) -> None:
        if dropped.exc_type is not None and issubclass(dropped.exc_type, KeyboardInterrupt):
            # Not here, where it would be dropped too; one that is heard, as Ctrl-C may be ignored; and to the thread
            # that hears it, as a call that waits there would otherwise go on until it ends.
            threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (hearing, heard[0])).start()
        else:
            before(dropped)

    sys.unraisablehook = hook


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
