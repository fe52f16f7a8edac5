"""A DynamoDB table on demand, with maxima that bound its bill."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from cdk_highwater.support.arguments import require
from highwater.core import Capacity, Dimension, OnDemand
from highwater.core.plan.plan import TargetKey

_OWN: Final = frozenset({"billing_mode", "read_capacity", "write_capacity"})
_MAXIMA: Final = {"max_read_request_units": Dimension.READ, "max_write_request_units": Dimension.WRITE}


class OnDemandTable(dynamodb.Table):
    """A DynamoDB table that is billed by request, up to a maximum.

    The class extends `dynamodb.Table`. As for a `HighWaterTable`, point-in-time recovery and deletion protection are on
    by default, and `CapacityAlarms` watches it. In a stack, it can take the place of a `HighWaterTable` with the same
    id, and the other way round: CloudFormation switches the mode and keeps the table. DynamoDB allows four switches to
    on-demand in 24 hours (Amazon DynamoDB Developer Guide, "Considerations when switching capacity modes", read
    2026-11).

    Args:
        scope: Parent construct.
        id: Unique within *scope*. Changing it replaces the table.
        partition_key: The table's partition key.
        capacity: The result of `Capacity.on_demand`. By default without maxima of its own.
        deletion_protection: By default on.
        point_in_time_recovery_specification: By default on, with DynamoDB's default period.
        table: The other arguments of `dynamodb.Table`, except those about capacity.

    Raises:
        TypeError: If *capacity* is another one, or an argument is about provisioned capacity.

    Example:
        ```python
        key = dynamodb.Attribute(name="click_id", type=dynamodb.AttributeType.STRING)
        clicks = OnDemandTable(
            stack, "Clicks", partition_key=key, capacity=Capacity.on_demand(max_read=4_000, max_write=2_000)
        )
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        partition_key: dynamodb.Attribute,
        capacity: OnDemand | None = None,
        deletion_protection: bool = True,
        point_in_time_recovery_specification: dynamodb.PointInTimeRecoverySpecification | None = None,
        **table: Any,
    ) -> None:
        capacity = Capacity.on_demand() if capacity is None else capacity
        fix = "for provisioned capacity use HighWaterTable"
        require("capacity", capacity, OnDemand, "the result of Capacity.on_demand", fix)
        if wrong := sorted({*_OWN, *_MAXIMA} & table.keys()):
            fix = "give capacity=Capacity.on_demand(max_read=, max_write=)"
            message = f"OnDemandTable has no argument {wrong[0]}; {fix}"
            raise TypeError(message)
        super().__init__(
            scope,
            id,
            partition_key=partition_key,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            deletion_protection=deletion_protection,
            point_in_time_recovery_specification=point_in_time_recovery_specification
            or dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
            **_maxima(capacity),
            **table,
        )
        self._maximum = capacity
        self._indexes: list[str] = []

    @property
    def maximum(self) -> OnDemand:
        """The most units per second of the table and of each index."""
        return self._maximum

    def add_global_secondary_index(self, *, index_name: str, **index: Any) -> None:
        """Add an index as `dynamodb.Table` does; by default it has the table's maxima."""
        super().add_global_secondary_index(index_name=index_name, **{**_maxima(self._maximum), **index})
        self._indexes.append(index_name)

    @property
    def target_keys(self) -> tuple[TargetKey, ...]:
        """Reads and writes of the table and of the indexes that it has at this moment."""
        return tuple((index, dimension) for index in (None, *self._indexes) for dimension in Dimension)


def _maxima(capacity: OnDemand) -> dict[str, Any]:
    found = {name: capacity.of(dimension) for name, dimension in _MAXIMA.items()}
    return {name: units for name, units in found.items() if units is not None}
