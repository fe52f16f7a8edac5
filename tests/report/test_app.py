"""Documents for pull requests: their hidden lines, and which tables are left out of a long one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from highwater_lab.rehearse import AppRehearsal, FixedCost, Limits, Outcome, TableChange, TableRehearsal
from highwater_lab.report.app import app_markdown

CHEAP, DEAR = (
    Outcome(
        cost_per_month=cost,
        warm_up=0,
        demanded_units=1e6,
        throttled_units=0,
        throttled_minutes=0,
        worst_at=None,
    )
    for cost in (10.0, 20.0)
)
MOST = 65_000


def _table(name: str, stage: str = "Prod", **more: object) -> TableRehearsal:
    """A table whose cost rises."""
    changed = TableRehearsal(
        name=name, stage=stage, change=TableChange.CHANGED, before=CHEAP, after=DEAR, on_demand=DEAR, notes=("a note",)
    )
    return replace(changed, **more)  # type: ignore[arg-type] # attributes of any kind


def _markdown(*tables: TableRehearsal, most_cost: float | None = None) -> str:
    """What `highwater rehearse` prints of tables."""
    app = AppRehearsal(tables=tables, against="main", traffic="1.0 days", prices="prices of eu-west-1")
    return app_markdown(app, Limits(max_cost_per_month=most_cost).passed_by_app(app))


def _hidden(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("<!--")]


def test_limit_that_is_exceeded_by_what_did_not_change_counts_as_a_change() -> None:
    same = _table("Prod/Shop/Orders", change=TableChange.UNCHANGED)
    assert _hidden(_markdown(same, most_cost=5)) == ["<!-- highwater::Prod -->"]
    assert _hidden(_markdown(same)) == ["<!-- highwater::Prod: unchanged -->"]


def test_unknown_table_counts_as_a_change_if_its_declaration_differs() -> None:
    unknown = _table("Orders", unknown="there is no traffic of Orders", before=None, after=None)
    assert [
        _hidden(_markdown(replace(unknown, change=each))) for each in (TableChange.ADDED, TableChange.UNCHANGED)
    ] == [
        ["<!-- highwater::Prod -->"],
        ["<!-- highwater::Prod: unchanged -->"],
    ]


def test_rehearsal_that_compares_with_nothing_always_has_something_to_say() -> None:
    alone = _table("A", change=TableChange.UNCHANGED, before=None)
    app = AppRehearsal(tables=(alone,), against="", traffic="", prices="")
    assert _hidden(app_markdown(app)) == ["<!-- highwater::Prod -->"]


@pytest.mark.parametrize(
    ("stage", "marked"),
    [
        ("", ""),
        ("Prod/Eu 1", "Prod/Eu 1"),
        ("a-->b", "a--%3Eb"),
        ("<!-- x", "%3C%21-- x"),
        ("line\nbreak", "line%0Abreak"),
        ("a: unchanged", "a%3A unchanged"),
        ("Größe", "Gr%C3%B6%C3%9Fe"),
        ("--", "--"),
    ],
)
def test_hidden_line_of_a_stage_is_one_line_without_a_colon_of_the_stage(stage: str, marked: str) -> None:
    assert _markdown(_table("Orders", stage)).splitlines()[0] == f"<!-- highwater::{marked} -->"


def _long(count: int) -> tuple[TableRehearsal, ...]:
    return tuple(_table(f"Prod/Shop/T{number:04}") for number in range(count))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _left_out(text: str) -> str:
    (line,) = [each for each in text.splitlines() if each.startswith("**")]
    return line


def test_long_document_keeps_its_first_tables_with_all_their_lines_and_says_how_many_are_left_out() -> None:
    text = _markdown(*_long(1_000), most_cost=15)
    assert MOST - 600 < _units(text) <= MOST
    lines = [line.replace("<wbr>", "") for line in text.splitlines()]
    kept = sum(line.startswith("| Prod/Shop/T") for line in lines)
    assert _left_out(text) == (
        f"**{1_000 - kept} tables are left out**, as a comment has at most 65,536 characters; `--html` and `--json` "
        "have all."
    )
    for number in (0, kept - 1):
        # a row, a limit, a sentence and a note
        assert sum(f"Prod/Shop/T{number:04}" in line for line in lines) == 4, number
    assert f"Prod/Shop/T{kept:04}" not in text.replace("<wbr>", "")
    # what is about the stage stays, and so does the frame of the details
    assert lines[1] == "### DynamoDB capacity, Prod"
    assert lines[3].startswith("1,000 tables: 20,000 USD a month")
    assert "</details>" in lines
    assert lines[-1] == "<sub>Simulated: 1.0 days; prices of eu-west-1.</sub>"


def test_document_is_cut_only_if_it_is_too_long_and_one_table_is_spoken_of_as_one() -> None:
    def text(length: int) -> str:
        return _markdown(_table("A"), _table("B", unknown="x" * length))

    fits = MOST - _units(text(1)) + 1
    assert _units(text(fits)) == MOST
    assert "left out" not in text(fits)
    assert _left_out(text(fits + 1)).startswith("**1 table is left out**, ")


def test_each_stage_is_cut_by_itself() -> None:
    tables = [*_long(1_000), _table("Qa/Orders", "Qa")]
    qa = _markdown(*tables).partition("<!-- highwater::Qa -->")[2]
    assert "left out" not in qa
    assert "- Qa/Orders: a note" in qa


def test_characters_beyond_the_first_plane_count_twice() -> None:
    text = _markdown(*(_table(f"𝔓{number:03}" + "𝔓" * 60) for number in range(300)))
    assert MOST - 1_000 < _units(text) <= MOST


def test_unknown_tables_are_left_out_first_and_alarms_never() -> None:
    unknown = (_table(f"Z{number:04}", unknown="there is no traffic of it") for number in range(3_000))
    alarms = FixedCost(stage="Prod", what="alarm", before=1, after=3, usd=0.1)
    app = AppRehearsal(
        tables=(_table("Orders"), *unknown), against="main", traffic="1.0 days", prices="", fixed=(alarms,)
    )
    text = app_markdown(app)
    left = 3_000 - text.count(": unknown: ")
    assert _left_out(text).startswith(f"**{left:,} tables are left out**, ")
    assert "| Orders | " in text
    assert "- Orders: a note" in text
    assert "| 3 alarms (before: 1) | " in text
