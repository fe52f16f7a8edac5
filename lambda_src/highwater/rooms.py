"""The rooms: features that can be taken out whole, each a folder of one name in every distribution that needs it.

Nothing else imports a room, so that what is left runs without it. Their commands are entry points of the distribution,
their public names are in the package of the room. What the rest of the runtime needs of one, it gets here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from highwater.bulk.sharing import Sharing

# each room, and the rooms that it imports itself
ROOMS: Final[dict[str, tuple[str, ...]]] = {
    "budgets": (),
    "jobs": ("budgets",),
    "queues": ("budgets",),
    "shards": (),
}


def shared_budget(name: str, session: Any, coordinator: str | None) -> Sharing:
    """Return the budget of a name, which workers share: a `highwater.budgets.SharedBudget`.

    Raises `ValueError` for a name that is not allowed, and `TypeError` for what is no session.
    """
    made: Sharing = import_module("highwater.budgets").SharedBudget(name=name, session=session, coordinator=coordinator)
    return made
