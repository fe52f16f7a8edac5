"""Grants and boost tasks for tables that their coordinator does not have are errors at synth."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from cdk_highwater import BoostCoordinator, BoostTask, TaggedTables, ThrottleAwareScaler, manage_capacity
from tests.constructs.template_view import (
    READ,
    WRITE,
    global_table,
    key,
    messages,
    new_stack,
    placed_stack,
    scalable_table,
)


@pytest.fixture
def stack() -> cdk.Stack:
    return placed_stack()


def _coordinator(stack: cdk.Stack, *names: str) -> BoostCoordinator:
    coordinator = BoostCoordinator(stack, "Boosts")
    for name in names:
        coordinator.add_table(scalable_table(stack, name.title(), table_name=name))
    return coordinator


def _role(stack: cdk.Stack) -> iam.Role:
    return iam.Role(stack, "Loader", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))


def test_misspelt_name_is_answered_with_the_tables_that_there_are(stack: cdk.Stack) -> None:
    _coordinator(stack, "orders", "carts").grant_boost(_role(stack), max_write=7, tables=["orders", "oders", "zzz"])
    allowed = "allowed: the tables of Shop/Boosts: orders, carts; correct the name, or add the table to Shop/Boosts"
    assert messages(stack, "error") == [
        f"Shop/Loader: grant_boost of Shop/Boosts: got 'oders', {allowed}; did you mean orders? "
        "[highwater:grantedTableUnmanaged]",
        f"Shop/Loader: grant_boost of Shop/Boosts: got 'zzz', {allowed} [highwater:grantedTableUnmanaged]",
    ]


def test_boost_task_and_events_are_checked_as_grants_are(stack: cdk.Stack) -> None:
    coordinator = _coordinator(stack, "orders")
    lease = cdk.Duration.minutes(30)
    BoostTask(stack, "Load", coordinator=coordinator, table="order", write=5, lease=lease)
    coordinator.grant_boost_events("acme.loader", max_write=7, tables=["order"])
    told = (
        "got 'order', allowed: the tables of Shop/Boosts: orders; correct the name, or add the table to Shop/Boosts; "
        "did you mean orders? [highwater:grantedTableUnmanaged]"
    )
    assert sorted(messages(stack, "error")) == [
        f"Shop/Boosts: grant_boost_events of Shop/Boosts: {told}",
        f"Shop/Load/Function: grant_boost of Shop/Boosts: {told}",
    ]


def test_table_that_nothing_manages_or_that_another_scaler_has_is_named_with_its_fix(stack: cdk.Stack) -> None:
    coordinator = BoostCoordinator(stack, "Boosts")
    plain = dynamodb.Table(stack, "Plain", partition_key=key())
    scaled = scalable_table(stack, "Scaled")
    ThrottleAwareScaler(stack, "Scaler").add_table(scaled)
    coordinator.grant_boost(_role(stack), max_write=7, tables=[plain, scaled])
    allowed = "allowed: the tables of Shop/Boosts, which has none"
    assert messages(stack, "error") == [
        f"Shop/Loader: grant_boost of Shop/Boosts: got Shop/Plain, {allowed}; add the table to Shop/Boosts "
        "[highwater:grantedTableUnmanaged]",
        f"Shop/Loader: grant_boost of Shop/Boosts: got Shop/Scaled, a table of Shop/Scaler, {allowed}; call "
        "grant_boost of the coordinator of Shop/Scaler [highwater:grantedTableUnmanaged]",
    ]


def test_pulses_are_for_tables_of_the_scaler_unless_tags_may_name_others(stack: cdk.Stack) -> None:
    by_tags = new_stack("Tags")
    for each, tagged in ((stack, None), (by_tags, TaggedTables())):
        scaler = ThrottleAwareScaler(each, "Scaler", tagged=tagged)
        scaler.add_table(scalable_table(each, table_name="orders"))
        BoostCoordinator(each, "Boosts", scaler=scaler).grant_pulse(_role(each), tables=["odrers"])
    assert messages(stack, "error") == [
        "Shop/Loader: grant_pulse of Shop/Boosts: got 'odrers', allowed: the tables of Shop/Scaler: orders; correct "
        "the name, or add the table to Shop/Scaler; did you mean orders? [highwater:grantedTableUnmanaged]"
    ]
    assert messages(by_tags, "error") == []


def test_one_message_names_twenty_tables_at_most(stack: cdk.Stack) -> None:
    scaler = ThrottleAwareScaler(stack, "Scaler")
    for number in range(23):
        table = dynamodb.Table.from_table_name(stack, f"T{number}", f"t{number}")
        scaler.add_direct_table(table, read=READ, write=WRITE)
    BoostCoordinator(stack, "Boosts", scaler=scaler).grant_boost(_role(stack), max_write=7, tables=["orders"])
    (told,) = messages(stack, "error")
    assert "t18, t19 and 3 more; correct the name" in told


def test_tables_may_be_added_after_the_grant_and_given_in_every_form(stack: cdk.Stack) -> None:
    scaler = ThrottleAwareScaler(stack, "Scaler")
    coordinator = BoostCoordinator(stack, "Boosts", scaler=scaler)
    jobs = scalable_table(stack, "Jobs", table_name="jobs")
    named = dynamodb.Table.from_table_name(stack, "Named", "named")
    generated = dynamodb.Table(stack, "Generated", partition_key=key())
    tables = [
        *(jobs, jobs.table_name, "jobs", "eu-west-1/jobs", dynamodb.Table.from_table_name(stack, "Again", "jobs")),
        *(named, "named", generated, generated.table_name, "Shop-Generated1234-ABCDEFGHIJKL"),
    ]
    coordinator.grant_boost(_role(stack), max_write=7, tables=tables)
    scaler.add_table(jobs)
    scaler.add_table(manage_capacity(named, read=READ, write=WRITE))
    scaler.add_direct_table(generated, read=READ, write=WRITE)
    assert messages(stack, "error") == []


@pytest.mark.parametrize("is_named", [True, False])
def test_writes_of_a_table_with_replicas_are_not_boosted(stack: cdk.Stack, *, is_named: bool) -> None:
    world = global_table(stack, table_name="world", replicas=[dynamodb.ReplicaTableProps(region="eu-central-1")])
    coordinator = _coordinator(stack, "orders")
    coordinator.add_table(manage_capacity(world, read=READ, write=WRITE))
    coordinator.grant_boost(_role(stack), max_write=1_007, tables=["orders", "world" if is_named else world])
    assert messages(stack, "error") == [
        "Shop/Loader: grant_boost of Shop/Boosts: got max_write 1,007 for world, which has replicas in eu-central-1, "
        "allowed: 0, as a boost raises one replica, and the others have to take the same writes; set max_write=0, and "
        "declare a window, which every replica gets [highwater:globalTableBoost]"
    ]


def test_reads_of_a_table_with_replicas_are_boosted(stack: cdk.Stack) -> None:
    world = global_table(stack, table_name="world", replicas=[dynamodb.ReplicaTableProps(region="eu-central-1")])
    coordinator = _coordinator(stack)
    coordinator.add_table(manage_capacity(world, read=READ, write=WRITE))
    coordinator.grant_boost(_role(stack), max_read=7, tables=[world, "eu-central-1/world"])
    assert messages(stack, "error") == []


def test_label_names_a_region_in_which_the_table_is(stack: cdk.Stack) -> None:
    _coordinator(stack, "orders").grant_boost(_role(stack), max_write=7, tables=["us-east-1/orders"])
    assert [text.split(", ")[0] for text in messages(stack, "error")] == [
        "Shop/Loader: grant_boost of Shop/Boosts: got 'us-east-1/orders'"
    ]
