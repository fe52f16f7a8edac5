"""A year of the example's tables by time, deployed by the real CDK CLI to a strict local cloud with a driven clock."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from botocore.config import Config
from periods import Periods
from time_series import TimeSeries

from highwater_lab.local import LocalCloud
from tests.cdk_cli import ROOT, deployed_app

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("tables-by-time")]
APP = ROOT / "examples" / "tables_by_time" / "app.py"
PERIODS = Periods("events")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BEGUN, ENDED = datetime(2026, 1, 5, tzinfo=UTC), datetime(2027, 1, 5, 12, tzinfo=UTC)
# 18 KB: with the keys, 19 write units
LOAD = "x" * 18_000
# both runs around the turn of a month
DENY = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "dynamodb:*", "Resource": "*"}]}
DENIED, ALLOWED = datetime(2026, 3, 30, 13, tzinfo=UTC), datetime(2026, 4, 1, 11, tzinfo=UTC)
DEPLOYED = datetime(2026, 6, 14, 12, tzinfo=UTC)
# the clock stops at noon of these days of a month: every day about its turn, and of the rest enough
STOPS = frozenset({1, 2, 3, 4, 14, 24, 28, 29, 30, 31})
ON_THE_HOUR = "%Y-%m-%dT%H:%M:%S"


class Year:
    """Writes, moves the clock, and knows what was written."""

    def __init__(self, cloud: LocalCloud, outputs: dict[str, str]) -> None:
        self._cloud = cloud
        self.outputs = outputs
        # what is throttled is an error here, as nothing is tried again
        self.client = cloud.client("dynamodb", Config(retries={"total_max_attempts": 1}))
        self.series = TimeSeries(self.client, PERIODS, clock=self.now)
        self.homes: dict[str, str] = {}

    def now(self) -> datetime:
        return self._cloud.status().now

    def go_to(self, at: datetime) -> None:
        """Move the clock ahead; the schedule that is due on the way starts the rotation once, at the end."""
        self._cloud.advance(at - self.now())
        self._cloud.step(0)

    def write(self, *, at: datetime | None = None, count: int = 1, load: str = "") -> str:
        """Put items of one time, now by default, and return the table that the last of them went to."""
        moment = at or self.now()
        for _ in range(count):
            name = self.series.table_for(at)
            key = f"{moment.strftime(ON_THE_HOUR)}.{len(self.homes):06d}"
            self.client.put_item(TableName=name, Item={"source": {"S": "a"}, "at": {"S": key}, "load": {"S": load}})
            self.homes[key] = name
        return name

    def tables(self) -> dict[str, tuple[int, int]]:
        """Read and write units of the tables of months."""
        found = {}
        for name in self.client.list_tables()["TableNames"]:
            if PERIODS.start_of(name) is not None:
                throughput = self.client.describe_table(TableName=name)["Table"]["ProvisionedThroughput"]
                found[name] = (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"])
        return found

    def query(self, start: datetime, end: datetime, *, is_forward: bool = True) -> list[str]:
        """The times of the items of a span, in the order in which they come."""
        found = self.series.query(
            start,
            end,
            sort_key="at",
            is_forward=is_forward,
            KeyConditionExpression="#s = :s AND #at BETWEEN :start AND :end",
            ProjectionExpression="#at",
            ExpressionAttributeNames={"#s": "source", "#at": "at"},
            ExpressionAttributeValues={
                ":s": {"S": "a"},
                ":start": {"S": start.strftime(ON_THE_HOUR)},
                ":end": {"S": end.strftime(ON_THE_HOUR)},
            },
        )
        return [item["at"]["S"] for item in found]

    def exported(self) -> Iterator[tuple[str, str]]:
        """Table and time of each item in the bucket."""
        s3, bucket = self._cloud.client("s3"), self.outputs["BucketName"]
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for entry in page.get("Contents", ()):
                if entry["Key"].endswith(".json.gz"):
                    body = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
                    for line in gzip.decompress(body).splitlines():
                        yield entry["Key"].partition("/")[0], json.loads(line)["Item"]["at"]["S"]

    def log_of_rotation(self) -> list[str]:
        logs = self._cloud.client("logs")
        groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        pages = [logs.get_paginator("filter_log_events").paginate(logGroupName=name) for name in groups]
        return [event["message"] for each in pages for page in each for event in page["events"]]


def _begin(year: Year, cloud: LocalCloud) -> None:
    """Before the rotation has ever run, and while it is denied everything: no write fails, and alarms say so."""
    assert year.write(count=3) == "events-default"
    # two minutes until the datapoint is there, and one until the alarm is judged
    cloud.advance(timedelta(minutes=5))
    cloudwatch = cloud.client("cloudwatch")
    alarms = {each["AlarmDescription"]: each for each in cloudwatch.describe_alarms()["MetricAlarms"]}
    used = alarms["Tables by time: writes go to the default table: their own table is missing"]
    assert used["StateValue"] == "ALARM"
    assert len(alarms) == 3
    iam, role = cloud.client("iam"), year.outputs["RoleName"]
    iam.put_role_policy(RoleName=role, PolicyName="Deny", PolicyDocument=json.dumps(DENY))
    for hour in range(1, 5):
        year.go_to(BEGUN + hour * HOUR)
    cloud.advance(timedelta(minutes=10))
    states = {each["AlarmDescription"]: each["StateValue"] for each in cloudwatch.describe_alarms()["MetricAlarms"]}
    assert states["Tables by time: the rotation failed; see its log"] == "ALARM"
    assert states["Tables by time: the rotation does not run"] != "ALARM"
    iam.delete_role_policy(RoleName=role, PolicyName="Deny")
    assert year.write() == "events-default"
    # they are judged in each minute, which would make the year an hour longer on this machine
    cloudwatch.delete_alarms(AlarmNames=[each["AlarmName"] for each in alarms.values()])
    year.go_to(BEGUN + 6 * HOUR)
    assert year.tables() == {"events-2026-01": (50, 40), "events-2026-02": (10, 1), "events-2026-03": (10, 1)}
    assert year.write() == "events-2026-01"


def _turn_of_month(year: Year, cloud: LocalCloud, start: datetime) -> None:
    """A load that a table with the capacity of past ones would throttle, before and after midnight."""
    year.go_to(start - timedelta(seconds=1))
    before = year.write(count=20, load=LOAD)
    cloud.step(1)
    assert year.now() == start
    assert year.write(count=40, load=LOAD) == PERIODS.name_for(start)
    # a late item goes to its own month
    assert year.write(at=start - timedelta(minutes=1)) == before == PERIODS.name_for(start - DAY)


def test_year_of_monthly_tables_throttles_nothing_and_loses_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("tables-by-time")
    with deployed_app(folder, APP, "TablesByTime") as (cli, outputs):
        cloud = cli.cloud
        year = Year(cloud, outputs)
        _begin(year, cloud)
        iam, role = cloud.client("iam"), year.outputs["RoleName"]
        noon = BEGUN.replace(hour=12)
        while noon <= ENDED:
            if noon.day == 1:
                _turn_of_month(year, cloud, noon.replace(hour=0))
            year.go_to(noon)
            assert year.write(count=2) == PERIODS.name_for(noon)
            if noon.day == 3:
                assert year.write(at=noon - 3 * DAY) == "events-default", "its table is closed"
            if noon.date() == DENIED.date():
                year.go_to(DENIED)
                iam.put_role_policy(RoleName=role, PolicyName="Deny", PolicyDocument=json.dumps(DENY))
            if noon == DEPLOYED:
                assert "UPDATE_COMPLETE" in cli.deploy(APP, {"write": "60"})
                assert year.write(count=3) == "events-2026-06"
            if noon.date() == ALLOWED.date():
                assert year.tables()["events-2026-03"] == (50, 40), "nothing was lowered meanwhile"
                iam.delete_role_policy(RoleName=role, PolicyName="Deny")
            noon += DAY
            while noon.day not in STOPS:
                noon += DAY
        _check_end(year, cloud)


def _check_end(year: Year, cloud: LocalCloud) -> None:
    assert cloud.control.throttles() == [], "nothing was throttled in the whole year"
    # 100 days after its end, September is still there
    assert year.tables() == {
        "events-2026-09": (10, 1),
        "events-2026-10": (10, 1),
        "events-2026-11": (10, 1),
        "events-2026-12": (10, 1),
        "events-2027-01": (50, 60),
        "events-2027-02": (10, 1),
        "events-2027-03": (10, 1),
    }
    described = year.client.describe_table(TableName="events-2027-03")["Table"]
    assert described["DeletionProtectionEnabled"]
    assert described["WarmThroughput"]["WriteUnitsPerSecond"] == 60

    exported = list(year.exported())
    assert len(exported) == len(set(exported))
    assert {table for table, _ in exported} == {f"events-2026-{month:02d}" for month in range(1, 9)}
    left = year.query(BEGUN, ENDED + DAY)
    assert left == sorted(left)
    assert sorted([*left, *(at for _, at in exported)]) == sorted(year.homes), "nothing is lost, nothing is twice"
    assert all(year.homes[at] == table for table, at in exported)

    # a span of two tables, with a late item that is in the default table
    begin, end = datetime(2026, 11, 28, tzinfo=UTC), datetime(2026, 12, 4, tzinfo=UTC)
    span = year.query(begin, end)
    assert {year.homes[at] for at in span} == {"events-2026-11", "events-2026-12", "events-default"}
    bounds = [each.strftime(ON_THE_HOUR) for each in (begin, end)]
    assert span == sorted(at for at in year.homes if bounds[0] <= at <= bounds[1])
    assert year.query(begin, end, is_forward=False) == span[::-1]

    said = year.log_of_rotation()
    assert any("explicit deny" in line for line in said)
    assert sum("delete events-" in line for line in said) == 8
