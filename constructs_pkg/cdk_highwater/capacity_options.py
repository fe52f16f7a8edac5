"""Declaration of a table's capacity: the keyword arguments that several constructs share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, Required, TypedDict, TypeVar

from cdk_highwater.pre_warm import PreWarmStrategy
from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS

T = TypeVar("T")


class WindowHolder(Protocol):
    """A construct that opens and closes windows in place of scheduled actions: a `ThrottleAwareScaler`."""

    def add_table(self, table: object, /) -> None:
        """Manage the table of the `TableCapacity` *table*, including its windows."""


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
            overlapping windows of zones whose clocks change on different days.
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


def list_of(name: str, values: object, kind: type[T]) -> tuple[T, ...]:
    """Return *values* as a tuple; raises `TypeError` if they are not a list whose members are all of *kind*."""
    if isinstance(values, kind):
        message = f"{name} must be a list of {kind.__name__}, got one {kind.__name__}; put it in brackets"
        raise TypeError(message)
    if isinstance(values, str) or not isinstance(values, Iterable):
        message = f"{name} must be a list of {kind.__name__}, got {values!r}; leave the argument out for none"
        raise TypeError(message)
    members = tuple(values)
    for position, member in enumerate(members):
        if not isinstance(member, kind):
            message = f"{name}[{position}] must be a {kind.__name__}, got {type(member).__name__} {member!r}"[:200]
            raise TypeError(message)
    return members


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
    if mark is None:
        mark = HighWaterMark.to_windows()
    if not isinstance(mark, HighWaterMark):
        message = f"high_water_mark must be a HighWaterMark, got {mark!r}; give HighWaterMark.units(read=, write=)"
        raise TypeError(message)
    return Plan(
        read=options["read"],
        write=options["write"],
        windows=windows,
        indexes=indexes,
        mark=mark,
        table_quota_units=options.get("table_quota_units", DEFAULT_TABLE_QUOTA_UNITS),
    )
