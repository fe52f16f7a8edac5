"""Scenario: a click log can have a surge at any time, from a crawler or a sale; a table of visitors has a nightly load.
Shows: the throttle-aware scaler for two tables, one of them with an index, alarms to an SNS topic, and a dashboard.
"""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from cdk_highwater import (
    Capacity,
    CapacityAlarms,
    CapacityDashboard,
    GlobalSecondaryIndex,
    HighWaterTable,
    ThrottleAwareScaler,
    Window,
)

app = cdk.App()
stack = cdk.Stack(app, "Surges")


def text(name: str) -> dynamodb.Attribute:
    """Return a key attribute of type string."""
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


# with the scaler, target tracking can run at 90 %, because the scaler adds headroom when it is needed
clicks = HighWaterTable(
    stack,
    "Clicks",
    partition_key=text("click_id"),
    read=Capacity.autoscaled(min_capacity=25, max_capacity=2_000, target_utilization_percent=90),
    write=Capacity.autoscaled(min_capacity=40, max_capacity=8_000, target_utilization_percent=90),
    indexes=[GlobalSecondaryIndex(index_name="by-page", partition_key=text("page"))],
)
visitors = HighWaterTable(
    stack,
    "Visitors",
    partition_key=text("visitor_id"),
    read=Capacity.autoscaled(min_capacity=30, max_capacity=3_000, target_utilization_percent=90),
    write=Capacity.autoscaled(min_capacity=10, max_capacity=900, target_utilization_percent=90),
    windows=[Window.daily("nightly-merge", start="02:00", end="03:30", timezone="Europe/Berlin", write_min=700)],
)
key = kms.Key(stack, "AlarmKey", enable_key_rotation=True, description="Alarms of the scaler")
key.grant_encrypt_decrypt(iam.ServicePrincipal("cloudwatch.amazonaws.com"))
alarms = sns.Topic(stack, "ScalerAlarms", master_key=key, enforce_ssl=True)
# a topic that has a policy of its own, as for enforce_ssl, no longer has the one by which alarms may publish
alarms.grant_publish(iam.ServicePrincipal("cloudwatch.amazonaws.com"))
scaler = ThrottleAwareScaler(stack, "Scaler", topic=alarms)
for table in (clicks, visitors):
    scaler.add_table(table)
CapacityAlarms(stack, "ClicksAlarms", table=clicks, topic=alarms)
CapacityDashboard(stack, "Dashboard", tables=[clicks, visitors], scaler=scaler)
app.synth()
