"""Traffic beside other work, which ends when the work is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from acceptance.stage import Stage
from highwater.core import Dimension
from highwater_lab.local.load import Load, LoadReport
from highwater_lab.traffic import Traffic

# Six seconds in all: a full run sends some hundred thousand requests over the internet, and some are not answered
_UNANSWERED_RETRIES: Final = 6
_TOLERANCE: Final = 0.02
# In a local cloud, by its fast clock, half of a busy machine's second
_MOST_BEHIND_SECONDS: Final = {True: 10, False: 30}


def load_of(
    stage: Stage,
    table: str,
    traffic: Traffic,
    *,
    threads: int,
    requests_per_second: int = 100,
    prepare: Callable[[Any], None] | None = None,
) -> Load:
    """Traffic to a table that goes on where AWS fails to answer a request."""
    return Load(
        stage.place,
        table,
        traffic,
        unanswered_retries=_UNANSWERED_RETRIES,
        threads=threads,
        requests_per_second=requests_per_second,
        prepare=prepare,
    )


def check_sent(stage: Stage, report: LoadReport, asked: float, to: str) -> None:
    """Check that *asked* write units were sent, and in time: otherwise what was measured beside them means nothing."""
    sent, behind = report.total(Dimension.WRITE, "asked"), report.most_behind_seconds
    most = _MOST_BEHIND_SECONDS[stage.place.is_real]
    ended = f"; ended by: {report.failure}" if report.failure else ""
    stage.check(
        f"units that the load generator sent to {to}",
        f"{asked:,.0f} and no request late by {most} s",
        f"{sent:,.0f}, the latest request {behind:.0f} s late{ended}",
        holds=not ended and abs(sent - asked) <= asked * _TOLERANCE and behind <= most,
    )


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
