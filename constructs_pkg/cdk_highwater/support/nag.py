"""Findings as validations of the CDK, and acknowledgements of cdk-nag rules that do not apply, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, cast

import aws_cdk as cdk
import jsii
from constructs import Construct, IConstruct, IValidation

from cdk_highwater.support.iam import alarms_arn, path_arns, table_arn, targets_arn
from highwater.core import Finding, Severity
from highwater.core.names import boost_caps_path, plans_path


def annotate(construct: IConstruct, findings: Iterable[Finding]) -> bool:
    """Report *findings* on *construct* as validations of the CDK. Return false if one of them is an error.

    A warning that is acknowledged is left out, whether `Validations` or `Annotations` acknowledges it, and whether
    before or after this call.
    """
    is_valid = True
    for finding in findings:
        text = finding.text(construct.node.path)
        if finding.severity is Severity.ERROR:
            is_valid = False
            cdk.Validations.of(construct).add_error(finding.id, text)
        elif finding.severity is Severity.INFO:
            cdk.Annotations.of(construct).add_info_v2(finding.id, text)  # Validations knows no information
        elif not _is_acknowledged(construct, finding.id):
            # Validations adds a tag of its own; by this one Annotations.acknowledge_warning finds the warning later
            cdk.Validations.of(construct).add_warning(finding.id, f"{text} [ack: {finding.id}]")
    return is_valid


def _is_acknowledged(construct: IConstruct, finding_id: str) -> bool:
    """Whether the app, the construct or one in between has acknowledged *finding_id* before it is reported.

    The CDK itself goes by what lies between the two only, which misses the likely places for a warning that is reported
    at the end of synth.
    """
    key = cdk.Validations.ACKNOWLEDGED_RULES_METADATA_KEY
    records = (entry.data for scope in construct.node.scopes for entry in scope.node.metadata if entry.type == key)
    if any(rule.rpartition("::")[2] == finding_id for record in records for rule in record):
        return True
    # what Annotations has acknowledged can only be tried, and only on a child is the construct itself asked too
    trial = Construct(cast("Construct", construct), "AcknowledgementTrial")
    cdk.Annotations.of(trial).add_warning_v2(finding_id, "trial")
    is_acknowledged = not trial.node.metadata
    construct.node.try_remove_child(trial.node.id)
    return is_acknowledged


@jsii.implements(IValidation)
class _AtEndOfSynth:
    def __init__(self, construct: IConstruct, find: Callable[[], Iterable[Finding]]) -> None:
        self._construct = construct
        self._find = find

    def validate(self) -> list[str]:
        # annotated rather than returned: the CDK CLI prints annotations as lines, and returned errors as a traceback
        annotate(self._construct, self._find())
        return []


def annotate_at_end(by: Construct, construct: IConstruct, find: Callable[[], Iterable[Finding]]) -> None:
    """Report on *construct* what *find* returns at the end of synth, when all is declared; *by* is what asks for it."""
    by.node.add_validation(_AtEndOfSynth(construct, find))


FUNCTION_RULES: Final = (
    "Serverless::Serverless-LambdaTracing",
    "NIST.800.53.R5::NIST.800.53.R5-LambdaConcurrency",
    "NIST.800.53.R5::NIST.800.53.R5-LambdaInsideVPC",
    "HIPAA.Security::HIPAA.Security-LambdaConcurrency",
    "HIPAA.Security::HIPAA.Security-LambdaInsideVPC",
    "PCI.DSS.321::PCI.DSS.321-LambdaInsideVPC",
)
QUEUE_LESS_RULES: Final = (
    "Serverless::Serverless-LambdaDLQ",
    "NIST.800.53.R5::NIST.800.53.R5-LambdaDLQ",
    "HIPAA.Security::HIPAA.Security-LambdaDLQ",
)
LOG_RULES: Final = dict.fromkeys(
    (
        "NIST.800.53.R5::NIST.800.53.R5-CloudWatchLogGroupEncrypted",
        "HIPAA.Security::HIPAA.Security-CloudWatchLogGroupEncrypted",
        "PCI.DSS.321::PCI.DSS.321-CloudWatchLogGroupEncrypted",
    ),
    "CloudWatch Logs encrypts every log group; the log contains names of tables and callers, units, and jobs' reasons.",
)
_ROLE_RULES: Final = {
    "AwsSolutions::AwsSolutions-IAM5[Resource::*]": (
        "application-autoscaling:DescribeScalableTargets, application-autoscaling:DescribeScalingActivities, "
        "cloudwatch:GetMetricData and tag:GetResources do not support resource-level permissions."
    ),
} | dict.fromkeys(
    (
        "NIST.800.53.R5::NIST.800.53.R5-IAMNoInlinePolicy",
        "HIPAA.Security::HIPAA.Security-IAMNoInlinePolicy",
        "PCI.DSS.321::PCI.DSS.321-IAMNoInlinePolicy",
    ),
    "The policy belongs to this role and is deleted with it; it names each table, so no other role could use it.",
)
# for roles with an inline policy and no other finding
INLINE_RULES: Final = {rule: reason for rule, reason in _ROLE_RULES.items() if rule.endswith("IAMNoInlinePolicy")}
_TARGETS = "Ids of scalable targets are only known after registration; a condition limits the action to DynamoDB."
_ALARMS = "Application Auto Scaling requires these permissions for all alarms of the caller that registers a target."
_PLANS = "Stacks may add tables later, so the role covers all plans below the path of one scaler, and nothing else."
_CAPS = "Stacks may grant boosts later, so the role covers all grants of one coordinator, and nothing else."
EXECUTIONS = "Each worker is an execution with an id of its own; the role covers those of its own state machine only."
OBJECTS = (
    "Each execution may name an object, and writes its rejected lines; the role covers keys of one prefix for each."
)
_TAGGED = "A condition limits the actions to tables with the tag highwater:managed."
SCALER_FUNCTION_RULES: Final = dict.fromkeys(
    FUNCTION_RULES,
    "The function calls AWS APIs only; concurrent runs are harmless, and each decision has a log line instead of a "
    "trace.",
)
BOOST_TASK_RULES: Final = dict.fromkeys(
    (*FUNCTION_RULES, *QUEUE_LESS_RULES),
    "The function makes one signed request for a step of a state machine, which waits for it and tries again.",
)
BUFFERED_FUNCTION_RULES: Final = dict.fromkeys(
    (*FUNCTION_RULES, *QUEUE_LESS_RULES),
    "The function calls AWS APIs only, and only its queue starts it: the queue limits how many run at once, and keeps "
    "what is not done.",
) | {
    "Serverless::Serverless-LambdaEventSourceMappingDestination": (
        "A queue knows no such destination: what cannot be written goes to its dead-letter queue."
    )
}
LOAD_FUNCTION_RULES: Final = dict.fromkeys(
    (*FUNCTION_RULES, *QUEUE_LESS_RULES),
    "The function calls AWS APIs only; a state machine calls it, limits how many run at once, and tries again.",
)
MACHINE_RULES: Final = dict.fromkeys(
    (
        "AwsSolutions::AwsSolutions-SF1",
        "AwsSolutions::AwsSolutions-SF2",
        "Serverless::Serverless-StepFunctionStateMachineXray",
    ),
    "The service keeps the history of each execution for 90 days, and the job's records say how far it is; a log and "
    "traces would need permissions for all log deliveries and resource policies of the account.",
)
_BACKED_UP = "Leases last a day at most, a job whose record is lost begins again, and point-in-time recovery is on."
LEASE_TABLE_RULES: Final = dict.fromkeys(
    ("NIST.800.53.R5::NIST.800.53.R5-DynamoDBInBackupPlan", "HIPAA.Security::HIPAA.Security-DynamoDBInBackupPlan"),
    _BACKED_UP,
)
ASYNC_RULES: Final = {
    "Serverless::Serverless-LambdaAsyncFailureDestination": "Events that fail go to the function's dead-letter queue."
}
PULSE_EVENT_RULES: Final = {
    "Serverless::Serverless-EventBusDLQ": "A fleet that still needs help asks again; an old request is worth nothing."
}
QUEUE_RULES: Final = {
    "Serverless::Serverless-SQSRedrivePolicy": "The queue is a dead-letter queue itself; an alarm reports messages."
}


def wildcard_rules(stack: cdk.Stack, arns: Iterable[str], reason: str) -> dict[str, str]:
    """Return the rules and the reason for a role with permissions for these *arns*, which have wildcards."""
    return {f"AwsSolutions::AwsSolutions-IAM5[Resource::{_flat(stack.resolve(arn))}]": reason for arn in arns}


def role_rules(stack: cdk.Stack, regions: Iterable[str | None] = (None,)) -> dict[str, str]:
    """Return the rules and reasons for a role that sets floors in *regions*, `None` for the stack's own."""
    rules = dict(_ROLE_RULES)
    for region in regions:
        rules |= wildcard_rules(stack, [targets_arn(stack, region)], _TARGETS)
        rules |= wildcard_rules(stack, [alarms_arn(stack, region=region)], _ALARMS)
    return rules


def plans_rules(stack: cdk.Stack, scaler: str) -> dict[str, str]:
    """Return the rule and reason for a role that reads or changes the plans of *scaler*."""
    return wildcard_rules(stack, path_arns(stack, plans_path(scaler))[1:], _PLANS)


def scaler_role_rules(stack: cdk.Stack, scaler: str, regions: Iterable[str | None] = (None,)) -> dict[str, str]:
    """Return the rules and reasons for the role of *scaler*, which may find tagged tables in *regions*."""
    rules = role_rules(stack, regions) | plans_rules(stack, scaler)
    return rules | wildcard_rules(stack, [table_arn(stack, "*", region) for region in regions], _TAGGED)


def boost_role_rules(stack: cdk.Stack, coordinator: str) -> dict[str, str]:
    """Return the rules and reasons for the role of a function that serves boosts."""
    return wildcard_rules(stack, path_arns(stack, boost_caps_path(coordinator))[1:], _CAPS)


def _flat(value: object) -> str:
    """Return a resolved value as cdk-nag writes it: references in angle brackets."""
    if not isinstance(value, Mapping):
        return str(value)
    ((function, argument),) = value.items()
    if function == "Fn::Join":
        return str(argument[0]).join(_flat(part) for part in argument[1])
    return f"<{'.'.join(argument)}>" if function == "Fn::GetAtt" else f"<{argument}>"


def acknowledge(scope: IConstruct, rules: Mapping[str, str]) -> None:
    """Acknowledge *rules* for *scope*, each with its reason."""
    cdk.Validations.of(scope).acknowledge(
        *(cdk.Acknowledgment(id=rule, reason=reason) for rule, reason in rules.items())
    )
