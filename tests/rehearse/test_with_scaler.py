"""Rehearsals of templates that give their table to the scaler."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, HighWaterMark, HighWaterTable, ThrottleAwareScaler, Window, manage_capacity
from highwater.core import Dimension
from highwater.core.scaler import Mode
from highwater_lab.policies.declared import Declared
from highwater_lab.rehearse import rehearse
from highwater_lab.simulation import Run, simulate
from highwater_lab.simulation.run import EventKind
from highwater_lab.template import TemplateError, find_table, load_templates
from tests.simulation.tables import START, writes

KEY = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)
WRITE = Dimension.WRITE
# two of zones whose clocks change on different days: no list of scheduled actions holds both
LOADS = [
    Window.daily("load", start="10:00", end="10:30", timezone="UTC", write_min=3_000, write_max=9_500),
    Window.daily("sale", start="04:00", end="05:00", timezone="America/New_York", write_min=700),
    Window.daily("late", start="23:00", end="23:30", timezone="Asia/Tokyo", write_min=800),
]
SURGE = writes(*[200] * 60, *[1_400] * 40, *[200] * 80, start=START.replace(hour=9))


def _synthesized(folder: Path, *, target_percent: int = 90, scaled: bool = True, held: bool = False) -> Path:
    app = cdk.App(outdir=str(folder / "cdk.out"))
    stack = cdk.Stack(app, "Shop")
    scaler = ThrottleAwareScaler(stack, "Scaler") if scaled else None
    orders = HighWaterTable(
        stack,
        "Orders",
        partition_key=KEY,
        read=Capacity.fixed(5),
        write=Capacity.autoscaled(min_capacity=100, max_capacity=9_000, target_utilization_percent=target_percent),
        windows=LOADS if held else [],
        windows_held_by=scaler if held else None,
        # as a scaler's table has it
        high_water_mark=None if scaled else HighWaterMark.to_ceiling(),
    )
    if scaler is not None and not held:
        scaler.add_table(orders)
    app.synth()
    return folder / "cdk.out"


def _floors(run: Run) -> list[tuple[int, int, int]]:
    """Seconds, floor, ceiling."""
    return list(run.target(WRITE).bounds)


def test_scaler_of_the_template_is_rehearsed_with_it(tmp_path: Path) -> None:
    found = rehearse(_synthesized(tmp_path / "with"), SURGE, compare=["highwater-floor", "native:90"])
    declared, floor, native = found.runs
    assert declared.policy == "declared"
    assert found.setup.notes == ("the policy 'declared' includes the template's scaler, in FLOOR mode",)
    # the same table and target percentage: the same decisions, at the same price but for some metrics, as tables are
    # looked at in minutes that follow from their names
    assert declared.targets == floor.targets
    assert replace(declared.bill, metrics=floor.bill.metrics) == floor.bill
    assert declared.bill.metrics == pytest.approx(floor.bill.metrics, rel=0.03)
    assert declared.throttled_units < native.throttled_units
    assert declared.bill.scaler > 0
    told = [event.text for event in declared.events if event.kind is EventKind.BOUNDS]
    assert told
    # capacity is lowered by a ceiling at the floor, which is the plan's again right after
    for text, following in zip(told, [*told[1:], ""], strict=True):
        found_bounds = re.fullmatch(r"scaler: floor ([\d,]+), ceiling ([\d,]+)", text)
        assert found_bounds
        low, high = found_bounds.groups()
        assert high == "9,000" or (low == high and following == f"scaler: floor {low}, ceiling 9,000")
    without = rehearse(_synthesized(tmp_path / "without", scaled=False), SURGE)
    assert without.setup.scaler is None
    # native has a policy for the fixed reads too
    own, tracked = (
        [replace(each, target_percent=None, is_scaled=False) for each in run.targets]
        for run in (without.declared, native)
    )
    assert own == tracked


def test_windows_that_the_scaler_holds_are_rehearsed(tmp_path: Path) -> None:
    found = rehearse(_synthesized(tmp_path, held=True), writes(*[20] * 180, start=START.replace(hour=8)))
    assert found.setup.scaler is not None
    assert found.setup.resources[0].write.actions == ()
    # the sale is from 9:00 UTC on, as New York is in winter
    floors = _floors(found.declared)
    assert [(low, high) for _, low, high in floors] == [(100, 9_000), (700, 9_000), (3_000, 9_500), (100, 9_000)]
    leads = [at // 60 for at, _, _ in floors[1:]]
    assert 50 <= leads[0] <= 60
    assert 110 <= leads[1] <= 120
    assert leads[2] == 150


def test_window_that_is_open_at_the_start_is_there_at_the_start(tmp_path: Path) -> None:
    found = rehearse(_synthesized(tmp_path, held=True), writes(*[20] * 60, start=START.replace(hour=10, minute=5)))
    assert _floors(found.declared)[0] == (0, 3_000, 9_500)


def test_direct_table_is_moved_by_the_scaler_alone(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path / "cdk.out"))
    stack = cdk.Stack(app, "Shop")
    orders = dynamodb.Table(stack, "Orders", partition_key=KEY, read_capacity=5, write_capacity=120)
    ThrottleAwareScaler(stack, "Scaler").add_direct_table(
        orders,
        read=Capacity.fixed(5),
        write=Capacity.autoscaled(min_capacity=100, max_capacity=9_000),
        windows=[LOADS[0]],
    )
    app.synth()
    found = rehearse(tmp_path / "cdk.out", SURGE)
    assert found.setup.scaler is not None
    assert found.setup.scaler.mode is Mode.DIRECT
    capacity = list(found.declared.target(WRITE).capacity_by_minute())
    # asked for at 09:55, as the window has a lead; UpdateTable takes as long
    # before, 200 units are 70 % of the capacity, as less than an hour is known
    assert (capacity[59], capacity[60]) == (286, 3_000)
    assert 1_400 <= capacity[119] < 3_000, "what the surge asked for, as the hour is paid for"
    assert capacity[-1] < 1_400
    assert found.declared.target(Dimension.READ).capacity == ((0, 5),)


def test_global_table_has_its_scaler(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path / "cdk.out"))
    stack = cdk.Stack(app, "Shop")
    world = dynamodb.TableV2(
        stack,
        "World",
        partition_key=KEY,
        billing=dynamodb.Billing.provisioned(
            read_capacity=dynamodb.Capacity.fixed(7), write_capacity=dynamodb.Capacity.autoscaled(max_capacity=10)
        ),
    )
    units = Capacity.autoscaled(min_capacity=100, max_capacity=9_000, target_utilization_percent=90)
    scaler = ThrottleAwareScaler(stack, "Scaler")
    manage_capacity(world, read=units, write=units, windows=[LOADS[0]], windows_held_by=scaler, high_water_mark=None)
    app.synth()
    floors = _floors(rehearse(tmp_path / "cdk.out", SURGE).declared)
    assert (3_000, 9_500) in [(low, high) for _, low, high in floors]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("no plan", "DocumentError: is not JSON (Expecting value: line 1 column 1 (char 0))"),
        ('{"mode": "floor"}', "KeyError: 'plan'"),
        ('{"mode": "often", "plan": {}}', "ValueError: 'often' is not a valid Mode"),
        ("7", "TypeError: 'int' object is not subscriptable"),
    ],
)
def test_invalid_plan_is_reported_in_one_line(tmp_path: Path, value: str, says: str) -> None:
    file = tmp_path / "odd.json"
    parameter = {"Name": "/highwater/plans/Prod-Scaler/orders", "Value": value}
    table = {"TableName": "orders", "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}}
    resources = {
        "Plan": {"Type": "AWS::SSM::Parameter", "Properties": parameter},
        "Orders": {"Type": "AWS::DynamoDB::Table", "Properties": table},
    }
    file.write_text(json.dumps({"Resources": resources}))
    with pytest.raises(TemplateError) as refused:
        find_table(load_templates(file))
    assert str(refused.value) == (
        f"{file}: Plan (Parameter) Value is not a valid plan for Highwater's scaler: {says}; run cdk synth again"
    )


def test_simulation_of_what_is_declared_has_the_scaler_too(tmp_path: Path) -> None:
    found = rehearse(_synthesized(tmp_path), SURGE)
    run = simulate(found.setup, SURGE, Declared())
    assert (run.targets, run.events, run.bill) == (
        found.declared.targets,
        found.declared.events,
        found.declared.bill,
    )


# of a surge that a scaler of tagged tables is to follow
TAGS = {
    "highwater:read-min": "5",
    "highwater:read-max": "50",
    "highwater:write-min": "210",
    "highwater:write-max": "9000",
}


def _tagged(folder: Path, kind: str, tags: dict[str, str]) -> Path:
    app = cdk.App(outdir=str(folder / "cdk.out"))
    stack = cdk.Stack(app, "Shop")
    if kind == "Table":
        mode = dynamodb.BillingMode.PROVISIONED
        made: dynamodb.TableBaseV2 | dynamodb.Table = dynamodb.Table(
            stack, "Orders", partition_key=KEY, billing_mode=mode, read_capacity=5, write_capacity=7
        )
    else:
        low, high = (dynamodb.Capacity.autoscaled(min_capacity=5, max_capacity=most) for most in (60, 9_000))
        billing = dynamodb.Billing.provisioned(read_capacity=low, write_capacity=high)
        made = dynamodb.TableV2(stack, "Orders", partition_key=KEY, billing=billing)
    for name, value in tags.items():
        cdk.Tags.of(made).add(name, value)
    app.synth()
    return folder / "cdk.out"


@pytest.mark.parametrize(("kind", "mode"), [("Table", Mode.DIRECT), ("TableV2", Mode.FLOOR)])
def test_table_with_tags_is_rehearsed_with_a_scaler_that_no_alarm_wakes(kind: str, mode: Mode, tmp_path: Path) -> None:
    orders = find_table(load_templates(_tagged(tmp_path, kind, TAGS | {"highwater:managed": mode})))
    assert orders.scaler is not None
    assert (orders.scaler.mode, orders.scaler.is_tagged) == (mode, True)
    assert [note for note in orders.notes if "tag" in note] == [
        "Shop/Orders: it has the tag highwater:managed, and is taken to be managed by a scaler of tagged tables"
    ]
    run = rehearse(orders, SURGE).declared
    raised = [at for at, units in run.target(WRITE).capacity if units > 1_000]
    assert raised, "the surge of 1,400 units/s is met"
    # with an alarm, as a table of the scaler's own has, it is met earlier
    named = replace(orders, scaler=replace(orders.scaler, is_tagged=False))
    assert rehearse(named, SURGE).declared.throttled_units < run.throttled_units


def test_wrong_tags_are_told_and_no_scaler_is_rehearsed(tmp_path: Path) -> None:
    orders = find_table(load_templates(_tagged(tmp_path, "Table", TAGS | {"highwater:managed": "both"})))
    assert orders.scaler is None
    assert [note for note in orders.notes if "tag" in note] == [
        "Shop/Orders: its tags are not read, and no scaler manages it: tag highwater:managed must be floor or direct, "
        "got 'both'"
    ]
