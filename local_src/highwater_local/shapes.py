"""What AWS refuses before a service looks at it: members of a wrong type, and required members that are missing.

MiniStack takes most requests as they come and fails somewhere inside over those that no SDK would send. Where that
happens, the request is held against the service's own model, which botocore has.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

import botocore.session
from botocore.exceptions import UnknownServiceError
from botocore.model import OperationNotFoundError, ServiceModel
from botocore.validate import ParamValidator

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
    """Return what AWS answers, with status 400, to a request that its model does not allow; `None` for any other.

    *target* is the header `X-Amz-Target`, *body* a JSON object.
    """
    document = json.loads(body or b"{}")
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return {"__type": "SerializationException", "message": "the request holds half of a character"}
    prefix, _, operation = target.rpartition(".")
    model = _model(_PREFIXES.get(prefix, ""))
    if model is None:
        # MiniStack knows services by how their prefixes begin
        is_misspelt = any(prefix.startswith(known.split("_")[0]) for known in _PREFIXES)
        return _unknown(target) if is_misspelt else None
    try:
        shape = model.operation_model(operation).input_shape
    except OperationNotFoundError:
        return _unknown(target)
    if shape is None:
        return None
    lines = ParamValidator().validate(document, shape).generate_report().splitlines()
    # AWS leaves members alone that it does not know, so they are to blame only where nothing else is
    wrong = sorted(lines, key=lambda line: line.startswith("Unknown parameter"))
    if not wrong:
        return None
    is_type = wrong[0].startswith("Invalid type")
    return {"__type": "SerializationException" if is_type else "ValidationException", "message": wrong[0][:400]}


def _unknown(target: str) -> dict[str, Any]:
    return {"__type": "UnknownOperationException", "message": f"{target[:100]} is no operation"}


@cache
def _model(service: str) -> ServiceModel | None:
    try:
        return botocore.session.get_session().get_service_model(service) if service else None
    except UnknownServiceError:
        return None
