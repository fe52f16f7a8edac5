"""All policies by name, as given on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from highwater.core import HighwaterError
from highwater.core.errors import did_you_mean
from highwater.core.limits import MAX_TARGET_UTILIZATION_PERCENT, MIN_TARGET_UTILIZATION_PERCENT
from highwater_lab.policies.clairvoyant import NAME as CLAIRVOYANT
from highwater_lab.policies.clairvoyant import clairvoyant
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import Fixed, Native, OnDemandMode
from highwater_lab.policies.highwater import HighwaterDirect, HighwaterDirectPulse, HighwaterFloor, HighwaterFloorPulse
from highwater_lab.services.prices import Prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation.fleet import Pulses
from highwater_lab.simulation.policy import Policy
from highwater_lab.simulation.run import Run
from highwater_lab.simulation.setup import TableSetup
from highwater_lab.simulation.simulator import Progress, simulate
from highwater_lab.traffic.series import Traffic

# Policies that need no argument
_WITHOUT_ARGUMENT: Final[dict[str, Callable[[], Policy]]] = {
    **{policy.name: policy for policy in (Declared, OnDemandMode, HighwaterFloor, HighwaterDirect)},
    **{policy.name: policy for policy in (HighwaterFloorPulse, HighwaterDirectPulse)},
    "fixed": Fixed,
    "native": Native,
}
# What a number behind the name means: its short name, a longer one, its lowest and its highest value
_TARGET: Final = (
    "PERCENT",
    "target utilization in percent",
    MIN_TARGET_UTILIZATION_PERCENT,
    MAX_TARGET_UTILIZATION_PERCENT,
)
_PULSING: Final = ("PERCENT", "share of the fleet that pulses in percent", 0, 100)
_UNITS: Final = ("UNITS", "number of units", 1, 10_000_000)
# Policies that accept a number, and what it means
_WITH_NUMBER: Final[dict[str, tuple[Callable[[int], Policy], tuple[str, str, int, int]]]] = {
    "native": (Native, _TARGET),
    "fixed": (Fixed, _UNITS),
    HighwaterFloor.name: (lambda percent: HighwaterFloor(tracking_percent=percent), _TARGET),
    HighwaterFloorPulse.name: (lambda percent: HighwaterFloorPulse(pulses=Pulses(percent)), _PULSING),
    HighwaterDirectPulse.name: (lambda percent: HighwaterDirectPulse(pulses=Pulses(percent)), _PULSING),
}

# The allowed policy names, for help texts and messages
_NUMBERED: Final = {f"{name}:{number[0]}" for name, (_, number) in _WITH_NUMBER.items()}
POLICY_NAMES: Final = tuple(sorted({*_WITHOUT_ARGUMENT, *_NUMBERED, CLAIRVOYANT} - {"native"}))


class PolicyError(HighwaterError, ValueError):
    """There is no policy of the given name."""


def find_policy(name: str) -> Policy:
    """Create the policy *name*; raises `PolicyError` for a name that is not in `POLICY_NAMES`."""
    kind, has_number, number = name.partition(":")
    if kind in _WITH_NUMBER and has_number:
        make, (_, meaning, low, high) = _WITH_NUMBER[kind]
        if not number.isascii() or not number.isdigit() or len(number) > 9 or not low <= int(number) <= high:
            raise PolicyError(f"policy {name!r}: expected a {meaning} from {low} to {high:,}, got {number[:20]!r}")
        return make(int(number))
    if has_number or kind not in _WITHOUT_ARGUMENT:
        allowed = ", ".join(POLICY_NAMES) + did_you_mean(name, POLICY_NAMES)
        raise PolicyError(f"unknown policy {name!r}, allowed: {allowed}")
    return _WITHOUT_ARGUMENT[kind]()


def run_policy(
    name: str,
    setup: TableSetup,
    traffic: Traffic,
    *,
    timing: Timing | None = None,
    prices: Prices | None = None,
    progress: Progress | None = None,
) -> Run:
    """Simulate the policy *name*, or compute the clairvoyant bound; raises `PolicyError` for an unknown name."""
    if name == CLAIRVOYANT:
        return clairvoyant(setup, traffic, prices=prices)
    return simulate(setup, traffic, find_policy(name), timing=timing, prices=prices, progress=progress)
