"""Traffic beside other work, which ends when the work is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from highwater_lab.local.load import Load
from highwater_lab.local.load_report import LoadReport


@contextmanager
def sending(*loads: Load) -> Iterator[list[Future[LoadReport]]]:
    """Run the loads in threads; the block gets their reports to come. An exception in the block stops the traffic."""
    with ThreadPoolExecutor(len(loads)) as pool:
        running = [pool.submit(load.run) for load in loads]
        try:
            yield running
        except BaseException:
            for load in loads:
                load.stop()
            raise
