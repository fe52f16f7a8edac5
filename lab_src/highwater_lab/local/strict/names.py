"""Names that CloudFormation or CloudWatch refuses because they are too long.

MiniStack accepts names of any length in templates. The limits are those of the services' API references, read 2026-11;
each is the `maxLength` of the property in CloudFormation's schema of the type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from highwater_lab.local import ministack
from highwater_lab.local.strict.answers import Answer, refused
from highwater_lab.local.strict.request import Request

LONGEST: Final = {
    ("AWS::ApplicationAutoScaling::ScalingPolicy", "PolicyName"): 256,
    ("AWS::CloudWatch::Alarm", "AlarmName"): 255,
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
    ("AWS::DynamoDB::GlobalTable", "TableName"): 255,
    ("AWS::DynamoDB::Table", "TableName"): 255,
    ("AWS::IAM::Policy", "PolicyName"): 128,
    ("AWS::IAM::Role", "RoleName"): 64,
    ("AWS::Lambda::Function", "FunctionName"): 64,
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
    ("AWS::SNS::Topic", "TopicName"): 256,
    ("AWS::SQS::Queue", "QueueName"): 80,
    ("AWS::SSM::Parameter", "Name"): 2_048,
    ("AWS::Scheduler::Schedule", "Name"): 64,
}
_REFUSED: Final = (
    "Properties validation failed for resource {resource} with message: "
    "[#/{member}: expected maxLength: {most}, actual: {actual}]"
)


class LongNameError(ValueError):
    """A name of a template's resource is too long."""


class Names:
    """Refuses names that are too long; known to MiniStack as soon as this is made."""

    def __init__(self) -> None:
        for (kind, member), most in LONGEST.items():
            ministack.wrap_resource_handler(kind, "create", partial(_checking, member, most))

    def refusal(self, request: Request) -> Answer | None:
        """The answer to a request for an alarm with such a name, `None` for any other."""
        if request.action != "cloudwatch:PutMetricAlarm":
            return None
        name, most = str(request.member("AlarmName") or ""), LONGEST[ministack.ALARM, "AlarmName"]
        if len(name) <= most:
            return None
        message = (
            f"1 validation error detected: Value '{name}' at 'alarmName' failed to satisfy constraint: Member must "
            f"have length less than or equal to {most}"
        )
        return refused(request, "ValidationError", message, "ValidationError")


def _checking(member: str, most: int, own: Callable[..., Any]) -> Callable[..., Any]:
    def create(logical_id: str, properties: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        name = properties.get(member)
        if isinstance(name, str) and len(name) > most:
            raise LongNameError(_REFUSED.format(resource=logical_id, member=member, most=most, actual=len(name)))
        return own(logical_id, properties, *arguments, **options)

    return create
