"""High-water marks: raised, never lowered, and nothing is ever provisioned for them.

Numbers: capacity 5/7, of the index 3/4, mark 400/90, of the index 60/80.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.parsers import ResponseParserError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from highwater.aws import tables
from highwater.aws.tables import TableRefusedError
from highwater.core.units import Units
from highwater.handlers.deploy import marks
from highwater.handlers.deploy.response import EventOutcome, failure, success
from highwater.handlers.deploy.waiting import Patience
from tests.handlers.serving import KilledError, Serving, Wanted, marks_event
from tests.memory_aws.bench import Bench
from tests.memory_aws.wire import Call, Fault, at, each, go_through, lost_answer, no_connection, refusal, rewritten

HOME = Units(5, 7)
INDEX_HOME = Units(3, 4)
MARK = Units(400, 90)
INDEX_MARK = Units(60, 80)
WANTED: Wanted = {None: MARK, "by_status": INDEX_MARK}
HOMES: Wanted = {None: HOME, "by_status": INDEX_HOME}
UNCHANGED = success("the table's marks are already as high or higher")
RAISED = success("raised the table to 400 RCU and 90 WCU, index 'by_status' to 60 RCU and 80 WCU")


def _garbled(call: Call) -> Any:
    call.send()
    raise ResponseParserError("Unable to parse response")


def _killed_before(_call: Call) -> Any:
    raise KilledError


def _killed_after(call: Call) -> Any:
    call.send()
    raise KilledError


BUSY = refusal(
    "ResourceInUseException",
    "Attempt to change a resource which is still in use: Table IOPS are currently being updated. Table: orders",
)
THROTTLED = refusal("ThrottlingException", "Rate of requests exceeds the allowed throughput.")
TRANSIENT: dict[str, Fault] = {
    "throttled": THROTTLED,
    "internal-error": refusal("InternalServerError", "Internal server error", 500),
    "unavailable": refusal("503", "Service Unavailable", 503),
    "malformed-answer": _garbled,
    "no-connection": no_connection,
    "lost-answer": lost_answer,
}
UPDATING = rewritten(lambda answer: answer["Table"].update(TableStatus="UPDATING"))
DENIED_TEXT = "User: arn:aws:sts::000000000000:x is not authorized to perform this"
DENIED = refusal("AccessDeniedException", DENIED_TEXT)
REFUSED_TEXT = "Subscriber limit exceeded: Provisioned throughput is limited for this account"
REFUSED = refusal("LimitExceededException", REFUSED_TEXT)


@pytest.fixture
def table(bench: Bench) -> str:
    return bench.make_table(HOME, by_status=INDEX_HOME)


def _serve(bench: Bench, *args: Any, **kwargs: Any) -> EventOutcome:
    return Serving(bench).serve(marks_event(*args, **kwargs))


def test_marks_when_less_is_live_raises_table_and_index_and_tells_both(bench: Bench, table: str) -> None:
    outcome = _serve(bench, "Create", table, WANTED)
    assert outcome == RAISED
    assert bench.marks(table) == WANTED
    assert bench.capacities(table) == HOMES, "warm throughput is not provisioned, hence not paid by the hour"


@pytest.mark.parametrize(
    ("wanted", "expected", "why"),
    [
        (Units(400, 2), Units(400, 7), "asking for 2 WCU below the live 7 would be refused by DynamoDB"),
        (Units(5, 90), Units(5, 90), "equal counts as live"),
        (Units(5, 7), HOME, "equal is live already"),
        (Units(2, 3), HOME, "a mark only rises"),
        (Units(6, 8), Units(6, 8), "by one"),
    ],
    ids=["one-dimension-above-one-below", "one", "equal", "lower", "by-one"],
)
def test_marks_when_one_is_live_raises_the_rest(bench: Bench, wanted: Units, expected: Units, why: str) -> None:
    name = bench.make_table(HOME)
    raised = success(f"raised the table to {expected.read} RCU and {expected.write} WCU")
    outcome = UNCHANGED if expected == HOME else raised
    assert _serve(bench, "Create", name, {None: wanted}) == outcome, why
    assert bench.marks(name) == {None: expected}, why
    assert bench.wire.operations.count("UpdateTable") == (0 if outcome == UNCHANGED else 1), why


def test_marks_when_a_higher_mark_is_live_leaves_it_and_raises_the_other(bench: Bench, table: str) -> None:
    tables.set_mark(bench.dynamodb, table, None, Units(900, 200))
    outcome = _serve(bench, "Update", table, WANTED)
    assert outcome == success("raised index 'by_status' to 60 RCU and 80 WCU")
    assert bench.marks(table) == {None: Units(900, 200), "by_status": INDEX_MARK}


def test_marks_on_demand_when_below_the_default_changes_nothing(bench: Bench) -> None:
    name = bench.make_table(on_demand=True)
    assert _serve(bench, "Create", name, {None: Units(11_999, 3_999)}) == UNCHANGED
    assert _serve(bench, "Create", name, {None: Units(12_001, 3_999)}).ok
    assert bench.marks(name) == {None: Units(12_001, 4_000)}


def test_marks_when_an_index_is_missing_names_it_and_changes_no_capacity(bench: Bench, table: str) -> None:
    outcome = _serve(bench, "Create", table, {"by_day": MARK})
    assert outcome == failure(f"table {table} has no index 'by_day'; remove it from the plan or add it to the table")
    assert bench.capacities(table) == HOMES


@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_marks_when_the_table_is_missing_fail_with_its_name(bench: Bench, request_type: str) -> None:
    outcome = _serve(bench, request_type, "no-such-table", WANTED)
    assert outcome == failure("table no-such-table does not exist; deploy again when it does")


def test_marks_when_above_the_quota_fails_with_the_service_text(bench: Bench, table: str) -> None:
    assert _serve(bench, "Create", table, {None: Units(40_001, 90)}) == failure(
        "Requested ReadUnitsPerSecond for WarmThroughput exceeds TableMaxReadCapacityUnits"
    )


def test_marks_when_the_mark_rises_in_between_succeeds(bench: Bench) -> None:
    """Auto scaling provisions 900 between the look and the request: asking for 400 then would be refused."""
    name = bench.make_table(HOME)

    def auto_scaling_was_faster(_call: Call) -> None:
        bench.provision(name, Units(900, 7))

    bench.wire.fault = at(1, auto_scaling_was_faster, "UpdateTable")
    outcome = _serve(bench, "Create", name, {None: MARK})
    assert outcome.ok, f"a mark lower than the live one fails the deploy: {outcome.reason}"
    assert bench.marks(name) == {None: Units(900, 90)}


def test_marks_when_the_mark_rises_while_it_waits_succeeds(bench: Bench) -> None:
    """The table is busy because auto scaling raises it, past the mark that was read before."""
    name = bench.make_table(HOME)

    def busy_rising(call: Call) -> Any:
        bench.provision(name, Units(900, 200))
        return BUSY(call)

    bench.wire.fault = at(1, busy_rising, "UpdateTable")
    outcome = _serve(bench, "Create", name, {None: MARK})
    assert outcome.ok, f"a mark lower than the live one fails the deploy: {outcome.reason}"


@pytest.mark.parametrize("fault", [BUSY, THROTTLED, TRANSIENT["internal-error"]], ids=["busy", "throttled", "500"])
def test_marks_when_refused_for_the_moment_asks_again(bench: Bench, table: str, fault: Fault) -> None:
    bench.wire.fault = at(1, fault, "UpdateTable")
    outcome = _serve(bench, "Create", table, WANTED)
    assert outcome == success("raised index 'by_status' to 60 RCU and 80 WCU, the table to 400 RCU and 90 WCU")
    assert bench.marks(table) == WANTED
    asked = ["WarmThroughput" in body for body in bench.wire.bodies("UpdateTable")]
    assert asked == [True, False, True], "the table, the index, and what was refused once more"


def test_marks_delete_when_the_table_stands_leaves_the_mark(bench: Bench, table: str) -> None:
    _serve(bench, "Create", table, WANTED)
    assert _serve(bench, "Delete", table, WANTED) == success("nothing to undo: a high-water mark never falls")
    assert bench.marks(table) == WANTED


def test_marks_when_the_table_is_gone_are_deleted(bench: Bench) -> None:
    assert _serve(bench, "Delete", "no-such-table", WANTED) == success("the table does not exist any more")


def test_marks_when_deleting_is_not_permitted_any_more_are_left_as_they_are(bench: Bench, table: str) -> None:
    bench.wire.fault = lambda call: DENIED(call) if call.number else None
    assert _serve(bench, "Delete", table, WANTED) == success(f"the marks are left as they are: {DENIED_TEXT}")


def test_marks_when_a_permission_is_not_in_effect_yet_wait_for_it(bench: Bench, table: str) -> None:
    bench.wire.fault = at(1, DENIED, "UpdateTable")
    outcome = _serve(bench, "Create", table, WANTED)
    assert outcome == RAISED
    assert bench.wire.operations.count("UpdateTable") == 3


@pytest.mark.parametrize("kill", [_killed_before, _killed_after], ids=["before", "after"])
def test_marks_when_the_process_ends_at_any_call_are_raised_by_the_next_event(bench: Bench, kill: Fault) -> None:
    number = 0
    while True:
        number += 1
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        bench.wire.fault = at(number, kill)
        with suppress(KilledError):
            _serve(bench, "Create", name, WANTED)
        if len(bench.wire.calls) < number:
            break
        bench.wire.reset()
        assert _serve(bench, "Create", name, WANTED).ok
        assert bench.marks(name) == WANTED, f"call {number}"
        assert bench.capacities(name) == HOMES
    assert number > 4


def test_marks_when_the_table_never_becomes_active_fail_after_three_invocations(bench: Bench, table: str) -> None:
    bench.wire.fault = each(UPDATING, "DescribeTable")
    assert _serve(bench, "Create", table, WANTED) == failure(f"the high-water mark of {table} did not rise in time")
    assert bench.marks(table) == HOMES
    bench.wire.reset()
    assert _serve(bench, "Create", table, WANTED) == RAISED


def _next(faults: Iterator[Fault], call: Call) -> Any:
    return next(faults, go_through)(call)


def test_marks_when_time_runs_out_at_any_pause_are_raised_by_the_next_invocation(bench: Bench) -> None:
    for pause in range(1, 4):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        looks = iter([UPDATING] * 3)
        bench.wire.fault = each(partial(_next, looks), "DescribeTable")
        outcome = Serving(bench, time_is_up_at=pause).serve(marks_event("Create", name, WANTED))
        assert outcome == RAISED
        assert bench.marks(name) == WANTED


def test_mark_of_an_index_that_is_built_at_once_is_raised_although_its_tag_is_listed_late(
    bench: Bench, table: str
) -> None:
    """A new tag is listed 6 s after it was written (recorded: radkawar/stackd 9dc356f, dynamodb/controls, 2026-09)."""
    bench.account.tables[table].built["by_status"] = bench.account.now + 4
    outcome = Serving(bench, between=timedelta(0)).serve(marks_event("Create", table, {"by_status": INDEX_MARK}))
    assert outcome.reason.endswith("raised when indexes are no longer being built: 'by_status'")
    assert bench.marks(table)["by_status"] == INDEX_MARK


def test_serve_when_the_table_is_missing_raises_nothing_but_other_errors_pass(bench: Bench, table: str) -> None:
    bench.wire.fault = at(1, REFUSED)
    patience = Patience(lambda: 60.0, lambda _: None)
    with pytest.raises(TableRefusedError, match=f"^{re.escape(REFUSED_TEXT)}$"):
        marks.serve(marks_event("Create", table, WANTED), bench.wired_dynamodb, patience, lambda _: None)


# Whatever happens

_FAULTS: dict[str, Fault] = TRANSIENT | {
    "busy": BUSY,
    "denied": DENIED,
    "refused": REFUSED,
    "killed-before": _killed_before,
    "killed-after": _killed_after,
}
_steps = st.lists(
    st.tuples(
        st.sampled_from(["Create", "Update", "Rollback", "Delete"]),
        st.dictionaries(st.integers(1, 24), st.sampled_from(sorted(_FAULTS)), max_size=4),
        st.sampled_from([None, None, 1, 2, 3, 4]),
    ),
    min_size=1,
    max_size=3,
)
_HIGHER: Wanted = {None: Units(450, 95), "by_status": Units(70, 85)}


def _wanted(kind: str) -> Wanted:
    by_kind: dict[str, Wanted] = {"Rollback": {None: Units(9, 8)}, "Update": _HIGHER}
    return by_kind.get(kind, WANTED)


@settings(
    max_examples=60, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps=_steps, last=st.sampled_from(["Create", "Update", "Rollback", "Delete"]))
def test_marks_whatever_happened_never_fall_and_are_reached_by_one_event_without_faults(
    bench: Bench, steps: list[tuple[str, dict[int, str], int | None]], last: str
) -> None:
    name = bench.make_table(HOME, by_status=INDEX_HOME)

    def serve(kind: str, **more: Any) -> EventOutcome:
        event = marks_event("Update" if kind == "Rollback" else kind, name, _wanted(kind))
        stood = bench.marks(name)
        try:
            return Serving(bench, **more).serve(event)
        finally:
            assert all(bench.marks(name)[index].covers(units) for index, units in stood.items()), "a mark fell"
            assert bench.capacities(name) == HOMES

    for kind, faults, time_is_up_at in steps:
        bench.wire.reset()
        bench.wire.fault = lambda call, chosen=faults: (  # type: ignore[misc]
            _FAULTS[chosen[call.number]](call) if call.number in chosen else None
        )
        with suppress(KilledError):
            serve(kind, time_is_up_at=time_is_up_at)
    bench.wire.reset()
    assert serve(last).ok
    if last != "Delete":
        assert all(bench.marks(name)[index].covers(units) for index, units in _wanted(last).items())
