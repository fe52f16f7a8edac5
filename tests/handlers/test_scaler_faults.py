"""The scaler while AWS answers badly: any call of any API may be throttled, fail, time out or come back garbled.

`HIGHWATER_FAULT_RUNS` says how many runs; `make faults` does ten thousand.
"""

from __future__ import annotations

import contextlib
import os
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from highwater.aws.region import AwsRegion
from highwater.core import Dimension
from highwater.core.names import TargetName
from highwater.handlers.scaler.event import ScalerEvent
from highwater.handlers.scaler.outcome import Outcome
from highwater.handlers.scaler.run import Run
from tests.handlers.bench import Call, Wire, answer, refusal
from tests.handlers.stage import MINUTE, Stage

pytestmark = pytest.mark.xdist_group("cloud-scaler")
RUNS = int(os.environ.get("HIGHWATER_FAULT_RUNS", "80"))
_PROBABILITY = 0.25
_BASELINE, _CEILING = 12, 400


def _raising(error: Any) -> Any:
    def fault(call: Call) -> Any:
        raise error(endpoint_url=call.request.url)

    return fault


_FAULTS = (
    refusal("ThrottlingException", "Rate exceeded"),
    refusal("ValidationException", "One or more parameters are not valid"),
    answer(500, b""),
    answer(503, b"Service Unavailable"),
    answer(200, b"<!doctype html>"),
    answer(200, b"{}"),
    _raising(ReadTimeoutError),
    _raising(ConnectTimeoutError),
)


def test_no_fault_raises_a_floor_above_its_ceiling_or_lowers_one_without_data(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(20_261)  # noqa: S311 - the same each time
    tables = [stage.table() for _ in range(3)]
    names = [TargetName(table, None, dimension) for table in tables for dimension in Dimension]
    # one table asks for 49 units a second, which is 73 at 68 %, the others for nothing
    stage.cloud.advance(40 * MINUTE)
    stage.write(tables[0], 30)
    stage.cloud.advance(4 * MINUTE)
    # boto3 tries again as ever, without the waiting
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    home = _Wired()
    wires = home.wires
    faulted: set[str] = set()

    def at_random(call: Call) -> Any:
        if random.random() > _PROBABILITY:
            return None
        faulted.add(call.operation)
        return random.choice(_FAULTS)(call)

    met: set[str] = set()
    blind = 0
    for _ in range(RUNS):
        name = random.choice(names)
        high = _CEILING if name.dimension is Dimension.WRITE else 900
        stage.register(name, random.randint(1, high), high)
        before = _floors(stage, tables)
        faulted.clear()
        for wire in wires:
            wire.reset()
            wire.fault = at_random
        # ten thousand runs take minutes: each has its own time
        run = Run(ScalerEvent("tables", stage.now(), tuple(tables)), lambda: 60.0, lambda _: home)
        # one that fails whole is tried again by Lambda, and counted by the alarm on errors
        with contextlib.suppress(Exception):
            run.run()
        for wire in wires:
            wire.reset()
        met |= faulted
        after = _floors(stage, tables)
        for target, (floor, ceiling) in after.items():
            assert floor <= ceiling
            if _was_blind(run.outcome, target):
                blind += 1
                assert floor >= min(before[target][0], ceiling), f"{target} fell without data"
    assert RUNS < 50 or met >= {
        "GetParameters",
        "DescribeAlarms",
        "DescribeScalableTargets",
        "DescribeTable",
        "GetMetricData",
        "RegisterScalableTarget",
    }

    assert blind > 0

    # the faults are over
    run = Run(ScalerEvent("tables", stage.now(), tuple(tables)), lambda: 60.0, lambda _: home)
    assert run.run().failed == {}
    right = {(name.table, name.dimension): bounds for name, bounds in _floors(stage, tables).items()}
    assert right.pop((tables[0], Dimension.WRITE)) == (73, _CEILING)
    assert right == {
        **{(table, Dimension.READ): (7, 900) for table in tables},
        **{(table, Dimension.WRITE): (_BASELINE, _CEILING) for table in tables[1:]},
    }


def _floors(stage: Stage, tables: list[str]) -> dict[TargetName, tuple[int, int]]:
    return {
        TargetName(table, None, dimension): stage.bounds(table, dimension)
        for table in tables
        for dimension in Dimension
    }


class _Wired(AwsRegion):
    """The scaler's region, every call of which goes over a wire."""

    def __init__(self) -> None:
        super().__init__()
        clients = (self.clients.dynamodb, self.clients.autoscaling, self.clients.cloudwatch, self.ssm)
        self.wires = [Wire(client) for client in clients]


def _was_blind(outcome: Outcome, target: TargetName) -> bool:
    """Whether the run had no metrics at all, or not the throttles of that target."""
    mine = f"{target.resource_id} {target.dimension}"
    return any(note.startswith("no metrics") or (": throttles of " in note and mine in note) for note in outcome.notes)
