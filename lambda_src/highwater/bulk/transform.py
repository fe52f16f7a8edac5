"""`highwater.transform`: reads a whole table and writes changes of its items, within two budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from highwater.bulk.budget import Pacer, pacer_for
from highwater.bulk.items import Action
from highwater.bulk.scan import ScanProgress, TableScan
from highwater.bulk.send import Rejected
from highwater.bulk.write import PacedWrite, WriteProgress, refuse
from highwater.core.pacing.following import Start


def transform(
    table: str,
    change: Callable[[dict[str, Any]], Iterable[Action] | Action | None],
    *,
    read: float | str,
    write: float | str,
    start: Start | str = Start.FULL,
    allow_throttles: bool = False,
    to: str | None = None,
    index: str | None = None,
    segments: int | None = None,
    checkpoint: str | Path | None = None,
    coordinator: str | None = None,
    reject: Callable[[Rejected], None] | None = None,
    progress: Callable[[ScanProgress, WriteProgress], None] | None = None,
    session: Any = None,
    pacer: Pacer | None = None,
    budget: str | None = None,
    **request: Any,
) -> WriteProgress:
    """Call *change* with each item of a table or index, and write what it returns.

    At most a few pages are read ahead of the writes. A page is done once all its actions are written. With a
    *checkpoint*, work that ended early, or was killed, resumes there, and the pages of the last five seconds are
    processed again. So the actions that *change* returns have to be idempotent: an `Update` with a condition rather
    than a `Put` of the item as it was read, which would undo what others wrote meanwhile.

    Args:
        table: The name of the table to read.
        change: Gets an item, with Python values, and returns a `Put`, `Delete` or `Update`, several, or `None`.
        read: Read units per second, fractions allowed, or a share such as `"30%"`.
        write: Write units per second, likewise.
        start: As for `scan`; applies to reads and writes.
        allow_throttles: As for `scan`; applies to reads and writes.
        to: The name of the table to write to. By default the one that is read.
        index: The name of a global secondary index to read instead of the table.
        segments: As for `scan`.
        checkpoint: A file that records how far the work is. It is deleted at the end.
        coordinator: As for `scan`.
        reject: Called with each action that DynamoDB rejects, numbered from the start of this run. By default the first
            such action ends the work.
        progress: Called after each page.
        session: A boto3 session. By default a new one.
        pacer: Has the budgets; pass one to share them with other work. By default a new one.
        budget: The name of a budget that all workers with this name share; the rate is that of all together. Needs a
            coordinator and `grant_budget`. By default the budget is this process's own.
        **request: As for `scan`.

    Returns:
        The totals of this run.

    Raises:
        PacedWorkError: As for `scan` and `write`.
        PaceError: A rate is below 0.001, or not a rate.

    Example:
        ```python
        def drop_drafts(item):
            return highwater.Delete({"order_id": item["order_id"]}) if item["state"] == "draft" else None


        highwater.transform("orders", drop_drafts, read="30%", write=150)
        ```
    """
    shared = pacer_for("transform", pacer, budget, session, coordinator)
    paced: Any = {"start": start, "allow_throttles": allow_throttles, "coordinator": coordinator}
    scan = TableScan(
        table=table,
        read=read,
        index=index,
        segments=segments,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        session=session,
        pacer=shared,
        request=request,
        **paced,
    )
    told = WriteProgress()

    def seen(at: ScanProgress) -> None:
        """Report progress after a page was read and all its actions were written."""
        if progress is not None:
            progress(at, told)

    writes = PacedWrite(table=to or table, write=write, session=session, pacer=shared, **paced)
    # closed also if *change* raises, so that the checkpoint is written and unlocked
    with writes.opened() as writer, closing(scan.pages(seen)) as pages:
        for page in pages:
            actions = [action for item in page.items for action in _several(change(item))]
            told = told.after(len(actions), writer.write(actions, told.done, reject or refuse))
    return told


def _several(found: Iterable[Action] | Action | None) -> Iterable[Action]:
    if found is None:
        return ()
    return found if isinstance(found, Iterable) else (found,)
