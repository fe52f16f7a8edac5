"""The same table before and after a change: by name and region, by a plan's word, by logical id, by path."""

from __future__ import annotations

from dataclasses import replace

import pytest

from highwater_lab.template import ListedTable, is_moved, match_tables
from highwater_lab.template.deployed import Deployed
from highwater_lab.template.document import Planned


def _table(
    name: str,
    logical_id: str | None = None,
    physical: str | None = None,
    *,
    stack: str = "Shop",
    region: str | None = "eu-west-1",
    account: str | None = None,
    previous: str | None = None,
) -> ListedTable:
    planned = None if previous is None else Planned(("update",), previous)
    return ListedTable(
        name=name,
        stage="",
        stacks=(stack,),
        logical_id=logical_id,
        physical=physical,
        setup=None,
        deployed=Deployed(region=region, account=account, planned=planned),
    )


def _names(old: list[ListedTable], new: list[ListedTable]) -> list[tuple[str | None, str | None]]:
    return [
        (None if one is None else one.name, None if other is None else other.name)
        for one, other in match_tables(old, new)
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(_table("A", "A1", "orders"), _table("B", "B1", "orders", stack="Other"), id="physical-name"),
        pytest.param(
            _table("A", "A1", "orders"), _table("B", "B1", "orders", account="111122223333"), id="account-is-new"
        ),
        pytest.param(_table("x.a", "x.a"), _table("x.b", "x.b", previous="x.a"), id="previous-address"),
        pytest.param(_table("A", "A1", "orders"), _table("B", "A1", "orders-2"), id="logical-id"),
        pytest.param(_table("A", "A1"), _table("A", "A2"), id="path"),
        pytest.param(_table("orders", None, "orders"), _table("A", "A1", "orders"), id="scaled-then-defined"),
    ],
)
def test_one_table_of_two_apps(old: ListedTable, new: ListedTable) -> None:
    assert match_tables([old], [new]) == [(old, new)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(_table("A", "A1", "orders"), _table("B", "B1", "orders", region="us-east-1"), id="region"),
        pytest.param(_table("A", "X1"), _table("B", "X1", stack="Other"), id="stack"),
        pytest.param(_table("A", "A1"), _table("B", "B1"), id="nothing-is-the-same"),
    ],
)
def test_two_tables(old: ListedTable, new: ListedTable) -> None:
    assert match_tables([old], [new]) == [(old, None), (None, new)]


def test_name_decides_before_logical_id_and_path() -> None:
    old = [_table("A", "A1", "one"), _table("B", "B1", "two")]
    new = [_table("A", "A1", "two"), _table("B", "B1", "one")]
    assert _names(old, new) == [("B", "A"), ("A", "B")]


def test_name_that_several_tables_have_leaves_it_to_the_logical_id() -> None:
    def both() -> list[ListedTable]:
        return [_table(f"{stack}/A", "A1", "orders", stack=stack, region=None) for stack in ("Beta", "Prod")]

    assert _names(both(), both()) == [("Beta/A", "Beta/A"), ("Prod/A", "Prod/A")]


def test_table_is_moved_by_another_logical_id_or_stack_and_not_by_another_folder() -> None:
    old = _table("A", "A1", "orders")
    assert is_moved(old, replace(old, logical_id="A2"))
    assert is_moved(old, replace(old, stacks=("Other",)))
    assert is_moved(old, replace(old, stacks=("Shop", "Inner")))
    assert not is_moved(old, replace(old, stacks=("",)))
    assert not is_moved(old, replace(old, name="Other/A"))
    assert not is_moved(_table("orders", None, "orders"), old)
