"""Declaration of a table's capacity: the keyword arguments that several constructs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Required, TypedDict

from cdk_highwater.argument_types import list_of, require_or_none
from cdk_highwater.pre_warm import PreWarmStrategy
from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS


class WindowHolder:
    """A construct that opens and closes windows in place of scheduled actions: a `ThrottleAwareScaler`.

    A class and no protocol: a `BoostCoordinator` has the same method, and opens no windows.
    """

    def add_table(self, table: object) -> None:
        """Manage the table of the `TableCapacity` *table*, including its windows."""
        raise NotImplementedError


class CapacityOptions(TypedDict, total=False):
    """Declaration of a table's capacity: keyword arguments of `HighWaterTable`. Only `read` and `write` are required.

    Attributes:
        read: The table's read capacity.
        write: The table's write capacity.
        windows: Windows with a higher floor or ceiling. By default none.
        high_water_mark: The high-water marks. By default the highest floor declared, so that no window waits for
            partitions.
        table_quota_units: The account's quota for a table or index, in units per second of each dimension. By default
            40,000, the AWS default.
        pre_warm_strategy: How marks are raised. By default WARM_THROUGHPUT.
        windows_held_by: A scaler that manages the table and opens and closes its windows. By default scheduled actions
            do. Only a scaler can open windows of a `TableV2`, windows that need more than 200 actions on a target, and
            overlapping windows of zones whose clocks change on different days. It has room for a plan of 8 KB, about 55
            windows.
    """

    read: Required[Capacity]
    write: Required[Capacity]
    windows: Sequence[Window]
    high_water_mark: HighWaterMark | None
    table_quota_units: int
    pre_warm_strategy: PreWarmStrategy
    windows_held_by: WindowHolder | None


class IndexedCapacityOptions(CapacityOptions, total=False):
    """Declaration for a table that exists already, with its indexes: keyword arguments of `manage_capacity`.

    Attributes:
        indexes: Capacity and windows of indexes that differ from the table's. Indexes in the template that are not
            listed follow the table. For an imported table, list every index that should be scaled.
    """

    indexes: Sequence[IndexCapacity]


def require_holder(windows_held_by: object) -> None:
    """Raise `TypeError` if *windows_held_by* is neither a scaler nor `None`."""
    fix = "give the construct of a scaler, or leave the argument out for scheduled actions"
    require_or_none("windows_held_by", windows_held_by, WindowHolder, "a ThrottleAwareScaler", fix)


def declared_plan(options: IndexedCapacityOptions) -> Plan:
    """Return the plan that the keyword arguments declare, without checking it.

    Raises:
        TypeError: If there is an argument of another name, *read* or *write* is missing, or an argument is of another
            type than documented.
    """
    known = IndexedCapacityOptions.__annotations__.keys()
    if unknown := [name for name in options if name not in known]:
        message = f"unknown argument {unknown[0]!r}, allowed: {', '.join(known)}"
        raise TypeError(message)
    if missing := [name for name in ("read", "write") if name not in options]:
        message = (
            f"argument {missing[0]!r} is missing; give Capacity.autoscaled(max_capacity=) or Capacity.fixed(units=)"
        )
        raise TypeError(message)
    windows = list_of("windows", options.get("windows", ()), Window)
    indexes = list_of("indexes", options.get("indexes", ()), IndexCapacity)
    for index in indexes:
        if index.windows is not None:
            list_of(f"windows of index {index.index_name!r}", index.windows, Window)
    mark = options.get("high_water_mark")
    require_or_none(
        "high_water_mark", mark, HighWaterMark, "a HighWaterMark", "give HighWaterMark.units(read=, write=)"
    )
    require_holder(options.get("windows_held_by"))
    return Plan(
        read=options["read"],
        write=options["write"],
        windows=windows,
        indexes=indexes,
        mark=HighWaterMark.to_windows() if mark is None else mark,
        table_quota_units=options.get("table_quota_units", DEFAULT_TABLE_QUOTA_UNITS),
    )
