"""A rehearsal: simulations of a template's own scaling and of alternative policies, under the same traffic.

HighwaterError
└── RehearsalError (also a ValueError): the options or the traffic do not match the template's table
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from highwater.core import Dimension, HighwaterError
from highwater_lab.physics import KeyDistribution
from highwater_lab.policies.catalogue import find_policy, run_policy
from highwater_lab.policies.clairvoyant import NAME as CLAIRVOYANT
from highwater_lab.policies.declared import Declared
from highwater_lab.rehearse.jobs import PlannedBoost, PlannedJob, boosts_of, jobs_of, leases_of
from highwater_lab.services.prices import (
    DEFAULT_REGION,
    NO_COMMITMENTS,
    Commitments,
    NoPricesError,
    Prices,
    load_prices,
)
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Buffer, Run, TableSetup
from highwater_lab.template import find_table, load_templates
from highwater_lab.traffic import Stream, Traffic, read_traffic

# The names of the runs that show what a queue and what shards save
WITHOUT_QUEUE: Final = "without queue"
WITHOUT_SHARDS: Final = "without shards"


class RehearsalError(HighwaterError, ValueError):
    """The options or the traffic do not match the template's table, or each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of a simulation that neither the template nor the traffic says.

    Attributes:
        timing: The delays of the AWS services.
        price_region: The region whose prices apply; by default the table's own.
        region: The region of a table whose template does not say it; by default us-east-1.
        prices_file: The file of prices; by default the lab's.
        commitments: Reserved capacity and savings plans. By default none.
        has_config_recorder: Whether AWS Config records each change of tables and alarms. By default it does not.
        table_quota_units: The account's quota of units per table and index; by default that of the setup.
        account_quota_units: The account's quota of all provisioned units; by default that of the setup.
    """

    timing: Timing = field(default_factory=Timing)
    price_region: str | None = None
    region: str | None = None
    prices_file: Path | None = None
    commitments: Commitments = NO_COMMITMENTS
    has_config_recorder: bool = False
    table_quota_units: int | None = None
    account_quota_units: int | None = None

    def prices(self, region: str | None) -> Prices:
        """Return the prices of a table in *region*, `None` if that is not known.

        Raises `PriceError` if they cannot be read, or the file has none of the region.
        """
        chosen = self.price_region or region or self.region or DEFAULT_REGION
        return load_prices(chosen, self.prices_file).committed(
            self.commitments, has_config_recorder=self.has_config_recorder
        )

    def why_unpriced(self, setups: Iterable[TableSetup]) -> str:
        """Return which region of these tables, or of their replicas, has no prices; empty if all have.

        Raises `PriceError` if the prices cannot be read, or the file has none of `price_region`.
        """
        if self.price_region is not None:
            self.prices(None)
        try:
            for setup in setups:
                prices = self.prices(setup.region)
                for replica in setup.replicas:
                    prices.in_region(replica.region)
        except NoPricesError as error:
            return str(error)
        return ""

    def without_reserved(self) -> Conditions:
        """Return these conditions without reserved capacity."""
        return replace(self, commitments=Commitments(has_savings_plan=self.commitments.has_savings_plan))


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result of `rehearse`.

    Attributes:
        setup: The table as read from the template, with the options applied.
        traffic: The simulated traffic.
        runs: The run of the policy `declared`; the same without the queue and without shards, if the table has these;
            then one run per compared policy, in the order given.
        prices: The prices behind all costs.
    """

    setup: TableSetup
    traffic: Traffic
    runs: tuple[Run, ...]
    prices: Prices

    @property
    def declared(self) -> Run:
        """The run of the policy `declared`: the template's own capacity, targets and scaler."""
        return self.runs[0]

    @property
    def throttled_percent(self) -> float:
        """The percentage of requested units that the policy `declared` throttles."""
        return self.declared.throttled_percent

    @property
    def cost_per_month(self) -> float:
        """The cost of the policy `declared` in USD a month, without one-time charges."""
        return self.declared.bill.per_month


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is asked of a table beside its traffic, and how its requests lie.

    Attributes:
        keys: The distribution of requests over keys, by index, with `None` for the table; by default uniform.
        write_share_percent: By index, the units written to the index per 100 units written to the table, 0 or more;
            by default 100.
        size_gb: The data in the table at the start, in GB; by default that of the setup.
        new_items_percent: The percentage of written units that add a kilobyte of new data each.
        boosts: Boosts that jobs would request, in the policy `declared`. By default none.
        jobs: Background work in addition to the traffic, in every policy; the boosts of boosted jobs, in `declared`
            only. By default none.
        buffer: A queue that all writes to the table pass through. By default that of the template's `BufferedWrites`.
    """

    keys: Mapping[str | None, KeyDistribution] = field(default_factory=dict)
    write_share_percent: Mapping[str, int] = field(default_factory=dict)
    size_gb: int = 0
    new_items_percent: int = 0
    boosts: Sequence[PlannedBoost] = ()
    jobs: Sequence[PlannedJob] = ()
    buffer: Buffer | None = None


def rehearse(
    template: str | Path | TableSetup,
    traffic: str | Path | Traffic,
    *,
    table: str | None = None,
    likely_table: str | None = None,
    parameters: Mapping[str, str] | None = None,
    targets: Mapping[str, str] | None = None,
    compare: Sequence[str] = (),
    workload: Workload = Workload(),
    conditions: Conditions = Conditions(),
    progress: Callable[[int, int], None] | None = None,
) -> Rehearsal:
    """Rehearse a table of a template (a `cdk.out` folder or a file) under traffic (a CSV file or `Traffic`).

    Args:
        template: The path of the template, or a table set up in Python.
        traffic: The requests to the table and its indexes.
        table: The path of the table's construct or any end of it, its logical id or the start of it, or its name;
            needed only if the template has more than one table.
        likely_table: The same, but ignored if the template has no such table.
        parameters: Values of the template's parameters; by default the template's own defaults.
        targets: By the logical id of a scalable target the name of its table, if the template leaves that open.
        compare: Names of further policies to simulate: `native:50`, `on-demand`, `clairvoyant`, ...
        workload: What is asked of the table beside the traffic, and how its requests lie. By default nothing is, and
            they are spread evenly.
        conditions: The delays of AWS, quotas and prices. By default those of `Conditions`.
        progress: Called from time to time with the minutes simulated and their total over all runs.

    Raises:
        TemplateError: The template cannot be read.
        TrafficError: The traffic cannot be read.
        RehearsalError: The traffic, or a key, share, boost or job of *workload*, names an index that the table does not
            have, a boost is for capacity that nothing scales, no job begins within the traffic, or nothing is written
            through the queue.
        LeaseError: A boost is longer than a day, or for no units.
        PriceError: The prices cannot be read, or the file has none of a region.
        PolicyError: A policy in *compare* is unknown.
    """
    if isinstance(template, TableSetup):
        setup = template
    else:
        setup = find_table(
            load_templates(Path(template)), name=table, likely=likely_table, parameters=parameters, targets=targets
        )
    series = traffic if isinstance(traffic, Traffic) else read_traffic(Path(traffic))
    setup = _with_workload(setup, workload)
    notes = assumptions(setup, series, known=workload.write_share_percent)
    if setup.scaler is not None:
        notes.append(f"the policy 'declared' includes the template's scaler, in {setup.scaler.mode.upper()} mode")
    setup = replace(setup, notes=(*setup.notes, *notes))
    setup = _with_quotas(setup, conditions.table_quota_units, conditions.account_quota_units)
    for stream in series.rates:
        if stream.index is not None and stream.index not in setup.indexes:
            raise RehearsalError(
                f"traffic {series.name} has a column {stream.label}, but table {setup.name} has "
                f"{'only the indexes ' + ', '.join(setup.indexes) if setup.indexes else 'no index'}; remove the column"
            )
    boosts = (*workload.boosts, *boosts_of(workload.jobs, setup))
    setup = _with_jobs(_with_boosts(setup, boosts, series), workload.jobs, series)
    setup = _with_buffer(setup, workload.buffer, series)
    names = [name for name in dict.fromkeys(compare) if name != Declared.name]
    for name in names:
        if name != CLAIRVOYANT:
            find_policy(name)  # raises for an unknown name before the first run, which may take minutes
    prices = conditions.prices(setup.region)
    plans = [(Declared.name, Declared.name, setup)]
    if setup.buffer is not None:
        plans.append((WITHOUT_QUEUE, Declared.name, replace(setup, buffer=None)))
    if any(resource.keys.shards > 1 for resource in setup.resources):
        plans.append((WITHOUT_SHARDS, Declared.name, _without_shards(setup)))
    plans += [(name, name, setup) for name in names]
    runs = []
    for number, (name, policy, planned) in enumerate(plans):
        minutes_before = number * series.minutes

        def report_progress(minutes: int, _: int, minutes_before: int = minutes_before) -> None:
            if progress is not None:
                progress(minutes_before + minutes, series.minutes * len(plans))

        run = run_policy(policy, planned, series, timing=conditions.timing, prices=prices, progress=report_progress)
        runs.append(replace(run, policy=name))
    return Rehearsal(setup, series, tuple(runs), prices)


def assumptions(setup: TableSetup | None, traffic: Traffic, *, known: Container[str] = ()) -> list[str]:
    """Return what is assumed of each index whose writes the traffic does not have, in a sentence each.

    None of the indexes in *known*, whose share the user says.
    """
    if setup is None or not any(traffic.rates.get(Stream(None, Dimension.WRITE), ())):
        return []
    return [
        f"the traffic has no column writes:{resource.index}: {resource.write_share_percent} % of the units written to "
        f"the table are assumed to be written to index {resource.index}, too; say what is true in such a column, or "
        f"with --index-share {resource.index}=PERCENT of highwater simulate"
        for resource in setup.resources
        if resource.index is not None
        and resource.index not in known
        and Stream(resource.index, Dimension.WRITE) not in traffic.rates
    ]


def _with_boosts(setup: TableSetup, boosts: Sequence[PlannedBoost], traffic: Traffic) -> TableSetup:
    scaled = {
        (resource.index, dimension)
        for resource in setup.resources
        for dimension in Dimension
        if resource.target(dimension).can_be_raised and not setup.is_on_demand
    }
    for boost in boosts:
        if (boost.index, boost.dimension) not in scaled:
            raise RehearsalError(
                f"boost {boost.label}: nothing scales that capacity of {setup.name}, so a boost cannot raise it; "
                "declare it as autoscaled"
            )
    return replace(setup, leases=leases_of(boosts, setup.name, traffic))


def _with_jobs(setup: TableSetup, jobs: Sequence[PlannedJob], traffic: Traffic) -> TableSetup:
    for job in jobs:
        if job.index is not None and job.index not in setup.indexes:
            raise RehearsalError(
                f"job {job.label}: table {setup.name} has no index {job.index!r}; its indexes: "
                f"{', '.join(setup.indexes) or 'none'}"
            )
        if setup.is_on_demand and job.percent is not None:
            raise RehearsalError(
                f"job {job.label}: {setup.name} is on demand, so there is no capacity to have a share of; give units "
                "per second"
            )
        if not jobs_of([job], traffic):
            end = traffic.start + timedelta(minutes=traffic.minutes)
            raise RehearsalError(
                f"job {job.label}: does not begin within the traffic, from {traffic.start:%Y-%m-%d %H:%M} to "
                f"{end:%Y-%m-%d %H:%M} UTC"
            )
    return replace(setup, jobs=jobs_of(jobs, traffic))


def _with_buffer(setup: TableSetup, buffer: Buffer | None, traffic: Traffic) -> TableSetup:
    chosen = buffer or setup.buffer
    if chosen is None:
        return setup
    if Stream(None, Dimension.WRITE) not in traffic.rates:
        if buffer is not None:
            raise RehearsalError(f"traffic {traffic.name} has no writes for the queue; give a column writes")
        return replace(setup, buffer=None)
    note = f"all writes pass through a queue, at {chosen.units:,} write units a second"
    return replace(setup, buffer=chosen, notes=(*setup.notes, note))


def _with_workload(setup: TableSetup, workload: Workload) -> TableSetup:
    keys, shares = workload.keys, workload.write_share_percent
    for index in (*(i for i in keys if i is not None), *shares):
        if index not in setup.indexes:
            raise RehearsalError(
                f"table {setup.name} has no index {index!r}; its indexes: {', '.join(setup.indexes) or 'none'}"
            )
    return replace(
        setup,
        size_gb=workload.size_gb or setup.size_gb,
        new_items_percent=workload.new_items_percent or setup.new_items_percent,
        resources=tuple(
            replace(
                resource,
                keys=keys.get(resource.index, resource.keys),
                write_share_percent=shares.get(resource.index or "", resource.write_share_percent),
            )
            for resource in setup.resources
        ),
    )


def _without_shards(setup: TableSetup) -> TableSetup:
    return replace(setup, resources=tuple(replace(each, keys=each.keys.without_shards()) for each in setup.resources))


def _with_quotas(setup: TableSetup, table_quota: int | None, account_quota: int | None) -> TableSetup:
    """Return the setup with these quotas, and with a note for each ceiling above the quota per table."""
    table_units = setup.quota_units if table_quota is None else table_quota
    notes = [
        f"{resource.label} {dimension}: the ceiling {resource.target(dimension).max:,} is above the quota of "
        f"{table_units:,} units per table; if your account's quota is higher, give it with --table-quota"
        for resource in setup.resources
        for dimension in Dimension
        if resource.target(dimension).max > table_units and not setup.is_on_demand
    ]
    return replace(
        setup,
        quota_units=table_units,
        account_quota_units=max(table_units, setup.account_quota_units) if account_quota is None else account_quota,
        notes=(*setup.notes, *notes),
    )
