"""Plans that the constructs left in SSM parameters, one a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from highwater.core.names import PLANS_PATH
from highwater.core.scaler.scaled_plan import ScaledPlan

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient


def client(region: str | None = None) -> SSMClient:
    """A client that waits out rate limits: 40 calls a second are shared by the account."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 8})
    return boto3.client("ssm", config=config, region_name=region)


@dataclass(frozen=True, slots=True)
class ScaledPlans:
    """The plans that could be read, and for each that could not be read where it is and why."""

    plans: tuple[ScaledPlan, ...]
    unreadable: tuple[str, ...]

    def and_others(self, others: ScaledPlans) -> ScaledPlans:
        """With the plans of *others* for tables that have none here."""
        known = {plan.label for plan in self.plans}
        more = tuple(plan for plan in others.plans if plan.label not in known)
        return ScaledPlans((*self.plans, *more), (*self.unreadable, *others.unreadable))


def read_plans(ssm: SSMClient) -> ScaledPlans:
    """Read the plans of all tables; a plan that cannot be read does not hide the others."""
    plans, unreadable = [], []
    for page in ssm.get_paginator("get_parameters_by_path").paginate(Path=PLANS_PATH, Recursive=True):
        for parameter in page["Parameters"]:
            name = parameter["Name"]
            try:
                plans.append(ScaledPlan.from_parameter(name, parameter["Value"]))
            except (ValueError, KeyError, TypeError) as error:
                unreadable.append(f"{name}: {type(error).__name__}: {error}")
    return ScaledPlans(tuple(plans), tuple(unreadable))
