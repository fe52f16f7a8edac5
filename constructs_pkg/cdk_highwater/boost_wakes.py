"""The schedules that run the coordinator's function while a lease is live: their group, and the role they run with."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from cdk_highwater.permissions import wakes_arn
from cdk_highwater.rule_packs import acknowledge, role_rules
from cdk_highwater.unique_names import unique_name

_LONGEST_GROUP_NAME = 64
_PRINCIPAL = "scheduler.amazonaws.com"


class BoostWakes(Construct):
    """A schedule group that belongs to the coordinator. The schedules in it are deleted with it."""

    def __init__(self, scope: Construct, id: str, *, function: lambda_.IFunction) -> None:
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self.group_name = unique_name(self, most_characters=_LONGEST_GROUP_NAME)
        scheduler.CfnScheduleGroup(self, "Group", name=self.group_name)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                _PRINCIPAL, conditions={"StringEquals": {"aws:SourceAccount": self._stack.account}}
            ),
            description="Highwater: lets schedules run the coordinator while a boost is live",
        )
        self.role.add_to_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn])
        )
        acknowledge(self.role, role_rules(self._stack))

    def permissions(self) -> list[iam.PolicyStatement]:
        """Return what the function needs to make schedules."""
        return [
            iam.PolicyStatement(
                actions=["scheduler:CreateSchedule", "scheduler:DeleteSchedule", "scheduler:UpdateSchedule"],
                resources=[wakes_arn(self._stack, self.group_name)],
            ),
            iam.PolicyStatement(
                actions=["iam:PassRole"],
                resources=[self.role.role_arn],
                conditions={"StringEquals": {"iam:PassedToService": _PRINCIPAL}},
            ),
        ]
