"""Workers of a shared budget that lose their leases: the table is silent, the worker was frozen, an answer was lost."""

from __future__ import annotations

from typing import Any

import pytest

from highwater import Pacer
from highwater.budgets.shares import lease_ms, members_of_text
from highwater.core.units import Dimension
from tests.client.memory_budget import AT, GONE, LANE, RATE, SECOND, Record, SilentForCarts


@pytest.mark.parametrize("leases", [1.0, 1.5, 3.0])
def test_batch_work_stops_at_the_end_of_its_lease_until_the_table_answers(
    leases: float, caplog: pytest.LogCaptureFixture
) -> None:
    record = Record()
    worker = record.worker()
    worker.enter(LANE, RATE, 0)
    began, record.error = record.now, GONE
    length = lease_ms(1) * SECOND // 1_000
    ends = began + round(leases * length)
    sent = []

    def back_in_time(seconds: float) -> None:
        record.now += round(seconds * SECOND)
        if record.now >= ends:
            record.error = None

    worker.pause = back_in_time
    while record.now < began + 4 * length:
        worker.enter(LANE, RATE, 0)
        sent.append(record.now - began)
        record.now += SECOND // 4
        if record.now >= ends:
            record.error = None
    without = [at for at in sent if length <= at < round(leases * length)]
    assert without == []
    assert max(sent) >= 3 * length
    assert min(at for at in sent if at >= round(leases * length)) <= round(leases * length) + 2 * SECOND
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warnings == [
        "budget nightly: no lease could be renewed: Could not connect to the endpoint URL: "
        '"https://dynamodb.eu-west-1.amazonaws.com/"'
    ]


def test_share_that_was_given_up_by_a_write_whose_answer_is_lost_is_used_no_more() -> None:
    record = Record()
    worker, other = record.worker(), record.worker()
    assert worker.enter(LANE, RATE, 0).milliunits == RATE
    # the other one is there, and waits for its part
    record.add(other._id, wants=RATE)
    record.now += 2 * SECOND
    record.loses_answer = True
    held = worker.enter(LANE, RATE, 0).milliunits
    record.loses_answer = False
    assert other.enter(LANE, RATE, 0).milliunits + held <= RATE


def test_service_falls_to_its_part_of_the_rate_by_the_workers_known_last() -> None:
    record = Record()
    for name in ("a", "b"):
        record.add(name, share=100_000, wants=100_000)
    worker = record.worker(when_lost="known share")
    assert worker.enter(LANE, RATE, 0).milliunits == 400_000
    record.error = GONE
    record.now += 30 * SECOND
    assert worker.enter(LANE, RATE, 0).milliunits == RATE // 3
    assert worker.may_send(LANE)
    record.error = None
    record.now += 2 * SECOND
    assert worker.enter(LANE, RATE, 0).milliunits == RATE


def test_service_that_starts_while_the_table_is_silent_waits_for_its_first_lease() -> None:
    record = Record(error=GONE)
    worker = record.worker(when_lost="known share")
    began = record.now

    def back_in_time(seconds: float) -> None:
        record.pause(seconds)
        record.error = GONE if record.now < began + 90 * SECOND else None

    worker.pause = back_in_time
    assert not worker.may_send(LANE)
    assert worker.enter(LANE, RATE, 0).milliunits == RATE
    assert 90 * SECOND <= record.now - began <= 92 * SECOND


def test_services_that_all_start_while_the_table_is_silent_keep_to_the_rate_by_their_stated_number() -> None:
    record = Record(error=GONE)
    pacers = [
        Pacer(
            clock=lambda: record.now,
            pause=record.pause,
            starts_full=False,
            shared=record.worker(when_lost="known share", workers=8),
        )
        for _ in range(8)
    ]
    began, sent = record.now, list[int]()
    for pacer in pacers:
        pacer.limit("orders", Dimension.WRITE, 600)
    while record.now < began + 20 * SECOND:
        # whoever may send at once does so
        while ready := [pacer for pacer in pacers if not pacer.seconds_until({AT: 1.0})]:
            for pacer in ready:
                pacer.wait({AT: 1.0})
                sent.append(record.now)
        record.now += SECOND // 4
    for seconds in (1, 5, 20):
        most = max(sum(at <= each < at + seconds * SECOND for each in sent) for at in sent[::100])
        assert most <= 600 * (seconds + 1)
    assert len(sent) >= 600 * 18
    # once the table answers they lease, and what was stated divides nothing any more
    record.error = None
    assert record.worker(when_lost="known share", workers=8).enter(LANE, RATE, 0).milliunits == RATE


def test_service_that_loses_its_lease_divides_by_the_stated_number_if_it_knew_fewer() -> None:
    record = Record()
    worker = record.worker(when_lost="known share", workers=5)
    assert worker.enter(LANE, RATE, 0).milliunits == RATE
    record.error = GONE
    record.now += 30 * SECOND
    assert worker.enter(LANE, RATE, 0).milliunits == RATE // 5


@pytest.mark.parametrize("clock", ["monotonic", "wall"])
def test_worker_that_was_frozen_past_its_lease_does_not_send_before_it_has_another(clock: str) -> None:
    record = Record()
    pacer = Pacer(clock=lambda: record.now, pause=record.pause, shared=record.worker())
    pacer.limit("orders", Dimension.WRITE, 600)
    pacer.wait({AT: 1.0})
    shared = pacer.shared
    assert shared is not None
    assert shared.may_send(LANE)
    # a suspended machine's monotonic clock stands still
    record.now += 0 if clock == "wall" else 10 * SECOND
    record.frozen += 10.0 if clock == "wall" else 0.0
    assert not shared.may_send(LANE)
    record.add("other", share=450_000)
    pacer.wait({AT: 1.0})
    assert pacer.rate("orders", None, Dimension.WRITE) == 150.0


def test_request_whose_lease_ends_while_it_waits_is_not_sent_before_the_next_one() -> None:
    record = Record()
    pacer = Pacer(clock=lambda: record.now, pause=record.pause, shared=record.worker(), starts_full=False)
    pacer.limit("orders", Dimension.WRITE, 1)
    pacer.wait({AT: 1.0})
    writes = record.writes
    # eight units at one a second, of which one may be ahead: the lease of four seconds ends meanwhile
    pacer.wait({AT: 8.0})
    pacer.wait({AT: 1.0})
    assert record.writes > writes + 1


def test_request_of_two_tables_is_not_sent_before_both_leases_last() -> None:
    record = SilentForCarts()
    shared = record.worker()
    pacer = Pacer(clock=lambda: record.now, pause=record.pause, shared=shared, starts_full=False)
    lanes = [(table, None, Dimension.WRITE) for table in ("orders", "carts")]
    for table, *_ in lanes:
        pacer.limit(table, Dimension.WRITE, 1)
    # forty units at one a second: the next request waits for its turn
    pacer.wait(dict.fromkeys([AT, ("carts", AT[1])], 40.0))
    # both leases end while the request waits for its turn; that of orders does so again while carts has no answer
    record.silent_until = record.now + 120 * SECOND
    pacer.wait(dict.fromkeys([AT, ("carts", AT[1])], 1.0))
    assert record.now >= record.silent_until
    assert [shared.may_send(lane) for lane in lanes] == [True, True]


@pytest.mark.parametrize("others", [0, 1, 30])
def test_worker_that_is_frozen_past_its_lease_while_it_renews_it_goes_on(others: int) -> None:
    record = Record()
    for number in range(others):
        record.add(f"other-{number}", share=1_000, wants=1_000, seconds=55)
    pacer = Pacer(clock=lambda: record.now, pause=record.pause, shared=record.worker(), starts_full=False)
    pacer.limit("orders", Dimension.WRITE, 600)
    pacer.settle(pacer.wait({AT: 1.0}), {AT: 1.0})
    record.now += 40 * SECOND

    def freeze() -> None:
        record.now += 70 * SECOND

    record.before_write = freeze
    pacer.wait({AT: 1.0})
    assert pacer.shared is not None
    assert pacer.shared.may_send(LANE)


def test_share_that_shrinks_is_used_no_more_while_the_answer_is_on_its_way() -> None:
    record = Record()
    worker = record.worker()
    assert worker.enter(LANE, RATE, 0).milliunits == RATE
    record.add("other", wants=RATE)
    record.now += 2 * SECOND
    worker.note(LANE, has_waited=True)
    meanwhile: list[int] = []
    # another thread of this worker sends while the record is written
    record.before_write = lambda: meanwhile.append(worker._leases[LANE].held.milliunits)
    assert worker.enter(LANE, RATE, 0).milliunits == RATE // 2
    assert meanwhile == [RATE // 2]


@pytest.mark.parametrize(
    "version",
    [{"N": "0.5"}, {"N": "1E+30"}, {"N": "-1"}, {"N": "9" * 38}, {"S": "x"}, {"BOOL": True}, {"NULL": True}],
    ids=str,
)
@pytest.mark.parametrize(
    "members", [{"S": "[]"}, {"S": "{"}, {"S": "[" * 100_000}, {"N": "5"}], ids=lambda each: str(each)[:20]
)
def test_record_that_somebody_else_has_changed_is_replaced(version: dict[str, Any], members: dict[str, Any]) -> None:
    record = Changed(item={"version": version, "members": members})
    assert record.worker().enter(LANE, RATE, 0).milliunits == RATE
    assert members_of_text(record.item["members"]["S"])[0].share == RATE


def test_workers_keep_to_the_rate_when_the_record_is_deleted() -> None:
    record = Record()
    worker, other = record.worker(), record.worker()
    worker.enter(LANE, RATE, 0)
    # the other one is there, and waits for its part
    record.add(other._id, wants=RATE)
    record.now += 2 * SECOND
    worker.note(LANE, has_waited=True)
    assert [each.enter(LANE, RATE, 0).milliunits for each in (worker, other)] == [RATE // 2, RATE // 2]
    record.members, record.version = [], 0
    record.now += 2 * SECOND
    for each in (worker, other):
        # it asks for as much as there is
        each.note(LANE, has_waited=True)
    # for as long as there may be others, as much as an idle one needs is left to them
    assert [each.enter(LANE, RATE, 0).milliunits for each in (worker, other)] == [RATE // 2, (RATE - 1_000) // 2]


@pytest.mark.parametrize(("share", "rate"), [(0, 1), (RATE, RATE)], ids=["lowest-rate", "whole-rate"])
def test_entry_that_leaves_nothing_to_others_does_so_for_a_minute(share: int, rate: int) -> None:
    record = Record()
    record.add("other", share=share, rate=rate, seconds=60)
    worker, began = record.worker(), record.now
    while worker.enter(LANE, RATE, 0).milliunits < RATE // 2:
        record.now += SECOND
    assert record.now - began <= 70 * SECOND


class Changed(Record):
    """A record that is kept as DynamoDB keeps it, whatever it is."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__()
        self.item = item

    def get_item(self, **_: Any) -> dict[str, Any]:
        return self._answer({"Item": self.item})

    def update_item(self, **request: Any) -> dict[str, Any]:
        values = request["ExpressionAttributeValues"]
        assert values[":old"] == self.item["version"]
        self.item = {"version": values[":new"], "members": values[":members"]}
        return self._answer({})
