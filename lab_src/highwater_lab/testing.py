"""A helper for users' own tests: checks that a rehearsal stays within limits."""

from __future__ import annotations

from highwater_lab.rehearse import Limits, Rehearsal


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
