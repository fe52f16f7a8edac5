"""A metered and paced session of a server of greenlets; `tests/client/test_gevent.py` runs it in a process of its own.

Sends requests by eight greenlets to the endpoint of its argument, and prints a line of JSON.
"""

from __future__ import annotations

# before all that it patches is imported
from gevent import monkey

monkey.patch_all()

import faulthandler  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import boto3  # noqa: E402
import gevent  # noqa: E402
from gevent.pool import Pool  # noqa: E402

import highwater  # noqa: E402
from tests.client.scripted import ITEM, Nobody  # noqa: E402

# A hang ends the process, and fails the test.
faulthandler.dump_traceback_later(50, exit=True)
REQUESTS, BUDGET = 20, 60
ticks = [0]


def tick() -> None:
    """Count while others wait."""
    while True:
        gevent.sleep(0.01)
        ticks[0] += 1


class Waits:
    """A clock that only waits move, each by a wait of gevent's; it notes how often others went on in each."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.ticks: list[int] = []

    def clock(self) -> int:
        """The nanoseconds that were waited."""
        return self.now_ns

    def pause(self, seconds: float) -> None:
        """Wait, as a pacer does by default, and move the clock by no more than that."""
        until, before = self.now_ns + round(seconds * 1e9), ticks[0]
        time.sleep(seconds)
        self.now_ns = max(self.now_ns, until)
        self.ticks.append(ticks[0] - before)


url = sys.argv[1]
session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
pulse = highwater.Pulse(
    dynamodb=session.client("dynamodb", endpoint_url=url), coordinator=Nobody(), _pulse_table="pulses"
)
pulse.meter.install(session)
waits = Waits()
highwater.pace(session, write=BUDGET, table="orders", pacer=highwater.Pacer(clock=waits.clock, pause=waits.pause))
client = session.client("dynamodb", endpoint_url=url)
gevent.spawn(tick)
# the first one's answer tells what each of the others costs
client.put_item(TableName="orders", Item=ITEM)
Pool(8).map(lambda _: client.put_item(TableName="orders", Item=ITEM), range(REQUESTS - 1))
pulse.stop()
print(json.dumps({"seconds": waits.now_ns / 1e9, "ticks": waits.ticks}))
