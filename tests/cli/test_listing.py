"""What `highwater status` says of a table in a line, and what `highwater explain` reads for it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from rich.console import Console, Group

from highwater.aws.logs import LoggedDecision, LoggedLimit
from highwater.cli.listing import lines, listed
from highwater.cli.situation import (
    FixedBelowFloor,
    HighMark,
    MissingTable,
    OpenWindow,
    Seen,
    Situation,
    UnmanagedIndex,
    read_situations,
)
from highwater.core import Bounds, Capacity, Dimension, HighWaterMark, IndexCapacity, Plan, Units, Window
from highwater.core.boosts import Lease
from highwater.core.plan.plan import Target
from highwater.core.scaler import Mode, ScaledPlan
from highwater.terminal.console import Hanging
from highwater_lab.services.timing import Timing
from highwater_lab.services.update_table import CapacityControl
from tests.memory_aws.account import MemoryRegion
from tests.memory_aws.stage import MINUTE, NOW, PLAN, Stage

AT = datetime(2027, 3, 4, 1, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)


def _situation(dimension: Dimension = Dimension.WRITE, index: str | None = None, units: int = 2_000) -> Situation:
    capacity = Capacity.autoscaled(min_capacity=units, max_capacity=9_000)
    return Situation(
        table="orders",
        scaler="scaler",
        target=Target(index, dimension, capacity, ()),
        mode=Mode.FLOOR,
        at=AT,
        planned=Bounds(units, 9_000),
        registered=Bounds(units, 9_000),
        provisioned=units,
        is_paused=False,
        decreases_used=0,
        next_change=None,
        open_windows=(),
        decision=None,
        consumed=300,
        throttled=0,
    )


def _window(name: str, closes: datetime, zone: str, floor: int = 2_000) -> OpenWindow:
    return OpenWindow(name, floor, closes, ZoneInfo(zone))


def _boost(hours: int) -> Lease:
    return Lease(
        id=f"boost-of-{hours}h",
        table="orders",
        index=None,
        dimension=Dimension.WRITE,
        units=500,
        start=AT - HOUR,
        end=AT + hours * HOUR,
        owner="role/Loader",
    )


WRITE = _situation()
READ = _situation(Dimension.READ, units=500)
BY_DAY = _situation(index="by-day", units=700)
NIGHTLY = _window("nightly-load", AT + timedelta(minutes=70), "Europe/Berlin")


@pytest.mark.parametrize(
    ("situations", "said"),
    [
        ([READ, WRITE, BY_DAY], "500 RCU and 2,000 WCU; nothing throttled in the last hour"),
        (
            [replace(WRITE, open_windows=(NIGHTLY,))],
            "2,000 WCU by window nightly-load until 03:30 Berlin; nothing throttled in the last hour",
        ),
        (
            [READ, replace(WRITE, open_windows=(NIGHTLY, _window("low", AT + 9 * HOUR, "Asia/Tokyo", floor=9)))],
            "500 RCU, 2,000 WCU by window nightly-load until 03:30 Berlin; nothing throttled in the last hour",
        ),
        (
            [replace(WRITE, open_windows=(_window("sale", AT + 48 * HOUR, "America/New_York"),))],
            "2,000 WCU by window sale until Fri 05 Mar 20:20 New York; nothing throttled in the last hour",
        ),
        (
            [replace(WRITE, boosts=(_boost(2),), boosted=500, registered=Bounds(2_600, 9_000))],
            "2,000 of 2,600 WCU by a boost until 03:20 UTC and by demand; nothing throttled in the last hour",
        ),
        (
            [replace(WRITE, boosts=(_boost(2), _boost(3)), boosted=1_000, registered=Bounds(3_000, 9_000))],
            "2,000 of 3,000 WCU by 2 boosts until 04:20 UTC; nothing throttled in the last hour",
        ),
        (
            [replace(WRITE, boosts=(_boost(2),))],
            "2,000 WCU with a boost until 03:20 UTC on its way; nothing throttled in the last hour",
        ),
        (
            [replace(WRITE, open_windows=(NIGHTLY,), registered=Bounds(88, 9_000), provisioned=88)],
            "88 WCU below the 2,000 of window nightly-load until 03:30 Berlin; nothing throttled in the last hour",
        ),
        (
            [replace(WRITE, mode=Mode.DIRECT, registered=None, provisioned=88)],
            "88 WCU below the 2,000 of the plan; nothing throttled in the last hour",
        ),
        (
            [READ, replace(WRITE, throttled=1_200), replace(BY_DAY, throttled=34)],
            "500 RCU and 2,000 WCU; 1,234 requests throttled in the last hour: table write 1,200, index 'by-day' "
            "write 34",
        ),
        ([replace(WRITE, throttled=1)], "2,000 WCU; 1 request throttled in the last hour: table write 1"),
        ([replace(WRITE, throttled=None)], "2,000 WCU; throttles could not be read"),
        (
            [replace(READ, is_paused=True), WRITE],
            "500 RCU and 2,000 WCU; paused: table read; nothing throttled in the last hour",
        ),
        (
            [replace(READ, registered=None), replace(WRITE, registered=None)],
            "500 RCU and 2,000 WCU; no scalable target for table read, table write, so deploy again; nothing throttled "
            "in the last hour",
        ),
        (
            [replace(READ, provisioned=0), replace(WRITE, provisioned=0)],
            "on demand; nothing throttled in the last hour",
        ),
        ([BY_DAY], "700 WCU of index by-day; nothing throttled in the last hour"),
        (
            [replace(WRITE, mark=HighMark(1_000, 4_000, is_rising=True))],
            "2,000 WCU; high-water mark of table write being raised from 1,000 to 4,000; nothing throttled in the last "
            "hour",
        ),
    ],
)
def test_a_table_is_told_in_a_line(situations: list[Situation], said: str) -> None:
    assert list(lines(situations)) == [f"orders: {said}"]


def test_what_is_missing_and_what_is_not_managed_has_a_line_of_its_own() -> None:
    seen: list[Seen] = [
        WRITE,
        UnmanagedIndex("orders", "scaler", "by-date", Units(3, 1_004)),
        UnmanagedIndex("orders", "scaler", "by-day", Units(0, 0)),
        MissingTable("eu-west-1/parcels", "eu-west-1", "scaler"),
        MissingTable("users", "us-east-1", "", "AccessDeniedException: not you"),
        MissingTable("visits", "us-east-1", ""),
    ]
    assert list(lines(seen)) == [
        "orders: 2,000 WCU; nothing throttled in the last hour",
        "index by-date of orders is not managed: its capacity is 3 RCU and 1,004 WCU; name it in indexes=",
        "index by-day of orders is not managed: its capacity is on demand; name it in indexes=",
        "eu-west-1/parcels: no such table in eu-west-1, but scaler scaler manages it; deploy its stack again, or "
        "remove it from the scaler",
        "users: cannot be described in us-east-1, and its tags choose it: AccessDeniedException: not you",
        "visits: no such table in us-east-1, but its tags choose it; deploy its stack again, or remove it from the "
        "scaler",
    ]


def test_what_could_not_be_read_has_a_line_for_each_cause() -> None:
    cause = "consumption and throttles could not be read from CloudWatch: AccessDenied"
    seen = [
        replace(each, table=table, throttled=None, notes=(f"{table}: {cause}",))
        for table in ("orders", "users")
        for each in (READ, WRITE)
    ]
    assert list(lines(seen)) == [
        "orders: 500 RCU and 2,000 WCU; throttles could not be read",
        "users: 500 RCU and 2,000 WCU; throttles could not be read",
        f"orders, users: {cause}",
    ]


def test_metrics_that_may_not_be_read_leave_the_rest() -> None:
    stage = Stage()
    stage.table("orders")
    refusing = MemoryRegion(
        stage.account, lambda action, _: action != "cloudwatch:GetMetricData", None, lambda client: client
    )
    scaled = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=PLAN, scaler="scaler")
    _, seen = read_situations(scaled, refusing, None)
    assert isinstance(seen, Situation)
    assert (seen.provisioned, seen.consumed, seen.used_percent, seen.throttled) == (12, None, None, None)
    (note,) = seen.notes
    assert note.startswith("orders: consumption and throttles could not be read from CloudWatch: ")


WIDE = [
    replace(READ, open_windows=(NIGHTLY,), boosts=(_boost(2),)),
    _situation(index="by-customer-and-day", units=700),
]


def _rows(width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), legacy_windows=False)
    with console.capture() as shown:
        console.print(listed(WIDE))
    lines = [line.rstrip() for line in shown.get().splitlines()]
    return [line for line in lines[lines.index("Scaler scaler") :] if line and "─" not in line]


def test_narrow_terminal_has_no_columns_that_the_lines_tell_before_names_are_cut() -> None:
    assert [line.split() for line in _rows(200)[2:]] == [
        ["orders", "table", "read", "500", "60%", "500", "9,000", "0", "0", "nightly-load", "boost-of-2h"],
        ["orders", "index", "'by-customer-and-day'", "write", "700", "43%", "700", "9,000", "0", "0"],
    ]
    assert _rows(70) == [
        "Scaler scaler",
        " table   target                  now  used  floor  ceiling  throttled",
        " orders  table read              500   60%    500    9,000          0",
        " orders  'by-cust…nd-day' write  700   43%    700    9,000          0",
        "left out for width: boosts, windows, lowered",
    ]
    assert _rows(48) == [
        "Scaler scaler",
        " table   target             now  floor  ceiling",
        " orders  table read         500    500    9,000",
        " orders  'by-c…-day' write  700    700    9,000",
        "left out for width: boosts, windows, lowered,",
        "throttled, used",
    ]


COURIERS = [
    replace(_situation(dimension, index, units=700), table="payments-of-orders", throttled=12)
    for index in ("by-courier-and-day", "by-courier-and-night", "by-customer-and-day")
    for dimension in Dimension
]


def _shown(seen: Sequence[Seen], width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), legacy_windows=False)
    with console.capture() as shown:
        console.print(listed(seen))
    return [line.rstrip() for line in shown.get().splitlines()]


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_rows_never_look_alike_however_narrow_the_terminal_is(width: int) -> None:
    lines = _shown([*COURIERS, *(replace(each, table="payments-of-carts") for each in COURIERS)], width)
    rows = [line for line in lines if line.startswith(" pay")]
    assert len({re.sub(r"[ ,\d%]+$", "", row) for row in rows}) == len(rows) == 12, rows
    assert max(map(len, rows)) < width


def test_column_without_a_value_is_not_shown_so_that_throttles_are() -> None:
    """No target has relief or a change to come."""
    assert " table             target                  now  used  floor  ceiling  throttled" in _shown(COURIERS, 80)


def test_line_that_is_too_long_goes_on_indented() -> None:
    console = Console(width=40, file=io.StringIO(), legacy_windows=False)
    with console.capture() as shown:
        console.print(Group(Hanging("  one two three four five six seven eight nine"), Hanging("")))
    assert shown.get().splitlines() == ["  one two three four five six seven", "    eight nine", ""]


def _read(stage: Stage, plan: Plan) -> list[Situation | FixedBelowFloor | UnmanagedIndex]:
    scaled = ScaledPlan(table="orders", mode=Mode.FLOOR, plan=plan, scaler="scaler")
    return list(read_situations(scaled, stage.region_of(None), None))


def test_use_and_throttles_and_windows_are_read() -> None:
    stage = Stage()
    begun = NOW - 30 * MINUTE
    window = Window.once(
        "load", start=f"{begun:%Y-%m-%dT%H:%M}", end="2027-03-04T16:00", timezone="UTC", write_min=40, lead=0 * MINUTE
    )
    plan = replace(PLAN, windows=(window,))
    write = stage.table("orders", plan)
    stage.consume(write, 5)
    stage.surge(write, 6_000, throttled=20)
    stage.advance(20 * MINUTE)
    _, seen = _read(stage, plan)
    assert isinstance(seen, Situation)
    assert (seen.consumed, seen.used_percent, seen.throttled) == (5, 42, 20)
    assert seen.document()["open_windows"] == [
        {"name": "load", "floor": 40, "until": "2027-03-04T16:00:00+00:00", "timezone": "UTC"}
    ]
    stage.advance(2 * HOUR)
    _, seen = _read(stage, plan)
    assert isinstance(seen, Situation)
    assert (seen.consumed, seen.throttled) == (5, 0)


def test_mark_is_being_raised_until_it_is_reached() -> None:
    stage = Stage()
    plan = replace(PLAN, mark=HighWaterMark.units(read=900, write=4_000))
    stage.table("orders", plan)

    def marks() -> list[str]:
        found = _read(stage, plan)
        return [each.mark.line() for each in found if isinstance(each, Situation) and each.mark is not None]

    assert marks() == [
        "high-water mark: 7 units/s, below the 900 of the plan: deploy again",
        "high-water mark: 12 units/s, below the 4,000 of the plan: deploy again",
    ]
    table = stage.account.tables["orders"]
    table.timing = Timing()
    table.warm_up(None, {Dimension.READ: 900, Dimension.WRITE: 4_000}, stage.account.now)
    assert marks() == [
        "high-water mark: 7 units/s, being raised to 900",
        "high-water mark: 12 units/s, being raised to 4,000",
    ]
    stage.advance(HOUR)
    assert marks() == ["high-water mark: 900 units/s", "high-water mark: 4,000 units/s"]


def test_index_that_the_plan_does_not_know_is_yielded() -> None:
    stage = Stage()
    indexes = tuple(IndexCapacity(index_name=name) for name in ("by-date", "by-day"))
    stage.table("orders", replace(PLAN, indexes=indexes))
    found = _read(stage, replace(PLAN, indexes=indexes[1:]))
    assert found[4:] == [UnmanagedIndex("orders", "scaler", "by-date", Units(7, 12))]


def test_fixed_capacity_below_its_floor_is_told_with_what_becomes_of_it() -> None:
    stage = Stage()
    plan = replace(PLAN, read=Capacity.fixed(units=1_070))
    stage.table("orders", plan)
    stage.account.tables["orders"].resources[None] = CapacityControl({Dimension.READ: 4, Dimension.WRITE: 12})
    found = _read(stage, plan)
    (target, _) = plan.targets()
    assert found[1:] == [FixedBelowFloor("orders", "scaler", target, 1_070, 4)]
    told = "orders: table read has 4 of its fixed 1,070 units/s; the scaler's next run registers its target again"
    assert list(lines(found))[1:] == [told]
    assert found[1].document() == {
        "table": "orders",
        "region": "",
        "scaler": "scaler",
        "target": "table read",
        "floor": 1_070,
        "provisioned": 4,
        "problem": told,
    }
    rows = [line.split() for line in _shown(found, 200) if line.startswith(" orders")]
    assert ["orders", "table", "read", "4", "1,070"] in rows


@pytest.mark.parametrize(
    ("wanted", "limits", "why"),
    [
        (12, (), "peak of 40 units/s in the last 15 minutes at 68 %"),
        (
            1,
            (LoggedLimit(1, 12, "the plan's floor"), LoggedLimit(12, 62, "boosts of 50 units/s")),
            "the plan's floor, then boosts of 50 units/s; otherwise 1: peak of 40 units/s in the last 15 minutes at "
            "68 %",
        ),
        (
            None,
            (LoggedLimit(1, 88, "the fleet asks for 80 units/s and requests were refused"),),
            "the fleet asks for 80 units/s and requests were refused; otherwise: peak of 40 units/s in the last 15 "
            "minutes at 68 %",
        ),
    ],
)
def test_a_logged_decision_is_explained_by_its_limits_first(
    wanted: int | None, limits: tuple[LoggedLimit, ...], why: str
) -> None:
    reason = "peak of 40 units/s in the last 15 minutes at 68 %"
    assert LoggedDecision(AT, "table write", 12, 62, reason, wanted, limits).why == why
