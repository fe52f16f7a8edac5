"""One worker's leases of a shared budget, against a record in memory that other workers write too."""

from __future__ import annotations

import gc
import logging
import os
import re
import weakref
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

import highwater
from highwater import PaceError, Pacer, Put
from highwater.budgets import SharedBudget, SharedBudgetError
from highwater.budgets.shared import WhenLost
from highwater.bulk.send import BatchSender, PageReader
from highwater.calls.attempts import client_config
from highwater.core.pacing.pages import PageSize
from highwater.core.units import Dimension
from tests.client.memory_budget import AT, GONE, LANE, RATE, SECOND, Record
from tests.client.memory_writes import jobs_of
from tests.client.scripted import ITEM, DynamoDB, throttled


def test_worker_alone_has_the_whole_rate_and_renews_at_half_of_its_lease() -> None:
    record = Record()
    worker = record.worker()
    assert worker.enter(LANE, RATE, 0).milliunits == RATE
    assert record.key == {"table": {"S": "budget#nightly"}, "item": {"S": "orders write"}}
    for _ in range(40):
        record.now += SECOND // 2
        assert worker.enter(LANE, RATE, 0).milliunits == RATE
    # a lease of four seconds, of which up to one is lost as times are told to the second
    assert 8 <= record.writes <= 14
    assert record.writes == worker.renewals(LANE)


def test_each_table_index_that_is_read_and_dimension_has_a_record_of_its_own() -> None:
    record = Record()
    worker = record.worker()
    worker.enter(("orders", "by_status", Dimension.READ), RATE, 0)
    assert record.key["item"] == {"S": "orders by_status read"}


def test_joiner_waits_until_somebody_has_made_room() -> None:
    record = Record()
    record.add("other", share=RATE, seconds=3)
    began = record.now
    assert record.worker().enter(LANE, RATE, 0).milliunits == RATE
    # until the other's lease, and two seconds for clocks that differ, are over
    assert 5 * SECOND - SECOND <= record.now - began <= 7 * SECOND
    assert record.writes <= 8


def test_joiner_without_a_share_rests_until_it_may_ask_again() -> None:
    record, pauses = Record(), list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        record.pause(seconds)

    for number in range(19):
        record.add(f"other-{number}", share=RATE * (number == 0), seconds=30)
    worker = record.worker()
    # a lease among twenty is of 40 seconds, and it asks at a quarter of it
    worker.pause = pause
    assert worker.enter(LANE, RATE, 0).milliunits > 0
    assert sum(pauses) >= 30
    assert len(pauses) <= 2 * sum(pauses)


def test_worker_makes_room_for_others_at_its_next_renewal_and_the_lowest_rate_counts() -> None:
    record = Record()
    worker = record.worker()
    assert worker.enter(LANE, RATE, 0).milliunits == RATE
    record.add("other", rate=RATE // 2)
    assert worker.enter(LANE, RATE, 0).milliunits == RATE
    record.now += 2 * SECOND
    worker.note(LANE, has_waited=True)
    assert worker.enter(LANE, RATE, 0).milliunits == RATE // 4
    # of what it does not use, it keeps half while the other asks for nothing more


def test_share_follows_what_was_used_unless_requests_had_to_wait() -> None:
    record = Record()
    record.add("other", share=RATE // 2, wants=10 * RATE, seconds=55)
    worker = record.worker()
    assert worker.enter(LANE, RATE, 0).milliunits == RATE // 2
    spent = 0
    for _ in range(6):
        record.now += 3 * SECOND
        spent += 3 * 60_000
        worker.note(LANE, has_waited=False)
        share = worker.enter(LANE, RATE, spent).milliunits
    # 60 units a second were used, and a quarter more is asked for
    assert 70_000 <= share <= 80_000
    worker.note(LANE, has_waited=True)
    record.now += 3 * SECOND
    assert worker.enter(LANE, RATE, spent).milliunits == RATE // 2


def test_write_that_loses_against_another_workers_is_computed_anew() -> None:
    record = Record()
    record.before_write = lambda: record.add("other", share=200_000)
    assert record.worker().enter(LANE, RATE, 0).milliunits == RATE // 2
    assert (record.losses, record.writes, record.reads) == (1, 1, 2)


def _put(client: Any, _pacer: Pacer) -> None:
    client.put_item(TableName="orders", Item=ITEM)


def _send(count: int) -> Callable[[Any, Pacer], None]:
    def send(client: Any, pacer: Pacer) -> None:
        jobs = jobs_of([Put({"pk": str(number), "x": "y" * (30_000 // count)}) for number in range(count)])
        BatchSender(client, pacer, "orders").send(jobs)

    return send


def _read(client: Any, pacer: Pacer) -> None:
    size = PageSize(200_000, is_consistent=False)
    PageReader(client, pacer, "orders", None, size, {"TableName": "orders"}).read(0, None)


DONE = {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": 30.0}, "ScannedCount": 10, "Items": []}
SENT_BATCH = {"ConsumedCapacity": [DONE["ConsumedCapacity"]]}
FAILED = (500, {"__type": "InternalServerError"})
LEFT = {"UnprocessedItems": {"orders": [{"PutRequest": {"Item": {"pk": {"S": "1"}, "x": {"S": "y" * 15_000}}}}]}}


@pytest.mark.parametrize(
    ("dimension", "attempts", "send", "done", "failures"),
    [
        pytest.param(Dimension.WRITE, 3, _put, DONE, [FAILED] * 2, id="request of a paced session"),
        pytest.param(Dimension.WRITE, 1, _send(1), DONE, [FAILED] * 2, id="put"),
        pytest.param(Dimension.WRITE, 1, _send(2), SENT_BATCH, [(200, SENT_BATCH | LEFT)], id="rest of a batch"),
        pytest.param(Dimension.READ, 1, _read, DONE, [FAILED] * 2, id="page"),
    ],
)
def test_request_that_is_sent_again_asks_for_no_larger_share(
    dynamodb: tuple[DynamoDB, boto3.Session, str],
    monkeypatch: pytest.MonkeyPatch,
    dimension: Dimension,
    attempts: int,
    send: Callable[[Any, Pacer], None],
    done: dict[str, Any],
    failures: list[tuple[int, dict[str, Any]]],
) -> None:
    server, session, url = dynamodb
    record = Record()
    monkeypatch.setattr("botocore.endpoint.time.sleep", record.pause)
    record.add("other", share=RATE // 2, wants=RATE, seconds=55)
    pacer = Pacer(clock=lambda: record.now, pause=record.pause, shared=record.worker(), starts_full=False)
    pacer.limit("orders", dimension, 600)
    pacer.ignore_throttles("orders", dimension)
    if attempts > 1:
        highwater.pace(session, write=600, pacer=pacer)
    client = session.client("dynamodb", endpoint_url=url, config=client_config(attempts))
    server.answers = [(200, done)]
    for _ in range(6):
        record.now += SECOND
        send(client, pacer)
    server.answers = [*failures, (200, done)]
    for _ in range(2):
        record.now += 2 * SECOND
        send(client, pacer)
    # about 30 units a second were used, and a quarter more is asked for, although the later attempts had to wait
    assert [each.wants <= 60_000 for each in record.members if each.id != "other"] == [True]
    client.close()


def test_worker_whose_requests_are_throttled_and_tried_again_leaves_a_calm_one_its_share(
    dynamodb: tuple[DynamoDB, boto3.Session, str],
) -> None:
    server, session, url = dynamodb
    record = Record()
    calm = Pacer(clock=lambda: record.now, pause=record.pause, shared=record.worker(), starts_full=False)
    calm.limit("orders", Dimension.WRITE, 600)

    def meanwhile(seconds: float) -> None:
        record.pause(seconds)
        calm.settle(calm.wait({AT: 1.0}), {AT: 1.0})

    worker = record.worker()
    worker.pause = meanwhile
    throttling = Pacer(clock=lambda: record.now, pause=meanwhile, shared=worker, starts_full=False)
    highwater.pace(session, write=600, pacer=throttling)
    client = session.client("dynamodb", endpoint_url=url, config=client_config(3))
    answer = (200, {"ConsumedCapacity": {"TableName": "orders", "CapacityUnits": 6.0}})
    began, shares = record.now, []
    for number in range(800):
        # 470 units a second of one, and 60 of the other, each of whose requests is throttled twice in 5 of 40 seconds
        record.now = max(record.now, began + number * SECOND // 10)
        calm.settle(calm.wait({AT: 47.0}), {AT: 47.0})
        seconds = (record.now - began) / SECOND
        server.answers = [throttled(), throttled(), answer] if seconds % 40 >= 35 else [answer]
        client.put_item(TableName="orders", Item=ITEM)
        if seconds > 20:
            shares.append((calm.rate("orders", *AT[1]), min(each.wants for each in record.members)))
    assert throttling.spent("orders", *AT[1])[1] > 100
    assert min(share or 0 for share, _ in shares) >= 500
    assert max(wants for _, wants in shares) <= 100_000
    client.close()


def test_shadow_counts_what_would_have_waited_and_waits_for_nothing() -> None:
    pacer = Pacer(clock=lambda: 7, pause=lambda _: pytest.fail("a shadow waits"), is_shadow=True, starts_full=False)
    pacer.limit("orders", Dimension.WRITE, 10)
    for _ in range(3):
        pacer.wait({AT: 10.0})
    assert pacer.shadow_seconds == pytest.approx(1 + 2 + 3)
    # the next one would be sent after three seconds, which have not passed
    assert pacer.seconds_behind() == pytest.approx(3, abs=0.001)


def test_share_is_given_back_and_the_next_request_leases_anew() -> None:
    record = Record()
    pacer = Pacer(clock=lambda: record.now, pause=record.pause, shared=record.worker())
    pacer.limit("orders", Dimension.WRITE, 600)
    pacer.wait({AT: 1.0})
    assert [each.share for each in record.members] == [RATE]
    pacer.give_back("carts")
    assert len(record.members) == 1
    pacer.give_back("orders")
    assert record.members == []
    pacer.wait({AT: 1.0})
    assert [each.share for each in record.members] == [RATE]
    record.error = GONE
    pacer.give_back()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}, "GetItem"),
            "An error occurred (AccessDeniedException) when calling the GetItem operation: not authorized",
        ),
        (
            ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "no such table"}}, "GetItem"),
            "An error occurred (ResourceNotFoundException) when calling the GetItem operation: no such table",
        ),
    ],
)
def test_worker_without_a_grant_is_told_so_at_its_first_request(error: ClientError, why: str) -> None:
    record = Record(error=error)
    with pytest.raises(SharedBudgetError) as refused:
        record.worker().enter(LANE, RATE, 0)
    assert str(refused.value) == (
        f"budget nightly: its record cannot be written: {why}; give the role grant_budget in the CDK app, and deploy"
    )


def test_permission_that_is_lost_later_stops_batch_work_as_a_silent_table_does() -> None:
    record = Record()
    worker = record.worker()
    worker.enter(LANE, RATE, 0)
    record.error = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetItem")
    record.now += 60 * SECOND
    assert not worker.may_send(LANE)

    def granted(seconds: float) -> None:
        record.pause(seconds)
        record.error = None

    worker.pause = granted
    assert worker.enter(LANE, RATE, 0).milliunits == RATE


def test_budget_that_holds_no_share_is_not_kept_until_the_process_ends() -> None:
    record = Record()
    kept, dropped = record.worker(), record.worker()
    for worker in (kept, dropped):
        worker.enter(LANE, RATE, 0)
    dropped.leave(LANE)
    seen = [weakref.ref(worker) for worker in (kept, dropped)]
    del worker, kept, dropped
    gc.collect()
    # what still holds a share gives it back when the process ends
    assert [each() is not None for each in seen] == [True, False]
    holds = seen[0]()
    assert holds is not None
    holds.leave()


def test_forked_worker_is_a_worker_of_its_own() -> None:
    record = Record()
    worker = record.worker()
    worker.enter(LANE, RATE, 0)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        ended = 1
        try:
            worker.enter(LANE, RATE, 0)
            os.write(writing, str(len({each.id for each in record.members})).encode())
            ended = 0
        finally:
            os._exit(ended)
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert os.read(reading, 10) == b"2"
    os.close(reading)


@pytest.mark.parametrize("name", ["", "n" * 122])
def test_name_is_checked(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"budget: name: got {name[:120]!r}, allowed: 1 to 121 characters")):
        SharedBudget(name=name)


def test_what_to_do_without_the_table_is_checked() -> None:
    with pytest.raises(ValueError, match=r"^budget b: when_lost: got 'go on', allowed: 'stop', 'known share'$"):
        SharedBudget(name="b", when_lost="go on")  # type: ignore[arg-type] # that is the test


@pytest.mark.parametrize(
    ("workers", "when_lost"), [(0, "known share"), (7, "stop"), (Decimal("NaN"), "known share"), (1.5, "known share")]
)
def test_number_of_workers_is_checked(workers: Any, when_lost: WhenLost) -> None:
    message = f"budget b: workers: got {workers} with when_lost={when_lost!r}, allowed: 1 or more with 'known share'"
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}$"):
        SharedBudget(name="b", when_lost=when_lost, workers=workers)


def test_log_does_not_repeat_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "highwater.pace")
    record = Record()
    worker = record.worker(when_lost="known share")
    worker.enter(LANE, RATE, 0)
    record.error = GONE
    for _ in range(200):
        record.now += SECOND
        worker.enter(LANE, RATE, 0)
    levels = [each.levelname for each in caplog.records]
    assert levels.count("WARNING") == 4
    assert levels.count("DEBUG") > 20


def test_rate_that_is_not_valid_is_refused_as_before() -> None:
    with pytest.raises(PaceError):
        Pacer(shared=Record().worker()).limit("orders", Dimension.WRITE, 0)


def test_pace_shares_a_budget_by_its_name() -> None:
    session = _session()
    pacing = highwater.pace(session, write=60, table="orders", budget="nightly")
    shared = pacing.pacer.shared
    assert isinstance(shared, SharedBudget)
    assert (shared.name, shared.session, pacing.pacer.starts_full) == ("nightly", session, False)
    pacing.stop()
    shadow = highwater.pace(session, write=60, table="orders", budget="nightly", is_shadow=True)
    assert (shadow.pacer.shared, shadow.pacer.is_shadow) == (None, True)
    shadow.stop()


def test_session_that_shares_a_budget_may_be_paced_again_with_it() -> None:
    session = _session()
    pacing = highwater.pace(session, write=60, table="orders", budget="nightly")
    assert highwater.pace(session, write=30, table="carts", budget="nightly") is pacing
    assert highwater.pace(session, write=50, table="orders", indexes={"by_status": 7}, budget="nightly") is pacing
    assert highwater.pace(session, table="orders", indexes={"by_status": 8}, budget="nightly") is pacing
    found = [pacing.pacer.rate(table, None, Dimension.WRITE) for table in ("orders", "carts")]
    assert (found, pacing.pacer.rate("orders", "by_status", Dimension.WRITE)) == ([50.0, 30.0], 8.0)
    for other in ({"budget": "weekly"}, {"is_shadow": True}, {"pacer": Pacer()}):
        with pytest.raises(PaceError) as refused:
            highwater.pace(session, write=60, table="orders", **other)
        message = "pace: another pacer has the budgets of this session or client; stop its pacing first"
        assert str(refused.value) == message
    pacing.stop()


def test_budget_of_an_index_alone_cannot_be_shared() -> None:
    with pytest.raises(PaceError) as refused:
        highwater.pace(_session(), table="orders", indexes={"by_status": 7}, budget="nightly")
    message = "pace: indexes: workers share the budget of their table's writes; give write too"
    assert str(refused.value) == message


@pytest.mark.parametrize("what", ["scan", "write", "transform"])
def test_work_takes_a_pacer_or_a_budget(what: str) -> None:
    given: dict[str, Any] = {"pacer": Pacer(), "budget": "nightly"}
    calls: dict[str, Callable[[], Any]] = {
        "scan": lambda: next(highwater.scan("orders", read=7, session=_session(), **given)),
        "write": lambda: highwater.write("orders", [], write=7, session=_session(), **given),
        "transform": lambda: highwater.transform("orders", lambda _: None, read=7, write=7, **given),
    }
    with pytest.raises(PaceError) as refused:
        calls[what]()
    assert str(refused.value) == f"{what}: give either pacer or budget; a pacer has shared="


def test_pace_takes_a_pacer_or_a_budget() -> None:
    with pytest.raises(PaceError) as refused:
        highwater.pace(_session(), write=7, pacer=Pacer(), budget="nightly")
    assert str(refused.value) == "pace: give either pacer or budget and is_shadow; a pacer has shared= and is_shadow="
    with pytest.raises(PaceError) as refused:
        highwater.pace(_session(), write=7, budget="")
    assert str(refused.value) == "budget: name: got '', allowed: 1 to 121 characters"


def _session() -> boto3.Session:
    return boto3.Session(aws_access_key_id="k", aws_secret_access_key="s", region_name="eu-west-1")
