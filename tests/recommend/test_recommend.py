"""Recommendations: the cheapest plan within the limit, its code, and the way there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk.assertions import Annotations, Match

from highwater.core import Capacity, Dimension, Plan, Window
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.recommend import Recommendation, recommend
from highwater_lab.recommend.bounds import OnlyBest
from highwater_lab.recommend.candidates import Candidate, Choice, plan_of
from highwater_lab.recommend.code import code_of, scaler_code_of
from highwater_lab.recommend.days import Days
from highwater_lab.recommend.search import RecommendError
from highwater_lab.rehearse import rehearse
from highwater_lab.services.prices import load_prices
from highwater_lab.services.schedules import parse_expression
from highwater_lab.simulation import KnownTable, ResourceSetup, ScheduledChange, TableSetup, TargetSetup
from highwater_lab.simulation.plans import table_of
from highwater_lab.simulation.setup import ReplicaSetup
from highwater_lab.template import find_table
from highwater_lab.template.document import Template
from highwater_lab.traffic import Stream, Traffic
from tests.simulation.tables import READ, START, WRITE, writes

# one worker searches for the plan that most tests look at
pytestmark = pytest.mark.xdist_group("recommend")
ZONE = ZoneInfo("America/New_York")


def _bulk_loads(days: int = 9) -> Traffic:
    """Writes of 40/s, on weekdays 6,000/s from 05:00 to 06:00 in New York; reads of 90/s."""
    start = datetime(2026, 11, 9, tzinfo=UTC)
    loads = []
    for minute in range(days * 1440):
        local = (start + timedelta(minutes=minute)).astimezone(ZONE)
        loads.append(6_000 * 60.0 if local.weekday() < 5 and local.hour == 5 else 40 * 60.0)
    counts = {Stream(None, WRITE): loads, Stream(None, READ): [90 * 60.0] * len(loads)}
    return Traffic.from_counts("bulk loads", counts, bin_seconds=60, start=start)


@pytest.fixture(scope="module")
def found() -> Recommendation:
    return recommend(_bulk_loads(), timezone="America/New_York", with_scaler=False)


@pytest.fixture(scope="module")
def with_scaler() -> Recommendation:
    return recommend(_bulk_loads(2), timezone="America/New_York")


def _plan(found: Recommendation) -> Plan:
    assert found.best.plan is not None
    return found.best.plan


def test_surge_that_comes_again_gets_a_window(found: Recommendation) -> None:
    (window,) = _plan(found).windows
    assert (window.days, window.start, window.end, window.timezone) == ("MON-FRI", "05:00", "06:00", "America/New_York")
    assert window.write_min == 6_000
    assert found.is_within_limit
    assert found.best.throttled_percent <= 0.01


def test_curve_falls_and_ends_with_what_throttles_least(found: Recommendation) -> None:
    costs = [candidate.cost_per_month for candidate in found.curve]
    throttles = [candidate.throttled_percent for candidate in found.curve]
    assert costs == sorted(costs)
    assert throttles == sorted(throttles, reverse=True)
    assert found.best in found.curve
    on_demand = run_policy("on-demand", table_of(_plan(found), "x"), _bulk_loads())
    assert found.best.cost_per_month < on_demand.bill.per_month


def test_best_is_what_a_rehearsal_of_its_plan_gives(found: Recommendation) -> None:
    rehearsal = rehearse(table_of(_plan(found), "x"), _bulk_loads())
    assert rehearsal.cost_per_month == pytest.approx(found.best.cost_per_month)
    assert rehearsal.throttled_percent == found.best.throttled_percent


def _setup_of_code(code: str) -> TableSetup:
    """The table of the template that the printed code synthesizes, which must have no error."""
    app = cdk.App()
    stack = cdk.Stack(app, "Shop")
    exec(compile(code, "recommended", "exec"), {"stack": stack})  # noqa: S102 - the project's own
    Annotations.from_stack(stack).has_no_error("*", Match.any_value())
    return find_table([Template("synthesized", app.synth().get_stack_by_name("Shop").template)])


def test_global_table_has_no_windows_as_its_targets_cannot_have_scheduled_actions() -> None:
    setup = table_of(Plan(read=Capacity.fixed(300), write=Capacity.fixed(7_000)), "Shop/World")
    named = replace(setup, known=KnownTable(is_in_app=True, is_global=True))
    of_both = [recommend(_bulk_loads(3), table=table, with_scaler=False) for table in (setup, named)]
    plans = [[candidate.plan for _, candidate in found.rows if candidate.plan] for found in of_both]
    assert any(plan.windows for plan in plans[0])
    assert not any(plan.windows for plan in plans[1])


def test_units_of_a_month_are_those_that_its_throttles_are_a_share_of() -> None:
    rates = {Stream(None, WRITE): 40, Stream("by-day", WRITE): 30, Stream(None, READ): 20, Stream("by-day", READ): 10}
    counts = {stream: [rate * 60.0] * 60 for stream, rate in rates.items()}
    found = recommend(Traffic.from_counts("even", counts, bin_seconds=60, start=START), with_scaler=False)
    # without the index's share of the writes
    assert found.units_per_month == 70 * 730 * 3600


def test_index_that_is_written_to_does_not_raise_the_limit() -> None:
    rates = {Stream(None, WRITE): 40, Stream("by-day", WRITE): 30}
    counts = {stream: [rate * 60.0] * 60 for stream, rate in rates.items()}
    traffic = Traffic.from_counts("even", counts, bin_seconds=60, start=START)
    only = OnlyBest(Days(traffic, traffic, None), load_prices(), 1, 900)
    # 1 % of the 144,000 units that are written to the table
    assert only.is_enough(WRITE, 1_440)
    assert not only.is_enough(WRITE, 1_441)


def test_windows_of_reads_or_of_writes_alone_read_so() -> None:
    night = Window.daily("night", start="01:00", end="02:00", timezone="UTC", read_min=70, write_min=90)
    read, write = (Capacity.autoscaled(min_capacity=7, max_capacity=most) for most in (700, 900))
    summaries = {}
    for window in (night, replace(night, write_min=None), replace(night, read_min=None)):
        plan = Plan(read=read, write=write, windows=(window,))
        candidate = Candidate(plan=plan, cost_per_month=1, throttled_percent=0, utilization_percent=None)
        summaries[window.read_min, window.write_min] = candidate.summary
    both = "read 7-700 at 70 %, write 7-900 at 70 %, 1 window"
    assert summaries == {(70, 90): both, (70, None): f"{both} of reads", (None, 90): f"{both} of writes"}


def test_code_declares_just_that_plan(found: Recommendation) -> None:
    declared = rehearse(_setup_of_code(code_of(found.best)), _bulk_loads()).declared
    assert declared.targets == rehearse(table_of(_plan(found), "x"), _bulk_loads()).declared.targets


def test_traffic_that_idles_and_bursts_is_for_on_demand() -> None:
    rates = [0] * 1_440 * 3
    for at in (700, 1_500, 3_333):
        rates[at : at + 3] = [3_000] * 3
    found = recommend(writes(*rates))
    assert found.best.plan is None
    assert found.best.summary == "on-demand"
    stack = cdk.Stack(cdk.App(), "Shop")
    exec(compile(code_of(found.best), "recommended", "exec"), {"stack": stack})  # noqa: S102 - the project's own


def test_scaler_is_simulated_beside_with_the_lowest_floors_and_each_figure_is_a_rehearsals(
    with_scaler: Recommendation,
) -> None:
    assert list(with_scaler.scaled) == ["highwater-floor", "highwater-floor-pulse", "highwater-direct-pulse"]
    for name, candidate in with_scaler.scaled.items():
        assert candidate.plan is not None
        assert candidate.plan.windows == ()
        assert candidate.plan.write.target_utilization_percent == 90
        # the quietest minute's 40 units/s at 90 %
        assert candidate.plan.write.min_capacity == 45
        run = run_policy(name, table_of(candidate.plan, "table"), _bulk_loads(2))
        assert candidate.cost_per_month == run.bill.per_month
        assert candidate.throttled_percent == run.throttled_per_million / 10_000


def test_code_of_the_scaler_synthesizes(with_scaler: Recommendation) -> None:
    for name, candidate in with_scaler.scaled.items():
        stack = cdk.Stack(cdk.App(), "Shop")
        table = dynamodb.Table(
            stack,
            "Own",
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PROVISIONED,
        )
        code = scaler_code_of(name, candidate)
        assert code.startswith("# clients that call highwater.pulse(session)\n") is name.endswith("-pulse")
        exec(compile(code, "scaler", "exec"), {"stack": stack, "table": table})  # noqa: S102 - the project's own
        assert stack.node.find_child("Scaler").node.children


def test_more_processes_find_the_same(with_scaler: Recommendation) -> None:
    told: list[int] = []
    again = recommend(
        _bulk_loads(2), timezone="America/New_York", processes=2, progress=lambda done, _: told.append(done)
    )
    assert again == with_scaler
    assert told == list(range(1, with_scaler.tried + 1))


def test_more_processes_can_be_stopped() -> None:
    def stop(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    stopped = recommend(_bulk_loads(2), processes=2, progress=stop)
    assert stopped.was_stopped
    assert stopped.scaled == {}
    assert stopped.best.cost_per_month > 0


def test_on_demand_and_the_scaler_are_among_the_rows_where_they_are_worse_too(with_scaler: Recommendation) -> None:
    assert with_scaler.on_demand not in with_scaler.curve
    assert with_scaler.rows == (
        *(("", each) for each in with_scaler.curve),
        ("", with_scaler.on_demand),
        ("", with_scaler.marked),
        *with_scaler.scaled.items(),
    )


def test_limit_that_nothing_keeps_says_so() -> None:
    found = recommend(writes(*[60_000] * 60), max_throttled_percent=1)
    assert not found.is_within_limit
    assert found.best.throttled_percent > 1


def test_indexes_of_the_traffic_follow_the_table_and_the_code_declares_them() -> None:
    counts = {Stream(None, WRITE): [6_000.0] * 90, Stream("by_day", WRITE): [6_000.0] * 90}
    traffic = Traffic.from_counts("made", counts, bin_seconds=60, start=START)
    found = recommend(traffic)
    assert [index.index_name for index in _plan(found).indexes] == ["by_day"]
    declared = rehearse(_setup_of_code(code_of(found.best)), traffic).declared
    assert declared.targets == rehearse(table_of(_plan(found), "x"), traffic).declared.targets


def test_stopped_search_keeps_its_best_so_far() -> None:
    def stop(done: int, _: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    found = recommend(_bulk_loads(), timezone="America/New_York", progress=stop)
    assert found.was_stopped
    assert found.tried >= 7
    assert found.best.cost_per_month > 0


def test_progress_goes_up_to_all_of_it() -> None:
    told: list[tuple[int, int]] = []
    recommend(writes(*[5] * 90), progress=lambda *step: told.append(step))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert all(done <= total for done, total in told)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"timezone": "Europe/Belrin"}, "unknown timezone 'Europe/Belrin'; use an IANA name such as 'Europe/Berlin'"),
        (
            {"max_throttled_percent": float("nan")},
            "the limit of throttled units must be between 0 and 100 percent, got nan",
        ),
    ],
)
def test_what_cannot_be_asked_for(given: dict[str, object], message: str) -> None:
    with pytest.raises(RecommendError) as refused:
        recommend(writes(5), **given)  # type: ignore[arg-type]
    assert str(refused.value) == message


def _choice(window: Window) -> Choice:
    capacity = Capacity.autoscaled(min_capacity=7, max_capacity=9_000)
    return Choice(capacity=capacity, windows=(window,), cost=1.0, throttled_units=0.0)


@pytest.mark.parametrize(("end", "count"), [("06:00", 1), ("06:05", 2)])
def test_windows_of_reads_and_writes_at_the_same_hours_are_one(end: str, count: int) -> None:
    read = Window.weekly("read-surge-1", days="MON-FRI", start="05:00", end="06:00", timezone="UTC", read_min=310)
    write = Window.weekly("write-surge-2", days="MON-FRI", start="05:00", end=end, timezone="UTC", write_min=420)
    windows = plan_of(_choice(read), _choice(write), []).windows
    assert len(windows) == count
    if count == 1:
        (window,) = windows
        assert (window.name, window.days, window.start, window.end) == ("surge-1", "MON-FRI", "05:00", "06:00")
        assert (window.read_min, window.write_min) == (310, 420)


def test_surges_of_reads_get_read_windows() -> None:
    traffic = _bulk_loads(5)
    swapped = Traffic(
        "swapped",
        traffic.start,
        traffic.bin_seconds,
        traffic.source_bin_seconds,
        {Stream(None, READ): traffic.rates[Stream(None, WRITE)]},
    )
    (window,) = _plan(recommend(swapped, timezone="America/New_York")).windows
    assert (window.read_min, window.write_min) == (6_000, None)
    assert Dimension.READ.value in window.name


def test_what_is_declared_is_simulated_as_it_is_deployed() -> None:
    traffic = writes(*[600] * 60, *[900] * 60)
    action = ScheduledChange(
        name="noon", expression=parse_expression("cron(0 12 * * ? *)", ZoneInfo("UTC"), START), min=700, max=None
    )
    following = replace(TargetSetup.fixed(650), max=900, actions=(action,))
    table = TableSetup(
        name="orders", resources=(ResourceSetup(index=None, read=TargetSetup.fixed(41), write=following),)
    )
    found = recommend(traffic, table=table)
    deployed = rehearse(table, traffic)
    assert found.declared is not None
    assert found.declared.cost_per_month == deployed.cost_per_month
    assert found.declared.throttled_percent == deployed.throttled_percent
    assert ("declared now", found.declared) in found.rows
    # the traffic has no reads, which is not to say that there are none
    assert found.best.plan is not None
    assert found.best.plan.read == Capacity.fixed(41)
    assert recommend(traffic).declared is None
    assert recommend(traffic, table=table, below_usd=1e6).declared is None


def test_plan_is_for_the_table_that_it_is_given_with_its_indexes_replicas_and_class() -> None:
    # reads that the traffic does not know of would stay as they are
    counts = {Stream(None, WRITE): [600 * 3600.0] * 120, Stream(None, READ): [0.0] * 120}
    traffic = Traffic.from_counts("idle reads", counts, bin_seconds=60, start=START)
    one = ResourceSetup(index=None, read=TargetSetup.fixed(7), write=TargetSetup.fixed(11))
    table = TableSetup(name="orders", resources=(one,))
    replicas = tuple(ReplicaSetup(region="us-east-1", read_units=9_000) for _ in range(2))
    plain, indexed, regional, infrequent = (
        recommend(traffic, table=each)
        for each in (
            table,
            replace(table, resources=(one, replace(one, index="by_status", write_share_percent=50))),
            replace(table, replicas=replicas),
            replace(table, is_infrequent_access=True, is_on_demand=True),
        )
    )
    assert replace(plain, declared=None, tried=plain.tried - 1) == recommend(traffic)
    costs = [each.on_demand.cost_per_month for each in (plain, indexed, regional, infrequent) if each.on_demand]
    # a million write units: 0.625 USD in the class Standard, 0.78 in Standard-IA
    assert [cost / costs[0] for cost in costs] == pytest.approx([1, 1.5, 3, 0.78 / 0.625], rel=1e-3)
    assert [index.index_name for index in _plan(indexed).indexes] == ["by_status"]
    # a provisioned index has the floor of its table, whatever share of the writes reaches it
    for found, ratio in ((indexed, 2), (regional, 3)):
        assert found.is_within_limit
        assert found.best.cost_per_month == pytest.approx(ratio * plain.best.cost_per_month, rel=0.02)
    # the reads of the other replicas are at the floor of the plan, one unit, and not at that of the table
    setup = replace(table_of(_plan(regional), "orders"), replicas=tuple(replace(r, read_units=1) for r in replicas))
    assert rehearse(setup, traffic).cost_per_month == pytest.approx(regional.best.cost_per_month)
