"""A global secondary index of a `HighWaterTable`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_dynamodb as dynamodb

from highwater.core import Capacity, IndexCapacity, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalSecondaryIndex:
    """A global secondary index: its keys, its projection, and what capacity it has of its own.

    Attributes:
        index_name: The index's name, 3 to 255 characters.
        partition_key: Its partition key.
        sort_key: Its sort key. By default none.
        projection_type: Which attributes it holds. By default all of them.
        non_key_attributes: Further attributes, for projection type INCLUDE.
        read: Read capacity. By default the table's.
        write: Write capacity. By default the table's: an index with less holds the table's writes back.
        windows: The windows that apply to it, an empty sequence for none. By default the table's.
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
    contributor_insights_specification: dynamodb.ContributorInsightsSpecification | None = None

    @property
    def plan(self) -> IndexCapacity:
        """What the plan says of it."""
        windows = None if self.windows is None else tuple(self.windows)
        return IndexCapacity(index_name=self.index_name, read=self.read, write=self.write, windows=windows)
