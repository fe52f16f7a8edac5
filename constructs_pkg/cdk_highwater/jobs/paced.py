"""Scans and loads by many workers, in functions that a state machine calls until the job is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk_highwater.boosts.coordinator import BoostCoordinator
from cdk_highwater.boosts.grants import grant_table, require_grantee, subject_of_table
from cdk_highwater.scaler.alarms import make_alarm
from cdk_highwater.support.arguments import require, require_budget, require_number, require_or_none, require_topic
from cdk_highwater.support.asset import (
    PackedFile,
    files_of_room,
    make_small_function,
    unique_name,
    wait_for_policy_alone,
)
from cdk_highwater.support.iam import role_for
from cdk_highwater.support.nag import (
    EXECUTIONS,
    INLINE_RULES,
    LOAD_FUNCTION_RULES,
    MACHINE_RULES,
    OBJECTS,
    acknowledge,
    wildcard_rules,
)
from highwater.core.findings import shown
from highwater.jobs.segments import MOST_JOB_SEGMENTS, OTHER_KINDS

# The record of a budget has 60 bytes for each worker, and each renews every half minute: for 500 workers that is 30 KB
# 17 times a second, half of the 1,000 write units a second that one item takes.
_MOST_WORKERS = 500
# the name of an execution, often a UUID, comes behind it in the ids of jobs
_LONGEST_NAME = 40
_SHORTEST_TIMEOUT = cdk.Duration.minutes(5)
# half of the ten concurrent runs of a new account are left to others, with a `BufferedWrites` too (AWS Lambda Developer
# Guide, "Lambda quotas", read 2026-11)
_USUAL_WORKERS = 3
_MAP = "Workers"
_MEMORY_MIB = 512
_BUCKET = "an S3 bucket", "give its construct; an existing one is s3.Bucket.from_bucket_name(...)"
# a stopped job is looked at so often
_REST_SECONDS = 300
# A worker that Lambda has no room for, or that Lambda fails to run, comes back for as long as the others work (AWS Step
# Functions Developer Guide, "Handle transient Lambda service exceptions", read 2026-11). One that is lost, or fails in
# its own code or because a service does not answer, is called again for a quarter of an hour, and then the execution
# fails: what is done stays recorded. The start, which fails at a wrong input for the most part, gets a minute.
_TRANSIENT = (
    "TooManyRequestsException",
    "ServiceException",
    "AWSLambdaException",
    "SdkClientException",
    "ClientExecutionTimeoutException",
)
_WAIT_FOR_LAMBDA = {
    "ErrorEquals": [f"Lambda.{each}" for each in _TRANSIENT],
    "IntervalSeconds": 5,
    "BackoffRate": 2,
    "MaxDelaySeconds": 60,
    "MaxAttempts": 10_000,
    "JitterStrategy": "FULL",
}
_FAILURES = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 5, "BackoffRate": 2, "MaxDelaySeconds": 300}


class PacedJob(Construct):
    """What `PacedScan` and `PacedLoad` have in common: a state machine whose executions are jobs of many workers."""

    def __init__(self, scope: Construct, id: str, *, budget: str | None) -> None:
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._name = unique_name(self, most_characters=_LONGEST_NAME)
        self._budget = budget or self._name

    @property
    def state_machine(self) -> sfn.IStateMachine:
        """The state machine; its executions need no input, unless those of a load are to name the object."""
        return self._machine

    @property
    def job_prefix(self) -> str:
        """What the ids of the jobs begin with; the name of the execution comes behind it."""
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

    def _work_by(
        self,
        function: lambda_.IFunction,
        coordinator: BoostCoordinator,
        topic: sns.ITopic | None,
        *,
        kind: str,
        start: dict[str, Any],
    ) -> None:
        """Let *function* work on the jobs, and create the state machine, which calls it with *start* first."""
        coordinator.grant_job(function, f"{self.job_prefix}*")
        coordinator.grant_budget(function, self._budget)
        each = {"coordinator": coordinator.coordinator_name}
        self._machine = self._make_machine(function.function_arn, kind, each, start)
        make_alarm(
            self,
            topic,
            "Failed",
            self._machine.metric_failed(period=cdk.Duration.minutes(5), statistic="Sum"),
            f"{kind} failed; mend what its execution tells, and redrive it",
        )

    def _make_machine(self, function: str, kind: str, each: dict[str, Any], start: dict[str, Any]) -> sfn.StateMachine:
        """Create the state machine: it asks *function* with *start*, and then with *each* for each of the seats."""
        job: dict[str, Any] = {"job.$": f"States.Format('{self.job_prefix}{{}}', $$.Execution.Name)"}

        def ask(attempts: int) -> dict[str, Any]:
            retries = [_WAIT_FOR_LAMBDA, {**_FAILURES, "MaxAttempts": attempts}]
            return {"Type": "Task", "Resource": function, "Retry": retries}

        work = {
            "Work": {**ask(8), "Next": "IsDone"},
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
            "Start": {**ask(4), "Parameters": {**job, **each, **start}, "Next": _MAP},
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
                # a null, so that workers' results, which may be too long, do not become the execution's; the CDK leaves
                # out members that are None
                "ResultPath": sfn.JsonPath.DISCARD,
                "End": True,
            },
        }
        role = self._make_role(function, kind)
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

    def _make_role(self, function: str, kind: str) -> iam.Role:
        def arn(resource: str, name: str) -> str:
            style = cdk.ArnFormat.COLON_RESOURCE_NAME
            return self._stack.format_arn(service="states", resource=resource, resource_name=name, arn_format=style)

        # AWS Step Functions Developer Guide, "IAM policies for using Distributed Map states" (read 2026-11)
        executions, of_map = arn("execution", f"{self._name}:*"), arn("execution", f"{self._name}/{_MAP}:*")
        statements = [
            iam.PolicyStatement(actions=actions, resources=[resource])
            for actions, resource in (
                (["lambda:InvokeFunction"], function),
                (["states:StartExecution"], arn("stateMachine", self._name)),
                (["states:DescribeExecution", "states:StopExecution"], executions),
                (["states:RedriveExecution"], of_map),
            )
        ]
        role = role_for(self, "Role", "states.amazonaws.com", f"calls the function of {kind}", statements)
        acknowledge(role, INLINE_RULES | wildcard_rules(self._stack, [executions, of_map], EXECUTIONS))
        return role


class PacedScan(PacedJob):
    """A scan of a table or index by many workers within one budget, for as long as it takes: a job in Step Functions.

    The workers are runs of a function of yours, whose handler is `highwater.jobs.worker_handler(work)`, with
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
            default 3, so that an account with 10 concurrent runs has some left.
        index: The name of an index to scan instead of the table.
        segments: As for `highwater.jobs.start_job`.
        budget: The name of the shared budget, 1 to 121 characters. By default one of this construct's own.
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
        workers: int = _USUAL_WORKERS,
        index: str | None = None,
        segments: int | None = None,
        budget: str | None = None,
        topic: sns.ITopic | None = None,
    ) -> None:
        subject = subject_of_table(table)
        require("function", function, "function_arn", "a Lambda function", "give its construct")
        require_or_none("index", index, str, "the name of an index", "give it in quotes")
        _require_common(coordinator, budget, topic, workers, segments)
        _require_rate("read", read, workers)
        _require_timeout(function)
        super().__init__(scope, id, budget=budget)
        subject = subject.seen_from(self._stack)
        of_index = [] if index is None else [f"{subject.arn}/index/{index}"]
        grant_table(function, subject, ["dynamodb:DescribeTable", "dynamodb:Scan"], *of_index)
        start = {"table": subject.name, "read": read, "budget": self._budget, "index": index, "segments": segments}
        self._work_by(function, coordinator, topic, kind="a paced scan", start={"start": start, "workers": workers})


class PacedLoad(PacedJob):
    """A load of an object in S3 into a table by many workers within one budget, for as long as it takes.

    The object has items as lines of JSON, as `highwater load` takes them, and is not compressed. Each execution of the
    state machine is a job of its own, which `highwater jobs` shows, stops and resumes by its id: `job_prefix` and the
    execution's name. It loads `key`, or the object that its input names: `{"key": "nightly/2026-11-26.jsonl"}`. Lines
    that are rejected stop nothing; docs/jobs.md tells where they are, and what is promised.

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        table: The table: its construct or the result of `manage_capacity`, in the stack's account and region.
        coordinator: The coordinator whose table has the job and the budget.
        bucket: The bucket with the object.
        write: Write units per second of all workers and executions together, at least one for each worker. Each index
            has a budget of the same size.
        key: The key of the object that is loaded when an execution's input names none. By default it has to name one.
        prefix: What the keys begin with that an execution may name. By default only *key* may be loaded.
        workers: How many runs of the function work at once, 1 to 500, but not more than the job has segments. By
            default 3, so that an account with 10 concurrent runs has some left.
        segments: As for `highwater.jobs.start_load`.
        rejects: The bucket for rejected lines, which are below `rejects/`. By default *bucket*.
        budget: The name of the shared budget, 1 to 121 characters. By default one of this construct's own.
        topic: The SNS topic for the alarm. By default it only shows in CloudWatch.

    Raises:
        TypeError: An argument is of another type than documented.
        ValueError: An argument is out of range, or neither *key* nor *prefix* is given.

    Example:
        ```python
        load = PacedLoad(
            stack, "Nightly", table=orders, coordinator=coordinator, bucket=exports, key="orders.jsonl", write=500
        )
        load.grant_start(operator_role)
        ```
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        table: object,
        coordinator: BoostCoordinator,
        bucket: s3.IBucket,
        write: float,
        key: str | None = None,
        prefix: str | None = None,
        workers: int = _USUAL_WORKERS,
        segments: int | None = None,
        rejects: s3.IBucket | None = None,
        budget: str | None = None,
        topic: sns.ITopic | None = None,
    ) -> None:
        subject = subject_of_table(table)
        require("bucket", bucket, "bucket_arn", *_BUCKET)
        require_or_none("rejects", rejects, "bucket_arn", *_BUCKET)
        _require_common(coordinator, budget, topic, workers, segments)
        _require_rate("write", write, workers)
        _require_objects(key, prefix)
        super().__init__(scope, id, budget=budget)
        subject = subject.seen_from(self._stack)
        rejects = rejects or bucket
        function = make_small_function(
            Construct(self, "Loader"),
            "puts the lines of an object in S3 into a table",
            LOAD_FUNCTION_RULES,
            package="highwater.jobs",
            handler="worker",
            packs=[_files],
            description="Highwater: puts the lines of an object in S3 into a table, within a budget",
            timeout=cdk.Duration.minutes(15),
            memory_size=_MEMORY_MIB,
        )
        grant_table(function, subject, ["dynamodb:BatchWriteItem", "dynamodb:DescribeTable", "dynamodb:PutItem"])
        reading = [] if key is None else [bucket.arn_for_objects(key)]
        reading += [] if prefix is None else [bucket.arn_for_objects(f"{prefix}*")]
        self._grant_objects(function, bucket, reading, "s3:GetObject", "kms:Decrypt")
        writing = [rejects.arn_for_objects(f"rejects/{self.job_prefix}*")]
        self._grant_objects(function, rejects, writing, "s3:PutObject", "kms:GenerateDataKey")
        start = {
            "table": subject.name,
            "write": write,
            "budget": self._budget,
            "segments": segments,
            "bucket": bucket.bucket_name,
            "key": key,
            "rejects": f"s3://{rejects.bucket_name}/rejects",
        }
        self._work_by(
            function,
            coordinator,
            topic,
            kind="a paced load",
            start={"start": start, "workers": workers, "input.$": "$"},
        )

    def _grant_objects(
        self, function: lambda_.Function, bucket: s3.IBucket, arns: list[str], action: str, key_action: str
    ) -> None:
        """Let *function* do *action* on objects of *bucket*, and *key_action* with the bucket's own key."""
        iam.Grant.add_to_principal_or_resource(grantee=function, actions=[action], resource_arns=arns, resource=bucket)
        if bucket.encryption_key is not None:
            bucket.encryption_key.grant(function, key_action)
        acknowledge(function.role or function, wildcard_rules(self._stack, arns, OBJECTS))


def _require_common(
    coordinator: object, budget: str | None, topic: sns.ITopic | None, workers: object, segments: object
) -> None:
    """Raise `TypeError` or `ValueError` for an argument of both constructs that is not allowed."""
    require("coordinator", coordinator, BoostCoordinator, "a BoostCoordinator", "give its construct")
    require_budget(budget)
    require_topic(topic)
    require_number("workers", workers, 1, _MOST_WORKERS)
    if segments is not None:
        require_number("segments", segments, 1, MOST_JOB_SEGMENTS)


def _require_objects(key: str | None, prefix: str | None) -> None:
    """Raise an error if no object can be loaded, or one that is not lines of JSON."""
    for name, value in (("key", key), ("prefix", prefix)):
        require_or_none(name, value, str, "a text", "give it in quotes")
    if key is None and prefix is None:
        message = (
            "neither key nor prefix is given; give the key of an object, or what the keys that are loaded begin with"
        )
        raise ValueError(message)
    if key is not None and (not key or key.endswith(("/", *OTHER_KINDS))):
        message = f"key is {key!r}; allowed: one object with lines of JSON, not compressed; convert other ones first"
        raise ValueError(message)


def _require_rate(name: str, rate: object, workers: int) -> None:
    """Raise an error if *rate* is no rate, or one for which a worker would wait for a page for most of its lease."""
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        message = f"{name} must be a number of units per second, got {shown(rate)}; give a number"
        raise TypeError(message)
    if not workers <= rate < float("inf"):
        message = (
            f"{name} is {rate:,g}; allowed: at least one unit per second for each of the {workers:,} workers; "
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


def _files() -> Iterator[PackedFile]:
    return files_of_room("jobs")
