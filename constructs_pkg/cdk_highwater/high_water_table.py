"""A DynamoDB table with its capacity planned."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_highwater.global_index import GlobalIndex
from cdk_highwater.managed_capacity import ManagedCapacity, manage_capacity
from cdk_highwater.pre_warm import PreWarmStrategy
from highwater.core import Capacity, HighWaterMark, Plan, Window
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS

# What a new table is created with; Application Auto Scaling lifts it to its floors within seconds. It must stay the
# same for good: a change in the template would make CloudFormation reset the live capacity.
_INITIAL_UNITS = 1


class HighWaterTable(dynamodb.Table):
    """A provisioned DynamoDB table whose capacity is planned: floors, ceilings, windows and a high-water mark.

    It is a `dynamodb.Table`, so grants, streams, metrics and local secondary indexes work as there. Point-in-time
    recovery and deletion protection are on unless turned off. Replicas are left to `TableV2`.

    Args:
        scope: Parent construct.
        id: Unique within *scope*. Changing it replaces the table.
        partition_key: The table's partition key.
        read: Read capacity.
        write: Write capacity.
        sort_key: The table's sort key. By default none.
        windows: Windows of higher capacity. By default none.
        indexes: Global secondary indexes; each follows the table but for what it states. By default none.
        high_water_mark: By default the highest floor declared, so that no window waits for partitions.
        table_quota_units: The account's quota for a table or index. By default 40,000, AWS's own.
        pre_warm_strategy: How marks are raised. By default WARM_THROUGHPUT.
        scaler_holds_windows: Have the `ThrottleAwareScaler` that looks after the table hold the windows, and no
            scheduled action: for more than 200 actions, or windows of zones with different clock rules. By default not.
        initial_read_units: What the template creates the table and its indexes with, before auto scaling lifts it to
            its floor; only for a table that was deployed with another value. By default 1. A change after the first
            deploy resets the live capacity.
        initial_write_units: Likewise for writes.
        deletion_protection: By default on.
        point_in_time_recovery_specification: By default on, with DynamoDB's own period.

    The other arguments are those of `dynamodb.Table` and mean the same.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        partition_key: dynamodb.Attribute,
        read: Capacity,
        write: Capacity,
        sort_key: dynamodb.Attribute | None = None,
        windows: Sequence[Window] = (),
        indexes: Sequence[GlobalIndex] = (),
        high_water_mark: HighWaterMark | None = None,
        table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS,
        pre_warm_strategy: PreWarmStrategy = PreWarmStrategy.WARM_THROUGHPUT,
        scaler_holds_windows: bool = False,
        initial_read_units: int = _INITIAL_UNITS,
        initial_write_units: int = _INITIAL_UNITS,
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
    ) -> None:
        super().__init__(
            scope,
            id,
            partition_key=partition_key,
            sort_key=sort_key,
            billing_mode=dynamodb.BillingMode.PROVISIONED,
            read_capacity=initial_read_units,
            write_capacity=initial_write_units,
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
        # one that is listed twice is a finding, and would be a traceback here
        for index in {index.name: index for index in indexes}.values():
            self.add_global_secondary_index(
                index_name=index.name,
                partition_key=index.partition_key,
                sort_key=index.sort_key,
                projection_type=index.projection_type,
                non_key_attributes=index.non_key_attributes,
                read_capacity=initial_read_units,
                write_capacity=initial_write_units,
                contributor_insights_specification=index.contributor_insights_specification,
            )
        self._capacity = manage_capacity(
            self,
            read=read,
            write=write,
            windows=windows,
            indexes=[index.plan for index in indexes],
            high_water_mark=high_water_mark,
            table_quota_units=table_quota_units,
            pre_warm_strategy=pre_warm_strategy,
            scaler_holds_windows=scaler_holds_windows,
        )

    @property
    def capacity(self) -> ManagedCapacity:
        """The managed capacity, with its plan."""
        return self._capacity

    @property
    def plan(self) -> Plan:
        """All that is declared for the table and its indexes."""
        return self._capacity.plan
