"""What a scaler keeps in its coordinator's table: boosts, and the pulses of fleets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from highwater.aws.leases import LeaseTable
from highwater.aws.pulses import PulseTable


@dataclass(frozen=True, slots=True)
class Kept:
    """The coordinator's table, in its two uses; `None` without a coordinator."""

    leases: LeaseTable | None = None
    pulses: PulseTable | None = None


NOTHING_KEPT: Final = Kept()
