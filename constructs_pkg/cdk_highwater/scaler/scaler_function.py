"""The function of a scaler or coordinator with its tick, and the resources for each of its tables."""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_highwater.support.asset import (
    id_within,
    make_function,
    make_queue,
    make_role_and_logs,
    powertools_files,
    runtime_files,
    unique_name,
)
from cdk_highwater.support.iam import (
    TABLE_ACTIONS,
    invoking,
    reading_plans,
    reading_targets,
    role_for,
    scaling_tagged_tables,
    setting_bounds,
)
from cdk_highwater.support.nag import (
    ASYNC_RULES,
    LOG_RULES,
    QUEUE_RULES,
    SCALER_FUNCTION_RULES,
    acknowledge,
    role_rules,
    scaler_role_rules,
)
from cdk_highwater.support.quotas import count_added, count_alarms
from cdk_highwater.table.capacity import TableCapacity
from cdk_highwater.table.deployment import ANSWER_SECONDS, DeploymentFunction
from cdk_highwater.table.ownership import TaggedTables
from cdk_highwater.table.subject import Subject
from highwater.core import Finding, Plan, Target
from highwater.core.findings import conflict, error, is_whole, shown
from highwater.core.limits import MAX_PLAN_BYTES
from highwater.core.names import LOG_GROUPS_PREFIX, LONGEST_TABLE_IN_ALARM, TargetName, plan_parameter
from highwater.core.scaler import ScaledPlan, ScalerSettings, alarm_threshold
from highwater.core.scaler.plan import FINDER_TAG

# a run for 2,500 tables takes less (benchmarks/scaler.py); another invocation continues with the remaining tables
_TIMEOUT = cdk.Duration.minutes(3)
_MEMORY_MIB = 512
# Ticks, alarms and requests come as events, which Lambda puts into a queue. By default a throttled event waits there
# for up to six hours, and all of them run at once when there is room (AWS Lambda Developer Guide, "How Lambda handles
# errors and retries with asynchronous invocation", read 2026-11). The next tick does the work of an old one, and a
# late request would buy capacity when its job is over. Lambda's three attempts take three minutes.
OLDEST_EVENT = cdk.Duration.minutes(5)
_TICK = {"highwater": "tick", "time": "<aws.scheduler.scheduled-time>"}


class ScalerFunction(Construct):
    """The function of a `ThrottleAwareScaler`, or of a `BoostCoordinator` without one.

    The role may read plans, metrics, alarms and scalable targets, change the scaler's alarms, set floors of scalable
    targets, and describe and update only the tables given to `allow_table` or chosen by tags.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        scaler_name: str,
        dry_run: bool,
        tagged: TaggedTables | None,
        reserved_concurrency: int | None = None,
    ) -> None:
        _require_concurrency(reserved_concurrency)
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._regions: set[str] = set()
        self.dead_letters = make_queue(self, "DeadLetters")
        self.name = scaler_name
        # `highwater explain` finds the decisions by the prefix of this name
        self.role, self.log_group = make_role_and_logs(
            self,
            "sets floors of scalable targets by demand and plans",
            log_group_name=f"{LOG_GROUPS_PREFIX}{unique_name(self, most_characters=200)}",
        )
        regions = () if tagged is None else tuple(tagged.regions)
        self._allow(reading_plans(self._stack, scaler_name), reading_targets("cloudwatch:GetMetricData"))
        self._allow(*setting_bounds(self._stack))
        for region in regions:
            self._allow_region(region)
        if tagged is not None:
            self._allow(*scaling_tagged_tables(self._stack, (None, *regions)))
        self.function = self._make(dry_run, tagged, reserved_concurrency)
        if tagged is not None and not dry_run:
            # other scalers of tagged tables find this function by the tag, and log it
            cdk.Tags.of(self.function).add(FINDER_TAG, scaler_name, include_resource_types=["AWS::Lambda::Function"])
        # a separate policy, because the function depends on the role's default policy
        self.invoking = iam.Policy(self, "HandOn", roles=[self.role], statements=[invoking(self.function.function_arn)])

        acknowledge(self.function, SCALER_FUNCTION_RULES | ASYNC_RULES)
        acknowledge(self.log_group, LOG_RULES)
        acknowledge(self.dead_letters, QUEUE_RULES)
        acknowledge(self, scaler_role_rules(self._stack, self.name, (None, *regions)))

    def allow_table(self, arn: str, region: str | None = None) -> None:
        """Allow the function to describe and update the table *arn*; *region* is the table's, if not the function's."""
        if region is not None:
            self._allow_region(region)
        self._allow(iam.PolicyStatement(actions=list(TABLE_ACTIONS), resources=[arn]))

    def run_every_minute(self, scope: Construct) -> scheduler.CfnSchedule:
        """Create the schedule of the function's tick, and its role, in the scaler or coordinator *scope*."""
        role = role_for(
            scope,
            "ScheduleRole",
            "scheduler.amazonaws.com",
            "lets the schedule run the scaler",
            [invoking(self.function.function_arn)],
        )
        acknowledge(role, role_rules(self._stack))
        return scheduler.CfnSchedule(
            scope,
            "Tick",
            description="Highwater: runs the scaler",
            schedule_expression="rate(1 minute)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self.function.function_arn,
                role_arn=role.role_arn,
                input=json.dumps(_TICK),
                # of the call that puts the event into Lambda's queue; `OLDEST_EVENT` is for what waits in it
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=60, maximum_retry_attempts=0
                ),
            ),
        )

    def _allow(self, *statements: iam.PolicyStatement) -> None:
        for statement in statements:
            self.role.add_to_policy(statement)

    def _allow_region(self, region: str) -> None:
        if region not in self._regions:
            self._regions.add(region)
            acknowledge(self, role_rules(self._stack, [region]))
            self._allow(*setting_bounds(self._stack, region))

    def _make(self, dry_run: bool, tagged: TaggedTables | None, reserved: int | None) -> lambda_.Function:
        return make_function(
            self,
            handler="scaler.handler",
            packs=[runtime_files, powertools_files],
            role=self.role,
            description="Highwater: floors that follow demand within minutes",
            timeout=_TIMEOUT,
            memory_size=_MEMORY_MIB,
            log_group=self.log_group,
            dead_letter_queue=self.dead_letters,
            max_event_age=OLDEST_EVENT,
            retry_attempts=2,
            reserved_concurrent_executions=reserved,
            # the function hands on to itself the tables that failed or did not fit into its time, a few times in a row;
            # by default, Lambda ends such a chain after 16 invocations
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
            environment={
                "HIGHWATER_SCALER": self.name,
                "HIGHWATER_DRY_RUN": "true" if dry_run else "false",
                "HIGHWATER_SEES_TAGS": "false" if tagged is None else "true",
                "HIGHWATER_REGIONS": "" if tagged is None else " ".join(tagged.regions),
                "POWERTOOLS_SERVICE_NAME": self.name,
            },
        )


# one run each minute, and others for alarms, for what was handed on and for requests of jobs
_LEAST_CONCURRENCY = 5
_MOST_CONCURRENCY = 1_000


def _require_concurrency(reserved: object) -> None:
    """Raise `ValueError` if *reserved* is neither `None` nor a whole number that a function can work with."""
    is_fit = isinstance(reserved, int) and is_whole(reserved) and _LEAST_CONCURRENCY <= reserved <= _MOST_CONCURRENCY
    if reserved is not None and not is_fit:
        message = (
            f"reserved_concurrency is {shown(reserved)}; allowed: whole numbers from {_LEAST_CONCURRENCY} to "
            f"{_MOST_CONCURRENCY:,}; give 10 to 20, or leave the argument out to share the account's concurrency"
        )
        raise ValueError(message)


class ScaledTable(Construct):
    """One table of a `ThrottleAwareScaler` or a `BoostCoordinator`, in all regions of its replicas.

    Args:
        scope: The scaler or coordinator.
        id: Unique within *scope*, derived from the table only.
        subject: The table.
        plan: The plan for the table.
        settings: Whether the scaler sets floors, capacity, or floors for boosts only, and what a throttle is worth.
        function: The scaler's function, which receives permissions for the table.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        subject: Subject,
        plan: Plan,
        settings: ScalerSettings,
        function: ScalerFunction,
    ) -> None:
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._function = function
        subject = subject.seen_from(self._stack)
        own_region = self._other_region(subject.region)
        regions = [own_region, *(self._other_region(region) for region in subject.replica_regions())]
        self._plans = {region: self._store_plan(subject, plan, settings, region) for region in regions}
        for region in regions:
            function.allow_table(subject.arn if region == own_region else subject.arn_in(region), region)
        # an alarm must be in the region of its metric
        if settings.mode.follows_demand and self._is_same_region(subject.region, subject.stack.region):
            is_here = own_region is None
            stack = self._stack if is_here else subject.stack
            parent = _alarms_of(subject, stack)
            count_alarms(self, (stack.account, stack.region), plan.targets(), of_each=1)
            for target in plan.targets():
                if parent is not None and target.capacity.is_autoscaled:
                    self._add_alarm(parent, subject, target, starts_function=is_here)

    def serve_deploys(self, capacity: TableCapacity) -> list[cdk.CustomResource]:
        """Create custom resources, one per region: after a deploy they invoke the scaler, on removal they reset floors.

        On removal, floors return to the plan's values, without windows that the scaler opens and closes.
        """
        function_arn = self._function.function.function_arn
        deployment = DeploymentFunction.of(self._stack)
        count_added(self._stack, deployment)
        deployment.allow_too(self._function.invoking)
        reading_plans = deployment.allow_handing_over(self._function.name)
        if None in self._plans:
            # the table's deploys can only change plans of their own region
            first = capacity.hand_over_to(self._function.name)
            if first is not None:
                self._plans[None].node.add_dependency(first)
        # once the scaler is removed, nothing would close a window that the scaler opened
        remaining = capacity.plan.without_windows() if capacity.are_windows_held else capacity.plan
        properties = {"TableName": capacity.subject.name, "Plan": remaining.to_json(), "Scaler": function_arn}
        if capacity.are_windows_held:
            properties["Held"] = capacity.plan.to_json()
        resources = []
        for region in self._plans:
            permissions = deployment.allow_floors(capacity.subject, region)
            resource = cdk.CustomResource(
                self,
                f"Scaled{region or ''}",
                resource_type="Custom::HighwaterScaled",
                service_token=deployment.service_token,
                service_timeout=cdk.Duration.seconds(ANSWER_SECONDS),
                properties=properties
                | {"Parameter": plan_parameter(self._function.name, capacity.subject.name, region)}
                | ({} if region is None else {"Region": region}),
            )
            resource.node.add_dependency(
                capacity, *self._plans.values(), *permissions, reading_plans, self._function.invoking
            )
            resources.append(resource)
        return resources

    def _other_region(self, region: str) -> str | None:
        """The region, or `None` if it is the scaler's."""
        return None if self._is_same_region(region, self._stack.region) else region

    def _is_same_region(self, region: str, other: str) -> bool:
        # an unresolved region counts as equal: the CDK allows such a stack no references to other regions
        return cdk.Token.is_unresolved(region) or cdk.Token.is_unresolved(other) or region == other

    def _store_plan(
        self, subject: Subject, plan: Plan, settings: ScalerSettings, region: str | None
    ) -> ssm.CfnParameter:
        scaled = ScaledPlan(
            table=subject.name,
            mode=settings.mode,
            plan=plan,
            region=region,
            scaler=self._function.name,
            throttle_price_requests=settings.throttle_price_requests,
        )
        return ssm.CfnParameter(
            self,
            f"Plan{region or ''}",
            name=scaled.parameter,
            type="String",
            # a parameter in the advanced tier cannot go back to the standard tier with its 4 KB (AWS Systems Manager
            # User Guide, "Managing parameter tiers", read 2026-11)
            tier="Intelligent-Tiering",
            description="Highwater: the plan for this table, read by its scaler",
            value=scaled.to_json(),
        )

    def _add_alarm(self, scope: Construct, subject: Subject, target: Target, *, starts_function: bool) -> None:
        """Create the target's alarm.

        The scaler changes the threshold with the capacity. A deploy sets it for the base floor; at worst, the low
        threshold causes one run more.
        """
        table = subject.name
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
            # a name that CloudFormation generates cannot be shortened here; `scaled_name_findings` reports one that is
            # too long
            alarm_name=TargetName(subject.literal_name or table, target.index, target.dimension).alarm,
            alarm_description="Consumption is near capacity: Highwater's scaler reviews the target at once",
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


def _alarms_of(subject: Subject, stack: cdk.Stack) -> Construct | None:
    """Return the parent of a table's alarms in *stack*; `None` if another scaler of the stack has them, an error.

    Its id depends on the table only. Alarm names are unique, and CloudFormation creates before it deletes: if the id
    depended on the scaler, one deploy could neither move a table to another scaler nor rename a scaler.
    """
    id = f"ScalerAlarms-{id_within(stack, subject.construct)}"
    if stack.node.try_find_child(id) is not None:
        return None
    alarms = Construct(stack, id)
    count_added(stack, alarms)
    return alarms


def scaled_name_findings(subject: Subject) -> list[Finding]:
    """Return the finding about a table name generated by CloudFormation that is too long for a scaler's alarms."""
    stack = subject.stack
    if subject.template is None or subject.literal_name is not None or cdk.Token.is_unresolved(stack.stack_name):
        return []
    # it consists of the stack's name, the logical id, two hyphens and twelve characters or a few more
    longest = len(stack.stack_name) + len(stack.get_logical_id(subject.template)) + 16
    if longest <= LONGEST_TABLE_IN_ALARM:
        return []
    what = f"a name of up to {longest} characters, which CloudFormation makes of those of the stack and the table"
    allowed = f"up to {LONGEST_TABLE_IN_ALARM} characters, so that the names of a scaler's alarms fit CloudWatch"
    return [error("scaledNameTooLong", "the table", what, allowed, "give it a table_name, or a shorter id")]


def scaler_findings(plan: Plan) -> list[Finding]:
    """Return the findings about a plan whose floors a scaler or coordinator cannot set."""
    targets = plan.targets()
    if not any(target.capacity.is_autoscaled for target in targets):
        problem = "all capacity is fixed, so the scaler has nothing to change"
        return [conflict("scalerNothingAutoscaled", "the table", problem, "give Capacity.autoscaled(max_capacity=)")]
    if any(target.capacity.is_deploy_time for target in targets):
        problem = "bounds are known only at deploy time, but the scaler's plan needs numbers"
        return [conflict("scalerDeployTimeBounds", "the table", problem, "write the numbers into the plan")]
    if plan.size_bytes > MAX_PLAN_BYTES:
        allowed = f"up to {MAX_PLAN_BYTES:,} bytes, the size limit of an SSM parameter"
        fix = "use fewer windows or shorter names"
        return [error("scalerPlanTooLong", "the table", f"a plan of {plan.size_bytes:,} bytes", allowed, fix)]
    return []
