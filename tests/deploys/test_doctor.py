"""The doctor beside real deploys: managed tables in an open window, with and without a scaler, and their drift."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest

from cdk_highwater import ThrottleAwareScaler, Window
from highwater_lab.doctor import CheckedPlace, run_checks
from highwater_lab.local import LocalCloud
from tests.cdk_cli import CdkCli
from tests.deploys.apps import HERE, managed_table, scaled, synthesize
from tests.deploys.live import hours_around, set_floor
from tests.doctor.stubs import CloudSession

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud")]


def _shop(stack: cdk.Stack, *, start: str, end: str, low: int) -> None:
    window = Window.daily("import", start=start, end=end, timezone="UTC", write_min=90)
    managed_table(stack, "Orders", "doctor-orders", write=scaled(low, 340), windows=[window])
    events = managed_table(stack, "Events", None, write=scaled(7, 70))
    ThrottleAwareScaler(stack, "Scaler", reserved_concurrency=10).add_table(events)


def _said(cloud: LocalCloud, app: Path, check: str) -> list[str]:
    # in a second of its own, as DescribeAlarms has a rate
    cloud.step(1)
    place = CheckedPlace(CloudSession(cloud))
    place.open_app(app)
    try:
        return [f"{result.state} {result.text}" for result in run_checks(place, [check])]
    finally:
        place.close()


def test_deployed_tables_are_as_declared_until_somebody_changes_them(bootstrapped: CdkCli, tmp_path: Path) -> None:
    cloud = bootstrapped.cloud
    hours = hours_around(cloud)
    app = synthesize(tmp_path, "Doctor", _shop, env=HERE, low=34, **hours)
    bootstrapped.deploy(app)
    dynamodb, cloudwatch = cloud.client("dynamodb"), cloud.client("cloudwatch")
    (events,) = (name for name in dynamodb.list_tables()["TableNames"] if name.startswith("Doctor-Events"))
    try:
        assert _said(cloud, app, "drift") == ["ok 4 targets of 2 tables are as declared"]
        assert _said(cloud, app, "owners") == [
            "ok nothing else scales 2 tables of the app, and no table has two scalers"
        ]
        assert _said(cloud, app, "bootstrap")[0].startswith("ok aws://000000000000/us-east-1 is bootstrapped, version ")
        (off,) = _said(cloud, app, "alarms")
        assert off.startswith("ok the actions of all ")

        # a change that is not deployed is no drift
        changed = synthesize(tmp_path, "Doctor", _shop, env=HERE, low=55, **hours)
        assert _said(cloud, changed, "drift") == ["ok 4 targets of 2 tables are as declared"]

        # a floor that is the base one in an open window, and one that a scaler may have raised
        set_floor(cloud, "doctor-orders", 34)
        set_floor(cloud, events, 50)
        assert _said(cloud, app, "drift") == [
            "failure target table/doctor-orders write has a floor of 34, declared for now: 90"
        ]
        set_floor(cloud, "doctor-orders", 90)
        set_floor(cloud, events, 3)
        assert _said(cloud, app, "drift") == [
            f"failure target table/{events} write has a floor of 3, declared for now: 7"
        ]
        set_floor(cloud, events, 7)

        # what a deploy does that reverts drift
        one = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
        dynamodb.update_table(TableName="doctor-orders", ProvisionedThroughput=one)
        assert _said(cloud, app, "drift") == [
            "failure target table/doctor-orders read has a capacity of 1, below its floor of 5",
            "failure target table/doctor-orders write has a capacity of 1, below its floor of 90",
        ]

        cloudwatch.disable_alarm_actions(AlarmNames=[f"Highwater {events} write"])
        assert _said(cloud, app, "alarms") == [
            f"failure the scaler is not woken by alarms whose actions are off: 'Highwater {events} write'"
        ]
    finally:
        bootstrapped.run("destroy", "--all", "--force", app=app)
        dynamodb.close()
        cloudwatch.close()
    assert _said(cloud, app, "leftovers") == ["ok no target, alarm, plan or queue is of a table that is gone"]
    assert _said(cloud, app, "drift") == ["ok nothing is deployed"]
