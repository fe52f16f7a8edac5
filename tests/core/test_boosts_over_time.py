"""The law of boosts over whole stories: after every turn the floor is what a model says of the leases that are live.

Jobs begin, renew, release and crash; reports come late, twice and in another order; the coordinator restarts with what
its table holds; clocks of callers are wrong. The target is idle, so that only plan and leases say what its floor should
be. In half of the stories windows open and close; in the others CloudWatch has no datapoint, on which the scaler lowers
nothing that demand may need, so that it has to know which part of a floor was a boost's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from highwater.core import Bounds, Capacity, Dimension, Plan, Units, Window
from highwater.core.boosts import Lease
from highwater.core.scaler import Clock, Mode, Observation, ScaledPlan, SeenResource, SeenTable, SeenTarget, review
from highwater.core.schedule.bounds import bounds_at
from tests.core.examples import examples

STORIES = int(os.environ.get("HIGHWATER_BOOST_STORIES", examples(100)))
STEPS = 250
START = datetime(2027, 3, 4, 0, 0, 10, tzinfo=UTC)
CEILING = 6_000
EMPTY = Observation.of(0, (), ())
PLAIN = Plan(read=Capacity.fixed(5), write=Capacity.autoscaled(min_capacity=40, max_capacity=CEILING))
WINDOWS = replace(
    PLAIN,
    windows=(
        Window.daily("load", start="03:00", end="04:10", timezone="UTC", write_min=700),
        Window.daily("sale", start="11:00", end="11:45", timezone="UTC", write_min=90, write_max=2_000),
    ),
)


@dataclass
class Job:
    """What a job knows of its lease, and the model with it: it is live until its end or its release."""

    units: int
    is_total: bool
    start: datetime
    end: datetime
    released: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        return self.start <= now < self.end and (self.released is None or now < self.released)


@dataclass
class World:
    """The lease table, the reports that are under way to it, and one target's floor."""

    random: Random
    plan: Plan
    is_told: bool
    now: datetime = START
    jobs: dict[str, Job] = field(default_factory=dict)
    table: dict[str, Lease] = field(default_factory=dict)
    under_way: list[Lease] = field(default_factory=list)
    sent: list[Lease] = field(default_factory=list)
    floor: int = 40
    boosted: int = 0

    def report(self, name: str) -> None:
        """Send what a job knows; it arrives at some time, perhaps twice."""
        job = self.jobs[name]
        sent = Lease(
            id=name,
            table="orders",
            index=None,
            dimension=Dimension.WRITE,
            units=job.units,
            is_total=job.is_total,
            start=job.start,
            end=job.end,
            owner="job",
            released=job.released,
        )
        self.under_way += [sent] * self.random.choice([1, 1, 1, 2])
        self.sent.append(sent)

    def deliver(self, count: int) -> None:
        """Let some reports arrive, in any order."""
        self.random.shuffle(self.under_way)
        for _ in range(min(count, len(self.under_way))):
            lease = self.under_way.pop()
            known = self.table.get(lease.id)
            if known is None:
                self.table[lease.id] = lease
                continue
            latest = known.renewed(lease.end)
            self.table[lease.id] = latest if lease.released is None else latest.released_at(lease.released)

    def turn(self) -> int:
        """One turn of the scaler; returns the floor that it sets."""
        registered = Bounds(self.floor, bounds_at(self.plan.targets()[1], self.now).max)
        seen = SeenTable(
            {None: SeenResource(provisioned=Units(5, self.floor))},
            {(None, Dimension.WRITE): SeenTarget(registered=registered, observation=self.observed())},
            tuple(self.table.values()),
            {(None, Dimension.WRITE): self.boosted},
        )
        scaled = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=self.plan)
        (decision,) = review(scaled, seen, Clock(0, self.now)).decisions
        self.floor, self.boosted = decision.granted, decision.boosted
        return decision.granted

    def observed(self) -> Observation:
        if not self.is_told:
            return EMPTY
        newest = (int(self.now.timestamp()) - 160) // 60 - 1
        return Observation.of(newest, (0,) * 500, (0,) * 500)

    def expected(self) -> int:
        """The model's floor."""
        bounds = bounds_at(self.plan.targets()[1], self.now)
        live = [job for job in self.jobs.values() if job.is_live(self.now)]
        added = bounds.min + sum(job.units for job in live if not job.is_total)
        total = max([job.units for job in live if job.is_total], default=0)
        return min(max(added, total), bounds.max)


def _begin(world: World) -> None:
    random = world.random
    # a job's clock may be wrong by some minutes, and a boost may be booked ahead
    start = world.now + timedelta(minutes=random.choice([-3, 0, 0, 0, 2, 45]))
    end = start + timedelta(minutes=random.choice([1, 10, 30, 200]))
    name = f"job-{len(world.jobs)}"
    world.jobs[name] = Job(random.choice([1, 60, 800, 5_000]), random.random() < 0.25, start, end)
    world.report(name)


def _renew(world: World) -> None:
    live = [name for name, job in world.jobs.items() if job.is_live(world.now)]
    if live:
        name = world.random.choice(live)
        job = world.jobs[name]
        job.end = max(job.end, min(world.now + timedelta(minutes=20), job.start + timedelta(days=1)))
        world.report(name)


def _release(world: World) -> None:
    open_jobs = [name for name, job in world.jobs.items() if job.released is None and world.now < job.end]
    if open_jobs:
        name = world.random.choice(open_jobs)
        world.jobs[name].released = world.now
        world.report(name)


def _restart(world: World) -> None:
    """The coordinator forgets all but its table, which is read in another order."""
    rows = list(world.table.items())
    world.random.shuffle(rows)
    world.table = dict(rows)
    if world.sent and world.random.random() < 0.5:
        # a queue delivers again what arrived long ago
        world.under_way.append(world.random.choice(world.sent))


ACTIONS = (_begin, _begin, _renew, _release, _restart)


@pytest.mark.parametrize("part", range(4))
def test_floor_is_the_models_after_every_turn(part: int) -> None:
    """Crashes need no action: a job that is never heard of again ends by itself."""
    turns = highest = 0
    for seed in range(part, STORIES, 4):
        is_told = seed // 4 % 2 == 0
        world = World(Random(seed), WINDOWS if is_told else PLAIN, is_told)  # noqa: S311 - for variety
        for _ in range(STEPS):
            world.random.choice(ACTIONS)(world)
            world.deliver(world.random.randint(0, 3))
            world.now += timedelta(seconds=world.random.choice([0, 20, 60, 60, 300, 900]))
            if world.random.random() < 0.3:
                world.turn()
            # once all reports have arrived, the floor is the model's at the next turn
            if world.random.random() < 0.5:
                world.deliver(len(world.under_way))
                expected = world.expected()
                assert world.turn() == expected, f"story {seed}, {world.now}"
                assert world.turn() == expected, "deciding again changes nothing"
                turns, highest = turns + 1, max(highest, expected)
    assert turns > 100
    assert highest == CEILING, "some story reached the ceiling"
