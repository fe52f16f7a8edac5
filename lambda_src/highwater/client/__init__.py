"""What jobs and services use: boosts, pulses and pacing, with boto3 alone."""

from highwater.client.answers import BoostAnswer, BoostState, GrantedTarget, TargetState
from highwater.client.boost import Boost, BoostNotReadyError, boost
from highwater.client.coordinator import BoostError, BoostRefusedError, CoordinatorClient, CoordinatorUnavailableError
from highwater.client.meter import Meter
from highwater.client.pace import Pacing, pace
from highwater.client.pacer import PaceError, Pacer
from highwater.client.pulse import Pulse, pulse
from highwater.client.reader import ScanError
from highwater.client.scan import PacedScan, ScanPage, ScanPlan, ScanProgress, scan
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
    "Meter",
    "PaceError",
    "PacedScan",
    "Pacer",
    "Pacing",
    "Pulse",
    "ScanError",
    "ScanPage",
    "ScanPlan",
    "ScanProgress",
    "TargetState",
    "boost",
    "pace",
    "pulse",
    "read_units_for_scan",
    "scan",
    "write_units_for_load",
]
