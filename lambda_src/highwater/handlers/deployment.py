"""What a deploy asks for once the tables stand: floors of open windows, and high-water marks.

The function behind the custom resources `Custom::HighwaterFloors`, `Custom::HighwaterMarks` and
`Custom::HighwaterScaled`. The last one has the scaler look at a table right after a deploy, and puts floors back to
the plan's when the scaler is removed.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3

from highwater.aws import autoscaling, tables
from highwater.core.names import table_label
from highwater.handlers import cloudformation, floors, marks
from highwater.handlers.patience import Patience

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_dynamodb import DynamoDBClient

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
    Deployment().serve(event, Patience(lambda: context.get_remaining_time_in_millis() / 1000))


def invoke(function: str, event: dict[str, Any]) -> None:
    """Have a function serve an event, without waiting for it."""
    boto3.client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode())


@dataclass(frozen=True, slots=True)
class Deployment:
    """Serves events.

    Attributes:
        dynamodb: Makes a client of DynamoDB.
        autoscaling: Makes a client of Application Auto Scaling in a region, `None` for the function's own.
        answer: Gives CloudFormation the answer to an event.
        invoke: Has a function, named by name or ARN, serve an event.
    """

    dynamodb: Callable[[], DynamoDBClient] = tables.client
    autoscaling: Callable[[str | None], ApplicationAutoScalingClient] = autoscaling.client
    answer: Callable[[dict[str, Any], cloudformation.Outcome], None] = cloudformation.answer
    invoke: Callable[[str, dict[str, Any]], None] = invoke

    def serve(self, event: dict[str, Any], patience: Patience) -> None:
        """Serve one event and answer CloudFormation, unless another invocation goes on with it.

        Raises:
            Exception: Whatever goes wrong after CloudFormation was answered; Lambda then tries the event again.
        """
        try:
            outcome = self._serve(event, patience)
        except Exception as error:
            if event.get("HighwaterAnswered"):
                # nobody waits for an answer any more; Lambda itself tries an asynchronous invocation twice again
                raise
            # the deploy must learn of any failure at once instead of waiting an hour for an answer
            logger.exception("failed")
            outcome = cloudformation.failure(str(error) or type(error).__name__)
        if outcome is None:
            return
        line = {"request": event["RequestType"], "resource": event["LogicalResourceId"]} | outcome.line
        logger.info(json.dumps(line))
        if not event.get("HighwaterAnswered"):
            self.answer(event, outcome)

    def _serve(self, event: dict[str, Any], patience: Patience) -> cloudformation.Outcome | None:
        serve = {FLOORS_TYPE: self._floors, MARKS_TYPE: self._marks, SCALED_TYPE: self._scaled}
        kind = event["ResourceType"]
        if kind not in serve:
            message = f"unknown resource type {kind!r}; deploy the stack with one version of cdk-highwater"
            raise ValueError(message)
        return serve[kind](event, patience)

    def _floors(self, event: dict[str, Any], patience: Patience) -> cloudformation.Outcome:
        if event["RequestType"] == "Delete":
            return cloudformation.success("nothing to undo: the targets go with the stack")
        properties = event["ResourceProperties"]
        table, plan = properties["TableName"], properties["Plan"]
        done = floors.assert_floors(table, plan, self.dynamodb(), self.autoscaling(None), patience)
        return cloudformation.success(done)

    def _marks(self, event: dict[str, Any], patience: Patience) -> cloudformation.Outcome | None:
        def continue_later(again: dict[str, Any]) -> None:
            self.invoke(os.environ["AWS_LAMBDA_FUNCTION_NAME"], again)

        return marks.serve(event, self.dynamodb(), self.autoscaling(None), patience, continue_later)

    def _scaled(self, event: dict[str, Any], _patience: Patience) -> cloudformation.Outcome:
        properties = event["ResourceProperties"]
        table, region = properties["TableName"], properties.get("Region")
        if event["RequestType"] == "Delete":
            return cloudformation.success(floors.release(table, properties["Plan"], self.autoscaling(region)))
        label = table_label(table, region)
        self.invoke(properties["Scaler"], {"highwater": "tables", "tables": [label]})
        return cloudformation.success(f"the scaler looks at {label}")
