"""Highwater's runtime: provisioned capacity for DynamoDB.

`boost` requests capacity before a job starts, `pulse` reports a process's demand, `pace` keeps the requests of a
session within a budget, and `scan`, `write` and `transform` read and write many items within a budget. `ShardedKey`
spreads a hot partition key over several, and `scatter_query` and `scatter_get` read it. `BufferedProducer` sends
writes to a queue that buffers them. `start_job` and `run_worker` scan a table with workers on many machines, and
`worker_handler` makes a Lambda function one of them. Their value types and errors are here too; everything else in the
package is internal, except what `cdk_highwater` exports.

Names are imported when they are first used, so that code that uses only the core does not import boto3.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from highwater.bulk.budget import PacedWorkError, PaceError, Pacer
    from highwater.bulk.items import Delete, Put, Update
    from highwater.bulk.job_table import JobError
    from highwater.bulk.jobs import run_worker, start_job, worker_handler
    from highwater.bulk.load import start_load
    from highwater.bulk.producer import BufferedProducer, BufferedWriteError, BufferFullError
    from highwater.bulk.scan import ScanPage, ScanPlan, ScanProgress, TableScan, scan
    from highwater.bulk.scatter import ScatterQuery, scatter_get, scatter_query
    from highwater.bulk.send import Rejected
    from highwater.bulk.session import Pacing, pace
    from highwater.bulk.shared import SharedBudget, SharedBudgetError
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
    from highwater.core.jobs import JobProgress
    from highwater.core.shards.key import ShardedKey, ShardError, Shards

__all__ = [
    "Boost",
    "BoostAnswer",
    "BoostError",
    "BoostNotReadyError",
    "BoostRefusedError",
    "BoostState",
    "BoostedTarget",
    "BufferFullError",
    "BufferedProducer",
    "BufferedWriteError",
    "CoordinatorClient",
    "CoordinatorUnavailableError",
    "Delete",
    "GrantedTarget",
    "JobError",
    "JobProgress",
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
    "ScatterQuery",
    "ShardError",
    "ShardedKey",
    "Shards",
    "SharedBudget",
    "SharedBudgetError",
    "TableScan",
    "Update",
    "WritePlan",
    "WriteProgress",
    "boost",
    "pace",
    "pulse",
    "read_units_for_scan",
    "run_worker",
    "scan",
    "scatter_get",
    "scatter_query",
    "start_job",
    "start_load",
    "transform",
    "worker_handler",
    "write",
    "write_units_for_load",
]

# the module of each name
_HOMES: Final = {
    "Boost": "highwater.client.boost",
    "BoostAnswer": "highwater.client.boost",
    "BoostError": "highwater.client.coordinator",
    "BoostNotReadyError": "highwater.client.boost",
    "BoostRefusedError": "highwater.client.coordinator",
    "BoostState": "highwater.client.boost",
    "BufferFullError": "highwater.bulk.producer",
    "BufferedProducer": "highwater.bulk.producer",
    "BufferedWriteError": "highwater.bulk.producer",
    "CoordinatorClient": "highwater.client.coordinator",
    "CoordinatorUnavailableError": "highwater.client.coordinator",
    "Delete": "highwater.bulk.items",
    "GrantedTarget": "highwater.client.boost",
    "JobError": "highwater.bulk.job_table",
    "JobProgress": "highwater.core.jobs",
    "Meter": "highwater.client.hooks",
    "PaceError": "highwater.bulk.budget",
    "TableScan": "highwater.bulk.scan",
    "PacedWorkError": "highwater.bulk.budget",
    "Pacer": "highwater.bulk.budget",
    "Pacing": "highwater.bulk.session",
    "Pulse": "highwater.client.pulse",
    "Put": "highwater.bulk.items",
    "Rejected": "highwater.bulk.send",
    "ScanPage": "highwater.bulk.scan",
    "ScanPlan": "highwater.bulk.scan",
    "ScanProgress": "highwater.bulk.scan",
    "SharedBudget": "highwater.bulk.shared",
    "SharedBudgetError": "highwater.bulk.shared",
    "ScatterQuery": "highwater.bulk.scatter",
    "ShardError": "highwater.core.shards.key",
    "ShardedKey": "highwater.core.shards.key",
    "Shards": "highwater.core.shards.key",
    "BoostedTarget": "highwater.client.boost",
    "Update": "highwater.bulk.items",
    "WritePlan": "highwater.bulk.write",
    "WriteProgress": "highwater.bulk.write",
    "boost": "highwater.client.boost",
    "pace": "highwater.bulk.session",
    "pulse": "highwater.client.pulse",
    "read_units_for_scan": "highwater.client.sizing",
    "run_worker": "highwater.bulk.jobs",
    "scan": "highwater.bulk.scan",
    "scatter_get": "highwater.bulk.scatter",
    "scatter_query": "highwater.bulk.scatter",
    "start_job": "highwater.bulk.jobs",
    "start_load": "highwater.bulk.load",
    "transform": "highwater.bulk.transform",
    "worker_handler": "highwater.bulk.jobs",
    "write": "highwater.bulk.write",
    "write_units_for_load": "highwater.client.sizing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
