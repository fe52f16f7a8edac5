"""A user's app, with every kind of argument the constructs take; checked by mypy --strict and pyright, never run."""

from __future__ import annotations

from datetime import timedelta

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sns as sns

from cdk_highwater import (
    Capacity,
    CapacityAlarms,
    CapacityDashboard,
    CapacityManaged,
    CapacityOptions,
    GlobalSecondaryIndex,
    HighWaterMark,
    HighWaterTable,
    IndexCapacity,
    PreWarm,
    TableCapacity,
    TaggedTables,
    ThrottleAwareScaler,
    Window,
    manage_capacity,
)

app = cdk.App()
stack = cdk.Stack(app, "Shop")
key = dynamodb.Attribute(name="order_id", type=dynamodb.AttributeType.STRING)
# pyright takes aws-cdk-lib's own Topic for no ITopic; one that is imported is
topic = sns.Topic.from_topic_arn(stack, "Alarms", "arn:aws:sns:us-east-1:111122223333:alarms")

scaler = ThrottleAwareScaler(stack, "Scaler", topic=topic, tagged=TaggedTables(regions=["eu-west-1"]), dry_run=False)
night = Window.daily(
    "night", start="23:00", end="02:00", timezone="Europe/Berlin", write_min=900, lead=cdk.Duration.minutes(10)
)
sale = Window.once(
    "sale", start="2031-11-28T00:00", end="2031-11-29T00:00", timezone="UTC", read_max=9_000, lead=timedelta(minutes=5)
)
write = Capacity.autoscaled(max_capacity=8_000, scale_in_cooldown=cdk.Duration.minutes(1))

orders = HighWaterTable(
    stack,
    "Orders",
    partition_key=key,
    sort_key=dynamodb.Attribute(name="placed_at", type=dynamodb.AttributeType.NUMBER),
    read=Capacity.fixed(25),
    write=write,
    windows=[night, sale],
    indexes=[GlobalSecondaryIndex(index_name="by-day", partition_key=key, write=Capacity.fixed(12), windows=[])],
    high_water_mark=HighWaterMark.to_ceiling(),
    table_quota_units=80_000,
    windows_held_by=scaler,
    removal_policy=cdk.RemovalPolicy.RETAIN,
)

options: CapacityOptions = {"read": Capacity.fixed(7), "write": write, "windows": [night]}
events: TableCapacity = manage_capacity(
    dynamodb.Table.from_table_name(stack, "Events", "events"),
    indexes=[IndexCapacity(index_name="by-visitor")],
    **options,
)
scaler.add_table(events)
dynamodb.Table(stack, "Jobs", partition_key=key).with_(CapacityManaged(read=Capacity.fixed(3), write=write))
scaler.add_direct_table(dynamodb.Table(stack, "Clicks", partition_key=key), read=Capacity.fixed(4), write=write)

PreWarm(
    stack,
    "Warm",
    table=orders,
    warm_throughput=dynamodb.WarmThroughput(read_units_per_second=2_000, write_units_per_second=3_000),
)
alarms: tuple[cloudwatch.Alarm, ...] = CapacityAlarms(stack, "OrdersAlarms", table=orders, topic=topic).alarms
dashboard: cloudwatch.Dashboard = CapacityDashboard(
    stack, "Dashboard", tables=[orders, events], scaler=scaler
).dashboard
metric: cloudwatch.Metric = scaler.metric_at_ceiling()
floors: list[float] = [target.capacity.min_capacity for target in orders.plan.targets()]
