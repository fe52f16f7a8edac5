"""`manage_capacity` as a CDK mixin."""

from __future__ import annotations

from typing import Unpack

import jsii
from aws_cdk import aws_dynamodb as dynamodb
from constructs import IConstruct, IMixin

from cdk_highwater.capacity_options import IndexedCapacityOptions, declared_plan
from cdk_highwater.manage_capacity import manage_capacity


@jsii.implements(IMixin)
class CapacityManaged:
    """Manage the capacity of tables by `table.with_(CapacityManaged(...))`, with the arguments of `manage_capacity`.

    Applied to a construct that contains tables, the mixin manages every `Table`, `TableV2` and `CfnTable` in it. It
    skips the `CfnTable` inside a `Table`.

    Raises:
        TypeError: If an argument is of another type than documented.
    """

    def __init__(self, **options: Unpack[IndexedCapacityOptions]) -> None:
        # an error that a mixin raises when it is applied is wrapped by the CDK
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
