"""AWS CDK constructs for DynamoDB tables with provisioned capacity: windows, high-water marks and limits."""

from cdk_highwater.boost_coordinator import BoostCoordinator
from cdk_highwater.boost_task import BoostTask
from cdk_highwater.capacity_alarms import CapacityAlarms
from cdk_highwater.capacity_dashboard import CapacityDashboard
from cdk_highwater.capacity_managed import CapacityManaged
from cdk_highwater.capacity_options import CapacityOptions, IndexedCapacityOptions
from cdk_highwater.global_secondary_index import GlobalSecondaryIndex
from cdk_highwater.high_water_table import HighWaterTable
from cdk_highwater.manage_capacity import manage_capacity
from cdk_highwater.pre_warm import PreWarm, PreWarmStrategy
from cdk_highwater.table_capacity import TableCapacity
from cdk_highwater.tagged_tables import TaggedTables
from cdk_highwater.throttle_aware_scaler import ThrottleAwareScaler
from highwater.core import Capacity, HighWaterMark, IndexCapacity, Window

__all__ = [
    "BoostCoordinator",
    "BoostTask",
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
    "PreWarm",
    "PreWarmStrategy",
    "TableCapacity",
    "TaggedTables",
    "ThrottleAwareScaler",
    "Window",
    "manage_capacity",
]
