"""A table with one window, whose times, floor and ceiling come from the context."""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, HighWaterMark, HighWaterTable, Window

app = cdk.App()
stack = cdk.Stack(app, "Windows")
HighWaterTable(
    stack,
    "Orders",
    partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
    read=Capacity.fixed(units=5),
    write=Capacity.autoscaled(min_capacity=10, max_capacity=int(app.node.get_context("ceiling"))),
    windows=[
        Window.once(
            "load",
            start=app.node.get_context("opens"),
            end=app.node.get_context("closes"),
            timezone="UTC",
            lead=cdk.Duration.minutes(0),
            write_min=int(app.node.get_context("floor")),
        )
    ],
    high_water_mark=HighWaterMark.none(),
)
app.synth()
