"""Declared values of a table or index: its capacity in units per second, and its high-water mark (warm throughput)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from highwater.core.units import Dimension, Duration, as_timedelta

# The target utilization of a capacity that says none: that of DynamoDB's console, which most tables have.
DEFAULT_TARGET_PERCENT: Final = 70


def is_deploy_time(value: object) -> bool:
    """Whether *value* is a number that only CloudFormation knows, such as the value of a parameter.

    The CDK encodes such numbers as doubles whose two highest bytes are 0xFBFF (aws-cdk-lib,
    `core/lib/private/encoding`, read 2026-11).
    """
    return isinstance(value, float) and struct.pack(">d", value)[:2] == b"\xfb\xff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How one dimension is sized. Create it with `autoscaled` or `fixed`, like `dynamodb.Capacity`.

    The constructor does not validate. `check` validates a whole plan, so that all its conflicts are reported together.

    Attributes:
        min_capacity: The base floor in units per second (AAS MinCapacity), at least 1.
        max_capacity: The base ceiling in units per second (AAS MaxCapacity), at least *min_capacity*.
        is_autoscaled: Whether a target tracking policy changes the capacity. If not, the capacity is fixed.
        target_utilization_percent: Consumed capacity in percent of provisioned capacity that target tracking keeps,
            20 to 90; `None` for fixed capacity.
        scale_in_cooldown: Time after a scale-in before the next one. By default 0, which is DynamoDB's default.
        scale_out_cooldown: Time after a scale-out before an equal or smaller one. By default 0.
        disable_scale_in: Whether the policy never lowers capacity. By default the policy lowers capacity.
        max_with_boosts: The ceiling while a boost is live, in units per second, at least *max_capacity*; only boosts
            reach it. By default, `None`, boosts stay below the ceiling too.

    Example:
        ```python
        write = Capacity.autoscaled(min_capacity=40, max_capacity=12_000, target_utilization_percent=70)
        read = Capacity.fixed(units=25)
        ```
    """

    min_capacity: int | float
    max_capacity: int | float
    is_autoscaled: bool
    target_utilization_percent: int | None = None
    scale_in_cooldown: timedelta = timedelta(0)
    scale_out_cooldown: timedelta = timedelta(0)
    disable_scale_in: bool = False
    max_with_boosts: int | None = None

    @classmethod
    def autoscaled(
        cls,
        *,
        min_capacity: int | float = 1,
        max_capacity: int | float,
        target_utilization_percent: int = DEFAULT_TARGET_PERCENT,
        scale_in_cooldown: timedelta | Duration = timedelta(0),
        scale_out_cooldown: timedelta | Duration = timedelta(0),
        disable_scale_in: bool = False,
        max_with_boosts: int | None = None,
    ) -> Capacity:
        """Follow consumption between the two capacities by AAS target tracking. The class documents the ranges."""
        return cls(
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            is_autoscaled=True,
            target_utilization_percent=target_utilization_percent,
            scale_in_cooldown=as_timedelta(scale_in_cooldown),
            scale_out_cooldown=as_timedelta(scale_out_cooldown),
            disable_scale_in=disable_scale_in,
            max_with_boosts=max_with_boosts,
        )

    @classmethod
    def fixed(cls, units: int | float) -> Capacity:
        """Keep *units* per second, at least 1. An open window raises floor and ceiling together to its floor."""
        return cls(min_capacity=units, max_capacity=units, is_autoscaled=False)

    @staticmethod
    def on_demand(*, max_read: int | None = None, max_write: int | None = None) -> OnDemand:
        """Pay for each request instead, up to these units per second; `OnDemand` documents the ranges."""
        return OnDemand(max_read=max_read, max_write=max_write)

    @property
    def is_deploy_time(self) -> bool:
        """Whether the floor or the ceiling is known only to CloudFormation."""
        return is_deploy_time(self.min_capacity) or is_deploy_time(self.max_capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemand:
    """The capacity of a table that is billed by request. Create it with `Capacity.on_demand`.

    Attributes:
        max_read: The most read units per second that DynamoDB serves, of the table and of each index: whole, 1 or more.
            More is throttled, so that a mistake of a client has a price that is known. By default the account's quota.
        max_write: The same for writes.

    Raises:
        ValueError: A maximum is below 1, or not whole.

    Example:
        ```python
        clicks = OnDemandTable(stack, "Clicks", partition_key=key, capacity=Capacity.on_demand(max_write=2_000))
        ```
    """

    max_read: int | None = None
    max_write: int | None = None

    def __post_init__(self) -> None:
        """Check the maxima."""
        for name, units in (("max_read", self.max_read), ("max_write", self.max_write)):
            if units is not None and (not isinstance(units, int) or isinstance(units, bool) or units < 1):
                message = (
                    f"Capacity.on_demand: {name}: got {units!r}, allowed: whole units per second, 1 or more; leave it "
                    "out for the account's quota"
                )
                raise ValueError(message)

    def of(self, dimension: Dimension) -> int | None:
        """Return the most units per second of one dimension, `None` for the account's quota."""
        return self.max_read if dimension is Dimension.READ else self.max_write


class MarkRule(StrEnum):
    """The rule that determines the mark."""

    WINDOWS = "windows"
    CEILING = "ceiling"
    UNITS = "units"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class HighWaterMark:
    """The throughput that a table should support at once, in units per second. A mark never falls.

    Create it with `to_windows` (the default), `to_ceiling`, `units` or `none`.

    Example:
        ```python
        mark = HighWaterMark.units(read=4_000, write=12_000)
        HighWaterTable(stack, "Orders", partition_key=key, read=follow, write=follow, high_water_mark=mark)
        ```
    """

    rule: MarkRule
    read: int | None = None
    write: int | None = None

    @classmethod
    def to_windows(cls) -> HighWaterMark:
        """Raise each mark to the highest floor declared for that resource and dimension, base floor or window."""
        return cls(MarkRule.WINDOWS)

    @classmethod
    def to_ceiling(cls) -> HighWaterMark:
        """Raise each mark to the highest ceiling declared, so that auto scaling never waits for partitions."""
        return cls(MarkRule.CEILING)

    @classmethod
    def units(cls, *, read: int | None = None, write: int | None = None) -> HighWaterMark:
        """Raise the marks of the table and every index to these units per second, at least their base floors.

        `None` leaves the marks of that dimension at the base floors.
        """
        return cls(MarkRule.UNITS, read, write)

    @classmethod
    def none(cls) -> HighWaterMark:
        """Do not raise the mark. The first rise to a window's floor may then take minutes."""
        return cls(MarkRule.NONE)

    @property
    def is_units(self) -> bool:
        """Whether the mark was declared in units."""
        return self.rule is MarkRule.UNITS
