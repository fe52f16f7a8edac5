"""What jobs and services use: boosts, with boto3 alone."""

from highwater.client.answers import BoostAnswer, BoostState, GrantedTarget, TargetState
from highwater.client.boost import Boost, BoostNotReadyError, boost
from highwater.client.coordinator import BoostError, BoostRefusedError, CoordinatorClient, CoordinatorUnavailableError

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
]
