"""The names by which tables are known, in apps as the CDK writes them: of all shapes, synthesized once."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct
from hypothesis import given
from hypothesis import strategies as st

from highwater_lab.template import ListedTable, load_templates, read_app, tables_called

KEY = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)
SUFFIX = "1F6H4LDFTFI3O"


def _table(scope: Construct, units: int, name: str | None = None, construct_id: str = "Orders") -> dynamodb.Table:
    return dynamodb.Table(
        scope, construct_id, partition_key=KEY, read_capacity=units, write_capacity=units + 1, table_name=name
    )


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ListedTable]:
    """The tables of an app, by path.

    With and without a stage, nested twice, in a renamed stack, in two environments, with a name, with a name of tokens,
    and with a name that is a parameter.
    """
    app = cdk.App(outdir=str(tmp_path_factory.mktemp("shapes")))
    plain = cdk.Stack(app, "Plain")
    _table(plain, 10)
    _table(cdk.NestedStack(cdk.NestedStack(plain, "Outer"), "Inner"), 20)
    _table(cdk.Stack(app, "Renamed", stack_name="shop-data"), 30)
    for number, region in enumerate(("eu-west-1", "us-east-1")):
        place = cdk.Environment(account="111122223333", region=region)
        _table(cdk.Stack(app, f"Shop-{region}", env=place), 40 + 10 * number)
    staged = cdk.Stack(cdk.Stage(app, "Prod"), "Shop")
    _table(staged, 60)
    named = cdk.Stack(app, "Named")
    _table(named, 70, "orders-7", "Seven")
    _table(named, 80, f"orders-{named.region}-{named.account}", "Tokens")
    _table(named, 90, cdk.CfnParameter(named, "TableName").value_as_string, "Parameter")
    app.synth()
    return {table.name: table for table in read_app(load_templates(Path(app.outdir))).tables}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Plain/Orders", "Plain-{id}-{suffix}"),
        # as in the two reports that listed.py names: whole, and with the nested stacks' ids cut
        ("Plain/Outer/Inner/Orders", "Plain-{nested[0]}-QHOIR25MRDJL-{nested[1]}-arZJxYWqV4wX-{id}-{suffix}"),
        ("Plain/Outer/Inner/Orders", "Plain-OuterNestedStackOuter-QHOIR25MRDJL-InnerNested-16VAX8Y6Y64W-{id}-{suffix}"),
        ("Renamed/Orders", "shop-data-{id}-{suffix}"),
        ("Shop-eu-west-1/Orders", "Shop-eu-west-1-{id}-{suffix}"),
        ("Shop-us-east-1/Orders", "Shop-us-east-1-{id}-{suffix}"),
        ("Prod/Shop/Orders", "Prod-Shop-{id}-{suffix}"),
        ("Named/Seven", "orders-7"),
        ("Named/Tokens", "orders-eu-west-1-111122223333"),
    ],
)
def test_table_of_each_shape_is_found_by_the_name_that_it_has_in_an_account(
    listed: dict[str, ListedTable], path: str, name: str
) -> None:
    table = listed[path]
    _, *nested = table.stacks
    deployed = name.format(id=table.logical_id, suffix=SUFFIX, nested=nested)
    assert table.name_among([deployed, "Other", f"Plain-Orders0000ABCD-{SUFFIX}"]) == deployed
    assert [each.name for each in listed.values() if each.name_among([deployed])] == [path]


def test_table_whose_name_is_a_parameter_is_found_by_its_path_alone(listed: dict[str, ListedTable]) -> None:
    table = listed["Named/Parameter"]
    assert table.name_among([f"Named-{table.logical_id}-{SUFFIX}"]) is None
    assert table.name_among(["Named/Parameter", "orders-7"]) == "Named/Parameter"


@pytest.mark.parametrize("path", ["Plain/Orders", "Plain/Outer/Inner/Orders", "Prod/Shop/Orders", "Renamed/Orders"])
def test_table_without_a_name_is_found_by_path_end_of_path_and_logical_id(
    listed: dict[str, ListedTable], path: str
) -> None:
    table = listed[path]
    assert table.logical_id is not None
    for name in (path, path.partition("/")[2], "Orders", "orders", "ORDERS", table.logical_id, table.logical_id[:-8]):
        assert table.name_among([name, "Customers"]) == name
        assert table.sureness(name) is not None
    assert table.name_among(["Customers", "Order", "ders", ""]) is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("orders-7", ["Prod/Shop/Orders"]),
        ("Orders", ["Prod/Shop/Orders"]),
        ("ORDERS", ["Prod/Shop/Orders"]),
        ("X2", ["Archive/OldOrders"]),
        ("X", ["Prod/Shop/Orders", "Archive/OldOrders"]),
        ("ders", []),
        ("", []),
    ],
)
def test_tables_that_are_called_so_are_those_of_which_it_is_the_surest(name: str, found: list[str]) -> None:
    tables = [_listed("X1", physical="orders-7"), replace(_listed("X2"), name="Archive/OldOrders")]
    assert [table.name for table in tables_called(tables, name)] == found


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["orders-7", "Orders"], "orders-7"),
        (["Shop/Orders", "Orders", "X1"], None),
        (["Prod/Shop/Orders"], "Prod/Shop/Orders"),
    ],
)
def test_table_with_a_name_is_found_by_it_alone_unless_by_its_path(names: list[str], found: str | None) -> None:
    assert _listed("X1", physical="orders-7").name_among(names) == found


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["Shop-X1-ABCDEFGH1234", "Shop/Orders"], "Shop-X1-ABCDEFGH1234"),
        (["Shop-X1-ABCDEFGH1234", "Shop-X1-ABCDEFGH9999"], None),
        (["Shop-X12-ABCDEFGH1234", "Prod/Shop/Orders", "orders"], "Prod/Shop/Orders"),
        (["ORDERS", "X1"], "ORDERS"),
        (["X1", "other"], "X1"),
        (["other"], None),
    ],
)
def test_surest_name_is_taken_and_none_of_two_that_are_as_sure(names: list[str], found: str | None) -> None:
    assert _listed("X1").name_among(names) == found


def _listed(logical_id: str, physical: str | None = None) -> ListedTable:
    return ListedTable(
        name="Prod/Shop/Orders", stage="", stacks=("Shop",), logical_id=logical_id, physical=physical, setup=None
    )


_NAMES = st.text(string.ascii_letters + string.digits, min_size=1, max_size=12)
_SUFFIXES = st.text(string.ascii_uppercase + string.digits, min_size=12, max_size=13)


@given(
    stacks=st.dictionaries(_NAMES, st.tuples(_NAMES | st.none(), st.sets(_NAMES, min_size=1, max_size=3)), min_size=1),
    suffix=_SUFFIXES,
    is_in_stage=st.booleans(),
)
def test_each_table_of_any_manifest_is_found_by_its_generated_name_alone(
    tmp_path_factory: pytest.TempPathFactory,
    stacks: dict[str, tuple[str | None, set[str]]],
    suffix: str,
    is_in_stage: bool,
) -> None:
    root = tmp_path_factory.mktemp("assembly")
    inner = root / "assembly-Prod" if is_in_stage else root
    inner.mkdir(exist_ok=True)
    artifacts: dict[str, Any] = {}
    deployed: dict[str, set[str]] = {}
    for artifact, (stack_name, logical_ids) in stacks.items():
        given_name = {} if stack_name in (None, artifact) else {"stackName": stack_name}
        artifacts[artifact] = {
            "type": "aws:cloudformation:stack",
            "environment": "aws://unknown-account/unknown-region",
            "properties": {"templateFile": f"{artifact}.template.json", **given_name},
        }
        resources = {
            name: {"Type": "AWS::DynamoDB::Table", "Properties": {"BillingMode": "PAY_PER_REQUEST"}}
            for name in logical_ids
        }
        (inner / f"{artifact}.template.json").write_text(json.dumps({"Resources": resources}))
        for name in logical_ids:
            deployed.setdefault(f"{stack_name or artifact}-{name}-{suffix}", set()).add(f"{artifact}/{name}")
    (inner / "manifest.json").write_text(json.dumps({"version": "48.0.0", "artifacts": artifacts}))
    if is_in_stage:
        stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-Prod"}}
        (root / "manifest.json").write_text(json.dumps({"version": "48.0.0", "artifacts": {"assembly-Prod": stage}}))
    tables = read_app(load_templates(root)).tables
    assert len(tables) == sum(len(ids) for _, ids in stacks.values())
    for name, owners in deployed.items():
        found = [table for table in tables if table.name_among([name])]
        # two stacks of one name, in two accounts, have tables of the same names
        assert len(found) == len(owners)
        assert all(f"{table.stacks[0]}-{table.logical_id}-{suffix}" == name for table in found)
    every = list(deployed)
    assert all(table.name_among(every) in every for table in tables)
