"""The function, one per stack, that sets floors of open windows and high-water marks after a deploy."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IConstruct

from cdk_highwater.support.asset import id_within, make_function, make_role_and_logs, runtime_files
from cdk_highwater.support.iam import (
    TABLE_ACTIONS,
    invoking,
    path_arns,
    reading_stack,
    reading_targets,
    setting_bounds,
)
from cdk_highwater.support.nag import (
    ASYNC_RULES,
    FUNCTION_RULES,
    LOG_RULES,
    QUEUE_LESS_RULES,
    acknowledge,
    annotate_at_end,
    plans_rules,
    role_rules,
)
from cdk_highwater.support.quotas import ResourcesFitTheStack, role_room_findings
from cdk_highwater.table.subject import Subject, at_end
from highwater.core.names import plans_path

_ID = "HighwaterDeployment"
_TIMEOUT = cdk.Duration.minutes(15)
# CloudFormation waits for an answer for an hour by default, and in a rollback again, while a function that cannot run
# at all never gives one. A run has 15 minutes, and where the account's concurrency is used up, one more waits for its
# end; marks are raised in up to three runs.
ANSWER_SECONDS = 1_800
MARKS_ANSWER_SECONDS = 3_300
# The requests of CloudFormation, and those of the function to itself, wait in Lambda's queue (scaler_function.py has
# the source). A request that waits longer than CloudFormation would change a table whose deploy has failed meanwhile.
# Five minutes would be too little: Lambda repeats a run that it has stopped after 15 minutes, and its age counts from
# the first attempt. A wait of hours for an index is a chain of such requests, each with an age from its own beginning.
_OLDEST_EVENT = cdk.Duration.seconds(MARKS_ANSWER_SECONDS)

# While an index is being built, a tag of the table names the deploy whose marks wait for it.
_NOTE_ACTIONS = ("dynamodb:ListTagsOfResource", "dynamodb:TagResource", "dynamodb:UntagResource")
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
        self._role, log_group = make_role_and_logs(self, "sets floors and high-water marks during deploys")
        self._function = make_function(
            self,
            handler="deploy.handler",
            packs=[runtime_files],
            role=self._role,
            description="Highwater: floors of open windows and high-water marks, during deploys only",
            timeout=_TIMEOUT,
            max_event_age=_OLDEST_EVENT,
            retry_attempts=2,
            memory_size=256,
            # the function invokes itself until an index is built or a rollback is over, at most once in 15 minutes;
            # by default, Lambda ends such a chain after 16 invocations
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
            log_group=log_group,
        )
        self._service_token = self._function.function_arn
        self._units: cdk.CfnResource | None = None
        self._reset: list[tuple[cdk.CfnResource, Callable[[], object]]] = []
        self._ids: dict[IConstruct, str] = {}
        self._policies: dict[str, iam.Policy] = {}
        # the rules of cdk-nag that do not apply; docs/security.md lists the reasons
        acknowledge(self._function, dict.fromkeys((*FUNCTION_RULES, *QUEUE_LESS_RULES, *ASYNC_RULES), _DEPLOYS_ONLY))
        acknowledge(log_group, LOG_RULES)
        # on this construct, because the permissions are in the policies below it
        acknowledge(self, role_rules(self._stack))
        annotate_at_end(self, self, lambda: role_room_findings(self._role, self._policies.values()))
        self.node.add_validation(ResourcesFitTheStack(self._stack, self._ids))

    @classmethod
    def of(cls, stack: cdk.Stack) -> DeploymentFunction:
        """Return the function of *stack*; the first call creates it."""
        # searching the construct tree would be a call to Node for every table
        if stack not in _OF_STACKS:
            _OF_STACKS[stack] = cls(stack, _ID)
        return _OF_STACKS[stack]

    @property
    def service_token(self) -> str:
        """The function's ARN, for custom resources."""
        return self._service_token

    def allow_floors(self, subject: Subject, region: str | None = None) -> list[Construct]:
        """Allow the function to set bounds of the table's targets; *region* is by default the stack's.

        Returns:
            The constructs with the permissions, on which a custom resource for the table must depend.
        """
        return [self._role, self._allow_bounds(region), self._allow_table(subject, region)]

    def _allow_bounds(self, region: str | None = None) -> iam.Policy:
        if region is not None:
            acknowledge(self, role_rules(self._stack, [region]))

        def statements() -> list[iam.PolicyStatement]:
            setting = [reading_targets(), *setting_bounds(self._stack, region)]
            # the function continues in other invocations while an index is being built or a deploy is rolled back
            itself = invoking(self._function.function_arn)
            return setting if region is not None else [*setting, reading_stack(self._stack), itself]

        return self._policy(f"Bounds{region or ''}", statements)

    def come_before(self, template: cdk.CfnResource, find_units: Callable[[], object]) -> None:
        """Have CloudFormation call the function before it changes the table *template*, and in each of its rollbacks.

        When the units or the billing mode in the template change, CloudFormation sets live capacity to these units, and
        in a rollback to those of before. What refers to the table is updated after it, and takes no part in a rollback
        that begins earlier. So all tables of the stack depend on one custom resource, which has their units, and refers
        to no table: it has their logical ids (docs/decisions/0052). *find_units* returns a table's units at the end of
        synth.
        """
        if self._units is None:
            self._units = cdk.CfnResource(
                self,
                "Units",
                type="Custom::HighwaterUnits",
                properties={
                    "ServiceToken": self._service_token,
                    "ServiceTimeout": str(ANSWER_SECONDS),
                    "Tables": at_end(self._units_of_tables),
                },
            )
            self._units.node.add_dependency(self._role, self._allow_bounds())
        self._reset.append((template, find_units))
        template.add_resource_dependency(self._units)

    def _units_of_tables(self) -> dict[str, object]:
        return {self._stack.get_logical_id(template): find_units() for template, find_units in self._reset}

    def allow_handing_over(self, scaler: str) -> Construct:
        """Allow the function to record in the plans of *scaler* that a table has left it; return the permissions."""

        def statements() -> list[iam.PolicyStatement]:
            acknowledge(self, plans_rules(self._stack, scaler))
            plans = path_arns(self._stack, plans_path(scaler))[1]
            return [iam.PolicyStatement(actions=["ssm:GetParameter", "ssm:PutParameter"], resources=[plans])]

        return self._policy(f"Plans-{scaler}", statements)

    def allow_too(self, policy: iam.Policy) -> None:
        """Give the function the permissions of *policy* too.

        It is for what refers to a scaler's function, which depends on its tables: in a policy on which the function, or
        a custom resource of a table, depends, tables that depend on each other would form a circle.
        """
        if policy.node.path not in self._policies:
            self._policies[policy.node.path] = policy
            policy.attach_to_role(self._role)

    def allow_marks(self, subject: Subject) -> list[Construct]:
        """Allow the function to raise the table's marks, and to note in a tag which of them wait for an index.

        Returns:
            The constructs with the permissions, on which a custom resource for the table must depend.
        """
        marks = self._policy("Marks", lambda: [invoking(self._function.function_arn)])
        return [self._role, marks, self._allow_table(subject)]

    def _allow_table(self, subject: Subject, region: str | None = None) -> iam.Policy:
        """Allow describing and updating the table, in a separate policy, and in the stack's region notes in its tags.

        The policy has the same actions with and without marks: `PreWarm` may come later in the app, and when marks are
        removed from a plan, the deletion of their resource still needs these actions. Marks are raised in the stack's
        region alone.
        """
        construct = subject.construct
        if construct not in self._ids:
            self._ids[construct] = id_within(self._stack, construct)
        id = f"Table{region or ''}-{self._ids[construct]}"

        actions = [*TABLE_ACTIONS, *(_NOTE_ACTIONS if region is None else ())]
        return self._policy(id, lambda: [iam.PolicyStatement(actions=actions, resources=[subject.arn_in(region)])])

    def _policy(self, id: str, statements: Callable[[], list[iam.PolicyStatement]]) -> iam.Policy:
        """Return the policy *id* of the role; the first call creates it with *statements*.

        CloudFormation updates policies before it deletes custom resources, and deletes policies after them. So the
        permissions for a deletion must be in a policy that is deleted with the last custom resource that needs them.
        """
        if id not in self._policies:
            self._policies[id] = iam.Policy(self, id, roles=[self._role], statements=statements())
        return self._policies[id]


_OF_STACKS: WeakKeyDictionary[cdk.Stack, DeploymentFunction] = WeakKeyDictionary()
