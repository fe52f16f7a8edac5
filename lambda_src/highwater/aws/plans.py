"""Plans that the constructs left in SSM parameters, one a table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from highwater.core.plan import Plan
from highwater.core.scaler_settings import Mode
from highwater.core.target_names import PLANS_PATH

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient


def client() -> SSMClient:
    """A client that waits out rate limits: 40 calls a second are shared by the account."""
    return boto3.client("ssm", config=Config(retries={"mode": "standard", "total_max_attempts": 8}))


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """What is to be scaled: a table's plan, and what is moved; *is_tagged* plans know no indexes of their own."""

    table: str
    mode: Mode
    plan: Plan
    is_tagged: bool = False

    def with_indexes(self, names: Iterable[str]) -> StoredPlan:
        """The same with indexes that follow the table."""
        return replace(self, plan=self.plan.with_indexes(names))


@dataclass(frozen=True, slots=True)
class StoredPlans:
    """Every plan that could be read, and the parameters that could not, with the reason."""

    plans: tuple[StoredPlan, ...]
    unreadable: tuple[str, ...]

    def and_others(self, others: StoredPlans) -> StoredPlans:
        """With the plans of *others* for tables that have none here."""
        known = {plan.table for plan in self.plans}
        more = tuple(plan for plan in others.plans if plan.table not in known)
        return StoredPlans((*self.plans, *more), (*self.unreadable, *others.unreadable))


def see_plans(ssm: SSMClient) -> StoredPlans:
    """Read all plans; one that cannot be read never hides the others."""
    plans, unreadable = [], []
    for page in ssm.get_paginator("get_parameters_by_path").paginate(Path=PLANS_PATH):
        for parameter in page["Parameters"]:
            name = parameter["Name"]
            try:
                document = json.loads(parameter["Value"])
                mode = Mode(document["mode"])
                plans.append(StoredPlan(name.removeprefix(PLANS_PATH), mode, Plan.from_document(document["plan"])))
            except (ValueError, KeyError, TypeError) as error:
                unreadable.append(f"{name}: {type(error).__name__}: {error}")
    return StoredPlans(tuple(plans), tuple(unreadable))
