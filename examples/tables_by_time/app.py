"""Scenario: events are written all day, read by month, and not needed after 100 days. Shows: a table per month that a
function makes ahead, lowers, exports and deletes; a default table that takes what has no other place; and alarms.
"""

import json
from pathlib import Path
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from constructs import IConstruct
from periods import Periods

app = cdk.App()
stack = cdk.Stack(app, "TablesByTime")
periods = Periods("events")
settings = {
    "prefix": periods.prefix,
    "read": 50,
    # units per second of the current table, which `--context write=...` can change
    "write": int(app.node.try_get_context("write") or 40),
    "past_read": 10,
    "retention_days": 100,
}

# on demand, it costs nothing while it is not used; the other tables are made with its keys
default = dynamodb.TableV2(
    stack,
    "Default",
    table_name=periods.default,
    partition_key=dynamodb.Attribute(name="source", type=dynamodb.AttributeType.STRING),
    sort_key=dynamodb.Attribute(name="at", type=dynamodb.AttributeType.STRING),
    point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
    deletion_protection=True,
)
bucket = s3.Bucket(
    stack,
    "Exports",
    block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
    encryption=s3.BucketEncryption.S3_MANAGED,
    enforce_ssl=True,
    versioned=True,
)

log_group = logs.LogGroup(
    stack, "Logs", retention=logs.RetentionDays.THREE_MONTHS, removal_policy=cdk.RemovalPolicy.DESTROY
)


def table_arn(name: str) -> str:
    return stack.format_arn(service="dynamodb", resource="table", resource_name=name)


# the tables of months, and no other: a question mark is one character
months = f"{periods.prefix}-????-??"
allowed = (
    (["dynamodb:ListExports", "dynamodb:ListTables"], ["*"]),
    (["dynamodb:DescribeTable"], [table_arn(periods.default), table_arn(months)]),
    (
        [
            "dynamodb:CreateTable",
            "dynamodb:DeleteTable",
            "dynamodb:DescribeContinuousBackups",
            "dynamodb:ExportTableToPointInTime",
            "dynamodb:UpdateContinuousBackups",
            "dynamodb:UpdateTable",
        ],
        [table_arn(months)],
    ),
    (["dynamodb:DescribeExport"], [table_arn(f"{months}/export/*")]),
    # DynamoDB writes an export in the name of the role
    (["s3:AbortMultipartUpload", "s3:PutObject", "s3:PutObjectAcl"], [bucket.arn_for_objects("*")]),
    (["logs:CreateLogStream", "logs:PutLogEvents"], [log_group.log_group_arn]),
)
statements = [iam.PolicyStatement(actions=actions, resources=resources) for actions, resources in allowed]
role = iam.Role(
    stack,
    "Role",
    assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
    inline_policies={"Rotation": iam.PolicyDocument(statements=statements)},
)

# Lambda has boto3, which is all that they import beside each other
modules = ("function.py", "periods.py", "rotation.py")
code = lambda_.Code.from_asset(str(Path(__file__).parent), exclude=["*", *(f"!{name}" for name in modules)])
function = lambda_.Function(
    stack,
    "Rotation",
    runtime=lambda_.Runtime.PYTHON_3_14,
    architecture=lambda_.Architecture.ARM_64,
    handler="function.handler",
    code=code,
    role=role,
    log_group=log_group,
    timeout=cdk.Duration.minutes(5),
    memory_size=256,
    environment={"ROTATION": json.dumps(settings), "BUCKET": bucket.bucket_name},
)
# the function names its role already
cast(cdk.CfnResource, function.node.default_child).add_deletion_override("DependsOn")
starting = iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn])
starter = iam.Role(
    stack,
    "Starter",
    assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com"),
    inline_policies={"Start": iam.PolicyDocument(statements=[starting])},
)
scheduler.CfnSchedule(
    stack,
    "Hourly",
    schedule_expression="rate(1 hour)",
    flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
    target=scheduler.CfnSchedule.TargetProperty(arn=function.function_arn, role_arn=starter.role_arn),
)

ABOVE, BELOW = (
    cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
    cloudwatch.ComparisonOperator.LESS_THAN_OR_EQUAL_TO_THRESHOLD,
)
MISSING = cloudwatch.TreatMissingData
hour = cdk.Duration.hours(1)
used = default.metric_consumed_write_capacity_units(period=cdk.Duration.minutes(5), statistic="Sum")
for id, metric, comparison, missing, meaning in (
    ("DefaultUsed", used, ABOVE, MISSING.NOT_BREACHING, "writes go to the default table: their own table is missing"),
    ("Failed", function.metric_errors(period=hour), ABOVE, MISSING.NOT_BREACHING, "the rotation failed; see its log"),
    ("NotRun", function.metric_invocations(period=hour), BELOW, MISSING.BREACHING, "the rotation does not run"),
):
    cloudwatch.Alarm(
        stack,
        id,
        metric=metric,
        threshold=0,
        evaluation_periods=1 if id == "DefaultUsed" else 3,
        comparison_operator=comparison,
        treat_missing_data=missing,
        alarm_description=f"Tables by time: {meaning}",
    )


def acknowledge(scope: IConstruct, reason: str, *rules: str) -> None:
    """Answer rules of cdk-nag; those without a pack are in several."""
    packs = ("NIST.800.53.R5", "HIPAA.Security", "PCI.DSS.321")
    ids = [id for rule in rules for id in ([rule] if "::" in rule else [f"{pack}::{pack}-{rule}" for pack in packs])]
    cdk.Validations.of(scope).acknowledge(*(cdk.Acknowledgment(id=id, reason=reason) for id in ids))


export_arn = f"arn:<AWS::Partition>:dynamodb:<AWS::Region>:<AWS::AccountId>:table/{months}/export/*"
objects_arn = f"<{stack.get_logical_id(cast(cdk.CfnElement, bucket.node.default_child))}.Arn>/*"
for each in (role, starter):
    acknowledge(each, "The policy belongs to this role, and is deleted with it.", "IAMNoInlinePolicy")
acknowledge(
    role,
    "ListTables and ListExports have no resources; exports and their objects have names that AWS gives.",
    "Serverless::Serverless-LambdaStarPermissions",
    *(f"AwsSolutions::AwsSolutions-IAM5[Resource::{arn}]" for arn in ("*", export_arn, objects_arn)),
)
acknowledge(
    log_group, "CloudWatch Logs encrypts every log group; it has names of tables.", "CloudWatchLogGroupEncrypted"
)
acknowledge(
    function,
    "It calls AWS APIs only. Each run does what the ones before did not: an alarm says more than a dead letter.",
    "LambdaConcurrency",
    "LambdaDLQ",
    "LambdaInsideVPC",
    "Serverless::Serverless-LambdaDLQ",
    "Serverless::Serverless-LambdaTracing",
)
acknowledge(
    bucket,
    "Only exports are written, with keys of S3. Logs, replication and a KMS key are your account's choice.",
    "AwsSolutions::AwsSolutions-S1",
    "S3BucketLoggingEnabled",
    "S3BucketReplicationEnabled",
    "S3DefaultEncryptionKMS",
)
cdk.CfnOutput(stack, "RotationName", value=function.function_name)
cdk.CfnOutput(stack, "RoleName", value=role.role_name)
cdk.CfnOutput(stack, "BucketName", value=bucket.bucket_name)

app.synth()
