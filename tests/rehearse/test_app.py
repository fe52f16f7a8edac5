"""All tables of an app before and after a change: what changed, what is unknown, and how traffic finds its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from highwater.core import Dimension
from highwater_lab.rehearse import (
    AppRehearsal,
    Cheapest,
    Conditions,
    FixedCost,
    Limits,
    Outcome,
    TableChange,
    rehearse,
    rehearse_app,
)
from highwater_lab.report.app import (
    app_document,
    app_markdown,
    cell,
    fixed_sentence,
    sentence,
    share,
    total_sentence,
    usd,
)
from highwater_lab.report.terminal import config_text
from highwater_lab.services.prices import Commitments, load_prices
from highwater_lab.simulation import TableSetup
from highwater_lab.simulation.setup import ReplicaSetup
from highwater_lab.template import ListedApp, ListedTable, load_templates, read_app
from highwater_lab.traffic import Stream, Traffic
from tests.rehearse.apps import APP, CARTS, GONE, LOST, NEW, ORDERS, STEP, outcome, setup_of

WRITES = Stream(None, Dimension.WRITE)


def _table(name: str, setup: TableSetup | None, *, problem: str = "", **more: str | None) -> ListedTable:
    values: dict[str, str | None] = {"stage": "", "logical_id": "X1", "physical": None} | more
    return ListedTable(name=name, setup=setup, problem=problem, stacks=("Shop",), **values)  # type: ignore[arg-type] # texts all


def _listed(*tables: ListedTable) -> ListedApp:
    return ListedApp(tables=tables)


def _app(after: list[ListedTable], before: list[ListedTable] | None = None, **traffic: Traffic) -> AppRehearsal:
    found = traffic or {"*": STEP}
    return rehearse_app(
        _listed(*after),
        lambda table: found.get("*") or found.get(table.name),
        before=None if before is None else _listed(*before),
        against="main" if before is not None else "",
        processes=1,
    )


def test_outcomes_are_those_of_a_rehearsal_of_the_table_alone() -> None:
    app = _app([_table("Orders", setup_of(2_900))], [_table("Orders", setup_of(300))])
    (table,) = app.tables
    assert table.change is TableChange.CHANGED
    for found, floor in ((table.after, 2_900), (table.before, 300)):
        alone = rehearse(setup_of(floor), STEP, compare=["on-demand"])
        assert found == Outcome.of_run(
            alone.declared, {each: alone.prices.throughput().unit_hour(each) for each in Dimension}
        )
        assert table.on_demand == Outcome.of_run(alone.runs[1])
    assert table.after is not None
    assert table.before is not None
    assert table.after.cost_per_month != table.before.cost_per_month


def test_several_processes_give_the_same_as_one() -> None:
    tables = [_table(f"T{floor}", setup_of(floor)) for floor in (300, 900)]
    one, two = (rehearse_app(_listed(*tables), lambda _: STEP, processes=processes) for processes in (1, 2))
    assert one == two


def test_tables_with_schedules_are_compared_by_them_and_simulated_by_several_processes() -> None:
    assembly = Path(__file__).parents[1] / "template" / "corpus" / "capacity-in-another-stack" / "assembly"
    after, before = (read_app(load_templates(assembly), {}) for _ in range(2))
    setups = [each.setup for each in after.tables if each.setup is not None]
    assert any(resource.write.actions for setup in setups for resource in setup.resources)
    app = rehearse_app(after, lambda _: STEP, before=before, against="main", processes=2)
    assert {table.change for table in app.tables} == {TableChange.UNCHANGED}


def test_tables_that_are_equal_are_unchanged_whatever_their_notes_say() -> None:
    app = _app(
        [_table("Same", setup_of(300, notes=("one",))), _table("New", setup_of(300))],
        [_table("Same", setup_of(300, notes=("other",))), _table("Old", setup_of(300))],
    )
    assert {table.name: table.change for table in app.tables} == {
        "New": TableChange.ADDED,
        "Old": TableChange.REMOVED,
        "Same": TableChange.UNCHANGED,
    }
    assert [table.name for table in app.changed()] == ["New", "Old"]
    new, old, same = app.tables
    assert (new.before, old.after) == (None, None)
    assert same.before == same.after
    assert app.before is not None
    assert app.before.cost_per_month == app.after.cost_per_month


def test_what_is_not_known_is_in_no_sum_and_says_why() -> None:
    idle = replace(STEP, name="idle", rates={WRITES: STEP.rates[WRITES][:60]}, counts=None)
    idle = replace(idle, rates={WRITES: type(idle.rates[WRITES])("q", [0] * 60)})
    reads = Stream("by_status", Dimension.READ)
    by_status = replace(STEP, rates={**STEP.rates, reads: STEP.rates[WRITES]}, counts=None)
    app = _app(
        [
            _table("Broken", None, problem="Broken: has provisioned billing but no WriteCapacityUnits"),
            _table("Empty", setup_of(300)),
            _table("Idle", setup_of(7)),
            _table("Index", setup_of(300)),
            _table("Lost", setup_of(300), physical="lost-1"),
            _table("Orders", setup_of(300)),
        ],
        Empty=Traffic.unknown("empty", "idle.csv: has no datapoints"),
        Idle=idle,
        Index=by_status,
        Orders=STEP,
    )
    assert {table.name: table.unknown for table in app.unknown()} == {
        "Broken": "Broken: has provisioned billing but no WriteCapacityUnits",
        "Empty": "idle.csv: has no datapoints",
        "Index": "traffic step has a column reads:by_status, and the table has no such index",
        "Lost": "there is no traffic of lost-1, Lost",
    }
    quiet, known = (each.after for each in app.tables if each.name in ("Idle", "Orders"))
    assert known is not None
    assert quiet is not None
    assert app.after.cost_per_month == pytest.approx(known.cost_per_month + quiet.cost_per_month)
    assert total_sentence(app) == (
        f"2 tables: {usd(app.after.cost_per_month)} USD a month, {share(known.throttled_percent)} % throttled. 4 more "
        "are unknown, and not in these sums."
    )


def test_idle_table_has_its_price_and_an_index_without_traffic_says_what_is_assumed() -> None:
    idle = replace(STEP, name="idle", rates={WRITES: type(STEP.rates[WRITES])("q", [0] * 60)}, counts=None)
    app = _app([_table("Idle", setup_of(7)), _table("Index", setup_of(300, "by_status"))], Idle=idle, Index=STEP)
    quiet, assumed = app.tables
    assert quiet.after is not None
    assert sentence(quiet, "").startswith(
        f"Idle: idle: nothing is requested of it. {usd(quiet.after.cost_per_month)} USD"
    )
    assert quiet.notes == ()
    assert assumed.notes == (
        "the traffic has no column writes:by_status: 100 % of the units written to the table are assumed to be written "
        "to index by_status, too; say what is true in such a column, or with --index-share by_status=PERCENT of "
        "highwater simulate",
    )


def _marked(floor: int, mark: int, *indexes: str, replicas: tuple[str, ...] = ()) -> TableSetup:
    setup = setup_of(floor, *indexes)
    resources = tuple(
        replace(each, warm_write_units=mark, bought_write_units=max(0, mark - floor)) for each in setup.resources
    )
    others = tuple(ReplicaSetup(region=region, read_units=5) for region in replicas)
    return replace(setup, resources=resources, replicas=others)


def test_only_what_raises_a_mark_above_the_old_one_is_charged() -> None:
    on_demand = replace(setup_of(1), is_on_demand=True)
    pairs = {
        "A same": (_marked(300, 12_000), _marked(900, 12_000)),
        "B back": (_marked(900, 12_000), _marked(300, 12_000)),
        "C lowered": (_marked(300, 12_000), _marked(300, 9_000)),
        "D raised": (_marked(300, 12_000), _marked(900, 13_000)),
        "E first": (_marked(700, 0), _marked(300, 2_000)),
        "F from on-demand": (on_demand, _marked(300, 5_000)),
        "G index": (_marked(300, 12_000), _marked(300, 12_000, "by_status")),
        "H replica": (
            _marked(300, 12_000, replicas=("eu-west-1",)),
            _marked(300, 13_000, replicas=("eu-west-1", "eu-west-1")),
        ),
        "I far replica": (_marked(300, 12_000), _marked(300, 12_000, replicas=("us-east-1",))),
        "J unchanged": (_marked(300, 12_000), _marked(300, 12_000)),
    }
    app = _app(
        [_table(name, after) for name, (_, after) in pairs.items()],
        [_table(name, before) for name, (before, _) in pairs.items()],
    )
    price, far = (load_prices(region).throughput().write_unit_hour for region in ("eu-west-1", "us-east-1"))
    charged = {table.name[0]: table.after.warm_up for table in app.tables if table.after}
    assert charged == pytest.approx(
        {
            **dict.fromkeys("ABCJ", 0.0),
            # above 12,000, the capacity that it had, and what a table on demand can do at once
            **{"D": 1_000 * price, "E": 1_300 * price, "F": 1_000 * price},
            **{"G": 11_700 * price, "H": 3_000 * price, "I": 11_700 * far},
        }
    )
    (alone,) = _app([_table("Orders", _marked(300, 12_000))]).tables
    assert alone.after is not None
    assert alone.after.warm_up == pytest.approx(11_700 * price)


def test_index_that_the_change_adds_is_simulated_after_it_alone() -> None:
    rates = {**STEP.rates, Stream("by_status", Dimension.READ): STEP.rates[WRITES]}
    traffic = replace(STEP, rates=rates, counts=None)
    app = _app([_table("Orders", setup_of(300, "by_status"))], [_table("Orders", setup_of(300))], Orders=traffic)
    (table,) = app.tables
    assert table.unknown == ""
    assert table.after is not None
    assert table.before is not None
    assert table.after.demanded_units > table.before.demanded_units


def test_result_in_words() -> None:
    assert [sentence(table, "main") for table in (ORDERS, NEW, GONE, LOST)] == [
        "Prod/Shop/Orders: write floor 300 → 900 WCU. 701 USD a month, 113 more than before, 0.09 % throttled (9 "
        "minutes, worst Mon 00:00 UTC). Before (main): 588, 5.06 %. On demand: 1,039.",
        "Beta/Shop/New_1: added, provisioned, read 5 units, write 300-9,000 at 70 %. 9.50 USD a month, "
        "<0.01 % throttled (1 minute, worst Mon 00:00 UTC). Not in main.",
        "Prod/Shop/Gone: removed. Before (main): 12.00, 0 %.",
        "Prod/Shop/Lost: unknown: no traffic.",
    ]


def test_cheapest_plan_names_its_limit_and_is_none_where_no_plan_keeps_it() -> None:
    best = Cheapest("write 20-400 at 70 %, 2 windows", 544.0, 0.004, 0.01)
    least = Cheapest("on-demand", 1_312.4, 0.02, 0.01)
    assert [
        sentence(replace(NEW, setup_after=None, cheapest=each), "").partition(". ")[2] for each in (best, least)
    ] == [
        "Cheapest within 0.01 %: 544, <0.01 %, with write 20-400 at 70 %, 2 windows.",
        "No plan keeps 0.01 %; the one that throttles least: 1,312, 0.02 %, with on-demand.",
    ]
    documents = [app_document(replace(APP, tables=(replace(NEW, cheapest=each),))) for each in (best, least)]
    assert [each["tables"][0]["cheapest"]["is_within_limit"] for each in documents] == [True, False]


def test_cheapest_plan_is_priced_with_indexes_and_replicas_of_the_table() -> None:
    replicas = tuple(ReplicaSetup(region="eu-west-1", read_units=5) for _ in range(2))
    setups = {
        "One": setup_of(300),
        "Indexed": setup_of(300, "by_status"),
        "Global": replace(setup_of(300), replicas=replicas),
    }
    tables = [_table(name, setup) for name, setup in setups.items()]
    app = rehearse_app(_listed(*tables), lambda _: STEP, cheapest_within=0.01)
    costs = {table.name: table.cheapest.cost_per_month for table in app.tables if table.cheapest}
    assert costs["Indexed"] == pytest.approx(2 * costs["One"], rel=0.02)
    assert costs["Global"] == pytest.approx(3 * costs["One"], rel=0.02)


def test_comment_of_each_stage_is_found_by_its_own_marker_and_shows_what_changed() -> None:
    passed = Limits(max_cost_per_month=700, max_cost_rise=50, max_throttled_rise=0).passed_by_app(APP)
    assert [(each.what, each.where) for each in passed] == [("cost", "Prod/Shop/Orders"), ("cost-rise", "Prod")]
    assert (
        app_markdown(APP, passed)
        == """\
<!-- highwater::Beta -->
### DynamoDB capacity, Beta

2 tables: 598 USD a month, 9.50 more than before, 2.53 % throttled. Before (main): 588, 5.06 %.

| table | USD a month (before → after) | throttled (before → after) | on demand |
| --- | ---: | ---: | ---: |
| Beta/<wbr>Shop/<wbr>New\\_<wbr>1 (added) | **9.50** (+9.50) | **<0.01 %** |  |

1 table unchanged.

<details><summary>Details</summary>

- Beta/Shop/New\\_1: added, provisioned, read 5 units, write 300-9,000 at 70 %. 9.50 USD a month, \\<0.01 % throttled \
(1 minute, worst Mon 00:00 UTC). Not in main.

</details>

<sub>Simulated: 14.0 days; prices of eu-west-1.</sub>

<!-- highwater::Prod -->
### DynamoDB capacity, Prod

1 table: 701 USD a month, 101 more than before, 0.09 % throttled. Before (main): 600, 2.53 %. 1 more is unknown, and \
not in these sums.

- ❌ Prod/Shop/Orders: the cost is $701.20 a month, the limit is $700.00
- ❌ Prod: the cost rises by $100.80 a month to $701.20, the limit is $50.00

| table | USD a month (before → after) | throttled (before → after) | on demand |
| --- | ---: | ---: | ---: |
| Prod/<wbr>Shop/<wbr>Orders | 588 → **701** (+113) | 5.06 → **0.09 %** | 1,039 |
| Prod/<wbr>Shop/<wbr>Gone (removed) | 12.00 → **0** (−12.00) | 0 % |  |

<details><summary>Details</summary>

- Prod/Shop/Orders: write floor 300 → 900 WCU. 701 USD a month, 113 more than before, 0.09 % throttled (9 minutes, \
worst Mon 00:00 UTC). Before (main): 588, 5.06 %. On demand: 1,039.
- Prod/Shop/Gone: removed. Before (main): 12.00, 0 %.
- Prod/Shop/Lost: unknown: no traffic.
- Prod/Shop/Orders: a \\| b

</details>

<sub>Simulated: 14.0 days; prices of eu-west-1.</sub>
"""
    )


def test_rows_are_in_the_order_of_what_they_add_or_save() -> None:
    same = replace(ORDERS, name="Prod/Shop/Same", after=replace(ORDERS.after or outcome(0, 0), cost_per_month=588.4))
    saved = replace(ORDERS, name="Prod/Shop/Saved", before=ORDERS.after, after=ORDERS.before)
    dearer = replace(ORDERS, name="Prod/Shop/Dearer", after=outcome(800.0, 5.06))
    alarms = FixedCost(stage="Prod", what="alarm", before=0, after=200, usd=0.1)
    app = replace(APP, tables=(same, saved, GONE, dearer), fixed=(alarms,))
    rows = [line for line in app_markdown(app).splitlines() if line.startswith("| ")][2:]
    assert rows == [
        "| Prod/<wbr>Shop/<wbr>Dearer | 588 → **800** (+212) | **5.06 %** | 1,039 |",
        "| Prod/<wbr>Shop/<wbr>Saved | 701 → **588** (−113) | 0.09 → **5.06 %** | 1,039 |",
        "| 200 alarms (before: 0) | 0.00 → **20.00** (+20.00) |  |  |",
        "| Prod/<wbr>Shop/<wbr>Gone (removed) | 12.00 → **0** (−12.00) | 0 % |  |",
        "| Prod/<wbr>Shop/<wbr>Same | 588 → **588** (±0) | 5.06 → **0.09 %** | 1,039 |",
    ]
    assert "588 USD a month, as before, " in sentence(same, "main")
    assert "588 USD a month, 113 less than before, " in sentence(saved, "main")
    alone = app_markdown(replace(app, against="", tables=(replace(ORDERS, before=None),))).splitlines()
    assert [line for line in alone if line.startswith("| ")] == [
        "| table | USD a month | throttled | on demand |",
        "| --- | ---: | ---: | ---: |",
        "| Prod/<wbr>Shop/<wbr>Orders | **701** | **0.09 %** | 1,039 |",
        "| 200 alarms | **20.00** |  |  |",
    ]


def test_alarms_and_scalers_are_rows_of_their_stage_and_part_of_its_sums() -> None:
    alarms = FixedCost(stage="Beta", what="alarm", before=8, after=1, usd=0.1)
    scaler = FixedCost(stage="Prod", what="scaler", before=1, after=1, usd=0.64)
    own = FixedCost(stage="Ops", what="alarm", before=0, after=12, usd=0.1)
    app = replace(APP, tables=(CARTS,), fixed=(alarms, own, scaler))
    assert app.before is not None
    assert (app.before.cost_per_month, app.after.cost_per_month) == pytest.approx((589.84, 590.34))
    assert total_sentence(app) == (
        "1 table, 13 alarms, 1 scaler: 590 USD a month, 0.50 more than before, 5.06 % throttled. Before (main): 590, "
        "5.06 %."
    )
    assert fixed_sentence(alarms, "main") == (
        "Beta: 1 alarm, whatever the traffic: 0.10 USD a month. Before (main): 8, 0.80."
    )
    assert fixed_sentence(replace(own, stage=""), "") == "12 alarms, whatever the traffic: 1.20 USD a month."
    rows = [line for line in app_markdown(app).splitlines() if "alarm" in line and line.startswith("|")]
    assert rows == [
        "| 1 alarm (before: 8) | 0.80 → **0.10** (−0.70) |  |  |",
        "| 12 alarms (before: 0) | 0.00 → **1.20** (+1.20) |  |  |",
    ]
    assert [app.in_stage(stage).differs() for stage in app.stages] == [True, True, False]
    assert app_document(app)["fixed"] == [
        {"stage": "Beta", "what": "alarm", "before": 8, "after": 1, "cost_per_month_usd": 0.1},
        {"stage": "Ops", "what": "alarm", "before": 0, "after": 12, "cost_per_month_usd": 1.2},
        {"stage": "Prod", "what": "scaler", "before": 1, "after": 1, "cost_per_month_usd": 0.64},
    ]


def test_config_records_each_change_of_the_table_and_of_its_four_alarms() -> None:
    without, recorded = (
        rehearse(setup_of(300), STEP, conditions=Conditions(has_config_recorder=recorder)) for recorder in (False, True)
    )
    bill = recorded.declared.bill
    changes = sum(len(target.capacity) - 1 for target in recorded.declared.targets)
    assert bill.config_items == 9 * changes > 0, "four alarms are deleted, and four made anew"
    assert bill.per_month - without.declared.bill.per_month == pytest.approx(
        bill.config_items * 0.003 * 730 * 60 / STEP.minutes
    )
    assert config_text(bill) == (
        f": at most {bill.config_items_per_month:,.0f} items a month, {bill.config_per_month:,.2f} USD"
    )
    assert config_text(Outcome.of_run(without.declared)) == (
        f"; without AWS Config: at most {bill.config_items_per_month:,.0f} items a month, {bill.config_per_month:,.2f} "
        "USD, if it records the account; --config-recorder adds them"
    )
    old = replace(Outcome.of_run(recorded.declared), config_items_per_month=1_234.0, config_per_month=3.7)
    assert config_text(replace(old, config_items_per_month=0.0, config_per_month=0.0), old) == (
        ": at most 0 items a month, 0.00 USD (before: 1,234 items, 3.70 USD)"
    )
    compared = _app([_table("A", setup_of(2_900))], [_table("A", setup_of(300))])
    assert compared.before is not None
    assert f" USD (before: {compared.before.config_items_per_month:,.0f} items, " in app_markdown(compared)
    app = rehearse_app(
        _listed(_table("A", setup_of(300)), _table("B", setup_of(300))),
        lambda _: STEP,
        conditions=Conditions(has_config_recorder=True),
    )
    assert app.after.config_per_month == pytest.approx(2 * bill.config_per_month)
    assert app.after.cost_per_month == pytest.approx(
        2
        * rehearse(
            setup_of(300), STEP, conditions=Conditions(price_region="eu-west-1", has_config_recorder=True)
        ).cost_per_month
    )
    assert app_document(app)["after"]["config"]["is_included"]


def test_document_of_a_stage_in_which_nothing_changed_says_so_in_its_hidden_line() -> None:
    unchanged = replace(APP, tables=(CARTS, LOST))
    lines = app_markdown(unchanged).splitlines()
    assert [line for line in lines if line.startswith("<!--")] == [
        "<!-- highwater::Beta: unchanged -->",
        "<!-- highwater::Prod: unchanged -->",
    ]


def test_table_that_cannot_be_read_differs_only_if_that_is_new() -> None:
    broken, other = (_table("Orders", None, problem=f"Orders: {problem}") for problem in ("no key", "no capacity"))
    changes = [
        _app([after], [before]).tables[0].change
        for before, after in ((broken, broken), (broken, other), (_table("Orders", setup_of(300)), broken))
    ]
    assert changes == [TableChange.UNCHANGED, TableChange.CHANGED, TableChange.CHANGED]


def test_names_in_a_comment_are_no_markup_and_mention_nobody() -> None:
    named = replace(NEW, name="@all/<b>*x*|`#1", stage="--> @all")
    lines = app_markdown(replace(APP, tables=(named,))).splitlines()
    assert lines[0] == "<!-- highwater::--%3E %40all -->"
    assert lines[1] == "### DynamoDB capacity, --\\> @<!-- -->all"
    assert "| @<!-- -->all/<wbr>\\<b\\>\\*x\\*\\|\\`\\#1 (added) | **9.50** (+9.50) | **<0.01 %** |  |" in lines


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("&commat;octocat", "&amp;commat;octocat"),
        ("&#64;everyone", "&amp;\\#64;everyone"),
        ("see https://evil.example/x", "see https:<!-- -->//evil.example/x"),
        ("WWW.evil.example", "WWW<!-- -->.evil.example"),
        ("owner/repo#1 GH-1", "owner/repo\\#1 GH<!-- -->-1"),
        ("\x1b[2J\x1b]0;owned\x07", "\ufffd\\[2J\ufffd\\]0;owned\ufffd"),
        ("\u202eevil\u202c", "\ufffdevil\ufffd"),
        ("a\n\n# big", "a \\# big"),
    ],
)
def test_name_is_neither_markup_nor_link_nor_control_character(name: str, shown: str) -> None:
    assert cell(name) == shown


def test_unknown_table_fails_where_none_may_be_unless_it_is_removed() -> None:
    gone = replace(LOST, name="Prod/Shop/Past", change=TableChange.REMOVED)
    app = replace(APP, tables=(*APP.tables, gone))
    assert Limits().passed_by_app(app) == ()
    (passed,) = Limits(fails_on_unknown=True).passed_by_app(app)
    assert (passed.what, passed.where) == ("unknown", "Prod/Shop/Lost")
    assert passed.text == "Prod/Shop/Lost: unknown: no traffic; no table may be unknown"
    assert f"- ❌ {passed.text}" in app_markdown(app, [passed])


def test_rise_of_throttling_is_a_limit_of_its_own() -> None:
    worse = replace(ORDERS, before=ORDERS.after, after=ORDERS.before)
    app = replace(APP, tables=(worse,))
    (passed,) = Limits(max_throttled_rise=4.9, max_cost_rise=0).passed_by_app(app)
    assert passed.text == (
        "Prod/Shop/Orders: 5.06 % of the requested units are throttled, 4.97 points more than before, the limit is 4.9"
    )
    assert Limits(max_throttled_rise=4.98).passed_by_app(app) == ()


def test_document_has_nulls_for_what_is_not_known() -> None:
    document = app_document(APP)
    by_name = {table["name"]: table for table in document["tables"]}
    assert by_name["Prod/Shop/Lost"]["after"] is None
    assert by_name["Prod/Shop/Lost"]["unknown"] == "no traffic"
    assert by_name["Prod/Shop/Orders"]["after"] == {
        "cost_per_month_usd": 701.2,
        "warm_up_once_usd": 0.0,
        "config": {"items_per_month": 0.0, "cost_per_month_usd": 0.0, "is_included": False},
        "throttled_percent": pytest.approx(0.09),
        "throttled_units": 900.0,
        "throttled_minutes": 9,
        "worst_at": STEP.start.isoformat(),
    }


def test_reserved_capacity_is_shared_by_the_tables_and_counts_once() -> None:
    tables = [
        _table("A", setup_of(2_900)),
        _table("B", setup_of(2_900)),
        _table("C", replace(setup_of(2_900), is_on_demand=True)),
    ]
    plain = rehearse_app(_listed(*tables), lambda _: STEP, processes=1)
    for reserved in (1_000, 10_000_000):
        conditions = Conditions(commitments=Commitments(reserved_write_units=reserved))
        app = rehearse_app(_listed(*tables), lambda _: STEP, conditions=conditions, processes=1)
        assert [table.after for table in app.tables] == [table.after for table in plain.tables]
        units = sum(
            min(sum(hour), reserved)
            for hour in zip(*(t.after.hourly[Dimension.WRITE] for t in app.tables[:2] if t.after), strict=True)
        )
        a = app.tables[0].after
        assert a is not None
        hours = len(a.hourly[Dimension.WRITE])
        saved = units / hours * 730 * load_prices("eu-west-1").throughput().write_unit_hour
        assert plain.after.cost_per_month - app.after.cost_per_month == pytest.approx(saved)
    one = rehearse(
        setup_of(2_900),
        STEP,
        conditions=Conditions(price_region="eu-west-1", commitments=Commitments(reserved_write_units=1_000)),
    )
    alone = rehearse_app(
        _listed(*tables[:1]),
        lambda _: STEP,
        conditions=Conditions(commitments=Commitments(reserved_write_units=1_000)),
        processes=1,
    )
    assert alone.after.cost_per_month == pytest.approx(one.cost_per_month)


def test_reserved_capacity_is_not_used_up_by_writes_of_a_global_table() -> None:
    replicated = replace(setup_of(2_900), replicas=(ReplicaSetup(region="us-east-1", read_units=30),))
    tables = [_table("A", replicated), _table("B", setup_of(2_900))]
    commitments = Commitments(reserved_write_units=1_000)
    both, alone = (
        rehearse_app(_listed(*each), lambda _: STEP, conditions=Conditions(commitments=commitments), processes=1)
        for each in (tables, tables[1:])
    )
    plain = rehearse_app(_listed(*tables[:1]), lambda _: STEP, processes=1)
    assert both.after.cost_per_month == pytest.approx(plain.after.cost_per_month + alone.after.cost_per_month)


def test_savings_plan_counts_in_each_table() -> None:
    tables = [_table("A", setup_of(2_900))]
    conditions = Conditions(commitments=Commitments(has_savings_plan=True))
    plan = rehearse_app(_listed(*tables), lambda _: STEP, conditions=conditions, processes=1)
    alone = rehearse(
        setup_of(2_900),
        STEP,
        conditions=Conditions(price_region="eu-west-1", commitments=Commitments(has_savings_plan=True)),
    )
    assert plan.after.cost_per_month == pytest.approx(alone.cost_per_month)
    assert plan.prices == "prices of eu-west-1, 2026-11, savings plan"
