"""Plans in SSM parameters, one per table, written by the constructs."""

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
    """Create a client that retries throttled calls up to seven times: the account has 40 calls a second in total."""
    config = Config(retries={"mode": "standard", "total_max_attempts": 8})
    return boto3.client("ssm", config=config, region_name=region)


@dataclass(frozen=True, slots=True)
class ScaledPlans:
    """The readable plans, and for each unreadable plan a text with its place and the reason."""

    plans: tuple[ScaledPlan, ...]
    unreadable: tuple[str, ...]

    def and_others(self, others: ScaledPlans) -> ScaledPlans:
        """Return these plans, and those of *others* for tables without a plan here."""
        labels = {plan.label for plan in self.plans}
        added = tuple(plan for plan in others.plans if plan.label not in labels)
        return ScaledPlans((*self.plans, *added), (*self.unreadable, *others.unreadable))


def read_plans(ssm: SSMClient) -> ScaledPlans:
    """Read the plans of all tables. An unreadable plan is listed as such and does not affect the others."""
    plans, unreadable = [], []
    for page in ssm.get_paginator("get_parameters_by_path").paginate(Path=PLANS_PATH, Recursive=True):
        for parameter in page["Parameters"]:
            name = parameter["Name"]
            try:
                plans.append(ScaledPlan.from_parameter(name, parameter["Value"]))
            except (ValueError, KeyError, TypeError) as error:
                unreadable.append(f"{name}: {type(error).__name__}: {error}")
    return ScaledPlans(tuple(plans), tuple(unreadable))
