"""Tiers of Systems Manager's parameters, which MiniStack lets change at will.

A parameter of the advanced tier cannot go back to the standard tier, and each tier has a largest value (AWS Systems
Manager User Guide, "Managing parameter tiers", read 2026-11).
"""

from __future__ import annotations

from typing import Any

from highwater_lab.local import ministack

_MOST_BYTES = {"Standard": 4_096, "Advanced": 8_192, "Intelligent-Tiering": 8_192}
_DOWNGRADE = (
    "This parameter uses the advanced-parameter tier. You can't downgrade a parameter from the advanced-parameter tier "
    "to the standard-parameter tier. If necessary, you can delete the advanced parameter and recreate it as a standard "
    "parameter."
)
_TOO_LONG = "The value for the parameter in the tier {tier} exceeds its maximum length of {most} bytes."


class Parameters:
    """Refuses what Systems Manager refuses; known to MiniStack as soon as this is made."""

    def __init__(self) -> None:
        self._own = ministack.put_parameter.replace(self._put)

    def _put(self, request: dict[str, Any]) -> Any:
        existing = ministack.parameters().get(request.get("Name"))
        tier = request.get("Tier") or (existing or {}).get("Tier") or "Standard"
        if existing is not None and existing.get("Tier") == "Advanced":
            if request.get("Tier") == "Standard":
                return ministack.error_answer("ValidationException", _DOWNGRADE, 400)
            tier = "Advanced"
        most = _MOST_BYTES.get(tier)
        size = len(str(request.get("Value", "")).encode())
        if most is not None and size > most:
            return ministack.error_answer("ValidationException", _TOO_LONG.format(tier=tier, most=most), 400)
        if tier == "Intelligent-Tiering":
            tier = "Advanced" if size > _MOST_BYTES["Standard"] else "Standard"
        return self._own(request | {"Tier": tier})
