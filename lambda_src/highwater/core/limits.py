"""Limits of the services, each with its source. Read November 2026."""

from datetime import timedelta
from typing import Final

# Amazon DynamoDB Developer Guide, "Quotas": per table and, counted apart, per index; adjustable.
DEFAULT_TABLE_QUOTA_UNITS: Final = 40_000
# The same page: of all tables and indexes of an account in a region, reads and writes apart, provisioned only
DEFAULT_ACCOUNT_QUOTA_UNITS: Final = 80_000

# Application Auto Scaling User Guide, "Quotas": scheduled actions per scalable target; fixed.
MAX_SCHEDULED_ACTIONS_PER_TARGET: Final = 200

# Amazon DynamoDB Developer Guide, "Managing throughput capacity automatically with auto scaling".
MIN_TARGET_UTILIZATION_PERCENT: Final = 20
MAX_TARGET_UTILIZATION_PERCENT: Final = 90

# Text of the LimitExceededException of UpdateTable: the first four of a UTC day at any time, each later one at
# least 3,600 s after the last accepted one; the count starts anew at 00:00:00 UTC.
FREE_DECREASES_PER_DAY: Final = 4
DECREASE_SPACING: Final = timedelta(seconds=3600)

# Amazon DynamoDB Developer Guide, "Warm throughput": what a new on-demand table takes at once, and the least that
# can be asked of one.
ON_DEMAND_WARM_READ_UNITS: Final = 12_000
ON_DEMAND_WARM_WRITE_UNITS: Final = 4_000

# A lead of more than a day would be a window of its own.
MAX_LEAD: Final = timedelta(hours=24)

# Years over which a zone's clock changes are looked at: zone rules are data, and farther ahead they are guesses.
FIRST_ZONE_YEAR: Final = 2025
LAST_ZONE_YEAR: Final = 2040
