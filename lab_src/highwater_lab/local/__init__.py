"""The local cloud: an AWS endpoint on this machine for the real CDK CLI and real boto3 clients."""

from highwater_lab.local.cloud import LocalCloud
from highwater_lab.local.control import CloudError
from highwater_lab.local.lockstep import SeatClock

__all__ = ["CloudError", "LocalCloud", "SeatClock"]
