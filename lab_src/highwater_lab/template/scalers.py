"""The plans that a template leaves to Highwater's scaler, by the table that they are for."""

from __future__ import annotations

from highwater.core.names import PLANS_PATH
from highwater.core.scaler.scaled_plan import ScaledPlan
from highwater_lab.template.document import Template
from highwater_lab.template.intrinsics import Resolver
from highwater_lab.template.scaling import resources_of


def read_scalers(template: Template, resolver: Resolver) -> dict[str, ScaledPlan]:
    """The scaler of each table that has a plan in the template, by the table's name; those of other regions last.

    Raises `TemplateError` for a plan that is none.
    """
    found: dict[str, ScaledPlan] = {}
    for logical_id, properties in resources_of(template, resolver, "AWS::SSM::Parameter"):
        name = str(resolver.resolve(properties.get("Name")))
        if name.startswith(PLANS_PATH):
            value = str(resolver.resolve(properties.get("Value")))
            scaled = _read(resolver, name, value, f"{logical_id} (Parameter) Value")
            if scaled.region is None or scaled.table not in found:
                found[scaled.table] = scaled
    return found


def _read(resolver: Resolver, name: str, value: str, where: str) -> ScaledPlan:
    try:
        return ScaledPlan.from_parameter(name, value)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        shown = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise resolver.error(f"{where} is no plan of Highwater's scaler: {shown}; run cdk synth again") from error
