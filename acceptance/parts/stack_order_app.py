"""Tables in an open window, in deploys that fail between targets and floors, let a table go, or replace one."""

import aws_cdk as cdk
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, HighWaterMark, HighWaterTable, Window

app = cdk.App()
context = {name: str(app.node.get_context(name)) for name in ("tables", "key", "ceiling", "opens", "closes", "broken")}
stack = cdk.Stack(app, "StackOrder")
for name in context["tables"].split("+"):
    table = HighWaterTable(
        stack,
        name,
        partition_key=dynamodb.Attribute(name=context["key"], type=dynamodb.AttributeType.STRING),
        read=Capacity.fixed(units=5),
        write=Capacity.autoscaled(min_capacity=10, max_capacity=int(context["ceiling"])),
        windows=[
            Window.once(
                "load",
                start=context["opens"],
                end=context["closes"],
                timezone="UTC",
                lead=cdk.Duration.minutes(0),
                write_min=40,
            )
        ],
        high_water_mark=HighWaterMark.none(),
    )
    if context["broken"] == "yes":
        # a maximum below the minimum is refused when the deploy comes to it: after the targets, before the floors
        broken = autoscaling.CfnScalableTarget(
            stack,
            f"Broken{name}",
            min_capacity=9,
            max_capacity=3,
            resource_id=f"table/{table.table_name}",
            scalable_dimension="dynamodb:table:ReadCapacityUnits",
            service_namespace="dynamodb",
        )
        for child in table.node.find_all():
            if isinstance(child, autoscaling.CfnScalableTarget):
                broken.node.add_dependency(child)
            if isinstance(child, cdk.CustomResource):
                child.node.add_dependency(broken)
app.synth()
