"""What a deploy asks for once the tables stand: floors of open windows, and high-water marks.

The function behind the custom resources `Custom::HighwaterFloors`, `Custom::HighwaterMarks` and
`Custom::HighwaterScaled`, which has the scaler look at a table right after a deploy, and puts floors back where it
leaves.
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import boto3

from highwater.core.names import table_label
from highwater.handlers import cloudformation, floors, marks
from highwater.handlers.patience import Patience

logger = logging.getLogger("highwater")
logger.setLevel(logging.INFO)

FLOORS_TYPE = "Custom::HighwaterFloors"
MARKS_TYPE = "Custom::HighwaterMarks"
SCALED_TYPE = "Custom::HighwaterScaled"


def handler(event: dict[str, Any], context: Any) -> None:
    """Serve one custom resource event, or the continuation of one that outlived its invocation.

    CloudFormation is answered exactly once per event. A job that has to wait longer than one invocation may last
    invokes this function again with where it stands.
    """
    try:
        outcome = _serve(event, context)
    except Exception as error:
        if event.get("HighwaterAnswered"):
            # nobody waits for an answer any more; Lambda itself tries an asynchronous invocation twice again
            raise
        # the deploy must learn of any failure at once instead of waiting an hour for an answer
        logger.exception("failed")
        _answer(event, cloudformation.failure(str(error) or type(error).__name__))
        return
    if outcome is not None:
        _answer(event, outcome)


def _serve(event: dict[str, Any], context: Any) -> cloudformation.Outcome | None:
    properties = event["ResourceProperties"]
    patience = Patience(lambda: context.get_remaining_time_in_millis() / 1000)
    if event["ResourceType"] == FLOORS_TYPE:
        if event["RequestType"] == "Delete":
            return cloudformation.success("nothing to undo: the targets go with the stack")
        return cloudformation.success(floors.assert_floors(properties["TableName"], properties["Plan"], patience))
    if event["ResourceType"] == MARKS_TYPE:
        return marks.serve(event, patience, _continue_later)
    if event["ResourceType"] == SCALED_TYPE:
        table, region = properties["TableName"], properties.get("Region")
        if event["RequestType"] == "Delete":
            return cloudformation.success(floors.release(table, properties["Plan"], region))
        label = table_label(table, region)
        _invoke(properties["Scaler"], {"highwater": "tables", "tables": [label]})
        return cloudformation.success(f"the scaler looks at {label}")
    message = f"unknown resource type {event['ResourceType']!r}; deploy the stack with one version of cdk-highwater"
    raise ValueError(message)


def _continue_later(event: dict[str, Any]) -> None:
    _invoke(os.environ["AWS_LAMBDA_FUNCTION_NAME"], event)


def _invoke(function: str, event: dict[str, Any]) -> None:
    """Have a function serve an event, without waiting for it."""
    boto3.client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode())


def _answer(event: dict[str, Any], outcome: cloudformation.Outcome) -> None:
    logger.info(json.dumps({"request": event["RequestType"], "resource": event["LogicalResourceId"]} | outcome.line))
    if not event.get("HighwaterAnswered"):
        cloudformation.answer(event, outcome)
