"""Scenario: an orders table receives a bulk load of 18,000 writes per second every weekday at 05:00 in New York, and
many reads from 09:00. Shows: a table with two windows, which raise its capacity before each surge begins.
"""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, HighWaterTable, Window

app = cdk.App()
stack = cdk.Stack(app, "BulkLoad")

HighWaterTable(
    stack,
    "Orders",
    partition_key=dynamodb.Attribute(name="order_id", type=dynamodb.AttributeType.STRING),
    # outside the windows, auto scaling follows the traffic between these bounds, in units per second
    read=Capacity.autoscaled(min_capacity=200, max_capacity=8_000),
    write=Capacity.autoscaled(min_capacity=100, max_capacity=20_000),
    windows=[
        # the floor rises five minutes before the start, so that the capacity is high enough when the load begins
        Window.weekly(
            "bulk-load",
            days="MON-FRI",
            start="05:00",
            end="06:30",
            timezone="America/New_York",
            write_min=18_000,
        ),
        Window.weekly(
            "morning-rush",
            days="MON-FRI",
            start="09:00",
            end="11:00",
            timezone="America/New_York",
            read_min=3_000,
            write_min=1_500,
        ),
    ],
)

app.synth()
