"""Scenario: an order book with three indexes that are used differently. Shows: an index that follows its table, one
with reads and windows of its own, and a sparse one with fewer writes.
"""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterTable, Window

app = cdk.App()
stack = cdk.Stack(app, "Indexes")


def text(name: str) -> dynamodb.Attribute:
    """A key attribute that holds text."""
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
        # every order is in it, so it must keep up with the table: it follows the table's writes and windows
        GlobalSecondaryIndex(index_name="by-customer", partition_key=text("customer_id"), sort_key=text("placed_at")),
        # reports read it at weekends; the nightly import writes to it too
        GlobalSecondaryIndex(
            index_name="by-region",
            partition_key=text("region"),
            read=Capacity.autoscaled(min_capacity=30, max_capacity=3_000),
            windows=[nightly_import, weekend_reports],
        ),
        # only open complaints are in it, few of the orders: writes of its own, which synth warns of
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
