"""Capacity management for tables that are not a `HighWaterTable`."""

from __future__ import annotations

from typing import Unpack

from constructs import Construct

from cdk_highwater.argument_types import require_or_none
from cdk_highwater.capacity_options import IndexedCapacityOptions, declared_plan
from cdk_highwater.pre_warm import PreWarmStrategy
from cdk_highwater.subject import TableLike, refuse_other_than_tables
from cdk_highwater.table_capacity import TableCapacity

_ID = "Capacity"


def manage_capacity(
    table: TableLike, *, scope: Construct | None = None, **options: Unpack[IndexedCapacityOptions]
) -> TableCapacity:
    """Manage the capacity of a table of this app or of an imported table.

    Args:
        table: A `dynamodb.Table`, `TableV2` or `CfnTable`, or a table imported by name or ARN.
        scope: The parent of the constructs to create. By default *table*.
        options: The declared capacity: `read`, `write`, `windows`, `indexes` and more, as documented by
            `IndexedCapacityOptions`.

    Raises:
        TypeError: If *table* is not a table, or another argument is of another type than documented.
        ValueError: If the capacity of *table* is already managed.
    """
    refuse_other_than_tables(table)
    require_or_none("scope", scope, "node", "a construct", "give a construct, such as the stack")
    parent = scope if scope is not None else _as_scope(table)
    if parent.node.try_find_child(_ID) is not None:
        message = (
            f"{parent.node.path}: the capacity is already managed; pass all options in one call, or for a "
            "HighWaterTable in its constructor"
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
    """Return the managed capacity of *table*.

    Args:
        table: A `HighWaterTable`, or the result of `manage_capacity`.

    Raises:
        TypeError: If *table* is anything else.
    """
    capacity = getattr(table, "capacity", table)
    if not isinstance(capacity, TableCapacity):
        message = f"table must be a HighWaterTable or the result of manage_capacity, got {type(table).__name__}"
        raise TypeError(message)
    return capacity


def _as_scope(table: TableLike) -> Construct:
    return table  # type: ignore[return-value] # every table of the CDK is a Construct
