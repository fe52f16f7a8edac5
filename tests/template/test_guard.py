"""What AWS refuses or destroys: each kind of hazard with its whole message, from CloudFormation and from Terraform."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb

from cdk_highwater import Capacity, manage_capacity
from highwater_lab.template import (
    Consequence,
    Hazard,
    HazardKind,
    ListedApp,
    ListedTable,
    hazards_of,
    load_prior,
    load_templates,
    read_app,
)
from tests.template.plans import plan, policy, saved, state, table, target

KEEP = "leave that as it is, or add a second table, and copy the data before this one is removed"
IN_TURN = "deploy one of these changes after the other, each when the index before it is ACTIVE or gone"
OTHER_KEYS = f"{IN_TURN}; add an index with other keys under another name, and delete the old one later"
ONE_INDEX = "CloudFormation refuses more than one index created or deleted in an update"
KEPT = "it stays in the account, with its data, and is only no longer managed"
MOVED = (
    "CloudFormation creates before it deletes, and a table orders exists; move it by a refactoring of the stacks (cdk "
    "refactor), or keep it with DeletionPolicy: Retain, and import it"
)
Document = dict[str, Any]


def _key(name: str, kind: str = "HASH") -> Document:
    return {"AttributeName": name, "KeyType": kind}


def _index(name: str, key: str = "state", **more: Any) -> Document:
    return {"IndexName": name, "KeySchema": [_key(key)], "Projection": {"ProjectionType": "ALL"}, **more}


def _attribute(name: str, kind: str = "S") -> Document:
    return {"AttributeName": name, "AttributeType": kind}


def _warm(reads: int, writes: int) -> Document:
    return {"ReadUnitsPerSecond": reads, "WriteUnitsPerSecond": writes}


def _table(*, kind: str = "Table", members: Mapping[str, Any] | None = None, **properties: Any) -> Document:
    given = {"KeySchema": [_key("id")], "AttributeDefinitions": [_attribute("id")], "BillingMode": "PAY_PER_REQUEST"}
    return {"Type": f"AWS::DynamoDB::{kind}", "Properties": given | properties} | dict(members or {})


def _target(index: str | None = None, dimension: str = "Write", name: Any = None) -> Document:
    resource = {"Fn::Join": ["", ["table/", name or {"Ref": "T"}, f"/index/{index}" if index else ""]]}
    properties = {
        "ServiceNamespace": "dynamodb",
        "ResourceId": resource,
        "ScalableDimension": f"dynamodb:{'index' if index else 'table'}:{dimension}CapacityUnits",
        "MinCapacity": 7,
        "MaxCapacity": 90,
    }
    return {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": properties}


def _listed(folder: Path, name: str, resources: Mapping[str, Document]) -> tuple[ListedTable, ...]:
    return _app(folder, name, resources).tables


def _app(folder: Path, name: str, resources: Mapping[str, Document]) -> ListedApp:
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"Resources": dict(resources)}))
    return read_app(load_templates(file))


def _of_stacks(
    folder: Path, before: Mapping[str, Document], after: Mapping[str, Document]
) -> list[tuple[HazardKind, Consequence, str]]:
    return _hazards(_app(folder, "old", before), _app(folder, "new", after))


def _hazards(before: ListedApp, after: ListedApp) -> list[tuple[HazardKind, Consequence, str]]:
    return _seen(hazards_of(before.tables, after.tables, after.remarks))


def _seen(hazards: tuple[Hazard, ...]) -> list[tuple[HazardKind, Consequence, str]]:
    return [(each.kind, each.consequence, each.text) for each in hazards]


def _of_plan(
    folder: Path, prior: list[Document], after: list[Document], **changes: Document
) -> list[tuple[HazardKind, Consequence, str]]:
    """The hazards of a plan against the state that it was made from; *changes* by the name of their resource."""
    document = plan(*after, prior=tuple(prior))
    addresses = [each["address"] for each in (*prior, *after)]
    document["resource_changes"] = [
        {
            "address": address,
            "change": {"actions": change.get("actions", ["update"]), "replace_paths": change.get("paths", [])},
        }
        | ({"previous_address": change["previous"]} if "previous" in change else {})
        for name, change in changes.items()
        for address in dict.fromkeys(addresses)
        if address.endswith(f".{name}")
    ]
    file = saved(folder, document)
    return _hazards(read_app(load_prior(file)), read_app(load_templates(file)))


@pytest.mark.parametrize(
    ("old", "consequence", "text"),
    [
        pytest.param(
            _table(),
            Consequence.DESTROYED,
            "T: removed: CloudFormation deletes it, with its data; to keep it, deploy it with DeletionPolicy: Retain "
            "before (in the CDK: RemovalPolicy.RETAIN)",
            id="by-default",
        ),
        pytest.param(
            _table(members={"DeletionPolicy": "Retain"}),
            Consequence.KEPT,
            f"T: removed: by its DeletionPolicy, Retain, {KEPT}",
            id="retained",
        ),
        pytest.param(
            _table(members={"DeletionPolicy": "RetainExceptOnCreate"}),
            Consequence.KEPT,
            f"T: removed: by its DeletionPolicy, RetainExceptOnCreate, {KEPT}",
            id="retained-except-on-create",
        ),
        pytest.param(
            _table(DeletionProtectionEnabled=True),
            Consequence.REFUSED,
            "T: removed, with deletion protection on: DynamoDB refuses to delete it; to keep it, deploy it with "
            "DeletionPolicy: Retain before (in the CDK: RemovalPolicy.RETAIN); to lose it, turn the protection off "
            "before",
            id="protected",
        ),
        pytest.param(
            _table(kind="GlobalTable", Replicas=[{"Region": "eu-west-1", "DeletionProtectionEnabled": "true"}]),
            Consequence.REFUSED,
            "T: removed, with deletion protection on: DynamoDB refuses to delete it; to keep it, deploy it with "
            "DeletionPolicy: Retain before (in the CDK: RemovalPolicy.RETAIN); to lose it, turn the protection off "
            "before",
            id="protected-replica",
        ),
    ],
)
def test_removed_table(tmp_path: Path, old: Document, consequence: Consequence, text: str) -> None:
    assert _of_stacks(tmp_path, {"T": old}, {}) == [(HazardKind.REMOVED, consequence, text)]


def test_table_that_is_only_scaled_is_not_lost_with_its_targets(tmp_path: Path) -> None:
    assert _of_stacks(tmp_path, {"W": _target(name="orders")}, {}) == []


@pytest.mark.parametrize(
    ("old", "new", "consequence", "text"),
    [
        pytest.param(
            {},
            {"KeySchema": [_key("pk")]},
            Consequence.DESTROYED,
            "T: replaced by an empty table, as its key schema changes: CloudFormation deletes the old one, with its "
            f"data; {KEEP}",
            id="keys",
        ),
        pytest.param(
            {"TableName": "orders"},
            {"TableName": "orders", "KeySchema": [_key("id"), _key("at", "RANGE")]},
            Consequence.REFUSED,
            "T: its key schema changes, which replaces a table: CloudFormation refuses that for one with a name of its "
            f"own; {KEEP}",
            id="keys-of-a-named-table",
        ),
        pytest.param(
            {"TableName": "orders"},
            {"TableName": "orders-2"},
            Consequence.DESTROYED,
            "T: replaced by an empty table, as its name, from orders to orders-2, changes: CloudFormation deletes the "
            f"old one, with its data; {KEEP}",
            id="name",
        ),
        pytest.param(
            {},
            {"TableName": "orders"},
            Consequence.DESTROYED,
            "T: replaced by an empty table, as its name, from one that CloudFormation generates to orders, changes: "
            f"CloudFormation deletes the old one, with its data; {KEEP}",
            id="first-name",
        ),
        pytest.param(
            {"TableName": {"Fn::Sub": "a-${AWS::Region}"}},
            {"TableName": {"Fn::Sub": "b-${AWS::Region}"}, "LocalSecondaryIndexes": [_index("by-at", "id")]},
            Consequence.DESTROYED,
            "T: replaced by an empty table, as its name, from a-${AWS::Region} to b-${AWS::Region}, and its local "
            f"secondary indexes change: CloudFormation deletes the old one, with its data; {KEEP}",
            id="open-name-and-local-indexes",
        ),
        pytest.param(
            {},
            {"AttributeDefinitions": [_attribute("id", "N"), _attribute("new")]},
            Consequence.DESTROYED,
            "T: replaced by an empty table, as the type of id changes: CloudFormation deletes the old one, with its "
            f"data; {KEEP}",
            id="type-of-a-key",
        ),
        pytest.param(
            {"members": {"UpdateReplacePolicy": "Retain"}},
            {"KeySchema": [_key("pk")], "members": {"UpdateReplacePolicy": "Retain"}},
            Consequence.KEPT,
            "T: replaced by an empty table, as its key schema changes; the old one stays in the account, with its "
            f"data, and is no longer managed; {KEEP}",
            id="retained",
        ),
        pytest.param(
            {"DeletionProtectionEnabled": True},
            {"KeySchema": [_key("pk")]},
            Consequence.KEPT,
            "T: replaced by an empty table, as its key schema changes; the old one stays in the account, with its "
            f"data, and is no longer managed; {KEEP}",
            id="protected",
        ),
    ],
)
def test_replaced_table(tmp_path: Path, old: Document, new: Document, consequence: Consequence, text: str) -> None:
    found = _of_stacks(tmp_path, {"T": _table(**old)}, {"T": _table(**new)})
    assert found == [(HazardKind.REPLACED, consequence, text)]


def test_replaced_table_is_a_finding_also_if_the_old_one_is_kept_and_a_kept_removed_one_is_none(tmp_path: Path) -> None:
    retained = _table(members={"UpdateReplacePolicy": "Retain", "DeletionPolicy": "Retain"})
    old = _listed(tmp_path, "old", {"T": retained, "U": retained})
    new = _listed(tmp_path, "new", {"T": _table(KeySchema=[_key("pk")])})
    assert [(each.table, each.is_finding) for each in hazards_of(old, new)] == [("T", True), ("U", False)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"TableClass": "STANDARD_INFREQUENT_ACCESS"}, id="class"),
        pytest.param({"AttributeDefinitions": [_attribute("state"), _attribute("id")]}, id="attribute-added"),
        pytest.param({"GlobalSecondaryIndexes": [_index("by-state")]}, id="one-index"),
        pytest.param({"WarmThroughput": _warm(60_000, 20_001)}, id="higher-mark"),
        pytest.param({"WarmThroughput": None}, id="mark-no-longer-declared"),
        pytest.param({"BillingMode": {"Fn::If": ["Unknown", "a", "b"]}}, id="what-cannot-be-read"),
    ],
)
def test_changes_that_aws_makes_are_no_hazard(tmp_path: Path, change: Document) -> None:
    old: Document = {"TableName": "orders", "WarmThroughput": _warm(60_000, 20_000)}
    assert _of_stacks(tmp_path, {"T": _table(**old)}, {"T": _table(**(old | change))}) == []


def test_named_table_under_another_logical_id_is_refused_and_no_second_table(tmp_path: Path) -> None:
    named = _table(TableName="orders")
    assert _of_stacks(tmp_path, {"T": named}, {"U": named}) == [
        (HazardKind.MOVED, Consequence.REFUSED, f"U: moved from T to U: {MOVED}")
    ]


def test_construct_with_another_logical_id_is_replaced(tmp_path: Path) -> None:
    path = {"Metadata": {"aws:cdk:path": "Shop/Orders/Resource"}}
    assert _of_stacks(tmp_path, {"T": _table(members=path)}, {"U": _table(members=path)}) == [
        (
            HazardKind.REPLACED,
            Consequence.DESTROYED,
            "Shop/Orders: replaced by an empty table, as its logical id, from T to U, changes: CloudFormation deletes "
            f"the old one, with its data; {KEEP}",
        )
    ]


def test_lowered_marks_of_a_table_and_its_index(tmp_path: Path) -> None:
    old: Document = {
        "WarmThroughput": _warm(60_000, 20_000),
        "GlobalSecondaryIndexes": [_index("a", WarmThroughput=_warm(9, 8))],
    }
    new: Document = {
        "WarmThroughput": _warm(15_000, 20_000),
        "GlobalSecondaryIndexes": [_index("a", WarmThroughput=_warm(9, 7))],
    }
    assert _of_stacks(tmp_path, {"T": _table(**old)}, {"T": _table(**new)}) == [
        (
            HazardKind.MARK_LOWERED,
            Consequence.REFUSED,
            "T: high-water mark lowered (table from 60,000 to 15,000 reads, index a from 8 to 7 writes): DynamoDB "
            "refuses to lower warm throughput; declare no less than before, or no WarmThroughput at all",
        )
    ]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param([], ["a", "b"], f"T: a is created, b is created: {ONE_INDEX}; {IN_TURN}", id="two-created"),
        pytest.param(["a"], ["b"], f"T: b is created, a is deleted: {ONE_INDEX}; {IN_TURN}", id="renamed"),
        pytest.param(
            list("abcd"),
            [],
            f"T: a is deleted, b is deleted, c is deleted and 1 more: {ONE_INDEX}; {IN_TURN}",
            id="four-deleted",
        ),
        pytest.param(
            ["a:x"], ["a:y"], f"T: a has other keys or another projection: {ONE_INDEX}; {OTHER_KEYS}", id="other-keys"
        ),
    ],
)
def test_more_than_one_index_changes(tmp_path: Path, old: list[str], new: list[str], text: str) -> None:
    before, after = (
        _table(GlobalSecondaryIndexes=[_index(*each.split(":")) for each in names]) for names in (old, new)
    )
    found = _of_stacks(tmp_path, {"T": before}, {"T": after})
    assert found == [(HazardKind.INDEXES, Consequence.REFUSED, text)]


def test_targets_that_change_their_owner_need_two_deploys(tmp_path: Path) -> None:
    orders = _table(GlobalSecondaryIndexes=[_index("a")])
    old = {"T": orders, "W": _target(), "R": _target(dimension="Read"), "A": _target("a")}
    new = {"T": orders, "W2": _target(), "R": _target(dimension="Read"), "A2": _target("a")}
    assert _of_stacks(tmp_path, old, new) == [
        (
            HazardKind.OWNER_CHANGED,
            Consequence.REFUSED,
            "T: the scalable target of table writes, index a writes changes its owner, from W, A to W2, A2: "
            "CloudFormation refuses the second owner; deploy 1, in a quiet hour: remove W, A. CloudFormation deletes "
            "the scalable targets. The capacity stays as it is, and nothing scales it until deploy 2. deploy 2, right "
            "after it: add W2, A2. CloudFormation registers the targets again, and floors are in effect when it ends. "
            "In one deploy it is refused: CloudFormation creates before it deletes, and AWS allows one target",
        )
    ]


def test_targets_that_come_or_go_are_no_hazard(tmp_path: Path) -> None:
    scaled = {"T": _table(), "W": _target()}
    assert _of_stacks(tmp_path, scaled, {"T": _table()}) == []
    assert _of_stacks(tmp_path, {"T": _table()}, scaled) == []


def test_second_target_of_one_dimension(tmp_path: Path) -> None:
    old = {"T": _table(), "W": _target()}
    assert _of_stacks(tmp_path, old, {**old, "V": _target()}) == [
        (
            HazardKind.TWO_TARGETS,
            Consequence.REFUSED,
            "T: V (AWS::ApplicationAutoScaling::ScalableTarget) is a second scalable target for writes of the table, "
            "beside W: CloudFormation refuses the second; keep one",
        )
    ]


def _replicated(*regions: str, is_scaled: bool, billing: str = "PROVISIONED") -> Document:
    scaling = {"WriteCapacityAutoScalingSettings": {"MinCapacity": 7, "MaxCapacity": 90}}
    return _table(
        kind="GlobalTable",
        BillingMode=billing,
        Replicas=[{"Region": region} for region in regions],
        WriteProvisionedThroughputSettings=scaling,
        GlobalSecondaryIndexes=[_index("a", WriteProvisionedThroughputSettings=scaling if is_scaled else {})],
    )


def test_replica_without_scaled_writes(tmp_path: Path) -> None:
    one, two = (_replicated(*("eu-west-1", "us-east-1")[:number], is_scaled=False) for number in (1, 2))
    finding = (
        HazardKind.REPLICA,
        Consequence.REFUSED,
        "T: 2 replicas, and the writes of index a are not auto scaled, which DynamoDB refuses for provisioned tables; "
        "give them WriteCapacityAutoScalingSettings, or set BillingMode to PAY_PER_REQUEST",
    )
    assert _of_stacks(tmp_path, {"T": one}, {"T": two}) == [finding]
    assert _of_stacks(tmp_path, {}, {"T": two}) == [finding]
    scaled = _replicated("eu-west-1", "us-east-1", is_scaled=True)
    assert _of_stacks(tmp_path, {"T": scaled}, {"T": two}) == [finding]
    # it is there already, whatever the template says
    assert _of_stacks(tmp_path, {"T": two}, {"T": two}) == []
    assert _of_stacks(tmp_path, {"T": one}, {"T": scaled}) == []
    on_demand = _replicated("eu-west-1", "us-east-1", is_scaled=False, billing="PAY_PER_REQUEST")
    assert _of_stacks(tmp_path, {}, {"T": on_demand}) == []


def test_targets_of_the_cdk_change_their_owner_with_manage_capacity(tmp_path: Path) -> None:
    def synthesized(name: str, *, is_managed: bool) -> tuple[ListedTable, ...]:
        app = cdk.App(outdir=str(tmp_path / name))
        key = dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING)
        orders = dynamodb.Table(cdk.Stack(app, "Shop"), "Orders", partition_key=key)
        if is_managed:
            scaled = Capacity.autoscaled(min_capacity=7, max_capacity=90)
            manage_capacity(orders, read=Capacity.fixed(5), write=scaled)
        else:
            orders.auto_scale_write_capacity(min_capacity=7, max_capacity=90).scale_on_utilization(
                target_utilization_percent=70
            )
        app.synth()
        return read_app(load_templates(tmp_path / name)).tables

    scaled, managed = synthesized("scaled", is_managed=False), synthesized("managed", is_managed=True)
    (found,) = hazards_of(scaled, managed)
    assert (found.table, found.kind, found.consequence) == (
        "Shop/Orders",
        HazardKind.OWNER_CHANGED,
        Consequence.REFUSED,
    )
    assert re.fullmatch(
        r"the scalable target of table writes changes its owner, from \w+ of Shop to \w+ of Shop: CloudFormation "
        "refuses the second owner",
        found.what,
    )
    assert hazards_of(managed, synthesized("again", is_managed=True)) == ()
    (back,) = hazards_of(managed, scaled)
    assert back.kind is HazardKind.OWNER_CHANGED


# -- Terraform


@pytest.mark.parametrize(
    ("values", "actions", "consequence", "text"),
    [
        pytest.param(
            {},
            ["delete"],
            Consequence.DESTROYED,
            "aws_dynamodb_table.orders: removed: Terraform deletes it, with its data; to keep it, give it a removed "
            "block with destroy = false",
            id="destroyed",
        ),
        pytest.param(
            {"deletion_protection_enabled": True},
            ["delete"],
            Consequence.REFUSED,
            "aws_dynamodb_table.orders: removed, with deletion protection on: DynamoDB refuses to delete it, and "
            "the apply fails; to keep it, give it a removed block with destroy = false; to lose it, turn the "
            "protection "
            "off before",
            id="protected",
        ),
        pytest.param(
            {},
            ["forget"],
            Consequence.KEPT,
            f"aws_dynamodb_table.orders: removed from the state: {KEPT}",
            id="forgotten",
        ),
    ],
)
def test_table_that_terraform_removes(
    tmp_path: Path, values: Document, actions: list[str], consequence: Consequence, text: str
) -> None:
    found = _of_plan(tmp_path, [table(**values)], [], orders={"actions": actions})
    assert found == [(HazardKind.REMOVED, consequence, text)]


@pytest.mark.parametrize(
    ("old", "new", "change", "consequence", "text"),
    [
        pytest.param(
            {},
            {"hash_key": "pk"},
            {"actions": ["delete", "create"], "paths": [["hash_key"], ["range_key"]]},
            Consequence.DESTROYED,
            f"replaced by an empty table (hash_key, range_key): Terraform deletes the old one, with its data; {KEEP}",
            id="keys",
        ),
        pytest.param(
            {},
            {},
            {"actions": ["delete", "create"], "paths": [["warm_throughput", 0, "write_units_per_second"]]},
            Consequence.DESTROYED,
            "replaced by an empty table (warm_throughput[0].write_units_per_second): Terraform deletes the old one, "
            "with its data; leave warm_throughput as it is, or have its changes ignored (lifecycle, ignore_changes)",
            id="mark",
        ),
        pytest.param(
            {},
            {},
            {"actions": ["create", "delete"]},
            Consequence.REFUSED,
            "replaced by an empty table (the plan says so): Terraform creates before it deletes here, and a table "
            f"orders exists; {KEEP}",
            id="created-before-it-is-destroyed",
        ),
        pytest.param(
            {},
            {"name": "orders-2"},
            {"actions": ["create", "delete"], "paths": [["name"]]},
            Consequence.DESTROYED,
            f"replaced by an empty table (name): Terraform deletes the old one, with its data; {KEEP}",
            id="renamed",
        ),
        pytest.param(
            {"deletion_protection_enabled": True},
            {"name": "orders-2"},
            {"actions": ["delete", "create"], "paths": [["name"]]},
            Consequence.REFUSED,
            "replaced by an empty table (name): DynamoDB refuses to delete the old one, whose deletion protection is "
            f"on; {KEEP}",
            id="protected",
        ),
    ],
)
def test_table_that_terraform_replaces(
    tmp_path: Path, old: Document, new: Document, change: Document, consequence: Consequence, text: str
) -> None:
    found = _of_plan(tmp_path, [table(**old)], [table(**new)], orders=change)
    assert found == [(HazardKind.REPLACED, consequence, f"aws_dynamodb_table.orders: {text}")]


def test_states_are_compared_by_names_and_keys(tmp_path: Path) -> None:
    def of(**values: Any) -> tuple[ListedTable, ...]:
        return read_app(load_templates(saved(tmp_path, state(table(**values))))).tables

    old, new = of(hash_key="id"), of(name="orders-2", hash_key="pk")
    assert _seen(hazards_of(old, new)) == [
        (
            HazardKind.REPLACED,
            Consequence.DESTROYED,
            "aws_dynamodb_table.orders: replaced by an empty table (its name, from orders to orders-2, and its key "
            f"schema): Terraform deletes the old one, with its data; {KEEP}",
        )
    ]
    # a state without keys says nothing of them
    assert hazards_of(of(), of(hash_key="pk")) == ()


def test_lowered_mark_in_a_plan_is_said_in_terraforms_words(tmp_path: Path) -> None:
    def marked(writes: int) -> Document:
        return table(warm_throughput=[{"read_units_per_second": 12_000, "write_units_per_second": writes}])

    assert _of_plan(tmp_path, [marked(5_000)], [marked(4_500)], orders={}) == [
        (
            HazardKind.MARK_LOWERED,
            Consequence.REFUSED,
            "aws_dynamodb_table.orders: high-water mark lowered (table from 5,000 to 4,500 writes): DynamoDB refuses "
            "to lower warm throughput; declare no less than before, or no warm_throughput at all",
        )
    ]


def test_target_with_another_address_is_deleted_by_terraform_unless_it_is_moved(tmp_path: Path) -> None:
    old = [table(), target("aws_appautoscaling_target.write"), policy()]
    new = [table(), target("aws_appautoscaling_target.writes"), policy()]
    assert _of_plan(tmp_path, old, new, writes={"actions": ["create"]}, write={"actions": ["delete"]}) == [
        (
            HazardKind.OWNER_CHANGED,
            Consequence.DESTROYED,
            "aws_dynamodb_table.orders: the scalable target of table writes changes its owner, from "
            "aws_appautoscaling_target.write to aws_appautoscaling_target.writes: both are one target in AWS, and "
            "Terraform deletes it with the old address; add a moved block, so that it stays registered",
        )
    ]
    moved = {"actions": ["no-op"], "previous": "aws_appautoscaling_target.write"}
    assert _of_plan(tmp_path, old, new, writes=moved) == []


def test_target_that_a_plan_declares_twice_is_no_finding_as_it_is_applied(tmp_path: Path) -> None:
    old = [table(), target("aws_appautoscaling_target.a")]
    found = _of_plan(tmp_path, old, [*old, target("aws_appautoscaling_target.b")], b={"actions": ["create"]})
    assert found == [
        (
            HazardKind.TWO_TARGETS,
            Consequence.KEPT,
            "aws_dynamodb_table.orders: aws_appautoscaling_target.b is a second scalable target for writes of the "
            "table, beside aws_appautoscaling_target.a: both are one target in AWS, with the bounds that are applied "
            "last, and gone with either; keep one",
        )
    ]


def test_replica_in_a_plan_needs_scaled_writes(tmp_path: Path) -> None:
    replicated = table(replica=[{"region_name": "eu-central-1"}])
    assert _of_plan(tmp_path, [table()], [replicated], orders={}) == [
        (
            HazardKind.REPLICA,
            Consequence.REFUSED,
            "aws_dynamodb_table.orders: 2 replicas, and the writes of table are not auto scaled, which DynamoDB "
            "refuses for provisioned tables; give them an aws_appautoscaling_target with a target tracking policy "
            "before the replica, or set billing_mode to PAY_PER_REQUEST",
        )
    ]
    scaled = [target(), policy()]
    assert _of_plan(tmp_path, [table(), *scaled], [replicated, *scaled], orders={}) == []


def test_indexes_of_a_plan_are_made_one_after_another(tmp_path: Path) -> None:
    indexes = [{"name": name, "hash_key": name, "read_capacity": 5, "write_capacity": 6} for name in ("a", "b")]
    assert _of_plan(tmp_path, [table()], [table(global_secondary_index=indexes)], orders={}) == []
