"""The scaler's laws over whole stories: surges, silence, hand edits, windows, boosts, hours and days that pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from highwater.core import DecreaseBudget, Dimension
from highwater.core.scaler import (
    Decision,
    Mode,
    Observation,
    ScalerSettings,
    TargetState,
    decide,
    in_one_call,
    wanted_units,
)
from highwater.core.scaler.facts import MISSING_AFTER
from tests.core.examples import examples

_START = datetime(2027, 3, 4, 21, 40, 20, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
_QUOTA = 5_000
# of what is asked for, in units per second
rates = st.sampled_from([0, 3, 40, 41, 160, 900, 4_000, 20_000])


class _World:
    """One target: what is asked of it each minute, what CloudWatch tells of it, and what is there."""

    def __init__(self, dimension: Dimension, base: int, ceiling: int) -> None:
        self.dimension = dimension
        self.base, self.ceiling, self.window, self.boost = base, ceiling, 0, 0
        self.current = base
        self.consumed: list[int | None] = []
        self.throttled: list[int] = []
        self.is_told = True

    @property
    def baseline(self) -> int:
        return min(max(self.base, self.window), self.ceiling)

    def live(self, rate: int) -> None:
        """A minute of that rate."""
        asked, held = rate * 60, self.current * 60
        self.consumed.append(min(asked, held) if self.is_told else None)
        self.throttled.append(max(0, asked - held) if self.is_told else 0)

    def state(self, budget: DecreaseBudget) -> TargetState:
        return TargetState(
            index=None,
            dimension=self.dimension,
            current=self.current,
            baseline=self.baseline,
            ceiling=self.ceiling,
            boosts=self.boost,
            quota_units=_QUOTA,
            budget=budget,
        )

    def seen(self, now: datetime) -> Observation:
        """What has come to CloudWatch by now; the newest minutes have not."""
        second = int(now.timestamp())
        # a minute's datapoint is there so long after its end
        late = -(-(150 - second % 60) // 60)
        shown = self.consumed[: max(0, len(self.consumed) - late)]
        rest = len(self.consumed) - len(shown)
        return Observation.of(second // 60 - 1, (*shown, *[None] * rest), (*self.throttled[: len(shown)], *[0] * rest))


class _Scaled(RuleBasedStateMachine):
    """What both modes share; time goes on by minutes, and the scaler runs whenever it likes."""

    settings_of_mode = ScalerSettings()

    @initialize(base=st.integers(1, 60), room=st.integers(0, 6_000))
    def begin(self, base: int, room: int) -> None:
        self.now = _START
        self.world = _World(Dimension.WRITE, base, base + room)
        self.budget = DecreaseBudget()
        self.decreased: list[datetime] = []
        self.decision: Decision | None = None
        self.before = 0

    @rule(rate=rates, minutes=st.integers(1, 50))
    def traffic(self, rate: int, minutes: int) -> None:
        for _ in range(minutes):
            self.world.live(rate)
            self.now += _MINUTE
        self.decision = None

    @rule(is_told=st.booleans())
    def cloudwatch_goes_or_comes(self, is_told: bool) -> None:
        self.world.is_told = is_told

    @rule(units=st.integers(0, 3_000))
    def window(self, units: int) -> None:
        self.world.window = units
        self.decision = None

    @rule(units=st.sampled_from([0, 0, 25, 700]))
    def boost(self, units: int) -> None:
        self.world.boost = units
        self.decision = None

    @rule(units=st.integers(1, 8_000))
    def hand_edit(self, units: int) -> None:
        if units < self.world.current:
            # a decrease by hand counts like any other
            if not self.budget.allows(self.now):
                return
            self.count_decrease()
        self.world.current = units
        self.decision = None

    @rule()
    def run_scaler(self) -> None:
        world = self.world
        seen = world.seen(self.now)
        self.before = world.current
        self.decision = decide(self.settings_of_mode, world.state(self.budget), seen, now=self.now)
        self.check(self.decision, seen)
        if self.decision.granted < world.current:
            self.count_decrease()
        world.current = self.decision.granted
        again = decide(self.settings_of_mode, world.state(self.budget), seen, now=self.now)
        assert again.granted == world.current, "deciding again changes nothing"

    def count_decrease(self) -> None:
        if self.settings_of_mode.mode.value == "direct":
            assert self.budget.allows(self.now)
            self.budget = self.budget.after(self.now)
            self.decreased.append(self.now)

    def check(self, decision: Decision, seen: Observation) -> None:
        most = min(self.world.ceiling, _QUOTA)
        least = min(self.world.baseline, most)
        assert decision.granted >= least, "never below the plan"
        is_blind = seen.is_empty or seen.age(self.now) > MISSING_AFTER
        if is_blind and self.before - self.world.boost > self.world.baseline:
            assert decision.granted >= min(self.before - self.world.boost, most), "missing data lower nothing"

    @invariant()
    def free_decreases_and_then_one_an_hour(self) -> None:
        by_day: dict[object, list[datetime]] = {}
        for at in getattr(self, "decreased", []):
            by_day.setdefault(at.date(), []).append(at)
        for times in by_day.values():
            later = times[3:]
            assert all(b - a >= timedelta(hours=1) for a, b in pairwise(later))


class _Floor(_Scaled):
    """FLOOR mode: a floor moves as often as it likes."""

    @invariant()
    def floor_is_within_ceiling_and_quota(self) -> None:
        if getattr(self, "decision", None) is not None:
            assert 1 <= self.world.current <= min(self.world.ceiling, _QUOTA)


class _Direct(_Scaled):
    """DIRECT mode: capacity itself, with the day's decreases; reads and writes of a table go in one call."""

    settings_of_mode = ScalerSettings(mode=Mode.DIRECT)

    @rule(rate=rates)
    def run_both_dimensions(self, rate: int) -> None:
        reads = _World(Dimension.READ, 5, 4_000)
        reads.current = 900
        for _ in range(60):
            reads.live(rate)
        decisions = [
            decide(self.settings_of_mode, world.state(self.budget), world.seen(self.now), now=self.now)
            for world in (reads, self.world)
        ]
        called = wanted_units(in_one_call(decisions))
        current = {world.dimension: world.current for world in (reads, self.world)}
        raises = [d for d, units in called.items() if units > current[d]]
        lowers = [d for d, units in called.items() if units < current[d]]
        assert not (raises and lowers), "an increase and a decrease never travel in one call"

    @invariant()
    def capacity_is_within_the_quota_after_a_run_or_as_it_was(self) -> None:
        if getattr(self, "decision", None) is not None:
            assert self.world.current <= max(min(self.world.ceiling, _QUOTA), self.before)


_run = settings(max_examples=examples(150), stateful_step_count=30)
TestFloor = _Floor.TestCase
TestFloor.settings = _run
TestDirect = _Direct.TestCase
TestDirect.settings = _run
