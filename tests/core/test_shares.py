"""Shares of one budget: they never add up to more than the rate, and are fair once everybody has renewed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.budgets.shares import (
    LEAST_WANTS,
    SKEW_MS,
    Member,
    fair_shares,
    is_short,
    lease_ms,
    live_members,
    members_of_text,
    members_text,
    renewed,
    renews_at,
    without,
)

RATE = 600_000
WANTS = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.integers(0, 2 * RATE), min_size=1, max_size=12)


@given(WANTS, st.integers(1, RATE))
def test_fair_shares_use_up_the_rate_and_differ_only_where_one_wants_less(wants: dict[str, int], rate: int) -> None:
    shares = fair_shares(wants, rate)
    assert shares.keys() == wants.keys()
    assert all(0 <= shares[name] <= wants[name] for name in wants)
    assert sum(shares.values()) == min(rate, sum(wants.values()))
    short = [shares[name] for name in wants if shares[name] < wants[name]]
    assert not short or max(shares.values()) <= min(short) + 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abcdefg"),
        st.integers(0, 9_000),
        st.sampled_from([RATE, RATE // 2, 10 * RATE]),
        st.integers(0, 2 * RATE),
    ),
    min_size=1,
    max_size=60,
)


@given(STEPS)
def test_shares_in_use_never_add_up_to_more_than_the_lowest_rate_of_them(
    steps: list[tuple[str, int, int, int]],
) -> None:
    members: list[Member] = []
    now = 1_000_000
    for id, passed, rate, wants in steps:
        now += passed
        before = live_members(members, now)
        own, members = renewed(members, id, now=now, rate=rate, wants=wants)
        live = live_members(members, now)
        assert own in members
        assert own.share <= min(each.rate for each in live)
        # what is held already under a higher rate shrinks at its own renewal; nothing is added to it
        held = sum(each.share for each in live)
        lowest = min(each.rate for each in live)
        assert held <= max(lowest, sum(each.share for each in before if each.id != id))
        assert {each.id: each for each in members if each.id != id}.items() <= {
            each.id: each for each in before
        }.items() | {each.id: each for each in members}.items()


RENEWALS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 3_000), st.integers(0, 2 * RATE)), min_size=1, max_size=30
)
RATES = st.lists(st.sampled_from([RATE, RATE // 2, 10 * RATE]), min_size=5, max_size=5)


@given(RENEWALS, RENEWALS, RATES)
def test_shares_in_use_add_up_to_the_rate_also_after_the_record_was_deleted(
    before: list[tuple[str, int, int]], after: list[tuple[str, int, int]], rates: list[int]
) -> None:
    """A worker that begins before any other has renewed cannot know; the others see its entry when they renew.

    During a deploy workers know different rates, and what is held under the highest one shrinks as its workers renew.
    """
    rate_of = dict(zip("abcde", rates, strict=True))
    record: list[Member] = []
    last: dict[str, list[Member]] = {}
    held: dict[str, Member] = {}
    now = 1_000_000
    for number, (id, passed, wants) in enumerate([*before, *after]):
        if number == len(before):
            record = []
        now += passed
        in_use = live_members(held.values(), now)
        if number >= len(before) and not record and in_use and id not in {each.id for each in in_use}:
            continue
        held[id], record = renewed(record, id, now=now, rate=rate_of[id], wants=wants, last=last.get(id, []))
        last[id] = record
        live = live_members(held.values(), now)
        assert sum(each.share for each in live) <= max(each.rate for each in live)


def test_workers_that_know_different_rates_keep_what_they_have_when_the_record_was_deleted() -> None:
    until = 4_000
    a, b = Member("a", 1_000_000, RATE, 200_000, until), Member("b", 400_000, RATE, 200_000, until)
    record: list[Member] = []
    shares = []
    for each in (a, b):
        own, record = renewed(record, each.id, now=1_000, rate=each.rate, wants=RATE, last=[a, b])
        shares.append(own.share)
    # half a unit a second is kept for workers whose entries were lost
    assert shares == [200_000, 199_500]


def test_worker_that_finds_the_record_deleted_keeps_what_it_has_and_a_new_one_waits_for_the_others() -> None:
    _, first = renewed([], "a", now=1_000, rate=RATE, wants=RATE)
    _, second = renewed(first, "b", now=1_000, rate=RATE, wants=RATE)
    a, third = renewed(second, "a", now=3_000, rate=RATE, wants=RATE)
    b, fourth = renewed(third, "b", now=3_000, rate=RATE, wants=RATE)
    assert (a.share, b.share) == (RATE // 2, RATE // 2)
    a, record = renewed([], "a", now=5_000, rate=RATE, wants=RATE, last=third)
    new, record = renewed(record, "c", now=5_000, rate=RATE, wants=RATE)
    b, record = renewed(record, "b", now=5_000, rate=RATE, wants=RATE, last=fourth)
    assert a.share == RATE // 2, "the whole rate before the record told of others"
    assert new.share == 0
    assert a.share + b.share <= RATE
    later = 5_000 + 60_000 + SKEW_MS
    assert [renewed(record, name, now=later, rate=RATE, wants=RATE)[0].share for name in "abc"] == [RATE] * 3


def _run(workers: int, until: int, *, wants: int = RATE) -> tuple[list[Member], list[int]]:
    """Workers that begin a hundredth of a second apart, and renew when they are due; and when they renewed."""
    due = {f"w{number:02}": number * 10 for number in range(workers)}
    members: list[Member] = []
    times = []
    while (now := min(due.values())) < until:
        name = min(due, key=lambda each: due[each])
        own, members = renewed(members, name, now=now, rate=RATE, wants=wants)
        due[name] = renews_at(own, members, now)
        times.append(now)
        assert sum(each.share for each in live_members(members, now)) <= RATE
    assert wants > LEAST_WANTS
    return members, times


@pytest.mark.parametrize("workers", [1, 2, 6, 20, 30])
def test_workers_that_want_all_have_equal_shares_within_two_leases(workers: int) -> None:
    members, _ = _run(workers, 2 * lease_ms(workers))
    shares = [each.share for each in members]
    assert len(shares) == workers
    assert max(shares) - min(shares) <= 1
    assert sum(shares) >= RATE - workers


@pytest.mark.parametrize("workers", [2, 6, 20, 30])
def test_all_together_renew_about_once_a_second_however_many_they_are(workers: int) -> None:
    _, times = _run(workers, 600_000)
    settled = [at for at in times if at >= 120_000]
    assert 0.95 <= len(settled) / 480 <= 1.05


def test_lease_is_at_least_four_seconds_and_at_most_a_minute() -> None:
    assert [lease_ms(workers) for workers in (1, 2, 3, 30, 1_000)] == [4_000, 4_000, 6_000, 60_000, 60_000]


def test_share_of_a_worker_that_is_gone_is_free_when_its_lease_has_surely_ended() -> None:
    a, members = renewed([], "a", now=0, rate=RATE, wants=RATE)
    assert a == Member("a", RATE, RATE, RATE, 4_000)
    early, members = renewed(members, "b", now=4_000 + SKEW_MS - 1, rate=RATE, wants=RATE)
    assert early.share == 0
    assert is_short(early, members, 4_000 + SKEW_MS - 1)
    late, members = renewed(members, "b", now=4_000 + SKEW_MS, rate=RATE, wants=RATE)
    assert late.share == RATE
    assert not is_short(late, members, 4_000 + SKEW_MS)
    assert [each.id for each in members] == ["a", "b"]
    assert [each.id for each in renewed(members, "b", now=64_000, rate=RATE, wants=RATE)[1]] == ["b"]


def test_entry_that_ends_later_than_any_lease_holds_nothing_and_is_forgotten() -> None:
    wrong = Member("a", RATE, RATE, RATE, 1_000 + lease_ms(1_000) + SKEW_MS + 1)
    own, members = renewed([wrong], "b", now=1_000, rate=RATE, wants=RATE)
    assert own.share == RATE
    assert members == [own]
    right = replace(wrong, until=wrong.until - 1)
    assert renewed([right], "b", now=1_000, rate=RATE, wants=RATE)[0].share == 0


def test_share_that_is_given_back_is_free_at_once() -> None:
    _, members = renewed([], "a", now=0, rate=RATE, wants=RATE)
    b, _ = renewed(without(members, "a"), "b", now=1, rate=RATE, wants=RATE)
    assert b.share == RATE


def test_what_nobody_asks_for_is_divided_evenly() -> None:
    _, members = renewed([], "a", now=0, rate=RATE, wants=60_000)
    assert [each.share for each in members] == [RATE]
    for name in "ba":
        _, members = renewed(members, name, now=0, rate=RATE, wants=60_000 if name == "a" else 100_000)
    assert [each.share for each in members] == [60_000 + 220_000, 0]
    _, members = renewed(members, "b", now=0, rate=RATE, wants=100_000)
    assert [each.share for each in members] == [280_000, 320_000]


def test_worker_that_wants_little_leaves_the_rest_to_others() -> None:
    _, members = renewed([], "a", now=0, rate=RATE, wants=60_000)
    _, members = renewed(members, "b", now=0, rate=RATE, wants=RATE)
    _, members = renewed(members, "a", now=0, rate=RATE, wants=60_000)
    _, members = renewed(members, "b", now=0, rate=RATE, wants=RATE)
    assert [each.share for each in members] == [60_000, 540_000]
    # a wants all now: it gets what nobody holds, and half once b has renewed
    a, members = renewed(members, "a", now=0, rate=RATE, wants=RATE)
    assert a.share == 60_000
    _, members = renewed(members, "b", now=0, rate=RATE, wants=RATE)
    a, members = renewed(members, "a", now=0, rate=RATE, wants=RATE)
    assert [each.share for each in members] == [300_000, 300_000]


@given(st.lists(st.builds(Member, st.text(max_size=4), *[st.integers(1, 10**12)] * 4), max_size=5))
def test_record_is_read_as_it_was_written(members: list[Member]) -> None:
    assert members_of_text(members_text(members)) == members


NO_RECORDS = ["", "{", "7", "{}", "[7]", "[" * 100_000]
NO_ENTRIES = ["1,1,1", "0,1,1,1", "1,1,-1,1", "1,1,1.5,1", "1,1,1,1e400", "true,1,1,1", f"1,1,1,{10**15}"]


@pytest.mark.parametrize("text", [*NO_RECORDS, *(f'[["a",{entry}]]' for entry in NO_ENTRIES), "[[1,1,1,1,1]]"])
def test_entries_that_make_no_sense_are_left_out(text: str) -> None:
    assert members_of_text(text) == []


def test_member_is_replaced_and_not_doubled() -> None:
    own, members = renewed([], "a", now=0, rate=RATE, wants=5_000)
    again, members = renewed(members, "a", now=7, rate=RATE // 2, wants=9_000)
    assert members == [again] == [replace(own, wants=9_000, rate=RATE // 2, share=RATE // 2, until=4_007)]


def test_lease_that_is_over_when_it_is_looked_at_is_short_or_not_like_any_other() -> None:
    own, other = Member("a", RATE, RATE, 100_000, 1_000), Member("b", RATE, RATE, 500_000, 90_000)
    assert is_short(own, [own, other], 80_000)
    assert not is_short(replace(own, share=RATE), [own], 80_000)
