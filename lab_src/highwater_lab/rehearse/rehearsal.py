"""A rehearsal: what was declared and its alternatives, under one stretch of traffic.

HighwaterError
└── RehearsalError (also a ValueError): template and traffic do not go together
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from highwater.core import Dimension, HighwaterError
from highwater_lab.physics import KeyDistribution
from highwater_lab.policies.catalogue import find_policy, run_policy
from highwater_lab.policies.clairvoyant import NAME as CLAIRVOYANT
from highwater_lab.policies.declared import Declared
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Run, TableSetup
from highwater_lab.template import find_table, load_templates
from highwater_lab.traffic import Traffic, read_traffic


class RehearsalError(HighwaterError, ValueError):
    """A template and traffic that do not go together."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came out.

    Attributes:
        setup: The table as it was read.
        traffic: What it was rehearsed against.
        runs: What was declared first, then each alternative in the order asked for.
        prices: What the costs were worked out with.
    """

    setup: TableSetup
    traffic: Traffic
    runs: tuple[Run, ...]
    prices: Prices

    @property
    def declared(self) -> Run:
        """The run of what the template declares."""
        return self.runs[0]

    @property
    def throttled_percent(self) -> float:
        """Percent of the units asked for that what was declared throttles."""
        return self.declared.throttled_per_million / 10_000

    @property
    def cost_per_month(self) -> float:
        """USD a month of what was declared, without what is paid once."""
        return self.declared.bill.per_month


def rehearse(
    template: str | Path | TableSetup,
    traffic: str | Path | Traffic,
    *,
    logical_id: str | None = None,
    parameters: Mapping[str, str] | None = None,
    compare: Sequence[str] = (),
    keys: Mapping[str | None, KeyDistribution] | None = None,
    write_share_percent: Mapping[str, int] | None = None,
    size_gb: int = 0,
    new_items_percent: int = 0,
    table_quota_units: int | None = None,
    account_quota_units: int | None = None,
    timing: Timing | None = None,
    prices: Prices | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rehearsal:
    """Rehearse a template (a `cdk.out` folder or a file) against traffic (a CSV file or `Traffic`).

    Args:
        template: Where the template is, or a table made up in Python.
        traffic: What is asked of the table.
        logical_id: Which table, by its logical id or the start of it; not needed where there is one.
        parameters: Values of the template's parameters; by default their defaults.
        compare: Further policies, by name: `native:50`, `on-demand`, `clairvoyant`, ...
        keys: How requests spread over keys, by index and `None` for the table; by default evenly.
        write_share_percent: By index, the units that each unit written to the table costs there; by default 100.
        size_gb: Data in the table at the start.
        new_items_percent: Of the units written, those that add a kilobyte of new data.
        table_quota_units: The account's quota per table and index; by default 40,000.
        account_quota_units: Its quota of all provisioned capacity, which the table is taken to have alone; by default
            80,000, or a table's if that is more.
        timing: How late the services are; by default as `Timing` says.
        prices: By default us-east-1's.
        progress: Called now and then with the simulated minutes done and all of them.

    Raises:
        TemplateError: The template cannot be read.
        TrafficError: The traffic cannot be read.
        RehearsalError: The traffic is for an index that the table does not have.
        PolicyError: A policy to compare with is unknown.
    """
    if isinstance(template, TableSetup):
        setup = template
    else:
        setup = find_table(load_templates(Path(template)), name=logical_id, parameters=parameters)
    asked = traffic if isinstance(traffic, Traffic) else read_traffic(Path(traffic))
    setup = _with_habits(setup, keys or {}, write_share_percent or {}, size_gb, new_items_percent)
    setup = _with_quotas(setup, table_quota_units, account_quota_units)
    for stream in asked.rates:
        if stream.index is not None and stream.index not in setup.indexes:
            raise RehearsalError(
                f"traffic {asked.name} has a column {stream.label}, table {setup.name} has "
                f"{'the indexes ' + ', '.join(setup.indexes) if setup.indexes else 'no index'}; leave the column out"
            )
    names = [name for name in dict.fromkeys(compare) if name != Declared.name]
    for name in names:
        if name != CLAIRVOYANT:
            find_policy(name)  # all names are judged before the first run
    prices = prices or load_prices()
    runs = []
    for number, name in enumerate([Declared.name, *names]):
        done = number * asked.minutes

        def tell(minutes: int, _: int, done: int = done) -> None:
            if progress is not None:
                progress(done + minutes, asked.minutes * (len(names) + 1))

        runs.append(run_policy(name, setup, asked, timing=timing, prices=prices, progress=tell))
    return Rehearsal(setup, asked, tuple(runs), prices)


def _with_habits(
    setup: TableSetup,
    keys: Mapping[str | None, KeyDistribution],
    shares: Mapping[str, int],
    size_gb: int,
    new_items_percent: int,
) -> TableSetup:
    for index in (*(i for i in keys if i is not None), *shares):
        if index not in setup.indexes:
            raise RehearsalError(
                f"table {setup.name} has no index {index!r}; it has {', '.join(setup.indexes) or 'none'}"
            )
    return replace(
        setup,
        size_gb=size_gb or setup.size_gb,
        new_items_percent=new_items_percent or setup.new_items_percent,
        resources=tuple(
            replace(
                resource,
                keys=keys.get(resource.index, resource.keys),
                write_share_percent=shares.get(resource.index or "", resource.write_share_percent),
            )
            for resource in setup.resources
        ),
    )


def _with_quotas(setup: TableSetup, table_quota: int | None, account_quota: int | None) -> TableSetup:
    """The setup under these quotas, with a note where it is declared to go above them."""
    table_units = setup.quota_units if table_quota is None else table_quota
    notes = [
        f"{resource.label} {dimension}: ceiling {resource.target(dimension).max:,} is above the quota of "
        f"{table_units:,} per table; give yours with --table-quota if it is higher"
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
