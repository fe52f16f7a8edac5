"""The coordinator of boosts, with its table of leases and the schedules of live ones: jobs ask it for capacity."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_highwater.alarms import ScalerAlarms
from cdk_highwater.asset import id_within, unique_name
from cdk_highwater.findings import require_or_none
from cdk_highwater.grants import BoostGrants, PulseGrants
from cdk_highwater.iam import boost_caps_arns, wakes_arn
from cdk_highwater.manage import capacity_of
from cdk_highwater.nag import LEASE_TABLE_RULES, acknowledge, annotate, boost_role_rules, role_rules
from cdk_highwater.ownership import SCALER, claim
from cdk_highwater.scaler import ThrottleAwareScaler
from cdk_highwater.scaler_function import ScaledTable, ScalerFunction, scaler_findings
from highwater.core.findings import conflict
from highwater.core.names import coordinator_parameter, leases_parameter, pulses_parameter
from highwater.core.scaler import Mode

# as highwater.aws.coordinator_table has them, which constructs may not import
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


# the name is part of the names of parameters
_LONGEST_NAME = 80
_HANDLER = "highwater.handlers.coordinator.handler.handler"


class BoostCoordinator(Construct):
    """Let jobs ask for capacity before they start, by lease: `highwater.client.boost` and `highwater boost`.

    A job asks for units, for a time; the answer says at once how many it gets and what limits them. While leases are
    live, the floors of their targets are the plan's, or what the scaler asks for, plus the leases' units. Nothing is
    undone when a lease ends: in each minute, floors are computed from the leases that are live, so a job that is killed
    holds its capacity until its lease ends and no longer.

    Every caller must be allowed with `grant_boost`.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        scaler: The scaler whose tables may be boosted. The coordinator shares its function, so that floors have one
            writer. By default the coordinator has a function of its own, which runs only while a lease is live, and
            tables are passed to `add_table`.
        topic: The SNS topic for the alarms of the coordinator's own function. By default the alarms only show in
            CloudWatch. With *scaler*, the scaler's alarms count.

    Raises:
        TypeError: An argument is of another type than documented.
        ValueError: The scaler has a coordinator already, or both *scaler* and *topic* are given.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        scaler: ThrottleAwareScaler | None = None,
        topic: sns.ITopic | None = None,
    ) -> None:
        fix = "give its construct, or leave the argument out"
        require_or_none("scaler", scaler, ThrottleAwareScaler, "a ThrottleAwareScaler", fix)
        super().__init__(scope, id)
        if scaler is not None and topic is not None:
            message = "topic is for a coordinator with a function of its own; give it to the scaler"
            raise ValueError(message)
        self._stack = cdk.Stack.of(self)
        self._name = unique_name(self, most_characters=_LONGEST_NAME)
        self._scaler = scaler
        self._managed: set[str] = set()
        if scaler is None:
            self._function = ScalerFunction(self, "Function", scaler_name=self._name, dry_run=False, tagged=None)
            alarms = ScalerAlarms(self, "Alarms", function=self._function, topic=topic, runs_every_minute=False)
            alarms.watch_leases()
        else:
            self._function = scaler.share_function(self)
        self._leases = BoostLeases(self, "Leases")
        self._wakes = BoostWakes(self, "Wakes", function=self._function.function)
        self._url = self._function.function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM)
        self._have_function_serve_boosts()
        ssm.CfnParameter(
            self,
            "Url",
            name=coordinator_parameter(self._name),
            type="String",
            description="Highwater: where jobs ask for capacity",
            value=self._url.url,
        )
        ssm.CfnParameter(
            self,
            "LeasesName",
            name=leases_parameter(self._function.name),
            type="String",
            description="Highwater: where highwater explain finds the boosts of the scaler's tables",
            value=self._leases.table.table_name,
        )
        ssm.CfnParameter(
            self,
            "PulsesName",
            name=pulses_parameter(self._name),
            type="String",
            description="Highwater: where fleets add up what they ask for",
            value=self._leases.table.table_name,
        )
        self._grants = BoostGrants(self, self._name, self._url)
        self._pulse_grants = PulseGrants(self, self._name, self._grants, self._leases.table)

    @property
    def coordinator_name(self) -> str:
        """The coordinator's name, unique in its account and region: `highwater boost --coordinator`."""
        return self._name

    @property
    def url(self) -> lambda_.FunctionUrl:
        """The URL that jobs ask, with IAM authentication."""
        return self._url

    @property
    def function(self) -> lambda_.IFunction:
        """The function that answers: the scaler's, or the coordinator's own."""
        return self._function.function

    @property
    def log_group(self) -> logs.ILogGroup:
        """The function's log group, with a line for each answer."""
        return self._function.log_group

    @property
    def lease_table_name(self) -> str:
        """The name of the DynamoDB table with the leases and their log."""
        return self._leases.table.table_name

    def add_table(self, table: object) -> None:
        """Let a table and its indexes be boosted, in the dimensions with autoscaled capacity.

        Target tracking goes on above the floors. For a coordinator that shares a scaler's function, add the table to
        the scaler.

        Args:
            table: A `HighWaterTable`, or the result of `manage_capacity`.

        Raises:
            TypeError: *table* has no managed capacity.
            ValueError: The table was added already, or the coordinator shares a scaler's function.
        """
        capacity = capacity_of(table)
        path = capacity.node.path
        if self._scaler is not None:
            message = f"{path}: the coordinator boosts the tables of its scaler; call add_table of the scaler"
            raise ValueError(message)
        if path in self._managed:
            message = f"{path}: the table was added to the coordinator already; call add_table once per table"
            raise ValueError(message)
        self._managed.add(path)
        other = claim(SCALER, self, capacity.subject)
        findings = scaler_findings(capacity.plan)
        if other is not None:
            problem = f"{other} sets the table's floors already; two would set each other's"
            fix = "give that scaler to the coordinator: BoostCoordinator(..., scaler=)"
            findings = [conflict("secondScaler", "the table", problem, fix), *findings]
        if annotate(capacity, findings):
            id = f"Table-{id_within(self._stack, capacity.subject.construct)}"
            scaled = ScaledTable(
                self, id, subject=capacity.subject, plan=capacity.plan, mode=Mode.BOOSTS, function=self._function
            )
            scaled.serve_deploys(capacity)

    def grant_boost(
        self,
        grantee: iam.IGrantable,
        *,
        max_write: int = 0,
        max_read: int = 0,
        tables: Iterable[object] | None = None,
    ) -> iam.Grant:
        """Let a role or user boost up to so many units per second, with all its boosts of one table or index together.

        The function enforces this by the identity that AWS authenticated. A Lambda function among the grantees finds
        the coordinator by its environment; other callers by the parameter that they may read now.

        Args:
            grantee: A role, a user, or what has a role, such as a Lambda function.
            max_write: The most units per second of writes. By default none.
            max_read: The most units per second of reads. By default none.
            tables: The tables that it may boost: constructs of tables, results of `manage_capacity`, or names. By
                default all of the coordinator.

        Returns:
            The permission to send requests to the URL.

        Raises:
            TypeError: The grantee is neither a role nor a user, a table is none, or *tables* is no list.
            ValueError: A maximum is not a whole number of 0 or more, or both are 0.
        """
        return self._grants.add(grantee, max_write=max_write, max_read=max_read, tables=tables)

    def grant_pulse(self, grantee: iam.IGrantable, *, tables: Iterable[object]) -> None:
        """Let a role or user tell what it asks of its tables, with `highwater.pulse`, and wake the scaler for them.

        The permission is for adding to the pulse items of these tables in the coordinator's table, and for requests to
        the URL. Whoever has it can have capacity raised up to a table's ceiling, never lowered. A Lambda function among
        the grantees finds the coordinator by its environment.

        Args:
            grantee: A role, a user, or what has a role, such as a Lambda function.
            tables: The tables: constructs of tables, results of `manage_capacity`, or names.

        Raises:
            TypeError: The grantee is neither a role nor a user, a table is none, or *tables* is no list.
            ValueError: The coordinator has no scaler, whose decisions pulses are for; or *tables* is empty.
        """
        if self._scaler is None:
            message = f"{self.node.path}: pulses tell a scaler of demand; make the coordinator with scaler="
            raise ValueError(message)
        self._pulse_grants.add(grantee, tables)
        self._scaler.watch_pulses()

    def grant_boost_events(
        self,
        source: str,
        *,
        max_write: int = 0,
        max_read: int = 0,
        tables: Iterable[object] | None = None,
        grantee: iam.IGrantable | None = None,
    ) -> None:
        """Let events of EventBridge's default bus boost: those with this *source* and the type `Highwater Boost`.

        Who may put events with the source is a question of IAM policies: *grantee* may then put them, and nothing else
        that this source does not cover. Others may if their policies allow `events:PutEvents` without a condition.

        Args:
            source: The events' source, such as `acme.loader`; not one of AWS's own.
            max_write: The most units per second of writes, with all boosts of the source. By default none.
            max_read: Likewise of reads.
            tables: The tables that may be boosted, as in `grant_boost`. By default all of the coordinator.
            grantee: Who is to put such events. By default nobody new.

        Raises:
            TypeError: The grantee is none, a table is none, or *tables* is no list.
            ValueError: The source is not one that an application may have, or a maximum does not fit.
        """
        self._grants.add_events(
            source, self._function, max_write=max_write, max_read=max_read, tables=tables, grantee=grantee
        )

    def _have_function_serve_boosts(self) -> None:
        function, role = self._function.function, self._function.role
        template = function.node.default_child
        assert isinstance(template, lambda_.CfnFunction)  # noqa: S101 - the default child of a function
        template.handler = _HANDLER
        for name, value in {
            "HIGHWATER_COORDINATOR": self._name,
            "HIGHWATER_LEASES": self._leases.table.table_name,
            "HIGHWATER_WAKES_GROUP": self._wakes.group_name,
            "HIGHWATER_WAKES_ROLE": self._wakes.role.role_arn,
        }.items():
            function.add_environment(name, value)
        reading_caps = iam.PolicyStatement(
            actions=["ssm:GetParametersByPath"], resources=boost_caps_arns(self._stack, self._name)
        )
        for statement in (*self._leases.permissions(), *self._wakes.permissions(), reading_caps):
            role.add_to_policy(statement)
        acknowledge(self._function, boost_role_rules(self._stack, self._name, self._wakes.group_name))
