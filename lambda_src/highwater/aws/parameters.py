"""SSM parameters that the constructs write: plans, below a path for each scaler, and grants of boosts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import boto3

from highwater.calls.attempts import RARE, client_config
from highwater.core.boosts import BoostCap
from highwater.core.documents import DocumentError, read_document
from highwater.core.names import PLANS_PATH, boost_caps_path, plan_parameter, plans_path, table_of_label
from highwater.core.scaler.plan import ScaledPlan

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient


# GetParameters accepts up to ten names (AWS Systems Manager API Reference, read 2026-11)
_NAMES_PER_CALL = 10


def client(region: str | None = None) -> SSMClient:
    """Create a client that retries throttled calls up to seven times: the account has 40 calls a second in total."""
    return boto3.client("ssm", config=client_config(RARE), region_name=region)


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


def read_plans(ssm: SSMClient, scaler: str | None = None) -> ScaledPlans:
    """Read the plans of all tables of *scaler*, by default of all scalers.

    An unreadable plan is listed as such and does not affect the others.
    """
    path = PLANS_PATH if scaler is None else plans_path(scaler)
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=path, Recursive=True)
    return _parsed(parameter for page in pages for parameter in page["Parameters"])


def read_plans_of(ssm: SSMClient, scaler: str, labels: Iterable[str]) -> ScaledPlans:
    """Read the plans of the tables with these labels; a table without a plan of *scaler* is left out."""
    names = [plan_parameter(scaler, *table_of_label(label)) for label in dict.fromkeys(labels)]
    return _parsed(
        parameter
        for start in range(0, len(names), _NAMES_PER_CALL)
        for parameter in ssm.get_parameters(Names=names[start : start + _NAMES_PER_CALL])["Parameters"]
    )


# What `released` is in a plan that is about to be deleted; no scaler follows it either
GONE: Final = "gone"


def set_released(ssm: SSMClient, parameter: str, *, released: bool | str) -> None:
    """Record in a plan's parameter whether its scaler still manages the table; a missing parameter is not created.

    *released* is true for a table that its own plan took back, `GONE` where the plan itself is deleted next.
    """
    document = _find_document(ssm, parameter)
    if document is None or document.get("released", False) == released:
        return
    text = json.dumps(document | {"released": released}, sort_keys=True, separators=(",", ":"))
    ssm.put_parameter(Name=parameter, Value=text, Type="String", Tier="Intelligent-Tiering", Overwrite=True)


def is_released(ssm: SSMClient, parameter: str) -> bool:
    """Whether `set_released` recorded that the table's own plan has taken it back from the scaler."""
    document = _find_document(ssm, parameter)
    return document is not None and document.get("released") is True


def _find_document(ssm: SSMClient, parameter: str) -> dict[str, Any] | None:
    """The content of a parameter, `None` if it does not exist or is not a JSON object."""
    try:
        document = read_document(ssm.get_parameter(Name=parameter)["Parameter"]["Value"])
    except (ssm.exceptions.ParameterNotFound, DocumentError):
        return None
    return document if isinstance(document, dict) else None


def _parsed(parameters: Iterable[Any]) -> ScaledPlans:
    plans, unreadable = [], []
    for parameter in parameters:
        name = parameter["Name"]
        try:
            plans.append(ScaledPlan.from_parameter(name, parameter["Value"]))
        except ValueError as error:
            unreadable.append(f"{name}: {error}")
    return ScaledPlans(tuple(plans), tuple(unreadable))


@dataclass(frozen=True, slots=True)
class BoostCaps:
    """The readable grants of a coordinator, and for each unreadable grant a text with its place and the reason."""

    caps: tuple[BoostCap, ...]
    unreadable: tuple[str, ...] = ()


def read_boost_caps(ssm: SSMClient, coordinator: str) -> BoostCaps:
    """Read all grants of *coordinator*; one that cannot be read allows nothing and does not affect the others."""
    caps, unreadable = [], []
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path=boost_caps_path(coordinator), Recursive=True)
    for page in pages:
        for parameter in page["Parameters"]:
            try:
                caps.append(BoostCap.from_json(parameter["Value"]))
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                unreadable.append(f"{parameter['Name']}: {type(error).__name__}: {error}")
    return BoostCaps(tuple(caps), tuple(unreadable))
