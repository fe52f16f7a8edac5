"""Limits of AWS services, each with its source, read in November 2026."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

# Amazon DynamoDB Developer Guide, "Quotas": units per second of each table and of each index; adjustable.
DEFAULT_TABLE_QUOTA_UNITS: Final = 40_000
# The same page: units per second of all provisioned tables and indexes of an account in a region, for reads and for
# writes separately
DEFAULT_ACCOUNT_QUOTA_UNITS: Final = 80_000

# Application Auto Scaling User Guide, "Quotas": scheduled actions per scalable target; fixed.
MAX_SCHEDULED_ACTIONS_PER_TARGET: Final = 200

# Amazon DynamoDB Developer Guide, "Managing throughput capacity automatically with auto scaling".
MIN_TARGET_UTILIZATION_PERCENT: Final = 20
MAX_TARGET_UTILIZATION_PERCENT: Final = 90

# Text of the LimitExceededException of UpdateTable: the first four decreases of a UTC day are accepted at any time,
# each later one at least 3,600 s after the last accepted one; the count restarts at 00:00:00 UTC.
FREE_DECREASES_PER_DAY: Final = 4
DECREASE_SPACING: Final = timedelta(seconds=3600)

# Amazon DynamoDB Developer Guide, "Warm throughput": the warm throughput of a new on-demand table, which is also the
# lowest value that can be requested for one.
ON_DEMAND_WARM_READ_UNITS: Final = 12_000
ON_DEMAND_WARM_WRITE_UNITS: Final = 4_000

# Amazon DynamoDB Developer Guide, "Best practices for designing and using partition keys effectively": units per second
# of one partition.
PARTITION_READ_UNITS: Final = 3_000
PARTITION_WRITE_UNITS: Final = 1_000

# That guide, "Multi-attribute keys pattern": attributes of the partition key of a global secondary index, and of its
# sort key.
MAX_KEY_ATTRIBUTES: Final = 4

# AWS Systems Manager User Guide, "Managing parameter tiers": bytes of a parameter in the advanced tier.
MAX_PARAMETER_BYTES: Final = 8_192
# A limit of this library: a scaler's parameter also contains the mode, and names that are only known at deploy time.
MAX_PLAN_BYTES: Final = MAX_PARAMETER_BYTES - 200

# A limit of this library: a longer lead is better declared as a window.
MAX_LEAD: Final = timedelta(hours=24)

# Messages are deleted 14 days after they were sent; a day of it is left to act in, once some are older than their drain
# time (Amazon SQS API Reference, SetQueueAttributes: MessageRetentionPeriod, read 2026-11)
LONGEST_DRAIN_SECONDS: Final = 13 * 86_400

# Years whose clock changes are compared. Zone rules are political decisions, so later years would be guesses.
FIRST_ZONE_YEAR: Final = 2025
LAST_ZONE_YEAR: Final = 2040


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)
# Target tracking lowers capacity after 15 minutes below its target; metrics come up to two minutes late
# (docs/decisions/0030).
SCALE_IN_DELAY: Final = timedelta(minutes=17)


def billed_hours(start: datetime, end: datetime) -> int:
    """Return for how many clock hours capacity is billed that is needed between two aware instants.

    An hour is billed at its highest capacity, so each hour counts that is touched from *start* until auto scaling has
    lowered the capacity, `SCALE_IN_DELAY` after *end*.
    """
    return -(-(end + SCALE_IN_DELAY - _EPOCH) // _HOUR) - (start - _EPOCH) // _HOUR
