"""The coordinator of boosts, from which jobs request capacity, with its table of leases."""

from __future__ import annotations

from collections.abc import Iterable

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_highwater.boosts.grants import Grants
from cdk_highwater.scaler.alarms import ScalerAlarms
from cdk_highwater.scaler.scaler import ThrottleAwareScaler
from cdk_highwater.scaler.scaler_function import ScaledTable, ScalerFunction, scaler_findings
from cdk_highwater.support.arguments import require_or_none
from cdk_highwater.support.asset import id_within, unique_name
from cdk_highwater.support.iam import path_arns
from cdk_highwater.support.nag import LEASE_TABLE_RULES, acknowledge, annotate, boost_role_rules
from cdk_highwater.table.fitting import account_findings
from cdk_highwater.table.manage import capacity_of
from cdk_highwater.table.ownership import SCALER, claim
from highwater.core import Finding
from highwater.core.findings import caution, conflict
from highwater.core.names import (
    PARTITION_KEY,
    SORT_KEY,
    TTL_ATTRIBUTE,
    boost_caps_path,
    coordinator_parameter,
    leases_parameter,
    pulses_parameter,
)
from highwater.core.scaler import Mode, ScalerSettings


class BoostLeases(Construct):
    """The table of leases: on demand, so that it costs nothing without leases; deleted with the coordinator."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name=PARTITION_KEY, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=SORT_KEY, type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=TTL_ATTRIBUTE,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        template = self.table.node.default_child
        assert isinstance(template, dynamodb.CfnTable)  # noqa: S101 - the default child of a table
        # so that a rehearsal of all tables of the app leaves it out
        template.add_metadata("highwater:own", True)
        acknowledge(self.table, LEASE_TABLE_RULES)

    def permissions(self) -> list[iam.PolicyStatement]:
        """Return the permissions that the function needs on the table."""
        actions = ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")
        resources = [self.table.table_arn]
        return [iam.PolicyStatement(actions=[f"dynamodb:{action}" for action in actions], resources=resources)]


# Regions that the AWS Lambda Developer Guide, "Creating and managing Lambda function URLs", has listed as without
# them; newer copies refer to a table of services by region instead, so this warns only. GovCloud: AWS GovCloud (US)
# User Guide, "AWS Lambda". China: Getting Started with AWS services in China, "AWS Lambda". mx-central-1:
# CloudFormation's schemas of the region have no AWS::Lambda::Url (cfn-lint 1.58.0). All read 2026-11; the doctor asks
# CloudFormation.
_REGIONS_WITHOUT_URLS = frozenset(
    {
        *("ap-east-2", "ap-south-2", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7"),
        *("ca-west-1", "cn-north-1", "cn-northwest-1", "eu-central-2", "eu-south-2", "il-central-1", "me-central-1"),
        *("mx-central-1", "us-gov-east-1", "us-gov-west-1"),
    }
)


def _url_findings(region: str) -> list[Finding]:
    """Return the finding about a region in which function URLs may not exist; none where it is not known at synth."""
    if region not in _REGIONS_WITHOUT_URLS:
        return []
    problem = (
        f"jobs reach it by a Lambda function URL, and AWS has listed {region} among the regions that have none; a "
        "deploy is refused there before it makes anything"
    )
    fix = (
        "check by highwater doctor that the region has function URLs now, or use windows and the scaler without boosts "
        "and pulses"
    )
    return [caution("urlsMissing", "the coordinator", problem, fix)]


# the name is part of the names of parameters
_LONGEST_NAME = 80
_HANDLER = "highwater.handlers.coordinator.handler.handler"


class BoostCoordinator(Construct):
    """Let jobs lease capacity before they start, with `highwater.boost` or `highwater boost`.

    A job requests units for a time; the answer says at once how many are granted and what limits them. While leases are
    live, the floor of a target is the plan's or the scaler's floor plus the leases' units. Floors are computed each
    minute from the live leases, so nothing has to be undone when a lease ends: a job that is killed keeps its capacity
    until its lease expires and no longer.

    Every caller must be allowed with `grant_boost`.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        scaler: The scaler whose tables may be boosted. The coordinator shares its function, so that floors have one
            writer. By default the coordinator has a separate function, and tables are passed to `add_table`.
        topic: The SNS topic for the alarms of the coordinator's separate function. By default the alarms only show in
            CloudWatch. Not allowed with *scaler*, whose own alarms cover the shared function.
        reserved_concurrency: Concurrent runs that Lambda keeps free for the coordinator's separate function, 5 to
            1,000, and does not exceed. By default none. Not allowed with *scaler*: give it to the scaler.

    Raises:
        TypeError: An argument is of another type than documented.
        ValueError: The scaler has a coordinator already, *scaler* is given with *topic* or *reserved_concurrency*, or
            the latter is out of range.

    Example:
        ```python
        coordinator = BoostCoordinator(stack, "Boosts")
        coordinator.add_table(orders)
        coordinator.grant_boost(loader_role, max_write=8_000, tables=[orders])
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        scaler: ThrottleAwareScaler | None = None,
        topic: sns.ITopic | None = None,
        reserved_concurrency: int | None = None,
    ) -> None:
        fix = "give its construct, or leave the argument out"
        require_or_none("scaler", scaler, ThrottleAwareScaler, "a ThrottleAwareScaler", fix)
        super().__init__(scope, id)
        for name, value in {"topic": topic, "reserved_concurrency": reserved_concurrency}.items():
            if scaler is not None and value is not None:
                message = f"{name} is for a coordinator with a function of its own; give it to the scaler"
                raise ValueError(message)
        self._stack = cdk.Stack.of(self)
        self._name = unique_name(self, most_characters=_LONGEST_NAME)
        self._scaler = scaler
        self._managed: set[str] = set()
        if scaler is None:
            self._function = ScalerFunction(
                self,
                "Function",
                scaler_name=self._name,
                dry_run=False,
                tagged=None,
                reserved_concurrency=reserved_concurrency,
            )
            self._tick = self._function.run_every_minute(self)
            alarms = ScalerAlarms(self, "Alarms", function=self._function, topic=topic, follows_demand=False)
            alarms.watch_boosts()
        else:
            self._function = scaler.share_function(self)
        self._leases = BoostLeases(self, "Leases")
        annotate(self, _url_findings(self._stack.region))
        self._url = self._function.function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM)
        self._have_function_serve_boosts()
        table = self._leases.table.table_name
        for place, parameter, what, text in (
            ("Url", coordinator_parameter(self._name), "where jobs ask for capacity", self._url.url),
            (
                "LeasesName",
                leases_parameter(self._function.name),
                "where highwater explain finds the boosts of the scaler's tables",
                table,
            ),
            ("PulsesName", pulses_parameter(self._name), "where fleets add up what they ask for", table),
        ):
            description = f"Highwater: {what}"
            ssm.CfnParameter(self, place, name=parameter, type="String", description=description, value=text)
        self._grants = Grants(self, self._name, self._url, scaler or self, self._leases.table, self._function)

    @property
    def coordinator_name(self) -> str:
        """The coordinator's name, unique in its account and region: `highwater boost --coordinator`."""
        return self._name

    @property
    def url(self) -> lambda_.FunctionUrl:
        """The URL to which jobs send requests, with IAM authentication."""
        return self._url

    @property
    def function(self) -> lambda_.IFunction:
        """The function that answers requests: the scaler's, or the coordinator's separate function."""
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

        Target tracking continues to scale above the floors. For a coordinator that shares a scaler's function, add the
        table to the scaler.

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
        findings = [*account_findings(capacity.subject, self._stack), *scaler_findings(capacity.plan)]
        if other is not None:
            problem = f"{other} sets the table's floors already; two would set each other's"
            fix = "give that scaler to the coordinator: BoostCoordinator(..., scaler=)"
            findings = [conflict("secondScaler", "the table", problem, fix), *findings]
        if annotate(capacity, findings):
            id = f"Table-{id_within(self._stack, capacity.subject.construct)}"
            scaled = ScaledTable(
                self,
                id,
                subject=capacity.subject,
                plan=capacity.plan,
                settings=ScalerSettings(mode=Mode.BOOSTS),
                function=self._function,
            )
            # on deletion, remove the tick before the floors are reset, so that no run raises them afterwards
            self._tick.node.add_dependency(*scaled.serve_deploys(capacity))

    def grant_boost(
        self,
        grantee: iam.IGrantable,
        *,
        max_write: int = 0,
        max_read: int = 0,
        tables: Iterable[object] | None = None,
    ) -> iam.Grant:
        """Let a role or user boost, up to *max_write* and *max_read* for all its boosts of one table or index together.

        The function enforces these limits by the caller's IAM identity. For a Lambda function, this sets the
        environment variable by which it finds the coordinator; other callers find it by a parameter, which this allows
        them to read.

        Args:
            grantee: A role, a user, or a construct with a role, such as a Lambda function.
            max_write: The most write units per second. By default none.
            max_read: The most read units per second. By default none.
            tables: The tables that it may boost: constructs of tables, results of `manage_capacity`, or names. By
                default all tables of the coordinator, those of later deploys too. A table that is not added to the
                coordinator, or to its scaler, is an error at synth.

        Returns:
            The permission to send requests to the URL.

        Raises:
            TypeError: The grantee is neither a role nor a user, a member of *tables* is not a table, or *tables* is not
                a list.
            ValueError: A maximum is not a whole number of 0 or more, or both are 0.
        """
        return self._grants.add(grantee, max_write=max_write, max_read=max_read, tables=tables)

    def grant_pulse(self, grantee: iam.IGrantable, *, tables: Iterable[object]) -> None:
        """Let a role or user report its demand for *tables* with `highwater.pulse`, and wake the scaler for them.

        The permissions allow adding to the pulse items of these tables in the coordinator's table, and requests to the
        URL, or events of EventBridge where the network has no way to it. A caller with them can cause capacity to be
        raised up to a table's ceiling, never to be lowered. For a Lambda function, this sets the environment variables
        by which it finds the coordinator.

        Args:
            grantee: A role, a user, or a construct with a role, such as a Lambda function.
            tables: The tables: constructs of tables, results of `manage_capacity`, or names. One that is not added to
                the scaler is an error at synth, unless the scaler finds tables by their tags.

        Raises:
            TypeError: The grantee is neither a role nor a user, a member of *tables* is not a table, or *tables* is not
                a list.
            ValueError: The coordinator has no scaler to use the pulses, or *tables* is empty.
        """
        if self._scaler is None:
            message = f"{self.node.path}: pulses tell a scaler of demand; make the coordinator with scaler="
            raise ValueError(message)
        self._grants.add_pulses(grantee, tables)
        self._scaler.watch_pulses()

    def grant_budget(self, grantee: iam.IGrantable, *budgets: str) -> None:
        """Let a role or user share budgets with other workers, as `highwater.pace(..., budget="nightly")` does.

        The permissions allow reading and writing the records of these budgets in the coordinator's table. A worker with
        them can take a budget's whole rate for a minute, and nothing else. For a Lambda function, this sets the
        environment variable by which it finds the table.

        Args:
            grantee: A role, a user, or a construct with a role, such as a Lambda function.
            budgets: The names of the budgets, 1 to 121 characters each. One that ends with `*` allows all names that
                begin so.

        Raises:
            TypeError: The grantee is neither a role nor a user, or a name is not a text.
            ValueError: No budget is given, or a name is empty or too long.
        """
        self._grants.add_budgets(grantee, budgets)

    def grant_job(self, grantee: iam.IGrantable, *jobs: str) -> None:
        """Let a role or user start jobs and work on them, as `highwater.jobs.run_worker("backfill-7", work)` does.

        The permissions allow reading and writing the records of these jobs in the coordinator's table, and of the
        budgets with the same names. The table that a job reads is granted by itself, with `table.grant_read_data`. For
        a Lambda function, this sets the environment variable by which it finds the coordinator's table.

        Args:
            grantee: A role, a user, or a construct with a role, such as a Lambda function.
            jobs: The ids of the jobs, 1 to 121 characters each. One that ends with `*` allows all ids that begin so.

        Raises:
            TypeError: The grantee is neither a role nor a user, or an id is not a text.
            ValueError: No job is given, or an id is empty or too long.
        """
        self._grants.add_jobs(grantee, jobs)

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

        IAM policies decide which identities may put events with this source: this allows *grantee* to put events with
        this source only. Any other identity whose policies allow `events:PutEvents` without a condition may put them
        too.

        Args:
            source: The events' source, such as `acme.loader`; not one of AWS's own.
            max_write: The most write units per second, for all boosts of the source together. By default none.
            max_read: The same for reads.
            tables: The tables that may be boosted, as in `grant_boost`. By default all tables of the coordinator.
            grantee: The identity that is to put such events. By default no permission is added.

        Raises:
            TypeError: The grantee is not an identity, a member of *tables* is not a table, or *tables* is not a list.
            ValueError: The source is not one that an application may have, or a maximum is not valid.
        """
        self._grants.add_events(source, max_write=max_write, max_read=max_read, tables=tables, grantee=grantee)

    def _have_function_serve_boosts(self) -> None:
        function, role = self._function.function, self._function.role
        template = function.node.default_child
        assert isinstance(template, lambda_.CfnFunction)  # noqa: S101 - the default child of a function
        template.handler = _HANDLER
        for name, value in {
            "HIGHWATER_COORDINATOR": self._name,
            "HIGHWATER_LEASES": self._leases.table.table_name,
        }.items():
            function.add_environment(name, value)
        reading_caps = iam.PolicyStatement(
            actions=["ssm:GetParametersByPath"], resources=path_arns(self._stack, boost_caps_path(self._name))
        )
        reading_failures = iam.PolicyStatement(
            actions=["application-autoscaling:DescribeScalingActivities"], resources=["*"]
        )
        for statement in (*self._leases.permissions(), reading_caps, reading_failures):
            role.add_to_policy(statement)
        acknowledge(self._function, boost_role_rules(self._stack, self._name))
