"""What provisioned capacity costs, from the dated list that the lab's prices come from too."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from highwater.core.units import Dimension

_MICRO = 1_000_000


def unit_hour_micro_usd(region: str, dimension: Dimension, *, is_infrequent_access: bool = False) -> int | None:
    """Return the price of one provisioned unit for an hour in millionths of a US dollar, `None` where it is not known.

    Of DynamoDB Standard, or of Standard-IA where the table *is_infrequent_access*. `highwater prices` says where the
    list is from, and makes a newer one.
    """
    found = _regions().get(region)
    if found is None:
        return None
    prices = found["infrequent_access" if is_infrequent_access else "standard"]
    price: float = prices[f"{dimension}_unit_hour"]
    return round(price * _MICRO)


@cache
def _regions() -> dict[str, Any]:
    document = json.loads(resources.files("highwater.core").joinpath("prices.json").read_text(encoding="utf-8"))
    regions: dict[str, Any] = document["regions"]
    return regions
