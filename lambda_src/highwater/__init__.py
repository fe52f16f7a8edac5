"""Highwater's runtime: provisioned capacity for DynamoDB.

`boost` requests capacity before a job starts, `pulse` reports a process's demand, `pace` keeps the requests of a
session within a budget, and `scan`, `write` and `transform` read and write many items within a budget. Their value
types and errors are here too. Features of their own are in `highwater.budgets`, `highwater.jobs`, `highwater.queues`
and `highwater.shards`; everything else in the package is internal, except what `cdk_highwater` exports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.exports import exported

if TYPE_CHECKING:
    from highwater.bulk.budget import PacedWorkError, PaceError, Pacer
    from highwater.bulk.items import Delete, Put, Update
    from highwater.bulk.scan import ScanPage, ScanPlan, ScanProgress, TableScan, scan
    from highwater.bulk.send import Rejected
    from highwater.bulk.session import Pacing, pace
    from highwater.bulk.transform import transform
    from highwater.bulk.write import WritePlan, WriteProgress, write
    from highwater.client.boost import (
        Boost,
        BoostAnswer,
        BoostedTarget,
        BoostNotReadyError,
        BoostState,
        GrantedTarget,
        boost,
    )
    from highwater.client.coordinator import (
        BoostError,
        BoostRefusedError,
        CoordinatorClient,
        CoordinatorUnavailableError,
    )
    from highwater.client.hooks import Meter
    from highwater.client.pulse import Pulse, pulse
    from highwater.client.sizing import read_units_for_scan, write_units_for_load

__all__ = [
    "Boost",
    "BoostAnswer",
    "BoostError",
    "BoostNotReadyError",
    "BoostRefusedError",
    "BoostState",
    "BoostedTarget",
    "CoordinatorClient",
    "CoordinatorUnavailableError",
    "Delete",
    "GrantedTarget",
    "Meter",
    "PaceError",
    "PacedWorkError",
    "Pacer",
    "Pacing",
    "Pulse",
    "Put",
    "Rejected",
    "ScanPage",
    "ScanPlan",
    "ScanProgress",
    "TableScan",
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

__getattr__, __dir__ = exported(
    __name__,
    {
        "Boost": "highwater.client.boost",
        "BoostAnswer": "highwater.client.boost",
        "BoostError": "highwater.client.coordinator",
        "BoostNotReadyError": "highwater.client.boost",
        "BoostRefusedError": "highwater.client.coordinator",
        "BoostState": "highwater.client.boost",
        "BoostedTarget": "highwater.client.boost",
        "CoordinatorClient": "highwater.client.coordinator",
        "CoordinatorUnavailableError": "highwater.client.coordinator",
        "Delete": "highwater.bulk.items",
        "GrantedTarget": "highwater.client.boost",
        "Meter": "highwater.client.hooks",
        "PaceError": "highwater.bulk.budget",
        "PacedWorkError": "highwater.bulk.budget",
        "Pacer": "highwater.bulk.budget",
        "Pacing": "highwater.bulk.session",
        "Pulse": "highwater.client.pulse",
        "Put": "highwater.bulk.items",
        "Rejected": "highwater.bulk.send",
        "ScanPage": "highwater.bulk.scan",
        "ScanPlan": "highwater.bulk.scan",
        "ScanProgress": "highwater.bulk.scan",
        "TableScan": "highwater.bulk.scan",
        "Update": "highwater.bulk.items",
        "WritePlan": "highwater.bulk.write",
        "WriteProgress": "highwater.bulk.write",
        "boost": "highwater.client.boost",
        "pace": "highwater.bulk.session",
        "pulse": "highwater.client.pulse",
        "read_units_for_scan": "highwater.client.sizing",
        "scan": "highwater.bulk.scan",
        "transform": "highwater.bulk.transform",
        "write": "highwater.bulk.write",
        "write_units_for_load": "highwater.client.sizing",
    },
)
