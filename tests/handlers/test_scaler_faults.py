"""The scaler while AWS answers badly: any call of any API may be throttled, fail, time out or come back empty.

`HIGHWATER_FAULT_RUNS` says how many runs; `make faults` does ten thousand.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from random import Random
from typing import Any

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from highwater.core import Bounds, Dimension
from highwater.core.names import TargetName
from highwater.handlers.scaler.event import ScalerEvent
from highwater.handlers.scaler.gather import RunOutcome
from highwater.handlers.scaler.run import ScalerRun
from tests.memory_aws.stage import Stage
from tests.memory_aws.wire import Call, Fault, refusal

RUNS = int(os.environ.get("HIGHWATER_FAULT_RUNS", "400"))
_PROBABILITY = 0.25
_CEILINGS = {Dimension.READ: 900, Dimension.WRITE: 400}


def _raising(error: Exception) -> Fault:
    def fault(_call: Call) -> Any:
        raise error

    return fault


_FAULTS: tuple[Fault, ...] = (
    refusal("ThrottlingException", "Rate exceeded"),
    refusal("ValidationException", "One or more parameters are not valid"),
    refusal("500", "", 500),
    refusal("503", "Service Unavailable", 503),
    _raising(ResponseParserError("Unable to parse response")),
    lambda _: {},
    _raising(ReadTimeoutError(endpoint_url="https://aws.invalid")),
    _raising(ConnectTimeoutError(endpoint_url="https://aws.invalid")),
)


def test_no_fault_raises_a_floor_above_its_ceiling_or_lowers_one_without_data(stage: Stage) -> None:
    random = Random(20_261)  # noqa: S311 - the same each time
    asked = Counter[str]()
    tables = ["orders", "jobs", "items"]
    for table in tables:
        stage.table(table)
    names = [TargetName(table, None, dimension) for table in tables for dimension in Dimension]
    busy = TargetName("orders", None, Dimension.WRITE)
    # one table asks for 49 units a second, which is 70 at 70 %, the others for nothing
    stage.wait_for_minute(0)
    stage.surge(busy, 30 * 98)
    met: set[str] = set()

    def at_random(call: Call) -> Any:
        # tables are served by threads: what befalls a call follows from what it asks, and not from who comes first
        what = f"{call.operation} {call.body}"
        asked[what] += 1
        chance = Random(f"{what} {asked[what]}")  # noqa: S311 - the same each time
        if chance.random() > _PROBABILITY:
            return None
        met.add(call.operation)
        return chance.choice(_FAULTS)(call)

    def run() -> ScalerRun:
        made = ScalerRun(ScalerEvent("tables", stage.now(), tuple(tables)), lambda: 60.0, stage.region_of)
        # one that fails whole is tried again by Lambda, and counted by the alarm on errors
        with contextlib.suppress(Exception):
            made.run()
        return made

    blind = 0
    for _ in range(RUNS):
        name = random.choice(names)
        high = _CEILINGS[name.dimension]
        stage.register(name, random.randint(1, high), high)
        before = {each: stage.bounds(each) for each in names}
        stage.wire.reset()
        stage.wire.fault = at_random
        outcome = run().outcome
        for target in names:
            floor, ceiling = stage.bounds(target).min, stage.bounds(target).max
            assert floor <= ceiling
            if _was_blind(outcome, target):
                blind += 1
                assert floor >= min(before[target].min, ceiling), f"{target} fell without data"
    assert met == {
        "GetParameters",
        "DescribeAlarms",
        "DescribeScalableTargets",
        "DescribeTable",
        "GetMetricData",
        "PutMetricAlarm",
        "RegisterScalableTarget",
    }
    assert blind > 0
    # the faults are over
    stage.wire.reset()
    assert run().outcome.failed == {}
    planned = {Dimension.READ: Bounds(7, 900), Dimension.WRITE: Bounds(12, 400)}
    assert {name: stage.bounds(name) for name in names} == {
        **{name: planned[name.dimension] for name in names},
        busy: Bounds(70, 400),
    }


def _was_blind(outcome: RunOutcome, target: TargetName) -> bool:
    """Whether the run had no metrics at all, or not the throttles of that target."""
    mine = f"{target.resource_id} {target.dimension}"
    return any(note.startswith("no metrics") or (": throttles of " in note and mine in note) for note in outcome.notes)
