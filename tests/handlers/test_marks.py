"""High-water marks: raised, never lowered, and never left provisioned.

Home is the capacity a table had before a raise. Numbers: home 5/7, index home 3/4, mark 400/90, index mark 60/80.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
from highwater.handlers.deploy import handler as deployment
from highwater.handlers.deploy import marks
from highwater.handlers.deploy.marks import PROVISION_AND_LOWER, WARM_THROUGHPUT
from highwater.handlers.deploy.response import Outcome, failure, success
from highwater.handlers.deploy.waiting import Patience
from tests.core.examples import SAME_EACH_TIME
from tests.handlers.serving import HOUR, KilledError, Serving, Wanted, marks_event
from tests.memory_aws.bench import Bench
from tests.memory_aws.wire import Call, Fault, at, lost_answer, no_connection, refusal, rewritten

HOME = Units(5, 7)
INDEX_HOME = Units(3, 4)
MARK = Units(400, 90)
INDEX_MARK = Units(60, 80)
WANTED: Wanted = {None: MARK, "by_status": INDEX_MARK}
HOMES: Wanted = {None: HOME, "by_status": INDEX_HOME}
UNCHANGED = success("the table's marks are already as high or higher")
RAISED = success(
    "raised the table to 400 RCU and 90 WCU, index 'by_status' to 60 RCU and 80 WCU",
)
DEFERRED = success(f"{RAISED.reason}; the capacity will be restored as soon as DynamoDB accepts the decrease")
ABOVE_QUOTA = (
    "The requested ReadCapacityUnits, 40001, is above the per table maximum for the account in us-east-1. Per table "
    "maximum: 40000."
)


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
DENIED_TEXT = "User: arn:aws:sts::000000000000:x is not authorized to perform this"
DENIED = refusal("AccessDeniedException", DENIED_TEXT)
REFUSED_TEXT = "Subscriber limit exceeded: Provisioned throughput is limited for this account"
REFUSED = refusal("LimitExceededException", REFUSED_TEXT)


def _updating(document: dict[str, Any]) -> None:
    document["Table"]["TableStatus"] = "UPDATING"


def _every_other_look_is_updating() -> Fault:
    looks = 0

    def fault(call: Call) -> Any:
        nonlocal looks
        if call.operation != "DescribeTable":
            return None
        looks += 1
        return rewritten(_updating)(call) if looks % 2 else None

    return fault


@pytest.fixture
def table(bench: Bench) -> str:
    return bench.make_table(HOME, by_status=INDEX_HOME)


def _serve(bench: Bench, *args: Any, **kwargs: Any) -> Outcome:
    return Serving(bench).serve(marks_event(*args, **kwargs))


def _left_up(bench: Bench, name: str, homes: Wanted = HOMES) -> str | None:
    """What is wrong with the table after an event, `None` where it is home and nothing is noted."""
    capacities = bench.capacities(name)
    if capacities != homes:
        return f"left at {capacities}"
    return "the note stays" if bench.has_note(name) else None


def _kill_at_the_mark(bench: Bench, name: str, wanted: Wanted = WANTED, update: int = 2) -> None:
    """Raise the marks, and end the process right after so many updates of the table."""
    bench.wire.fault = at(update, _killed_after, "UpdateTable")
    with pytest.raises(KilledError):
        _serve(bench, "Create", name, wanted)
    bench.wire.reset()


# Strategy warm-throughput


def test_warm_throughput_when_less_is_live_raises_table_and_index_and_tells_both(bench: Bench, table: str) -> None:
    outcome = _serve(bench, "Create", table, WANTED, WARM_THROUGHPUT)
    assert outcome == RAISED
    assert bench.marks(table) == WANTED
    assert bench.capacities(table) == HOMES, "warm throughput is not provisioned, hence not paid by the hour"


@pytest.mark.parametrize(
    ("wanted", "expected", "outcome", "why"),
    [
        pytest.param(
            Units(400, 2),
            Units(400, 7),
            success("raised the table to 400 RCU and 7 WCU"),
            "asking for 2 WCU below the live 7 would be refused by DynamoDB",
            id="one-dimension-above-one-below",
        ),
        pytest.param(
            Units(5, 90),
            Units(5, 90),
            success("raised the table to 5 RCU and 90 WCU"),
            "equal counts as live",
            id="one",
        ),
        pytest.param(Units(5, 7), HOME, UNCHANGED, "equal is live already", id="equal"),
        pytest.param(Units(2, 3), HOME, UNCHANGED, "a mark only rises", id="lower"),
        pytest.param(Units(6, 8), Units(6, 8), success("raised the table to 6 RCU and 8 WCU"), "by one", id="by-one"),
    ],
)
def test_warm_throughput_when_one_is_live_raises_the_rest(
    bench: Bench, wanted: Units, expected: Units, outcome: Outcome, why: str
) -> None:
    name = bench.make_table(HOME)
    assert _serve(bench, "Create", name, {None: wanted}, WARM_THROUGHPUT) == outcome, why
    assert bench.marks(name) == {None: expected}, why
    assert bench.wire.operations.count("UpdateTable") == (0 if outcome == UNCHANGED else 1), why


def test_warm_throughput_when_a_higher_mark_is_live_leaves_it_and_raises_the_other(bench: Bench, table: str) -> None:
    tables.set_mark(bench.dynamodb, table, None, Units(900, 200))
    outcome = _serve(bench, "Update", table, WANTED, WARM_THROUGHPUT)
    assert outcome == success("raised index 'by_status' to 60 RCU and 80 WCU")
    assert bench.marks(table) == {None: Units(900, 200), "by_status": INDEX_MARK}


def test_warm_throughput_on_demand_when_below_the_default_changes_nothing(bench: Bench) -> None:
    name = bench.make_table(on_demand=True)
    assert _serve(bench, "Create", name, {None: Units(11_999, 3_999)}, WARM_THROUGHPUT) == UNCHANGED
    assert _serve(bench, "Create", name, {None: Units(12_001, 3_999)}, WARM_THROUGHPUT).ok
    assert bench.marks(name) == {None: Units(12_001, 4_000)}


@pytest.mark.parametrize("strategy", [WARM_THROUGHPUT, PROVISION_AND_LOWER])
def test_marks_when_an_index_is_missing_names_it_and_changes_no_capacity(
    bench: Bench, table: str, strategy: str
) -> None:
    outcome = _serve(bench, "Create", table, {"by_day": MARK}, strategy)
    assert outcome == failure(f"table {table} has no index 'by_day'; remove it from the plan or add it to the table")
    assert _left_up(bench, table) is None


@pytest.mark.parametrize("strategy", [WARM_THROUGHPUT, PROVISION_AND_LOWER])
@pytest.mark.parametrize("request_type", ["Create", "Update"])
def test_marks_when_the_table_is_missing_fail_with_its_name(bench: Bench, request_type: str, strategy: str) -> None:
    outcome = _serve(bench, request_type, "no-such-table", WANTED, strategy)
    assert outcome == failure("table no-such-table does not exist")


def test_warm_throughput_when_above_the_quota_fails_with_the_service_text(bench: Bench, table: str) -> None:
    assert _serve(bench, "Create", table, {None: Units(40_001, 90)}, WARM_THROUGHPUT) == failure(
        "Requested ReadUnitsPerSecond for WarmThroughput exceeds TableMaxReadCapacityUnits"
    )


def test_warm_throughput_when_the_mark_rises_in_between_succeeds(bench: Bench) -> None:
    """Auto scaling provisions 900 between the look and the request: asking for 400 then would be refused."""
    name = bench.make_table(HOME)

    def auto_scaling_was_faster(_call: Call) -> None:
        bench.provision(name, Units(900, 7))

    bench.wire.fault = at(1, auto_scaling_was_faster, "UpdateTable")
    outcome = _serve(bench, "Create", name, {None: MARK}, WARM_THROUGHPUT)
    assert outcome.ok, f"a mark lower than the live one fails the deploy: {outcome.reason}"
    assert bench.marks(name) == {None: Units(900, 90)}


def test_warm_throughput_when_the_mark_rises_while_it_waits_succeeds(bench: Bench) -> None:
    """The table is busy because auto scaling raises it, past the mark that was read before."""
    name = bench.make_table(HOME)

    def busy_rising(call: Call) -> Any:
        bench.provision(name, Units(900, 200))
        return BUSY(call)

    bench.wire.fault = at(1, busy_rising, "UpdateTable")
    outcome = _serve(bench, "Create", name, {None: MARK}, WARM_THROUGHPUT)
    assert outcome.ok, f"a mark lower than the live one fails the deploy: {outcome.reason}"


@pytest.mark.parametrize("fault", [BUSY, THROTTLED, TRANSIENT["internal-error"]], ids=["busy", "throttled", "500"])
def test_warm_throughput_when_refused_for_the_moment_asks_again(bench: Bench, table: str, fault: Fault) -> None:
    bench.wire.fault = at(1, fault, "UpdateTable")
    outcome = _serve(bench, "Create", table, WANTED, WARM_THROUGHPUT)
    assert outcome == success("raised index 'by_status' to 60 RCU and 80 WCU, the table to 400 RCU and 90 WCU")
    assert bench.marks(table) == WANTED
    asked = ["WarmThroughput" in body for body in bench.wire.bodies("UpdateTable")]
    assert asked == [True, False, True], "the table, the index, and what was refused once more"


def test_warm_throughput_delete_when_the_table_stands_leaves_the_mark(bench: Bench, table: str) -> None:
    _serve(bench, "Create", table, WANTED, WARM_THROUGHPUT)
    assert _serve(bench, "Delete", table, WANTED, WARM_THROUGHPUT) == success(
        "nothing to undo: a high-water mark never falls"
    )
    assert bench.marks(table) == WANTED


# Strategy provision-and-lower: the ways it can end


def test_provision_when_it_succeeds_raises_marks_and_goes_home(bench: Bench, table: str) -> None:
    assert _serve(bench, "Create", table, WANTED) == RAISED
    assert bench.marks(table) == WANTED
    assert _left_up(bench, table) is None


def test_provision_when_it_succeeds_uses_one_decrease_of_each_resource(bench: Bench, table: str) -> None:
    _serve(bench, "Create", table, WANTED)
    described = bench.dynamodb.describe_table(TableName=table)["Table"]
    assert described["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 1
    assert described["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 1


def test_provision_when_it_raises_has_noted_home_before(bench: Bench, table: str) -> None:
    _serve(bench, "Create", table, WANTED)
    changing = [o for o in bench.wire.operations if o in ("TagResource", "UpdateTable", "UntagResource")]
    assert changing[0] == "TagResource", "a raise without a note is never found again"
    assert changing[-1] == "UntagResource", "a note cleared too early leaves the table at the mark"


@pytest.mark.parametrize("wanted", [Units(5, 7), Units(2, 3), Units(5, 3)], ids=["equal", "lower", "mixed"])
def test_provision_when_the_mark_is_live_changes_nothing_and_says_so(bench: Bench, wanted: Units) -> None:
    name = bench.make_table(HOME)
    assert _serve(bench, "Create", name, {None: wanted}) == UNCHANGED
    assert set(bench.wire.operations) == {"DescribeTable", "ListTagsOfResource"}


def test_provision_when_only_one_resource_is_short_leaves_the_other_alone(bench: Bench, table: str) -> None:
    outcome = _serve(bench, "Create", table, {None: Units(5, 7), "by_status": INDEX_MARK})
    assert outcome == success("raised index 'by_status' to 60 RCU and 80 WCU")
    assert all("ProvisionedThroughput" not in body for body in bench.wire.bodies("UpdateTable"))
    assert _left_up(bench, table) is None


def test_provision_when_one_dimension_is_short_never_provisions_less_than_before(bench: Bench) -> None:
    name = bench.make_table(HOME)
    assert _serve(bench, "Create", name, {None: Units(400, 2)}).ok
    first, second = (body["ProvisionedThroughput"] for body in bench.wire.bodies("UpdateTable"))
    assert first == {"ReadCapacityUnits": 400, "WriteCapacityUnits": 7}
    assert second == {"ReadCapacityUnits": 5, "WriteCapacityUnits": 7}


@pytest.mark.parametrize("short_of", [None, "by_status"], ids=["table", "index"])
def test_provision_when_above_the_quota_fails_with_the_service_text_and_goes_home(
    bench: Bench, table: str, short_of: str | None
) -> None:
    outcome = _serve(bench, "Create", table, WANTED | {short_of: Units(40_001, 90)})
    expected = (
        ABOVE_QUOTA
        if short_of is None
        else ABOVE_QUOTA.replace("per table", "per index").replace("Per table", "Per index")
    )
    assert outcome == failure(expected)
    assert _left_up(bench, table) is None


def test_provision_when_the_table_is_on_demand_fails_and_leaves_no_note(bench: Bench) -> None:
    name = bench.make_table(on_demand=True)
    bench.wire.fault = at(1, refusal("ValidationException", "neither is allowed on demand"), "UpdateTable")
    outcome = _serve(bench, "Create", name, {None: Units(20_000, 90)})
    assert not outcome.ok
    assert not bench.has_note(name)


def _updates_of_a_success(bench: Bench) -> int:
    name = bench.make_table(HOME, by_status=INDEX_HOME)
    _serve(bench, "Create", name, WANTED)
    return bench.wire.operations.count("UpdateTable")


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_provision_when_the_nth_update_is_refused_for_good_is_home_after_the_rollback(
    bench: Bench, table: str, number: int
) -> None:
    bench.wire.fault = at(number, REFUSED, "UpdateTable")
    outcome = _serve(bench, "Create", table, WANTED)
    assert outcome == failure(REFUSED_TEXT)
    if number <= 2:
        assert _left_up(bench, table) is None, "it was refused on the way up: the way down was open"
    _serve(bench, "Delete", table, WANTED)
    assert _left_up(bench, table) is None


def test_provision_when_a_permission_is_not_in_effect_yet_waits_for_it(bench: Bench, table: str) -> None:
    """CloudFormation invokes the function seconds after it changed the role."""
    bench.wire.fault = lambda call: DENIED(call) if call.number <= 5 else None
    outcome = _serve(bench, "Create", table, WANTED)
    assert outcome.ok, outcome.reason
    assert _left_up(bench, table) is None


def test_provision_when_served_makes_the_four_updates_that_the_tests_above_count(bench: Bench) -> None:
    assert _updates_of_a_success(bench) == 4


@pytest.mark.parametrize("kind", [*TRANSIENT, "busy"])
def test_provision_when_one_call_fails_for_the_moment_ends_home_by_itself(bench: Bench, kind: str) -> None:
    """Each call in turn. Nobody may come after: stacks are deployed without rollback, and Lambda gives up."""
    fault = TRANSIENT.get(kind, BUSY)
    left_up = {}
    for number in range(1, 40):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        bench.wire.fault = at(number, fault)
        _serve(bench, "Create", name, WANTED)
        if len(bench.wire.calls) < number:
            break
        if (wrong := _left_up(bench, name)) is not None:
            left_up[f"call {number}, {bench.wire.calls[number - 1].operation}"] = wrong
    assert not left_up, f"{kind} leaves it until somebody deploys again: {left_up}"


@pytest.mark.parametrize("kind", TRANSIENT)
def test_provision_when_a_call_fails_after_the_answer_ends_home_by_itself(bench: Bench, kind: str) -> None:
    """CloudFormation has its answer and sends no further event: giving up leaves the mark for good."""
    left_up = {}
    for number in range(1, 20):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.spend_decreases(name)
        continued: list[dict[str, Any]] = []
        bench.wire.reset()
        remaining = iter([60.0] * 3)
        first = marks_event("Create", name, WANTED)
        clients = bench.wired_dynamodb, bench.wired_autoscaling
        patience = Patience(partial(next, remaining, 0.0), lambda _: None)
        outcome = marks.serve(first, *clients, patience, continued.append)
        assert outcome == DEFERRED
        assert continued[0]["HighwaterAnswered"]
        bench.advance(HOUR)
        bench.wire.reset()
        bench.wire.fault = at(number, TRANSIENT[kind])
        _continue_as_lambda_does(bench, continued)
        if len(bench.wire.calls) < number:
            break
        if (wrong := _left_up(bench, name)) is not None:
            left_up[f"call {number}, {bench.wire.calls[number - 1].operation}"] = wrong
    assert not left_up, f"{kind} in a continuation leaves it for good: {left_up}"


def _continue_as_lambda_does(bench: Bench, continued: list[dict[str, Any]]) -> None:
    """Give continuations to the handler; one that it lets fail is tried twice more."""
    deployed = deployment.Deployment(
        dynamodb=lambda _: bench.wired_dynamodb,
        autoscaling=lambda _: bench.wired_autoscaling,
        invoke=lambda _, event: continued.append(event),
    )
    for _ in range(6):
        if not continued:
            return
        event = continued.pop(0)
        for _ in range(3):
            try:
                deployed.serve(event, Patience(lambda: 60.0, lambda _: None))
            except Exception:  # noqa: S112 - Lambda tries asynchronous invocations again
                continue
            break


FOLLOWERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "retry": lambda name: marks_event("Create", name, WANTED),
    "rollback": lambda name: marks_event("Update", name, {None: Units(9, 8)}, old=WANTED),
    "rollback-to-warm": lambda name: marks_event("Update", name, {None: Units(9, 8)}, WARM_THROUGHPUT),
    "delete": lambda name: marks_event("Delete", name, WANTED),
}


@pytest.mark.parametrize("follower", FOLLOWERS)
@pytest.mark.parametrize("kill", [_killed_before, _killed_after], ids=["before", "after"])
def test_provision_when_killed_at_any_call_is_home_after_the_next_event(
    bench: Bench, kill: Fault, follower: str
) -> None:
    left_up = {}
    for number in range(1, 40):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        bench.wire.fault = at(number, kill)
        try:
            _serve(bench, "Create", name, WANTED)
        except KilledError:
            stood = bench.marks(name)
            outcome = Serving(bench).serve(FOLLOWERS[follower](name))
            assert outcome.ok
            assert all(bench.marks(name)[index].covers(units) for index, units in stood.items()), "a mark never falls"
            if (wrong := _left_up(bench, name)) is not None:
                left_up[f"call {number}, {bench.wire.calls[number - 1].operation}"] = wrong
        else:
            break
    assert number > 10
    assert not left_up, f"{left_up}"


@pytest.mark.parametrize("follower", FOLLOWERS)
def test_provision_when_refused_on_the_way_down_is_home_after_the_next_event(bench: Bench, follower: str) -> None:
    """Each call in turn and all that follow it are denied, as where somebody changed the role."""
    for number in range(1, 40):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        bench.wire.fault = lambda call, first=number: DENIED(call) if call.number >= first else None  # type: ignore[misc]
        if _serve(bench, "Create", name, WANTED).ok:
            break
        bench.wire.reset()
        assert Serving(bench).serve(FOLLOWERS[follower](name)).ok
        assert _left_up(bench, name) is None, f"denied from call {number} on"
    assert number > 10


# Time running out


def test_provision_when_time_runs_out_at_any_pause_goes_on_and_ends_home(bench: Bench) -> None:
    for pause in range(1, 17):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        bench.wire.fault = _every_other_look_is_updating()
        serving = Serving(bench, between=timedelta(0), time_is_up_at=pause)
        outcome = serving.serve(marks_event("Create", name, WANTED))
        if serving.pauses < pause:
            break
        assert outcome in (RAISED, DEFERRED), f"time up at pause {pause}: the log is all that tells what it raised"
        assert bench.marks(name) == WANTED, f"time up at pause {pause}"
        assert _left_up(bench, name) is None, f"time up at pause {pause}"
    assert pause > 5


@pytest.mark.parametrize("follower", ["retry", "rollback", "rollback-to-warm", "delete"])
def test_provision_when_time_runs_out_at_any_pause_of_the_event_after_a_kill_ends_home(
    bench: Bench, follower: str
) -> None:
    left_up = {}
    for pause in range(1, 17):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        _kill_at_the_mark(bench, name)
        bench.wire.fault = _every_other_look_is_updating()
        serving = Serving(bench, between=timedelta(0), time_is_up_at=pause)
        serving.serve(FOLLOWERS[follower](name))
        if serving.pauses < pause:
            break
        if (wrong := _left_up(bench, name)) is not None:
            left_up[f"time up at pause {pause}"] = wrong
    assert not left_up, f"{left_up}"


def test_provision_when_the_mark_never_rises_fails_after_three_invocations_and_goes_home(bench: Bench) -> None:
    name = bench.make_table(HOME)

    def still_low(call: Call) -> Any:
        def lower(document: dict[str, Any]) -> None:
            document["Table"]["WarmThroughput"] = {"ReadUnitsPerSecond": 5, "WriteUnitsPerSecond": 7}

        return rewritten(lower)(call) if call.operation == "DescribeTable" else None

    bench.wire.fault = still_low
    outcome = _serve(bench, "Create", name, {None: MARK})
    assert outcome == failure(f"the high-water mark of {name} did not rise in time; the capacity will be restored")
    assert _left_up(bench, name, {None: HOME}) is None


def test_provision_when_the_mark_rises_late_waits_for_it_at_the_mark(bench: Bench) -> None:
    name = bench.make_table(HOME)
    late = {"looks": 0}

    def still_low(call: Call) -> Any:
        def lower(document: dict[str, Any]) -> None:
            document["Table"]["WarmThroughput"] = {"ReadUnitsPerSecond": 5, "WriteUnitsPerSecond": 7}

        late["looks"] += call.operation == "DescribeTable"
        return rewritten(lower)(call) if call.operation == "DescribeTable" and late["looks"] < 12 else None

    bench.wire.fault = still_low
    assert _serve(bench, "Create", name, {None: MARK}) == success("raised the table to 400 RCU and 90 WCU")
    assert [b["ProvisionedThroughput"]["ReadCapacityUnits"] for b in bench.wire.bodies("UpdateTable")] == [400, 5]


# Tags are written at once and read late (Amazon DynamoDB API Reference, TagResource and UntagResource, read 2026-11)


def _tags(bench: Bench, call: Call) -> Any:
    tags = bench.account.tables[call.body["ResourceArn"].rpartition("/")[2]].tags
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _late_tags(bench: Bench) -> Fault:
    """After every change of tags, the first look still shows those before it."""
    before: list[Any] = []

    def fault(call: Call) -> Any:
        if call.operation in ("TagResource", "UntagResource"):
            before[:] = [_tags(bench, call)]
        if call.operation == "ListTagsOfResource" and before:
            stale = before.pop()
            return rewritten(lambda document: document.update(Tags=stale))(call)
        return None

    return fault


def test_provision_when_tags_are_read_late_still_goes_home(bench: Bench, table: str) -> None:
    bench.wire.fault = _late_tags(bench)
    assert _serve(bench, "Create", table, WANTED) == RAISED
    assert _left_up(bench, table) is None


@pytest.mark.parametrize("follower", ["update", "rollback", "delete"])
def test_provision_when_tags_are_read_late_after_a_kill_is_home_after_the_next_event(
    bench: Bench, table: str, follower: str
) -> None:
    """The way down clears the note, and the raise right behind it must not take the cleared one for its own."""
    _kill_at_the_mark(bench, table)
    bench.wire.fault = _late_tags(bench)
    event = marks_event("Update", table, _HIGHER) if follower == "update" else FOLLOWERS[follower](table)
    assert Serving(bench).serve(event).ok
    assert _left_up(bench, table) is None


# The decrease budget


@pytest.mark.parametrize("spent", [None, "by_status"], ids=["table", "index"])
def test_provision_when_the_decreases_are_spent_answers_success_and_goes_home_later(
    bench: Bench, table: str, spent: str | None
) -> None:
    bench.spend_decreases(table, spent)
    assert _serve(bench, "Create", table, WANTED) == DEFERRED
    assert _left_up(bench, table) is None


def test_provision_when_the_raise_failed_and_the_decreases_are_spent_answers_failure_and_goes_home_later(
    bench: Bench, table: str
) -> None:
    bench.spend_decreases(table)
    outcome = _serve(bench, "Create", table, WANTED | {"by_status": Units(40_001, 80)})
    assert outcome == failure(ABOVE_QUOTA.replace("per table", "per index").replace("Per table", "Per index"))
    assert _left_up(bench, table) is None


def test_delete_when_the_decreases_are_spent_answers_once_it_is_home(bench: Bench, table: str) -> None:
    bench.spend_decreases(table)
    _kill_at_the_mark(bench, table)
    assert _serve(bench, "Delete", table, WANTED) == success("capacity is restored")
    assert _left_up(bench, table) is None


@pytest.mark.parametrize("follower", ["retry", "rollback", "rollback-to-warm"])
def test_provision_when_the_decreases_are_spent_after_a_kill_is_home_after_the_next_event(
    bench: Bench, table: str, follower: str
) -> None:
    """Its continuation must still begin with the way down, whatever it was waiting for."""
    bench.spend_decreases(table)
    _kill_at_the_mark(bench, table)
    assert Serving(bench).serve(FOLLOWERS[follower](table)).ok
    assert _left_up(bench, table) is None


def test_provision_when_an_older_note_names_less_still_brings_all_it_raises_home(bench: Bench, table: str) -> None:
    """A raise of the index alone was killed; the next event's way down times out, and it then raises the table too."""
    bench.spend_decreases(table, "by_status")
    _kill_at_the_mark(bench, table, {"by_status": INDEX_MARK}, update=1)
    assert _serve(bench, "Update", table, WANTED).ok
    assert _left_up(bench, table) is None


# Others who change the table meanwhile


@pytest.mark.parametrize(
    ("lowered", "expected", "why"),
    [
        pytest.param(HOME, HOME, "asking for what is provisioned already is refused by DynamoDB", id="all-the-way"),
        pytest.param(Units(30, 20), HOME, "it went half of the way", id="half-way"),
        pytest.param(Units(2, 3), Units(2, 3), "it went farther: nothing is to be lowered", id="farther"),
        pytest.param(Units(400, 3), Units(5, 3), "writes went farther, reads are at the mark still", id="writes-only"),
        pytest.param(Units(2, 90), Units(2, 7), "reads went farther, writes are at the mark still", id="reads-only"),
    ],
)
def test_provision_when_auto_scaling_lowers_by_itself_leaves_nothing_at_the_mark(
    bench: Bench, lowered: Units, expected: Units, why: str
) -> None:
    """The process is killed at the mark, auto scaling goes down as far as it likes, and the event is repeated."""
    name = bench.make_table(HOME)
    _kill_at_the_mark(bench, name, {None: MARK}, update=1)
    bench.provision(name, lowered)
    bench.wire.reset()
    assert Serving(bench).serve(marks_event("Create", name, {None: MARK})).ok, why
    assert bench.capacities(name) == {None: expected}, why
    assert not bench.has_note(name), why


@pytest.mark.parametrize("lowered", [HOME, Units(30, 20), Units(2, 3), Units(400, 3)], ids=str)
def test_provision_when_auto_scaling_lowers_while_it_waits_ends_no_higher_than_home(
    bench: Bench, lowered: Units
) -> None:
    """The first request down is turned away as busy: auto scaling was at it."""
    name = bench.make_table(HOME)

    def auto_scaling_goes_down(call: Call) -> Any:
        bench.provision(name, lowered)
        return BUSY(call)

    bench.wire.fault = at(2, auto_scaling_goes_down, "UpdateTable")
    assert _serve(bench, "Create", name, {None: MARK}).ok
    assert HOME.covers(bench.capacities(name)[None])
    assert not bench.has_note(name)


@pytest.mark.parametrize(
    ("number", "operation"),
    [pytest.param(1, "UpdateTable", id="at-the-mark"), pytest.param(2, "UpdateTable", id="after-the-look")],
)
def test_provision_when_a_floor_rises_meanwhile_goes_down_to_the_floor_only(
    bench: Bench, number: int, operation: str
) -> None:
    """A window opens between up and down. Below its floor the table would stay: nothing clamps it until an alarm."""
    name = bench.make_table(HOME)

    def window_opens(call: Call) -> Any:
        answered = call.send() if number == 1 else None
        bench.register(name, (120, 900), (7, 900))
        return answered

    bench.wire.fault = at(number, window_opens, operation)
    assert _serve(bench, "Create", name, {None: MARK}).ok
    assert bench.capacities(name) == {None: Units(120, 7)}, "the window's floor is 120 RCU"
    assert not bench.has_note(name)


def test_provision_when_the_table_is_deleted_at_any_call_fails_with_its_name(bench: Bench) -> None:
    wrong = {}
    for number in range(2, 40):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        bench.wire.fault = at(number, _deletes(bench, name))
        outcome = _serve(bench, "Create", name, WANTED)
        if len(bench.wire.calls) < number:
            break
        if outcome != failure(f"table {name} does not exist"):
            wrong[f"call {number}, {bench.wire.calls[number - 1].operation}"] = outcome.reason
    # ListTagsOfResource does not tell whether the table exists: that answer may only say that it is denied
    assert {call: text for call, text in wrong.items() if "ListTags" not in call} == {}


def _deletes(bench: Bench, name: str) -> Fault:
    def fault(_call: Call) -> None:
        bench.account.tables.pop(name, None)

    return fault


def test_delete_when_the_table_goes_at_any_call_succeeds(bench: Bench) -> None:
    """A stack that cannot delete a gone table's mark is stuck."""
    wrong = {}
    for number in range(1, 40):
        name = bench.make_table(HOME, by_status=INDEX_HOME)
        bench.wire.reset()
        _kill_at_the_mark(bench, name)
        bench.wire.fault = at(number, _deletes(bench, name))
        outcome = _serve(bench, "Delete", name, WANTED)
        if len(bench.wire.calls) < number:
            break
        if outcome != success("the table does not exist any more"):
            wrong[f"call {number}, {bench.wire.calls[number - 1].operation}"] = outcome.reason
    assert {call: text for call, text in wrong.items() if "ListTags" not in call} == {}


def test_delete_when_the_table_is_gone_succeeds(bench: Bench) -> None:
    assert _serve(bench, "Delete", "no-such-table", WANTED) == success("the table does not exist any more")


def test_delete_when_an_index_went_meanwhile_brings_the_table_home(bench: Bench, table: str) -> None:
    _kill_at_the_mark(bench, table)
    del bench.account.tables[table].resources["by_status"]
    assert _serve(bench, "Delete", table, WANTED) == success("capacity is restored")
    assert _left_up(bench, table, {None: HOME}) is None


def test_serve_when_the_table_is_missing_raises_nothing_but_other_errors_pass(bench: Bench, table: str) -> None:
    bench.wire.fault = at(1, REFUSED)
    clients = bench.wired_dynamodb, bench.wired_autoscaling
    patience = Patience(lambda: 60.0, lambda _: None)
    with pytest.raises(TableRefusedError, match=f"^{re.escape(REFUSED_TEXT)}$"):
        marks.serve(marks_event("Create", table, WANTED), *clients, patience, lambda _: None)


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
        st.sampled_from(["Create", "Update", "Rollback", "Warm", "Delete"]),
        st.dictionaries(st.integers(1, 24), st.sampled_from(sorted(_FAULTS)), max_size=4),
        st.sampled_from([None, None, 1, 2, 3, 4]),
    ),
    min_size=1,
    max_size=3,
)
_HIGHER: Wanted = {None: Units(450, 95), "by_status": Units(70, 85)}


def _random_event(kind: str, name: str) -> dict[str, Any]:
    if kind == "Warm":
        return marks_event("Update", name, {None: Units(9, 8)}, WARM_THROUGHPUT)
    if kind == "Rollback":
        return marks_event("Update", name, {None: Units(9, 8)}, old=_HIGHER)
    return marks_event(kind, name, _HIGHER if kind == "Update" else WANTED)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=SAME_EACH_TIME,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=_steps, last=st.sampled_from(["Create", "Update", "Rollback", "Warm", "Delete"]), spent=st.booleans())
def test_provision_whatever_happened_is_home_after_one_event_without_faults(
    bench: Bench, steps: list[tuple[str, dict[int, str], int | None]], last: str, spent: bool
) -> None:
    name = bench.make_table(HOME, by_status=INDEX_HOME)
    if spent:
        bench.spend_decreases(name)
    for kind, faults, time_is_up_at in steps:
        stood = bench.marks(name)
        bench.wire.reset()
        bench.wire.fault = lambda call, chosen=faults: (  # type: ignore[misc]
            _FAULTS[chosen[call.number]](call) if call.number in chosen else None
        )
        with suppress(KilledError):
            Serving(bench, time_is_up_at=time_is_up_at).serve(_random_event(kind, name))
        assert all(bench.marks(name)[index].covers(units) for index, units in stood.items()), "a mark fell"
    stood = bench.marks(name)
    bench.wire.reset()
    assert Serving(bench).serve(_random_event(last, name)).ok
    assert all(bench.marks(name)[index].covers(units) for index, units in stood.items()), "a mark fell"
    assert _left_up(bench, name) is None
