"""Reads the plans that a template writes for Highwater's scaler, by table name."""

from __future__ import annotations

from highwater.core.names import PLANS_PATH
from highwater.core.scaler.scaled_plan import ScaledPlan
from highwater_lab.template.document import Template
from highwater_lab.template.intrinsics import Resolver
from highwater_lab.template.scaling import resources_of


def read_scalers(template: Template, resolver: Resolver) -> dict[str, ScaledPlan]:
    """Return the scaled plan of each table that has one in the template, by table name.

    A plan without a region takes precedence over plans for other regions. Raises `TemplateError` for an invalid plan.
    """
    plans: dict[str, ScaledPlan] = {}
    for logical_id, properties in resources_of(template, resolver, "AWS::SSM::Parameter"):
        name = str(resolver.resolve(properties.get("Name")))
        if name.startswith(PLANS_PATH):
            value = str(resolver.resolve(properties.get("Value")))
            scaled = _parse_plan(resolver, name, value, f"{logical_id} (Parameter) Value")
            if scaled.region is None or scaled.table not in plans:
                plans[scaled.table] = scaled
    return plans


def _parse_plan(resolver: Resolver, name: str, value: str, where: str) -> ScaledPlan:
    try:
        return ScaledPlan.from_parameter(name, value)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise resolver.error(
            f"{where} is not a valid plan for Highwater's scaler: {reason}; run cdk synth again"
        ) from error
