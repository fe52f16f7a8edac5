"""Capacity is lowered through the ceiling, and a run that is killed on the way leaves nothing behind for long."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.aws.observe import NOTHING_KEPT
from highwater.cli.explain import explanation
from highwater.cli.situation import Situation, read_situations
from highwater.core import Bounds, Dimension, Units
from highwater.core.names import TargetName
from highwater.core.scaler import Mode, ScaledPlan
from highwater.core.scaler.attention import is_full_tick
from highwater.core.scaler.metrics import ScalerMetric
from highwater.handlers.scaler.gather import RunOutcome
from highwater.handlers.scaler.run import Options
from tests.handlers.test_observe import NoLogs
from tests.memory_aws.stage import PLAN, Stage
from tests.memory_aws.wire import Call, Fault, at, each, go_through, refusal

MINUTE = timedelta(minutes=1)
WRITE = TargetName("orders", None, Dimension.WRITE)
PLANNED = Bounds(50, 400)


class _KilledError(BaseException):
    """The run ends here: nothing after this call is carried out."""


def _late(mode: Mode = Mode.FLOOR) -> Stage:
    """A table at 300 write units of which 50 are used, in the minute in which capacity is lowered."""
    stage = Stage()
    stage.table("orders", mode=mode, units=(7, 300), floor=50 if mode is Mode.FLOOR else None)
    stage.consume(WRITE, 50)
    stage.wait_for_minute(58)
    return stage


def _count(outcome: RunOutcome, name: ScalerMetric) -> int:
    return outcome.counts.get(name, 0)


def test_tick_lowers_capacity_to_the_floor_and_leaves_the_plans_ceiling() -> None:
    stage = _late()
    outcome = stage.tick()
    set_by_run = [(each["MinCapacity"], each["MaxCapacity"]) for each in stage.wire.bodies("RegisterScalableTarget")]
    assert set_by_run == [(50, 50), (50, 400)]
    assert stage.capacity("orders") == Units(7, 50)
    assert stage.bounds(WRITE) == PLANNED
    assert (_count(outcome, ScalerMetric.CAPACITIES_SET), _count(outcome, ScalerMetric.FLOORS_SET)) == (1, 1)
    assert [(each["target"], each["granted"], each["lowered_to"]) for each in outcome.decisions] == [
        ("table write", 50, 50)
    ]
    # nothing is left to lower or to heal
    stage.wire.reset()
    stage.advance(MINUTE)
    stage.tick()
    assert stage.changes() == []


def test_floor_that_is_raised_does_not_wait_until_another_targets_capacity_is_lowered() -> None:
    stage = Stage()
    read = TargetName("orders", None, Dimension.READ)
    # the reads, which come first everywhere else, are to be lowered; the floor of the writes was taken down by hand
    stage.table("orders", units=(300, 12), floor=3)
    stage.consume(read, 50)
    stage.wait_for_minute(58)
    stage.tick()
    assert stage.capacity("orders") == Units(50, 12)
    asked = [each["ScalableDimension"] for each in stage.wire.bodies("RegisterScalableTarget")]
    assert asked == [WRITE.scalable_dimension, read.scalable_dimension, read.scalable_dimension]
    assert stage.bounds(WRITE) == Bounds(12, 400)


def test_explain_says_what_the_tick_will_lower() -> None:
    stage = _late()
    scaled = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=PLAN)
    found = read_situations(scaled, stage.region_of(None), NoLogs(), NOTHING_KEPT)
    (write,) = (each for each in found if isinstance(each, Situation) and each.target.key == (None, Dimension.WRITE))
    lines = explanation(write)
    assert "the scaler's next run keeps 50" in lines
    assert "the scaler's next run lowers the capacity from 300 to 50, before the next hour is billed" in lines


def test_dry_run_lowers_nothing_and_says_what_it_would() -> None:
    stage = _late()
    outcome = stage.serve({"highwater": "tick"}, options=Options(dry_run=True))
    assert stage.capacity("orders") == Units(7, 300)
    assert [(each["lowered_to"], each["dry_run"]) for each in outcome.decisions] == [(50, True)]


def test_decrease_that_dynamodb_refuses_changes_nothing_and_the_ceiling_is_the_plans() -> None:
    stage = _late()
    for units in (299, 298, 297, 296):
        stage.provision("orders", Units(7, units))
    stage.tick()
    assert stage.capacity("orders") == Units(7, 296)
    assert stage.bounds(WRITE) == PLANNED


@pytest.mark.parametrize("mode", [Mode.FLOOR, Mode.DIRECT])
@given(lateness=st.lists(st.integers(0, 18), min_size=8, max_size=8))
def test_each_hour_is_lowered_in_however_many_seconds_late_runs_begin(mode: Mode, lateness: list[int]) -> None:
    stage = _late(mode)
    begun = stage.now()
    for hour, seconds in enumerate(lateness):
        stage.advance(begun + hour * 60 * MINUTE + timedelta(seconds=seconds) - stage.now())
        outcome = stage.tick()
        assert stage.capacity("orders").write < 60, (hour, outcome.notes)
        assert stage.now() - begun < hour * 60 * MINUTE + timedelta(seconds=25), "the hour is not left"
        stage.advance(10 * MINUTE)
        stage.provision("orders", Units(7, 300))


def test_bounds_that_a_deploy_sets_while_a_run_waits_for_a_decrease_stay() -> None:
    stage = _late()
    begun = stage.now()
    for hour in range(5):
        # the last run before was 18 seconds later in its hour, so this one has to wait
        late = timedelta(seconds=0 if hour == 4 else 18)
        stage.advance(begun + hour * 60 * MINUTE + late - stage.now())
        if hour < 4:
            stage.tick()
            stage.advance(10 * MINUTE)
            stage.provision("orders", Units(7, 300))

    def deploy(call: Call) -> Any:
        stage.register(WRITE, 50, 800)
        return call.send()

    # the run reads all targets in two calls, and this one once more after it has waited
    stage.wire.fault = at(3, deploy, "DescribeScalableTargets")
    outcome = stage.tick()
    assert stage.now() - begun >= 4 * 60 * MINUTE + timedelta(seconds=18)
    assert (stage.bounds(WRITE), stage.capacity("orders")) == (Bounds(50, 800), Units(7, 300))
    assert outcome.notes == [f"{WRITE}: its bounds were changed meanwhile, so the next run decides"]


def test_run_for_a_job_does_not_wait_for_a_decrease() -> None:
    stage = _late(Mode.DIRECT)
    for units in (299, 298, 297, 296):
        stage.provision("orders", Units(7, units))
    stage.advance(60 * MINUTE - timedelta(seconds=2))
    began = stage.now()
    stage.serve({"highwater": "boost", "tables": ["orders"]})
    assert (stage.capacity("orders"), stage.now()) == (Units(7, 296), began)


def _tick(stage: Stage) -> RunOutcome:
    stage.advance(MINUTE)
    return stage.tick()


def _alarm(stage: Stage) -> RunOutcome:
    return stage.alarm(WRITE)


def _deploy(stage: Stage) -> RunOutcome:
    return stage.run("orders")


def _boost(stage: Stage) -> RunOutcome:
    return stage.serve({"highwater": "boost", "tables": ["orders"]})


def _calls_of_a_tick() -> int:
    stage = _late()
    stage.tick()
    return len(stage.wire.calls)


def _killed(*, after: bool) -> Fault:
    def kill(call: Call) -> Any:
        if after:
            call.send()
        raise _KilledError

    return kill


@pytest.mark.parametrize("healer", [_tick, _alarm, _deploy, _boost], ids=["tick", "alarm", "deploy", "boost"])
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after it"])
def test_run_that_is_killed_at_any_call_is_healed_by_the_next(
    healer: Callable[[Stage], RunOutcome], *, after: bool
) -> None:
    left_low = 0
    for number in range(1, _calls_of_a_tick() + 1):
        stage = _late()
        stage.wire.fault = _everything_from(number, _killed(after=after))
        with pytest.raises(_KilledError):
            stage.tick()
        left_low += stage.bounds(WRITE).max == 50
        stage.wire.reset()
        healer(stage)
        assert stage.bounds(WRITE) == PLANNED, f"killed at call {number}"
    assert left_low, "no kill came between the two calls"


def _everything_from(number: int, first: Fault) -> Fault:
    """*first* at that call; of later ones, which other threads make, none is carried out."""

    def fault(call: Call) -> Any:
        if call.number < number:
            return None
        if call.number == number:
            return first(call)
        raise _KilledError

    return fault


def test_tick_between_full_ticks_finds_a_ceiling_that_was_left_low() -> None:
    stage = _late()
    stage.register(WRITE, 50, 50)
    stage.advance(MINUTE)
    assert not is_full_tick("orders", int(stage.now().timestamp()) // 60)
    stage.tick()
    assert stage.bounds(WRITE) == PLANNED


def test_ceilings_that_cannot_be_read_are_left_to_the_full_tick() -> None:
    stage = _late()
    stage.register(WRITE, 50, 50)
    stage.advance(MINUTE)
    stage.wire.fault = each(refusal("500", "it rests", 500), "DescribeScalableTargets")
    outcome = stage.tick()
    assert len(outcome.notes) == 1
    assert outcome.notes[0].startswith("ceilings could not be compared with the plans: ClientError: ")
    stage.wire.fault = go_through
    stage.advance(4 * MINUTE)
    stage.tick()
    assert stage.bounds(WRITE) == PLANNED


def test_floor_that_another_run_raises_meanwhile_stays() -> None:
    stage = _late()

    def raised(call: Call) -> Any:
        stage.register(WRITE, 333, 400)
        return call.send()

    # the third reading is right before the target is changed, after those of ceilings and of bounds
    stage.wire.fault = at(3, raised, "DescribeScalableTargets")
    outcome = stage.tick()
    assert outcome.notes == [f"{WRITE}: the floor stays at 333, which another run has just set"]
    assert stage.bounds(WRITE) == Bounds(333, 400)
    assert stage.capacity("orders").write == 333


def test_table_in_direct_mode_is_not_lowered_through_a_ceiling() -> None:
    stage = _late(Mode.DIRECT)
    stage.tick()
    assert stage.changes().count("RegisterScalableTarget") == 0
    assert stage.capacity("orders") == Units(7, 50)
