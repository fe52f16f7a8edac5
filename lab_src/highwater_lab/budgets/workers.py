"""The workers of a simulated job, which share a budget by the runtime's own leases."""

from __future__ import annotations

import heapq
from typing import Final

from highwater.budgets.shares import Member, renewed, renews_at

_SECOND_MS: Final = 1_000


class Workers:
    """The workers of one job, which share its rate as real ones do: each leases a part of it, and renews the lease.

    All of them begin at once, and each would use the whole rate alone.
    """

    def __init__(self, count: int) -> None:
        self._due = [(0, f"{number:03}") for number in range(count)]
        self._members: list[Member] = []

    def may_use(self, now: int, rate: int) -> int:
        """Return what all of them may use in the second from *now* on, in thousandths of a unit per second.

        Args:
            now: Milliseconds since 1970.
            rate: The rate that they share.
        """
        while self._due[0][0] < now + _SECOND_MS:
            due, id = heapq.heappop(self._due)
            at = max(due, now)
            own, self._members = renewed(self._members, id, now=at, rate=rate, wants=rate)
            heapq.heappush(self._due, (renews_at(own, self._members, at), id))
        # leases of a higher rate are still held for a while after it has fallen
        return min(sum(each.share for each in self._members), rate)
