"""Rates that follow the table: what is looked at, what is set, and what is told."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from highwater import PacedWorkError, PaceError, Pacer
from highwater.bulk.adaptive import FollowedRate, TableShows
from highwater.bulk.budget import Paid
from highwater.client.hooks import Throttle
from highwater.core import Dimension
from highwater.core.pacing.following import Start
from highwater.core.throttles import ThrottleCause
from tests.client.memory_budget import Record
from tests.client.memory_table import InMemory
from tests.client.virtual_clock import SECOND, Clock

READ, WRITE = Dimension.READ, Dimension.WRITE
T0 = 1_800_000_000


@dataclass
class Account(InMemory):
    """A session, and the clients of DynamoDB, auto scaling and CloudWatch in one."""

    units: dict[str | None, int] = field(default_factory=lambda: {None: 700, "by_status": 350})
    consumed: dict[str | None, dict[int, float]] = field(default_factory=dict)
    scaling: tuple[int, float] | None = (5_000, 70.0)
    denied: frozenset[str] = frozenset()
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def get_credentials(self) -> None:
        """It has none."""

    def describe_table(self, TableName: str) -> dict[str, Any]:
        assert TableName == "orders"
        self._ask("dynamodb", None)
        shown = {i: {"WriteCapacityUnits": u, "ReadCapacityUnits": u + 7} for i, u in self.units.items()}
        indexes = [{"IndexName": i, "ProvisionedThroughput": u} for i, u in shown.items() if i is not None]
        return {"Table": {"ProvisionedThroughput": shown[None], "GlobalSecondaryIndexes": indexes}}

    def describe_scalable_targets(self, ResourceIds: list[str], **more: str) -> dict[str, Any]:
        self._ask("autoscaling", f"{ResourceIds[0]} {more['ScalableDimension']}")
        return {"ScalableTargets": [] if self.scaling is None else [{"MaxCapacity": self.scaling[0]}]}

    def describe_scaling_policies(self, **_: str) -> dict[str, Any]:
        if self.scaling is None:
            return {"ScalingPolicies": []}
        return {"ScalingPolicies": [{"TargetTrackingScalingPolicyConfiguration": {"TargetValue": self.scaling[1]}}]}

    def get_metric_data(self, MetricDataQueries: list[Any], **_: Any) -> dict[str, Any]:
        (query,) = MetricDataQueries
        metric = query["MetricStat"]["Metric"]
        names = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
        index = names.get("GlobalSecondaryIndexName")
        self._ask("cloudwatch", f"{metric['MetricName']} {names['TableName']} {index}")
        found = self.consumed.get(index, {})
        times = [datetime.fromtimestamp(T0, UTC) + timedelta(minutes=minute) for minute in found]
        return {"MetricDataResults": [{"Timestamps": times, "Values": [units * 60 for units in found.values()]}]}

    def _ask(self, service: str, what: str | None) -> None:
        self.asked.append((service, what))
        if service in self.denied:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Ask")


def followed(
    account: Account,
    rate: float | str,
    clock: Clock,
    start: Start = Start.SLOW,
    dimension: Dimension = WRITE,
    **more: Any,
) -> FollowedRate:
    shows = TableShows(table="orders", dimension=dimension, client=account, session=account)
    return FollowedRate(
        pacer=clock.pacer(), wanted=rate, shows=shows, start=start, clock=lambda: T0 + clock.now / SECOND, **more
    )


def rates(pacer: Pacer) -> tuple[float | None, float | None]:
    return pacer.rate("orders", None, WRITE), pacer.rate("orders", "by_status", WRITE)


def test_slow_start_follows_table_and_index_beside_what_others_consume() -> None:
    account, clock = Account(consumed={None: {-3: 200.0, -2: 300.0}, "by_status": {-2: 100.0}}), Clock()
    work = followed(account, 900, clock)
    work.beat()
    assert rates(work.pacer) == (500.0, 300.0)
    account.units = {None: 2_100, "by_status": 350}
    clock.now += 15 * SECOND
    work.beat()
    assert rates(work.pacer) == (900.0, 300.0)
    assert [what for service, what in account.asked if service == "cloudwatch"] == [
        "ConsumedWriteCapacityUnits orders None",
        "ConsumedWriteCapacityUnits orders by_status",
    ], "once a minute"
    assert [what for service, what in account.asked if service == "autoscaling"] == [
        "table/orders dynamodb:table:WriteCapacityUnits",
        "table/orders/index/by_status dynamodb:index:WriteCapacityUnits",
    ], "once in ten minutes"


def test_what_the_work_itself_consumed_is_no_others() -> None:
    account, clock = Account(units={None: 700}), Clock()
    work = followed(account, 900, clock)
    work.beat()
    at = ("orders", (None, WRITE))
    for _ in range(60):
        work.pacer.settle(work.pacer.wait({at: 40.0}), {at: 40.0})
        clock.now = max(clock.now, 0) + 2 * SECOND
        if clock.now % (20 * SECOND) == 0:
            work.beat()
    # in the first minute 20 units a second were its own, and 250 others'
    account.consumed = {None: {0: 270.0}}
    clock.now += 60 * SECOND
    work.beat()
    assert work.pacer.rate("orders", None, WRITE) == pytest.approx(800 - 250, abs=12)


def test_what_other_workers_of_a_shared_budget_consumed_is_no_others() -> None:
    account, clock, record = Account(units={None: 1_000}), Clock(), Record()
    work = followed(account, "60%", clock, Start.FULL)
    work.pacer.shared = record.worker()
    # one clock for both
    work.pacer.clock, work.pacer.pause = lambda: record.now, record.pause
    at = ("orders", (None, WRITE))
    for _ in range(20):
        # a fellow renews its nine tenths of the 600 units a second, so this worker has 60
        record.members = [each for each in record.members if each.id != "fellow"]
        record.add("fellow", share=540_000)
        work.beat()
        work.pacer.settle(work.pacer.wait({at: 360.0}), {at: 360.0})
        clock.now = record.now
    assert work.pacer.share("orders", None, WRITE) == 0.1
    account.consumed = {None: {0: 600.0, 1: 600.0}}
    clock.now += 60 * SECOND
    work.beat()
    assert work.pacer.rate("orders", None, WRITE) == 60.0


def test_reads_of_an_index_share_a_budget_too() -> None:
    account, clock, record = Account(), Clock(), Record()
    work = followed(account, "30%", clock, Start.FULL, READ, index="by_status")
    work.pacer.shared = record.worker()
    work.beat()
    work.pacer.wait({("orders", ("by_status", READ)): 1.0})
    assert (record.writes, record.key["item"]) == (1, {"S": "orders by_status read"})


def test_next_work_with_the_same_pacer_does_not_inherit_what_the_first_set() -> None:
    account, clock = Account(), Clock()
    first = followed(account, "10%", clock, Start.FULL, allow_throttles=True)
    pacer = first.pacer
    pacer.limit_index("orders", "by_day", WRITE, 7)
    with first:
        assert rates(pacer) == (70.0, 35.0)
    second = followed(account, 500, clock, Start.FULL)
    second.pacer = pacer
    with second:
        assert rates(pacer) == (500.0, 500.0)
        # a rate that the caller gave an index stays
        assert pacer.rate("orders", "by_day", WRITE) == 7
        pacer.refund(Paid({}), "orders", WRITE, [Throttle(ThrottleCause.PROVISIONED)])
        assert pacer.rate("orders", None, WRITE) == 350.0


def test_rate_of_an_index_lasts_until_the_last_work_that_set_it_has_ended() -> None:
    account, clock = Account(), Clock()
    first, second = (followed(account, share, clock, Start.FULL, READ, index="by_status") for share in ("10%", "20%"))
    pacer = second.pacer = first.pacer
    with first:
        with second:
            assert pacer.rate("orders", "by_status", READ) == 71.4
        assert pacer.rate("orders", "by_status", READ) == 71.4
    # nothing else limits reads
    assert pacer.rate("orders", "by_status", READ) is None
    pacer.limit_index("orders", "by_status", READ, 7)
    with first:
        pass
    assert pacer.rate("orders", "by_status", READ) == 7


def test_look_that_was_under_way_when_the_work_ended_sets_no_rate() -> None:
    account, clock = Account(), Clock()
    work = followed(account, "10%", clock, Start.FULL)
    with work:
        pass
    work.pacer.limit("orders", WRITE, 500)
    work.beat()
    assert rates(work.pacer) == (500.0, 500.0)


def test_index_with_a_rate_and_a_table_without_one_share_nothing() -> None:
    record = Record()
    pacer = Pacer(clock=lambda: record.now, pause=record.pause, shared=record.worker())
    pacer.limit_index("orders", "by_status", WRITE, 7)
    pacer.wait({("orders", (None, WRITE)): 1.0, ("orders", ("by_status", WRITE)): 1.0})
    assert record.writes == 0


def test_refusals_end_the_use_of_burst_capacity() -> None:
    account, clock = Account(units={None: 700}, consumed={None: {-2: 300.0}}), Clock()
    work = followed(account, 900, clock)
    work.beat()
    work.pacer.refund(Paid({}), "orders", WRITE, [Throttle(ThrottleCause.PROVISIONED)])
    clock.now += 15 * SECOND
    work.beat()
    clock.now += 80 * SECOND
    work.beat()
    # 95 % of the capacity, and what was left of it for 80 seconds
    assert work.pacer.rate("orders", None, WRITE) == pytest.approx(365 + 35 * 80 / 420, abs=0.01)


def test_work_that_may_be_throttled_keeps_its_rate() -> None:
    account, clock = Account(), Clock()
    with followed(account, 900, clock, Start.FULL, allow_throttles=True) as work:
        work.pacer.refund(Paid({}), "orders", WRITE, [Throttle(ThrottleCause.PROVISIONED)])
        assert work.pacer.rate("orders", None, WRITE) == 900.0
    assert account.asked == [], "a rate that does not follow needs no look"


def test_reads_draw_on_the_table_or_on_one_index() -> None:
    account, clock = Account(), Clock()
    work = followed(account, "10%", clock, Start.FULL, dimension=READ, index="by_status")
    assert work.rate() == 35.7
    work.beat()
    assert work.pacer.rate("orders", "by_status", READ) == 35.7
    assert work.pacer.rate("orders", None, READ) is None
    table = followed(account, "10%", clock, Start.FULL, dimension=READ)
    table.beat()
    assert table.pacer.rate("orders", None, READ) == 70.7
    local = followed(account, "10%", clock, Start.FULL, dimension=READ, index="a_local_index")
    assert local.rate() == 70.7


def test_share_is_of_the_capacity_of_each() -> None:
    of_share = followed(Account(), "10%", Clock(), Start.FULL)
    assert of_share.rates([None, "by_status"]) == {None: 70.0, "by_status": 35.0}
    assert followed(Account(), 61, Clock()).rates([None, "by_status"]) == {None: 61.0, "by_status": 61.0}


def test_what_may_not_be_asked_is_guessed_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    account, clock = Account(units={None: 700}, denied=frozenset({"autoscaling", "cloudwatch"})), Clock()
    with caplog.at_level(logging.INFO, "highwater.pace"):
        work = followed(account, 900, clock)
        work.beat()
        clock.now += 61 * SECOND
        work.beat()
    assert work.pacer.rate("orders", None, WRITE) == 310.0
    denied = "An error occurred (AccessDenied) when calling the Ask operation: no"
    assert caplog.messages == [
        f"orders: what others consume is not known: {denied}",
        f"orders: how it is scaled is not known: {denied}",
    ]


def test_share_above_the_target_and_capacity_that_stays_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    account, clock = Account(units={None: 700}), Clock()
    with followed(account, "75%", clock) as work:
        for _ in range(2):
            clock.now += 15 * 60 * SECOND
            work.beat()
        assert len(caplog.messages) == 1, "it has all that it wants"
        account.consumed = {None: {-2: 500.0}}
        clock.now += 61 * SECOND
        work.beat()
    assert caplog.messages == [
        "orders, writes: 75 % of the provisioned capacity is not below auto scaling's target of 70 %: the work itself "
        "drives the capacity up, to the ceiling",
        "orders, writes has stayed at 700 units/s: nothing seems to scale it",
    ]


def test_boost_that_cannot_be_had_makes_a_slow_start(caplog: pytest.LogCaptureFixture) -> None:
    account, clock = Account(units={None: 700}, consumed={None: {-2: 300.0}}), Clock()
    with followed(account, 900, clock, Start.BOOSTED, coordinator="http://127.0.0.1:9/") as work:
        assert work.pacer.rate("orders", None, WRITE) == 500.0
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said.startswith("orders: no boost, so the work starts slowly: ")


@pytest.mark.parametrize(
    ("rate", "start", "said"),
    [
        (0, Start.FULL, "write rate: got 0, allowed: 0.001 or more units per second"),
        (float("inf"), Start.FULL, "write rate: got inf, allowed: 0.001 or more units per second"),
        (float("nan"), Start.FULL, "write rate: got nan, allowed: 0.001 or more units per second"),
        (
            "fast",
            Start.FULL,
            "write rate: got 'fast', allowed: units per second, or a share of the provisioned capacity from '1%' to "
            "'100%'",
        ),
        (
            "101%",
            Start.SLOW,
            "write rate: got '101%', allowed: units per second, or a share of the provisioned capacity from '1%' to "
            "'100%'; a table has no more than its capacity: for a higher rate give units per second",
        ),
        ("50%", Start.BOOSTED, "write rate: got '50%' with a boost; give the units per second to ask for"),
    ],
)
def test_rate_that_makes_no_sense_is_one_line(rate: float | str, start: Start, said: str) -> None:
    with pytest.raises(PaceError) as error:
        followed(Account(), rate, Clock(), start)
    assert str(error.value) == said


def test_table_on_demand_has_nothing_to_follow() -> None:
    with pytest.raises(PacedWorkError) as error, followed(Account(units={None: 0}), 900, Clock()):
        pass
    assert str(error.value) == (
        "pace: table 'orders' is on demand, so a percentage and a slow start have no meaning; pass a rate in units per "
        "second, and start with it"
    )
