"""AWS CDK constructs for DynamoDB tables with provisioned capacity: windows, high-water marks and limits."""

from cdk_highwater.alarms import CapacityAlarms
from cdk_highwater.boosts import BoostCoordinator
from cdk_highwater.buffered import BufferedWrites
from cdk_highwater.capacity import CapacityOptions, IndexedCapacityOptions, TableCapacity
from cdk_highwater.dashboard import CapacityDashboard
from cdk_highwater.manage import CapacityManaged, manage_capacity
from cdk_highwater.on_demand import OnDemandTable
from cdk_highwater.ownership import TaggedTables
from cdk_highwater.paced import PacedJob, PacedLoad, PacedScan
from cdk_highwater.prewarm import PreWarm
from cdk_highwater.scaler import ThrottleAwareScaler
from cdk_highwater.table import GlobalSecondaryIndex, HighWaterTable
from cdk_highwater.task import BoostTask
from highwater.core import Capacity, HighWaterMark, IndexCapacity, Window

__all__ = [
    "BoostCoordinator",
    "BoostTask",
    "BufferedWrites",
    "Capacity",
    "CapacityAlarms",
    "CapacityDashboard",
    "CapacityManaged",
    "CapacityOptions",
    "GlobalSecondaryIndex",
    "HighWaterMark",
    "HighWaterTable",
    "IndexCapacity",
    "IndexedCapacityOptions",
    "OnDemandTable",
    "PacedJob",
    "PacedLoad",
    "PacedScan",
    "PreWarm",
    "TableCapacity",
    "TaggedTables",
    "ThrottleAwareScaler",
    "Window",
    "manage_capacity",
]
