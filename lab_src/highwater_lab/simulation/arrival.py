"""Serving: how a stretch of time passes through a table's throughput, and writes through its indexes."""

from __future__ import annotations

from array import array

from highwater_lab.physics import Cause
from highwater_lab.simulation.targets import TargetState


def serve_writes(writes: list[TargetState], bin_seconds: int, start: int, end: int) -> None:
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
            _serve_second(writes, rates)
        return
    for second in range(start, end):
        _serve_second(writes, [target.rates[second] if target.rates else 0 for target in writes])


def _serve_second(writes: list[TargetState], rates: list[int]) -> None:
    table, whole = writes[0], rates[0]
    if whole == 0:
        for target, rate in zip(writes, rates, strict=True):
            target.served += target.throughput.serve(rate, 1)
        return
    admitted, cause = table.throughput.available(whole)
    binding: TargetState | None = table if admitted < whole else None
    for target, rate in zip(writes[1:], rates[1:], strict=True):
        if rate:
            amount, why = target.throughput.available(rate)
            # as many of the table's quanta as this index has room for
            share = amount * whole // rate if amount < rate else whole
            if share < admitted:
                admitted, cause, binding = share, why, target
    if binding is not None:
        table.throughput.refuse(cause if binding is table else Cause.INDEX, whole - admitted)
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
