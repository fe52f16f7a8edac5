"""What a scaler needs for one table: its plan in a parameter, alarms that start the scaler, and its part in deploys."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_highwater.deployment_function import DeploymentFunction
from cdk_highwater.scaler_function import ScalerFunction
from cdk_highwater.subject import Subject
from cdk_highwater.table_capacity import TableCapacity
from highwater.core import Plan, Target
from highwater.core.names import TargetName
from highwater.core.scaler import Mode, ScaledPlan, alarm_threshold

# An SSM parameter holds 4 KB, an advanced one 8 (AWS Systems Manager User Guide, "Managing parameter tiers", 2026-11)
_STANDARD_BYTES, _ADVANCED_BYTES = 4_096, 8_192
# The parameter also holds the mode, and names that only the deploy knows.
LONGEST_PLAN_BYTES = _ADVANCED_BYTES - 200


class ScaledTable(Construct):
    """One table of a `ThrottleAwareScaler`, in each region that it has a replica in.

    Args:
        scope: The scaler.
        id: Unique within *scope*, derived from the table alone.
        subject: The table.
        plan: What is declared for it.
        mode: What the scaler moves.
        function: The scaler's function, which is allowed to scale the table.
    """

    def __init__(
        self, scope: Construct, id: str, *, subject: Subject, plan: Plan, mode: Mode, function: ScalerFunction
    ) -> None:
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._function = function
        own = self._elsewhere(subject.region)
        regions = [own, *(self._elsewhere(region) for region in subject.replica_regions())]
        self._plans = {region: self._store_plan(subject, plan, mode, region) for region in regions}
        for region in regions:
            function.allow_table(subject.arn if region == own else subject.arn_in(region), region)
        # an alarm can only be where its metric is
        if self._is_here(subject.region, subject.stack.region):
            holder = self if own is None else Construct(subject.stack, f"ScalerAlarms-{subject.construct.node.addr}")
            for target in plan.targets():
                if target.capacity.is_autoscaled:
                    self._watch(holder, subject.name, target, starts_function=own is None)

    def serve_deploys(self, capacity: TableCapacity) -> list[cdk.CustomResource]:
        """Have the scaler look at the table after each deploy that changed it, and floors put back on removal."""
        function_arn = self._function.function.function_arn
        deployment = DeploymentFunction.of(self._stack)
        deployment.allow_invoking(function_arn)
        # without the scaler nothing would close a window that it holds
        left = capacity.plan.without_windows() if capacity.are_windows_held else capacity.plan
        properties = {"TableName": capacity.subject.name, "Plan": left.to_json(), "Scaler": function_arn}
        if capacity.are_windows_held:
            properties["Held"] = capacity.plan.to_json()
        resources = []
        for region in self._plans:
            deployment.allow_floors(capacity.subject, region)
            resource = cdk.CustomResource(
                self,
                f"Scaled{region or ''}",
                resource_type="Custom::HighwaterScaled",
                service_token=deployment.service_token,
                properties=properties | ({} if region is None else {"Region": region}),
            )
            resource.node.add_dependency(capacity, *self._plans.values(), *deployment.permissions)
            resources.append(resource)
        return resources

    def _elsewhere(self, region: str) -> str | None:
        """The region, `None` for the scaler's own."""
        return None if self._is_here(region, self._stack.region) else region

    def _is_here(self, region: str, other: str) -> bool:
        # the CDK lets a stack that leaves its region open refer to none of another
        return cdk.Token.is_unresolved(region) or cdk.Token.is_unresolved(other) or region == other

    def _store_plan(self, subject: Subject, plan: Plan, mode: Mode, region: str | None) -> ssm.CfnParameter:
        scaled = ScaledPlan(table=subject.name, mode=mode, plan=plan, region=region)
        value = scaled.to_json()
        return ssm.CfnParameter(
            self,
            f"Plan{region or ''}",
            name=scaled.parameter,
            type="String",
            tier="Standard" if len(value.encode()) <= _STANDARD_BYTES else "Advanced",
            description="Highwater: what is planned for this table, read by its scaler",
            value=value,
        )

    def _watch(self, scope: Construct, table: str, target: Target, *, starts_function: bool) -> None:
        """The target's alarm, which the scaler moves with the capacity; a deploy sets it low, which costs a run."""
        kind = target.dimension.title()
        where = kind if target.index is None else f"{target.index}-{kind}"
        dimensions = [cloudwatch.CfnAlarm.DimensionProperty(name="TableName", value=table)]
        if target.index is not None:
            dimensions.append(
                cloudwatch.CfnAlarm.DimensionProperty(name="GlobalSecondaryIndexName", value=target.index)
            )
        cloudwatch.CfnAlarm(
            scope,
            f"{where}Alarm",
            alarm_name=TargetName(table, target.index, target.dimension).alarm,
            alarm_description="Consumption near to capacity: Highwater's scaler looks at it at once",
            namespace="AWS/DynamoDB",
            metric_name=f"Consumed{kind}CapacityUnits",
            dimensions=dimensions,
            statistic="Sum",
            period=60,
            evaluation_periods=1,
            threshold=alarm_threshold(int(target.capacity.min_capacity)),
            comparison_operator="GreaterThanThreshold",
            treat_missing_data="ignore",
            alarm_actions=[self._function.function.function_arn] if starts_function else None,
        )
