"""`manage_capacity`, and the same as a CDK mixin: capacity of tables that are not a `HighWaterTable`."""

from __future__ import annotations

from typing import Unpack

import jsii
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct, IConstruct, IMixin

from cdk_highwater.support.arguments import require_or_none
from cdk_highwater.table.capacity import IndexedCapacityOptions, TableCapacity, declared_plan
from cdk_highwater.table.subject import TableLike, refuse_other_than_tables

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

    Example:
        ```python
        imported = dynamodb.Table.from_table_name(stack, "Imported", "orders")
        manage_capacity(imported, read=Capacity.fixed(units=25), write=Capacity.autoscaled(max_capacity=2_000))
        ```
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
        plan=declared_plan(options, ("scope",)),
        windows_held_by=options.get("windows_held_by"),
        has_default_mark=options.get("high_water_mark") is None,
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


@jsii.implements(IMixin)
class CapacityManaged:
    """Manage the capacity of tables by `table.with_(CapacityManaged(...))`, with the arguments of `manage_capacity`.

    Applied to a construct that contains tables, the mixin manages every `Table`, `TableV2` and `CfnTable` in it. It
    skips the `CfnTable` inside a `Table`.

    Raises:
        TypeError: If an argument is of another type than documented.

    Example:
        ```python
        follow = Capacity.autoscaled(min_capacity=25, max_capacity=2_000)
        stack.with_(CapacityManaged(read=follow, write=follow))
        ```
    """

    def __init__(self, **options: Unpack[IndexedCapacityOptions]) -> None:
        # checked here, because the CDK wraps an error that a mixin raises when it is applied
        declared_plan(options)
        self._options = options

    def supports(self, construct: IConstruct) -> bool:
        """Whether *construct* is a table."""
        if isinstance(construct, dynamodb.CfnTable):
            return not isinstance(construct.node.scope, dynamodb.Table)
        return isinstance(construct, dynamodb.Table | dynamodb.TableV2)

    def apply_to(self, construct: IConstruct) -> None:
        """Manage the capacity of *construct* if it is a table; do nothing otherwise."""
        if self.supports(construct):
            manage_capacity(construct, **self._options)  # type: ignore[arg-type] # `supports` is true for tables only
