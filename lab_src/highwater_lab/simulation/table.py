"""A table in the simulation: its resources, its targets, what is due, and what happened."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Mapping
from itertools import count

from highwater.core import Dimension
from highwater.core.throttles import ThrottleCause
from highwater_lab.physics import QUANTA_PER_UNIT, OnDemandThroughput, Partitions, Provisioned
from highwater_lab.physics.partitions import partitions_for
from highwater_lab.services.timing import Pace
from highwater_lab.services.update_table import CapacityControl, Refused
from highwater_lab.simulation.run import Event, EventKind, TargetRun
from highwater_lab.simulation.setup import ResourceSetup, TableSetup
from highwater_lab.simulation.targets import SimulatedTarget, follow_share, serve_writes
from highwater_lab.traffic.series import Stream, Traffic

Act = Callable[[int], None]
_GB_PER_UNIT = 1 / (1024 * 1024)


class SimulatedTable:
    """The table and its indexes; times are seconds from the start of the traffic.

    Attributes:
        base: The start of the traffic, seconds since 1970.
        targets: Every target, the table's first.
        controls: The control of each resource with provisioned capacity, by index; none on demand.
        events: What happened so far, in order.
        bin_seconds: How fine the traffic is.
        refused_decreases: Decreases asked for and refused so far.
    """

    def __init__(self, setup: TableSetup, traffic: Traffic, heat_split_minutes: int) -> None:
        self.setup = setup
        self.base = int(traffic.start.timestamp())
        self.targets: list[SimulatedTarget] = []
        self.controls: dict[str | None, CapacityControl] = {}
        self.events: list[Event] = []
        self.refused_decreases = 0
        self.bin_seconds = traffic.bin_seconds
        self._minutes = traffic.minutes
        self._partitions: dict[str | None, Partitions] = {}
        self._agenda: list[tuple[int, int, Act]] = []
        self._order = count()
        self._heat: dict[tuple[str | None, Dimension], int] = {}
        self._heat_split_minutes = heat_split_minutes
        for resource in setup.resources:
            self._add(resource, traffic)
        self._writes = [target for target in self.targets if target.dimension is Dimension.WRITE]
        self._are_writes_tied = len(self._writes) > 1
        # those that nothing is asked of keep their tokens, and need no visit
        self._alone = [
            (target, target.rates)
            for target in self.targets
            if target.rates is not None and not (self._are_writes_tied and target.dimension is Dimension.WRITE)
        ]

    def write_share_percent(self, index: str | None) -> int:
        """The units of an index that each 100 units written to the table cost; 100 of the table itself."""
        return next(each.write_share_percent for each in self.setup.resources if each.index == index)

    def at(self, second: int, act: Act) -> None:
        """Have *act* called when the simulation reaches that second, after what was asked for before."""
        heapq.heappush(self._agenda, (second, next(self._order), act))

    def has_due(self, before: int) -> bool:
        """Whether anything is due before that second."""
        return bool(self._agenda) and self._agenda[0][0] < before

    def serve_minute(self, minute: int) -> None:
        """Let a minute's traffic through, and act on what is due in it at its second."""
        start, end = minute * 60, minute * 60 + 60
        while self.has_due(end):
            at, _, act = heapq.heappop(self._agenda)
            if at > start:
                self.serve(start, at)
                start = at
            act(at)
        self.serve(start, end)

    def serve(self, start: int, end: int) -> None:
        """Let the traffic from second *start* to *end* of one minute through."""
        if start == end:
            return
        if self.bin_seconds == 60:
            minute, seconds = start // 60, end - start
            for target, rates in self._alone:
                target.served += target.throughput.serve(rates[minute], seconds)
        else:
            for target, rates in self._alone:
                target.served += target.throughput.serve_each(rates[start:end])
        if self._are_writes_tied:
            serve_writes(self._writes, self.bin_seconds, start, end)

    def end_minute(self, minute: int) -> None:
        """Close the minute in every record, and the hour of the clock if it ends; split what was too hot for long."""
        for target in self.targets:
            if target.end_minute(minute) or self._heat:
                self._feel_heat(minute, target)
        if (self.base + minute * 60 + 60) % 3600 == 0 or minute + 1 == self._minutes:
            self._end_hour()

    def _end_hour(self) -> None:
        """Close the hour of the clock in every record; let partitions follow the data."""
        for target in self.targets:
            target.end_hour()
        if self.setup.new_items_percent:
            written = sum(self._writes[0].consumed) // QUANTA_PER_UNIT * self.setup.new_items_percent / 100
            size_gb = int(self.setup.size_gb + written * _GB_PER_UNIT)
            for partitions in self._partitions.values():
                partitions.grow_by_size(size_gb)

    def records(self) -> tuple[TargetRun, ...]:
        """Return what a run keeps of each target."""
        return tuple(target.record(self.bin_seconds, self.setup.quota_units) for target in self.targets)

    def request(
        self, at: int, index: str | None, wanted: Mapping[Dimension, int], pace: Pace, why: str
    ) -> Refused | None:
        """UpdateTable at second *at*; `None` where it was accepted, and is then carried out in its time."""
        if self._is_above_account_quota(index, wanted):
            return Refused.QUOTA
        answer = self.controls[index].update(self.base + at, wanted, pace)
        if isinstance(answer, Refused):
            if answer is Refused.DECREASES:
                self.refused_decreases += 1
            return answer
        self.at(answer - self.base, lambda second: self._apply(second, index, why))
        return None

    def _is_above_account_quota(self, index: str | None, wanted: Mapping[Dimension, int]) -> bool:
        """Whether a raise would bring the sum over table and indexes above what the account may have."""
        for dimension, units in wanted.items():
            if units > self.controls[index].granted[dimension]:
                others = sum(c.granted[dimension] for i, c in self.controls.items() if i != index)
                if units + others > self.setup.account_quota_units:
                    return True
        return False

    def tell(self, event: Event) -> None:
        """Record an event; one like the last of its target and kind is not told again."""
        last = next(
            (e for e in reversed(self.events) if (e.index, e.dimension) == (event.index, event.dimension)), None
        )
        if last is None or (last.kind, last.text) != (event.kind, event.text) or event.kind is not EventKind.REFUSED:
            self.events.append(event)

    def _apply(self, at: int, index: str | None, why: str) -> None:
        control = self.controls[index]
        partitions = control.partitions.count
        control.settle(self.base + at)
        for target in self.targets:
            if target.index == index and (before := target.resize(at, control.units[target.dimension])) is not None:
                after = target.throughput.units
                kind = EventKind.SCALE_OUT if after > before else EventKind.SCALE_IN
                self.events.append(Event(at, target.index, target.dimension, kind, why, before, after))
        if control.partitions.count > partitions:
            text = f"partitions {partitions} -> {control.partitions.count} for more throughput than ever before"
            self.events.append(Event(at, index, None, EventKind.SPLIT, text))

    def _feel_heat(self, minute: int, target: SimulatedTarget) -> None:
        """Count the minutes that a target's partitions were over their limit; split them when it has been enough."""
        key = (target.index, target.dimension)
        if ThrottleCause.KEY_RANGE not in target.throttled.get(minute, {}) or target.rates is None:
            self._heat.pop(key, None)
            return
        self._heat[key] = self._heat.get(key, 0) + 1
        if self._heat[key] < self._heat_split_minutes:
            return
        del self._heat[key]
        partitions = self._partitions[target.index]
        first = minute * 60 // self.bin_seconds
        rate = max(target.rates[first : first + 60 // self.bin_seconds])
        before = partitions.count
        if partitions.split_for_heat(rate, target.dimension):
            text = f"partitions {before} -> {partitions.count}: split for heat"
            self.events.append(Event(minute * 60 + 60, target.index, target.dimension, EventKind.SPLIT, text))

    def _add(self, resource: ResourceSetup, traffic: Traffic) -> None:
        index = resource.index
        throughput: dict[Dimension, Provisioned | OnDemandThroughput]
        if self.setup.is_on_demand:
            free = resource.warm_on_demand
            partitions = Partitions(partitions_for(free.read, free.write, self.setup.size_gb), resource.keys)
            most = {Dimension.READ: resource.max_read_units, Dimension.WRITE: resource.max_write_units}
            warm = {Dimension.READ: free.read, Dimension.WRITE: free.write}
            throughput = {
                d: OnDemandThroughput(d, partitions, warm[d], most[d], self.setup.quota_units) for d in Dimension
            }
        else:
            control = self.controls[index] = CapacityControl(
                {dimension: resource.target(dimension).units for dimension in Dimension},
                {Dimension.READ: resource.warm_read_units, Dimension.WRITE: resource.warm_write_units},
                keys=resource.keys,
                size_gb=self.setup.size_gb,
                quota_units=self.setup.quota_units,
            )
            partitions = control.partitions
            burst = (self.setup.burst_seconds, self.setup.on_raise)
            throughput = {d: Provisioned(d, control.units[d], partitions, *burst) for d in Dimension}
        self._partitions[index] = partitions
        for dimension in Dimension:
            setup = resource.target(dimension)
            tracking = None if self.setup.is_on_demand else setup.tracking
            rates = rates_of(traffic, resource, dimension)
            is_buffered = self.setup.buffer is not None and dimension is Dimension.WRITE and rates is not None
            if is_buffered or any(job.dimension is dimension for job in self.setup.jobs):
                # jobs and the queue change it as they go
                bins = traffic.minutes * 60 // traffic.bin_seconds
                rates = array("q", rates or bytes(8 * bins))
            self.targets.append(
                SimulatedTarget(
                    index=index,
                    dimension=dimension,
                    throughput=throughput[dimension],
                    rates=rates,
                    tracking=tracking,
                    keys=resource.keys,
                    is_scaled=setup.is_scaled,
                    floor=setup.min,
                    ceiling=setup.max,
                )
            )


def rates_of(traffic: Traffic, resource: ResourceSetup, dimension: Dimension) -> array[int] | None:
    """What is asked of a target: its own column, or for an index's writes its share of the table's."""
    rates = traffic.rates.get(Stream(resource.index, dimension))
    if rates is None and resource.index is not None and dimension is Dimension.WRITE:
        table = traffic.rates.get(Stream(None, Dimension.WRITE))
        return None if table is None else follow_share(table, resource.write_share_percent)
    return rates
