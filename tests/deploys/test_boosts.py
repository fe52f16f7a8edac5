"""Boosts end to end: real `cdk deploy`, the real asset behind its URL, signed requests, by the local cloud's clock."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn

import highwater
from cdk_highwater import BoostCoordinator, BoostTask, GlobalSecondaryIndex, ThrottleAwareScaler, Window
from highwater import Boost, BoostRefusedError, CoordinatorClient
from highwater_lab.local import LocalCloud
from tests.cdk_cli import ROOT, CdkCli, bootstrapped_cloud
from tests.command import Command
from tests.constructs.template_view import key, refused
from tests.deploys.apps import managed_table, scaled, synthesize
from tests.deploys.live import floor, session_of, until

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-boosted")]
MINUTE = timedelta(minutes=1)
_AT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_MORE = "; more may be free from {at} UTC; for more, raise the ceiling or set max_with_boosts="


def _boosted(stack: cdk.Stack, *, low: int, opens: str, closes: str) -> None:
    window = Window.daily("load", start=opens, end=closes, timezone="UTC", write_min=300)
    orders = managed_table(stack, "Orders", "boosted-orders", write=scaled(low, 900), windows=[window])
    coordinator = BoostCoordinator(stack, "Boosts")
    coordinator.add_table(orders)
    by_status = GlobalSecondaryIndex(index_name="by_status", partition_key=key("status"))
    hot = {"read": scaled(5, 50, 90), "write": scaled(17, 700, 90), "indexes": [by_status]}
    scaler = ThrottleAwareScaler(stack, "Scaler")
    scaler.add_table(managed_table(stack, "Hot", "boosted-hot", **hot))
    shared = BoostCoordinator(stack, "Shared", scaler=scaler)
    for name, most in (("loader", 600), ("small", 30), ("other", 500)):
        role = iam.Role(stack, name, role_name=f"boosted-{name}", assumed_by=iam.AccountRootPrincipal())
        coordinator.grant_boost(role, max_write=most, tables=[orders])
        shared.grant_boost(role, max_write=most)
        orders.grant(role, "dynamodb:DescribeTable")
    iam.Role(stack, "nobody", role_name="boosted-nobody", assumed_by=iam.AccountRootPrincipal())
    coordinator.grant_boost_events("acme.loader", max_write=200)
    lease = cdk.Duration.minutes(20)
    for name in ("Fine", "Bad"):
        held = BoostTask(stack, f"Boost{name}", coordinator=coordinator, table=orders, write=37, lease=lease)
        # longer than the pause between two looks at the floor
        step = sfn.Wait(stack, f"Load{name}", time=sfn.WaitTime.duration(cdk.Duration.seconds(20)))
        work = step if name == "Fine" else step.next(sfn.Fail(stack, "Breaks", error="LoadFailed", cause="a bad row"))
        body = sfn.DefinitionBody.from_chainable(held.around(work))
        sfn.StateMachine(stack, name, state_machine_name=f"boosted-{name}", definition_body=body)
    for name, each in (("Alone", coordinator), ("SharedName", shared)):
        cdk.CfnOutput(stack, name, value=each.coordinator_name)


@dataclass(frozen=True)
class Stage:
    """The deployed app."""

    cli: CdkCli
    folder: Path
    coordinators: dict[str, str]
    begun: list[Boost]

    @property
    def cloud(self) -> LocalCloud:
        return self.cli.cloud

    def deploy(self, minimum: int) -> None:
        noon = self.cloud.status().now.replace(hour=12, minute=0)
        window: dict[str, Any] = {"opens": f"{noon:%H:%M}", "closes": f"{noon + 60 * MINUTE:%H:%M}"}
        self.cli.deploy(synthesize(self.folder, "Boosted", _boosted, low=minimum, **window))

    def session(self, role: str) -> boto3.Session:
        """The credentials of a role, in a session that calls itself root."""
        return session_of(self.cloud, f"boosted-{role}", "root")

    def refused(self) -> int:
        """How many boosts the coordinators have refused, by their metric."""
        cloudwatch, now = self.cloud.client("cloudwatch"), self.cloud.status().now
        name: dict[str, Any] = {"Namespace": "Highwater", "MetricName": "BoostsRefused"}
        span: dict[str, Any] = {"StartTime": now - 1_000 * MINUTE, "EndTime": now + MINUTE, "Period": 60}
        found = [
            cloudwatch.get_metric_statistics(**name, **span, Dimensions=each["Dimensions"], Statistics=["Sum"])
            for each in cloudwatch.list_metrics(**name)["Metrics"]
        ]
        cloudwatch.close()
        return int(sum(point["Sum"] for each in found for point in each["Datapoints"]))

    def boost(self, role: str = "loader", table: str = "boosted-orders", **asked: Any) -> Boost:
        name = self.coordinators["Alone" if table == "boosted-orders" else "SharedName"]
        made = highwater.boost(table, session=self.session(role), coordinator=name, **{"minutes": 10, **asked})
        self.begun.append(made)
        return made

    def command(self, role: str = "") -> Command:
        """`highwater` with the credentials of a role, or with those of the whole account."""
        if not role:
            return Command(self.folder, self.cloud.environment() | {"COLUMNS": "200"})
        found: Any = self.session(role).get_credentials()
        given = found.get_frozen_credentials()
        keys = {"AWS_ACCESS_KEY_ID": given.access_key, "AWS_SECRET_ACCESS_KEY": given.secret_key}
        return Command(self.folder, self.cloud.environment() | keys | {"AWS_SESSION_TOKEN": given.token})

    def floor(self, table: str = "boosted-orders", of: str = "table") -> int:
        return floor(self.cloud, table, of)

    def until_floor(self, units: int, minutes: int, table: str = "boosted-orders") -> bool:
        """Step the clock until the floor is *units*, by at most *minutes*."""
        self.cloud.step(0)
        return until(self.cloud, lambda: self.floor(table) == units, minutes, seconds=5)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("boosted")
    with bootstrapped_cloud(folder, has_instant_updates=True) as cli, pytest.MonkeyPatch.context() as patch:
        made = Stage(cli, folder, {}, [])
        now = cli.cloud.status().now
        # nowhere near the window
        cli.cloud.advance((now + 24 * 60 * MINUTE).replace(hour=6, minute=2) - now)
        made.deploy(12)
        made.coordinators.update(cli.outputs("Boosted"))
        patch.setenv("AWS_ENDPOINT_URL", cli.cloud.environment()["AWS_ENDPOINT_URL"])
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left_to_the_next_test(stage: Stage) -> Iterator[None]:
    """Whatever a test began is given back, also where it failed."""
    yield
    while stage.begun:
        boost = stage.begun.pop()
        if boost.answer is not None:
            with suppress(BoostRefusedError):
                boost.release()


def test_block_has_the_capacity_and_gives_it_back_also_after_an_exception(stage: Stage) -> None:
    told: list[Any] = []

    def fail() -> None:
        with stage.boost(write=100, reason="a load", on_progress=told.append) as boost:
            assert boost.answer is not None
            (granted,) = boost.answer.targets
            assert (granted.target, granted.asked, granted.units, granted.limits) == ("table write", 100, 100, ())
            assert granted.usd_per_hour == pytest.approx(0.065)
            assert [(t.wanted, t.floor, t.provisioned) for t in boost.state().targets] == [(112, 112, 112)]
            assert told[-1].is_ready
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stage.floor() == 12


def test_coroutine_boosts_without_holding_up_its_loop(stage: Stage) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.05)

    async def job() -> int:
        other = asyncio.create_task(beat())
        async with stage.boost(write=50):
            floor = stage.floor()
        other.cancel()
        return floor

    assert asyncio.run(job()) == 62
    assert beats > 5
    assert stage.floor() == 12


def test_command_runs_inside_the_lease_and_its_exit_status_and_signals_pass(stage: Stage) -> None:
    name = ("--coordinator", stage.coordinators["Alone"])
    look = "import boto3; print(boto3.client('dynamodb').describe_table(TableName='boosted-orders')['Table']"
    look += "['ProvisionedThroughput']['WriteCapacityUnits']); raise SystemExit(7)"
    ask = ["boost", "run", "boosted-orders", "--for", "30m", *name, "--write"]
    done = stage.command("loader")(*ask, "70", "--", sys.executable, "-c", look)
    # what the test before had may not have been lowered yet
    assert (done.returncode, int(done.stdout) >= 82) == (7, True), done.stderr
    assert "boosted-orders, table write: 70 units/s until " in done.stderr
    assert stage.floor() == 12

    sleeping = (
        "import signal, sys; signal.signal(15, lambda *_: sys.exit(9)); print(1, flush=True)\n"
        "while True: signal.pause()"
    )
    with stage.command("loader").start(*ask, "71", "--", sys.executable, "-c", sleeping, stderr=None) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "1\n"
        assert stage.floor() == 83
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 9
    assert stage.floor() == 12


def test_command_line_lists_logs_and_ends_boosts(stage: Stage) -> None:
    stage.cloud.step(1)
    name = ("--coordinator", stage.coordinators["Alone"])
    asked = ("--write", "40", "--for", "20m", "--reason", "by hand", "--json")
    begun = stage.command("loader")("boost", "run", "boosted-orders", *asked, *name)
    assert begun.returncode == 0, begun.stderr
    answer = json.loads(begun.stdout)
    assert (answer["outcome"], answer["targets"][0]["units"]) == ("whole", 40)
    listed = stage.command("other")("boost", "list", "boosted-orders", *name)
    assert listed.stdout.startswith(f"{answer['id']}  40 units/s of table write from "), listed.stderr
    assert listed.stdout.endswith(" UTC, 000000000000:role/boosted-loader: by hand\n")
    explained = stage.command()("explain", "boosted-orders").stdout
    assert "the live floor is 52, 40 of it boosts; the live ceiling 900\n" in explained
    assert f"boost {answer['id']}, live until " in explained
    assert " UTC: 40 units/s, by 000000000000:role/boosted-loader: by hand\n" in explained
    foreign = stage.command("other")("boost", "release", "boosted-orders", answer["id"], *name)
    assert (foreign.returncode, foreign.stdout) == (
        0,
        f"boosted-orders: boost {answer['id']} is over already, or another caller's\n",
    )
    assert stage.floor() == 52, "an id is the caller's own"
    # the log is in the order of seconds
    stage.cloud.step(1)
    ended = stage.command("loader")("boost", "release", "boosted-orders", answer["id"], *name)
    assert (ended.returncode, ended.stdout) == (0, f"boosted-orders: boost {answer['id']} is given back\n")
    assert stage.floor() == 12
    logged = stage.command("other")("boost", "log", "boosted-orders", *name).stdout.splitlines()
    assert logged[0].endswith(f" release {answer['id']} by 000000000000:role/boosted-loader (root)")
    assert f" begin {answer['id']} by 000000000000:role/boosted-loader (root): table write 40 of 40 until " in logged[1]
    assert logged[1].endswith(": by hand")


def test_commands_that_look_need_what_their_page_says(stage: Stage) -> None:
    (text,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL)
    policy = json.loads(text)
    iam_client = stage.cloud.client("iam")

    def looked(without: str, *command: str) -> str:
        kept = [each for each in policy["Statement"] if not without or without not in each["Action"]]
        document = json.dumps({**policy, "Statement": kept})
        iam_client.put_role_policy(RoleName="boosted-nobody", PolicyName="looks", PolicyDocument=document)
        stage.cloud.step(60)
        done = stage.command("nobody")(*command)
        return f"{done.returncode} {done.stdout}{done.stderr}"

    for command, end in {
        ("explain", "boosted-orders"): "0 boosted-orders, table read",
        ("status",): "0 boosted-hot: 5 RCU and 17 WCU",
        ("pulses", "boosted-orders"): "1 boosted-orders: nothing was reported",
    }.items():
        assert looked("", *command).startswith(end)
    assert "cannot be described" in looked("dynamodb:DescribeTable", "status")
    assert "cannot be read" in looked("dynamodb:Query", "pulses", "boosted-orders")
    iam_client.delete_role_policy(RoleName="boosted-nobody", PolicyName="looks")
    iam_client.close()


def test_job_that_is_killed_holds_its_capacity_until_its_lease_ends(stage: Stage) -> None:
    script = (
        "import highwater, sys\n"
        f"with highwater.boost('boosted-orders', write=33, minutes=4, coordinator={stage.coordinators['Alone']!r}):\n"
        "    print(1, flush=True)\n    sys.stdin.read()\n"
    )
    environment = stage.command("loader").environment()
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        try:
            assert job.stdout.readline() == "1\n"
            assert stage.floor() == 45
        finally:
            job.kill()
    assert stage.until_floor(12, 7), "the lease has ended, and nobody lowered the floor"
    assert stage.floor() == 12


def test_event_boosts_once_however_often_it_is_delivered(stage: Stage) -> None:
    events = stage.cloud.client("events")
    detail = {"table": "boosted-orders", "write": 21, "minutes": 3, "id": "acme-load-1"}
    entry = {"Source": "acme.loader", "DetailType": "Highwater Boost", "Detail": json.dumps(detail)}
    events.put_events(Entries=[entry, entry])
    assert stage.until_floor(33, 12)
    release = entry | {"Detail": json.dumps({"do": "release", "table": "boosted-orders", "id": "acme-load-1"})}
    events.put_events(Entries=[release])
    assert stage.until_floor(12, 2)
    # another source passes no rule
    events.put_events(Entries=[entry | {"Source": "acme.other"}])
    assert not stage.until_floor(33, 2)
    events.close()


@pytest.mark.parametrize(("name", "status"), [("Fine", "SUCCEEDED"), ("Bad", "FAILED")])
def test_state_machine_boosts_around_its_work_also_when_it_fails(stage: Stage, name: str, status: str) -> None:
    states = stage.cloud.client("stepfunctions")
    arn = f"arn:aws:states:us-east-1:000000000000:stateMachine:boosted-{name}"
    run = states.start_execution(stateMachineArn=arn, input='{"given": 5}')["executionArn"]
    assert stage.until_floor(49, 10)
    stage.cloud.step(60)
    done = states.describe_execution(executionArn=run)
    states.close()
    assert (done["status"], done.get("error"), done.get("cause")) == (
        status,
        *((None, None) if status == "SUCCEEDED" else ("LoadFailed", "a bad row")),
    )
    if status == "SUCCEEDED":
        assert json.loads(done["output"]) == {"given": 5}
    assert stage.floor() == 12


def test_two_jobs_a_window_and_a_deploy_add_up(stage: Stage) -> None:
    one, two = stage.boost(write=100, minutes=900), stage.boost("other", write=44, minutes=900)
    one.begin()
    two.begin()
    assert stage.floor() == 156
    # CloudFormation registers the target with its base floor in the middle of the lease
    stage.deploy(13)
    assert stage.until_floor(157, 15)
    noon = stage.cloud.status().now.replace(hour=11, minute=52, second=0)
    third = stage.boost(write=100, minutes=60)
    one.release()
    two.release()
    stage.cloud.advance(noon - stage.cloud.status().now)
    third.begin()
    assert stage.floor() == 113
    assert stage.until_floor(400, 15), "the window's 300 and the boost's 100"
    third.release()
    assert stage.until_floor(300, 15)
    stage.cloud.advance(80 * MINUTE)
    assert stage.until_floor(13, 20)
    stage.deploy(12)


@pytest.mark.parametrize(
    ("role", "asked", "granted", "limits"),
    [
        ("small", {"write": 31}, 30, ["the caller's cap of 30 units/s at {at} UTC leaves 30 units/s"]),
        ("loader", {"write": 599}, 599, []),
        ("loader", {"write_total": 605}, 600, ["the caller's cap of 600 units/s at {at} UTC leaves 600 units/s"]),
    ],
)
def test_part_is_granted_with_what_limited_it(
    stage: Stage, role: str, asked: dict[str, int], granted: int, limits: list[str]
) -> None:
    boost = stage.boost(role, "boosted-orders", **asked)
    answer = boost.begin()
    boost.release()
    (target,) = answer.targets
    assert (target.units, [_AT.sub("{at} UTC", line) for line in target.limits]) == (granted, limits)


def test_boost_beyond_the_ceiling_is_granted_up_to_it(stage: Stage) -> None:
    first, second = stage.boost("other", write=500), stage.boost("loader", write=600)
    first.begin()
    answer = second.begin()
    assert [(t.units, [_AT.sub("{at} UTC", line) for line in t.limits]) for t in answer.targets] == [
        (388, [f"the plan's ceiling of 900 units/s at {{at}} UTC leaves 388 units/s{_MORE}"])
    ]
    assert stage.floor() == 900
    whole = stage.boost("small", write=1, is_all_or_nothing=True)
    with pytest.raises(BoostRefusedError) as full:
        whole.begin()
    said = _AT.sub("{at} UTC", str(full.value))
    assert said.endswith(f"the plan's ceiling of 900 units/s at {{at}} UTC leaves 0 units/s{_MORE}")
    for boost in (first, second):
        boost.release()
    assert stage.floor() == 12


def test_callers_boost_what_they_were_granted_whatever_they_say(stage: Stage) -> None:
    url = CoordinatorClient(coordinator=stage.coordinators["Alone"], session=stage.session("loader")).url
    forbidden = highwater.boost("boosted-orders", write=1, minutes=1, coordinator=url, session=stage.session("nobody"))
    end = "give it grant_boost in the CDK app, and deploy"
    with refused(BoostRefusedError, f"the caller may not send requests to {url}; {end}") as nobody:
        forbidden.begin()
    assert nobody.value.status == 403

    before = stage.refused()
    small = stage.boost("small", write=1).client
    with pytest.raises(BoostRefusedError) as lied:
        small.send("begin", id="liars-boost", table="boosted-orders", write=500, minutes=5, owner="boosted-loader")
    assert lied.value.status == 400
    assert str(lied.value).startswith("boost: unknown member 'owner'; allowed: at, hold, id, index, ")
    told = "000000000000:role/boosted-small may not boost boosted-hot; its grants are for boosted-orders; "
    with refused(BoostRefusedError, told + end):
        small.send("begin", id="other-table", table="boosted-hot", write=5, minutes=5)
    with pytest.raises(BoostRefusedError, match=r"^boosted-orders, table read: nothing of 5 until "):
        stage.boost("small", read=5).begin()
    assert stage.refused() - before == 3


def test_renewed_lease_goes_on_and_one_that_is_over_does_not_come_back(stage: Stage) -> None:
    boost = stage.boost(write=64, minutes=10)
    boost.begin()
    stage.cloud.advance(6 * MINUTE)
    boost.renew()
    stage.cloud.advance(6 * MINUTE)
    assert stage.floor() == 76
    assert stage.until_floor(12, 12)
    told = f"boosted-orders: boost {boost.id} is over, or never was; begin one with an id of its own"
    with refused(BoostRefusedError, told):
        boost.renew()


def test_booked_boost_counts_from_five_minutes_before_its_start(stage: Stage) -> None:
    at: datetime = stage.cloud.status().now + 20 * MINUTE
    boost = stage.boost(write=55, minutes=4, at=at)
    answer = boost.begin()
    assert (answer.start, answer.end) == (at - 5 * MINUTE, at + 4 * MINUTE)
    assert stage.floor() == 12
    stage.cloud.advance(14 * MINUTE)
    assert stage.until_floor(67, 4)
    stage.cloud.advance(8 * MINUTE)
    assert stage.until_floor(12, 15)


def test_scaler_and_coordinator_share_a_function_and_a_write_boosts_the_indexes(stage: Stage) -> None:
    with stage.boost(table="boosted-hot", write=90) as boost:
        assert boost.answer is not None
        assert [(t.target, t.units) for t in boost.answer.targets] == [
            ("table write", 90),
            ("index 'by_status' write", 90),
        ]
        assert (stage.floor("boosted-hot"), stage.floor("boosted-hot", "by_status")) == (107, 107)
    assert (stage.floor("boosted-hot"), stage.floor("boosted-hot", "by_status")) == (17, 17)


def test_operator_ends_a_boost_of_another_by_force(stage: Stage) -> None:
    id = stage.boost(write=30, reason="a job that hangs").begin().id
    assert stage.floor() == 42

    def forced(*arguments: str) -> tuple[int, str]:
        found = stage.command()("boost", "release", *arguments, "--force")
        return found.returncode, found.stdout + found.stderr

    owner = "000000000000:role/boosted-loader"
    ended = f"boosted-orders: boost {id} of {owner} is ended; its floor is lowered within a minute\n"
    assert forced("boosted-orders", id) == (0, ended)
    # a schedule of the local cloud runs at the beginning of a minute, the first time a minute after it was made
    stage.cloud.step(120)
    assert stage.floor() == 12
    assert forced("boosted-orders", id) == (0, f"boosted-orders: no boost {id} is live or booked\n")
    status, text = forced("unknown", id)
    assert (status, text) == (
        1,
        "highwater boost release: unknown: no coordinator has such a table; highwater status lists the tables\n",
    )
