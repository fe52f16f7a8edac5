"""The one function of a stack that finishes deploys: floors of open windows and high-water marks."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_highwater.function_asset import make_function, pack_runtime
from cdk_highwater.permissions import TABLE_ACTIONS, reading_targets, setting_bounds
from cdk_highwater.rule_packs import FUNCTION_RULES, LOG_RULES, QUEUE_LESS_RULES, acknowledge, role_rules
from cdk_highwater.subject import Subject

_ID = "HighwaterDeployment"
_TIMEOUT = cdk.Duration.minutes(15)

_NOTE_ACTIONS = ("dynamodb:ListTagsOfResource", "dynamodb:UntagResource")
_DEPLOYS_ONLY = (
    "Runs during deploys only, for CloudFormation, which waits for the answer and repeats what fails: a dead-letter "
    "queue, reserved concurrency, traces or a VPC would guard nothing."
)


class DeploymentFunction(Construct):
    """A stack's function behind Highwater's custom resources; `of` returns it.

    It runs only during deploys. Its role may read and set scalable targets of DynamoDB, and describe and update just
    the tables it was allowed.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self._stack = cdk.Stack.of(self)
        self._log_group = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self._role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Highwater: sets floors and high-water marks during deploys",
        )
        self._log_group.grant_write(self._role)
        self._function = self._make_function()
        self._continue: iam.Policy | None = None
        self._service_token = self._function.function_arn
        self._allowed: dict[tuple[str, ...], iam.PolicyStatement] = {}
        self._acknowledge()

    @classmethod
    def of(cls, stack: cdk.Stack) -> DeploymentFunction:
        """The function of *stack*, made when first asked for."""
        existing = stack.node.try_find_child(_ID)
        return existing if isinstance(existing, cls) else cls(stack, _ID)

    @property
    def service_token(self) -> str:
        """What custom resources name the function by."""
        return self._service_token

    @property
    def permissions(self) -> list[Construct]:
        """What a custom resource waits for beside the function that it names."""
        return [self._role] if self._continue is None else [self._role, self._continue]

    def allow_floors(self, subject: Subject, region: str | None = None) -> None:
        """Let it set bounds of the table's targets, in *region* where that is not the stack's."""
        if region is not None:
            acknowledge(self, role_rules(self._stack, [region]))
        for statement in (reading_targets(), *setting_bounds(self._stack, region)):
            self._allow_once(statement)
        self._allow_once(iam.PolicyStatement(actions=list(TABLE_ACTIONS), resources=[subject.arn_in(region)]))

    def allow_invoking(self, function_arn: str) -> None:
        """Let it start a scaler."""
        self._allow_once(iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function_arn]))

    def allow_marks(self, subject: Subject, *, provisions: bool) -> None:
        """Let it raise the table's marks; *provisions* lets it note on the table where a raise came from.

        Reading and clearing that note, and going on in another invocation, belong to every mark: one that used to be
        provisioned may still have a way down to finish.
        """
        self._allow_once(reading_targets())
        for actions in (TABLE_ACTIONS, _NOTE_ACTIONS, ("dynamodb:TagResource",) if provisions else ()):
            if actions:
                self._allow_once(iam.PolicyStatement(actions=list(actions), resources=[subject.arn]))
        if self._continue is None:
            # not in the role's own policy, which the function depends on
            self._continue = iam.Policy(
                self,
                "Continue",
                roles=[self._role],
                statements=[
                    iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self._function.function_arn])
                ],
            )

    def _allow_once(self, statement: iam.PolicyStatement) -> None:
        """One statement for each set of actions, however many tables it is for."""
        allowed = self._allowed.setdefault(tuple(statement.actions), statement)
        if allowed is statement:
            self._role.add_to_policy(statement)
            return
        present = set(allowed.resources)
        allowed.add_resources(*(resource for resource in statement.resources if resource not in present))

    def _make_function(self) -> lambda_.Function:
        return make_function(
            self,
            handler="deployment",
            packs=[pack_runtime],
            role=self._role,
            description="Highwater: floors of open windows and high-water marks, during deploys only",
            timeout=_TIMEOUT,
            memory_size=256,
            log_group=self._log_group,
        )

    def _acknowledge(self) -> None:
        """Answer rule packs for what is otherwise here than they ask; docs/security.md has the same table."""
        acknowledge(self._function, dict.fromkeys((*FUNCTION_RULES, *QUEUE_LESS_RULES), _DEPLOYS_ONLY))
        acknowledge(self._log_group, LOG_RULES)
        # its permissions stand in the role's own policy and in one beside it
        acknowledge(self, role_rules(self._stack))
