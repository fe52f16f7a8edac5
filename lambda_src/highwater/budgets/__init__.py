"""One budget of capacity for many workers, each of which leases a share of it.

`SharedBudget` is given to a `highwater.Pacer`; `highwater.pace(..., budget="nightly")` and its like make one. This room
leaves after jobs and queues, which share budgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from highwater.exports import exported

if TYPE_CHECKING:
    from highwater.budgets.shared import SharedBudget
    from highwater.bulk.sharing import SharedBudgetError

__all__ = [
    "SharedBudget",
    "SharedBudgetError",
]

__getattr__, __dir__ = exported(
    __name__,
    {
        "SharedBudget": "highwater.budgets.shared",
        "SharedBudgetError": "highwater.bulk.sharing",
    },
)
