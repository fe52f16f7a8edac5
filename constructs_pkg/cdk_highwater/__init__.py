"""AWS CDK constructs for DynamoDB tables with provisioned capacity: windows, high-water marks and limits.

Names are imported when they are first used: an app loads only the modules of the CDK that its constructs need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.exports import exported

if TYPE_CHECKING:
    from cdk_highwater.boosts.coordinator import BoostCoordinator
    from cdk_highwater.boosts.task import BoostTask
    from cdk_highwater.jobs.paced import PacedJob, PacedLoad, PacedScan
    from cdk_highwater.queues.buffered import BufferedWrites
    from cdk_highwater.scaler.alarms import CapacityAlarms
    from cdk_highwater.scaler.dashboard import CapacityDashboard
    from cdk_highwater.scaler.scaler import ThrottleAwareScaler
    from cdk_highwater.table.capacity import CapacityOptions, IndexedCapacityOptions, TableCapacity
    from cdk_highwater.table.manage import CapacityManaged, manage_capacity
    from cdk_highwater.table.on_demand import OnDemandTable
    from cdk_highwater.table.ownership import TaggedTables
    from cdk_highwater.table.prewarm import PreWarm
    from cdk_highwater.table.table import GlobalSecondaryIndex, HighWaterTable
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

__getattr__, __dir__ = exported(
    __name__,
    {
        "BoostCoordinator": "cdk_highwater.boosts.coordinator",
        "BoostTask": "cdk_highwater.boosts.task",
        "BufferedWrites": "cdk_highwater.queues.buffered",
        "Capacity": "highwater.core",
        "CapacityAlarms": "cdk_highwater.scaler.alarms",
        "CapacityDashboard": "cdk_highwater.scaler.dashboard",
        "CapacityManaged": "cdk_highwater.table.manage",
        "CapacityOptions": "cdk_highwater.table.capacity",
        "GlobalSecondaryIndex": "cdk_highwater.table.table",
        "HighWaterMark": "highwater.core",
        "HighWaterTable": "cdk_highwater.table.table",
        "IndexCapacity": "highwater.core",
        "IndexedCapacityOptions": "cdk_highwater.table.capacity",
        "OnDemandTable": "cdk_highwater.table.on_demand",
        "PacedJob": "cdk_highwater.jobs.paced",
        "PacedLoad": "cdk_highwater.jobs.paced",
        "PacedScan": "cdk_highwater.jobs.paced",
        "PreWarm": "cdk_highwater.table.prewarm",
        "TableCapacity": "cdk_highwater.table.capacity",
        "TaggedTables": "cdk_highwater.table.ownership",
        "ThrottleAwareScaler": "cdk_highwater.scaler.scaler",
        "Window": "highwater.core",
        "manage_capacity": "cdk_highwater.table.manage",
    },
)
