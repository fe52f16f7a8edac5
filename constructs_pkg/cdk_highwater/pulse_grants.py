"""Who may pulse: adding to the items of some tables in the coordinator's table, and waking the scaler for them."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_highwater.boost_grants import BoostGrants, name_of_table, tables_of
from cdk_highwater.permissions import pulses_arns
from highwater.core.pulses.item import pulse_partition

PULSES_VARIABLE = "HIGHWATER_PULSES"


class PulseGrants:
    """The grants of one coordinator.

    Args:
        scope: The coordinator.
        name: Its name.
        boosts: Its grants of boosts, which let a caller send requests.
        table: Its table.
    """

    def __init__(self, scope: Construct, name: str, boosts: BoostGrants, table: dynamodb.Table) -> None:
        self._scope = scope
        self._name = name
        self._boosts = boosts
        self._table = table

    def add(self, grantee: iam.IGrantable, tables: Iterable[object]) -> None:
        """Let a role or user pulse; `BoostCoordinator.grant_pulse` has the arguments and errors."""
        listed = tables_of(tables)
        if not listed:
            message = "tables is empty; give the tables that the grantee may tell of"
            raise ValueError(message)
        self._boosts.add_caller(grantee, tables=listed)
        stack = cdk.Stack.of(self._scope)
        keys = [pulse_partition(name_of_table(table, stack)) for table in listed]
        grantee.grant_principal.add_to_principal_policy(
            iam.PolicyStatement(
                actions=["dynamodb:UpdateItem"],
                resources=[self._table.table_arn],
                # every key that a request names, and at least one (IAM User Guide, "Multivalued context keys")
                conditions={
                    "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": keys},
                    "Null": {"dynamodb:LeadingKeys": "false"},
                },
            )
        )
        grantee.grant_principal.add_to_principal_policy(
            iam.PolicyStatement(
                actions=["ssm:GetParameter", "ssm:GetParametersByPath"], resources=pulses_arns(stack, self._name)
            )
        )
        if isinstance(grantee, lambda_.Function):
            grantee.add_environment(PULSES_VARIABLE, self._table.table_name)
