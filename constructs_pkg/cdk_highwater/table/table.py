"""A DynamoDB table with planned capacity, and its global secondary indexes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_highwater.support.arguments import list_of, require
from cdk_highwater.support.nag import annotate
from cdk_highwater.table.capacity import CapacityOptions, TableCapacity, declared_plan
from cdk_highwater.table.fitting import second_target
from cdk_highwater.table.manage import manage_capacity
from highwater.core import Capacity, Finding, IndexCapacity, Plan, Window
from highwater.core.findings import above_quota, is_whole, units_not_positive
from highwater.core.limits import MAX_KEY_ATTRIBUTES
from highwater.core.names import resource_label
from highwater.core.plan.capacity import is_deploy_time


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalSecondaryIndex:
    """A global secondary index: keys, projection, and capacity where it differs from the table's.

    Attributes:
        index_name: The name of the index, 3 to 255 characters.
        partition_key: The partition key of the index.
        sort_key: The sort key of the index. By default none.
        partition_keys: Instead of *partition_key*, up to four attributes that are the partition key together.
        sort_keys: Instead of *sort_key*, up to four attributes that are the sort key together, in their order.
        projection_type: The attributes that the index contains. By default all.
        non_key_attributes: Further attributes, for projection type INCLUDE.
        read: Read capacity. By default the table's.
        write: Write capacity. By default the table's. An index with less write capacity than its table throttles the
            table's writes.
        windows: The windows that apply to the index, an empty sequence for none. By default the table's.
        initial_read_units: Read units per second with which CloudFormation creates the index, a whole number from 1 to
            the table's `table_quota_units`. By default the table's `initial_read_units`. Like those, they must not
            change after the first deploy.
        initial_write_units: The same for writes. DynamoDB begins to build an index that is added to a table with these
            units. Some minutes later, the deploy gives the index the table's present write capacity, within the index's
            own bounds. On a table in use, give that capacity here too: an index with less throttles the table's writes.
        contributor_insights_specification: Contributor Insights of the index. By default off.
        is_managed: Whether the index is scaled. Give false in the deploy that adds it to a table, which then changes
            nothing but the table, and leave it out in the next. By default true.

    Example:
        ```python
        day = dynamodb.Attribute(name="day", type=dynamodb.AttributeType.STRING)
        by_day = GlobalSecondaryIndex(index_name="by-day", partition_key=day, read=Capacity.fixed(units=10))
        HighWaterTable(stack, "Orders", partition_key=key, read=follow, write=follow, indexes=[by_day])
        ```
    """

    index_name: str
    partition_key: dynamodb.Attribute | None = None
    sort_key: dynamodb.Attribute | None = None
    partition_keys: Sequence[dynamodb.Attribute] | None = None
    sort_keys: Sequence[dynamodb.Attribute] | None = None
    projection_type: dynamodb.ProjectionType = dynamodb.ProjectionType.ALL
    non_key_attributes: Sequence[str] | None = None
    read: Capacity | None = None
    write: Capacity | None = None
    windows: Sequence[Window] | None = None
    initial_read_units: int | None = None
    initial_write_units: int | None = None
    contributor_insights_specification: dynamodb.ContributorInsightsSpecification | None = None
    is_managed: bool = True

    def __post_init__(self) -> None:
        require("index_name", self.index_name, str, "a text", "give the name in quotes")
        if self.non_key_attributes is not None:
            list_of("non_key_attributes", self.non_key_attributes, str)
        self._check_keys("partition", self.partition_key, self.partition_keys)
        self._check_keys("sort", self.sort_key, self.sort_keys)
        if self.partition_key is None and self.partition_keys is None:
            raise ValueError(f"index {self.index_name!r} has no partition key; {_key_fix('partition')}")

    def _check_keys(self, kind: str, key: object, keys: Sequence[dynamodb.Attribute] | None) -> None:
        if keys is None:
            return
        number = len(list_of(f"{kind}_keys", keys, dynamodb.Attribute))
        where = f"index {self.index_name!r}: {kind}"
        if key is not None:
            raise ValueError(f"{where}_key and {kind}_keys are both given; {_key_fix(kind)}")
        if not 1 <= number <= MAX_KEY_ATTRIBUTES:
            raise ValueError(f"{where}_keys: got {number}, allowed: 1 to {MAX_KEY_ATTRIBUTES}; {_key_fix(kind)}")

    @property
    def plan(self) -> IndexCapacity:
        """The entry for the index in the table's plan."""
        windows = None
        if self.windows is not None:
            windows = list_of(f"windows of index {self.index_name!r}", self.windows, Window)
        return IndexCapacity(
            index_name=self.index_name, read=self.read, write=self.write, windows=windows, is_managed=self.is_managed
        )


def _key_fix(kind: str) -> str:
    return f"give one attribute in {kind}_key=, or several in {kind}_keys="


# The value must never change: after a change in the template, CloudFormation would reset the live capacity.
LOWEST_INITIAL_UNITS = 1


def initial_findings(
    read: object, write: object, indexes: Iterable[GlobalSecondaryIndex], *, quota_units: int
) -> Iterator[Finding]:
    """Find initial units that are not positive whole numbers, or above the quota; a deploy would fail on them.

    Args:
        read: The table's initial read units. A number that only CloudFormation knows is not checked.
        write: The table's initial write units, likewise.
        indexes: The indexes. `None` means the same units as the table.
        quota_units: The account's quota. One that is not a positive whole number is reported with the plan.
    """
    declared = {"table initial_read_units": read, "table initial_write_units": write}
    for index in indexes:
        label = resource_label(index.index_name)
        own = {"initial_read_units": index.initial_read_units, "initial_write_units": index.initial_write_units}
        declared |= {f"{label} {name}": units for name, units in own.items() if units is not None}
    has_quota = is_whole(quota_units) and quota_units > 0
    for subject, units in declared.items():
        if is_deploy_time(units):
            continue
        if not isinstance(units, int) or not is_whole(units) or units < 1:
            yield units_not_positive(subject, units)
        elif has_quota and units > quota_units:
            yield above_quota(subject, units, quota_units)


def synthesizable(units: int) -> int:
    """Return *units*, or the lowest value if it is of another type, for which the CDK might raise its own error."""
    return units if is_deploy_time(units) or is_whole(units) else LOWEST_INITIAL_UNITS


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
            for a table that was deployed with another value, and for a table that has been on demand until now:
            CloudFormation switches the table to these units, and requests above them are throttled. A change after the
            first deploy resets the live capacity.
        initial_write_units: The same for writes.
        deletion_protection: By default on.
        point_in_time_recovery_specification: By default on, with DynamoDB's default period.
        capacity: The declared capacity: `read`, `write`, `windows` and more, as documented by `CapacityOptions`.

    The other arguments are the same as those of `dynamodb.Table`.

    Example:
        ```python
        follow = Capacity.autoscaled(min_capacity=25, max_capacity=2_000)
        key = dynamodb.Attribute(name="order_id", type=dynamodb.AttributeType.STRING)
        orders = HighWaterTable(stack, "Orders", partition_key=key, read=follow, write=follow)
        ```
    """

    # its own methods report second scalable targets
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
        own = inspect.getfullargspec(HighWaterTable.__init__).kwonlyargs
        plan = declared_plan({**capacity, "indexes": planned}, own)
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
                partition_keys=index.partition_keys,
                sort_keys=index.sort_keys,
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
