"""Managing the capacity of a table that exists already."""

from __future__ import annotations

from typing import Unpack

from constructs import Construct

from cdk_highwater.capacity_options import IndexedCapacityOptions, declared_plan
from cdk_highwater.pre_warm import PreWarmStrategy
from cdk_highwater.subject import TableLike, refuse_other_than_tables
from cdk_highwater.table_capacity import TableCapacity

_ID = "Capacity"


def manage_capacity(
    table: TableLike, *, scope: Construct | None = None, **options: Unpack[IndexedCapacityOptions]
) -> TableCapacity:
    """Manage the capacity of a table that exists already, in this app or elsewhere.

    Args:
        table: `dynamodb.Table`, `TableV2`, `CfnTable`, or one imported by name or ARN.
        scope: Where to put the constructs. By default below the table.
        options: What is declared: `read`, `write`, `windows`, `indexes` and more; see `IndexedCapacityOptions`.

    Raises:
        TypeError: If *table* is no table, or *windows* is no list.
        ValueError: If the capacity of *table* is managed already.
    """
    refuse_other_than_tables(table)
    parent = scope if scope is not None else _as_scope(table)
    if parent.node.try_find_child(_ID) is not None:
        message = (
            f"{parent.node.path}: capacity is managed already; give everything in one call, and to a HighWaterTable in "
            "its constructor"
        )
        raise ValueError(message)
    return TableCapacity(
        parent,
        _ID,
        table=table,
        plan=declared_plan(options),
        pre_warm_strategy=options.get("pre_warm_strategy", PreWarmStrategy.WARM_THROUGHPUT),
        windows_held_by=options.get("windows_held_by"),
    )


def capacity_of(table: object) -> TableCapacity:
    """The managed capacity of a `HighWaterTable`, or what `manage_capacity` returned; raises `TypeError` for others."""
    capacity = getattr(table, "capacity", table)
    if not isinstance(capacity, TableCapacity):
        message = f"table must be a HighWaterTable or what manage_capacity returned, got {type(table).__name__}"
        raise TypeError(message)
    return capacity


def _as_scope(table: TableLike) -> Construct:
    return table  # type: ignore[return-value] # every table of the CDK is a Construct
