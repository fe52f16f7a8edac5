"""A model of how DynamoDB serves and throttles requests: pure functions and state, integers only, time passed in.

Amounts are *quanta*: sixtieths of a capacity unit. A whole number of units per minute is then a whole number of quanta
per second, so no result depends on rounding.
"""

from highwater_lab.physics.bucket import BURST_SECONDS, INDEX, QUANTA_PER_UNIT, Bucket
from highwater_lab.physics.partitions import KeyDistribution, Partitions
from highwater_lab.physics.throughput import OnDemandThroughput, Provisioned

__all__ = [
    "BURST_SECONDS",
    "INDEX",
    "QUANTA_PER_UNIT",
    "Bucket",
    "KeyDistribution",
    "OnDemandThroughput",
    "Partitions",
    "Provisioned",
]
