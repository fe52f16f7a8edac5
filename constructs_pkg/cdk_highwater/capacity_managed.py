"""The mixin form of `manage_capacity`."""

from __future__ import annotations

from collections.abc import Sequence

import jsii
from aws_cdk import aws_dynamodb as dynamodb
from constructs import IConstruct, IMixin

from cdk_highwater.managed_capacity import manage_capacity
from cdk_highwater.pre_warm import PreWarmStrategy
from highwater.core import Capacity, HighWaterMark, IndexPlan, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS


@jsii.implements(IMixin)
class CapacityManaged:
    """Manage the capacity of tables by `table.with_(CapacityManaged(...))`; see `manage_capacity` for the arguments.

    Applied to a larger construct, it manages every `Table` and `TableV2` in it; a `CfnTable` only where it is no part
    of a table that is managed already.
    """

    def __init__(
        self,
        *,
        read: Capacity,
        write: Capacity,
        windows: Sequence[Window] = (),
        indexes: Sequence[IndexPlan] = (),
        high_water_mark: HighWaterMark | None = None,
        table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
        pre_warm_strategy: PreWarmStrategy = PreWarmStrategy.WARM_THROUGHPUT,
        scaler_holds_windows: bool = False,
    ) -> None:
        self._read = read
        self._write = write
        self._windows = tuple(windows)
        self._indexes = tuple(indexes)
        self._high_water_mark = high_water_mark
        self._table_quota_units = table_quota_units
        self._pre_warm_strategy = pre_warm_strategy
        self._scaler_holds_windows = scaler_holds_windows

    def supports(self, construct: IConstruct) -> bool:
        """Whether *construct* is a table."""
        if isinstance(construct, dynamodb.CfnTable):
            return not isinstance(construct.node.scope, dynamodb.Table)
        return isinstance(construct, dynamodb.Table | dynamodb.TableV2)

    def apply_to(self, construct: IConstruct) -> None:
        """Manage the table *construct*; anything else is left alone."""
        if not self.supports(construct):
            return
        manage_capacity(
            construct,  # type: ignore[arg-type] # a table: `supports` said so
            read=self._read,
            write=self._write,
            windows=self._windows,
            indexes=self._indexes,
            high_water_mark=self._high_water_mark,
            table_quota_units=self._table_quota_units,
            pre_warm_strategy=self._pre_warm_strategy,
            scaler_holds_windows=self._scaler_holds_windows,
        )
