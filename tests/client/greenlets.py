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


url = sys.argv[1]
session = boto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
pulse = highwater.Pulse(
    dynamodb=session.client("dynamodb", endpoint_url=url), coordinator=Nobody(), _pulse_table="pulses"
)
pulse.meter.install(session)
highwater.pace(session, write=BUDGET, table="orders")
client = session.client("dynamodb", endpoint_url=url)
gevent.spawn(tick)
began = time.monotonic()
Pool(8).map(lambda _: client.put_item(TableName="orders", Item=ITEM), range(REQUESTS))
seconds = time.monotonic() - began
pulse.stop()
print(json.dumps({"seconds": seconds, "ticks": ticks[0]}))
