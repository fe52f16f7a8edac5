"""Who calls a coordinator: a role that the app made for it, and what the app's outputs say."""

from __future__ import annotations

from typing import Any

import boto3

from acceptance.cdk import App
from acceptance.stage import Stage


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
