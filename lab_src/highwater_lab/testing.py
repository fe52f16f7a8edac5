"""For users' own tests: hold a plan to its limits."""

from __future__ import annotations

from highwater_lab.rehearse import Limits, Rehearsal


def assert_rehearsal(
    rehearsal: Rehearsal, *, max_throttled_percent: float | None = None, max_cost_per_month: float | None = None
) -> None:
    """Fail, with the figures and when it was worst, where what is declared passes a limit.

    Args:
        rehearsal: What `rehearse` gave.
        max_throttled_percent: Percent of the units asked for that may be throttled.
        max_cost_per_month: USD a month that it may cost, without what is paid once.
    """
    __tracebackhide__ = True
    limits = Limits(max_throttled_percent=max_throttled_percent, max_cost_per_month=max_cost_per_month)
    passed = limits.passed(rehearsal)
    if not passed:
        return
    lines = [f"table {rehearsal.setup.name} under {rehearsal.traffic.name}: {found.text}" for found in passed]
    worst = rehearsal.declared.worst_minute()
    if worst is not None:
        lines.append(f"worst minute: {worst[0]} minutes after the start, {worst[1]:,.0f} units throttled")
    raise AssertionError("\n".join(lines))
