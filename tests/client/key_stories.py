"""What forks and signals do to a process that counts keys; `test_key_counts.py` runs each story in its own process.

Each story prints lines of JSON, also from its child.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from highwater.core import Dimension
from highwater.shards import KeyCounts
from tests.client.scripted import ITEM

# A hang ends the story, and fails its test.
faulthandler.dump_traceback_later(50, exit=True)
PARENT = os.getpid()
COUNTS = KeyCounts(attributes={"orders": "pk"}, secret=b"drawn before the fork")


class Print(logging.Handler):
    """Prints each line at once, with the process that logged it."""

    def emit(self, record: logging.LogRecord) -> None:
        who = "parent" if os.getpid() == PARENT else "child"
        os.write(1, f"{json.dumps({'who': who} | json.loads(record.getMessage()))}\n".encode())


def put(units: float) -> None:
    """Pass a request through the hooks."""
    context: dict[str, Any] = {"client_region": "eu-central-1"}
    COUNTS._begin(
        params={"TableName": "orders", "Item": ITEM}, model=type("Model", (), {"name": "PutItem"}), context=context
    )
    COUNTS._end(parsed={"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": units}}, context=context)


class Units(float):
    """Units, while which are added something else happens."""

    happens: Callable[[], None]

    def __radd__(self, other: float) -> float:
        self.happens()
        return other + float(self)


def count_while(happens: Callable[[], None]) -> None:
    """Count a unit, in the middle of which something happens; nothing that waits for the lock would go on."""
    units = Units(1.0)
    units.happens = happens
    COUNTS._added.append((("eu-central-1", "orders", Dimension.WRITE), "a", units, 0, 0))
    put(0.0)


def fork_while_another_thread_counts() -> None:
    """The child's copy of the lock that this thread holds is never released."""
    is_counting, may_go_on = threading.Event(), threading.Event()

    def wait() -> None:
        if not is_counting.is_set():
            is_counting.set()
            may_go_on.wait()

    thread = threading.Thread(target=count_while, args=(wait,))
    thread.start()
    is_counting.wait()
    put(3.0)
    pid = os.fork()
    if not pid:
        put(2.0)
        COUNTS.stop()
        os._exit(0)
    os.waitpid(pid, 0)
    may_go_on.set()
    thread.join()
    COUNTS.stop()


def signal_while_counting() -> None:
    """The handler sends a request while the interrupted one is being counted."""
    left = [2.0]

    def handle(*_: Any) -> None:
        if left:
            put(left.pop())

    signal.signal(signal.SIGINT, handle)
    count_while(lambda: signal.raise_signal(signal.SIGINT))
    COUNTS.stop()


if __name__ == "__main__":
    logging.getLogger("highwater.keys").addHandler(Print())
    logging.getLogger("highwater.keys").setLevel(logging.INFO)
    globals()[sys.argv[1]]()
