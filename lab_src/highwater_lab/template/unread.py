"""The one catalogue of types that are not read and may scale or make tables, CloudFormation's and Terraform's.

Sources: AWS, "AWS resource and property types reference"; AWS, "Using universal targets in EventBridge Scheduler"; the
documentation of Terraform's providers aws 6 and awscc 1; the registry's AwsCommunity extensions; all read 2026-11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Unread:
    """A row of the catalogue.

    Attributes:
        kinds: The types, as a pattern of the whole type.
        what: What becomes of such a resource; `{tables}` stands for the tables that it names.
        makes_tables: Whether it may make tables of its own, so that it is about more than the tables it names.
        only_of: What must be in its properties, as a pattern; `None` for anything.
        only_if_named: Whether it matters only if it names a table or a scalable target.
    """

    kinds: str
    what: str
    makes_tables: bool = False
    only_of: str | None = None
    only_if_named: bool = False

    @property
    def may_scale(self) -> bool:
        """Whether it may scale the tables that it names, so that a person can vouch that it does not."""
        return "{tables}" in self.what


# with the names of the tables
_SCALES: Final = "is not read, and may scale {tables}"
_MAKES: Final = "is not read, and may make tables"
_DYNAMODB: Final = r"\bdynamodb\b"
# what changes capacity: of the SDK's calls in custom resources, and of universal targets of schedules; not of other
# services, whose calls have the same names, such as Glue's UpdateTable, and not of other namespaces of auto scaling
_CALLS: Final = (
    r"(?is)\A(?=.*(?:dynamodb|application-?auto-?scaling))(?!.*ServiceNamespace\W+(?!dynamodb)\w).*(?:update-?table\b"
    r"|updateglobaltable|register-?scalable-?target|put-?scaling-?policy|put-?scheduled-?action"
    r"|aws-sdk:applicationautoscaling)"
)
_CATALOGUE: Final = (
    Unread(r"AWS::AutoScalingPlans::ScalingPlan|aws_autoscalingplans_scaling_plan", _SCALES, only_of=_DYNAMODB),
    Unread(r"AwsCommunity::.*ScheduledAction", _SCALES, only_of=_DYNAMODB),
    Unread(r"AWS::Scheduler::Schedule|aws_scheduler_schedule", _SCALES, only_of=_CALLS),
    Unread(r"awscc_applicationautoscaling_\w+", _SCALES, only_of=_DYNAMODB),
    Unread(r".+::MODULE", "is a module, which is not read, and may make tables", makes_tables=True),
    Unread(
        r"AWS::CloudFormation::Stack|aws_cloudformation_stack(?:_set(?:_instance)?)?",
        "is a stack whose template is not here, and may make tables",
        makes_tables=True,
    ),
    Unread(
        r"AWS::Serverless::Application|aws_serverlessapplicationrepository_cloudformation_stack",
        "is an application whose template is not here, and may make tables",
        makes_tables=True,
    ),
    Unread(r"awscc_dynamodb_\w+", _MAKES, makes_tables=True),
    Unread(
        r"aws_dynamodb_global_table",
        "is a global table of version 2017, which is not read: its replicas are not paid for here",
    ),
    Unread(
        r"Custom::DynamoDBReplica",
        "makes a replica for replicationRegions, which is not paid for here; use the CDK's TableV2",
    ),
    # types that somebody registered in the account
    Unread(r"(?!AWS::|Custom::|AwsCommunity::|Alexa::)\w+::\w*(?i:dynamodb).*", _MAKES, makes_tables=True),
    Unread(
        r"Custom::AWS|Custom::.*AwsSdk.*",
        "makes calls of AWS's, which are not read, and may scale {tables}",
        only_of=_CALLS,
    ),
    Unread(r"Custom::.+|AWS::CloudFormation::CustomResource", _SCALES, only_if_named=True),
)
# Highwater's own are read; those of the CDK never scale
_READ: Final = re.compile(
    r"Custom::Highwater.*|Custom::(?:S3|CDK|LogRetention|Cross|Vpc|Deployment|Enable|Trigger|Opensearch|ECR).*"
    r"|Custom::DynamoDBReplica|Custom::AWS|Custom::.*AwsSdk.*"
)


def is_unread(kind: str) -> bool:
    """Return whether a resource of this type may scale or make tables, and is not read."""
    return find_unread(kind) is not None


def find_unread(kind: str) -> Unread | None:
    """Return the row of the catalogue for a type; `None` if it is read, or cannot scale or make tables."""
    for row in _CATALOGUE:
        if re.fullmatch(row.kinds, kind) and not (row.only_if_named and _READ.fullmatch(kind)):
            return row
    return None
