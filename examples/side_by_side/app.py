"""Scenario: a table has little traffic until a crawler finds it and multiplies the traffic by ten, without notice.
Shows: the same table four times: with target tracking alone, with the throttle-aware scaler in addition, with a job
that knows what is coming and boosts it, and with clients that tell the scaler what they ask for.
"""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from cdk_highwater import BoostCoordinator, Capacity, HighWaterTable, ThrottleAwareScaler

app = cdk.App()
stack = cdk.Stack(app, "SideBySide")


def pages(id: str, target_utilization_percent: int) -> HighWaterTable:
    """Create a table of pages; all tables have the same floor and the same ceiling."""
    return HighWaterTable(
        stack,
        id,
        partition_key=dynamodb.Attribute(name="page_id", type=dynamodb.AttributeType.STRING),
        read=Capacity.autoscaled(
            min_capacity=5, max_capacity=500, target_utilization_percent=target_utilization_percent
        ),
        write=Capacity.autoscaled(
            min_capacity=40, max_capacity=2_000, target_utilization_percent=target_utilization_percent
        ),
        deletion_protection=False,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )


pages("Native", 70)
# with the scaler, target tracking can run at 90 %, because the scaler adds headroom when it is needed
scaler = ThrottleAwareScaler(stack, "Scaler")
scaler.add_table(pages("Scaled", 90))

pulsed = pages("Pulsed", 90)
scaler.add_table(pulsed)
told = BoostCoordinator(stack, "Pulses", scaler=scaler)
crawled = iam.Role(stack, "Crawled", assumed_by=iam.AccountRootPrincipal())
told.grant_pulse(crawled, tables=[pulsed])
cdk.CfnOutput(stack, "CrawledRole", value=crawled.role_arn)
cdk.CfnOutput(stack, "Teller", value=told.coordinator_name)

boosted = pages("Boosted", 70)
coordinator = BoostCoordinator(stack, "Boosts")
coordinator.add_table(boosted)
loader = iam.Role(stack, "Loader", assumed_by=iam.AccountRootPrincipal())
coordinator.grant_boost(loader, max_write=600, tables=[boosted])
cdk.CfnOutput(stack, "LoaderRole", value=loader.role_arn)
cdk.CfnOutput(stack, "Coordinator", value=coordinator.coordinator_name)
app.synth()
