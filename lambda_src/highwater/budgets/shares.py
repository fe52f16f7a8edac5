"""Shares of one budget that several workers hold: who may use how much of a rate until when.

All workers of a budget keep one record, with an entry for each (`Member`). A worker changes its own entry only, and on
the condition that the record is as it read it, so that no two entries are computed from the same record. Rates are
thousandths of a unit per second, times are milliseconds since 1970.

The law: at any time, the shares of leases that have not ended add up to the rate at most. A share shrinks as soon as
its worker renews it, and grows only by what nobody holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from highwater.core.documents import DocumentError, read_document

# A lease counts for others until so long after its end, as times are known to the second, and clocks differ.
SKEW_MS: Final = 2_000
# With this much for each worker, and renewals at half of it, all workers together renew once in a second.
_LEASE_MS_PER_MEMBER: Final = 2_000
_SHORTEST_LEASE_MS, _LONGEST_LEASE_MS = 4_000, 60_000
# Entries of workers that are gone are kept for as long, for `known_members`.
_FORGOTTEN_MS: Final = 60_000
# The entry for workers whose entries were lost with a deleted record; it ends when all of their leases have.
_UNKNOWN: Final = ""
# No worker's demand counts as less: one unit a second, so that an idle one can begin at once.
LEAST_WANTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Member:
    """The entry of one worker.

    Attributes:
        id: Its name, unique in the record.
        rate: The rate of the whole budget as this worker was told it, 1 or more.
        wants: What it would use, 0 or more.
        share: What it may use until the end of its lease, 0 or more.
        until: The end of its lease.
    """

    id: str
    rate: int
    wants: int
    share: int
    until: int


def lease_ms(members: int) -> int:
    """Return how long a lease lasts where so many workers share a budget.

    The more there are the longer, so that all together renew about once in a second; for more than 30, at most once in
    30 seconds each.
    """
    return max(_SHORTEST_LEASE_MS, min(members * _LEASE_MS_PER_MEMBER, _LONGEST_LEASE_MS))


def live_members(members: Iterable[Member], now: int) -> list[Member]:
    """Return the entries whose leases may still be in use. One that ends later than any lease could is nobody's."""
    latest = now + _LONGEST_LEASE_MS + SKEW_MS
    return [each for each in members if now - SKEW_MS < each.until <= latest]


def fair_shares(wants: Mapping[str, int], rate: int) -> dict[str, int]:
    """Divide *rate* among workers: nobody gets more than it wants, and what is left over goes to those that want more.

    The shares add up to *rate* at most, and workers that want more than their share differ by one thousandth at most.
    """
    shares: dict[str, int] = {}
    left = rate
    # the least demanding first: what they leave is divided among the others
    ordered = sorted(wants, key=lambda name: (wants[name], name))
    for place, name in enumerate(ordered):
        shares[name] = min(wants[name], left // (len(ordered) - place))
        left -= shares[name]
    return shares


def renewed(
    members: Sequence[Member], id: str, *, now: int, rate: int, wants: int, last: Sequence[Member] = ()
) -> tuple[Member, list[Member]]:
    """Return a worker's new entry, and the record with it.

    A worker whose entry has gone before its lease ended knows that the record was deleted, and that others still use
    what was in it. So it keeps what it has at most, and writes down that the rest of the rate is in use, from which
    those that come after it take what they have.

    Args:
        members: The record.
        id: The worker.
        now: The time.
        rate: The rate of the whole budget as this worker knows it. Where workers know different ones, the lowest
            counts.
        wants: What the worker would use; at least `LEAST_WANTS` is counted.
        last: The record as this worker wrote it last.
    """
    lost = [each for each in live_members(last, now) if each.id == id and all(one.id != id for one in members)]
    if lost:
        members = _with_unknown(live_members(members, now), lost[0], now)
    others = [each for each in live_members(members, now) if each.id != id]
    lowest = min([rate, *(each.rate for each in others)])
    wanted = {each.id: max(each.wants, LEAST_WANTS) for each in others} | {id: max(wants, LEAST_WANTS)}
    fair = fair_shares(wanted, lowest)
    # what nobody asks for is divided evenly, so that a worker's demand may rise within its lease
    spare = (lowest - sum(fair.values())) // len(wanted)
    free = lowest - sum(each.share for each in others)
    most = min([free, *(each.share for each in lost)])
    own = Member(id, rate, wants, max(min(fair[id] + spare, most), 0), now + lease_ms(len(others) + 1))
    latest = now + _LONGEST_LEASE_MS + SKEW_MS
    kept = [each for each in members if each.id != id and now - _FORGOTTEN_MS < each.until <= latest]
    return own, sorted([*kept, own], key=lambda each: each.id)


def _with_unknown(members: Sequence[Member], lost: Member, now: int) -> list[Member]:
    """Return a record that replaces a deleted one, with what others may use of the deleted one besides *lost*."""
    named = [each for each in members if each.id != _UNKNOWN]
    lowest = min([lost.rate, *(each.rate for each in named)])
    most = lowest - sum(each.share for each in named)
    rest = Member(_UNKNOWN, lost.rate, 0, most, now + _LONGEST_LEASE_MS)
    rest = next((each for each in members if each.id == _UNKNOWN), rest)
    # one that knows a higher rate has written down more than there is
    return [*named, replace(rest, share=max(min(rest.share, most) - lost.share, 0))]


def without(members: Iterable[Member], id: str) -> list[Member]:
    """Return the record without a worker that is done."""
    return [each for each in members if each.id != id]


def is_short(own: Member, members: Sequence[Member], now: int) -> bool:
    """Whether a worker has clearly less than its fair share, because others still hold it."""
    # its own lease may be over already, if the process stood still since it was written
    counted = [own, *(each for each in live_members(members, now) if each.id != own.id)]
    lowest = min(each.rate for each in counted)
    fair = fair_shares({each.id: max(each.wants, LEAST_WANTS) for each in counted}, lowest)[own.id]
    return own.share * 10 < fair * 9


def members_text(members: Iterable[Member]) -> str:
    """Write a record down."""
    document = [[each.id, each.rate, each.wants, each.share, each.until] for each in members]
    return json.dumps(document, separators=(",", ":"))


def members_of_text(text: str) -> list[Member]:
    """Read a record; entries that make no sense are left out, as nothing must fail by them."""
    try:
        document = read_document(text)
    except DocumentError:
        return []
    entries = document if isinstance(document, list) else []
    return [Member(*entry) for entry in entries if _is_entry(entry)]


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 5 or not isinstance(entry[0], str):
        return False
    numbers = entry[1:]
    are_whole = all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 10**15 for each in numbers)
    return are_whole and numbers[0] >= 1


def renews_at(own: Member, members: Sequence[Member], now: int) -> int:
    """Return when a worker that renewed *now* renews again: at half of its lease, at a quarter if it `is_short`."""
    parts = 4 if is_short(own, members, now) else 2
    return now + (own.until - now) // parts
