"""Schedules that run a function while a boost is live: one for each boost, which deletes itself afterwards."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

# Runs continue after a lease until one finds the floor lowered, and deletes the schedule: for up to a year, so that no
# outage and no pause leaves the floor up.
_AFTER_THE_END: Final = timedelta(days=365)
# the event with which a schedule runs the function
WAKE: Final = "boosts"
# A start as near as this may pass before the schedule is made
_NEAR: Final = timedelta(minutes=1)


class WakesUnavailableError(Exception):
    """EventBridge Scheduler does not answer, or rejects the call. The message is from AWS."""


def client(region: str | None = None) -> Any:
    """Create a client that retries throttled calls up to three times."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 4}, connect_timeout=2, read_timeout=5)
    return boto3.client("scheduler", config=config, region_name=region)


@dataclass(frozen=True, slots=True)
class Wakes:
    """Makes schedules that run the function.

    Attributes:
        group: The name of their schedule group.
        role_arn: The role with which they run the function.
        function_arn: The function.
        scheduler: The client to use.
    """

    group: str
    role_arn: str
    function_arn: str
    scheduler: Any

    def run_every_minute(self, label: str, owner: str, id: str, start: datetime, end: datetime, now: datetime) -> None:
        """Run the function for the table *label* in every minute of a boost of *owner*, and after it until `rest`.

        The first call for a boost creates its schedule, later calls move the schedule's end.

        Raises:
            WakesUnavailableError: EventBridge Scheduler does not answer, or rejects the call.
        """
        request: dict[str, Any] = {
            "Name": _name(label, owner, id),
            "GroupName": self.group,
            "Description": f"Highwater: boost {id} of {label}"[:512],
            "ScheduleExpression": "rate(1 minute)",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "EndDate": end + _AFTER_THE_END,
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": self.function_arn,
                "RoleArn": self.role_arn,
                "Input": json.dumps(
                    {
                        "highwater": WAKE,
                        "tables": [label],
                        "owner": owner,
                        "boost": id,
                        "time": "<aws.scheduler.scheduled-time>",
                    }
                ),
                # no retry: the next run, a minute later, does the same work
                "RetryPolicy": {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0},
            },
        }
        if start > now + _NEAR:
            request["StartDate"] = start
        try:
            try:
                self.scheduler.create_schedule(**request)
            except self.scheduler.exceptions.ConflictException:
                self.scheduler.update_schedule(**request)
        except (ClientError, BotoCoreError) as error:
            raise WakesUnavailableError(str(error)) from error

    def rest(self, label: str, owner: str, id: str) -> None:
        """Delete the schedule of a boost that is over; raises `WakesUnavailableError`."""
        try:
            self.scheduler.delete_schedule(Name=_name(label, owner, id), GroupName=self.group)
        except self.scheduler.exceptions.ResourceNotFoundException:
            return
        except (ClientError, BotoCoreError) as error:
            raise WakesUnavailableError(str(error)) from error


def _name(label: str, owner: str, id: str) -> str:
    return hashlib.sha256(f"{label} {owner} {id}".encode()).hexdigest()[:48]
