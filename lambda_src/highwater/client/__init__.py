"""What jobs and services use: boosts, pulses, pacing, and paced scans and writes, with boto3 alone."""

from highwater.client.actions import Delete, Put, Update
from highwater.client.answers import BoostAnswer, BoostState, GrantedTarget, TargetState
from highwater.client.boost import Boost, BoostNotReadyError, boost
from highwater.client.coordinator import BoostError, BoostRefusedError, CoordinatorClient, CoordinatorUnavailableError
from highwater.client.meter import Meter
from highwater.client.pace import Pacing, pace
from highwater.client.paced_work import PacedWorkError
from highwater.client.pacer import PaceError, Pacer
from highwater.client.pulse import Pulse, pulse
from highwater.client.scan import PacedScan, scan
from highwater.client.scanned import ScanPage, ScanPlan, ScanProgress
from highwater.client.sizing import read_units_for_scan, write_units_for_load
from highwater.client.transform import transform
from highwater.client.write import WriteProgress, write
from highwater.client.write_plan import WritePlan
from highwater.client.writer import Rejected

__all__ = [
    "Boost",
    "BoostAnswer",
    "BoostError",
    "BoostNotReadyError",
    "BoostRefusedError",
    "BoostState",
    "CoordinatorClient",
    "CoordinatorUnavailableError",
    "Delete",
    "GrantedTarget",
    "Meter",
    "PaceError",
    "PacedScan",
    "PacedWorkError",
    "Pacer",
    "Pacing",
    "Pulse",
    "Put",
    "Rejected",
    "ScanPage",
    "ScanPlan",
    "ScanProgress",
    "TargetState",
    "Update",
    "WritePlan",
    "WriteProgress",
    "boost",
    "pace",
    "pulse",
    "read_units_for_scan",
    "scan",
    "transform",
    "write",
    "write_units_for_load",
]
