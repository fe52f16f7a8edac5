"""A rehearsal of all tables of an app, before and after a change, each under its own traffic."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final, Protocol, TypeVar

from highwater.core import Dimension
from highwater.core.limits import ON_DEMAND_WARM_READ_UNITS, ON_DEMAND_WARM_WRITE_UNITS
from highwater.core.prices import HOURS_PER_MONTH
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.recommend.search import recommend
from highwater_lab.rehearse.outcome import Cheapest, Outcome
from highwater_lab.rehearse.rehearsal import Conditions, assumptions
from highwater_lab.services.billing import scaler_items
from highwater_lab.services.prices import NO_COMMITMENTS, Commitments, Prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import ResourceSetup, TableSetup
from highwater_lab.simulation.simulator import mark_price
from highwater_lab.template import (
    Hazard,
    HazardKind,
    ListedApp,
    ListedTable,
    Remark,
    RemarkKind,
    accept,
    hazards_of,
    is_moved,
    match_tables,
)
from highwater_lab.traffic import Traffic

_Result = TypeVar("_Result", covariant=True)


class TableChange(StrEnum):
    """How a table differs between the two apps."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class UnreadChange:
    """A part of an app that is not read, and that differs between the two apps.

    Attributes:
        remark: What is said of it.
        change: How it differs.
    """

    remark: Remark
    change: TableChange

    @property
    def text(self) -> str:
        """The change in a sentence without a period."""
        return f"{self.remark.text}; it is {self.change}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRehearsal:
    """One table before and after.

    Attributes:
        name: Its name in the app.
        stage: The stage that it belongs to, empty for none.
        change: How its declaration differs; that of a moved table does, whatever its capacity.
        before: Its outcome in the old app; `None` without an old app, if the table is not in it, or if it is unknown.
        after: Its outcome in the new app, likewise.
        setup_before: Its declaration in the old app, `None` if it is not in it, or cannot be read.
        setup_after: Its declaration in the new app, likewise.
        on_demand: Its outcome in on-demand mode, `None` if it is unknown.
        cheapest: The cheapest plan within a limit on throttling, in words with its cost; `None` if none was looked for.
        moved_from: Its name in the old app if it was moved since: to another logical id, stack or address; otherwise
            empty.
        is_idle: Whether nothing is requested of it in the whole time of its traffic.
        unknown: Why nothing is known of it, such as that there is no traffic for it; empty otherwise.
        notes: What a reader should know: parts of the template that were not read, what is assumed of an index without
            traffic of its own, what is missing in the traffic.
    """

    name: str
    stage: str
    change: TableChange
    before: Outcome | None = None
    after: Outcome | None = None
    setup_before: TableSetup | None = None
    setup_after: TableSetup | None = None
    on_demand: Outcome | None = None
    cheapest: Cheapest | None = None
    moved_from: str = ""
    is_idle: bool = False
    unknown: str = ""
    notes: tuple[str, ...] = ()

    @property
    def rise(self) -> float:
        """What it costs more than before, in USD a month; negative if it costs less. A removed table costs nothing."""
        after, before = (0.0 if each is None else each.cost_per_month for each in (self.after, self.before))
        return after - before


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedCost:
    """What a stage pays for every month beside its tables, whatever their traffic is.

    Attributes:
        stage: The stage, empty for stacks outside of stages.
        what: `alarm`, one that a template declares, or `scaler`, whose alarms are counted among these. The alarms of
            target tracking, and of a scaler on the consumption of tables, are part of the tables' costs.
        before: How many there are in the old app, 0 if the app is not compared.
        after: How many there are in the new app.
        usd: The cost of one, USD a month.
    """

    stage: str
    what: str
    before: int
    after: int
    usd: float


@dataclass(frozen=True, slots=True)
class AppRehearsal:
    """The result of `rehearse_app`.

    Attributes:
        tables: The tables, by name.
        against: The name of the old app, as given; empty if the app is not compared.
        traffic: Name, start and minutes of the traffic with the most minutes.
        prices: The regions whose prices were used, with the prices' date.
        commitments: What was bought before. Reserved capacity is subtracted from the sums of an app, as its tables
            share it, and not from the costs of single tables.
        fixed: What is paid for beside the tables; it is part of the sums.
        remarks: What of the new app was not read, or contradicts itself; not what is a hazard.
        unread: What is not read and differs from the old app. Tables that it names are unknown; where it names none,
            any table of its stack may differ, so that the sums of its stage are not known.
        hazards: The parts of the change that AWS refuses, that destroy something, or whose effect is not known; none if
            the app is not compared.
        unaccepted: The accepted kinds and tables, such as `removed=Shop/Orders`, that fit no hazard.
        left_over: The files of traffic, and the tables in them, that fit no table of the app.
    """

    tables: tuple[TableRehearsal, ...]
    against: str
    traffic: str
    prices: str
    commitments: Commitments = NO_COMMITMENTS
    fixed: tuple[FixedCost, ...] = ()
    remarks: tuple[Remark, ...] = ()
    unread: tuple[UnreadChange, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    unaccepted: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()

    def changed(self) -> tuple[TableRehearsal, ...]:
        """Return the known tables whose declaration differs, the greatest difference of the cost first.

        If the app is not compared, it is all known tables, by name.
        """
        known = tuple(table for table in self.tables if not table.unknown)
        if not self.against:
            return known
        differ = (table for table in known if table.change is not TableChange.UNCHANGED)
        return tuple(sorted(differ, key=lambda table: -abs(table.rise)))

    def fixed_changed(self) -> tuple[FixedCost, ...]:
        """Return the fixed costs whose number differs; all of them if the app is not compared."""
        return tuple(each for each in self.fixed if not self.against or each.before != each.after)

    def differs(self) -> bool:
        """Whether anything differs that a reader should see; true if the app is not compared.

        A table, also an unknown one, a fixed cost, a part that is not read, or what AWS refuses or destroys.
        """
        is_same = all(table.change is TableChange.UNCHANGED for table in self.tables)
        return not self.against or not is_same or bool(self.fixed_changed() or self.unread or self.hazards)

    def unknown(self) -> tuple[TableRehearsal, ...]:
        """Return the tables of which nothing is known."""
        return tuple(table for table in self.tables if table.unknown)

    def in_stage(self, stage: str) -> AppRehearsal:
        """Return the rehearsal of one stage."""
        return replace(
            self,
            tables=tuple(table for table in self.tables if table.stage == stage),
            fixed=tuple(each for each in self.fixed if each.stage == stage),
            remarks=tuple(each for each in self.remarks if each.stage == stage),
            unread=tuple(each for each in self.unread if each.remark.stage == stage),
            hazards=tuple(each for each in self.hazards if each.stage == stage),
        )

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages in the order of their names; an empty name stands for stacks outside of stages."""
        stages = {each.stage for each in self.tables} | {each.stage for each in self.fixed}
        stages |= {each.stage for each in self.remarks} | {each.remark.stage for each in self.unread}
        return tuple(sorted(stages))

    @property
    def before(self) -> Outcome | None:
        """The sum of all known tables and fixed costs of the old app; `None` if the app is not compared."""
        if not self.against:
            return None
        fixed = sum(each.before * each.usd for each in self.fixed)
        return _total((table.before for table in self.tables), self.commitments, fixed)

    @property
    def after(self) -> Outcome:
        """The sum of all known tables and fixed costs of the new app."""
        fixed = sum(each.after * each.usd for each in self.fixed)
        return _total((table.after for table in self.tables), self.commitments, fixed)


def _total(outcomes: Iterable[Outcome | None], commitments: Commitments, fixed: float) -> Outcome:
    known = [outcome for outcome in outcomes if outcome is not None]
    return Outcome(
        cost_per_month=sum(each.cost_per_month for each in known) - _covered(known, commitments) + fixed,
        warm_up=sum(each.warm_up for each in known),
        demanded_units=sum(each.demanded_units for each in known),
        throttled_units=sum(each.throttled_units for each in known),
        throttled_minutes=sum(each.throttled_minutes for each in known),
        worst_at=None,
        config_items_per_month=sum(each.config_items_per_month for each in known),
        config_per_month=sum(each.config_per_month for each in known),
        has_config_recorder=any(each.has_config_recorder for each in known),
    )


def _covered(outcomes: Sequence[Outcome], commitments: Commitments) -> float:
    """Return what reserved capacity pays for in a month, of all tables together, in USD."""
    usd = 0.0
    for dimension in Dimension:
        series = [each.hourly[dimension] for each in outcomes if dimension in each.hourly]
        # tables whose traffic is shorter count with their mean, as their months do
        hours = max(map(len, series), default=0)
        means = [sum(each) / len(each) for each in series if each]
        if not hours or not means:
            continue
        whole = [each for each in series if len(each) == hours]
        rest = sum(mean for mean, each in zip(means, series, strict=True) if len(each) != hours)
        reserved = commitments.reserved_units(dimension)
        covered = sum(min(sum(units) + rest, reserved) for units in zip(*whole, strict=True)) / hours
        prices = [each.unit_hour[dimension] for each in outcomes if dimension in each.unit_hour]
        usd += covered * min(prices) * commitments.provisioned_factor * HOURS_PER_MONTH
    return usd


@dataclass(frozen=True, slots=True)
class _Work:
    """The simulations of one table before and after."""

    table: TableRehearsal
    traffic: Traffic
    timing: Timing
    prices: Prices
    cheapest_within: float | None

    def run(self) -> TableRehearsal:
        """Simulate, and return the table with what came out."""
        old, new = self.table.setup_before, self.table.setup_after
        before = None if old is None else self._simulate(old, Declared.name)
        after = None
        if new is not None:
            is_same = old is not None and is_same_capacity(old, new)
            after = before if before is not None and is_same else self._simulate(new, Declared.name)
            if old is not None:
                after = replace(after, warm_up=_warm_up(old, new, self.prices))
        either = new or old
        assert either is not None  # noqa: S101 - a table is in one of the apps
        return replace(
            self.table,
            before=before,
            after=after,
            on_demand=self._simulate(either, OnDemandMode.name),
            cheapest=self._look_for_cheapest(either),
        )

    def _look_for_cheapest(self, setup: TableSetup) -> Cheapest | None:
        if self.cheapest_within is None:
            return None
        best = recommend(
            self._traffic_of(setup),
            table=setup,
            max_throttled_percent=self.cheapest_within,
            table_quota_units=setup.quota_units,
            prices=self.prices,
            timing=self.timing,
            with_scaler=False,
        ).best
        return Cheapest(best.summary, best.cost_per_month, best.throttled_percent, self.cheapest_within)

    def _traffic_of(self, setup: TableSetup) -> Traffic:
        """Return the traffic without that of an index which only the other declaration has."""
        rates = {
            stream: each
            for stream, each in self.traffic.rates.items()
            if stream.index is None or stream.index in setup.indexes
        }
        return replace(self.traffic, rates=rates, counts=None)

    def _simulate(self, setup: TableSetup, policy: str) -> Outcome:
        run = run_policy(policy, setup, self._traffic_of(setup), timing=self.timing, prices=self.prices)
        if setup.is_infrequent_access or policy == OnDemandMode.name or setup.is_on_demand:
            return Outcome.of_run(run)
        # the writes of a global table are replicated ones, which reserved capacity does not cover
        reservable = [each for each in Dimension if each is Dimension.READ or not setup.replicas]
        return Outcome.of_run(run, {each: self.prices.throughput().unit_hour(each) for each in reservable})


def _warm_up(before: TableSetup, after: TableSetup, prices: Prices) -> float:
    """Return the one-time charge in USD for raising the high-water marks above those that the table had before."""
    old = {resource.index: resource for resource in before.resources}
    raised = []
    for resource in after.resources:
        if resource.index in old:
            had = {dimension: _mark(before, old[resource.index], dimension) for dimension in Dimension}
            read = resource.warm_read_units - had[Dimension.READ]
            write = resource.warm_write_units - had[Dimension.WRITE]
            resource = replace(
                resource,
                bought_read_units=max(0, min(resource.bought_read_units, read)),
                bought_write_units=max(0, min(resource.bought_write_units, write)),
            )
        raised.append(resource)
    changed = replace(after, resources=tuple(raised))
    regions = {before.region, *(replica.region for replica in before.replicas)}
    return mark_price(changed, prices) + sum(
        mark_price(changed if replica.region in regions else after, prices.in_region(replica.region))
        for replica in after.replicas
    )


def _mark(setup: TableSetup, resource: ResourceSetup, dimension: Dimension) -> int:
    """Return the high-water mark of a target: the one that is declared, at least that of a new table."""
    is_read, target = dimension is Dimension.READ, resource.target(dimension)
    declared = resource.warm_read_units if is_read else resource.warm_write_units
    if setup.is_on_demand:
        return max(declared, ON_DEMAND_WARM_READ_UNITS if is_read else ON_DEMAND_WARM_WRITE_UNITS)
    return max(declared, target.units, target.min)


def is_same_capacity(one: TableSetup, other: TableSetup) -> bool:
    """Whether two declarations of a table are equal in all that a rehearsal looks at."""
    return replace(one, notes=(), name="") == replace(other, notes=(), name="")


def rehearse_app(
    after: ListedApp,
    traffic_of: Callable[[ListedTable], Traffic | None],
    *,
    before: ListedApp | None = None,
    against: str = "",
    conditions: Conditions = Conditions(),  # noqa: B008 - a value
    cheapest_within: float | None = None,
    accepted: Sequence[str] = (),
    left_over: tuple[str, ...] = (),
    processes: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AppRehearsal:
    """Rehearse every table of an app, and of the app before a change.

    Args:
        after: The app.
        traffic_of: Returns a table's traffic, `None` if it is not known: the table then counts as unknown.
        before: The old app; `None` to compare with nothing.
        against: The name of the old app in reports; needed with *before*.
        conditions: The delays of AWS, and the prices. Reserved capacity is shared by the tables.
        cheapest_within: The highest percentage of throttled units of the cheapest plan that is searched for; by
            default none is. A search simulates tens of plans.
        accepted: The hazards that are meant, each by its kind and table: `removed=Prod/Shop/Orders`.
        left_over: As in `AppRehearsal`.
        processes: How many processes simulate at once, 1 or more; by default one for each processor.
        progress: Called with the number of tables done and their total.

    Raises:
        PriceError: The prices cannot be read, or the file has none of the conditions' own region. A table of another
            region without prices counts as unknown.
    """
    old_tables = () if before is None else before.tables
    unread = () if before is None else unread_changes(before, after)
    every: tuple[Hazard, ...] = ()
    if before is not None:
        every = hazards_of(
            old_tables, after.tables, after.remarks, after.plans, absent=after.absent, stacks=after.stacks
        )
    hazards, unaccepted = accept(every, accepted)
    twice = {each.table for each in hazards if each.kind is HazardKind.TWO_TARGETS}
    # reserved capacity is subtracted from the sum of the tables
    prices_of = cache(conditions.without_reserved().prices)
    known: list[_Work] = []
    tables: dict[tuple[str, TableChange], TableRehearsal] = {}
    spans: list[Traffic] = []
    for old, new in match_tables(old_tables, after.tables):
        listed = _listed(old, new, is_compared=before is not None)
        if listed.change is TableChange.UNCHANGED and any(each.table == listed.name for each in hazards):
            listed = replace(listed, change=TableChange.CHANGED)
        names = {each.name for each in (old, new) if each is not None}
        named = [each.text for each in unread if names & set(each.remark.tables)]
        if named:
            listed = replace(listed, change=TableChange.CHANGED, unknown="; ".join(named))
        # a removed table may have the name to which another one was moved
        key = (listed.name, listed.change)
        tables[key] = listed
        if listed.unknown:
            continue
        table = new or old
        assert table is not None  # noqa: S101 - a table is in one of the apps
        traffic = traffic_of(table)
        setups = (listed.setup_before, listed.setup_after)
        declared = [setup for setup in setups if setup is not None]
        problem = does_not_fit(table, traffic, declared) or conditions.why_unpriced(declared)
        if traffic is None or problem:
            tables[key] = replace(listed, unknown=problem)
            continue
        spans.append(traffic)
        notes = (*listed.notes, *assumptions(setups[1] or setups[0], traffic), *traffic.notes)
        tables[key] = replace(listed, notes=tuple(dict.fromkeys(notes)), is_idle=traffic.is_idle)
        prices = prices_of(table.setup and table.setup.region)
        known.append(_Work(tables[key], traffic, conditions.timing, prices, cheapest_within))
    for done, each in enumerate(run_all(known, len(known), processes), 1):
        tables[each.name, each.change] = each
        if progress is not None:
            progress(done, len(known))
    return AppRehearsal(
        tables=tuple(tables[key] for key in sorted(tables)),
        against=against if before is not None else "",
        traffic=_span(spans),
        prices="; ".join(sorted({each.prices.name for each in known})),
        commitments=conditions.commitments,
        fixed=_fixed(
            after.fixed,
            after.fixed if before is None else before.fixed,
            # alarms and functions cost the same in all regions of the file
            lambda: known[0].prices if known else prices_of(None),
        ),
        remarks=tuple(
            each for each in after.remarks if each.kind is not RemarkKind.TWO_TARGETS or not twice & set(each.tables)
        ),
        unread=unread,
        hazards=hazards,
        unaccepted=unaccepted,
        left_over=left_over,
    )


_COMPARED: Final = (RemarkKind.NOT_READ, RemarkKind.VOUCHED, RemarkKind.ON_DEMAND)


def unread_changes(before: ListedApp, after: ListedApp) -> tuple[UnreadChange, ...]:
    """Return what is not read and differs between two apps, in the order of the new one.

    What a person vouches for in the new app, and what is there beside tables on demand alone, changes nothing.
    """
    old, new = (
        {remark.key: remark for remark in (*app.remarks, *app.beside_on_demand) if remark.kind in _COMPARED}
        for app in (before, after)
    )
    changes = []
    for key in dict.fromkeys((*new, *old)):
        one, other = old.get(key), new.get(key)
        present = other or one
        if present is None or present.kind is not RemarkKind.NOT_READ:
            continue
        if one is None:
            changes.append(UnreadChange(present, TableChange.ADDED))
        elif other is None:
            changes.append(UnreadChange(present, TableChange.REMOVED))
        elif one.content != other.content:
            tables = tuple(dict.fromkeys((*one.tables, *other.tables))) if one.tables and other.tables else ()
            changes.append(UnreadChange(replace(other, tables=tables), TableChange.CHANGED))
    return tuple(changes)


def _fixed(
    after: Mapping[tuple[str, str], int], before: Mapping[tuple[str, str], int], prices_of: Callable[[], Prices]
) -> tuple[FixedCost, ...]:
    if not after and not before:
        return ()
    prices = prices_of()
    usd = {"alarm": prices.alarm_month, "scaler": sum(scaler_items(prices).values())}
    return tuple(
        FixedCost(stage=stage, what=what, before=before.get(key, 0), after=after.get(key, 0), usd=usd[what])
        for key in sorted(after.keys() | before.keys())
        for stage, what in [key]
    )


def _listed(old: ListedTable | None, new: ListedTable | None, *, is_compared: bool) -> TableRehearsal:
    either = new or old
    assert either is not None  # noqa: S101 - a table is in one of the apps
    problems = [each.problem for each in (new, old) if each is not None and each.problem]
    change = TableChange.CHANGED
    moved_from = old.name if old is not None and new is not None and is_moved(old, new) and _is_known(new) else ""
    if is_compared and old is None:
        change = TableChange.ADDED
    elif is_compared and new is None:
        change = TableChange.REMOVED
    elif not is_compared or (old is not None and new is not None and not moved_from and _is_same(old, new)):
        change = TableChange.UNCHANGED
    return TableRehearsal(
        name=either.name,
        stage=either.stage,
        change=change,
        moved_from=moved_from,
        setup_before=None if old is None else old.setup,
        setup_after=None if new is None else new.setup,
        unknown="; ".join(dict.fromkeys(problems)),
        notes=() if either.setup is None else either.setup.notes,
    )


def _is_known(new: ListedTable) -> bool:
    """Whether a table at another address is the same one: two Terraform states do not say."""
    return new.deployed.planned is not None or not new.dialect.words


def _is_same(old: ListedTable, new: ListedTable) -> bool:
    """Whether a table is declared as before; of one that cannot be read, whether it is for the same reason."""
    if old.setup is None or new.setup is None:
        return old.setup is new.setup and old.problem == new.problem
    return is_same_capacity(old.setup, new.setup)


def does_not_fit(table: ListedTable, traffic: Traffic | None, setups: Sequence[TableSetup]) -> str:
    """Return why a table cannot be simulated under a traffic; empty if it can."""
    if traffic is None:
        names = ", ".join(dict.fromkeys(filter(None, (table.physical, table.name))))
        return f"there is no traffic of {names}"
    if traffic.is_unknown:
        return traffic.notes[0]
    for stream in traffic.rates:
        if stream.index is not None and not any(stream.index in setup.indexes for setup in setups):
            return f"traffic {traffic.name} has a column {stream.label}, and the table has no such index"
    return ""


class Work(Protocol[_Result]):
    """The simulations of one table; picklable, as other processes carry them out."""

    def run(self) -> _Result:
        """Simulate, and return what came out."""


def run_all(work: Iterable[Work[_Result]], tables: int, processes: int | None) -> Iterator[_Result]:
    """Yield what comes out as it is ready, and take further work meanwhile.

    Args:
        work: That of each table.
        tables: How many there are at most.
        processes: How many processes simulate at once; by default one for each processor.
    """
    most = min(processes or os.cpu_count() or 1, tables)
    if most <= 1:
        yield from (each.run() for each in work)
        return
    pool = ProcessPoolExecutor(
        most,
        # a fork would copy the locks of the thread that draws the progress
        mp_context=multiprocessing.get_context("spawn"),
        # Ctrl-C ends this process, which ends the others
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    try:
        pending: set[Future[_Result]] = set()
        for each in work:
            pending.add(pool.submit(each.run))
            finished, pending = wait(pending, timeout=0)
            yield from (future.result() for future in finished)
        yield from (future.result() for future in as_completed(pending))
    finally:
        pool.shutdown(cancel_futures=True)


def _span(traffics: Sequence[Traffic]) -> str:
    if not traffics:
        return "no traffic"
    longest = max(traffics, key=lambda each: each.minutes)
    days = longest.minutes / 1440
    return f"{days:.1f} days from {longest.start:%a %Y-%m-%d %H:%M} UTC"
