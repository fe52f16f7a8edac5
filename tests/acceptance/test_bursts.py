"""What becomes of burst capacity at a raise: the seconds that each rule leads to, and the rule that a table went by."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acceptance.cdk import Cdk
from acceptance.parts.bursts import burst, datapoint_age, expected_seconds, judge
from acceptance.tables import BURST_UNITS
from highwater.core import Dimension
from highwater.core.bucket import Bucket, OnRaise
from highwater_lab.local.load import Load, LoadMinute, LoadReport
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.traffic import Stream
from tests.acceptance.fake_place import FakePlace, Pages, stage_of

KEEP, SCALE, EMPTY = OnRaise
UNITS = 25


def test_seconds_of_each_rule_are_those_of_the_page() -> None:
    """300 saved, less 180 and the second in which a full bucket takes nothing in; 58 at half of the new capacity."""
    assert expected_seconds(300, 2) == {KEEP: 119 + 58, SCALE: 2 * 119 + 58, EMPTY: 58}
    # raised late: less comes in before the last step
    assert expected_seconds(300, 50) == {KEEP: 119 + 10, SCALE: 2 * 119 + 10, EMPTY: 10}


@pytest.mark.parametrize("raised_after", [0, 60, 75])
def test_raise_at_the_ends_of_its_minute_and_beyond_has_seconds_too(raised_after: int) -> None:
    kept, scaled, emptied = expected_seconds(300, raised_after).values()
    assert (kept - emptied, scaled - kept) == (119, 119)


@pytest.mark.parametrize("saved", [260, 300, 340])
@pytest.mark.parametrize("rule", OnRaise)
def test_table_is_known_by_what_it_grants_whatever_its_bucket_holds(rule: OnRaise, saved: int) -> None:
    """A table of 25 units whose bucket is of another size than the documented one, raised after seven seconds."""
    bucket = Bucket(UNITS, saved, rule)
    bucket.serve(2 * UNITS, 180)
    bucket.serve(UNITS, 7)
    bucket.resize(2 * UNITS)
    bucket.serve(UNITS, 53)
    granted = bucket.serve(3 * UNITS, 660)
    # what a load generator in an account is late by, and what is measured of the bucket before
    for error in (-12, 0, 12):
        assert judge(granted / UNITS - 2 * 660 + error, expected_seconds(saved + error, 7)) is rule


@pytest.mark.parametrize(
    ("seconds", "answer"),
    [
        pytest.param(20, EMPTY, id="39-of-119-away"),
        pytest.param(98, None, id="between-empty-and-keep"),
        pytest.param(177, KEEP, id="keep"),
        pytest.param(236, None, id="between-keep-and-scale"),
        pytest.param(296, SCALE, id="scale"),
        pytest.param(477, None, id="300-for-each-new-unit"),
        pytest.param(600, None, id="filled"),
    ],
)
def test_seconds_between_or_beyond_the_rules_name_none(seconds: float, answer: OnRaise | None) -> None:
    assert judge(seconds, {KEEP: 177, SCALE: 296, EMPTY: 58}) is answer


def test_table_without_anything_left_before_the_raise_names_no_rule() -> None:
    """As of a window of five minutes, or of a bucket of three: all rules lead to the same seconds."""
    for saved in (30, 180):
        expected = expected_seconds(saved, 2)
        assert len(set(expected.values())) == 1
        assert judge(expected[KEEP], expected) is None


def test_age_of_a_datapoint_counts_from_the_end_of_its_minute() -> None:
    reason = (
        "Threshold Crossed: 2 datapoints [3000.0 (17/09/26 16:33:00), 2700.0 (17/09/26 16:32:00)] were greater than "
        "the threshold (1050.0)."
    )
    at = datetime(2026, 9, 17, 16, 34, 43, 138_000, tzinfo=UTC)
    assert datapoint_age(reason, at) == timedelta(seconds=43, milliseconds=138)


class _Window:
    """What burst capacity is if it is what was left in the last five minutes, and no bucket."""

    def __init__(self, fill: int) -> None:
        self.fill = fill
        self._left = deque([fill] * 300, maxlen=300)

    def resize(self, fill: int) -> None:
        self.fill = fill

    def serve(self, rate: int, seconds: int) -> int:
        assert seconds == 1
        served = min(rate, self.fill + max(0, sum(self._left)))
        self._left.append(self.fill - served)
        return served


class _NoCdk(Cdk):
    """Deploys nothing: the tables are there."""

    def deploy(self, stack: str, context: dict[str, str], within: timedelta | None, *more: str) -> None:
        assert (stack, context, within, more) == ("Burst", {}, None, ())


class _Account(FakePlace):
    """An account with the part's tables, whose clock is moved by the second while loads are sent."""

    def __init__(self, bucket_of: Callable[[int], Bucket | _Window]) -> None:
        super().__init__()
        self.units = {f"units-{units}": units for units in BURST_UNITS}
        self.buckets = {name: bucket_of(units * QUANTA_PER_UNIT) for name, units in self.units.items()}
        # when a raise that was asked for is there
        self.raises: dict[str, datetime] = {}
        self.policies: set[str] = set()
        found = [{"PhysicalResourceId": name, "ResourceType": "AWS::DynamoDB::Table"} for name in self.units]
        stack = Pages({"list_stack_resources": [{"StackResourceSummaries": found}]})
        self.clients = dict.fromkeys(("dynamodb", "application-autoscaling", "cloudwatch"), self)
        self.clients["cloudformation"] = stack

    def describe_table(self, TableName: str) -> dict[str, Any]:
        at = self.raises.get(TableName)
        units = self.units[TableName] * (1 if at is None or self.at < at else 2)
        return {"Table": {"ProvisionedThroughput": {"ReadCapacityUnits": units, "WriteCapacityUnits": 1}}}

    def update_table(self, TableName: str, ProvisionedThroughput: dict[str, int]) -> None:
        units = 2 * self.units[TableName]
        assert ProvisionedThroughput == {"ReadCapacityUnits": units, "WriteCapacityUnits": 1}
        assert not self.policies, "auto scaling would lower it again"
        self.raises[TableName] = self.at + timedelta(seconds=5)

    def register_scalable_target(self, ResourceId: str, MinCapacity: int, MaxCapacity: int, **_: Any) -> None:
        assert MinCapacity == MaxCapacity == self.units[ResourceId.removeprefix("table/")]

    def put_scaling_policy(self, ResourceId: str, **_: Any) -> None:
        self.policies.add(ResourceId)

    def deregister_scalable_target(self, ResourceId: str, **_: Any) -> None:
        self.policies.remove(ResourceId)

    def describe_alarms(self, AlarmNamePrefix: str, StateValue: str) -> dict[str, Any]:
        assert StateValue == "ALARM"
        if "units-25-" not in AlarmNamePrefix:
            return {"MetricAlarms": []}
        at = datetime(2031, 3, 4, 5, 18, 17, 250_000, tzinfo=UTC)
        return {"MetricAlarms": [{"StateUpdatedTimestamp": at, "StateReason": "1 datapoint [7.0 (04/03/31 05:16:00)]"}]}

    def let_pass(self, time_there: timedelta) -> None:
        for bucket in self.buckets.values():
            for _ in range(round(time_there.total_seconds())):
                bucket.serve(0, 1)
        super().let_pass(time_there)

    def side_by_side(self, loads: Sequence[Load], *watches: Callable[[], Any]) -> list[Any]:
        found, began = [], self.at
        for watch in watches:
            self.at = began
            # the watches wait; the tables are not idle meanwhile
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(self, "let_pass", lambda time: FakePlace.let_pass(self, time))
                found.append(watch())
        reports = [self._send(load, began) for load in loads]
        self.at = began + timedelta(minutes=loads[0]._traffic.minutes)
        return [*reports, *found]

    def _send(self, load: Load, began: datetime) -> LoadReport:
        name, minutes = load._table, []
        bucket, raised = self.buckets[name], self.raises.get(name)
        for minute, rate in enumerate(load._traffic.rates[Stream(None, Dimension.READ)]):
            granted = 0
            for second in range(60):
                if raised == began + timedelta(minutes=minute, seconds=second):
                    bucket.resize(2 * bucket.fill)
                granted += bucket.serve(rate, 1)
            minutes.append(LoadMinute(60 * rate / QUANTA_PER_UNIT, granted / QUANTA_PER_UNIT))
        return LoadReport(began, 1, {}, {Dimension.READ: minutes})


def _facts(bucket_of: Callable[[int], Bucket | _Window], folder: Path) -> dict[str, str]:
    place = _Account(bucket_of)
    stage = stage_of(place, folder)
    stage.cdk = _NoCdk(place, stage.ledger.prefix, folder)
    burst.run(stage)
    assert [check for check in stage.report.checks if not check.holds] == []
    return {name: value for _, name, value, _ in stage.report.facts}


@pytest.mark.parametrize(("rule", "left"), [(KEEP, 174), (SCALE, 293), (EMPTY, 55)])
def test_part_tells_what_an_account_does_at_a_raise(rule: OnRaise, left: int, tmp_path: Path) -> None:
    facts = _facts(lambda fill: Bucket(fill, on_raise=rule), tmp_path)
    assert facts == {
        "burst_held_seconds": "299, 299, 299",
        "alarm_seconds": "17.2",
        "alarm_datapoint_ages_seconds": "77.2",
        "burst_idle_seconds": "180, 180, 180",
        "burst_raised_25_seconds": str(left),
        "burst_raised_100_seconds": str(left),
        "burst_raised_400_seconds": str(left),
        "burst_raise_answer": f"{rule}, {rule}, {rule}",
    }


def test_part_tells_a_window_of_five_minutes_from_a_bucket(tmp_path: Path) -> None:
    facts = _facts(_Window, tmp_path)
    assert float(facts["burst_held_seconds"].split(",")[0]) <= 30
    assert float(facts["burst_idle_seconds"].split(",")[0]) >= 100
    assert facts["burst_raise_answer"] == "none of them, none of them, none of them"
