"""What the part `rules` asks AWS about: a long plan, an alarm on throttles, a function that invokes itself, a role."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs

from cdk_highwater import Capacity, GlobalSecondaryIndex, HighWaterMark, HighWaterTable, ThrottleAwareScaler, Window

# invokes itself as often as the event says; then it reports to its log
CHAIN = """
import json
import os

import boto3

def handler(event, context):
    left = event["left"]
    if left == 0:
        print("the chain has ended")
        return
    payload = json.dumps({"left": left - 1}).encode()
    name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    boto3.client("lambda").invoke(FunctionName=name, InvocationType="Event", Payload=payload)
"""
# The policies of a role may have 10,240 characters together, spaces not counted (IAM User Guide, "IAM and AWS STS
# quotas", read 2026-11).
POLICIES = 28

app = cdk.App()
stack = cdk.Stack(app, "Rules")
key, visitor = (dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING) for name in ("id", "visitor"))

KEYS_ONLY = dynamodb.ProjectionType.KEYS_ONLY
scaler = ThrottleAwareScaler(stack, "Scaler")
HighWaterTable(
    stack,
    "Planned",
    partition_key=key,
    indexes=[
        GlobalSecondaryIndex(
            index_name="keys", partition_key=visitor, projection_type=dynamodb.ProjectionType.KEYS_ONLY
        )
    ],
    read=Capacity.autoscaled(min_capacity=2, max_capacity=5),
    write=Capacity.autoscaled(min_capacity=3, max_capacity=20),
    windows=[
        Window.daily(
            f"{number:02}-{'long-name-' * 10}",
            start=f"{number % 24:02}:10",
            end=f"{number % 24:02}:20",
            timezone="UTC",
            lead=cdk.Duration.minutes(0),
            write_min=4,
        )
        for number in range(int(app.node.get_context("windows")))
    ],
    high_water_mark=HighWaterMark.none(),
    windows_held_by=scaler,
)

throttled = dynamodb.Table(stack, "Throttled", partition_key=key, read_capacity=1, write_capacity=1)
alarm = cloudwatch.Alarm(
    stack,
    "Throttles",
    metric=cloudwatch.Metric(
        namespace="AWS/DynamoDB",
        metric_name="WriteThrottleEvents",
        dimensions_map={"TableName": throttled.table_name},
        statistic="Sum",
        period=cdk.Duration.minutes(1),
    ),
    threshold=1,
    evaluation_periods=1,
    comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
)

caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
log_group = logs.LogGroup(stack, "ChainLog")
log_group.grant_write(caller)
chain = lambda_.Function(
    stack,
    "Chain",
    role=caller,
    log_group=log_group,
    runtime=lambda_.Runtime.PYTHON_3_14,
    handler="index.handler",
    code=lambda_.Code.from_inline(CHAIN),
    timeout=cdk.Duration.seconds(30),
    recursive_loop=lambda_.RecursiveLoop.ALLOW,
)
itself = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[chain.function_arn])
iam.Policy(stack, "Itself", roles=[caller], statements=[itself])

role = iam.Role(stack, "Full", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
for number in range(POLICIES):
    statement = iam.PolicyStatement(
        actions=["dynamodb:DescribeTable"],
        resources=[f"arn:aws:dynamodb:{stack.region}:{stack.account}:table/{number:02}{'x' * 200}"],
    )
    iam.Policy(stack, f"Full{number:02}", roles=[role], statements=[statement])

outputs = {
    "ThrottledTable": throttled.table_name,
    "ThrottlesAlarm": alarm.alarm_name,
    "ChainFunction": chain.function_name,
    "ChainLogGroup": log_group.log_group_name,
    "FullRole": role.role_name,
    "ScalerName": scaler.scaler_name,
}
for name, value in outputs.items():
    cdk.CfnOutput(stack, name, value=value)
app.synth()
