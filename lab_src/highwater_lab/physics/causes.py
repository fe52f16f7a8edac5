"""The causes of throttling and their remedies."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """A cause of throttling: the four that DynamoDB reports, and INDEX.

    DynamoDB reports the first four in its throttle metrics and in `ThrottlingReasons` (Amazon DynamoDB Developer Guide,
    "Metrics and dimensions", read 2026-11). If an index throttles a write to the table, DynamoDB reports the index's
    cause. This model counts that write as INDEX on the table, and under the index's own cause on the index.
    """

    PROVISIONED = "provisioned"
    KEY_RANGE = "key-range"
    ACCOUNT = "account"
    MAX_ON_DEMAND = "max-on-demand"
    INDEX = "index"

    @property
    def remedy(self) -> str:
        """What an operator can do about throttling of this cause, as a short sentence for reports."""
        return _REMEDIES[self]


_REMEDIES = {
    Cause.PROVISIONED: "raise the floor ahead of the surge, or lower the target utilization",
    Cause.KEY_RANGE: "a partition is at its limit: if keys are evenly spread, raise the high-water mark; a hot key "
    "needs another key design",
    Cause.ACCOUNT: "have AWS raise the account's quota, then give the new quota with --table-quota",
    Cause.MAX_ON_DEMAND: "raise or remove the table's maximum on-demand throughput",
    Cause.INDEX: "an index throttles the table's writes: raise the index's write capacity",
}
