"""Scenario: an events table with an index was created by another team's stack or by hand. Shows: this app manages the
table's capacity without owning the table: floors and ceilings, and a one-off window for a sale.
"""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, IndexCapacity, Window, manage_capacity

app = cdk.App()
stack = cdk.Stack(app, "ExistingTable")

# the table stays in its own stack; this app only refers to it by name, which `--context table=...` can change
events = dynamodb.Table.from_table_name(stack, "Events", app.node.try_get_context("table") or "events")

manage_capacity(
    events,
    read=Capacity.autoscaled(min_capacity=40, max_capacity=2_000),
    write=Capacity.autoscaled(min_capacity=60, max_capacity=3_000, target_utilization_percent=60),
    windows=[
        Window.once(
            "summer-sale",
            start="2031-07-04T08:00",
            end="2031-07-06T20:00",
            timezone="Europe/Berlin",
            read_min=1_200,
            write_min=1_800,
        ),
    ],
    # the CDK does not know the indexes of an imported table, so list the indexes to scale here; the write capacity of
    # this index follows the table's, and its read capacity is declared separately
    indexes=[IndexCapacity(index_name="by-visitor", read=Capacity.autoscaled(min_capacity=20, max_capacity=1_500))],
)

app.synth()
