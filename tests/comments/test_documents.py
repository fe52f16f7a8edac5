"""What a comment says: documents and their hidden lines, and which tables are left out of a long one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from highwater_lab.comments.documents import UNKNOWN_RUN, Comment, Document, DocumentError, PipelineRun, read_documents
from highwater_lab.rehearse import AppRehearsal, Limits, Outcome, TableChange, TableRehearsal
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
LINK = "https://example.com/runs/1"


def table(name: str, stage: str = "Prod", **more: object) -> TableRehearsal:
    """A table whose cost rises."""
    changed = TableRehearsal(
        name=name, stage=stage, change=TableChange.CHANGED, before=CHEAP, after=DEAR, on_demand=DEAR, notes=("a note",)
    )
    return replace(changed, **more)  # type: ignore[arg-type] # attributes of any kind


def markdown(*tables: TableRehearsal, most_cost: float | None = None) -> str:
    """What `highwater rehearse` prints of tables."""
    app = AppRehearsal(tables=tables, against="main", traffic="1.0 days", prices="prices of eu-west-1")
    return app_markdown(app, Limits(max_cost_per_month=most_cost).passed_by_app(app))


def test_documents_of_all_stages_are_read_with_what_changed() -> None:
    same = table("Beta/Shop/Carts", "Beta", change=TableChange.UNCHANGED, after=CHEAP)
    beta, prod = read_documents(markdown(same, table("Prod/Shop/Orders")), "x.md")
    assert (beta.stage, beta.is_changed, prod.stage, prod.is_changed) == ("Beta", False, "Prod", True)
    assert beta.text.startswith("### DynamoDB capacity, Beta\n\n1 table: 10.00 USD a month")
    assert beta.text.endswith("<sub>Simulated: 1.0 days; prices of eu-west-1.</sub>\n")
    assert "Prod" not in beta.text
    assert prod.body() == f"<!-- highwater rehearsal: Prod -->\n{prod.text}"


def test_limit_that_is_exceeded_by_what_did_not_change_counts_as_a_change() -> None:
    same = table("Prod/Shop/Orders", change=TableChange.UNCHANGED)
    assert [each.is_changed for each in read_documents(markdown(same, most_cost=5), "x.md")] == [True]


def test_unknown_table_counts_as_a_change_if_its_declaration_differs() -> None:
    states = []
    for change in (TableChange.ADDED, TableChange.UNCHANGED):
        unknown = table("Orders", change=change, unknown="there is no traffic of Orders", before=None, after=None)
        states += [each.is_changed for each in read_documents(markdown(unknown), "x.md")]
    assert states == [True, False]


def test_rehearsal_that_compares_with_nothing_always_has_something_to_say() -> None:
    app = AppRehearsal(
        tables=(table("A", change=TableChange.UNCHANGED, before=None),), against="", traffic="", prices=""
    )
    assert [each.is_changed for each in read_documents(app_markdown(app), "x.md")] == [True]


@pytest.mark.parametrize(
    ("stage", "marked"),
    [
        ("", ""),
        ("Prod/Eu 1", "Prod/Eu 1"),
        ("a-->b", "a--%3Eb"),
        ("<!-- x", "%3C%21-- x"),
        ("line\nbreak", "line%0Abreak"),
        ("half;half", "half%3Bhalf"),
        ("Größe", "Gr%C3%B6%C3%9Fe"),
        ("--", "--"),
    ],
)
def test_hidden_line_of_a_stage_is_one_line_and_ends_only_at_its_end(stage: str, marked: str) -> None:
    (document,) = read_documents(markdown(table("Orders", stage)), "x.md")
    assert document.stage == marked
    body = document.body(name="shop; -->", run=PipelineRun(17, 1))
    assert body.splitlines()[:2] == [
        f"<!-- highwater rehearsal: {marked}; shop%3B --%3E -->",
        "<!-- highwater run: 17.1 -->",
    ]
    assert body.splitlines()[2].endswith(" · shop; --\\>")
    comment = Comment(1, body)
    assert (comment.subject, comment.run) == ((marked, "shop%3B --%3E"), PipelineRun(17, 1))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_documents_are_read_with_any_end_of_line_and_with_a_byte_order_mark(end: str) -> None:
    text = "\ufeff" + markdown(table("Orders")).replace("\n", end)
    assert read_documents(text, "x.md") == read_documents(markdown(table("Orders")), "x.md")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "x.md: does not begin with the hidden line of a rehearsal; make it with: highwater rehearse ... --format "
            "markdown",
        ),
        (
            f"1 table: 10 USD a month.\n{markdown(table('Orders'))}",
            "x.md: does not begin with the hidden line of a rehearsal; make it with: highwater rehearse ... --format "
            "markdown",
        ),
        (
            "<!-- highwater rehearsal: Prod -->\n### DynamoDB",
            "x.md: the second line of Prod is '### DynamoDB', expected <!-- highwater: changed --> or <!-- highwater: "
            "unchanged -->; make it with: highwater rehearse ... --format markdown",
        ),
        (
            markdown(table("Orders", "")) * 2,
            "x.md: has two documents of the app; post those of each app by themselves, with --name",
        ),
    ],
    ids=["empty", "other lines before", "no second line", "two of a stage"],
)
def test_what_is_no_rehearsal_is_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as refused:
        read_documents(text, "x.md")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "body",
    [
        "",
        "> <!-- highwater rehearsal: Prod -->",
        "Look:\n<!-- highwater rehearsal: Prod -->",
        "<!-- highwater rehearsal: Prod --> and more",
        " <!-- highwater rehearsal: Prod -->",
    ],
)
def test_marker_counts_as_a_whole_first_line_only(body: str) -> None:
    assert Comment(1, body).subject is None


def test_comment_says_the_same_whatever_its_run_its_ends_of_line_and_its_blanks_at_them() -> None:
    (document,) = read_documents(markdown(table("Orders")), "x.md")
    first = document.body(run=PipelineRun(17, 1))
    kept = Comment(1, first.replace("\n", "\r\n").replace("|\r", "|  \r").rstrip())
    assert kept.says(document.body(run=PipelineRun(18, 2)))
    assert kept.says(document.body())
    assert not kept.says(document.body().replace("20.00", "21.00"))
    assert not kept.says(document.body(name="shop"))


def test_run_of_a_comment_is_its_second_line() -> None:
    assert Comment(1, "a\n<!-- highwater run: 17.2 -->\r\nb").run == PipelineRun(17, 2)
    assert Comment(1, "a\nb\n<!-- highwater run: 17.2 -->").run == UNKNOWN_RUN
    assert PipelineRun(17, 2).is_before(PipelineRun(17, 3))
    assert PipelineRun(17, 2).is_before(PipelineRun(100, 1))
    assert not PipelineRun(17, 2).is_before(PipelineRun(17, 2))


def _long(count: int) -> Document:
    tables = [table(f"Prod/Shop/T{number:04}") for number in range(count)]
    (document,) = read_documents(markdown(*tables, most_cost=15), "x.md")
    return document


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_document_that_fits_is_not_cut_by_a_character() -> None:
    document = _long(20)
    whole = document.body(run=PipelineRun(1))
    assert document.body(run=PipelineRun(1), most=_units(whole)) == whole
    assert document.body(run=PipelineRun(1), most=_units(whole) - 1) != whole


@pytest.mark.parametrize("most", [3_000, 20_000, 65_536])
def test_long_document_keeps_its_first_tables_with_all_their_lines(most: int) -> None:
    document = _long(1_000)
    body = document.body(run=PipelineRun(1), most=most, link=LINK)
    assert _units(body) <= most
    lines = body.splitlines()
    rows = [line for line in lines if line.startswith("| Prod/")]
    kept = len(rows)
    assert kept > 0
    assert (
        f"**{1_000 - kept} tables are left out:** a comment has at most {most:,} characters. [All of them](<{LINK}>)."
        in (lines)
    )
    # a row, a limit, a sentence and a note, each whole
    lines, every = ([line.replace("<wbr>", "") for line in each] for each in (lines, document.text.splitlines()))
    shown = [f"T{number:04}" for number in range(kept)]
    assert [line for line in lines if "Shop/T" in line] == [
        line for line in every if any(f"Shop/{name}" in line for name in shown)
    ]
    assert [line for line in lines if "Shop/T0000" in line] == [line for line in every if "Shop/T0000" in line]
    assert sum("Shop/T0000" in line for line in lines) == 4
    # what is about the stage stays, and so does the frame of the details
    assert lines[2] == "### DynamoDB capacity, Prod"
    assert "</details>" in lines
    assert lines[-1] == "<sub>Simulated: 1.0 days; prices of eu-west-1.</sub>"
    # one more would not have fitted
    longest = max(_units("\n".join(line for line in every if f"T{number:04}" in line)) for number in (0, 999))
    assert _units(body) + longest + 10 > most


def test_one_table_that_is_left_out_is_spoken_of_as_one() -> None:
    document = _long(20)
    body = document.body(most=_units(document.body()) - 1)
    assert "**1 table is left out:** a comment has at most " in body
    assert "All of them" not in body


def test_characters_beyond_the_first_plane_count_twice() -> None:
    tables = [table(f"𝔓{number:03}") for number in range(200)]
    (document,) = read_documents(markdown(*tables), "x.md")
    assert _units(document.body(most=9_000)) <= 9_000


def test_unknown_tables_are_left_out_first_and_counted() -> None:
    unknown = [table(f"Z{number:03}", unknown="there is no traffic of it") for number in range(300)]
    (document,) = read_documents(markdown(table("Orders"), *unknown), "x.md")
    body = document.body(most=4_000)
    left = 300 - body.count(": unknown: ")
    assert f"**{left} tables are left out:**" in body
    assert "| Orders | " in body
    assert "- Orders: a note" in body


def test_names_with_colons_pipes_and_brackets_keep_their_own_lines() -> None:
    names = ["A", "A: B", "C | D", "E (added)", "F: unknown: G"]
    tables = [table(name) for name in names] + [table(f"Z{number:03}") for number in range(200)]
    (document,) = read_documents(markdown(*tables), "x.md")
    for most in range(900, 3_000, 50):
        body = document.body(most=most)
        for name in ("A", "A: B", "C \\| D", "E (added)", "F: unknown: G"):
            about = (f"| {name} | 10.00 → **20.00**", f"- {name}: 20.00 USD", f"- {name}: a note")
            assert len({each in body for each in about}) == 1, (most, name)


def test_added_and_removed_tables_keep_their_own_lines() -> None:
    new = table("New", change=TableChange.ADDED, before=None)
    gone = table("Gone", change=TableChange.REMOVED, after=None)
    (document,) = read_documents(markdown(new, gone, *(table(f"Z{number:03}") for number in range(100))), "x.md")
    body = document.body(most=1_500)
    assert "| New (added) |" in body
    assert "- New: 20.00 USD a month" in body
    assert "- Gone: removed." in body
