"""A scan by many workers, in functions that a state machine calls until the job is done."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk_highwater.asset import unique_name, wait_for_policy_alone
from cdk_highwater.boosts import BoostCoordinator
from cdk_highwater.findings import require, require_budget, require_or_none, require_topic
from cdk_highwater.grants import require_grantee, subject_of_table
from cdk_highwater.nag import INLINE_RULES, MACHINE_RULES, acknowledge, executions_rules
from highwater.core.findings import is_whole, shown
from highwater.core.jobs import MOST_JOB_SEGMENTS

# The record of a budget has 60 bytes for each worker, and each renews every half minute: for 500 workers that is 30 KB
# 17 times a second, half of the 1,000 write units a second that one item takes.
_MOST_WORKERS = 500
# the name of an execution, often a UUID, comes behind it in the ids of jobs
_LONGEST_NAME = 40
_SHORTEST_TIMEOUT = cdk.Duration.minutes(5)
_PRINCIPAL = "states.amazonaws.com"
_MAP = "Workers"
# a stopped job is looked at so often
_REST_SECONDS = 300
# A worker that Lambda has no room for comes back for as long as the others work. One that is lost, or fails in its own
# code, is called again four times, and then the execution fails: what is done stays recorded.
_RETRIES = [
    {
        "ErrorEquals": ["Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.SdkClientException"],
        "IntervalSeconds": 5,
        "BackoffRate": 2,
        "MaxDelaySeconds": 60,
        "MaxAttempts": 10_000,
        "JitterStrategy": "FULL",
    },
    {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 5, "BackoffRate": 2, "MaxDelaySeconds": 60, "MaxAttempts": 4},
]


class PacedScan(Construct):
    """A scan of a table or index by many workers within one budget, for as long as it takes: a job in Step Functions.

    The workers are runs of a function of yours, whose handler is `highwater.worker_handler(work)`, with
    `highwater-runtime` in its code and a timeout of 15 minutes. Each execution of the state machine is a job of its
    own, which `highwater jobs` shows, stops and resumes by its id: `job_prefix` and the execution's name. docs/jobs.md
    tells what happens to a worker that fails or is lost.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        table: The table: its construct or the result of `manage_capacity`, in the stack's account and region.
        coordinator: The coordinator whose table has the job and the budget.
        function: The function. Its role is allowed to read the table and to work on the jobs; what else its work needs
            is yours to grant.
        read: Read units per second of all workers and executions together, at least one for each worker.
        workers: How many runs of the function work at once, 1 to 500, but not more than the job has segments. By
            default 10.
        index: The name of an index to scan instead of the table.
        segments: As for `highwater.start_job`.
        budget: The name of the shared budget, 1 to 100 characters. By default one of this construct's own.
        topic: The SNS topic for the alarm. By default it only shows in CloudWatch.

    Raises:
        TypeError: An argument is of another type than documented.
        ValueError: An argument is out of range, or the function's timeout is below 5 minutes.

    Example:
        ```python
        scan = PacedScan(stack, "Backfill", table=orders, coordinator=coordinator, function=backfill, read=500)
        scan.grant_start(operator_role)
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: object,
        coordinator: BoostCoordinator,
        function: lambda_.IFunction,
        read: float,
        workers: int = 10,
        index: str | None = None,
        segments: int | None = None,
        budget: str | None = None,
        topic: sns.ITopic | None = None,
    ) -> None:
        subject = subject_of_table(table)
        require("coordinator", coordinator, BoostCoordinator, "a BoostCoordinator", "give its construct")
        require("function", function, "function_arn", "a Lambda function", "give its construct")
        require_or_none("index", index, str, "the name of an index", "give it in quotes")
        require_budget(budget)
        require_topic(topic)
        _require_number("workers", workers, _MOST_WORKERS)
        if segments is not None:
            _require_number("segments", segments, MOST_JOB_SEGMENTS)
        _require_rate(read, workers)
        _require_timeout(function)
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._name = unique_name(self, most_characters=_LONGEST_NAME)
        self._budget = budget or self._name
        subject = subject.seen_from(self._stack)
        start = {"table": subject.name, "read": read, "budget": self._budget, "index": index, "segments": segments}
        self._machine = self._make_machine(
            function.function_arn, {"coordinator": coordinator.coordinator_name}, {"start": start, "workers": workers}
        )
        coordinator.grant_job(function, f"{self.job_prefix}*")
        coordinator.grant_budget(function, self._budget)
        reading = ["dynamodb:DescribeTable", "dynamodb:Scan"]
        arns = [subject.arn] if index is None else [subject.arn, f"{subject.arn}/index/{index}"]
        function.grant_principal.add_to_principal_policy(iam.PolicyStatement(actions=reading, resources=arns))
        encryption_key = getattr(subject.construct, "encryption_key", None)
        if encryption_key is not None:
            encryption_key.grant(function, "kms:Decrypt", "kms:DescribeKey")
        self._add_alarm(topic)

    @property
    def state_machine(self) -> sfn.IStateMachine:
        """The state machine, whose executions need no input."""
        return self._machine

    @property
    def job_prefix(self) -> str:
        """What the ids of the jobs begin with; the name of the execution, up to 59 characters, comes behind it."""
        return f"{self._name}-"

    @property
    def budget(self) -> str:
        """The budget's name, for other workers that share it."""
        return self._budget

    def grant_start(self, grantee: iam.IGrantable) -> None:
        """Let a role or user start executions, and do nothing else.

        Args:
            grantee: A role, a user, or a construct with a role, such as a Lambda function.

        Raises:
            TypeError: The grantee is neither a role nor a user.
        """
        require_grantee(grantee)
        self._machine.grant_start_execution(grantee)

    def _make_machine(self, function: str, each: dict[str, Any], start: dict[str, Any]) -> sfn.StateMachine:
        """Create the state machine: it asks *function* with *start*, and then with *each* for each of the seats."""
        job: dict[str, Any] = {"job.$": f"States.Format('{self.job_prefix}{{}}', $$.Execution.Name)"}
        ask: dict[str, Any] = {"Type": "Task", "Resource": function, "Retry": _RETRIES}
        work = {
            "Work": {**ask, "Next": "IsDone"},
            "IsDone": {
                "Type": "Choice",
                "Choices": [
                    {"Variable": "$.state", "StringEquals": "done", "Next": "Done"},
                    {"Variable": "$.state", "StringEquals": "stopped", "Next": "Rest"},
                ],
                "Default": "Work",
            },
            "Rest": {"Type": "Wait", "Seconds": _REST_SECONDS, "Next": "Work"},
            "Done": {"Type": "Succeed"},
        }
        states = {
            "Start": {**ask, "Parameters": {**job, **each, **start}, "Next": _MAP},
            _MAP: {
                "Type": "Map",
                # in the ARNs of the workers' executions
                "Label": _MAP,
                "ItemsPath": "$.seats",
                "ItemSelector": {"job.$": "$.job", "seat.$": "$$.Map.Item.Value", **each},
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    "StartAt": "Work",
                    "States": work,
                },
                "MaxConcurrency": start["workers"],
                "ResultPath": None,
                "End": True,
            },
        }
        role = self._make_role(function)
        machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_name=self._name,
            role=role,
            definition_body=sfn.DefinitionBody.from_string(
                self._stack.to_json_string({"StartAt": "Start", "States": states})
            ),
        )
        wait_for_policy_alone(machine, role)
        acknowledge(machine, MACHINE_RULES)
        return machine

    def _make_role(self, function: str) -> iam.Role:
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                _PRINCIPAL, conditions={"StringEquals": {"aws:SourceAccount": self._stack.account}}
            ),
            description="Highwater: calls the function of a paced scan",
        )

        def arn(resource: str, name: str) -> str:
            style = cdk.ArnFormat.COLON_RESOURCE_NAME
            return self._stack.format_arn(service="states", resource=resource, resource_name=name, arn_format=style)

        # AWS Step Functions Developer Guide, "IAM policies for using Distributed Map states" (read 2026-11)
        for act, resource in (
            (["lambda:InvokeFunction"], function),
            (["states:StartExecution"], arn("stateMachine", self._name)),
            (["states:DescribeExecution", "states:StopExecution"], arn("execution", f"{self._name}:*")),
            (["states:RedriveExecution"], arn("execution", f"{self._name}/{_MAP}:*")),
        ):
            role.add_to_policy(iam.PolicyStatement(actions=act, resources=[resource]))
        acknowledge(role, INLINE_RULES | executions_rules(self._stack, self._name, _MAP))
        return role

    def _add_alarm(self, topic: sns.ITopic | None) -> None:
        alarm = cloudwatch.Alarm(
            self,
            "Failed",
            metric=self._machine.metric_failed(period=cdk.Duration.minutes(5), statistic="Sum"),
            threshold=1,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description="Highwater: a paced scan failed; mend its function, and redrive the execution",
        )
        if topic is not None:
            alarm.add_alarm_action(actions.SnsAction(topic))


def _require_number(name: str, value: object, most: int) -> None:
    """Raise `ValueError` if *value* is not a whole number from 1 to *most*."""
    if not isinstance(value, int) or not is_whole(value) or not 1 <= value <= most:
        message = f"{name} is {shown(value)}; allowed: whole numbers, from 1 to {most:,}"
        raise ValueError(message)


def _require_rate(read: object, workers: int) -> None:
    """Raise an error if *read* is no rate, or one for which a worker would wait for a page for most of its lease."""
    if isinstance(read, bool) or not isinstance(read, int | float):
        message = f"read must be a number of units per second, got {shown(read)}; give a number"
        raise TypeError(message)
    if not workers <= read < float("inf"):
        message = (
            f"read is {read:,g}; allowed: at least one unit per second for each of the {workers:,} workers; "
            "give more, or fewer workers"
        )
        raise ValueError(message)


def _require_timeout(function: lambda_.IFunction) -> None:
    """Raise `ValueError` if the timeout of a function of this app is too short for a worker."""
    if not isinstance(function, lambda_.Function):
        return
    # Lambda's default
    seconds = 3 if function.timeout is None else function.timeout.to_seconds()
    if seconds < _SHORTEST_TIMEOUT.to_seconds():
        message = (
            f"the timeout of {function.node.path} is {seconds:,g} seconds; allowed: 5 to 15 minutes; "
            "give it timeout=cdk.Duration.minutes(15)"
        )
        raise ValueError(message)
