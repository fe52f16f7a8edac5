"""What is declared for a table's capacity: the keyword arguments that several constructs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Required, TypedDict

from cdk_highwater.pre_warm import PreWarmStrategy
from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS


class WindowHolder(Protocol):
    """What can hold windows in place of scheduled actions: a `ThrottleAwareScaler`."""

    def add_table(self, table: object, /) -> None:
        """Look after the table whose capacity this is."""


class CapacityOptions(TypedDict, total=False):
    """What is declared for a table: keyword arguments of `HighWaterTable`; all but two may be left out.

    Attributes:
        read: The table's read capacity.
        write: The table's write capacity.
        windows: Windows of higher capacity. By default none.
        high_water_mark: By default the highest floor declared, so that no window waits for partitions.
        table_quota_units: The account's quota for a table or index. By default 40,000, AWS's own.
        pre_warm_strategy: How marks are raised. By default WARM_THROUGHPUT.
        windows_held_by: A scaler that looks after the table and opens and closes its windows, in place of scheduled
            actions: for a `TableV2`, more than 200 actions, or windows of zones whose clocks change on different days.
            By default scheduled actions hold them.
    """

    read: Required[Capacity]
    write: Required[Capacity]
    windows: Sequence[Window]
    high_water_mark: HighWaterMark | None
    table_quota_units: int
    pre_warm_strategy: PreWarmStrategy
    windows_held_by: WindowHolder | None


class IndexedCapacityOptions(CapacityOptions, total=False):
    """The same for a table whose indexes are declared elsewhere: keyword arguments of `manage_capacity`.

    Attributes:
        indexes: What indexes have of their own. Indexes of the template that are not listed follow the table. Of an
            imported table, list every index that shall be scaled.
    """

    indexes: Sequence[IndexCapacity]


def declared_plan(options: IndexedCapacityOptions) -> Plan:
    """The plan that keyword arguments declare, not yet checked.

    Raises:
        TypeError: If there is an argument of another name, *read* or *write* is missing, or *windows* is one window.
    """
    known = IndexedCapacityOptions.__annotations__.keys()
    if unknown := [name for name in options if name not in known]:
        message = f"unknown argument {unknown[0]!r}; there are {', '.join(known)}"
        raise TypeError(message)
    if missing := [name for name in ("read", "write") if name not in options]:
        message = f"argument {missing[0]!r} is missing; give Capacity.autoscaled(max_capacity=) or Capacity.fixed()"
        raise TypeError(message)
    windows = options.get("windows", ())
    if isinstance(windows, Window):
        message = f"windows must be a list of Window, got one Window, {windows.name!r}; put it in brackets"
        raise TypeError(message)
    return Plan(
        read=options["read"],
        write=options["write"],
        windows=tuple(windows),
        indexes=tuple(options.get("indexes", ())),
        mark=options.get("high_water_mark") or HighWaterMark.to_windows(),
        table_quota_units=options.get("table_quota_units", DEFAULT_TABLE_QUOTA_UNITS),
    )
