"""The option of a scaler to manage tables with a tag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdk_highwater.argument_types import list_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedTables:
    """Let a scaler also manage the tables of the account that have the tag `highwater:managed`.

    Attributes:
        regions: Regions in which to search for tagged tables, in addition to the scaler's region. By default none.
    """

    regions: Sequence[str] = ()

    def __post_init__(self) -> None:
        list_of("regions", self.regions, str)
