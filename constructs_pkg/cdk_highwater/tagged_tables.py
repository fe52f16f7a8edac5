"""Tables that a scaler finds by tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedTables:
    """Have a scaler also look after the tables of the account that carry the tag `highwater:managed`.

    Attributes:
        regions: Where such tables are looked for, beside the scaler's own region. By default nowhere.
    """

    regions: Sequence[str] = ()
