"""A model of how DynamoDB serves and throttles requests: pure functions and state, integers only, time passed in.

Amounts are *quanta*: sixtieths of a capacity unit. A whole number of units per minute is then a whole number of quanta
per second, so no result depends on rounding.
"""

from highwater_lab.physics.partitions import QUANTA_PER_UNIT, KeyDistribution, Partitions
from highwater_lab.physics.throughput import INDEX, OnDemandThroughput, Provisioned

__all__ = [
    "INDEX",
    "QUANTA_PER_UNIT",
    "KeyDistribution",
    "OnDemandThroughput",
    "Partitions",
    "Provisioned",
]
