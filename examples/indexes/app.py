"""Scenario: an order book with three indexes that have different traffic. Shows: an index that follows its table, an
index with its own read capacity and windows, and a sparse index with less write capacity.
"""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterTable, Window

app = cdk.App()
stack = cdk.Stack(app, "Indexes")


def text(name: str) -> dynamodb.Attribute:
    """Return a key attribute of type string."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


nightly_import = Window.daily("nightly-import", start="22:30", end="01:00", timezone="Europe/Berlin", write_min=4_000)
weekend_reports = Window.weekly(
    "weekend-reports", days="SAT,SUN", start="06:00", end="18:00", timezone="Europe/Berlin", read_min=2_500
)

HighWaterTable(
    stack,
    "OrderBook",
    partition_key=text("order_id"),
    read=Capacity.autoscaled(min_capacity=120, max_capacity=5_000),
    write=Capacity.autoscaled(min_capacity=80, max_capacity=6_000),
    windows=[nightly_import],
    indexes=[
        # this index contains every order and needs the same write capacity as the table, so it follows the table's
        # write capacity and windows
        GlobalSecondaryIndex(index_name="by-customer", partition_key=text("customer_id"), sort_key=text("placed_at")),
        # reports read this index at weekends, and the nightly import writes to it
        GlobalSecondaryIndex(
            index_name="by-region",
            partition_key=text("region"),
            read=Capacity.autoscaled(min_capacity=30, max_capacity=3_000),
            windows=[nightly_import, weekend_reports],
        ),
        # this index contains only the few orders with open complaints, so its write capacity is lower than the table's;
        # synth warns of that
        GlobalSecondaryIndex(
            index_name="open-complaints",
            partition_key=text("complaint_id"),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            read=Capacity.fixed(units=15),
            write=Capacity.autoscaled(min_capacity=10, max_capacity=600),
            windows=[],
        ),
    ],
)

app.synth()
