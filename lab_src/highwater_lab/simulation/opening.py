"""How a table stands when the traffic begins: settled, as if it had run for long."""

from __future__ import annotations

from dataclasses import replace

from highwater.core import Dimension
from highwater_lab.services.autoscaling import bounds_before
from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.simulation.table import rates_of
from highwater_lab.traffic.series import Traffic

# What AWS and the CDK take where nothing is said, and what a poller's table starts with
_USUAL_TARGET_PERCENT = 70


def opening(setup: TableSetup, traffic: Traffic) -> TableSetup:
    """The setup with the bounds that its schedule leaves at the start, and capacity to suit the first minute.

    Capacity that no policy scales stays as it is, but for the bounds; other starts at the first minute's demand over
    the target, within them.
    """
    if not setup.starts_settled:
        return setup
    return replace(setup, resources=tuple(_open(resource, traffic) for resource in setup.resources))


def _open(resource: ResourceSetup, traffic: Traffic) -> ResourceSetup:
    return resource.with_targets(
        _open_target(resource, Dimension.READ, traffic), _open_target(resource, Dimension.WRITE, traffic)
    )


def _open_target(resource: ResourceSetup, dimension: Dimension, traffic: Traffic) -> TargetSetup:
    target = resource.target(dimension)
    floor, ceiling = bounds_before(target.actions, int(traffic.start.timestamp()), target.min, target.max)
    if not target.is_scaled:
        return replace(target, min=floor, max=ceiling, units=min(max(target.units, floor), ceiling))
    percent = target.tracking.target_percent if target.tracking else _USUAL_TARGET_PERCENT
    rates = rates_of(traffic, resource, dimension)
    demand = -(-sum(rates[: 60 // traffic.bin_seconds]) * traffic.bin_seconds // 3600) if rates else 0
    units = min(max(-(-demand * 100 // percent), floor, 1), ceiling)
    return replace(target, min=floor, max=ceiling, units=units)
