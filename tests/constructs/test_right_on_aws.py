"""What AWS would refuse, or take for something else, is told at synth; what synth packs can be read by Lambda."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from cdk_highwater import (
    Capacity,
    GlobalSecondaryIndex,
    HighWaterMark,
    IndexCapacity,
    TaggedTables,
    ThrottleAwareScaler,
    Window,
    manage_capacity,
)
from tests.constructs.template_view import (
    READ,
    WRITE,
    TemplateView,
    global_table,
    key,
    messages,
    new_app,
    new_stack,
    placed_stack,
    refused,
    scalable_table,
)

NIGHT = Window.daily("night", start="23:00", end="02:00", timezone="UTC", write_min=900)


@pytest.mark.parametrize(
    ("declared", "managed", "present"),
    [
        (dynamodb.Capacity.fixed(5), READ, "ReadCapacityAutoScalingSettings"),
        (dynamodb.Capacity.autoscaled(max_capacity=11), Capacity.fixed(6), "ReadCapacityUnits"),
    ],
    ids=["fixed-becomes-autoscaled", "autoscaled-becomes-fixed"],
)
def test_global_table_has_one_property_for_its_reads(
    declared: dynamodb.Capacity, managed: Capacity, present: str
) -> None:
    """10: CloudFormation refuses both together."""
    stack = placed_stack()
    by_day = dynamodb.GlobalSecondaryIndexPropsV2(index_name="by-day", partition_key=key("day"))
    table = global_table(stack, read=declared, global_secondary_indexes=[by_day])
    manage_capacity(table, read=managed, write=WRITE)
    (replica,) = TemplateView(stack).properties_of("AWS::DynamoDB::GlobalTable")["Replicas"]
    settings = [replica, *replica["GlobalSecondaryIndexes"]]
    assert [list(each["ReadProvisionedThroughputSettings"]) for each in settings] == [[present], [present]]


def test_roles_that_somebody_else_makes_do_not_break_synth() -> None:
    """15."""
    stack = new_stack()
    iam.Role.customize_roles(stack)
    ThrottleAwareScaler(stack, "Scaler").add_table(scalable_table(stack))
    assert len(TemplateView(stack).of_type("AWS::Lambda::Function")) == 2


def test_asset_is_readable_under_any_umask() -> None:
    """21: Lambda runs the function as another user."""
    stack = new_stack()
    before = os.umask(0o077)
    try:
        ThrottleAwareScaler(stack, "Scaler").add_table(scalable_table(stack))
        assembly = cdk.App.of(stack).synth()  # type: ignore[union-attr] # the stack is in an app
    finally:
        os.umask(before)
    assets = list(Path(assembly.directory).glob("asset.*"))
    assert len(assets) == 2
    for asset in assets:
        with zipfile.ZipFile(asset) as archive:
            modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
        assert set(modes.values()) == {0o644}


def _auto_scaled_beside_managed(stack: cdk.Stack) -> None:
    table = dynamodb.Table(stack, "Jobs", partition_key=key(), read_capacity=5, write_capacity=6)
    table.add_global_secondary_index(index_name="by-day", partition_key=key("day"))
    table.auto_scale_write_capacity(min_capacity=6, max_capacity=60)
    manage_capacity(table, read=READ, write=WRITE)
    table.auto_scale_global_secondary_index_read_capacity("by-day", min_capacity=6, max_capacity=60)


def _managed_from_two_scopes(stack: cdk.Stack) -> None:
    table = dynamodb.Table(stack, "Jobs", partition_key=key())
    manage_capacity(table, read=READ, write=WRITE)
    manage_capacity(table, scope=cdk.Stack(stack.node.root, "Other"), read=READ, write=WRITE)  # type: ignore[arg-type]


def _two_scalers(stack: cdk.Stack) -> None:
    table = scalable_table(stack)
    for id in ("First", "Second"):
        ThrottleAwareScaler(stack, id).add_table(table)


def _two_scalers_of_tags(stack: cdk.Stack) -> None:
    for id in ("First", "Second"):
        ThrottleAwareScaler(stack, id, tagged=TaggedTables())


def _by_construct_and_by_resource(stack: cdk.Stack) -> None:
    jobs = dynamodb.Table(stack, "Jobs", partition_key=key())
    manage_capacity(jobs, read=READ, write=WRITE)
    template = jobs.node.default_child
    assert isinstance(template, dynamodb.CfnTable)
    manage_capacity(template, read=READ, write=WRITE)


SECOND = "the plan already has a scalable target for this dimension, and AWS allows only one; "
REMOVE = (
    "remove the call; the plan says how the dimension is scaled. If the call is deployed already, first deploy without "
    "both, because CloudFormation creates the plan's target before it deletes this one [highwater:secondTarget]"
)

SECOND_PLAN = (
    "the table: Shop/Jobs/Capacity manages the capacity of the same table, and AWS allows one scalable target per "
    "dimension; remove one of the two calls of manage_capacity [highwater:secondPlan]"
)


@pytest.mark.parametrize(
    ("build", "told"),
    [
        pytest.param(
            _auto_scaled_beside_managed,
            [
                f"Shop/Jobs: auto_scale_write_capacity(): {SECOND}{REMOVE}",
                f"Shop/Jobs: auto_scale_global_secondary_index_read_capacity('by-day'): {SECOND}{REMOVE}",
            ],
            id="auto-scale-call",
        ),
        pytest.param(
            _by_construct_and_by_resource, [f"Shop/Jobs/Resource: {SECOND_PLAN}"], id="by-construct-and-by-resource"
        ),
        pytest.param(_managed_from_two_scopes, [f"Shop/Jobs: {SECOND_PLAN}"], id="two-scopes"),
        pytest.param(
            _two_scalers,
            [
                "Shop/Jobs/Capacity: the table: scaler Shop/First manages the table already; two scalers would set "
                "each other's floors; add the table to one of the two [highwater:secondScaler]"
            ],
            id="two-scalers",
        ),
        pytest.param(
            _two_scalers_of_tags,
            [
                "Shop/Second: tagged tables: scaler Shop/First manages the tagged tables of the same account and "
                "region already; pass tagged= to one of the two, or give them different regions "
                "[highwater:secondScaler]"
            ],
            id="two-scalers-of-tags",
        ),
    ],
)
def test_second_owner_is_refused(build: Callable[[cdk.Stack], None], told: list[str]) -> None:
    """1 and 22: the likeliest mistakes of a migration."""
    stack = new_stack()
    build(stack)
    assert messages(stack, "error") == told


def test_tables_of_one_name_in_two_regions_are_two_tables() -> None:
    """22: dev and prod may import the same name."""
    app = new_app()
    stacks = [placed_stack(app, f"Shop-{region}", region) for region in ("eu-west-1", "us-east-1")]
    for stack in stacks:
        manage_capacity(dynamodb.Table.from_table_name(stack, "Jobs", "jobs"), read=READ, write=WRITE)
    assert [messages(stack, "error") for stack in stacks] == [[], []]


WRONG_TYPES: dict[str, tuple[dict[str, Any], str]] = {
    "index-of-text": ({"indexes": ["by-day"]}, "indexes[0] must be a GlobalSecondaryIndex, got str 'by-day'"),
    "indexes-of-text": (
        {"indexes": "by-day"},
        "indexes must be a list of GlobalSecondaryIndex, got 'by-day'; leave the argument out for none",
    ),
    "one-index": (
        {"indexes": GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"))},
        "indexes must be a list of GlobalSecondaryIndex, got one GlobalSecondaryIndex; put it in brackets",
    ),
    "capacity-of-an-index": (
        {"indexes": [IndexCapacity(index_name="by-day")]},
        "indexes[0] must be a GlobalSecondaryIndex, got IndexCapacity IndexCapacity(index_name='by-day', read=None, "
        "write=None, windows=None, is_managed=True)",
    ),
    "mark": (
        {"high_water_mark": 5000},
        "high_water_mark must be a HighWaterMark, got 5000; give HighWaterMark.units(read=, write=)",
    ),
    "no-windows": ({"windows": None}, "windows must be a list of Window, got None; leave the argument out for none"),
    "windows-of-none": ({"windows": [None]}, "windows[0] must be a Window, got NoneType None"),
    "windows-of-an-index": (
        {"indexes": [GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), windows=NIGHT)]},  # type: ignore[arg-type]
        "windows of index 'by-day' must be a list of Window, got one Window; put it in brackets",
    ),
}


@pytest.mark.parametrize(("arguments", "told"), WRONG_TYPES.values(), ids=list(WRONG_TYPES))
def test_argument_of_another_type_is_refused_in_one_line(arguments: dict[str, Any], told: str) -> None:
    """25."""
    stack = new_stack()
    with refused(TypeError, told):
        scalable_table(stack, **arguments)
    assert TemplateView(stack).template.get("Resources", {}) == {}


def test_nested_windows_are_refused() -> None:
    """25: the text of a window is long, and cut."""
    with pytest.raises(TypeError, match=r"^windows\[0\] must be a Window, got list \[Window\(name='night', "):
        scalable_table(new_stack(), windows=[[NIGHT]])


def test_abbreviation_is_no_zone() -> None:
    """25: EST is five hours behind all year, and New York is not."""
    stack = new_stack()
    scalable_table(stack, windows=[Window.daily("night", start="23:00", end="02:00", timezone="EST", write_min=900)])
    assert [text.split("[")[-1] for text in messages(stack, "error")] == ["highwater:unknownTimezone]"]


def test_indexes_may_begin_with_capacity_of_their_own() -> None:
    """2 and 3: an index that is added to a table in use is built with these units."""
    stack = new_stack()
    indexes = [
        GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), initial_write_units=700),
        GlobalSecondaryIndex(index_name="by-name", partition_key=key("name")),
    ]
    none = HighWaterMark.none()
    scalable_table(stack, indexes=indexes, initial_read_units=11, initial_write_units=13, high_water_mark=none)
    table = TemplateView(stack).properties_of("AWS::DynamoDB::Table")
    throughputs = [each["ProvisionedThroughput"] for each in (table, *table["GlobalSecondaryIndexes"])]
    units = [(each["ReadCapacityUnits"], each["WriteCapacityUnits"]) for each in throughputs]
    assert units == [(11, 13), (11, 700), (11, 13)]


WHOLE = "allowed: whole units per second, 1 or more; "
NO_NUMBER = f"{WHOLE}write a whole number [highwater:unitsNotPositive]"
TOO_FEW = f"{WHOLE}give 1 for the lowest capacity [highwater:unitsNotPositive]"
TOO_MANY = (
    "allowed: up to 40000, the account's quota for a table or index; lower the value, or request a higher quota from "
    "AWS and give it as table_quota_units [highwater:aboveQuota]"
)


@pytest.mark.parametrize(
    ("units", "told"),
    [
        pytest.param(0, TOO_FEW, id="none"),
        pytest.param(-1, TOO_FEW, id="negative"),
        pytest.param(1.5, NO_NUMBER, id="fraction"),
        pytest.param("5", NO_NUMBER, id="text"),
        pytest.param(True, NO_NUMBER, id="flag"),
        pytest.param(40_001, TOO_MANY, id="above-the-quota"),
    ],
)
def test_initial_units_that_a_deploy_would_fail_on_are_refused(units: Any, told: str) -> None:
    """2 and 3."""
    stack = new_stack()
    index = GlobalSecondaryIndex(index_name="by-day", partition_key=key("day"), initial_write_units=units)
    scalable_table(stack, indexes=[index], initial_read_units=units)
    assert messages(stack, "error") == [
        f"Shop/Jobs: table initial_read_units: got {units!r}, {told}",
        f"Shop/Jobs: index 'by-day' initial_write_units: got {units!r}, {told}",
    ]


def test_initial_units_of_a_table_cannot_be_none() -> None:
    """2: the CDK would take five."""
    stack = new_stack()
    scalable_table(stack, initial_write_units=None)
    assert messages(stack, "error") == [f"Shop/Jobs: table initial_write_units: got None, {NO_NUMBER}"]


def test_initial_units_may_be_the_quota_or_known_only_at_deploy_time() -> None:
    """2: CloudFormation fills a parameter in."""
    stack = new_stack()
    units = cdk.CfnParameter(stack, "Units", type="Number").value_as_number
    scalable_table(stack, initial_read_units=4_000, initial_write_units=units, table_quota_units=4_000)
    assert messages(stack, "error") == []
    assert TemplateView(stack).properties_of("AWS::DynamoDB::Table")["ProvisionedThroughput"] == {
        "ReadCapacityUnits": 4_000,
        "WriteCapacityUnits": {"Ref": "Units"},
    }


def test_quota_that_is_none_is_told_without_the_initial_units() -> None:
    """2."""
    stack = new_stack()
    scalable_table(stack, table_quota_units=0)
    assert messages(stack, "error") == [f"Shop/Jobs: table_quota_units: got 0, {TOO_FEW}"]


def test_floors_are_set_again_when_only_the_scheduled_actions_change() -> None:
    """5: synth leaves out a one-off window that is over, and CloudFormation registers the target anew."""
    sale = Window.once("sale", start="2031-03-01T08:00", end="2031-03-01T09:00", timezone="UTC", write_min=900)
    properties = []
    for as_of in ("2031-02-01T00:00:00+00:00", "2031-04-01T00:00:00+00:00"):
        stack = cdk.Stack(new_app(as_of), "Shop")
        scalable_table(stack, windows=[sale, NIGHT])
        properties.append(TemplateView(stack).properties_of("Custom::HighwaterFloors"))
    before, after = properties
    assert before["Plan"] == after["Plan"]
    assert before["Actions"] != after["Actions"]


@pytest.mark.skipif(
    not hasattr(dynamodb.CfnTable, "VectorIndexProperty"), reason="vector indexes came with a newer aws-cdk-lib, 2.274"
)
def test_vector_indexes_are_for_on_demand_tables() -> None:
    """17."""
    stack = new_stack()
    table = dynamodb.Table(stack, "Jobs", partition_key=key())
    template = table.node.default_child
    assert isinstance(template, dynamodb.CfnTable)
    # without types: the oldest aws-cdk-lib does not have these
    newer: Any = dynamodb.CfnTable
    vector_index = newer.VectorIndexProperty(
        index_name="by-meaning",
        dimensions=256,
        distance_function="COSINE",
        projection=dynamodb.CfnTable.ProjectionProperty(projection_type="ALL"),
        vector_attribute=newer.VectorAttributeProperty(attribute_name="meaning"),
    )
    setattr(template, "vector_indexes", [vector_index])  # noqa: B010 - likewise
    manage_capacity(table, read=READ, write=WRITE)
    assert messages(stack, "error") == [
        "Shop/Jobs: the table: it has vector indexes, which DynamoDB allows on on-demand tables only; leave the table "
        "on demand and declare no capacity for it, or move its vector indexes to another table "
        "[highwater:vectorIndexes]"
    ]


def test_nested_stacks_of_one_shape_have_scalers_of_two_names() -> None:
    """1: a nested stack has no name before it is deployed."""
    app = new_app()
    nested = [cdk.NestedStack(placed_stack(app, stage), "Tables") for stage in ("Dev", "Prod")]
    names = [ThrottleAwareScaler(stack, "Scaler").scaler_name for stack in nested]
    assert [name.split("-")[0] for name in names] == ["Dev", "Prod"]


def test_table_with_an_error_of_its_own_may_have_a_scaler() -> None:
    """What is wrong with the table is told, and nothing else."""
    stack = new_stack()
    wrong = Capacity.autoscaled(min_capacity=9, max_capacity=8)
    ThrottleAwareScaler(stack, "Scaler").add_table(scalable_table(stack, read=wrong))
    assert [text.split("[")[-1] for text in messages(stack, "error")] == ["highwater:maxBelowMin]"]
