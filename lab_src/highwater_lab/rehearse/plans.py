"""The best plan for each table of an app, each under its own traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from highwater_lab.recommend import Candidate, Recommendation, Rule, recommend
from highwater_lab.recommend.trials import without_windows
from highwater_lab.rehearse.app import does_not_fit, run_all
from highwater_lab.rehearse.rehearsal import Conditions, assumptions
from highwater_lab.services.commitments import CommitmentAdvice, HourlyUsage, advise
from highwater_lab.services.prices import Prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import TableSetup
from highwater_lab.simulation.simulator import billed_replicas
from highwater_lab.template import ListedApp, ListedTable
from highwater_lab.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """What is best for one table.

    Attributes:
        name: Its name in the app.
        stage: The stage that it belongs to, empty for none.
        setup: Its declaration, `None` if it cannot be read.
        found: What is declared now, the best plan, and on-demand; `None` if it is unknown.
        is_idle: Whether nothing is requested of it in the whole time of its traffic.
        unknown: Why nothing is known of it, such as that there is no traffic for it; empty otherwise.
        notes: What a reader should know: what is assumed, what is missing in the traffic.
    """

    name: str
    stage: str
    setup: TableSetup | None
    found: Recommendation | None = None
    is_idle: bool = False
    unknown: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanSum:
    """The sum of one mode or plan over tables.

    Attributes:
        usd: The cost in USD a month.
        throttled_percent: The percentage of all requested units that were throttled.
    """

    usd: float
    throttled_percent: float


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of an app's known tables.

    Attributes:
        now: As they are declared.
        advised: As they are advised.
        on_demand: On demand; tables of which the traffic lacks a dimension are left out.
        saved_usd: The USD a month that the changes which save something save.
        added_usd: The USD a month that the others add.
        left_out: The number of tables left out of the sum on demand.
    """

    now: PlanSum
    advised: PlanSum
    on_demand: PlanSum
    saved_usd: float
    added_usd: float
    left_out: int


def sum_plans(tables: Sequence[TablePlan], rule: Rule) -> Sums:
    """Return the sums of the tables that are known."""
    known = [each.found for each in tables if each.found is not None]
    gains = [
        each.declared.cost_per_month - each.advised(rule).cost_per_month for each in known if each.declared is not None
    ]
    return Sums(
        _sum((each, each.declared) for each in known),
        _sum((each, each.advised(rule)) for each in known),
        _sum((each, each.on_demand) for each in known if not each.unknown),
        sum(gain for gain in gains if gain > 0),
        -sum(gain for gain in gains if gain < 0),
        sum(bool(each.unknown) for each in known),
    )


def advise_commitments(tables: Iterable[TablePlan], goals: PlanGoals) -> CommitmentAdvice:
    """Return which commitments are worth it for the advised plans of the tables that are known, all together."""
    prices_of = goals.conditions.prices
    usages = []
    for table in tables:
        advised = None if table.found is None else table.found.advised(goals.rule)
        if advised is not None and advised.hours is not None and table.setup is not None:
            prices = prices_of(table.setup.region)
            usage = HourlyUsage.of_capacity(
                advised.hours,
                prices,
                is_infrequent_access=table.setup.is_infrequent_access,
                replicas=billed_replicas(table.setup, prices),
            )
            usages.append(usage)
    return advise(usages, prices_of, goals.conditions.commitments, least_gain=goals.rule.least_gain_usd)


def _sum(chosen: Iterator[tuple[Recommendation, Candidate | None]]) -> PlanSum:
    usd = throttled = requested = 0.0
    for found, candidate in chosen:
        if candidate is not None:
            usd += candidate.cost_per_month
            requested += found.units_per_month
            throttled += found.units_per_month * candidate.throttled_percent / 100
    return PlanSum(usd, 100 * throttled / requested if requested else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGoals:
    """What the plans of an app have to keep.

    Attributes:
        rule: The rule by which a plan is advised, with the limit of throttled units.
        timezone: The IANA time zone in which surges recur, and of the windows.
        conditions: The delays of AWS, and the prices. Reserved capacity is left out, as the tables share it.
        table_quota_units: The account's quota of units per table, which no ceiling exceeds; by default a table's own.
    """

    rule: Rule = field(default_factory=Rule)
    timezone: str = "UTC"
    conditions: Conditions = field(default_factory=Conditions)
    table_quota_units: int | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """The search of one table."""

    table: TablePlan
    setup: TableSetup
    traffic: Traffic
    goals: PlanGoals
    prices: Prices
    timing: Timing

    def run(self) -> TablePlan:
        """Search, and return the table with what came out."""
        found = recommend(
            self.traffic,
            table=self.setup,
            max_throttled_percent=self.goals.rule.limit_percent,
            timezone=self.goals.timezone,
            table_quota_units=self.goals.table_quota_units or self.setup.quota_units,
            prices=self.prices,
            timing=self.timing,
            with_scaler=False,
        )
        return replace(self.table, found=found)


def plan_app(
    app: ListedApp,
    traffic_of: Callable[[ListedTable], Traffic | None],
    goals: PlanGoals = PlanGoals(),
    *,
    processes: int | None = None,
) -> Iterator[TablePlan]:
    """Yield what is best for each table of an app as it is found, and after these the tables that are unknown.

    The plan of a table is that of `recommend`. The traffic of further tables is asked for while the first are
    simulated. An idle table takes two simulations, as nothing is cheaper than on demand.

    Args:
        app: The app.
        traffic_of: Returns a table's traffic, `None` if it is not known: the table then counts as unknown.
        goals: What the plans have to keep.
        processes: How many processes simulate at once, 1 or more; by default one for each processor.

    Raises:
        PriceError: The prices cannot be read, or the file has none of the goals' own region. A table of another region
            without prices counts as unknown.
        RecommendError: The time zone or the limit is not valid.
    """
    unknown: list[TablePlan] = []
    yield from run_all(_works(app, traffic_of, goals, unknown), len(app.tables), processes)
    yield from unknown


def _works(
    app: ListedApp,
    traffic_of: Callable[[ListedTable], Traffic | None],
    goals: PlanGoals,
    unknown: list[TablePlan],
) -> Iterator[_Work]:
    """Yield the work of the tables of which enough is known; the others are added to *unknown*."""
    conditions = goals.conditions.without_reserved()
    for table in app.tables:
        plan = TablePlan(name=table.name, stage=table.stage, setup=table.setup)
        if table.setup is None:
            unknown.append(replace(plan, unknown=table.problem))
            continue
        traffic = traffic_of(table)
        problem = does_not_fit(table, traffic, [table.setup]) or conditions.why_unpriced([table.setup])
        if traffic is None or problem:
            unknown.append(replace(plan, unknown=problem))
            continue
        untried = without_windows(table.setup)
        notes = (*table.setup.notes, *assumptions(table.setup, traffic), *traffic.notes, untried)
        plan = replace(plan, notes=tuple(dict.fromkeys(filter(None, notes))), is_idle=traffic.is_idle)
        prices = conditions.prices(table.setup.region)
        yield _Work(plan, table.setup, traffic, goals, prices, conditions.timing)
