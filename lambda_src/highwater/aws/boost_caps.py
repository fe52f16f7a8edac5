"""Who may boost what, in SSM parameters that `grant_boost` writes: one for each grant, in a folder per coordinator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from highwater.core.boosts import BoostCap
from highwater.core.names import boost_caps_path

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient


@dataclass(frozen=True, slots=True)
class BoostCaps:
    """The readable grants of a coordinator, and for each other one a text with its place and the reason."""

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
            except (ValueError, KeyError, TypeError) as error:
                unreadable.append(f"{parameter['Name']}: {type(error).__name__}: {error}")
    return BoostCaps(tuple(caps), tuple(unreadable))
