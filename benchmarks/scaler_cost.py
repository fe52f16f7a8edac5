"""Prints the cost of the scaler with its defaults, in USD a month: `make benchmark NAME=scaler-cost`.

The prices are those of us-east-1, from prices.json in `highwater.core`, without free tiers.
"""

from __future__ import annotations

import sys
from typing import Final

from highwater.core.prices import HOURS_PER_MONTH
from highwater.core.pulses import PULSE_SHARDS
from highwater_lab.services.billing import scaler_items
from highwater_lab.services.prices import load_prices

# What a target may cost a month, in USD, or the scaler asks for too much
LIMIT: Final = 0.31
_MINUTES: Final = HOURS_PER_MONTH * 60
# The average that the policy highwater-floor requests over the serviceable traces (docs/benchmarks.md). The minimum is
# 10,950: one metric every five minutes, one in minute 58 of an hour, and another twice an hour. The scaler requests
# more while the target's alarm is in ALARM, and in the half hour after an increase.
METRICS_PER_MONTH: Final = 20_835
_MEMORY_GB: Final = 0.5
OWN_ALARMS: Final = 12
# AWS Systems Manager pricing, us-east-1, read 2026-11
_ADVANCED_PARAMETER, _PARAMETER_READ = 0.05, 0.000005
_TRACKING_ALARMS: Final = 4
COORDINATOR_ALARMS: Final = 8
# those that a coordinator adds to the scaler whose function it shares: on its lease table, and on refusals
SHARED_ALARMS: Final = 2
# CapacityAlarms: throttled, hot key and near the ceiling
CAPACITY_ALARMS: Final = 3
_FLEET: Final = 30
# A boost of half an hour whose capacity comes within 20 seconds: begin, ten looks and release; a tick in each of its
# minutes and one more. A run or a request takes half a second (docs/boosts.md). What it reads and writes of the lease
# table is counted by tests/handlers/test_boost_ticks.py.
_CALLS, _TICKS, _SECONDS_PER_CALL = 12, 31, 0.5
# a calm turn of a table whose fleet pulses leaves hints in six items, and reads twenty of some 200 bytes
_HINTS, _PULSE_READS = 6, PULSE_SHARDS
LEASE_WRITES: Final = 42
LEASE_READS: Final = 77
# Of a table with a scaler, each of these ticks requests consumption and throttle events of reads and of writes
# (tests/handlers/test_many_jobs.py).
_BOOST_METRICS: Final = 4 * _TICKS


def per_target() -> list[tuple[str, float]]:
    """Return the items of one target's cost: description and USD a month."""
    prices = load_prices()
    metrics = METRICS_PER_MONTH * prices.thousand_metrics_requested / 1000
    return [("an alarm on its consumption", prices.alarm_month), (f"{METRICS_PER_MONTH:,} metrics", metrics)]


def per_scaler() -> list[tuple[str, float]]:
    """Return the items of a scaler's cost apart from its targets: description and USD a month."""
    return [
        (f"{OWN_ALARMS} alarms on itself", OWN_ALARMS * load_prices().alarm_month),
        *scaler_items(load_prices()).items(),
    ]


def besides() -> list[tuple[str, float]]:
    """Return what comes on top: target tracking's own alarms, and what a long plan costs."""
    return [
        (f"each target: {_TRACKING_ALARMS} alarms of target tracking", _TRACKING_ALARMS * load_prices().alarm_month),
        ("each plan above 4 KB: an advanced parameter", _ADVANCED_PARAMETER),
        (f"each plan above 4 KB: read {_MINUTES:,} times", _MINUTES * _PARAMETER_READ),
    ]


def per_boost() -> list[tuple[str, float]]:
    """Return the items of the cost of a boost of half an hour, apart from its capacity: description and USD."""
    prices = load_prices()
    unit = prices.throughput()
    read, write = unit.on_demand_read_million / 1_000_000, unit.on_demand_write_million / 1_000_000
    return [
        (f"{_CALLS} requests to the function", _CALLS * _run()),
        (
            f"{LEASE_WRITES} writes and {LEASE_READS} reads of the lease table",
            LEASE_WRITES * write + LEASE_READS * read,
        ),
        (
            f"with a scaler: {_BOOST_METRICS} metrics of a table without indexes",
            _BOOST_METRICS * prices.thousand_metrics_requested / 1000,
        ),
    ]


def per_pulses() -> list[tuple[str, float]]:
    """Return what pulses cost when they come all month: description and USD a month."""
    prices = load_prices().throughput()
    write, read = prices.on_demand_write_million / 1_000_000, prices.on_demand_read_million / 1_000_000
    return [
        (f"a process, {name}: {writes} writes a minute", _MINUTES * writes * write)
        for name, writes in (("calm", 2), ("near the capacity", 6), ("with little to say", 1))
    ] + [
        (
            f"a table: {_HINTS} hints and {_PULSE_READS} reads in five minutes",
            _MINUTES / 5 * (_HINTS * write + _PULSE_READS * read),
        )
    ]


def per_coordinator() -> list[tuple[str, float]]:
    """Return what a coordinator with a function of its own costs while nobody asks it: description and USD a month."""
    prices = load_prices()
    return [
        (f"{COORDINATOR_ALARMS} alarms on itself", COORDINATOR_ALARMS * prices.alarm_month),
        (f"{_MINUTES:,} runs of its tick", _MINUTES * (prices.schedule_run + _run())),
        (
            f"{_MINUTES:,} reads of the list of tables with boosts",
            _MINUTES * prices.throughput().on_demand_read_million / 1_000_000,
        ),
    ]


def _run() -> float:
    """Return the price of a run of half a second, in USD."""
    prices = load_prices()
    return _MEMORY_GB * _SECONDS_PER_CALL * prices.lambda_gb_second + prices.lambda_request


def of_fleet(tables: int, indexes: int = 0) -> list[tuple[str, float]]:
    """Return what a scaler with so many tables, of so many indexes each, costs: description and USD a month.

    Reads and writes of each table and index are autoscaled. Capacity itself is not included.
    """
    targets = tables * (1 + indexes) * 2
    prices = load_prices()
    alarm = prices.alarm_month
    return [
        ("Highwater: the scaler itself", sum(usd for _, usd in per_scaler())),
        (f"Highwater: {targets} targets", targets * sum(usd for _, usd in per_target())),
        (f"with or without it: {targets * _TRACKING_ALARMS} alarms of target tracking", targets * besides()[0][1]),
        (f"if you want: {targets * CAPACITY_ALARMS} alarms of CapacityAlarms", targets * CAPACITY_ALARMS * alarm),
        (
            "if you want: a coordinator that shares the scaler's function",
            SHARED_ALARMS * alarm + prices.custom_metric_month,
        ),
    ]


def main() -> int:
    """Print all costs; return 1 if a target costs more than the limit, else 0."""
    _print("each target", [*per_target(), _sum("USD a month", per_target())])
    _print("each scaler", [*per_scaler(), _sum("USD a month", per_scaler())])
    _print("besides", besides())
    idle = per_coordinator()
    _print("each coordinator of its own, idle", [*idle, _sum("USD a month", idle)])
    _print("pulses of one table, all month", per_pulses())
    for indexes in (0, 2):
        _print(f"{_FLEET} tables with {indexes} indexes each, one scaler", of_fleet(_FLEET, indexes), width=61)
    _print("each boost of half an hour, beside its capacity", [*per_boost(), _sum("USD", per_boost())], digits=6)
    return 0 if sum(usd for _, usd in per_target()) <= LIMIT else 1


def _sum(name: str, items: list[tuple[str, float]]) -> tuple[str, float]:
    return name, sum(usd for _, usd in items)


def _print(title: str, items: list[tuple[str, float]], *, width: int = 55, digits: int = 4) -> None:
    print(title)
    for item, usd in items:
        print(f"  {item:<{width}}{usd:>9.{digits}f}")


if __name__ == "__main__":
    sys.exit(main())
