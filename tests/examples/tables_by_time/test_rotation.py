"""The rotation of tables by time: its laws on a model of an account, under turns that fail or never run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from periods import PeriodError, Periods
from rotation import PeriodTable, Rotation, RotationStep

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MONTHS = Rotation(
    periods=Periods("events"), read=50, write=40, past_read=7, past_write=2, retention=timedelta(days=100)
)
DAYS = Rotation(periods=Periods("log", every="day", late=3 * HOUR), read=9, write=11, retention=4 * DAY)
BEGUN = datetime(2026, 1, 5, 7, 30, tzinfo=UTC)
SEEN = PeriodTable(read=50, write=40, is_active=True, is_protected=True, has_recovery=True)


@dataclass
class Account:
    """Does the steps at once; an export is complete when it is looked at an hour later. Keeps what happened."""

    rotation: Rotation
    tables: dict[str, PeriodTable] = field(default_factory=dict)
    done: list[tuple[datetime, RotationStep]] = field(default_factory=list)
    # the instant of the newest item that was written to a table, and what its complete exports have
    written: dict[str, datetime] = field(default_factory=dict)
    exported: dict[str, datetime] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def turn(self, now: datetime) -> None:
        for name, table in self.tables.items():
            done = tuple(("COMPLETED" if now >= at + HOUR else status, at) for status, at in table.exports)
            self.tables[name] = replace(table, exports=done)
            self.exported[name] = max((at for status, at in done if status == "COMPLETED"), default=BEGUN)
        for step in self.rotation.steps(self.tables, now):
            self.done.append((now, step))
            self._do(step)

    def _do(self, step: RotationStep) -> None:
        if step.kind == "make":
            assert step.table not in self.tables
            self.tables[step.table] = replace(SEEN, read=step.read, write=step.write, has_recovery=False)
            return
        table = self.tables[step.table]
        if step.kind == "delete":
            assert not table.is_protected
            if self.written.get(step.table, BEGUN) > self.exported[step.table]:
                self.lost.append(step.table)
            del self.tables[step.table]
        elif step.kind == "export":
            assert table.has_recovery
            assert step.at is not None
            self.tables[step.table] = replace(table, exports=(*table.exports, ("IN_PROGRESS", step.at)))
        elif step.kind in ("raise", "lower"):
            assert (step.read, step.write) != (table.read, table.write), "UpdateTable rejects what changes nothing"
            self.tables[step.table] = replace(table, read=step.read, write=step.write)
        else:
            changes: Any = {"has_recovery": True} if step.kind == "recover" else {"is_protected": False}
            self.tables[step.table] = replace(table, **changes)

    def write(self, at: datetime, now: datetime) -> None:
        home = self.rotation.periods.home_of(at, now)
        if home in self.tables:
            self.written[str(home)] = now


# gaps between turns: an hour, or a failure of up to as long as is promised
GAPS = st.lists(st.one_of(st.just(HOUR), st.timedeltas(HOUR, 6 * HOUR), st.timedeltas(HOUR, 46 * HOUR)), max_size=160)


@pytest.mark.parametrize("rotation", [MONTHS, DAYS], ids=["months", "days"])
@given(gaps=GAPS, lateness=st.timedeltas(timedelta(0), 2 * DAY))
def test_there_is_always_a_table_with_its_capacity_and_nothing_is_lost_while_turns_fail_for_two_days(
    rotation: Rotation, gaps: list[timedelta], lateness: timedelta
) -> None:
    account, periods, now = Account(rotation), rotation.periods, BEGUN
    account.turn(now)
    for gap in gaps:
        end = now + gap
        while now < end:
            now = min(end, now + HOUR)
            name = periods.home_of(now, now)
            assert name in account.tables, "always one to write to"
            table = account.tables[name]
            assert (table.read, table.write) == (rotation.read, rotation.write), "with its whole capacity"
            account.write(now, now)
            account.write(now - lateness, now)
        account.turn(now)
    assert account.lost == []
    for at, step in account.done:
        start = periods.start_of(step.table)
        assert start is not None
        if step.kind in ("lower", "export", "unprotect", "delete"):
            assert at >= periods.closes(start), "a current or future table, or one that is written to, is left alone"
        if step.kind == "delete":
            assert rotation.is_expired(start, at)
        assert step.at is None or step.at >= periods.closes(start), "an export has everything"


@pytest.mark.parametrize("rotation", [MONTHS, DAYS], ids=["months", "days"])
@given(
    ages=st.lists(st.integers(-3, 200), max_size=30),
    now=st.timedeltas(timedelta(0), 1_000 * DAY).map(lambda later: BEGUN + later),
    data=st.data(),
)
def test_turns_come_to_rest_whatever_there_was(
    rotation: Rotation, ages: list[int], now: datetime, data: st.DataObject
) -> None:
    tables = st.builds(
        PeriodTable,
        read=st.integers(1, 60),
        write=st.integers(1, 60),
        is_active=st.just(True),
        is_protected=st.booleans(),
        has_recovery=st.booleans(),
        exports=st.lists(
            st.tuples(
                st.sampled_from(["COMPLETED", "FAILED", "IN_PROGRESS"]),
                st.timedeltas(timedelta(0), 200 * DAY).map(lambda age: now - age),
            ),
            max_size=2,
        ),
    )
    account = Account(rotation, {rotation.periods.name_for(now - age * DAY): data.draw(tables) for age in ages})
    account.tables["somebody-elses"] = SEEN
    for _ in range(7):
        account.turn(now)
    before = len(account.done)
    account.turn(now)
    # the exports that are under way end an hour later
    assert len(account.done) == before
    for _ in range(4):
        now += HOUR
        account.turn(now)
    assert all(name in account.tables for name in map(rotation.periods.name_for, rotation.periods.upcoming(now)))
    assert account.tables["somebody-elses"] == SEEN
    assert {step.kind for _, step in account.done if rotation.periods.start_of(step.table) is None} == set()


def _kinds(rotation: Rotation, seen: dict[str, PeriodTable], now: datetime) -> list[tuple[str, str]]:
    return [(step.kind, step.table) for step in rotation.steps(seen, now)]


def test_first_turn_makes_the_current_table_whole_and_two_small() -> None:
    made = MONTHS.steps({}, datetime(2026, 1, 29, tzinfo=UTC))
    assert [(step.table, step.read, step.write) for step in made] == [
        ("events-2026-01", 50, 40),
        ("events-2026-02", 7, 2),
        ("events-2026-03", 7, 2),
    ]
    assert made[1].why == "the period begins at 2026-02-01 UTC"
    ready = MONTHS.steps({}, datetime(2026, 1, 30, tzinfo=UTC))
    assert [(step.read, step.write) for step in ready] == [(50, 40), (50, 40), (7, 2)]


def test_deploy_that_asks_for_more_raises_the_current_table_and_one_that_asks_for_less_leaves_it() -> None:
    now = datetime(2026, 1, 10, tzinfo=UTC)
    seen = dict.fromkeys(["events-2026-01", "events-2026-02", "events-2026-03"], SEEN)
    (step,) = replace(MONTHS, write=60).steps(seen, now)
    assert step == RotationStep(
        kind="raise",
        table="events-2026-01",
        read=50,
        write=60,
        why="the period begins at 2026-01-01 UTC, and the capacity is 50/40",
    )
    assert replace(MONTHS, write=30).steps(seen, now) == ()
    # one that is being changed is left alone
    busy = dict.fromkeys(seen, replace(SEEN, write=1, is_active=False))
    assert MONTHS.steps(busy, now) == ()


def test_export_after_the_shortest_retention_has_everything() -> None:
    shortest = replace(DAYS, retention=DAYS.periods.late + HOUR)
    over = datetime(2026, 1, 6, 4, tzinfo=UTC)
    steps = shortest.steps({"log-2026-01-05": replace(PAST, read=1, write=1)}, over)
    (at,) = (step.at for step in steps if step.kind == "export")
    assert at is not None
    assert at == over - timedelta(minutes=10) >= DAYS.periods.closes(datetime(2026, 1, 5, tzinfo=UTC))


END = datetime(2026, 2, 1, tzinfo=UTC)
CLOSED = END + DAY + timedelta(minutes=5)
OVER = END + timedelta(days=100)
PAST = replace(SEEN, read=7, write=2)
LATEST = OVER - timedelta(minutes=10)


@pytest.mark.parametrize(
    ("table", "now", "kinds"),
    [
        (SEEN, CLOSED - timedelta(seconds=1), []),
        (SEEN, CLOSED, ["lower"]),
        (replace(SEEN, is_active=False), CLOSED, []),
        (replace(PAST, has_recovery=False), CLOSED, ["recover"]),
        (PAST, OVER - timedelta(seconds=1), []),
        (PAST, OVER, ["export"]),
        (replace(PAST, exports=[("IN_PROGRESS", LATEST)]), OVER, []),
        (replace(PAST, exports=[("FAILED", LATEST)]), OVER, ["export"]),
        # somebody's export of the middle of the month lacks the rest of it
        (replace(PAST, exports=[("COMPLETED", CLOSED - timedelta(seconds=1))]), OVER, ["export"]),
        (replace(PAST, exports=[("COMPLETED", CLOSED)]), OVER, ["unprotect"]),
        (replace(PAST, is_protected=False, exports=[("COMPLETED", LATEST)]), OVER, ["delete"]),
        (replace(PAST, is_protected=False, exports=[("COMPLETED", LATEST)]), OVER - DAY, []),
    ],
)
def test_past_table_is_lowered_then_exported_then_deleted(table: PeriodTable, now: datetime, kinds: list[str]) -> None:
    name = "events-2026-01"
    assert [kind for kind, each in _kinds(MONTHS, {name: table}, now) if each == name] == kinds


def test_reasons_say_what_was_seen() -> None:
    def why(table: PeriodTable, now: datetime) -> str:
        return next(step.why for step in MONTHS.steps({"events-2026-01": table}, now) if step.table == "events-2026-01")

    assert why(SEEN, CLOSED) == "nobody writes to it since 2026-02-02 00:05 UTC"
    assert why(PAST, OVER) == "its retention is over"
    assert why(replace(PAST, has_recovery=False), OVER) == "point-in-time recovery is off"
    assert why(replace(PAST, exports=[("COMPLETED", LATEST)]), OVER) == (
        "its retention is over, and the export of 2026-05-11 23:50 UTC is complete"
    )


def test_tables_are_kept_without_a_retention() -> None:
    assert _kinds(replace(MONTHS, retention=None), {"events-2020-01": PAST}, OVER)[3:] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"write": 0}, "rotation: write: got 0, allowed: whole numbers, 1 or more"),
        (
            {"past_read": 51},
            "rotation: past_read: got 51, allowed: whole numbers, 1 to 50, the units of the current table",
        ),
        (
            {"retention": DAY},
            "rotation: retention: got 1 day, 0:00:00, allowed: 1 day, 1:00:00 or more, an hour more than the periods' "
            "late; None keeps tables for ever",
        ),
    ],
)
def test_rotation_that_cannot_work_is_refused_in_one_line(change: Any, message: str) -> None:
    with pytest.raises(PeriodError) as error:
        replace(MONTHS, **change)
    assert str(error.value) == message
