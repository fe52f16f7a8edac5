"""A DynamoDB table with planned capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_highwater.annotations import annotate
from cdk_highwater.argument_types import list_of
from cdk_highwater.capacity_options import CapacityOptions, declared_plan
from cdk_highwater.global_secondary_index import GlobalSecondaryIndex
from cdk_highwater.initial_units import LOWEST_INITIAL_UNITS, initial_findings, synthesizable
from cdk_highwater.manage_capacity import manage_capacity
from cdk_highwater.table_capacity import TableCapacity
from cdk_highwater.table_findings import second_target
from highwater.core import Plan

Number = int | float


class HighWaterTable(dynamodb.Table):
    """A provisioned DynamoDB table with planned capacity: floors, ceilings, windows and a high-water mark.

    The class extends `dynamodb.Table`, including grants, streams, metrics and local secondary indexes. Point-in-time
    recovery and deletion protection are on by default. For replicas, use `TableV2` with `manage_capacity`.

    Args:
        scope: Parent construct.
        id: Unique within *scope*. Changing it replaces the table.
        partition_key: The table's partition key.
        sort_key: The table's sort key. By default none.
        indexes: Global secondary indexes. Each has the table's capacity and windows except where it sets its own. By
            default none.
        initial_read_units: Read units per second with which CloudFormation creates the table and its indexes, before
            auto scaling raises them to their floors: a whole number from 1 to `table_quota_units`. By default 1. Set it
            for a table that was deployed with another value, and for a table that is on demand so far: CloudFormation
            switches the table to these units, and requests above them are throttled. A change after the first deploy
            resets the live capacity.
        initial_write_units: The same for writes.
        deletion_protection: By default on.
        point_in_time_recovery_specification: By default on, with DynamoDB's default period.
        capacity: The declared capacity: `read`, `write`, `windows` and more, as documented by `CapacityOptions`.

    The other arguments are the same as those of `dynamodb.Table`.
    """

    # its own methods refuse second scalable targets
    refuses_second_targets = True

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        partition_key: dynamodb.Attribute,
        sort_key: dynamodb.Attribute | None = None,
        indexes: Sequence[GlobalSecondaryIndex] = (),
        initial_read_units: int = LOWEST_INITIAL_UNITS,
        initial_write_units: int = LOWEST_INITIAL_UNITS,
        table_name: str | None = None,
        deletion_protection: bool = True,
        point_in_time_recovery_specification: dynamodb.PointInTimeRecoverySpecification | None = None,
        removal_policy: cdk.RemovalPolicy | None = None,
        encryption: dynamodb.TableEncryption | None = None,
        encryption_key: kms.IKey | None = None,
        stream: dynamodb.StreamViewType | None = None,
        kinesis_stream: kinesis.IStream | None = None,
        kinesis_precision_timestamp: dynamodb.ApproximateCreationDateTimePrecision | None = None,
        time_to_live_attribute: str | None = None,
        table_class: dynamodb.TableClass | None = None,
        contributor_insights_specification: dynamodb.ContributorInsightsSpecification | None = None,
        import_source: dynamodb.ImportSourceSpecification | None = None,
        resource_policy: iam.PolicyDocument | None = None,
        **capacity: Unpack[CapacityOptions],
    ) -> None:
        # before the table is created, so that a wrong argument is the only error
        indexes = list_of("indexes", indexes, GlobalSecondaryIndex)
        planned = [index.plan for index in indexes]
        plan = declared_plan({**capacity, "indexes": planned})
        super().__init__(
            scope,
            id,
            partition_key=partition_key,
            sort_key=sort_key,
            billing_mode=dynamodb.BillingMode.PROVISIONED,
            read_capacity=synthesizable(initial_read_units),
            write_capacity=synthesizable(initial_write_units),
            table_name=table_name,
            deletion_protection=deletion_protection,
            point_in_time_recovery_specification=point_in_time_recovery_specification
            or dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
            removal_policy=removal_policy,
            encryption=encryption,
            encryption_key=encryption_key,
            stream=stream,
            kinesis_stream=kinesis_stream,
            kinesis_precision_timestamp=kinesis_precision_timestamp,
            time_to_live_attribute=time_to_live_attribute,
            table_class=table_class,
            contributor_insights_specification=contributor_insights_specification,
            import_source=import_source,
            resource_policy=resource_policy,
        )
        # without duplicates: a later check reports them, and the CDK would raise an exception here
        for index in {index.index_name: index for index in indexes}.values():
            self.add_global_secondary_index(
                index_name=index.index_name,
                partition_key=index.partition_key,
                sort_key=index.sort_key,
                projection_type=index.projection_type,
                non_key_attributes=index.non_key_attributes,
                read_capacity=synthesizable(_first(index.initial_read_units, initial_read_units)),
                write_capacity=synthesizable(_first(index.initial_write_units, initial_write_units)),
                contributor_insights_specification=index.contributor_insights_specification,
            )
        annotate(
            self, initial_findings(initial_read_units, initial_write_units, indexes, quota_units=plan.table_quota_units)
        )
        self._capacity = manage_capacity(self, indexes=planned, **capacity)

    @property
    def capacity(self) -> TableCapacity:
        """The table's managed capacity."""
        return self._capacity

    @property
    def plan(self) -> Plan:
        """The plan for the table and its indexes."""
        return self._capacity.plan

    def auto_scale_read_capacity(
        self, *, max_capacity: Number, min_capacity: Number
    ) -> dynamodb.IScalableTableAttribute:
        """Report an error at synth, because the plan already scales the table's reads."""
        self._refuse_second_target("auto_scale_read_capacity", "read=Capacity.autoscaled(...)")
        return super().auto_scale_read_capacity(max_capacity=max_capacity, min_capacity=min_capacity)

    def auto_scale_write_capacity(
        self, *, max_capacity: Number, min_capacity: Number
    ) -> dynamodb.IScalableTableAttribute:
        """Report an error at synth, because the plan already scales the table's writes."""
        self._refuse_second_target("auto_scale_write_capacity", "write=Capacity.autoscaled(...)")
        return super().auto_scale_write_capacity(max_capacity=max_capacity, min_capacity=min_capacity)

    def auto_scale_global_secondary_index_read_capacity(
        self, index_name: str, *, max_capacity: Number, min_capacity: Number
    ) -> dynamodb.IScalableTableAttribute:
        """Report an error at synth, because the plan already scales the index's reads."""
        remedy = f"read=Capacity.autoscaled(...) in the GlobalSecondaryIndex {index_name!r}"
        self._refuse_second_target("auto_scale_global_secondary_index_read_capacity", remedy)
        return super().auto_scale_global_secondary_index_read_capacity(
            index_name, max_capacity=max_capacity, min_capacity=min_capacity
        )

    def auto_scale_global_secondary_index_write_capacity(
        self, index_name: str, *, max_capacity: Number, min_capacity: Number
    ) -> dynamodb.IScalableTableAttribute:
        """Report an error at synth, because the plan already scales the index's writes."""
        remedy = f"write=Capacity.autoscaled(...) in the GlobalSecondaryIndex {index_name!r}"
        self._refuse_second_target("auto_scale_global_secondary_index_write_capacity", remedy)
        return super().auto_scale_global_secondary_index_write_capacity(
            index_name, max_capacity=max_capacity, min_capacity=min_capacity
        )

    def _refuse_second_target(self, call: str, remedy: str) -> None:
        annotate(self, [second_target(f"{call}()", f"remove the call, and give {remedy}")])


def _first(units: int | None, otherwise: int) -> int:
    return otherwise if units is None else units
