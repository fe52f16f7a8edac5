"""The guard's answer to one Terraform plan after another: before, after, actions, and the right sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from highwater_lab.template import load_prior, load_templates
from tests.template.plans import plan, policy, resource, saved, state, table, target
from tests.template.test_guard import KEEP, Document
from tests.template.test_guard_cases import KEEP_REPLICA, LOST, sentences

ORDERS, PURCHASES = "aws_dynamodb_table.orders", "aws_dynamodb_table.purchases"
WRITES = "aws_appautoscaling_target.write"


def change(address: str, *actions: str, previous: str = "", **more: Any) -> Document:
    change = {"actions": list(actions), "replace_paths": more.pop("paths", [])} | more
    return {"address": address, "type": "aws_dynamodb_table", "change": change} | (
        {"previous_address": previous} if previous else {}
    )


def _carts(*regions: str, **values: Any) -> Document:
    return table(billing_mode="PAY_PER_REQUEST", replica=[{"region_name": each} for each in regions], **values)


def _indexed(key: str, *others: str, projection: str = "INCLUDE", source: str = "") -> list[Document]:
    """A table with an index in a block, or in a resource of its own with the address *source*."""
    if source:
        keys = [{"attribute_name": key, "attribute_type": "S", "key_type": "HASH"}]
        own = resource(source, table_name="orders", index_name="by-g", key_schema=keys, projection=[{}])
        return [table(), own]
    block = {"name": "by-g", "hash_key": key, "projection_type": projection, "non_key_attributes": list(others)}
    return [table(global_secondary_index=[block])]


REPLICA = resource(
    "aws_dynamodb_table_replica.eu",
    global_table_arn="arn:aws:dynamodb:us-east-1:111122223333:table/orders",
    arn="arn:aws:dynamodb:eu-west-1:111122223333:table/orders",
)
REMOVED = "removed: Terraform deletes it, with its data"
CREATED = f"{PURCHASES} creates another, empty table orders"
MOVED_BLOCK = f"add a moved block from {ORDERS} to {PURCHASES}"
REBUILT = (
    "index by-g: Terraform deletes it and builds it again with its other keys, projection or warm throughput; queries "
    "fail meanwhile; "
    "add an index under another name, and delete the old one when nothing queries it"
)
GSI = "aws_dynamodb_global_secondary_index.g"


@pytest.mark.parametrize(
    ("before", "after", "changes", "right"),
    [
        pytest.param(
            [table()],
            [table(PURCHASES)],
            [change(ORDERS, "delete"), change(PURCHASES, "create")],
            [f"✗ {ORDERS}: {REMOVED}; {CREATED}; to keep it, {MOVED_BLOCK}"],
            id="44-label-renamed-without-a-moved-block",
        ),
        pytest.param(
            [table('aws_dynamodb_table.t["a"]')],
            [table('module.shop.aws_dynamodb_table.t["b"]')],
            [
                change('aws_dynamodb_table.t["a"]', "delete"),
                change('module.shop.aws_dynamodb_table.t["b"]', "create"),
            ],
            [
                f'✗ aws_dynamodb_table.t["a"]: {REMOVED}; module.shop.aws_dynamodb_table.t["b"] creates another, empty '
                "table "
                'orders; to keep it, add a moved block from aws_dynamodb_table.t["a"] to '
                'module.shop.aws_dynamodb_table.t["b"]'
            ],
            id="for-each-and-a-module",
        ),
        pytest.param(
            [table(deletion_protection_enabled=True)],
            [table(PURCHASES)],
            [change(ORDERS, "delete"), change(PURCHASES, "create")],
            [
                f"✗ {ORDERS}: removed, with deletion protection on: DynamoDB refuses to delete it, and the apply "
                "fails; to "
                f"keep it, {MOVED_BLOCK}; to lose it, turn the protection off before"
            ],
            id="renamed-with-deletion-protection",
        ),
        pytest.param(
            [table()], [table(PURCHASES)], [change(PURCHASES, "no-op", previous=ORDERS)], [], id="moved-block"
        ),
        pytest.param(
            [table()],
            [table(PURCHASES, hash_key="pk")],
            [change(PURCHASES, "delete", "create", previous=ORDERS)],
            [
                f"✗ {PURCHASES}: replaced by an empty table (the plan says so): Terraform deletes the old one, with "
                "its data; "
                f"{KEEP}"
            ],
            id="moved-and-replaced-without-paths",
        ),
        pytest.param(
            [table()],
            [table(PURCHASES), table()],
            [change(PURCHASES, "no-op", previous=ORDERS), change(ORDERS, "create")],
            [],
            id="moved-and-another-table-at-the-old-address",
        ),
        pytest.param(
            [table()],
            [table(PURCHASES)],
            [change(ORDERS, "forget"), change(PURCHASES, "create")],
            [
                f"✗ {ORDERS}: removed from the state, and created at {PURCHASES}: a table orders exists, and AWS "
                "refuses a "
                f"second one; {MOVED_BLOCK}, or an import block for the latter"
            ],
            id="forgotten-and-created",
        ),
        pytest.param(
            [table()],
            [table(PURCHASES)],
            [change(ORDERS, "forget"), change(PURCHASES, "no-op", importing={"id": "orders"})],
            [],
            id="forgotten-and-imported",
        ),
        *(
            pytest.param(
                [table()],
                [table(name="orders-2")],
                [change(ORDERS, *actions, paths=[["name"]])],
                [
                    f"✗ {ORDERS}: replaced by an empty table (name): Terraform forgets the old one; it stays in the "
                    "account, "
                    f"with its data, and is no longer managed; {KEEP}"
                ],
                id="-then-".join(actions),
            )
            for actions in (("create", "forget"), ("forget", "create"))
        ),
        pytest.param(
            [table()],
            [table()],
            [change(ORDERS, "forget", "create")],
            [
                f"✗ {ORDERS}: replaced by an empty table (the plan says so): Terraform forgets the old one, and AWS "
                "refuses "
                f"a second table orders; {KEEP}"
            ],
            id="forgotten-and-created-under-its-name",
        ),
        pytest.param(
            [_carts("eu-west-1", "ap-southeast-2")],
            [_carts("eu-west-1")],
            [change(ORDERS, "update")],
            [f"✗ {ORDERS}: replica ap-southeast-2 is removed: {LOST}; {KEEP_REPLICA}"],
            id="72-replica-removed",
        ),
        pytest.param(
            [_carts("eu-west-1")],
            [_carts("ap-southeast-2")],
            [change(ORDERS, "update")],
            [f"✗ {ORDERS}: replica eu-west-1 is removed: {LOST}; {KEEP_REPLICA}"],
            id="replica-exchanged",
        ),
        pytest.param(
            [_carts()],
            [_carts("eu-west-1", "ap-southeast-2")],
            [change(ORDERS, "update")],
            [],
            id="two-replicas-added-one-request-after-the-other",
        ),
        pytest.param(
            [_carts(), REPLICA],
            [_carts()],
            [change(REPLICA["address"], "delete")],
            [f"✗ {ORDERS}: replica eu-west-1 is removed: {LOST}; {KEEP_REPLICA}"],
            id="own-replica-removed",
        ),
        pytest.param(
            [_carts(), REPLICA],
            [_carts(), REPLICA],
            [change(REPLICA["address"], "delete", "create")],
            [f"✗ {ORDERS}: replica eu-west-1 is deleted and created again: {LOST}; {KEEP_REPLICA}"],
            id="own-replica-replaced",
        ),
        pytest.param(
            [_carts(), REPLICA],
            [_carts()],
            [change(REPLICA["address"], "forget")],
            [
                f"! {ORDERS}: replica eu-west-1 is removed from the state: it stays in the account, with its data, and "
                "is "
                "only no longer managed"
            ],
            id="own-replica-forgotten",
        ),
        pytest.param(
            [table()],
            [table(replica=[{"region_name": "eu-west-1"}]), target(), policy()],
            [change(ORDERS, "update"), change(WRITES, "create")],
            [
                f"✗ {ORDERS}: replica eu-west-1 is added by the apply that adds auto scaling of the writes of table: "
                "the "
                "table comes first, and DynamoDB refuses a replica of a provisioned table whose writes are not auto "
                "scaled; "
                "apply twice: first the target and its policy, then the replica, or set billing_mode to PAY_PER_REQUEST"
            ],
            id="51-replica-and-scaling-at-once",
        ),
        pytest.param(
            _indexed("g", "x", "y"),
            _indexed("h", "x", "y"),
            [change(ORDERS, "update")],
            [f"✗ {ORDERS}: {REBUILT}"],
            id="73-index-gets-another-key",
        ),
        pytest.param(
            _indexed("g", "x", "y"),
            _indexed("g", "x"),
            [change(ORDERS, "update")],
            [f"✗ {ORDERS}: {REBUILT}"],
            id="index-gets-other-attributes",
        ),
        pytest.param(
            _indexed("g", "x", "y"),
            _indexed("g", "y", "x"),
            [change(ORDERS, "update")],
            [],
            id="order-of-non-key-attributes",
        ),
        pytest.param(
            _indexed("g", source=GSI),
            _indexed("h", source=GSI),
            [change(ORDERS, "no-op"), change(GSI, "delete", "create")],
            [f"✗ {ORDERS}: {REBUILT}"],
            id="own-index-replaced",
        ),
        pytest.param(
            _indexed("g", source=GSI),
            _indexed("g", source=GSI),
            [change(ORDERS, "no-op"), change(GSI, "update")],
            [],
            id="own-index-updated",
        ),
        pytest.param(
            [table(write_capacity=400), target(), policy()],
            [table(write_capacity=5), target(), policy()],
            [change(ORDERS, "update")],
            [
                f"✗ {ORDERS}: the apply sets scaled capacity to the units of the configuration (table writes from 400 "
                "to 5 "
                "units): requests are throttled until it has scaled out again, and it costs one of the day's "
                "decreases; "
                "ignore changes of read_capacity and write_capacity (lifecycle, ignore_changes)"
            ],
            id="74-apply-resets-scaled-capacity",
        ),
        pytest.param(
            [table(write_capacity=5), target(), policy()],
            [table(write_capacity=400), target(), policy()],
            [change(ORDERS, "update")],
            [
                f"! {ORDERS}: the apply sets scaled capacity to the units of the configuration (table writes from 5 to "
                "400 "
                "units), whatever auto scaling has made of it; ignore changes of read_capacity and write_capacity "
                "(lifecycle, ignore_changes)"
            ],
            id="apply-raises-scaled-capacity",
        ),
        pytest.param(
            [table(write_capacity=400)],
            [table(write_capacity=5)],
            [change(ORDERS, "update")],
            [],
            id="units-without-a-target",
        ),
    ],
)
def test_change_by_terraform(
    tmp_path: Path, before: list[Document], after: list[Document], changes: list[Document], right: list[str]
) -> None:
    document = plan(*after, prior=tuple(before), region="us-east-1") | {"resource_changes": changes}
    file = saved(tmp_path, document)
    assert sentences(load_prior(file), load_templates(file), {}) == right


FORGOTTEN = {"address": ORDERS, "mode": "managed", "type": "aws_dynamodb_table", "name": "orders"}
OTHER_REPLICA = "aws_dynamodb_table_replica.other"
CARTS = "aws_dynamodb_table.carts"


def _targets(*addresses: str) -> list[Document]:
    return [target(address) for address in addresses]


def _own_target() -> Document:
    index = {"resource_id": "table/orders/index/by-g", "scalable_dimension": "dynamodb:index:WriteCapacityUnits"}
    return target("aws_appautoscaling_target.g", **index)


def _own_index(writes: int) -> Document:
    keys = [{"attribute_name": "s", "attribute_type": "S", "key_type": "HASH"}]
    own = {"table_name": "orders", "index_name": "by-g", "key_schema": keys, "projection": [{}]}
    return resource(GSI, **own, provisioned_throughput=[{"read_capacity_units": 5, "write_capacity_units": writes}])


def _warm(units: int) -> list[Document]:
    block = {"name": "by-g", "hash_key": "s", "projection_type": "ALL"}
    warm = [{"read_units_per_second": units, "write_units_per_second": 4_000}]
    return [table(global_secondary_index=[block | {"warm_throughput": warm}])]


def _typed(kind: str) -> list[Document]:
    block = {"name": "by-g", "hash_key": "s", "projection_type": "ALL"}
    return [table(global_secondary_index=[block], attribute=[{"name": "s", "type": kind}])]


def _encrypted(**replica: Any) -> list[Document]:
    return [table(billing_mode="PAY_PER_REQUEST", replica=[{"region_name": "eu-west-1", **replica}])]


@pytest.mark.parametrize(
    ("before", "after", "changes", "right"),
    [
        # Terraform 1.11 lists a forgotten resource in planned_values, by its address alone
        pytest.param(
            [table()], [FORGOTTEN], [change(ORDERS, "forget")], [f"! {ORDERS}: removed from the state"], id="forgotten"
        ),
        pytest.param(
            [table()],
            [FORGOTTEN, table(PURCHASES)],
            [change(ORDERS, "forget"), change(PURCHASES, "create")],
            [f"✗ {ORDERS}: removed from the state, and created at {PURCHASES}"],
            id="forgotten-and-created",
        ),
        pytest.param(
            [table(), REPLICA],
            [FORGOTTEN],
            [change(ORDERS, "forget"), change("aws_dynamodb_table_replica.eu", "delete")],
            [f"! {ORDERS}: removed from the state", f"✗ {ORDERS}: replica eu-west-1 is removed"],
            id="forgotten-and-its-replica-deleted",
        ),
        pytest.param(
            [table(), target(), policy()],
            [FORGOTTEN, target(), policy()],
            [change(ORDERS, "forget")],
            [f"! {ORDERS}: removed from the state"],
            id="forgotten-and-its-targets-stay",
        ),
        # and its prior_state has the addresses that moved blocks lead to
        pytest.param(
            [table(PURCHASES), *_targets("aws_appautoscaling_target.other")],
            [table(PURCHASES), *_targets("aws_appautoscaling_target.other")],
            [
                change(PURCHASES, "no-op", previous=ORDERS),
                change("aws_appautoscaling_target.other", "no-op", previous=WRITES),
            ],
            [],
            id="moved-in-the-prior-state-too",
        ),
        # a plan with -target, or of -refresh-only, has no change of the other resources
        pytest.param(
            [table(billing_mode="PAY_PER_REQUEST"), REPLICA, table(CARTS, name="carts")],
            [table(billing_mode="PAY_PER_REQUEST", tags={"a": "b"})],
            [change(ORDERS, "update")],
            [],
            id="other-resources-of-a-target-option",
        ),
        pytest.param([table(), table(CARTS, name="carts")], [], [], [], id="refresh-only"),
        pytest.param(
            [table()],
            [table()],
            [change(ORDERS, "no-op"), change(ORDERS, "delete") | {"deposed": "a1b2c3d4"}],
            [f"✗ {ORDERS} (deposed a1b2c3d4): removed: Terraform deletes the table that an earlier apply replaced"],
            id="deposed",
        ),
        pytest.param(
            [table(), resource(OTHER_REPLICA, global_table_arn="arn:aws:dynamodb:us-east-1:111122223333:table/x")],
            [table()],
            [change(OTHER_REPLICA, "delete") | {"type": "aws_dynamodb_table_replica"}],
            [f"✗ {OTHER_REPLICA}: is removed: {LOST}"],
            id="replica-of-a-table-of-another-state",
        ),
        pytest.param(
            [table(), _own_index(400), *_targets(WRITES)],
            [table(), _own_index(5), target(), _own_target()],
            [change(GSI, "update")],
            [f"✗ {ORDERS}: the apply sets scaled capacity to the units of the configuration (index by-g writes"],
            id="units-of-an-own-index",
        ),
        pytest.param(_warm(14_000), _warm(13_000), [change(ORDERS, "update")], [f"✗ {ORDERS}: index by-g"], id="mark"),
        pytest.param(_typed("S"), _typed("N"), [change(ORDERS, "update")], [f"✗ {ORDERS}: index by-g"], id="key-type"),
        *(
            pytest.param(
                _encrypted(**was),
                _encrypted(**now),
                [change(ORDERS, "update")],
                [f"✗ {ORDERS}: replica eu-west-1 is deleted and created again: {LOST}"] if is_made_again else [],
                id=name,
            )
            for name, was, now, is_made_again in (
                ("replica-gets-a-key", {"kms_key_arn": ""}, {"kms_key_arn": "arn:aws:kms:eu-west-1:1:key/a"}, True),
                ("replica-keeps-its-key", {"kms_key_arn": "arn:aws:kms:eu-west-1:1:key/a"}, {"kms_key_arn": ""}, False),
                ("replica-gets-strong", {"consistency_mode": "EVENTUAL"}, {"consistency_mode": "STRONG"}, True),
                ("replica-of-an-older-state", {}, {"consistency_mode": "EVENTUAL"}, False),
            )
        ),
        pytest.param(
            [table(), *_targets(WRITES, "aws_appautoscaling_target.twice")],
            [table(), *_targets(WRITES)],
            [change("aws_appautoscaling_target.twice", "delete"), change(WRITES, "no-op")],
            [f"✗ {ORDERS}: the scalable target of table writes changes its owner"],
            id="one-of-two-targets-deleted",
        ),
        pytest.param(
            [table(), *_targets(WRITES)],
            [table(), *_targets("aws_appautoscaling_target.other")],
            [change(WRITES, "forget"), change("aws_appautoscaling_target.other", "create")],
            [],
            id="target-forgotten-and-registered-again",
        ),
        pytest.param(
            [table(arn="arn:aws:dynamodb:eu-west-1:111122223333:table/orders")],
            [table(region="us-east-1")],
            [change(ORDERS, "create", "delete", paths=[["region"]])],
            [f"✗ {ORDERS}: replaced by an empty table (region): Terraform deletes the old one"],
            id="name-free-in-another-region",
        ),
        pytest.param(
            [table(replica=[{"region_name": "eu-west-1"}]), target(), policy()],
            [
                table(
                    replica=[{"region_name": "eu-west-1"}],
                    global_secondary_index=[{"name": "by-g", "hash_key": "s", "read_capacity": 5, "write_capacity": 6}],
                ),
                target(),
                policy(),
                _own_target(),
                policy(
                    "aws_appautoscaling_policy.g",
                    resource_id="table/orders/index/by-g",
                    scalable_dimension="dynamodb:index:WriteCapacityUnits",
                ),
            ],
            [change(ORDERS, "update"), change("aws_appautoscaling_target.g", "create")],
            [f"✗ {ORDERS}: index by-g is created on a provisioned table with replicas"],
            id="index-on-a-provisioned-table-with-replicas",
        ),
    ],
)
def test_plan_as_terraform_writes_it(
    tmp_path: Path, before: list[Document], after: list[Document], changes: list[Document], right: list[str]
) -> None:
    document = plan(*({"values": {}} | each for each in after), prior=tuple(before), region="us-east-1")
    for each in document["planned_values"]["root_module"].get("resources", ()):
        if each["address"] == ORDERS and not each["values"]:
            del each["values"]
    file = saved(tmp_path, document | {"resource_changes": changes})
    found = sentences(load_prior(file), load_templates(file), {})
    assert [line[: len(start)] for line, start in zip(found, right, strict=True)] == right


def test_plan_decides_for_another_state_too(tmp_path: Path) -> None:
    changes = [change(ORDERS, "delete"), change(PURCHASES, "create")]
    new = saved(tmp_path, plan(table(PURCHASES), prior=(table(),)) | {"resource_changes": changes})
    old = saved(tmp_path, state(table()), "state.json")
    assert sentences(load_templates(old), load_templates(new), {}) == [
        f"✗ {ORDERS}: {REMOVED}; {CREATED}; to keep it, {MOVED_BLOCK}"
    ]


def test_states_do_not_tell_a_move_from_a_loss(tmp_path: Path) -> None:
    old, new = saved(tmp_path, state(table()), "a.json"), saved(tmp_path, state(table(PURCHASES)), "b.json")
    assert sentences(load_templates(old), load_templates(new), {}) == [
        f"! {PURCHASES}: its address was {ORDERS}: whether the table was moved, or deleted and made again, two states "
        "do not "
        "say; compare with a plan: terraform show -json of the plan, with --against prior"
    ]
    gone = saved(tmp_path, state(), "c.json")
    assert sentences(load_templates(old), load_templates(gone), {}) == [
        f"✗ {ORDERS}: {REMOVED}, or only forgets it, which two states do not tell apart; to keep it, give it a removed "
        "block "
        "with destroy = false"
    ]
