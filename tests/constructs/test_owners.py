"""Two constructs of one app that manage one table are told at synth, however the table is given and in which order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import TaggedTables, ThrottleAwareScaler, manage_capacity
from tests.constructs.template_view import (
    READ,
    WRITE,
    global_table,
    key,
    messages,
    new_app,
    new_stack,
    placed_stack,
    scalable_table,
)

_REGION = "eu-west-1"


def _by_name(stack: cdk.Stack, id: str = "Jobs", name: str = "jobs") -> dynamodb.ITable:
    return dynamodb.Table.from_table_name(stack, id, name)


def _by_arn(stack: cdk.Stack, id: str = "Jobs", region: str | None = None) -> dynamodb.ITable:
    """By an ARN of the stack's own account, and by default of its region."""
    arn = stack.format_arn(service="dynamodb", resource="table", resource_name="jobs", region=region)
    return dynamodb.Table.from_table_arn(stack, id, arn)


def _by_known_arn(stack: cdk.Stack, id: str = "Jobs") -> dynamodb.ITable:
    """By an ARN whose place a stack without an env cannot be compared with."""
    return dynamodb.Table.from_table_arn(stack, id, f"arn:aws:dynamodb:{_REGION}:111122223333:table/jobs")


def _own(stack: cdk.Stack, id: str = "Jobs", **more: Any) -> dynamodb.Table:
    return dynamodb.Table(stack, id, partition_key=key(), **more)


def _own_with_a_name(stack: cdk.Stack) -> dynamodb.Table:
    return _own(stack, table_name="jobs")


def _direct(table: Any, scaler: ThrottleAwareScaler | None = None) -> None:
    """Add a table in DIRECT mode, by default to a scaler of its own in the table's stack."""
    scaler = scaler or ThrottleAwareScaler(table.stack, "Scaler")
    scaler.add_direct_table(table, read=READ, write=WRITE)


def _plan(table: Any, scope: cdk.Stack | None = None) -> None:
    manage_capacity(table, scope=scope, read=READ, write=WRITE)


def _planned_after_direct(make: Callable[[cdk.Stack], Any], stack: cdk.Stack) -> None:
    table = make(stack)
    _direct(table)
    _plan(table)


def _planned_in_a_scope_before_direct(stack: cdk.Stack) -> None:
    table = _by_name(stack)
    _plan(table, stack)
    _direct(table)


def _planned_in_another_stack_after_direct(stack: cdk.Stack) -> None:
    table = _by_name(stack)
    _direct(table)
    _plan(table, cdk.Stack(stack.node.root, "Other"))  # type: ignore[arg-type] # the root is the app


def _planned_by_name_before_direct_by_arn(stack: cdk.Stack) -> None:
    _plan(_by_name(stack, "Again"), stack)
    _direct(_by_arn(stack))


def _planned_by_arn_after_direct_by_construct(stack: cdk.Stack) -> None:
    _direct(_own_with_a_name(stack))
    _plan(_by_arn(stack, "Again"), stack)


def _planned_by_a_reference_after_direct(stack: cdk.Stack) -> None:
    table = _own(stack)
    _direct(table)
    _plan(_by_name(stack, "Again", table.table_name), stack)


def _planned_in_a_nested_stack_after_direct(stack: cdk.Stack) -> None:
    _direct(_by_name(stack))
    nested = cdk.NestedStack(stack, "Nested")
    _plan(_by_name(nested), nested)


@pytest.mark.parametrize(
    ("build", "owner"),
    [
        pytest.param(partial(_planned_after_direct, _own), "Shop/Jobs/Capacity", id="planned-after"),
        pytest.param(partial(_planned_after_direct, _by_name), "Shop/Jobs/Capacity", id="imported-planned-after"),
        pytest.param(_planned_in_a_scope_before_direct, "Shop/Capacity", id="scope-before"),
        pytest.param(_planned_in_another_stack_after_direct, "Other/Capacity", id="other-stack-after"),
        pytest.param(_planned_by_name_before_direct_by_arn, "Shop/Capacity", id="name-before-arn"),
        pytest.param(_planned_by_arn_after_direct_by_construct, "Shop/Capacity", id="arn-after-construct"),
        pytest.param(_planned_by_a_reference_after_direct, "Shop/Capacity", id="reference-after"),
        pytest.param(_planned_in_a_nested_stack_after_direct, "Shop/Nested/Capacity", id="nested-after"),
    ],
)
def test_direct_table_has_no_scalable_targets(build: Callable[[cdk.Stack], None], owner: str) -> None:
    """The scaler would leave the table alone, and say so only in its log."""
    stack = new_stack()
    build(stack)
    assert messages(stack, "error") == [
        f"Shop/Scaler: the table: {owner} makes scalable targets for Shop/Jobs, and DIRECT mode is for tables that "
        "nothing else scales; remove the call of add_direct_table, and pass the result of manage_capacity to add_table "
        "[highwater:secondPlan]"
    ]


def _by_parameter(stack: cdk.Stack, id: str = "Jobs") -> dynamodb.ITable:
    parameter = stack.node.try_find_child("Name") or cdk.CfnParameter(stack, "Name")
    assert isinstance(parameter, cdk.CfnParameter)
    return _by_name(stack, id, parameter.value_as_string)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(_by_name, _by_name, id="names"),
        pytest.param(_by_name, _by_arn, id="name-and-arn"),
        # the scaler's stack has no region to compare with, so that its plans for the two have one name
        pytest.param(_by_name, _by_known_arn, id="name-and-known-arn"),
        pytest.param(_by_parameter, _by_parameter, id="parameter"),
    ],
)
def test_scaler_has_one_plan_for_a_direct_table(first: Callable[..., Any], second: Callable[..., Any]) -> None:
    """CloudFormation would refuse the second parameter of one name, in the middle of a deploy."""
    stack = new_stack()
    scaler = ThrottleAwareScaler(stack, "Scaler")
    _direct(first(stack), scaler)
    _direct(second(stack, "Again"), scaler)
    assert messages(stack, "error") == [
        "Shop/Scaler: the table: Shop/Again and Shop/Jobs are one table, and the scaler would have two plans for it; "
        "remove one of the two calls of add_direct_table [highwater:secondPlan]"
    ]


SAME = [
    pytest.param(_by_name, _by_name, id="names"),
    pytest.param(_by_name, _by_arn, id="name-and-arn"),
    pytest.param(_by_arn, _by_name, id="arn-and-name"),
    pytest.param(_by_name, _by_known_arn, id="name-and-known-arn"),
    pytest.param(_by_known_arn, _by_name, id="known-arn-and-name"),
]


@pytest.mark.parametrize(("first", "second"), [*SAME, pytest.param(_by_arn, _by_arn, id="arns")])
def test_direct_table_has_one_scaler(first: Callable[..., Any], second: Callable[..., Any]) -> None:
    stack = new_stack()
    _direct(first(stack), ThrottleAwareScaler(stack, "First"))
    _direct(second(stack, "Again"), ThrottleAwareScaler(stack, "Second"))
    assert messages(stack, "error") == [
        "Shop/Second: the table: scaler Shop/First manages the table already; two scalers would set each other's "
        "floors; add the table to one of the two [highwater:secondScaler]"
    ]


@pytest.mark.parametrize(
    ("first", "second"), [*SAME, pytest.param(_own_with_a_name, _by_name, id="construct-and-name")]
)
def test_table_has_one_plan(first: Callable[..., Any], second: Callable[..., Any]) -> None:
    """The targets are in the stack's account and region, which only a deploy knows, whatever the ARN says."""
    stack = new_stack()
    _plan(first(stack))
    _plan(second(stack, "Again"))
    assert messages(stack, "error") == [
        "Shop/Again: the table: Shop/Jobs/Capacity manages the capacity of the same table, and AWS allows one scalable "
        "target per dimension; remove one of the two calls of manage_capacity [highwater:secondPlan]"
    ]


def _world(stack: cdk.Stack, **of_replica: Any) -> dynamodb.TableV2:
    replicas = [dynamodb.ReplicaTableProps(region="us-east-1", **of_replica)]
    return global_table(stack, table_name="world", replicas=replicas)


def test_replica_has_one_scaler() -> None:
    """A scaler manages a TableV2 in the regions of its replicas too."""
    app = new_app()
    here, there = placed_stack(app, "Here"), placed_stack(app, "There", "us-east-1")
    world = _world(here)
    ThrottleAwareScaler(here, "Scaler").add_table(manage_capacity(world, read=READ, write=WRITE))
    _direct(_by_name(there, name="world"))
    assert messages(there, "error") == [
        "There/Scaler: the table: scaler Here/Scaler manages the table already; two scalers would set each other's "
        "floors; add the table to one of the two [highwater:secondScaler]"
    ]


def test_tables_of_one_name_in_two_places_are_two_tables() -> None:
    """Two regions that are known, and two stacks that may be deployed to different places."""
    app = new_app()
    here, there = placed_stack(app, "Here"), placed_stack(app, "There", "us-east-1")
    stacks = [here, there, cdk.Stack(app, "Dev"), cdk.Stack(app, "Prod")]
    for stack in stacks:
        _direct(_by_name(stack))
    _direct(_by_arn(here, "Again", "ap-south-1"), ThrottleAwareScaler(here, "Far"))
    assert [messages(stack, "error") for stack in stacks] == [[], [], [], []]


def test_tables_whose_names_are_made_at_deploy_time_are_two_tables() -> None:
    stack = new_stack()
    scaler = ThrottleAwareScaler(stack, "Scaler")
    for id in ("Jobs", "Orders"):
        _direct(_own(stack, id), scaler)
    for id in ("Lines", "Items"):
        scaler.add_table(scalable_table(stack, id))
    assert messages(stack, "error") == []


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        pytest.param((_REGION, []), (_REGION, []), "eu-west-1", id="own-regions"),
        pytest.param(("us-east-1", [_REGION]), (_REGION, []), "eu-west-1", id="region-of-the-first"),
        pytest.param((_REGION, []), ("us-east-1", [_REGION]), "eu-west-1", id="region-of-the-second"),
        pytest.param(
            ("us-east-1", ["ap-south-1", "sa-east-1"]),
            (_REGION, ["ap-south-1", "eu-north-1", "sa-east-1"]),
            "ap-south-1, sa-east-1",
            id="other-regions",
        ),
    ],
)
def test_tagged_tables_of_a_region_have_one_scaler(
    first: tuple[str, list[str]], second: tuple[str, list[str]], shared: str
) -> None:
    app = new_app()
    stacks = []
    for name, (region, regions) in (("First", first), ("Second", second)):
        stacks.append(placed_stack(app, name, region))
        ThrottleAwareScaler(stacks[-1], "Scaler", tagged=TaggedTables(regions=regions))
    assert messages(stacks[0], "error") == []
    assert messages(stacks[1], "error") == [
        f"Second/Scaler: tagged tables: scaler First/Scaler manages the tagged tables of the same account in {shared} "
        "already; pass tagged= to one of the two, or give them different regions [highwater:secondScaler]"
    ]


def test_tagged_tables_of_two_regions_have_two_scalers() -> None:
    app = new_app()
    stacks = [placed_stack(app, "First"), placed_stack(app, "Second", "us-east-1")]
    for stack in stacks:
        ThrottleAwareScaler(stack, "Scaler", tagged=TaggedTables(regions=[stack.region]))
    assert [messages(stack, "error") for stack in stacks] == [[], []]


def _found_by_tag(owner: str, table: str) -> str:
    return (
        f"Tags/Scaler: tagged tables: {owner} manages {table}, whose tag highwater:managed lets this scaler manage it "
        "too; two scalers would set each other's floors; remove the tag, or add the table to this scaler "
        "[highwater:secondScaler]"
    )


def test_tagged_table_of_another_scaler_is_refused_whenever_it_is_tagged() -> None:
    app = new_app()
    tags, shop = placed_stack(app, "Tags"), placed_stack(app, "Shop")
    ThrottleAwareScaler(tags, "Scaler", tagged=TaggedTables())
    scaler = ThrottleAwareScaler(shop, "Scaler")
    jobs = scalable_table(shop)
    scaler.add_table(jobs)
    orders, lines = _own(shop, "Orders"), _own(shop, "Lines")
    _direct(orders, scaler)
    _direct(lines, scaler)
    cdk.Tags.of(jobs).add("highwater:managed", "floor")
    cdk.Tags.of(orders).add("highwater:managed", "direct")
    cdk.Tags.of(lines).add("highwater:managed", "no")
    assert messages(tags, "error") == [
        _found_by_tag("Shop/Scaler", "Shop/Jobs"),
        _found_by_tag("Shop/Scaler", "Shop/Orders"),
    ]


def test_tagged_replica_of_another_scaler_is_refused() -> None:
    app = new_app()
    tags, shop = placed_stack(app, "Tags", "us-east-1"), placed_stack(app, "Shop")
    ThrottleAwareScaler(tags, "Scaler", tagged=TaggedTables())
    world = _world(shop, tags=[cdk.CfnTag(key="highwater:managed", value="floor")])
    ThrottleAwareScaler(shop, "Scaler").add_table(manage_capacity(world, read=READ, write=WRITE))
    assert messages(tags, "error") == [_found_by_tag("Shop/Scaler", "Shop/World")]


def test_tagged_table_may_have_its_own_scaler_and_one_that_does_not_search_its_region() -> None:
    app = new_app()
    far, shop = placed_stack(app, "Far", "us-east-1"), placed_stack(app, "Shop")
    ThrottleAwareScaler(far, "Scaler", tagged=TaggedTables())
    scaler = ThrottleAwareScaler(shop, "Scaler", tagged=TaggedTables())
    jobs = scalable_table(shop)
    scaler.add_table(jobs)
    cdk.Tags.of(jobs).add("highwater:managed", "floor")
    assert [messages(stack, "error") for stack in (far, shop)] == [[], []]
