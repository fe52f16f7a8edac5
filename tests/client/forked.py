"""What forks and signals do to a metered process; `tests/client/test_forks.py` runs each story in a process of its own.

Each story prints lines of JSON, also from its children.
"""

from __future__ import annotations

import faulthandler
import io
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse

from highwater import CoordinatorClient, Pulse
from highwater.core import Dimension
from tests.client.scripted import ITEM, Nobody, told_units

# A hang ends the story, and fails its test.
faulthandler.dump_traceback_later(50, exit=True)
ANSWER = json.dumps({"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": 7.0}}).encode()


def say(**line: Any) -> None:
    """Print a line at once, which no other process breaks."""
    os.write(1, f"{json.dumps(line)}\n".encode())


class Table:
    """The coordinator's table; says how much it is told of, and whether it was made by the process that tells."""

    def __init__(self) -> None:
        self.made_by = os.getpid()

    def update_item(self, **request: Any) -> dict[str, Any]:
        if told := told_units(request):
            say(told=told, is_parent=os.getpid() == PARENT, is_own=self.made_by == os.getpid())
        return {"Attributes": {}}


def connect() -> tuple[Any, CoordinatorClient]:
    """Make what a process needs of its own."""
    return Table(), Nobody()


def metered() -> tuple[Pulse, Any]:
    """A pulse, and a client that is answered without a network."""
    pulse = Pulse(dynamodb=Table(), coordinator=Nobody(), connect=connect, _pulse_table="pulses")
    session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
    pulse.meter.install(session)
    client = session.client("dynamodb")

    def answer(request: Any, **_: Any) -> Any:
        headers: Any = {"content-type": "application/x-amz-json-1.0"}
        answered: Any = AWSResponse(request.url, 200, headers, io.BytesIO(ANSWER))
        answered._content = ANSWER
        return answered

    events: Any = client.meta.events
    events.register("before-send.dynamodb", answer)
    return pulse, client


def put() -> None:
    """Send one request."""
    CLIENT.put_item(TableName="orders", Item=ITEM)


PARENT = int(os.environ.setdefault("STORY_PARENT", str(os.getpid())))
PULSE, CLIENT = metered()


class Units(float):
    """Units, while which are added something else happens."""

    happens: Callable[[], None]

    def __radd__(self, other: float) -> float:
        self.happens()
        return other


def count_while(happens: Callable[[], None]) -> None:
    """Count a request, in the middle of which something happens."""
    units = Units(1.0)
    units.happens = happens
    PULSE.counts.add("orders", 7, (None, Dimension.WRITE), units)


def in_a_child(story: Callable[[], None]) -> None:
    """Run it in a forked process that ends as `os._exit` does, and say how that ended."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        story()
        os._exit(0)
    say(child=os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def fork_while_another_thread_counts() -> None:
    """The child's copy of whatever that thread holds is never released."""
    is_counting, may_go_on = threading.Event(), threading.Event()

    def wait() -> None:
        is_counting.set()
        may_go_on.wait()

    thread = threading.Thread(target=count_while, args=(wait,))
    thread.start()
    is_counting.wait()
    # a request of the same process does not wait either
    put()

    def story() -> None:
        put()
        say(counted=True)

    in_a_child(story)
    may_go_on.set()
    thread.join()


def signal_while_counting() -> None:
    """The handler sends a request while the interrupted one is being counted."""

    def handle(*_: Any) -> None:
        put()
        say(counted=True)

    signal.signal(signal.SIGUSR1, handle)
    count_while(lambda: signal.raise_signal(signal.SIGUSR1))
    PULSE.stop()


def fork_after_requests() -> None:
    """Each process tells what it counted, by a connection of its own."""
    put()
    PULSE.beat(is_last=True)
    put()

    def story() -> None:
        put()
        PULSE.stop()

    in_a_child(story)
    PULSE.stop()


def spreads_of_children() -> None:
    """Says how many seconds after the end of a slot each of six children tells, after their parent."""
    now = [1_795_436_760.0]
    PULSE.clock, PULSE.has_thread = lambda: now[0], False
    PULSE.meter.clock = PULSE.clock
    put()
    PULSE.beat()

    def story() -> None:
        put()
        while PULSE.counts.tables():
            now[0] += 0.05
            PULSE.beat()
        say(after=round(now[0] % 10, 2))

    for _ in range(6):
        in_a_child(story)


def children_of_multiprocessing(method: str) -> None:
    """They end without what `atexit` registers."""
    context: Any = multiprocessing.get_context(method)
    child = context.Process(target=put)
    child.start()
    child.join()
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        for done in [pool.submit(put) for _ in range(3)]:
            done.result()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
