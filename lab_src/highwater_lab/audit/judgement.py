"""Judges one table by its past traffic: what it wastes and throttles, and the change that ends it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

from highwater.core import Dimension
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.audit.account import LiveTable
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.recommend.bounds import least_usd
from highwater_lab.recommend.candidates import Candidate
from highwater_lab.recommend.code import code_of, managed_code_of
from highwater_lab.recommend.hcl import hcl_of
from highwater_lab.recommend.search import recommend
from highwater_lab.services.billing import bill
from highwater_lab.services.commitments import CapacityHours
from highwater_lab.services.prices import Prices, RegionPrices
from highwater_lab.simulation import ResourceSetup, Run, simulate
from highwater_lab.simulation.plans import declared_plan
from highwater_lab.simulation.remedies import REMEDIES, Bottleneck
from highwater_lab.simulation.run import percent_text
from highwater_lab.traffic import Stream, Usage


class Kind(StrEnum):
    """What is wrong with a table."""

    THROTTLES = "throttles"
    NO_SCALING = "no scaling"
    WASTE = "waste"
    MODE = "mode"
    WINDOWS = "windows"
    CLASS = "class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an audit looks for; one folder holds the answers to one question.

    Attributes:
        days: Number of past days, 1 or more.
        max_throttled: The percentage of requests above which a table throttles too much.
        least_gain: The USD a month that a change of a table saves at least to be worth a finding.
        timezone: IANA time zone of recurring surges and of windows.
        language: The code that is written, `cdk` or `hcl`.
        has_savings_plan: Whether a Database Savings Plan lowers the prices.
        prices_file: The file of prices, empty for the lab's.
    """

    days: int
    max_throttled: float
    least_gain: float
    timezone: str
    language: str
    has_savings_plan: bool
    prices_file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """Something to change.

    Attributes:
        kind: What it is about.
        what: It in a sentence.
        gain_usd: What the change saves, in USD a month; negative if it costs more.
        throttled_before: Requests that were throttled, as CloudWatch counted, for a month.
        throttled_after: Units that the change throttles in a simulation of the same traffic, for a month.
        code: The code of the change; empty if no change of capacity ends it.
    """

    kind: Kind
    what: str
    gain_usd: float
    throttled_before: float
    throttled_after: float
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is known of a table.

    Attributes:
        account: The account's number.
        region: The region.
        table: The table's name.
        cost_usd: What its throughput costs by its present settings, in USD a month; `None` if it was not judged.
        is_idle: Whether nothing was requested from it.
        findings: What to change, the most dollars first. The findings of a table exclude each other.
        problem: Why it was not judged, empty if it was.
        capacity: Its capacity in each hour, after the change that saves most; `None` if it was not judged.
        is_infrequent_access: Whether its class is then Standard-IA.
    """

    account: str
    region: str
    table: str
    cost_usd: float | None = None
    is_idle: bool = False
    findings: tuple[AuditFinding, ...] = ()
    problem: str = ""
    capacity: CapacityHours | None = None
    is_infrequent_access: bool = False

    def document(self) -> dict[str, Any]:
        """Return it as JSON-ready values, without the capacity of each hour."""
        members = asdict(replace(self, capacity=None))
        del members["capacity"]
        return members

    @property
    def label(self) -> str:
        """The account, the region and the name."""
        return f"{self.account}/{self.region}/{self.table}"

    @property
    def gain_usd(self) -> float:
        """What the best change of the table saves, in USD a month."""
        return max((0.0, *(each.gain_usd for each in self.findings)))


# More than anything costs
_ANY_PRICE: Final = 1e12
_IDLE_MINUTES: Final = 1440


def judge(table: LiveTable, usage: Usage, question: Question, prices: Prices) -> Judgement:
    """Judge a table that has no problem by its traffic; *prices* are those of its region, of both table classes."""
    if usage.traffic.is_unknown:
        return Judgement(
            account=table.account,
            region=table.region,
            table=table.name,
            problem=usage.traffic.notes[0],
        )
    work = _Work(table, usage, question, prices)
    findings = sorted(work.findings(), key=lambda finding: -finding.gain_usd)
    capacity, is_infrequent_access = work.after(findings[0] if findings else None)
    return Judgement(
        account=table.account,
        region=table.region,
        table=table.name,
        cost_usd=round(work.cost, 2),
        is_idle=work.is_idle,
        findings=tuple(findings),
        capacity=capacity,
        is_infrequent_access=is_infrequent_access,
    )


class _Work:
    """The simulations of one table."""

    def __init__(self, table: LiveTable, usage: Usage, question: Question, prices: Prices) -> None:
        self._table, self._setup, self._traffic = table, table.setup, usage.traffic
        self._question, self._prices = question, prices
        # plans are for the class that the table has
        own = prices.throughput(is_infrequent_access=table.setup.is_infrequent_access)
        same = RegionPrices(standard=own, infrequent_access=own)
        self._class_prices = replace(prices, regions={**prices.regions, prices.region: same})
        self._units = {stream: self._traffic.total_units(stream) for stream in self._traffic.rates}
        self.is_idle = not any(self._units.values())
        if self.is_idle:
            nothing = array("q", bytes(8 * _IDLE_MINUTES))
            self._traffic = replace(self._traffic, rates=dict.fromkeys(self._traffic.rates, nothing), counts=None)
        self._hours = usage.traffic.minutes // 60
        self._changed: dict[AuditFinding, CapacityHours] = {}
        self._months = HOURS_PER_MONTH * 60 / self._traffic.minutes
        self._throttled = sum(usage.throttled.values())
        self._now = simulate(self._setup, self._traffic, Declared(), prices=prices)
        self.cost = self._now.bill.per_month

    def findings(self) -> Iterator[AuditFinding]:
        """Yield what to change."""
        unscaled = None if self.is_idle else self._without_scaling()
        if unscaled is not None:
            yield unscaled
        # the scaling that is missing may be all that throttles
        is_cured = unscaled is not None and self._is_within(unscaled.throttled_after / self._months)
        if not self._is_within(self._throttled) and not is_cured:
            yield self._throttling()
        elif self._is_within(self._throttled) and (cheaper := self._cheaper(self.cost - self._question.least_gain)):
            yield self._saving(cheaper)
        if (other_class := self._other_class()) is not None:
            yield other_class

    def after(self, finding: AuditFinding | None) -> tuple[CapacityHours, bool]:
        """Return the capacity of each hour, and whether the class is Standard-IA, after a change, `None` for none."""
        capacity = self._now.capacity_hours
        is_infrequent_access = self._setup.is_infrequent_access
        if finding is not None:
            capacity = self._changed.get(finding, capacity)
            is_infrequent_access ^= finding.kind is Kind.CLASS
        # an idle table was simulated for a day
        return capacity.repeated(self._hours) if self.is_idle else capacity, is_infrequent_access

    def _is_within(self, throttled: float) -> bool:
        return throttled * 100 <= self._question.max_throttled * sum(self._units.values())

    def _finding(
        self,
        kind: Kind,
        what: str,
        cost: float,
        throttled_after: float,
        code: str = "",
        capacity: CapacityHours | None = None,
    ) -> AuditFinding:
        finding = AuditFinding(
            kind=kind,
            what=what,
            gain_usd=round(self.cost - cost, 2),
            throttled_before=round(self._throttled * self._months, 1),
            throttled_after=round(throttled_after * self._months, 1),
            code=code,
        )
        if capacity is not None:
            self._changed[finding] = capacity
        return finding

    def _without_scaling(self) -> AuditFinding | None:
        """Return the finding about capacity that nothing scales, beside a table that is scaled, and that needs it."""
        own = self._setup.resources[0]
        if self._setup.is_on_demand or not any(own.target(dimension).tracking for dimension in Dimension):
            return None
        changed: list[str] = []
        resources = tuple(self._scaled(resource, own, changed) for resource in self._setup.resources)
        if not changed:
            return None
        scaled = replace(self._setup, resources=resources)
        run = simulate(scaled, self._traffic, Declared(), prices=self._prices)
        if self._question.language == "hcl":
            plan = declared_plan(scaled, attrgetter("capacity"))
            code = hcl_of(Candidate.of_run(plan, run), scaled)
        else:
            code = managed_code_of(scaled)
        what = f"nothing scales {', '.join(changed)}, beside a table that is scaled"
        capacity = run.capacity_hours
        return self._finding(Kind.NO_SCALING, what, run.bill.per_month, run.throttled_units, code, capacity)

    def _scaled(self, resource: ResourceSetup, own: ResourceSetup, changed: list[str]) -> ResourceSetup:
        """Return a resource whose busy targets are scaled as the table's are, and add their names to *changed*."""
        targets = []
        for dimension in Dimension:
            target, stream = resource.target(dimension), Stream(resource.index, dimension)
            model = own.target(dimension)
            tracking = model.tracking or own.target(_other(dimension)).tracking
            busiest = self._traffic.busiest_minute(stream) if self._units.get(stream) else 0.0
            if target.tracking is None and tracking and busiest * 100 > target.units * tracking.target_percent:
                changed.append(f"{resource.label} {dimension} ({target.units:,} fixed, up to {busiest:,.0f} requested)")
                if model.tracking is None:
                    need = -(-int(busiest + 1) * 100 // tracking.target_percent)
                    model = replace(target, min=target.units, max=max(target.units, 2 * need))
                target = replace(model, units=target.units, tracking=tracking, is_scaled=True)
            targets.append(target)
        return resource.with_targets(*targets)

    def _throttling(self) -> AuditFinding:
        percent = 100 * self._throttled / sum(self._units.values())
        what = f"{percent_text(percent)} % of the requests were throttled"
        if self._is_within(self._now.throttled_units):
            what += f"; {REMEDIES[Bottleneck.BETWEEN_MINUTES]}"
            return self._finding(Kind.THROTTLES, what, self.cost, self._throttled)
        found = self._cheaper(_ANY_PRICE)
        if found is None:
            return self._finding(Kind.THROTTLES, f"{what}; no plan keeps the limit", self.cost, self._throttled)
        after = found.throttled_percent / 100 * self._demanded
        what += f"; {found.summary} is enough"
        return self._finding(Kind.THROTTLES, what, found.cost_per_month, after, self._code(found), found.hours)

    @property
    def _demanded(self) -> float:
        return self._now.demanded_units

    def _saving(self, found: Candidate) -> AuditFinding:
        after = found.throttled_percent / 100 * self._demanded
        has_windows = any(r.target(d).actions for r in self._setup.resources for d in Dimension)
        mode = "on demand" if self._setup.is_on_demand else "provisioned"
        if (found.plan is None) != self._setup.is_on_demand:
            kind, what = Kind.MODE, f"it is {mode}; {found.summary} costs less"
            what = what if not self.is_idle else "it is provisioned, and nothing was requested; on-demand costs nothing"
        elif found.plan is not None and found.plan.windows and not has_windows:
            kind, what = Kind.WINDOWS, f"surges come again at the same hours; {found.summary} costs less"
        else:
            kind, what = Kind.WASTE, f"it has more capacity than it needs; {found.summary} is enough"
        return self._finding(kind, what, found.cost_per_month, after, self._code(found), found.hours)

    def _cheaper(self, below_usd: float) -> Candidate | None:
        """Return the cheapest plan or mode within the limit on throttling, and at most of that cost.

        The search is left out where bounds show that it finds nothing.
        """
        if below_usd < 0:
            return None
        limit, prices = self._question.max_throttled, self._class_prices
        on_demand = self._on_demand() if self._on_demand_usd() <= below_usd else None
        most = below_usd if on_demand is None else min(below_usd, on_demand.cost_per_month)
        found: Candidate | None = None
        can_search = not self._table.is_bound_to_on_demand and not self.is_idle
        if can_search and least_usd(self._traffic, prices, limit) < most:
            best = recommend(
                self._traffic,
                max_throttled_percent=limit,
                timezone=self._question.timezone,
                prices=prices,
                below_usd=most,
            )
            found = best.best if best.is_within_limit and best.best.cost_per_month <= most else None
        return found or on_demand

    def _on_demand_usd(self) -> float:
        prices = self._class_prices.throughput()
        units = ((prices.on_demand_million(stream.dimension), units) for stream, units in self._units.items())
        return (
            sum(price * each for price, each in units) / 1e6 * self._months * self._prices.commitments.on_demand_factor
        )

    def _on_demand(self) -> Candidate | None:
        run = simulate(self._setup, self._traffic, OnDemandMode(), prices=self._prices)
        return None if run.throttled_percent > self._question.max_throttled else Candidate.of_run(None, run)

    def _code(self, found: Candidate) -> str:
        return hcl_of(found, self._setup) if self._question.language == "hcl" else code_of(found, self._setup)

    def _other_class(self) -> AuditFinding | None:
        """Return the finding about the other table class; without prices of storage there is none."""
        is_infrequent = self._setup.is_infrequent_access
        costs = [self._class_usd(self._now, is_infrequent_access=each) for each in (is_infrequent, not is_infrequent)]
        if costs[0] is None or costs[1] is None or costs[0] - costs[1] < self._question.least_gain:
            return None
        name = "Standard" if is_infrequent else "Standard-IA"
        what = f"it stores {self._table.size_gb:,.0f} GB and costs less in the class {name}"
        value = "STANDARD" if is_infrequent else "STANDARD_INFREQUENT_ACCESS"
        code = f'table_class = "{value}"\n' if self._question.language == "hcl" else f"dynamodb.TableClass.{value}\n"
        return self._finding(Kind.CLASS, what, self.cost - (costs[0] - costs[1]), self._throttled, code)

    def _class_usd(self, run: Run, *, is_infrequent_access: bool) -> float | None:
        """Return what throughput and storage cost in a class, in USD a month, without the 25 GB that are free."""
        storage = self._prices.throughput(is_infrequent_access=is_infrequent_access).storage_gb_month
        if storage is None:
            return None
        is_on_demand = self._setup.is_on_demand
        peaks = [] if is_on_demand else [(each.dimension, each.hour_peaks) for each in run.targets]
        requested = [(each.dimension, each.consumed_units) for each in run.targets] if is_on_demand else []
        billed = bill(
            self._prices,
            peaks,
            requested,
            hours=len(run.targets[0].hour_peaks),
            seconds=run.minutes * 60,
            is_infrequent_access=is_infrequent_access,
        )
        return billed.per_month + storage * self._table.size_gb


def _other(dimension: Dimension) -> Dimension:
    return Dimension.READ if dimension is Dimension.WRITE else Dimension.WRITE
