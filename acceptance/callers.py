"""Who calls a coordinator: a role that the app made for it, and what the app's outputs say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import boto3

from acceptance.cdk import App
from acceptance.stage import Stage
from highwater import BoostRefusedError, CoordinatorClient

_PERMITTED_WITHIN: Final = timedelta(minutes=3)


def outputs_of(stage: Stage, app: App) -> dict[str, str]:
    """The outputs of a deployed app's stack."""
    described = stage.place.client("cloudformation").describe_stacks(StackName=stage.cdk.stack_name(app))
    return {output["OutputKey"]: output["OutputValue"] for output in described["Stacks"][0]["Outputs"]}


def session_as(stage: Stage, role_arn: str) -> boto3.Session:
    """A session with a role's credentials, in the stage's region."""
    given = stage.place.client("sts").assume_role(RoleArn=role_arn, RoleSessionName="highwater-acceptance")
    credentials: Any = given["Credentials"]
    return boto3.Session(
        credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"], stage.place.region
    )


def parameter_value(stage: Stage, name: str) -> str:
    """The value of a parameter of Systems Manager."""
    return str(stage.place.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])


def wait_for_permission(stage: Stage, coordinator: CoordinatorClient, action: str, table: str) -> None:
    """IAM needs a while until a role that was just made may call; a check says how long."""

    def is_permitted() -> bool:
        try:
            coordinator.send(action, table=table)
        except BoostRefusedError as refused:
            if refused.status == 403:
                return False
            raise
        return True

    took = stage.seconds_until(is_permitted, _PERMITTED_WITHIN, "the role may call")
    stage.check("the role may call the coordinator", "within 3 minutes", took, holds=took is not None)
