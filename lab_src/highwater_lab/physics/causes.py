"""Why a request is throttled."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """The causes that DynamoDB tells apart, and one that follows from them.

    The first four are those of its throttle metrics and `ThrottlingReasons` (Amazon DynamoDB Developer Guide,
    "Metrics and dimensions", read 2026-11). A table's write that an index refuses is throttled with the index's
    reason; here it is INDEX on the table, and the index's own cause on the index.
    """

    PROVISIONED = "provisioned"
    KEY_RANGE = "key-range"
    ACCOUNT = "account"
    MAX_ON_DEMAND = "max-on-demand"
    INDEX = "index"

    @property
    def remedy(self) -> str:
        """What a person does about it, in a few words."""
        return _REMEDIES[self]


_REMEDIES = {
    Cause.PROVISIONED: "more capacity helps: a higher floor in time, or a lower target utilization",
    Cause.KEY_RANGE: "partitions are full: a higher high-water mark helps evenly spread keys, nothing but another key "
    "design helps a hot key",
    Cause.ACCOUNT: "the account's quota: have it raised, and say so with --table-quota",
    Cause.MAX_ON_DEMAND: "the table's own maximum for on-demand: raise or remove it",
    Cause.INDEX: "an index has too little write capacity and holds the table's writes back",
}
