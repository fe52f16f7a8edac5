"""Names that CloudFormation or a service rejects: too long, or with characters that are not allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import unquote

from highwater_local import ministack
from highwater_local.ministack import Answer
from highwater_local.requests import errors_text, unmet_text
from highwater_local.strict.request import CheckedRequest, refused


@dataclass(frozen=True, slots=True)
class NameRule:
    """A service's rule for a name.

    Attributes:
        place: The service's name of the member.
        most: The maximum number of characters.
        characters: The pattern for the name, as the service writes it; `None` if any character is allowed.
    """

    place: str
    most: int
    characters: str | None = None

    def refusal(self, name: str) -> str | None:
        """Return the service's text for an invalid name, `None` for a valid one."""
        unmet = [unmet_text(name, self.place, constraint) for constraint in self._unmet(name)]
        return errors_text(unmet) if unmet else None

    def _unmet(self, name: str) -> Iterator[str]:
        if len(name) > self.most:
            yield f"have length less than or equal to {self.most}"
        if self.characters is not None and not re.fullmatch(self.characters, name, re.ASCII):
            yield f"satisfy regular expression pattern: {self.characters}"


@dataclass(frozen=True, slots=True)
class IamNameRule:
    """IAM's rule for a name, whose texts about characters differ from other services'."""

    place: str
    most: int

    def refusal(self, name: str) -> str | None:
        """Return IAM's text for an invalid name, `None` for a valid one."""
        too_long = NameRule(self.place, self.most).refusal(name)
        if too_long is not None or re.fullmatch(r"[\w+=,.@-]+", name, re.ASCII):
            return too_long
        return (
            f"The specified value for {self.place} is invalid. It must contain only alphanumeric characters and/or the "
            "following: +=,.@_-"
        )


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
    ("AWS::Scheduler::ScheduleGroup", "Name"): 64,
}
_OF_IAM: Final = r"[\w+=,.@-]+"
_OF_SCHEDULER: Final = "^[0-9a-zA-Z-_.]+$"
_CHARACTERS: Final = {
    ("AWS::IAM::Policy", "PolicyName"): _OF_IAM,
    ("AWS::IAM::Role", "RoleName"): _OF_IAM,
    ("AWS::Scheduler::Schedule", "Name"): _OF_SCHEDULER,
    ("AWS::Scheduler::ScheduleGroup", "Name"): _OF_SCHEDULER,
}
_RULE: Final = NameRule("name", 64, r"[\.\-_A-Za-z0-9]+")
_POLICY: Final = IamNameRule("policyName", 128)
_SCHEDULE: Final = NameRule("name", 64, _OF_SCHEDULER)
# Names without a rule in the schema: the service's rule, and the service and error code in CloudFormation's text
_ASKED: Final[dict[tuple[str, str], tuple[NameRule | IamNameRule, str, str]]] = {
    ("AWS::Events::Rule", "Name"): (_RULE, "EventBridge", "ValidationException"),
    ("AWS::IAM::ManagedPolicy", "ManagedPolicyName"): (_POLICY, "Iam", "ValidationError"),
}
# The member of a request, `None` for the last part of its path; the rule; the error's code
_REQUESTS: Final[dict[str, tuple[str | None, NameRule | IamNameRule, str]]] = {
    "cloudwatch:PutMetricAlarm": ("AlarmName", NameRule("alarmName", 255), "ValidationError"),
    "events:PutRule": ("Name", _RULE, "ValidationException"),
    "iam:CreatePolicy": ("PolicyName", _POLICY, "ValidationError"),
    "iam:CreateRole": ("RoleName", IamNameRule("roleName", 64), "ValidationError"),
    "iam:PutRolePolicy": ("PolicyName", _POLICY, "ValidationError"),
    "scheduler:CreateSchedule": (None, _SCHEDULE, "ValidationException"),
    "scheduler:CreateScheduleGroup": (None, _SCHEDULE, "ValidationException"),
}
_INVALID: Final = "Properties validation failed for resource {resource} with message: [{unmet}]"


def check_names_in_stacks() -> None:
    """Reject invalid names in stacks from now on."""
    for place, most in LONGEST.items():
        ministack.refuse_names(*place, partial(_by_schema, place[1], most, _CHARACTERS.get(place)))
    for place, asked in _ASKED.items():
        ministack.refuse_names(*place, partial(_by_service, *asked))


def name_refusal(request: CheckedRequest) -> Answer | None:
    """Return the rejection of a request with an invalid name, `None` for any other."""
    found = _REQUESTS.get(request.action or "")
    if found is None:
        return None
    member, rule, code = found
    name = unquote(request.path.rpartition("/")[2]) if member is None else str(request.member(member) or "")
    message = rule.refusal(name) if name else None
    return None if message is None else refused(request, code, message)


def _by_schema(member: str, most: int, characters: str | None, resource: str, name: str) -> str | None:
    if len(name) > most:
        unmet = f"#/{member}: expected maxLength: {most}, actual: {len(name)}"
    elif characters is not None and not re.fullmatch(characters, name, re.ASCII):
        unmet = f"#/{member}: failed validation constraint for keyword [pattern]"
    else:
        return None
    return _INVALID.format(resource=resource, unmet=unmet)


def _by_service(rule: NameRule | IamNameRule, service: str, code: str, _resource: str, name: str) -> str | None:
    message = rule.refusal(name)
    return None if message is None else f"{message} (Service: {service}, Status Code: 400, {code})"
