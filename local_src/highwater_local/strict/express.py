"""CloudFormation's express mode, which `cdk deploy --express` asks for: resources count as done before they are ready.

A request asks for it with `DeploymentConfig`, and rollback is off unless the request says otherwise. A table is
`CREATING` for some seconds after it counts as done, and a role keeps its former permissions for some. Source:
CloudFormation User Guide, "Deploy AWS CloudFormation stacks faster with express mode", read 2026-11; the texts of
rejections are those that users report (aws-cdk-cli, issues 1739, 1931 and 1973).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from highwater_lab.services.timing import Timing
from highwater_local import ministack
from highwater_local.dynamodb.call import meters_of
from highwater_local.dynamodb.tables import being_created
from highwater_local.ministack import Answer, Created, Document, ResourceRefusedError
from highwater_local.strict.permissions import role_of_token
from highwater_local.strict.request import CheckedRequest, refused

_STANDARD, _EXPRESS = "STANDARD", "EXPRESS"
_FAILED: Final = frozenset({"CREATE_FAILED", "UPDATE_FAILED"})
_READY: Final = "Resource operation completed using Express Mode. It may continue becoming available in the background."
_REPLACING: Final = "Replacement type updates not supported on stack with disable-rollback."
_NO_ROLLBACK: Final = (
    "RollbackStack is not supported for stacks that were last updated using EXPRESS deployment mode and are in a "
    "failed state"
)
_FOLLOW_UP: Final = (
    "This stack is in a {status} state from a previous operation that used EXPRESS deployment mode with "
    "disable-rollback. Follow-up operations must use the same DeploymentConfig (mode=EXPRESS) until the stack reaches "
    "a *_COMPLETE state."
)
_NOT_TERMINAL: Final = (
    "This stack is currently in a non-terminal [{status}] state. To update the stack from this state, please use the "
    "disable-rollback parameter with update-stack API. To rollback to the last known good state, use the "
    "rollback-stack API"
)
# For so many seconds DescribeTable may answer that a new table does not exist (Amazon DynamoDB API Reference,
# CreateTable and DescribeTable, read 2026-11)
_UNSEEN_SECONDS: Final = 2
_TAGGING: Final = frozenset({"dynamodb:TagResource", "dynamodb:UntagResource"})
_ROLE, _POLICY = "AWS::IAM::Role", "AWS::IAM::Policy"


@dataclass(frozen=True, slots=True)
class StackDeployment:
    """How an operation on a stack is carried out.

    Attributes:
        is_express: Whether it is in express mode.
        has_rollback: Whether it is rolled back if it fails.
    """

    is_express: bool
    has_rollback: bool

    @classmethod
    def of(cls, request: Document, is_always_express: bool) -> StackDeployment:
        """Return what a request asks for: rollback is on by default, in express mode off."""
        is_express = is_always_express or _text(request, "DeploymentConfig.Mode") == _EXPRESS
        disabled = _text(request, "DeploymentConfig.DisableRollback") or _text(request, "DisableRollback")
        return cls(is_express, disabled == "false" if is_express else disabled != "true")

    @property
    def xml(self) -> str:
        """The member `DeploymentConfig` of an answer."""
        mode = _EXPRESS if self.is_express else _STANDARD
        disables = str(not self.has_rollback).lower()
        return f"<DeploymentConfig><Mode>{mode}</Mode><DisableRollback>{disables}</DisableRollback></DeploymentConfig>"


_DEFAULT: Final = StackDeployment(is_express=False, has_rollback=True)
_RECORD: Final = "_deployment"
# of the operation to which the present request or background task belongs
_present: ContextVar[StackDeployment] = ContextVar("present", default=_DEFAULT)


class Express:
    """Carries out operations on stacks as they ask for; in effect as soon as this is created.

    Args:
        second: Returns the cloud's time in seconds since 1970.
        timing: How long tables and permissions take.
        is_always: Whether every operation is in express mode, whatever it asks for.
    """

    def __init__(self, second: Callable[[], int], timing: Timing, *, is_always: bool) -> None:
        self._second = second
        self._timing = timing
        # by account and role: until when the policies before a change apply, and these
        self._former: dict[tuple[str, str], tuple[int, list[Any]]] = {}
        for name, answer in (
            ("CreateStack", partial(_operate, is_always)),
            ("UpdateStack", partial(_operate, is_always)),
            ("DeleteStack", partial(_operate, is_always)),
            ("CreateChangeSet", partial(_prepare, is_always)),
            ("ExecuteChangeSet", _execute),
            ("RollbackStack", _roll_back),
            ("DescribeStacks", _describe_stacks),
            ("DescribeChangeSet", _describe_change_set),
        ):
            ministack.STACK_REQUESTS.wrap(name, answer)
        ministack.is_same_stack.wrap(_has_no_updates)
        ministack.update_resource.wrap(_update)
        ministack.add_stack_event.wrap(_tell)
        self._policies = ministack.role_policies.replace(self._policies_in_effect)
        for kind in (ministack.TABLE, ministack.GLOBAL_TABLE):
            ministack.wrap_resource_handler(kind, "create", self._create_table)
        for kind in (_ROLE, _POLICY):
            for action in ("create", "update"):
                ministack.wrap_resource_handler(kind, action, partial(self._permit, kind))

    def refusal(self, request: CheckedRequest) -> Answer | None:
        """Return DynamoDB's rejection of a request about a table that is being created, `None` for any other."""
        if request.service != "dynamodb":
            return None
        named = request.document.get("TableName") or request.document.get("ResourceArn")
        table = ministack.find_table(named)
        active_from = 0 if table is None else meters_of(table).active_from
        if table is None or self._second() >= active_from:
            return None
        if request.action in _TAGGING:
            in_use = being_created(table)
            return refused(request, in_use.code, in_use.message)
        is_of_function = role_of_token(request.headers.get("x-amz-security-token", "")) is not None
        is_new = self._second() < active_from - self._timing.creation + _UNSEEN_SECONDS
        if request.action == "dynamodb:DescribeTable" and is_of_function and is_new:
            text = f"Requested resource not found: Table: {table['TableName']} not found"
            return refused(request, "ResourceNotFoundException", text)
        return None

    def _create_table(self, own: Callable[..., Created], *arguments: Any) -> Created:
        created = own(*arguments)
        if _present.get().is_express:
            meters = meters_of(ministack.tables()[created[0]])
            meters.active_from = self._second() + self._timing.creation
        return created

    def _permit(self, kind: str, own: Callable[..., Created], name: str, *rest: Any) -> Created:
        if not _present.get().is_express:
            return own(name, *rest)
        account = ministack.get_account_id()
        properties = [given for given in rest if isinstance(given, dict)]
        roles = [name] if kind == _ROLE else [role for each in properties for role in each.get("Roles") or []]
        former = {role: self._policies_in_effect(role, account) for role in roles}
        created = own(name, *rest)
        if kind == _ROLE:
            former = {created[0]: former[name]}
        until = self._second() + self._timing.permission
        self._former |= {(account, role): (until, policies) for role, policies in former.items()}
        return created

    def _policies_in_effect(self, role: str, account: str) -> list[Any]:
        until, former = self._former.get((account, role), (0, []))
        found: list[Any] = former if self._second() < until else self._policies(role, account)
        return found


def _operate(is_always: bool, own: Callable[[Document], Any], request: Document) -> Any:
    """Create, update or delete a stack."""
    deployment = StackDeployment.of(request, is_always)
    stack = ministack.find_stack(_text(request, "StackName"))
    is_update = _text(request, "Action") == "UpdateStack"
    return _carry_out(own, request, deployment, stack if is_update else None)


def _prepare(is_always: bool, own: Callable[[Document], Any], request: Document) -> Any:
    """Create a change set, which its execution carries out as this request asks for."""
    deployment = StackDeployment.of(request, is_always)
    stack = ministack.find_stack(_text(request, "StackName"))
    if stack is not None and (wrong := _follow_up_refusal(stack, deployment)) is not None:
        return ministack.query_error("ValidationError", wrong)
    answer = own(request)
    found = ministack.find_change_set(_text(request, "ChangeSetName"), _text(request, "StackName"))[1]
    if answer[0] < 400 and found is not None:
        found[_RECORD] = deployment
    return answer


def _execute(own: Callable[[Document], Any], request: Document) -> Any:
    found = ministack.find_change_set(_text(request, "ChangeSetName"), _text(request, "StackName"))[1]
    if found is None:
        return own(request)
    deployment = found.get(_RECORD, _DEFAULT)
    if not deployment.is_express:
        deployment = StackDeployment(is_express=False, has_rollback=_text(request, "DisableRollback") != "true")
    return _carry_out(own, request, deployment, ministack.find_stack(found["StackName"]))


def _carry_out(
    own: Callable[[Document], Any], request: Document, deployment: StackDeployment, failed: Document | None
) -> Any:
    """Start an operation; *failed* is the stack that it updates, which may be in a failed state."""
    status = "" if failed is None else failed["StackStatus"]
    if failed is not None and status in _FAILED:
        wrong = _follow_up_refusal(failed, deployment)
        if wrong is None and deployment.has_rollback:
            wrong = _NOT_TERMINAL.format(status=status)
        if wrong is not None:
            return ministack.query_error("ValidationError", wrong)
        # MiniStack updates no stack in such a state
        failed["StackStatus"] = "UPDATE_COMPLETE"
    if not deployment.has_rollback and "OnFailure" not in request:
        request = request | {"DisableRollback": ["true"]}
    # the background task that begins here copies the context, and so knows how to do its work
    with ministack.setting(_present, deployment):
        answer = own(request)
    if answer[0] >= 400:
        if failed is not None and status in _FAILED:
            failed["StackStatus"] = status
        return answer
    stack = failed or ministack.find_stack(_text(request, "StackName"))
    if stack is not None:
        stack[_RECORD] = deployment
    return answer


def _follow_up_refusal(stack: Document, deployment: StackDeployment) -> str | None:
    """Return why an operation may not follow the one that failed, `None` if it may."""
    failed: StackDeployment = stack.get(_RECORD, _DEFAULT)
    if stack["StackStatus"] in _FAILED and failed.is_express and not deployment.is_express:
        return _FOLLOW_UP.format(status=stack["StackStatus"])
    return None


def _roll_back(own: Callable[[Document], Any], request: Document) -> Any:
    stack = ministack.find_stack(_text(request, "StackName")) or {}
    if stack.get("StackStatus") in _FAILED and stack.get(_RECORD, _DEFAULT).is_express:
        return ministack.query_error("ValidationError", _NO_ROLLBACK)
    return own(request)


def _describe_stacks(own: Callable[[Document], Any], request: Document) -> Any:
    status, headers, body = own(request)

    def add(found: re.Match[str]) -> str:
        stack = ministack.find_stack(found[1]) or {}
        return found[0] + (stack[_RECORD].xml if _RECORD in stack else "")

    return status, headers, re.sub("<StackId>([^<]*)</StackId>", add, body.decode()).encode()


def _describe_change_set(own: Callable[[Document], Any], request: Document) -> Any:
    status, headers, body = own(request)
    found = ministack.find_change_set(_text(request, "ChangeSetName"), _text(request, "StackName"))[1]
    if found is None or _RECORD not in found:
        return status, headers, body
    end = b"</DescribeChangeSetResult>"
    return status, headers, body.replace(end, found[_RECORD].xml.encode() + end)


def _has_no_updates(own: Callable[..., bool], stack: Document, *arguments: Any, **options: Any) -> bool:
    """A failed stack is updated even to the template that it had before."""
    return "_failed_operation" not in stack and own(stack, *arguments, **options)


def _update(own: Callable[..., Any], kind: str, name: str, old: Document, new: Document, *rest: Any) -> Any:
    if not _present.get().has_rollback and ministack.is_replacing(kind, old, new):
        raise ResourceRefusedError(_REPLACING)
    return own(kind, name, old, new, *rest)


def _tell(own: Callable[..., None], *event: Any, **more: Any) -> None:
    """Record an event: stack, its name, resource, type and status, in this order."""
    _, name, resource, kind, status = event[:5]
    is_done = status.endswith("_COMPLETE") and resource != name and not kind.startswith("Custom::")
    if is_done and _present.get().is_express and len(event) == 5:
        more = {"reason": _READY} | more
    own(*event, **more)


def _text(request: Document, member: str) -> str:
    """Return a member of a request, which is a list of one; empty if it has none of that name."""
    return str(ministack.first(request.get(member, "")))
