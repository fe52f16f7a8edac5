"""The state of one simulated target: its capacity, its bounds, and all that CloudWatch will know of it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from highwater.core import Dimension
from highwater.core.throttles import ThrottleCause
from highwater.core.tracking import TargetTracking
from highwater_lab.physics import INDEX, KeyDistribution, OnDemandThroughput, Provisioned
from highwater_lab.physics.throughput import Cause
from highwater_lab.services.autoscaling import ScalableTarget
from highwater_lab.simulation.run import TargetRun


@dataclass(slots=True, kw_only=True, eq=False)
class SimulatedTarget(ScalableTarget):
    """One dimension of one resource, with the record of every minute so far.

    Attributes:
        rates: What is asked of it, quanta per second per bin; `None` for nothing.
        consumed: Quanta consumed per minute: what the alarms see.
        throttled: Quanta throttled per minute and cause, for the minutes that had any.
        capacity: Each change of provisioned units: seconds from the start, units.
        bounds: Each change of the bounds: seconds from the start, floor, ceiling.
        hour_peaks: Highest provisioned units of each hour of the clock begun so far, the current one apart.
        keys: How its requests spread.
        is_scaled: Whether target tracking or a scaler moves its capacity.
        held_back: Of an index's writes, quanta of the table's writes that it throttled, per minute and its own cause.
    """

    index: str | None
    dimension: Dimension
    throughput: Provisioned | OnDemandThroughput
    rates: array[int] | None
    tracking: TargetTracking | None
    keys: KeyDistribution
    is_scaled: bool
    served: int = 0
    consumed: array[int] = field(default_factory=lambda: array("q"))
    throttled: dict[int, dict[Cause, int]] = field(default_factory=dict)
    held_back: dict[int, dict[ThrottleCause, int]] = field(default_factory=dict)
    capacity: list[tuple[int, int]] = field(init=False)
    bounds: list[tuple[int, int, int]] = field(init=False)
    hour_peak: int = field(init=False)
    hour_peaks: list[int] = field(default_factory=list)
    # what neither alarm minds, worked out anew when capacity changes
    band_units: int = -1
    band: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Begin the records with what there is at the start."""
        self.capacity = [(0, self.throughput.units)]
        self.bounds = [(0, self.floor, self.ceiling)]
        self.hour_peak = self.throughput.units

    def set_bounds(self, at: int, floor: int, ceiling: int) -> None:
        """New bounds from *at* on."""
        if (floor, ceiling) != (self.floor, self.ceiling):
            self.floor, self.ceiling = floor, ceiling
            self.bounds.append((at, floor, ceiling))

    def resize(self, at: int, units: int) -> int | None:
        """Provision *units* from *at* on; what they were before, or `None` where they are those."""
        before = self.throughput.units
        if units == before or not isinstance(self.throughput, Provisioned):
            return None
        self.throughput.resize(units)
        self.capacity.append((at, units))
        self.hour_peak = max(self.hour_peak, units)
        return before

    def end_minute(self, minute: int) -> bool:
        """Record the minute just over and clear the counters; whether it throttled."""
        served = self.served
        self.consumed.append(served)
        self.served = 0
        refused = self.throughput.refused
        if refused:
            self.throttled[minute] = refused
            self.throughput.refused = {}
        if isinstance(self.throughput, OnDemandThroughput):
            self.throughput.end_minute(served)
        return bool(refused)

    def hold_back(self, minute: int, cause: ThrottleCause, amount: int) -> None:
        """Count quanta of the table's writes that this index throttles."""
        causes = self.held_back.setdefault(minute, {})
        causes[cause] = causes.get(cause, 0) + amount

    def record(self, bin_seconds: int, quota_units: int) -> TargetRun:
        """Return what a run keeps of it."""
        bins = 60 // bin_seconds
        rates = self.rates or ()
        return TargetRun(
            self.index,
            self.dimension,
            self.consumed,
            self.throttled,
            tuple(self.capacity),
            tuple(self.bounds),
            tuple(self.hour_peaks),
            held_back=self.held_back,
            peaks={at: max(rates[at * bins : at * bins + bins], default=0) for at in self.throttled},
            heaviest_key=max((share for _, share in self.keys.heavy), default=0),
            target_percent=None if self.tracking is None else self.tracking.target_percent,
            is_scaled=self.tracking is not None
            or (self.is_scaled and any(floor < ceiling for _, floor, ceiling in self.bounds)),
            quota_units=quota_units,
        )

    def end_hour(self) -> None:
        """Record the hour of the clock just over."""
        self.hour_peaks.append(self.hour_peak)
        self.hour_peak = self.throughput.units


def serve_writes(writes: list[SimulatedTarget], bin_seconds: int, start: int, end: int) -> None:
    """Serve a table's writes (first) together with its indexes': a write goes through everywhere or nowhere.

    Where nothing throttles, each bucket passes the stretch by itself; else second by second.
    """
    if bin_seconds == 60:
        rates = [target.rates[start // 60] if target.rates else 0 for target in writes]
        seconds = end - start
        if all(target.throughput.holds(rate, seconds) for target, rate in zip(writes, rates, strict=True)):
            for target, rate in zip(writes, rates, strict=True):
                target.served += target.throughput.serve(rate, seconds)
            return
        for _ in range(seconds):
            _serve_second(writes, rates, start // 60)
        return
    for second in range(start, end):
        _serve_second(writes, [target.rates[second] if target.rates else 0 for target in writes], second // 60)


def _serve_second(writes: list[SimulatedTarget], rates: list[int], minute: int) -> None:
    table, whole = writes[0], rates[0]
    if whole == 0:
        for target, rate in zip(writes, rates, strict=True):
            target.served += target.throughput.serve(rate, 1)
        return
    admitted, cause = table.throughput.available(whole)
    binding: SimulatedTarget | None = table if admitted < whole else None
    for target, rate in zip(writes[1:], rates[1:], strict=True):
        if rate:
            amount, why = target.throughput.available(rate)
            # as many of the table's quanta as this index has room for
            share = amount * whole // rate if amount < rate else whole
            if share < admitted:
                admitted, cause, binding = share, why, target
    if binding is table:
        table.throughput.refuse(cause, whole - admitted)
    elif binding is not None:
        table.throughput.refuse(INDEX, whole - admitted)
        binding.hold_back(minute, cause, whole - admitted)
    table.throughput.take(admitted)
    table.served += admitted
    for target, rate in zip(writes[1:], rates[1:], strict=True):
        passed = rate * admitted // whole
        if binding is target and rate > passed:
            target.throughput.refuse(cause, rate - passed)
        target.throughput.take(passed)
        target.served += passed


def follow_share(table_rates: array[int], percent: int) -> array[int]:
    """An index's write rates where each unit written to the table costs so many percent of one there."""
    if percent == 100:
        return table_rates
    return array("q", [rate * percent // 100 for rate in table_rates])
