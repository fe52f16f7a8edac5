"""Jobs: scans and loads of a table by workers on many machines.

`start_job` and `start_load` begin one, `run_worker` works on it, and `worker_handler` makes a Lambda function a worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.exports import exported

if TYPE_CHECKING:
    from highwater.jobs.job_table import JobError
    from highwater.jobs.load import start_load
    from highwater.jobs.segments import JobProgress
    from highwater.jobs.worker import run_worker, start_job, worker_handler

__all__ = [
    "JobError",
    "JobProgress",
    "run_worker",
    "start_job",
    "start_load",
    "worker_handler",
]

__getattr__, __dir__ = exported(
    __name__,
    {
        "JobError": "highwater.jobs.job_table",
        "JobProgress": "highwater.jobs.segments",
        "run_worker": "highwater.jobs.worker",
        "start_job": "highwater.jobs.worker",
        "start_load": "highwater.jobs.load",
        "worker_handler": "highwater.jobs.worker",
    },
)
