"""The causes of throttling, with DynamoDB's names for them in metrics and in errors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from highwater.core.units import Dimension


class ThrottleCause(StrEnum):
    """The limit that throttled a request. The values are for reports and documents.

    PROVISIONED is the provisioned capacity of a table or index: more of it helps. KEY_RANGE is the limit of a
    partition: more capacity does not help a single hot key. ACCOUNT is a quota of the account. MAX_ON_DEMAND is the
    maximum that is set for an on-demand table or index.

    Source: Amazon DynamoDB Developer Guide, "Troubleshooting throttling" and "DynamoDB metrics and dimensions", read
    2026-11.
    """

    PROVISIONED = "provisioned"
    KEY_RANGE = "key-range"
    ACCOUNT = "account"
    MAX_ON_DEMAND = "max-on-demand"

    @property
    def limit(self) -> str:
        """DynamoDB's name of the limit, a part of the names of metrics and reasons, such as `KeyRangeThroughput`."""
        return _LIMITS[self]

    @property
    def metric_suffix(self) -> str:
        """The end of the name of the metric that counts its throttles; before it come `Read` or `Write`."""
        return f"{self.limit}ThrottleEvents"

    @property
    def brakes_all(self) -> bool:
        """Whether it refuses requests to all tables and indexes of a dimension, or may: less is to be asked of each."""
        return self in (ThrottleCause.ACCOUNT, ThrottleCause.MAX_ON_DEMAND)

    @property
    def is_of_provisioned(self) -> bool:
        """Whether requests to provisioned capacity may meet it."""
        return self is not ThrottleCause.MAX_ON_DEMAND

    @property
    def label(self) -> str:
        """The cause in words, such as `key range`."""
        return self.replace("-", " ")


_LIMITS = {
    ThrottleCause.PROVISIONED: "ProvisionedThroughput",
    ThrottleCause.KEY_RANGE: "KeyRangeThroughput",
    ThrottleCause.ACCOUNT: "AccountLimit",
    ThrottleCause.MAX_ON_DEMAND: "MaxOnDemandThroughput",
}


@dataclass(frozen=True, slots=True)
class ThrottleReason:
    """One of the `ThrottlingReasons` of an error.

    Attributes:
        cause: The limit that the request exceeded.
        dimension: Whether it is a limit of reads or of writes.
        is_of_index: Whether it is an index's limit, not the table's.
    """

    cause: ThrottleCause
    dimension: Dimension
    is_of_index: bool

    @property
    def name(self) -> str:
        """DynamoDB's name, such as `TableReadProvisionedThroughputExceeded`."""
        return f"{'Index' if self.is_of_index else 'Table'}{self.dimension.title()}{self.cause.limit}Exceeded"


_REASONS = {
    reason.name: reason
    for cause in ThrottleCause
    for dimension in Dimension
    for is_of_index in (False, True)
    for reason in [ThrottleReason(cause, dimension, is_of_index)]
}


def find_reason(name: str) -> ThrottleReason | None:
    """Return the reason with DynamoDB's *name*, `None` if the name is not known here."""
    return _REASONS.get(name)
