"""A global secondary index of a `HighWaterTable`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater.argument_types import list_of, require
from highwater.core import Capacity, IndexCapacity, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalSecondaryIndex:
    """A global secondary index: keys, projection, and capacity where it differs from the table's.

    Attributes:
        index_name: The name of the index, 3 to 255 characters.
        partition_key: The partition key of the index.
        sort_key: The sort key of the index. By default none.
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
    """

    index_name: str
    partition_key: dynamodb.Attribute
    sort_key: dynamodb.Attribute | None = None
    projection_type: dynamodb.ProjectionType = dynamodb.ProjectionType.ALL
    non_key_attributes: Sequence[str] | None = None
    read: Capacity | None = None
    write: Capacity | None = None
    windows: Sequence[Window] | None = None
    initial_read_units: int | None = None
    initial_write_units: int | None = None
    contributor_insights_specification: dynamodb.ContributorInsightsSpecification | None = None

    def __post_init__(self) -> None:
        require("index_name", self.index_name, str, "a text", "give the name in quotes")
        if self.non_key_attributes is not None:
            list_of("non_key_attributes", self.non_key_attributes, str)

    @property
    def plan(self) -> IndexCapacity:
        """The entry for the index in the table's plan."""
        windows = None
        if self.windows is not None:
            windows = list_of(f"windows of index {self.index_name!r}", self.windows, Window)
        return IndexCapacity(index_name=self.index_name, read=self.read, write=self.write, windows=windows)
