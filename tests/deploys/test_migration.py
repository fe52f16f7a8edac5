"""Tables that were on demand, or that the CDK's own scaling scaled, come under Highwater while requests go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_dynamodb as dynamodb
from botocore.config import Config

from cdk_highwater import HighWaterTable
from highwater_lab.local import LocalCloud
from highwater_lab.local.lockstep import SeatClock, take_part
from tests.cdk_cli import CdkCli, bootstrapped_cloud
from tests.command import Command
from tests.constructs.template_view import key
from tests.deploys.apps import HERE, plain_table, scaled, synthesize, world_table

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-migration")]

# 40 units a second in bursts of an item of 40 units
_ITEM = {"pk": {"S": "visit"}, "page": {"S": "x" * 40_000}}


class Visitors:
    """Writes without a retry until told to stop; counts what was written and refused, and sees the capacity."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._stopped = threading.Event()
        self.written = self.throttled = 0
        self.capacities: set[int] = set()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Visitors:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._dynamodb.close()

    def _write(self) -> None:
        while not self._stopped.wait(0.05):
            try:
                self._dynamodb.put_item(TableName=self._table, Item=_ITEM)
                self.written += 1
            except self._dynamodb.exceptions.ProvisionedThroughputExceededException:
                self.throttled += 1
            described = self._dynamodb.describe_table(TableName=self._table)["Table"]
            self.capacities.add(described["ProvisionedThroughput"]["WriteCapacityUnits"])


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    folder = tmp_path_factory.mktemp("migrated")
    with LocalCloud(log=folder / "server.log", speed=20, is_strict=True) as cloud:
        made = CdkCli(cloud, folder)
        made.bootstrap()
        yield made


def _on_demand(stack: cdk.Stack, *, table: str) -> None:
    mode = dynamodb.BillingMode.PAY_PER_REQUEST
    dynamodb.Table(stack, "Visits", table_name=table, partition_key=key(), billing_mode=mode, deletion_protection=True)


def _provisioned(stack: cdk.Stack, *, table: str, initial: dict[str, Any]) -> None:
    capacity = scaled(3, 4_000)
    HighWaterTable(stack, "Visits", table_name=table, partition_key=key(), read=capacity, write=capacity, **initial)


@pytest.mark.parametrize(
    ("table", "initial", "is_throttled"),
    [
        ("migrated-well", {"initial_read_units": 30, "initial_write_units": 3_000}, False),
        ("migrated-badly", {}, True),
    ],
    ids=["with-initial-units", "with-one-unit"],
)
def test_nothing_is_throttled_while_a_table_leaves_on_demand(
    cli: CdkCli, tmp_path: Path, table: str, initial: dict[str, Any], is_throttled: bool
) -> None:
    """3: the template's numbers are live capacity from one moment to the next."""
    cli.deploy(synthesize(tmp_path, table.title(), _on_demand, table=table))
    after = synthesize(tmp_path, table.title(), _provisioned, table=table, initial=initial)
    once = Config(retries={"mode": "standard", "total_max_attempts": 1})
    with Visitors(cli.cloud.client("dynamodb", once), table) as visitors:
        cli.deploy(after)
    assert visitors.written > 20
    assert (visitors.throttled > 0) is is_throttled
    # before target tracking raised it, which it may have done when a slow machine has ended the deploy
    assert (3_000 if initial else 3) in visitors.capacities


TABLES = ("orders", "nightly", "world")
# 34 write units with the names, and 5 eventually consistent read units
_BODY = "x" * 34_000
_Key = tuple[str, str]
# of what Application Auto Scaling describes, what differs from one creation to the next
_NEW = ("Alarms", "CreationTime")


def synth(folder: Path, *, is_scaled: bool, code: str = "") -> Path:
    """Synthesize the app with its own scaling, or without, and with *code*."""
    app = cdk.App(outdir=str(folder))
    stack = cdk.Stack(app, "Shop", env=HERE)
    orders = plain_table(stack, "Orders", "orders", 3, 4)
    orders.add_global_secondary_index(
        index_name="by-owner", partition_key=key("owner"), read_capacity=5, write_capacity=6
    )
    nightly = plain_table(stack, "Nightly", "nightly", 7, 8)
    if is_scaled:
        orders.auto_scale_read_capacity(min_capacity=9, max_capacity=90).scale_on_utilization(
            target_utilization_percent=70
        )
        orders.auto_scale_write_capacity(min_capacity=22, max_capacity=2_200).scale_on_utilization(
            target_utilization_percent=62, scale_in_cooldown=cdk.Duration.seconds(31)
        )
        orders.auto_scale_global_secondary_index_write_capacity(
            "by-owner", min_capacity=23, max_capacity=2_300
        ).scale_on_utilization(target_utilization_percent=63)
        night = nightly.auto_scale_write_capacity(min_capacity=24, max_capacity=2_400)
        for name, hour, floor in (("open", "5", 240), ("close", "7", 24)):
            schedule = autoscaling.Schedule.cron(hour=hour, minute="0")
            night.scale_on_schedule(name, schedule=schedule, min_capacity=floor)
    billing = dynamodb.Billing.provisioned(
        read_capacity=dynamodb.Capacity.autoscaled(min_capacity=10, max_capacity=100),
        write_capacity=dynamodb.Capacity.autoscaled(min_capacity=21, max_capacity=2_100, target_utilization_percent=61),
    )
    world = world_table(stack, "world", billing=billing)
    exec(code, {"orders": orders, "nightly": nightly, "world": world})  # noqa: S102 - what is printed is what is tested
    app.synth()
    return folder


@dataclass(frozen=True)
class Sample:
    """Provisioned units and floors at a moment, by resource and dimension."""

    units: dict[_Key, int]
    floors: dict[_Key, int]


@dataclass
class Traffic:
    """Writes and reads 1 item a second of each table, and samples capacity and floors whenever the clock has moved."""

    cli: CdkCli
    clock: SeatClock
    samples: list[Sample] = field(default_factory=list)
    sent: int = 0
    throttled: int = 0

    def __post_init__(self) -> None:
        once = Config(retries={"total_max_attempts": 1})
        self.dynamodb, self.scaling, self.stacks = (
            self.cli.cloud.client(name, once) for name in ("dynamodb", "application-autoscaling", "cloudformation")
        )

    def go_on(self, minutes: int) -> None:
        for _ in range(minutes * 3):
            self._pass(20)

    def deploy(self, assembly: Path) -> None:
        """Deploy while the traffic goes on."""
        with ThreadPoolExecutor(1) as pool:
            deployed = pool.submit(self.cli.deploy, assembly)
            while not deployed.done():
                self._pass(1)
            deployed.result()
        self._pass(1)

    def _pass(self, seconds: int) -> None:
        self.clock.sleep(seconds)
        keys = [{"pk": {"S": f"visit-{(self.sent + number) % 97}"}} for number in range(seconds)]
        self.sent += seconds
        rest = {"at": {"N": str(self.sent)}, "body": {"S": _BODY}}
        # the second table has a floor of its own for the night only
        for table in ("orders", "world"):
            puts = [{"PutRequest": {"Item": {**key, "owner": key["pk"], **rest}}} for key in keys]
            for ask, request, left in (
                (self.dynamodb.batch_write_item, puts, "UnprocessedItems"),
                (self.dynamodb.batch_get_item, {"Keys": keys}, "UnprocessedKeys"),
            ):
                try:
                    self.throttled += bool(ask(RequestItems={table: request})[left])
                except self.dynamodb.exceptions.ProvisionedThroughputExceededException:
                    self.throttled += 1
        self.samples.append(Sample(dict(self._units()), self._floors()))

    def _units(self) -> Iterator[tuple[_Key, int]]:
        for name in TABLES:
            table = self.dynamodb.describe_table(TableName=name)["Table"]
            for resource in (table, *table.get("GlobalSecondaryIndexes", [])):
                where = f"table/{name}" + (f"/index/{resource['IndexName']}" if "IndexName" in resource else "")
                for kind in ("Read", "Write"):
                    yield (where, kind), resource["ProvisionedThroughput"][f"{kind}CapacityUnits"]

    def _floors(self) -> dict[_Key, int]:
        found = self.scaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]
        return {_key(each): each["MinCapacity"] for each in found}

    def owners(self) -> dict[str, int]:
        """How many scalable targets of the stack each part of the app owns."""
        found = self.stacks.list_stack_resources(StackName="Shop")["StackResourceSummaries"]
        ids = [each["LogicalResourceId"] for each in found if each["ResourceType"].endswith("::ScalableTarget")]
        managed = sum("CapacityTargets" in each for each in ids)
        return {"native": len(ids) - managed, "managed": managed}

    def scaling_of_all(self) -> list[dict[str, Any]]:
        """All scalable targets, policies and scheduled actions, without what differs from one creation to the next."""
        calls: list[tuple[Callable[..., dict[str, Any]], str]] = [
            (self.scaling.describe_scalable_targets, "ScalableTargets"),
            (self.scaling.describe_scaling_policies, "ScalingPolicies"),
            (self.scaling.describe_scheduled_actions, "ScheduledActions"),
        ]
        found = [each for call, member in calls for each in call(ServiceNamespace="dynamodb")[member]]
        kept = [{name: each[name] for name in each if name[-3:] != "ARN" and name not in _NEW} for each in found]
        return sorted(kept, key=json.dumps)


def _key(target: dict[str, Any]) -> _Key:
    return target["ResourceId"], target["ScalableDimension"].split(":")[2].removesuffix("CapacityUnits")


@pytest.fixture
def traffic(tmp_path: Path) -> Iterator[Traffic]:
    with bootstrapped_cloud(tmp_path) as cli:
        cli.deploy(synth(tmp_path / "old", is_scaled=True))
        (seat,) = cli.cloud.control.take_seats(1)
        with take_part(cli.cloud.control, seat) as clock:
            yield Traffic(cli, clock)


def test_tables_with_scaling_of_their_own_come_and_go_without_a_throttle(
    traffic: Traffic, command: Command, tmp_path: Path
) -> None:
    """Traffic needs more than the floors, and these are more than the template's numbers: a reset to either is seen."""
    traffic.go_on(minutes=12)
    assert traffic.owners() == {"native": 4, "managed": 0}
    native, before = traffic.scaling_of_all(), traffic.samples[-1]
    assert before.units["table/orders", "Write"] > 50 > before.floors["table/orders", "Write"]
    throttled, traffic.samples = traffic.throttled, []

    plans = {each["table"]: each for each in json.loads(command("migrate", "old", "--json").stdout)["tables"]}
    for name in ("Shop/Orders", "Shop/Nightly"):
        assert [step.split(":")[0] for step in plans[name]["steps"]] == [
            "deploy 1, in a quiet hour",
            "deploy 2, right after it",
            "back",
        ]
    assert [step.split(":")[0] for step in plans["Shop/World"]["steps"]] == ["deploy", "back"]
    # as its notes say, what the code has at all times is declared as a window, and the floor is lowered
    assert [note.split(",")[0].split(";")[0] for note in plans["Shop/Nightly"]["notes"]] == [
        "table write: no policy that could be read moves it between its bounds",
        "table write: scheduled action 'open' (min 240) becomes a floor at all times",
        "table write: scheduled action 'close' (min 24) is not in the code",
    ]
    assert "write=Capacity.autoscaled(min_capacity=240, " in plans["Shop/Nightly"]["code"]
    window = 'Window.daily("night", start="05:00", end="07:00", timezone="UTC", write_min=240)'
    night = plans["Shop/Nightly"]["code"].replace("    write=", f"    windows=[{window}],\n    write=")
    night = night.replace("min_capacity=240", "min_capacity=24")
    code = f"from cdk_highwater import Window\n{plans['Shop/Orders']['code']}{night}{plans['Shop/World']['code']}"

    traffic.deploy(synth(tmp_path / "bare", is_scaled=False))
    assert traffic.owners() == {"native": 0, "managed": 0}
    assert {where for where, _ in traffic.samples[-1].floors} == {"table/world"}, "CloudFormation's own stay"
    traffic.deploy(synth(tmp_path / "new", is_scaled=False, code=code))
    assert traffic.owners() == {"native": 0, "managed": 6}
    assert {key: floor for key, floor in traffic.samples[-1].floors.items() if key in before.floors} == before.floors
    # longer than the quarter of an hour after which tracking lowers capacity
    traffic.go_on(minutes=18)

    traffic.deploy(synth(tmp_path / "left", is_scaled=False))
    assert traffic.owners() == {"native": 0, "managed": 0}
    traffic.deploy(synth(tmp_path / "back", is_scaled=True))
    assert traffic.owners() == {"native": 4, "managed": 0}
    traffic.go_on(minutes=18)
    assert traffic.scaling_of_all() == native
    for sample in traffic.samples:
        assert {key: units for key, units in sample.units.items() if units < before.units[key]} == {}
        assert {key: floor for key, floor in sample.floors.items() if floor < before.floors.get(key, 0)} == {}
    assert traffic.throttled == throttled
