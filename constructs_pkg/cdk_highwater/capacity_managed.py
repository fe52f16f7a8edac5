"""The mixin form of `manage_capacity`."""

from __future__ import annotations

from typing import Unpack

import jsii
from aws_cdk import aws_dynamodb as dynamodb
from constructs import IConstruct, IMixin

from cdk_highwater.capacity_options import IndexedCapacityOptions
from cdk_highwater.manage_capacity import manage_capacity


@jsii.implements(IMixin)
class CapacityManaged:
    """Manage the capacity of tables by `table.with_(CapacityManaged(...))`, with the arguments of `manage_capacity`.

    Applied to a larger construct, it manages every `Table` and `TableV2` in it; a `CfnTable` only where it is no part
    of a table that is managed already.
    """

    def __init__(self, **options: Unpack[IndexedCapacityOptions]) -> None:
        self._options = options

    def supports(self, construct: IConstruct) -> bool:
        """Whether *construct* is a table."""
        if isinstance(construct, dynamodb.CfnTable):
            return not isinstance(construct.node.scope, dynamodb.Table)
        return isinstance(construct, dynamodb.Table | dynamodb.TableV2)

    def apply_to(self, construct: IConstruct) -> None:
        """Manage the table *construct*; anything else is left alone."""
        if self.supports(construct):
            manage_capacity(construct, **self._options)  # type: ignore[arg-type] # a table: `supports` said so
