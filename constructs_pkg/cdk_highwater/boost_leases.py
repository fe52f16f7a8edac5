"""The DynamoDB table with the leases of a coordinator and their log."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_highwater.rule_packs import LEASE_TABLE_RULES, acknowledge

# as highwater.aws.leases has them, which constructs may not import
_PARTITION_KEY, _SORT_KEY, _TTL_ATTRIBUTE = "table", "item", "expires"


class BoostLeases(Construct):
    """A table on demand, so that it costs nothing while there is no lease; deleted with the coordinator."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name=_PARTITION_KEY, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=_SORT_KEY, type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=_TTL_ATTRIBUTE,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        acknowledge(self.table, LEASE_TABLE_RULES)

    def permissions(self) -> list[iam.PolicyStatement]:
        """Return what the function needs of the table."""
        actions = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"]
        return [iam.PolicyStatement(actions=actions, resources=[self.table.table_arn])]
