"""AWS CDK constructs for DynamoDB tables with provisioned capacity: windows, high-water marks and limits."""

from cdk_highwater.capacity_alarms import CapacityAlarms
from cdk_highwater.capacity_dashboard import CapacityDashboard
from cdk_highwater.capacity_managed import CapacityManaged
from cdk_highwater.global_index import GlobalIndex
from cdk_highwater.high_water_table import HighWaterTable
from cdk_highwater.managed_capacity import ManagedCapacity, manage_capacity
from cdk_highwater.pre_warm import PreWarm, PreWarmStrategy, WarmUnits
from cdk_highwater.throttle_aware_scaler import ThrottleAwareScaler
from highwater.core import Capacity, HighWaterMark, IndexPlan, Window

__all__ = [
    "Capacity",
    "CapacityAlarms",
    "CapacityDashboard",
    "CapacityManaged",
    "GlobalIndex",
    "HighWaterMark",
    "HighWaterTable",
    "IndexPlan",
    "ManagedCapacity",
    "PreWarm",
    "PreWarmStrategy",
    "ThrottleAwareScaler",
    "WarmUnits",
    "Window",
    "manage_capacity",
]
