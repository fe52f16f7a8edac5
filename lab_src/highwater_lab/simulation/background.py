"""Jobs while they run: traffic that reacts to the table, through the pacing that real jobs use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from highwater.core import Dimension
from highwater.core.pacing.brake import Brake
from highwater.core.pacing.following import Follower, Shown
from highwater.core.units import MILLIUNITS, NANOSECONDS
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.rooms import workers_of
from highwater_lab.simulation.setup import JobRun, JobSetup
from highwater_lab.simulation.table import SimulatedTable
from highwater_lab.simulation.targets import SimulatedTarget

# Where the traffic has seconds, a job looks as often as a real one; else at every minute
_LOOKS_EVERY: Final = 15
_MINUTES: Final = 5
_SECOND_MS: Final = 1_000


def look_seconds(table: SimulatedTable) -> int:
    """How often a job or a queue looks at what became of its requests."""
    return 60 if table.bin_seconds == 60 else _LOOKS_EVERY


class MinuteMeter:
    """What passed and what was refused of a target's requests since the last reading, within one minute.

    Who is refused is not decided request by request: one requester's share of what is refused is its share of what is
    asked.
    """

    def __init__(self, target: SimulatedTarget, at: int = 0) -> None:
        self._target = target
        self._served, self._refused = (0, 0) if at % 60 == 0 else self._counted()

    def split(self, at: int, own: int) -> tuple[int, int, int]:
        """Read at second *at*, for one who asked for *own* quanta: its own that passed, its own refused, others'."""
        if at % 60:
            served, refused = self._counted()
            passed, denied = served - self._served, refused - self._refused
            self._served, self._refused = served, refused
        elif at:
            # the minute is closed
            minute = at // 60 - 1
            passed = self._target.consumed[minute] - self._served
            denied = sum(self._target.throttled.get(minute, {}).values()) - self._refused
            self._served = self._refused = 0
        else:
            passed = denied = 0
        asked = passed + denied
        own = min(own, asked)
        own_passed = passed * own // asked if asked else 0
        return own_passed, own - own_passed, denied - (own - own_passed)

    def _counted(self) -> tuple[int, int]:
        return self._target.served, sum(self._target.throughput.refused.values())


class RunningJob:
    """One job: asks for what its follower and its brake let it, and asks again for what was refused.

    Args:
        job: The job.
        table: The table.
        metric_delay: Seconds until CloudWatch has a minute.
        shares_percent: Units that each unit of the table's costs a target, by target.
    """

    def __init__(
        self, job: JobSetup, table: SimulatedTable, metric_delay: int, shares_percent: Mapping[SimulatedTarget, int]
    ) -> None:
        self._job = job
        self._table = table
        self._delay = metric_delay
        self._shares = shares_percent
        self._first = next(iter(shares_percent))
        self._followers = {target: Follower(job.goal) for target in shares_percent}
        self._brake = Brake()
        self._own_minutes: dict[int, int] = {}
        self._period = look_seconds(table)
        self._bins = len(self._first.rates or ())
        self._meter: MinuteMeter | None = None
        self._workers = workers_of(job.workers) if job.workers > 1 else None
        # quanta that were asked for since the last look, and the most in a second so far
        self._asked = self._most = 0
        self._served = self._refused = self._others_refused = 0
        self._end: int | None = None
        self._full_at: int | None = None
        self._start = max(int(job.at.timestamp()) - table.base, 0)
        self._start = -(-self._start // self._period) * self._period
        table.at(self._start, self._look)

    def result(self) -> JobRun:
        """What became of it."""
        return JobRun(
            self._job,
            self._start,
            self._end,
            self._full_at,
            self._served / QUANTA_PER_UNIT,
            self._refused / QUANTA_PER_UNIT,
            self._others_refused / QUANTA_PER_UNIT,
            -(-self._most // QUANTA_PER_UNIT),
        )

    def _look(self, at: int) -> None:
        refused = self._account(at)
        left = self._job.units * QUANTA_PER_UNIT - self._served
        if left <= 0:
            self._end = at
            return
        most = min(self._decide(at, is_refused=refused), -(-left // self._period))
        seconds = self._table.bin_seconds
        first = at // seconds
        end = min(first + self._period // seconds, self._bins)
        for number in range(first, end):
            own = self._own(number * seconds, seconds, most)
            self._asked += own * seconds
            for target, share in self._shares.items():
                assert target.rates is not None  # noqa: S101 - the table gave it some
                # of several jobs each adds its own
                target.rates[number] += own * share // 100
        if end < self._bins:
            self._table.at(at + self._period, self._look)

    def _own(self, at: int, seconds: int, most: int) -> int:
        """Quanta per second from *at* on, for so many seconds: *most*, or what the workers may use of it."""
        used = [most]
        if self._workers is not None:
            goal = self._job.goal.rate_at(self._first.throughput.units)
            milliunits = (
                self._workers.may_use((self._table.base + second) * _SECOND_MS, goal)
                for second in range(at, at + seconds)
            )
            used = [min(most, each * QUANTA_PER_UNIT // MILLIUNITS) for each in milliunits]
        self._most = max(self._most, *used)
        return sum(used) // len(used)

    def _decide(self, at: int, *, is_refused: bool) -> int:
        """Quanta per second from now on."""
        now = (self._table.base + at) * NANOSECONDS
        if is_refused and not self._job.allow_throttles:
            self._brake.press(now)
        else:
            self._brake.recover(now)
        rates = []
        for target, share in self._shares.items():
            follower, units = self._followers[target], target.throughput.units
            if is_refused and not self._job.allow_throttles:
                follower.refuse()
            if not share:
                continue
            # capacity on demand is not followed
            rate = follower.rate(now, self._shown(target, at)) if units else self._job.goal.milliunits or 0
            rates.append(rate if target is self._first else rate * 100 // share)
        rate = min(rates)
        goal = self._job.goal.rate_at(self._first.throughput.units)
        if rate >= goal and self._full_at is None:
            self._full_at = at
        return rate * self._brake.percent // 100 * QUANTA_PER_UNIT // MILLIUNITS

    def _shown(self, target: SimulatedTarget, at: int) -> Shown:
        newest = (at - self._delay) // 60 - 1
        share = self._shares[target]
        known = range(max(newest - _MINUTES + 1, 0), newest + 1)
        others = [target.consumed[minute] - self._own_minutes.get(minute, 0) * share // 100 for minute in known]
        tracking = target.tracking
        return Shown(
            provisioned=target.throughput.units,
            ceiling=target.ceiling if tracking else None,
            target_percent=tracking.target_percent if tracking else None,
            others=max(max(others), 0) * MILLIUNITS // 60 // QUANTA_PER_UNIT if others else None,
        )

    def _account(self, at: int) -> bool:
        """Count what passed and what was refused since the last look; whether any of its own was."""
        if self._meter is None:
            self._meter = MinuteMeter(self._first, at)
            return False
        passed, refused, others = self._meter.split(at, self._asked)
        self._asked = 0
        self._served += passed
        self._refused += refused
        self._others_refused += others
        minute = (at - 1) // 60
        self._own_minutes[minute] = self._own_minutes.get(minute, 0) + passed
        return refused > 0


def start_jobs(
    jobs: Sequence[JobSetup], table: SimulatedTable, metric_delay: int, write_shares: Mapping[str, int]
) -> list[RunningJob]:
    """Have each job begin at its time."""
    return [RunningJob(job, table, metric_delay, dict(_targets(job, table, write_shares))) for job in jobs]


def _targets(
    job: JobSetup, table: SimulatedTable, write_shares: Mapping[str, int]
) -> Iterator[tuple[SimulatedTarget, int]]:
    """The targets that a job's requests draw on, the one that it counts by first."""
    for target in table.targets:
        if target.dimension is not job.dimension:
            continue
        if target.index == job.index:
            yield target, 100
        elif job.dimension is Dimension.WRITE and job.index is None and target.index is not None:
            yield target, write_shares.get(target.index, 100)
