"""Rejections of parameters by Systems Manager that MiniStack lacks.

A parameter of the advanced tier cannot go back to the standard tier, each tier has a largest value, and names have a
longest path (AWS Systems Manager User Guide, "Managing parameter tiers" and "Creating Parameter Store parameters in
Systems Manager", and API Reference, PutParameter and GetParameters, read 2026-11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from highwater_local import ministack
from highwater_local.ministack import Answer, Document, error_answer, rejected
from highwater_local.requests import errors_text, unmet_text

_MOST_BYTES: Final = {"Standard": 4_096, "Advanced": 8_192, "Intelligent-Tiering": 8_192}
_MOST_NAMES: Final = 10
_MOST_LEVELS: Final = 15
# The longest ARN of a parameter, which ends with its name
_MOST_CHARACTERS: Final = 1_011
_DOWNGRADE: Final = (
    "This parameter uses the advanced-parameter tier. You can't downgrade a parameter from the advanced-parameter tier "
    "to the standard-parameter tier. If necessary, you can delete the advanced parameter and recreate it as a standard "
    "parameter."
)
# the text that users report; for the advanced tier the same text is assumed
_TOO_LONG: Final = "{tier} tier parameters support a maximum parameter value of {most} characters."
_UPGRADE: Final = (
    " To create a larger parameter value, upgrade the parameter to use the advanced-parameter tier. For more "
    "information, see "
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html"
)
_LONG_NAME: Final = "Parameter name: the full ARN has {length} characters; at most {most} are allowed."
_DEEP_NAME: Final = (
    "A hierarchy can have a maximum of 15 levels. For more information, see Requirements and constraints for parameter "
    "names in the AWS Systems Manager User Guide."
)


def wrap_parameters() -> None:
    """Reject parameters that Systems Manager rejects from now on."""
    ministack.put_parameter.wrap(_put)
    ministack.get_parameters.wrap(_get)


def _get(own: Callable[[Document], Answer], request: Document) -> Answer:
    names = request.get("Names")
    if isinstance(names, list) and len(names) > _MOST_NAMES:
        value, constraint = f"[{', '.join(map(str, names))}]", f"have length less than or equal to {_MOST_NAMES}"
        return rejected(errors_text([unmet_text(value, "names", constraint)]))
    return own(request)


def _put(own: Callable[[Document], Answer], request: Document) -> Answer:
    existing = ministack.parameters().get(request.get("Name"))
    tier = request.get("Tier") or (existing or {}).get("Tier") or "Standard"
    if tier not in _MOST_BYTES:
        return rejected(errors_text([unmet_text(tier, "tier", f"satisfy enum value set: [{', '.join(_MOST_BYTES)}]")]))
    if (wrong := _name_refusal(str(request.get("Name") or ""))) is not None:
        return wrong
    if existing is not None and existing.get("Tier") == "Advanced":
        if request.get("Tier") == "Standard":
            return rejected(_DOWNGRADE)
        tier = "Advanced"
    size = len(str(request.get("Value", "")).encode())
    if size > _MOST_BYTES[tier]:
        return _too_long(tier)
    if tier == "Intelligent-Tiering":
        tier = "Advanced" if size > _MOST_BYTES["Standard"] else "Standard"
    return own(request | {"Tier": tier})


def _too_long(tier: str) -> Answer:
    of = "Standard" if tier == "Standard" else "Advanced"
    return rejected(_TOO_LONG.format(tier=of, most=_MOST_BYTES[of]) + (_UPGRADE if of == "Standard" else ""))


def _name_refusal(name: str) -> Answer | None:
    """Return the rejection of a parameter of that name, `None` if Systems Manager accepts it."""
    arn = f"arn:aws:ssm:{ministack.get_region()}:{ministack.get_account_id()}:parameter/{name.removeprefix('/')}"
    if len(arn) > _MOST_CHARACTERS:
        return rejected(_LONG_NAME.format(length=len(arn), most=_MOST_CHARACTERS))
    if name.removeprefix("/").count("/") >= _MOST_LEVELS:
        return error_answer("HierarchyLevelLimitExceededException", _DEEP_NAME)
    return None
