"""Mistakes that a type checker has to find: each line with the mark is an error, and no other is."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, CapacityManaged, HighWaterTable, ThrottleAwareScaler, manage_capacity

stack = cdk.Stack(cdk.App(), "Shop")
key = dynamodb.Attribute(name="order_id", type=dynamodb.AttributeType.STRING)
fixed = Capacity.fixed(5)
table = dynamodb.Table(stack, "Jobs", partition_key=key)

Capacity.autoscaled(min=5, max_capacity=50)  # mistake
HighWaterTable(stack, "Missing", partition_key=key, read=fixed)  # mistake
HighWaterTable(stack, "Text", partition_key=key, read=fixed, write="many")  # mistake
HighWaterTable(stack, "Unknown", partition_key=key, read=fixed, write=fixed, wins=[])  # mistake
manage_capacity(table, read=fixed, write=fixed, scaler_holds_windows=True)  # mistake
CapacityManaged(read=fixed, write=fixed, table_quota_units="80,000")  # mistake
ThrottleAwareScaler(stack, "Scaler", tagged=True)  # mistake
