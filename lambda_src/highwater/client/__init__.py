"""What jobs and services use: boosts, with boto3 alone."""

from highwater.client.answers import BoostAnswer, BoostState, GrantedTarget, TargetState
from highwater.client.boost import Boost, BoostNotReadyError, boost
from highwater.client.coordinator import BoostError, BoostRefusedError, CoordinatorClient, CoordinatorUnavailableError
from highwater.client.sizing import read_units_for_scan, write_units_for_load

__all__ = [
    "Boost",
    "BoostAnswer",
    "BoostError",
    "BoostNotReadyError",
    "BoostRefusedError",
    "BoostState",
    "CoordinatorClient",
    "CoordinatorUnavailableError",
    "GrantedTarget",
    "TargetState",
    "boost",
    "read_units_for_scan",
    "write_units_for_load",
]
