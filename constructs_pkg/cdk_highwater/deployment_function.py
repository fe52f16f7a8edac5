"""The function, one per stack, that sets floors of open windows and high-water marks after a deploy."""

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
    "CloudFormation invokes the function during deploys only, waits for its response and reports a failure, so a "
    "dead-letter queue, reserved concurrency, traces or a VPC would protect nothing."
)


class DeploymentFunction(Construct):
    """The function behind Highwater's custom resources in a stack; `of` returns it.

    The function runs only during deploys. Its role may read and set DynamoDB's scalable targets, and describe and
    update only the tables given to `allow_floors` and `allow_marks`.
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
        """Return the function of *stack*; the first call creates it."""
        existing = stack.node.try_find_child(_ID)
        return existing if isinstance(existing, cls) else cls(stack, _ID)

    @property
    def service_token(self) -> str:
        """The function's ARN, for custom resources."""
        return self._service_token

    @property
    def permissions(self) -> list[Construct]:
        """The constructs with the function's permissions, on which a custom resource must depend."""
        return [self._role] if self._continue is None else [self._role, self._continue]

    def allow_floors(self, subject: Subject, region: str | None = None) -> None:
        """Allow the function to set bounds of the table's targets; *region* is by default the stack's."""
        if region is not None:
            acknowledge(self, role_rules(self._stack, [region]))
        for statement in (reading_targets(), *setting_bounds(self._stack, region)):
            self._allow_once(statement)
        self._allow_once(iam.PolicyStatement(actions=list(TABLE_ACTIONS), resources=[subject.arn_in(region)]))

    def allow_invoking(self, function_arn: str) -> None:
        """Allow the function to invoke the scaler with that ARN."""
        self._allow_once(iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function_arn]))

    def allow_marks(self, subject: Subject, *, provisions: bool) -> None:
        """Allow the function to raise the table's marks; *provisions* also allows noting the present capacity in tags.

        Every table gets the permissions to read and remove that note and to continue in another invocation, because a
        table may have a note from an earlier deploy with strategy PROVISION_AND_LOWER.
        """
        self._allow_once(reading_targets())
        for actions in (TABLE_ACTIONS, _NOTE_ACTIONS, ("dynamodb:TagResource",) if provisions else ()):
            if actions:
                self._allow_once(iam.PolicyStatement(actions=list(actions), resources=[subject.arn]))
        if self._continue is None:
            # a separate policy, because the function depends on the role's default policy
            self._continue = iam.Policy(
                self,
                "Continue",
                roles=[self._role],
                statements=[
                    iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self._function.function_arn])
                ],
            )

    def _allow_once(self, statement: iam.PolicyStatement) -> None:
        """Add the statement to the role, or its resources to the existing statement with the same actions."""
        existing = self._allowed.setdefault(tuple(statement.actions), statement)
        if existing is statement:
            self._role.add_to_policy(statement)
            return
        present = set(existing.resources)
        existing.add_resources(*(resource for resource in statement.resources if resource not in present))

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
        """Acknowledge the rules of cdk-nag rule packs that do not apply; docs/security.md lists the reasons."""
        acknowledge(self._function, dict.fromkeys((*FUNCTION_RULES, *QUEUE_LESS_RULES), _DEPLOYS_ONLY))
        acknowledge(self._log_group, LOG_RULES)
        # on this construct, because the permissions are in two policies below it
        acknowledge(self, role_rules(self._stack))
