"""The function for deploys: sets floors of open windows and high-water marks once the tables are deployed.

It serves the custom resources `Custom::HighwaterFloors`, `Custom::HighwaterMarks`, `Custom::HighwaterAftermath`,
`Custom::HighwaterUnits` and `Custom::HighwaterScaled`. The third sets floors after a rollback, and after an update in
express mode, which CloudFormation does not roll back; after a table's targets were removed it reports the capacity that
the table keeps. The fourth, one for a stack, then raises to their floors the tables whose units in the template the
deploy had changed. The fifth invokes the scaler for a table right after a deploy, and resets floors to the plan's when
the scaler is removed.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import boto3

from highwater.aws import autoscaling, parameters, stacks, tables
from highwater.core.names import table_label
from highwater.handlers.deploy import floors, marks, response, teardown
from highwater.handlers.deploy.waiting import MAX_AWAITING_INVOCATIONS, Patience, TimeIsUpError

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling import ApplicationAutoScalingClient
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ssm import SSMClient


logger = logging.getLogger("highwater")
logger.setLevel(logging.INFO)

FLOORS_TYPE = "Custom::HighwaterFloors"
MARKS_TYPE = "Custom::HighwaterMarks"
AFTERMATH_TYPE = "Custom::HighwaterAftermath"
UNITS_TYPE = "Custom::HighwaterUnits"
SCALED_TYPE = "Custom::HighwaterScaled"
_NOTHING_TO_DO = "nothing to do until a deploy is rolled back"


def handler(event: dict[str, Any], context: Any) -> None:
    """Serve one custom resource event, or the continuation of one that outlived its invocation.

    CloudFormation is answered exactly once per event. Work that takes longer than one invocation invokes this function
    again and passes its progress on.
    """
    Deployment().serve(event, Patience(lambda: context.get_remaining_time_in_millis() / 1000))


def invoke(function: str, event: dict[str, Any]) -> None:
    """Invoke a function with an event, without waiting for it."""
    boto3.client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(event).encode())


@dataclass(frozen=True, slots=True)
class Deployment:
    """Serves events.

    Attributes:
        dynamodb: Makes a client of DynamoDB in a region, `None` for the function's own.
        autoscaling: The same for Application Auto Scaling.
        ssm: Makes a client of Systems Manager.
        stacks: Makes a client of CloudFormation.
        answer: Sends CloudFormation the answer to an event.
        invoke: Invokes a function, given by name or ARN, with an event.
    """

    dynamodb: Callable[[str | None], DynamoDBClient] = tables.client
    autoscaling: Callable[[str | None], ApplicationAutoScalingClient] = autoscaling.client
    ssm: Callable[[], SSMClient] = parameters.client
    stacks: Callable[[], CloudFormationClient] = stacks.client
    answer: Callable[[dict[str, Any], response.EventOutcome], None] = response.answer
    invoke: Callable[[str, dict[str, Any]], None] = invoke

    def serve(self, event: dict[str, Any], patience: Patience) -> None:
        """Serve one event and answer CloudFormation, unless another invocation continues with it.

        Raises:
            Exception: Any error after CloudFormation was answered; Lambda then retries the event.
        """
        try:
            outcome = self._serve(event, patience)
        except Exception as error:
            if event.get("HighwaterAnswered"):
                # CloudFormation does not wait for an answer any more; Lambda retries an asynchronous invocation twice
                raise
            # answer any failure at once: the deploy would otherwise wait an hour for an answer
            logger.exception("failed")
            outcome = response.failure(_sentence(error))
        if outcome is None:
            return
        line = {"request": event["RequestType"], "resource": event["LogicalResourceId"]} | outcome.line
        logger.info(json.dumps(line))
        if not event.get("HighwaterAnswered"):
            self.answer(event, outcome)

    def _serve(self, event: dict[str, Any], patience: Patience) -> response.EventOutcome | None:
        serve = {
            FLOORS_TYPE: self._floors,
            MARKS_TYPE: self._marks,
            AFTERMATH_TYPE: self._aftermath,
            UNITS_TYPE: self._units,
            SCALED_TYPE: self._scaled,
        }
        kind = event["ResourceType"]
        if kind not in serve:
            message = f"unknown resource type {kind!r}; deploy the stack with one version of cdk-highwater"
            raise ValueError(message)
        try:
            return serve[kind](event, patience)
        except teardown.PlanUnreadableError as unreadable:
            return response.success(str(unreadable))

    def _floors(self, event: dict[str, Any], patience: Patience) -> response.EventOutcome | None:
        properties = event["ResourceProperties"]
        table = properties["TableName"]
        clients = self.dynamodb(None), self.autoscaling(None)
        if event.get("HighwaterAnswered"):
            return self._raise_later(event, table, patience)
        if event["RequestType"] == "Delete":
            return response.success("nothing to undo: the table keeps its capacity")
        self._hand_over(event, patience)
        try:
            done = floors.assert_floors(table, properties["Plan"], *clients, patience)
        except floors.FloorsNotReachedError as missed:
            if event["RequestType"] == "Update" and self._is_rolling_back(event, patience):
                return response.success(f"left as it is, so that the rollback goes on: {missed}")
            raise
        if done.building:
            self._go_on_after_the_answer(event, patience)
        return response.success(done.reason)

    def _is_rolling_back(self, event: dict[str, Any], patience: Patience) -> bool:
        try:
            return floors.is_rolling_back(floors.find_stack(self.stacks(), event["StackId"], patience))
        except (tables.TableRefusedError, TimeIsUpError):
            return False

    def _raise_later(self, event: dict[str, Any], table: str, patience: Patience) -> response.EventOutcome | None:
        """Continue after CloudFormation was answered, in other invocations, until the table's indexes are built."""
        try:
            is_raised = floors.raise_to_floors(table, self.dynamodb(None), self.autoscaling(None), patience)
        except tables.TableNotFoundError:
            return response.success(teardown.NO_TABLE)
        except TimeIsUpError:
            return self._wait_on(event, "an index is still being built; its floors are left as they are", patience)
        if not is_raised:
            return response.failure(f"{table} is below a floor still; its scaling activities show why")
        return response.success("the indexes are built, and capacity is raised to the floors")

    def _go_on_after_the_answer(self, event: dict[str, Any], patience: Patience) -> None:
        """Start another invocation to continue with an event whose answer is sent to CloudFormation now."""
        self._invoke_itself(event | {"HighwaterAnswered": True, "HighwaterInvocations": 1}, patience)

    def _wait_on(self, event: dict[str, Any], given_up: str, patience: Patience) -> response.EventOutcome | None:
        """Start another invocation to continue waiting; after half a day, fail with the text *given_up*."""
        invocations = event["HighwaterInvocations"]
        if invocations >= MAX_AWAITING_INVOCATIONS:
            return response.failure(given_up)
        self._invoke_itself(event | {"HighwaterInvocations": invocations + 1}, patience)
        return None

    def _invoke_itself(self, event: dict[str, Any], patience: Patience) -> None:
        self._invoke(os.environ["AWS_LAMBDA_FUNCTION_NAME"], event, patience)

    def _invoke(self, function: str, event: dict[str, Any], patience: Patience) -> None:
        # the deploy may have added the permission only seconds ago
        patience.until_accepted(partial(self.invoke, function, event))

    def _hand_over(self, event: dict[str, Any], patience: Patience) -> None:
        """Record in the plans of scalers which scaler manages the table from now on.

        When a table leaves a scaler, CloudFormation deletes the scaler's plan only after this update, and a run in
        between would set the floors of the old plan. A rollback reverts the record.
        """
        old = event.get("OldResourceProperties", {})
        present = event["ResourceProperties"].get("ScalerPlan")
        # A table that was replaced remains with its scaler until its plan is deleted: a rollback may need it again, and
        # would not update this resource, whose id changes with the table.
        before = old.get("ScalerPlan") if old.get("TableName") == event["ResourceProperties"]["TableName"] else None
        for parameter, released in ((present, False), (before, True)):
            if parameter is None or (released and parameter == present):
                continue
            patience.until_accepted(partial(parameters.set_released, self.ssm(), parameter, released=released))
            if released:
                # long enough for a run that has already read the plan to end
                patience.pause()

    def _release(self, parameter: str, patience: Patience) -> None:
        """Release a table whose scaler's plan CloudFormation deletes next: a run in between would set its floors."""
        try:
            patience.until_accepted(partial(parameters.set_released, self.ssm(), parameter, released=parameters.GONE))
            # long enough for a run that has already read the plan to end
            patience.pause()
        except (tables.TableRefusedError, TimeIsUpError) as refused:
            logger.warning("the scaler's plan is left as it is: %s", refused)

    def _is_released(self, parameter: str, patience: Patience) -> bool:
        try:
            return patience.until_accepted(partial(parameters.is_released, self.ssm(), parameter))
        except tables.TableRefusedError:
            # a deletion must not fail because its permission was deleted first
            return False

    def _marks(self, event: dict[str, Any], patience: Patience) -> response.EventOutcome | None:
        continue_later = partial(self._invoke_itself, patience=patience)
        return marks.serve(event, self.dynamodb(None), patience, continue_later)

    def _aftermath(self, event: dict[str, Any], patience: Patience) -> response.EventOutcome | None:
        if event["RequestType"] == "Delete":
            table, dynamodb = event["ResourceProperties"]["TableName"], self.dynamodb(None)
            lowered = teardown.lower_new_table(table, dynamodb, patience, since=self._failed_since(event, patience))
            if lowered is not None:
                return response.success(lowered)
            region = event["StackId"].split(":")[3]
            return response.success(teardown.leave_capacity(table, dynamodb, patience, region=region))
        return self._when_over(event, patience, partial(self._set_floors_again, event, patience), only_express=True)

    def _when_over(
        self,
        event: dict[str, Any],
        patience: Patience,
        act: Callable[[str | None], response.EventOutcome],
        *,
        only_express: bool,
    ) -> response.EventOutcome | None:
        """Have *act* act when a rollback or deploy is over, with *only_express* one in express mode.

        That is in other invocations. *act* gets the last status of the deploy, and `None` after a rollback.
        """
        client, stack = self.stacks(), event["StackId"]
        if not event.get("HighwaterAnswered"):
            return self._see_whether_to_wait(event, patience, only_express=only_express)
        if "HighwaterUpdated" in event:
            try:
                status = floors.wait_until_updated(client, stack, event["HighwaterUpdated"], patience)
            except TimeIsUpError:
                return self._wait_on(event, "the deploy does not end; deploy again to set the floors", patience)
            if status is not None:
                return act(status)
            return response.success("floors are left to the operation that came after this deploy, or to its rollback")
        try:
            if not floors.wait_until_rolled_back(client, stack, patience):
                return response.failure("the rollback did not end well; deploy again to set the floors")
        except TimeIsUpError:
            return self._wait_on(event, "the rollback does not end; deploy again to set the floors", patience)
        return act(None)

    def _see_whether_to_wait(
        self, event: dict[str, Any], patience: Patience, *, only_express: bool
    ) -> response.EventOutcome:
        if event["RequestType"] != "Update":
            return response.success(_NOTHING_TO_DO)
        try:
            state = floors.find_stack(self.stacks(), event["StackId"], patience)
        except (tables.TableRefusedError, TimeIsUpError) as refused:
            # this must not make a rollback fail
            reason = f"floors are left as they are if this is a rollback, as the stack cannot be read: {refused}"
            return response.success(reason)
        if floors.is_rolling_back(state):
            self._go_on_after_the_answer(event, patience)
            return response.success("floors are set when the rollback is over")
        if state.is_express or not only_express:
            self._go_on_after_the_answer(event | {"HighwaterUpdated": state.updated}, patience)
            return response.success("floors are set again when the deploy is over, even if it fails")
        return response.success(_NOTHING_TO_DO)

    def _set_floors_again(self, event: dict[str, Any], patience: Patience, status: str | None) -> response.EventOutcome:
        """Set the floors of the plan after a rollback (*status* is `None`) or an update in express mode.

        Nothing is rolled back if an update in express mode fails between the targets and their floors. If the next one
        brings back the former template, CloudFormation registers the targets with their base floors again, but has
        nothing to update in the floors' resource.
        """
        table, plan = event["ResourceProperties"]["TableName"], event["ResourceProperties"]["Plan"]
        clients = self.dynamodb(None), self.autoscaling(None)
        if status == floors.UPDATE_FAILED:
            # only registered targets: CloudFormation could not create one that exists already
            return response.success(teardown.release_floors(table, teardown.read_plan(plan), *clients, patience))
        if status is None:
            self._take_back(event, patience)
        return response.success(floors.assert_floors(table, plan, *clients, patience).reason)

    def _units(self, event: dict[str, Any], patience: Patience) -> response.EventOutcome | None:
        if "HighwaterTable" in event:
            return self._raise_later(event, event["HighwaterTable"], patience)
        # without rollback, in whatever mode, a deploy that fails may have set capacity and not come to the floors
        return self._when_over(event, patience, partial(self._raise_reset_tables, event, patience), only_express=False)

    def _raise_reset_tables(
        self, event: dict[str, Any], patience: Patience, _status: str | None
    ) -> response.EventOutcome:
        """Start an invocation for each table whose units in the template are other ones than before the event.

        CloudFormation has set its capacity to these units, and where the targets are the same, nothing has set it to
        their floors. An index that was deleted and made again may be built for hours.
        """
        units, before = event["ResourceProperties"]["Tables"], event["OldResourceProperties"]["Tables"]
        reset = {table for table, present in units.items() if before.get(table) != present}
        names = patience.until_accepted(partial(stacks.read_names, self.stacks(), event["StackId"], reset))
        for name in names:
            self._invoke_itself(event | {"HighwaterTable": name, "HighwaterInvocations": 1}, patience)
        return response.success(f"capacity follows the floors of {', '.join(names) or 'no table'}")

    def _failed_since(self, event: dict[str, Any], patience: Patience) -> datetime | None:
        """Return when the operation began that is rolled back, `None` if none is, or if it is not known."""
        try:
            return floors.find_failed_operation(floors.find_stack(self.stacks(), event["StackId"], patience))
        except (tables.TableRefusedError, TimeIsUpError):
            return None

    def _take_back(self, event: dict[str, Any], patience: Patience) -> None:
        """After a rollback, release the table from the scaler to which the failed deploy added it.

        CloudFormation deletes the scaler's plan at the end of a rollback, and the custom resource that would reset the
        floors may not have been updated.
        """
        try:
            self._hand_over(event, patience)
        except (tables.TableRefusedError, TimeIsUpError) as refused:
            # the permission may have been part of the failed deploy, and be deleted
            logger.warning("the scaler's plan is left as it is: %s", refused)

    def _scaled(self, event: dict[str, Any], patience: Patience) -> response.EventOutcome:
        properties = event["ResourceProperties"]
        table, region, parameter = properties["TableName"], properties.get("Region"), properties.get("Parameter")
        if event["RequestType"] == "Delete":
            plan = teardown.read_plan(properties["Plan"])
            if parameter is not None:
                if self._is_released(parameter, patience):
                    return response.success("nothing to undo: the table's floors are set by its own plan again")
                self._release(parameter, patience)
            clients = self.dynamodb(region), self.autoscaling(region)
            return response.success(teardown.release_floors(table, plan, *clients, patience))
        if parameter is not None:
            # a rollback brings back what was being deleted
            patience.until_accepted(partial(parameters.set_released, self.ssm(), parameter, released=False))
        label = table_label(table, region)
        self._invoke(properties["Scaler"], {"highwater": "tables", "tables": [label]}, patience)
        return response.success(f"the scaler looks at {label}")


def _sentence(error: Exception) -> str:
    """Return the reason of a failure for CloudFormation, with what to do about what may pass by itself."""
    text = str(error) or type(error).__name__
    match error:
        case tables.ForbiddenError():
            return f"{text}; if this deploy changed the function's role, which can take minutes to apply, deploy again"
        case tables.TableNotFoundError():
            return f"{text}; deploy again when the table exists"
        case TimeIsUpError():
            return f"{text}, as AWS was busy with the table or its targets; deploy again"
    return text
