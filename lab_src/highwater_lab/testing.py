"""Helpers for users' own tests: a rehearsal stays within limits, and an app has no findings."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from highwater.core import Severity
from highwater_lab.rehearse import Limits, Rehearsal
from highwater_lab.template.synthesized import read_findings


def assert_rehearsal(
    rehearsal: Rehearsal, *, max_throttled_percent: float | None = None, max_cost_per_month: float | None = None
) -> None:
    """Raise `AssertionError`, with the figures and the worst minute, if the policy `declared` exceeds a limit.

    Args:
        rehearsal: The result of `rehearse`.
        max_throttled_percent: The highest percentage of requested units that may be throttled; `None` for no limit.
        max_cost_per_month: The highest cost in USD a month, without one-time charges; `None` for no limit.

    Example:
        ```python
        rehearsal = rehearse("cdk.out", "orders.csv", table="Shop/Orders")
        assert_rehearsal(rehearsal, max_throttled_percent=0.1, max_cost_per_month=900)
        ```
    """
    __tracebackhide__ = True
    limits = Limits(max_throttled_percent=max_throttled_percent, max_cost_per_month=max_cost_per_month)
    exceeded = limits.passed(rehearsal)
    if not exceeded:
        return
    lines = [f"table {rehearsal.setup.name} under {rehearsal.traffic.name}: {limit.text}" for limit in exceeded]
    worst = rehearsal.declared.worst_minute()
    if worst is not None:
        lines.append(f"worst minute: {worst[0]} minutes after the start, {worst[1]:,.0f} units throttled")
    raise AssertionError("\n".join(lines))


def assert_no_findings(app: Any, *, allow: Collection[str] = ()) -> None:
    """Raise `AssertionError`, with each error and warning that Highwater reports for an app on a line of its own.

    Args:
        app: An `aws_cdk.App` or `Stage`, which is synthesized in this process, or the folder of a cloud assembly that
            is there already, such as `cdk.out`.
        allow: Ids of findings that may be there, such as `highwater:indexBelowTable`. By default none.

    Raises:
        TypeError: *app* is nothing that can be synthesized, or *allow* is a text instead of a collection of texts.
        TemplateError: The folder is not a cloud assembly.

    Example:
        ```python
        assert_no_findings(app, allow=["highwater:indexBelowTable"])
        ```
    """
    __tracebackhide__ = True
    if isinstance(allow, str):
        raise TypeError(f"allow: got the text {allow!r}, allowed: a collection of ids; write [{allow!r}]")
    if isinstance(app, str | Path):
        folder = Path(app)
    elif callable(getattr(app, "synth", None)):
        folder = Path(app.synth().directory)
    else:
        kind = type(app).__name__
        raise TypeError(f"app: got a {kind}, allowed: an aws_cdk.App or Stage, or a folder such as 'cdk.out'")
    found = [each for each in read_findings(folder) if each.severity is not Severity.INFO and each.id not in allow]
    if found:
        raise AssertionError("\n".join(f"{each.severity}: {each.text}" for each in found))
