"""Checks of requests before they reach a service: bodies, members of a wrong type; and errors inside a service."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from botocore.exceptions import UnknownServiceError
from botocore.loaders import create_loader
from botocore.model import OperationNotFoundError, ServiceModel
from botocore.validate import ParamValidator

from highwater.core.documents import DocumentError, read_document

# The body in AWS's JSON protocols is an object. Python's parser fails somewhere above this many levels
_DEEP: Final = 900


async def read_body(receive: Any) -> bytes:
    """Return the whole body of a request."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


def again(body: bytes, receive: Any) -> Any:
    """Return a `receive` that yields a body that was read already, and then later messages, such as a disconnect."""
    is_read = False

    async def receive_again() -> Any:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def is_object(body: bytes) -> bool:
    """Whether a body of AWS's JSON protocols is a JSON object that this cloud can read; no body is an empty object.

    The service checks the rest. Parsing every body twice would cost more than most requests, so only bodies that may be
    nested too deeply are parsed here.
    """
    text = body.lstrip()
    if not text:
        return True
    if not text.startswith(b"{"):
        return False
    if text.count(b"[") + text.count(b"{") > _DEEP:
        try:
            json.loads(text)
        except (RecursionError, ValueError):
            return False
    return True


_FAULT: Final = 500


class HeldFaults:
    """Forwards an answer, but buffers one that reports an internal error of the service.

    Attributes:
        has_begun: Whether an answer was forwarded.
        held: The buffered messages.
    """

    def __init__(self, send: Any) -> None:
        self._send = send
        self.has_begun = False
        self.held: list[Any] = []

    async def __call__(self, message: Any) -> None:
        """Forward one message of an answer, or buffer it."""
        if self.held or (message["type"] == "http.response.start" and message["status"] >= _FAULT):
            self.held.append(message)
            return
        self.has_begun = True
        await self._send(message)

    async def release(self) -> None:
        """Forward the buffered messages."""
        for message in self.held:
            await self._send(message)


def unmet_text(value: str | None, place: str, constraint: str) -> str:
    """Return AWS's text for a value that does not satisfy a constraint, such as `not be null`; `None` is no value."""
    shown = "null" if value is None else f"'{value}'"
    return f"Value {shown} at '{place}' failed to satisfy constraint: Member must {constraint}"


def errors_text(unmet: list[str]) -> str:
    """Return AWS's text for a request with these errors, at least one."""
    return f"{len(unmet)} validation error{'s' if len(unmet) > 1 else ''} detected: {'; '.join(unmet)}"


_PREFIXES: Final = {
    "AnyScaleFrontendService": "application-autoscaling",
    "AmazonSSM": "ssm",
    "AWSEvents": "events",
    "AWSStepFunctions": "stepfunctions",
    "DynamoDBStreams_20120810": "dynamodbstreams",
    "DynamoDB_20120810": "dynamodb",
    "GraniteServiceVersion20100801": "cloudwatch",
    "Logs_20140328": "logs",
}


def malformed(target: str, body: bytes) -> dict[str, Any] | None:
    """Return AWS's answer, with status 400, to a request that its model does not allow; `None` for any other.

    *target* is the header `X-Amz-Target`, *body* a JSON object.
    """
    try:
        document = read_document(body or b"{}")
    except DocumentError as error:
        return {"__type": "SerializationException", "message": f"the request {error}"}
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return {"__type": "SerializationException", "message": "the request holds half of a character"}
    prefix, _, operation = target.rpartition(".")
    model = model_of(_PREFIXES.get(prefix, ""))
    if model is None:
        # MiniStack recognizes services by the start of their prefixes
        is_misspelt = any(prefix.startswith(known.split("_")[0]) for known in _PREFIXES)
        return _unknown(target) if is_misspelt else None
    try:
        shape = model.operation_model(operation).input_shape
    except OperationNotFoundError:
        return _unknown(target)
    if shape is None:
        return None
    lines = ParamValidator().validate(document, shape).generate_report().splitlines()
    # AWS ignores unknown members, so they are reported only if there is no other error
    wrong = sorted(lines, key=lambda line: line.startswith("Unknown parameter"))
    if not wrong:
        return None
    is_type = wrong[0].startswith("Invalid type")
    return {"__type": "SerializationException" if is_type else "ValidationException", "message": wrong[0][:400]}


def _unknown(target: str) -> dict[str, Any]:
    return {"__type": "UnknownOperationException", "message": f"{target[:100]} is no operation"}


@cache
def model_of(service: str) -> ServiceModel | None:
    """Return botocore's model of a service, `None` if there is none of that name."""
    try:
        # a session would import everything that sends requests
        return ServiceModel(create_loader().load_service_model(service, "service-2"), service) if service else None
    except UnknownServiceError:
        return None
