"""Matches the tables of an app before a change with those after it: a moved table is neither removed nor added."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from highwater_lab.template.listed import ListedTable

_Key: TypeAlias = Callable[[ListedTable], Hashable]
Pair: TypeAlias = tuple[ListedTable | None, ListedTable | None]


def match_tables(before: Sequence[ListedTable], after: Sequence[ListedTable]) -> list[Pair]:
    """Return the tables in pairs of before and after, by name; `None` stands for a table that the other app lacks.

    A Terraform plan decides for its own tables: two addresses are one table only if the plan moves one to the other, or
    imports a table of that name. Other tables are the same one if they have one physical name in one account and
    region; then one logical id in one stack; then one path or address. Where several tables have the same key of these,
    the next decides.
    """
    old, new = list(before), list(after)
    pairs: list[Pair] = []
    rounds: tuple[tuple[_Key, _Key], ...] = (
        (_in_file, _previous_in_file),
        (_name, _previous),
        (_in_file, _unmoved_in_file),
        (_name, _unmoved),
        (_in_file, _planned_in_file),
        (_name, _planned),
        (_physical, _physical_outside_plan),
        (_place, _place_outside_plan),
        (_logical_in_place, _logical_in_place),
        (_logical, _logical),
        (_name, _name_outside_plan),
    )
    for of_old, of_new in rounds:
        olds, news = _alone(old, of_old), _alone(new, of_new)
        for key in olds.keys() & news.keys():
            pairs.append((olds[key], news[key]))
        old, new = (
            [each for each in left if not any(each is one for one in found)]
            for left, found in ((old, [pair[0] for pair in pairs]), (new, [pair[1] for pair in pairs]))
        )
    pairs += [(table, None) for table in old] + [(None, table) for table in new]
    return sorted(pairs, key=lambda pair: ((pair[1] or pair[0]).name, pair[1] is None))  # type: ignore[union-attr] # one is there


def is_moved(old: ListedTable, new: ListedTable) -> bool:
    """Return whether a table has another address than before, or another logical id or stack."""
    if old.logical_id is None or new.logical_id is None:
        return False
    is_stack_known = all(table.stacks[0] for table in (old, new))
    return old.logical_id != new.logical_id or (is_stack_known and old.stacks != new.stacks)


def _alone(tables: Sequence[ListedTable], key_of: _Key) -> dict[Hashable, ListedTable]:
    """Return the tables by their key, without those that have none, or share it with another."""
    found: dict[Hashable, list[ListedTable]] = {}
    for table in tables:
        if (key := key_of(table)) is not None:
            found.setdefault(key, []).append(table)
    return {key: each[0] for key, each in found.items() if len(each) == 1}


def _physical(table: ListedTable) -> Hashable:
    place = _place(table)
    return None if place is None else (table.deployed.account, place)


def _place(table: ListedTable) -> Hashable:
    """Return the name that the table has or declares, and its region; `None` for a name that is generated."""
    name = table.physical or table.open_name
    return (name, table.deployed.region) if name else None


def _is_planned(table: ListedTable) -> bool:
    """Return whether a Terraform plan decides what becomes of a table, whatever its name is."""
    return table.deployed.planned is not None and not table.deployed.planned.is_imported


def _physical_outside_plan(table: ListedTable) -> Hashable:
    return None if _is_planned(table) else _physical(table)


def _place_outside_plan(table: ListedTable) -> Hashable:
    return None if _is_planned(table) else _place(table)


def _name_outside_plan(table: ListedTable) -> Hashable:
    return None if _is_planned(table) else table.name


def _name(table: ListedTable) -> Hashable:
    return table.name


def _in_file(table: ListedTable) -> Hashable:
    return (table.deployed.where, table.logical_id) if table.dialect.words else None


def _previous(table: ListedTable) -> Hashable:
    return None if table.deployed.planned is None else table.deployed.planned.previous


def _previous_in_file(table: ListedTable) -> Hashable:
    return None if _previous(table) is None else (table.deployed.where, _previous(table))


def _unmoved(table: ListedTable) -> Hashable:
    return table.name if _is_planned(table) and _previous(table) is None else None


def _unmoved_in_file(table: ListedTable) -> Hashable:
    return None if _unmoved(table) is None else _in_file(table)


def _planned(table: ListedTable) -> Hashable:
    # the prior state of a plan has the addresses that its moved blocks lead to already
    return table.name if _is_planned(table) else None


def _planned_in_file(table: ListedTable) -> Hashable:
    return None if _planned(table) is None else _in_file(table)


def _logical(table: ListedTable) -> Hashable:
    return None if table.logical_id is None else (table.stage, table.stacks, table.logical_id)


def _logical_in_place(table: ListedTable) -> Hashable:
    key = _logical(table)
    return None if key is None else (table.deployed.account, table.deployed.region, key)
