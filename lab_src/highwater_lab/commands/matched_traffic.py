"""Finds the traffic of each table of an app in the files of `--traffic`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from highwater_lab.report.app import left_over_lines
from highwater_lab.simulation import TableSetup
from highwater_lab.template import ListedTable, tables_called
from highwater_lab.traffic import FileTraffic, Traffic
from highwater_lab.traffic.reading import which_table


@dataclass(frozen=True, slots=True)
class AppTraffic:
    """The traffic of the tables of an app; a call returns that of one table, `None` where it is not known.

    Attributes:
        find: Returns a table's traffic.
        left_over: The files, and the tables in files, that fit no table of the app.
    """

    find: Callable[[ListedTable], Traffic | None]
    left_over: tuple[str, ...] = ()

    def __call__(self, table: ListedTable) -> Traffic | None:
        """Return the traffic of a table."""
        return self.find(table)


def match_traffic(
    read: Mapping[str, FileTraffic],
    asked: Sequence[Sequence[ListedTable]],
    every: Iterable[ListedTable],
    change: Callable[[Traffic], Traffic],
    *,
    has_notes: bool = True,
) -> AppTraffic:
    """Return the traffic of tables, by their names.

    One table and the only traffic of a file that names no table belong together, whatever the file is called.

    Args:
        read: What the files have, by name.
        asked: The tables to find traffic of; a table before and after a change is one, in this order.
        every: All tables of the templates, of which some may be left out.
        change: Scales and moves the traffic that is used.
        has_notes: Whether a note says that a table and traffic without a name were taken together.
    """
    names = {id(table): table.name_among(read) for table in (*(each for one in asked for each in one), *every)}
    notes: dict[str, str] = {}
    only = next(iter(read)) if len(read) == 1 and len(asked) == 1 else None
    if only is not None and not read[only].is_named:
        new = [table for table in asked[0] if names[id(table)] is None]
        names |= {id(table): only for table in new}
        if new and has_notes:
            notes[only] = f"{read[only].file} names no table: its traffic is taken as that of {new[-1].name}"
    used = set(names.values()) if names else set(read)
    found = {name: change(each.traffic) for name, each in read.items() if name in used}
    found |= {name: replace(found[name], notes=(*found[name].notes, note)) for name, note in notes.items()}
    left_over = tuple(
        f"table {name} of {each.file}" if each.is_named else each.file
        for name, each in read.items()
        if name not in used
    )
    return AppTraffic(lambda table: found.get(names.get(id(table)) or ""), left_over)


def listed_as(name: str | None, setup: TableSetup, listed: Sequence[ListedTable]) -> ListedTable:
    """Return the one table that is called *name*, or the only one, as it is *listed*.

    A table that `--target` alone names, and one of Highwater's own, are not listed, and have no other name.
    """
    called = tables_called(listed, name) if name else listed
    if len(called) == 1:
        return called[0]
    return ListedTable(name=name or setup.name, stage="", logical_id=None, physical=None, setup=setup)


def traffic_of_one(
    matched: AppTraffic,
    table: ListedTable,
    read: Mapping[str, FileTraffic],
    file: str,
    *,
    tells_left_over: bool = False,
) -> Traffic:
    """Return the traffic of the one table that is asked for; raises `TrafficError` if the files have none of it.

    With *tells_left_over*, a note has the traffic that fits no table.
    """
    traffic = matched(table)
    if traffic is None:
        raise which_table(file, read)
    return replace(traffic, notes=(*traffic.notes, *left_over_lines(matched.left_over))) if tells_left_over else traffic
