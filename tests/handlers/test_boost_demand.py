"""Boosts and demand: capacity that the scaler only holds refuses no boost, and the ceiling is promised once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.core import Capacity, Dimension
from highwater.core.boosts import boosts_at
from highwater.core.scaler import Mode
from highwater.core.scaler.demand import DemandAlone
from highwater.handlers.coordinator.coordinator import Call
from highwater.handlers.coordinator.refusals import RefusedError
from highwater.handlers.scaler.gather import RunOutcome
from tests.core.examples import examples
from tests.handlers.boost_world import LOADER, ORDERS, PLAN, SECOND, World
from tests.memory_aws.clients import LATE_SECONDS
from tests.memory_aws.stage import MINUTE
from tests.memory_aws.wire import each, refusal

CEILING, LEAST = 1_000, 12
TIGHT = replace(PLAN, write=Capacity.autoscaled(min_capacity=LEAST, max_capacity=CEILING))
WRITE = (None, Dimension.WRITE)
WAYS = "for more, raise the ceiling or set max_with_boosts="
MODES = pytest.mark.parametrize("mode", [Mode.FLOOR, Mode.DIRECT])


@dataclass
class Table:
    """A table with a scaler and a coordinator, and its consumption minute by minute."""

    mode: Mode
    world: World = field(init=False)

    def __post_init__(self) -> None:
        self.world = World(self.mode, TIGHT)
        self.world.stage.consume(ORDERS, 0)
        self.world.stage.wait_for_minute(45)

    @property
    def now(self) -> datetime:
        return self.world.stage.now()

    @property
    def units(self) -> int:
        """The floor, or in DIRECT mode the capacity."""
        if self.mode is Mode.DIRECT:
            return self.world.stage.capacity("orders").write
        return self.world.floor

    def pass_minutes(self, minutes: int, units: int, *, runs: bool = True) -> None:
        """Consume *units* a second in each of the next minutes, at whose end the scaler runs."""
        for _ in range(minutes):
            minute = self.world.stage.account.now // 60
            self.world.stage.account.surges.setdefault(ORDERS, {})[minute] = units * 60
            self.world.stage.advance(MINUTE)
            if runs:
                self.world.turn()

    def pass_surge(self) -> None:
        """Consume the ceiling for twenty minutes, then nothing; at 11:50 the floor is still held."""
        self.pass_minutes(20, CEILING)
        self.pass_minutes(45, 0)
        assert (f"{self.now:%H:%M}", self.units) == ("11:50", CEILING)

    def boost(self, **members: Any) -> tuple[int, str]:
        """Begin a boost; the units that are granted, and why these are not all."""
        (target,) = self.world.ask(**members)["targets"]
        return target["units"], " | ".join(limit["sentence"] for limit in target["limits"])

    def calls_of_boost(self, **members: Any) -> tuple[int, list[str]]:
        """Begin a boost without the turn that follows; the units that are granted, and the calls made for them."""
        self.world.stage.wire.reset()
        coordinator = replace(self.world.coordinator(), turn=lambda _: RunOutcome())
        answer = coordinator.serve(Call(LOADER, "begin", {"table": "orders", "minutes": 10} | members))
        return answer["targets"][0]["units"], self.world.stage.wire.operations


@MODES
def test_boost_is_granted_from_capacity_that_is_only_held_and_stays_when_that_is_lowered(mode: Mode) -> None:
    table = Table(mode)
    table.pass_surge()
    assert table.boost(write=200, minutes=40) == (200, "")
    assert table.units == CEILING, "the boost is inside the capacity that is held"
    assert table.world.ask("status")["is_ready"]
    assert table.boost(id="nightly-2", write=900, minutes=40)[0] == CEILING - LEAST - 200
    table.world.ask("release", id="nightly-2")
    table.pass_minutes(7, 0)
    assert table.units == CEILING
    table.pass_minutes(2, 0)
    assert table.units == LEAST + 200
    table.world.ask("release")
    table.pass_minutes(60, 0)
    assert table.units == LEAST


@MODES
def test_boost_is_refused_for_the_demand_of_the_last_half_hour(mode: Mode) -> None:
    table = Table(mode)
    table.pass_minutes(10, CEILING)
    table.pass_minutes(31, 600)
    units, why = table.boost(write=200)
    left = "the plan's ceiling of 1,000 units/s at 2027-03-04 11:26 UTC leaves 0 units/s"
    assert (units, why) == (0, f"{left}; more may be free from 2027-03-04 11:27 UTC; {WAYS}")
    table.pass_minutes(1, 600)
    # the surge counts no longer, and was a jump: 600 units of consumption get headroom
    assert table.boost(write=200)[0] == CEILING - 858


def test_throttled_units_are_part_of_demand() -> None:
    table = Table(Mode.FLOOR)
    table.pass_surge()
    account, minute = table.world.stage.account, table.world.stage.account.now // 60 - 9
    account.surges[ORDERS][minute] = 60 * 300
    # requests of 98 units
    account.throttles[ORDERS] = {minute: 90}
    assert table.boost(write=900)[0] == CEILING - 300 - 90 * 98 // 60


def test_boost_is_granted_by_the_demand_of_a_surge_that_the_scaler_has_not_followed_yet() -> None:
    table = Table(Mode.FLOOR)
    table.pass_minutes(12, 70)
    table.pass_minutes(12, 560, runs=False)
    assert table.units == 100
    assert table.boost(write=901)[0] == CEILING - 800


def test_coordinator_and_turn_know_the_same_demand() -> None:
    """Of spikes, which the turn leaves to the burst bucket once that has served some."""
    table = Table(Mode.FLOOR)
    table.world.stage.register(ORDERS, 200, CEILING)
    for _ in range(12):
        table.pass_minutes(1, 500, runs=False)
        table.pass_minutes(19, 60, runs=False)
    table.world.turn()
    units, calls = table.calls_of_boost(write=CEILING, id="nightly-1")
    assert calls.count("GetMetricData") == 3, "the last day as well, by which a turn believes in burst"
    table.world.turn()
    (recorded,) = table.world.leases.read("orders").alone.values()
    assert recorded.units == CEILING - units
    assert LEAST < recorded.units < 500


def test_capacity_that_is_held_counts_where_demand_is_not_known() -> None:
    table = Table(Mode.FLOOR)
    table.pass_surge()
    left = "the plan's ceiling of 1,000 units/s at 2027-03-04 11:50 UTC leaves 0 units/s"
    refused = (0, f"{left}; more may be free from 2027-03-04 11:58 UTC; {WAYS}")
    wire = table.world.stage.wire
    wire.fault = each(refusal("InternalFailure", "try again", 500), "GetMetricData")
    assert table.boost(write=200) == refused
    table.world.stage.advance(30 * SECOND)
    assert table.boost(write=200) == refused
    table.world.stage.advance(30 * SECOND)
    wire.fault = each(lambda _: {"MetricDataResults": []}, "GetMetricData")
    assert table.boost(write=200)[0] == 0
    wire.reset()
    assert table.boost(write=200)[0] == 0, "the answer is cached for a minute"
    table.world.stage.advance(MINUTE)
    assert table.boost(write=200)[0] == 200
    table.world.ask("release")
    wire.fault = each(refusal("InternalFailure", "try again", 500), "GetMetricData")
    table.pass_minutes(6, 0, runs=False)
    # a run of this minute may lower the floor
    assert "; more may be free from 2027-03-04 11:59 UTC; " in table.boost(id="nightly-2", write=900)[1]


def test_coordinator_reads_demand_only_where_held_capacity_would_reduce_the_grant() -> None:
    table = Table(Mode.FLOOR)
    table.pass_minutes(20, 560)
    table.pass_minutes(45, 0)
    assert table.units == 800, "with the headroom of a jump"

    def boost(id: str, **members: Any) -> tuple[int, int]:
        units, calls = table.calls_of_boost(id=id, **members)
        return units, calls.count("GetMetricData")

    assert boost("fits-now", write=200) == (200, 0)
    assert boost("reads-now", write=201) == (201, 2), "consumption and throttles, of this target alone"
    asked = [query for body in table.world.stage.wire.bodies("GetMetricData") for query in body["MetricDataQueries"]]
    named = [query["MetricStat"]["Metric"] for query in asked]
    assert [metric["MetricName"] for metric in named] == ["ConsumedWriteCapacityUnits", "WriteThrottleEvents"]
    table.world.stage.advance(59 * SECOND)
    assert boost("in-cache", write=100) == (100, 0)
    table.world.stage.advance(SECOND)
    assert boost("the-rest", write=900) == (CEILING - LEAST - 501, 2)
    table.world.stage.advance(MINUTE)
    assert boost("too-late", write=900) == (0, 0), "other boosts reduce it, and not demand"
    assert boost("in-total", write_total=CEILING) == (CEILING, 0), "nor is demand added to a total"


def test_turn_records_demand_while_a_target_has_a_boost_and_the_coordinator_relies_on_it() -> None:
    table = Table(Mode.FLOOR)
    table.pass_surge()
    assert table.world.leases.read("orders").alone == {}
    table.boost(write=100, minutes=3)
    known = table.world.leases.read("orders")
    assert (known.alone, known.boosted, known.demands) == ({WRITE: DemandAlone(0, 30)}, {}, {})
    units, calls = table.calls_of_boost(id="nightly-2", write=200)
    assert (units, calls.count("GetMetricData")) == (200, 0)
    table.world.stage.advance(MINUTE)
    assert table.calls_of_boost(id="nightly-3", write=300)[1].count("GetMetricData") == 0
    table.world.stage.advance(61 * SECOND)
    assert table.world.leases.read("orders").demand_alone(WRITE, table.now) is None, "it is too old"
    for number in (2, 3):
        table.world.ask("release", id=f"nightly-{number}")
    table.pass_minutes(1, 0)
    recorded = table.world.leases.read("orders").noted_at
    table.pass_minutes(4, 0)
    assert table.world.leases.read("orders").noted_at == recorded, "nothing is recorded after the boosts"


@MODES
@pytest.mark.parametrize("is_surge", [False, True], ids=["steady demand", "a surge that is over"])
@pytest.mark.parametrize("runs", [0, 1], ids=["request", "run and request"])
def test_ceiling_is_promised_once_between_the_record_and_the_raise(mode: Mode, is_surge: bool, runs: int) -> None:
    table = Table(mode)
    if is_surge:
        table.pass_minutes(15, 600)
        table.pass_minutes(45, 0)
        first, demand = 700, LEAST
    else:
        table.pass_minutes(80, 300)
        first, demand = 400, 429  # with the headroom of a jump
    held = table.units
    found: list[int] = []

    def meet(_: object) -> None:
        if not found:
            found.append(0)
            recorded = sum(table.world.leases.read("orders").boosted.values())
            assert (table.units, recorded) == (held, min(first, CEILING - held))
            for _ in range(runs):
                table.world.turn()
            found[0] = table.boost(id="nightly-2", write=900)[0]

    table.world.stage.wire.fault = each(meet, "RegisterScalableTarget", "UpdateTable")
    assert table.boost(write=first)[0] == first
    assert found == [CEILING - demand - first]


# --- stories


@dataclass
class Story:
    """Jobs, runs and demand in turn; each grant is compared with the demand that was known when it was made."""

    table: Table
    ran_at: datetime = field(init=False)
    is_crowded: bool = False

    def __post_init__(self) -> None:
        self.ran_at = self.table.now

    def peak(self, at: datetime, minutes: int) -> int:
        """The highest demand of the last minutes that CloudWatch had at that time, in units per second."""
        account = self.table.world.stage.account
        newest = (int(at.timestamp()) - LATE_SECONDS) // 60
        consumed = account.surges.get(ORDERS, {})
        return max(-(-consumed.get(minute, 0) // 60) for minute in range(newest - minutes + 1, newest + 1))

    def run(self) -> None:
        """Run the scaler; what live boosts have is there afterwards, whatever demand is."""
        world = self.table.world
        self.ran_at = self.table.now
        world.turn()
        live = boosts_at(world.leases.read("orders").leases, WRITE, self.table.now)
        assert self.table.units >= min(LEAST + live.added, CEILING)

    def begin(self, number: int, units: int, minutes: int, ahead: int) -> None:
        """Ask for a boost; all that is promised and the demand that is known fit below the ceiling."""
        world, id = self.table.world, f"nightly-{number}"
        if any(lease.id == id for lease in world.leases.read("orders").leases):
            return
        at = (self.table.now + ahead * MINUTE).isoformat() if ahead else None
        # the record is of the last run, and an answer of CloudWatch up to a minute old
        times = [self.table.now, self.table.now - MINUTE, self.ran_at]
        answer = world.ask(id=id, write=units, minutes=minutes, at=at)
        granted = answer["targets"][0]["units"]
        start, end = (datetime.fromisoformat(answer[name]) for name in ("start", "end"))
        leases = world.leases.read("orders").leases
        edges = {start, *(each for lease in leases for each in (lease.start, lease.ends) if start <= each < end)}
        promised = max(boosts_at(leases, WRITE, edge).added for edge in edges)
        if granted:
            assert promised + max(LEAST, min(self.peak(time, 30) for time in times)) <= CEILING
        if granted < units and not self.is_crowded:
            # headroom is 30 percent, and spikes of the last 75 minutes are demand too
            most = max(-(-self.peak(time, 77) * 10 // 7) for time in times)
            assert promised >= CEILING - max(LEAST, most), "refused for what is held"

    def renew(self, number: int, minutes: int) -> None:
        with suppress(RefusedError):
            self.table.world.ask("renew", id=f"nightly-{number}", minutes=minutes)

    def release(self, number: int) -> None:
        self.table.world.ask("release", id=f"nightly-{number}")

    def call(self, name: str, *given: int) -> None:
        getattr(self, name)(*given)

    def call_with(self, call: tuple[Any, ...], place: str | int, other: tuple[Any, ...]) -> None:
        """Make a call, and another one before its first raise, or before one of its operations on the leases."""
        world, left = self.table.world, 1 if isinstance(place, str) else place
        broken: list[AssertionError] = []

        def meet(_: object) -> None:
            nonlocal left
            left -= 1
            try:
                if left == 0:
                    self.call(*other)
            except AssertionError as error:
                # a run goes on with other tables where one fails
                broken.append(error)

        if isinstance(place, str):
            world.stage.wire.fault = each(meet, "RegisterScalableTarget", "UpdateTable")
        else:
            world.dynamodb.before = meet
        self.is_crowded = True
        self.call(*call)
        self.is_crowded = False
        world.stage.wire.reset()
        world.dynamodb.before = lambda _: None
        assert broken == []


def _calls(first: int) -> st.SearchStrategy[tuple[Any, ...]]:
    numbers = st.integers(first, first + 4)
    return st.one_of(
        st.tuples(
            st.just("begin"),
            numbers,
            st.sampled_from([1, 190, 400, 900]),
            st.sampled_from([2, 9, 30]),
            st.sampled_from([0, 0, 20]),
        ),
        st.tuples(st.just("renew"), numbers, st.sampled_from([2, 9, 30])),
        st.tuples(st.just("release"), numbers),
        st.tuples(st.just("run")),
    )


# Demand goes on, or is another for a quarter of an hour or longer: the burst bucket and regret are for spikes.
_DEMAND = st.one_of(
    st.tuples(st.sampled_from([0, 1, 3]), st.none()),
    st.tuples(st.sampled_from([15, 40]), st.sampled_from([0, 0, 300, 1_000])),
)
# how many minutes at which demand, whether the scaler runs in each, a call, and another call in the middle of that
_PARTS = st.tuples(
    _DEMAND,
    st.booleans(),
    _calls(1),
    st.none() | st.tuples(st.sampled_from(["raise", *range(1, 9)]), _calls(11)),
)


@settings(max_examples=examples(160))
@given(st.sampled_from([Mode.FLOOR, Mode.DIRECT]), st.lists(_PARTS, min_size=3, max_size=14))
def test_promises_and_demand_stay_below_the_ceiling_whatever_runs_beside_a_request(mode: Mode, parts: Any) -> None:
    story, demand = Story(Table(mode)), 0
    for (minutes, units), runs, call, other in parts:
        demand = demand if units is None else units
        for _ in range(minutes):
            story.table.pass_minutes(1, demand, runs=False)
            if runs:
                story.run()
        if other is None:
            story.call(*call)
        else:
            story.call_with(call, *other)
    story.table.world.stage.advance(timedelta(days=2))
    story.table.world.stage.wait_for_minute(50)
    story.table.pass_minutes(12, 0)
    assert story.table.units == LEAST, "nothing stays of any boost"
