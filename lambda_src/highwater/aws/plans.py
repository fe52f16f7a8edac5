"""Plans that the constructs left in SSM parameters, one a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from highwater.core.names import PLANS_PATH, table_label, table_of_plan
from highwater.core.plan.plan import Plan
from highwater.core.scaler.scaled_plan import ScaledPlan
from highwater.core.scaler.settings import Mode

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient


def client() -> SSMClient:
    """A client that waits out rate limits: 40 calls a second are shared by the account."""
    return boto3.client("ssm", config=Config(retries={"mode": "standard", "total_max_attempts": 8}))


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """What is to be scaled.

    Attributes:
        table: The table's name.
        mode: What is moved.
        plan: What is planned for it.
        is_tagged: Whether its tags told the plan, which then knows no indexes of its own.
        region: Where the table is; `None` for where the plan is kept.
    """

    table: str
    mode: Mode
    plan: Plan
    is_tagged: bool = False
    region: str | None = None

    @property
    def label(self) -> str:
        """The table's name, with its region ahead where it is elsewhere: no two plans share it."""
        return table_label(self.table, self.region)

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
        known = {plan.label for plan in self.plans}
        more = tuple(plan for plan in others.plans if plan.label not in known)
        return StoredPlans((*self.plans, *more), (*self.unreadable, *others.unreadable))


def see_plans(ssm: SSMClient) -> StoredPlans:
    """Read all plans; one that cannot be read never hides the others."""
    plans, unreadable = [], []
    for page in ssm.get_paginator("get_parameters_by_path").paginate(Path=PLANS_PATH, Recursive=True):
        for parameter in page["Parameters"]:
            name = parameter["Name"]
            try:
                scaled = ScaledPlan.from_json(parameter["Value"])
                table, region = table_of_plan(name)
                plans.append(StoredPlan(table, scaled.mode, scaled.plan, region=region))
            except (ValueError, KeyError, TypeError) as error:
                unreadable.append(f"{name}: {type(error).__name__}: {error}")
    return StoredPlans(tuple(plans), tuple(unreadable))
