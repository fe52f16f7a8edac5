"""From a plan as the page has it to its simulation: what it throttles and costs, how capacity moves, and its code.

HighwaterError
└── ProposalError (also a ValueError): a plan cannot be read or cannot work; the message is one line
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from typing import Any, Final

from highwater.core import Capacity, Dimension, HighwaterError, HighWaterMark, IndexCapacity, Plan, Window, check
from highwater.core.findings import Severity, is_whole, shown
from highwater.core.limits import DEFAULT_TABLE_QUOTA_UNITS
from highwater.core.plan.windows import openings, parse_local
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.policies.catalogue import find_policy
from highwater_lab.policies.declared import Declared
from highwater_lab.policies.dynamodb import OnDemandMode
from highwater_lab.recommend.candidates import Candidate, units_for
from highwater_lab.recommend.code import code_of
from highwater_lab.recommend.surges import round_up
from highwater_lab.rehearse.jobs import PlannedBoost, leases_of
from highwater_lab.report.picture import curves
from highwater_lab.report.terminal import share_text
from highwater_lab.services.prices import Prices
from highwater_lab.services.timing import Timing
from highwater_lab.simulation import Run, TableSetup, simulate
from highwater_lab.simulation.plans import table_of
from highwater_lab.traffic import Traffic

_USUAL_TARGET_PERCENT: Final = 70
_LONGEST_BOOST_MINUTES: Final = 24 * 60
_NAME: Final = "table"
_CAPACITY: Final = ("min_capacity", "max_capacity", "target_utilization_percent")
_WINDOW: Final = ("name", "days", "start", "end")
_BOOST: Final = ("dimension", "start", "minutes", "units")


class ProposalError(HighwaterError, ValueError):
    """A plan cannot be read or cannot work; the message is one line with place, problem and fix."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Simulates plans under one traffic, one at a time.

    Attributes:
        traffic: The requests to the table and its indexes, of at least one dimension. The indexes follow the table.
        prices: The prices that apply.
        timezone: The IANA time zone of the windows.
        timing: The delays of the AWS services. By default those of `Timing`.
        table_quota_units: The account's quota of units per table and index.
    """

    traffic: Traffic
    prices: Prices
    timezone: str = "UTC"
    timing: Timing = field(default_factory=Timing)
    table_quota_units: int = DEFAULT_TABLE_QUOTA_UNITS
    # simulations share the processor anyway, and the page waits for each answer
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions that have traffic, writes first."""
        busy = {stream.dimension for stream, rates in self.traffic.rates.items() if any(rates)}
        return tuple(each for each in (Dimension.WRITE, Dimension.READ) if each in busy)

    def opening(self) -> dict[str, Any]:
        """Return what the page begins with: the traffic, a first plan, its answer, and the cost on demand.

        The first plan is auto scaling alone at the usual target, with the floor that the quietest minute needs and a
        quarter of room above the busiest.
        """
        first: dict[str, Any] = {"windows": [], "boost": None}
        first |= {str(each): self._first(each) for each in self.dimensions}
        plan, _ = self._read(first)
        run = self._simulate(table_of(plan, _NAME), OnDemandMode.name)
        return {
            "name": self.traffic.name,
            "start": int(self.traffic.start.timestamp()),
            "minutes": self.traffic.minutes,
            "timezone": self.timezone,
            "indexes": [index.index_name for index in plan.indexes],
            "prices": self.prices.name,
            "on_demand_usd": run.bill.per_month,
            "demand": {str(each): self._demand(run, each) for each in self.dimensions},
            "plan": first,
            "answer": self.answer(first),
        }

    def answer(self, proposal: object) -> dict[str, Any]:
        """Return what the simulation of a plan says. Times are seconds from the start of the traffic.

        Args:
            proposal: For each dimension with traffic, `read` or `write`: `min_capacity`, `max_capacity` and
                `target_utilization_percent`. `windows`: each with `name`, `days`, `start`, `end`, and `read_min` or
                `write_min`, in `timezone`. `boost`: `dimension`, `start` in UTC as YYYY-MM-DDTHH:MM, `minutes`, and
                `units`, which the floor is to reach; or `None`, as by default.

        Raises:
            ProposalError: The plan has a member that is unknown or missing, does not pass `check`, or its boost is not
                for this traffic.
        """
        plan, boost = self._read(proposal)
        findings = check(plan)
        errors = [finding.text("plan") for finding in findings if finding.severity is Severity.ERROR]
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise ProposalError(" ".join(f"{errors[0]}{more}".split()))
        setup = table_of(plan, _NAME)
        if boost is not None:
            try:
                setup = replace(setup, leases=leases_of([boost], _NAME, self.traffic))
            except HighwaterError as error:
                raise ProposalError(f"boost: {error}") from error
        run = self._simulate(setup, Declared.name)
        return {
            "usd_per_month": run.bill.per_month,
            "throttled_percent": run.throttled_percent,
            "throttled": share_text(run),
            "throttled_minutes": len(run.throttled_minutes()),
            "targets": {str(each): _steps(run, each) for each in self.dimensions},
            "openings": [self._openings(window) for window in plan.windows],
            "warnings": [finding.text("plan") for finding in findings if finding.severity is Severity.WARNING],
            "code": code_of(Candidate.of_run(plan, run)) + ("" if boost is None else _boost_code(boost)),
        }

    def _simulate(self, setup: TableSetup, policy: str) -> Run:
        with self._turn:
            return simulate(setup, self.traffic, find_policy(policy), timing=self.timing, prices=self.prices)

    def _demand(self, run: Run, dimension: Dimension) -> list[float]:
        drawn = curves(run, run.target(dimension), self.traffic.minutes).demand
        return [round(units, 1) for units in drawn]

    def _first(self, dimension: Dimension) -> dict[str, int]:
        streams = {stream: rates for stream, rates in self.traffic.rates.items() if stream.dimension is dimension}
        bins, per_minute = 60 // self.traffic.bin_seconds, 3600 // self.traffic.bin_seconds
        quietest = max(min(sum(each[at : at + bins]) for at in range(0, len(each), bins)) for each in streams.values())
        busiest = max(math.ceil(self.traffic.busiest_minute(stream)) for stream in streams)
        ceiling = min(self.table_quota_units, round_up(units_for(busiest, _USUAL_TARGET_PERCENT) * 5 // 4))
        return {
            "min_capacity": min(ceiling, round_up(units_for(quietest // per_minute, _USUAL_TARGET_PERCENT))),
            "max_capacity": ceiling,
            "target_utilization_percent": _USUAL_TARGET_PERCENT,
        }

    def _openings(self, window: Window) -> list[tuple[int, int]]:
        start = self.traffic.start
        end = start + timedelta(minutes=self.traffic.minutes)
        return [
            (int((opens - start).total_seconds()), int((closes - start).total_seconds()))
            for opens, closes in openings(window, start, end)
        ]

    def _read(self, proposal: object) -> tuple[Plan, PlannedBoost | None]:
        names = [str(each) for each in self.dimensions]
        given = _members(proposal, "plan", (*names, "windows", "boost"), (*names, "windows"))
        if not isinstance(given["windows"], list):
            raise ProposalError(f"plan windows: got {shown(given['windows'])}, allowed: a list of windows")
        indexes = dict.fromkeys(stream.index for stream in self.traffic.rates if stream.index is not None)
        capacities = {
            name: Capacity.autoscaled(**_members(given[name], f"plan {name}", _CAPACITY, _CAPACITY)) for name in names
        }
        plan = Plan(
            read=capacities.get("read", Capacity.fixed(1)),
            write=capacities.get("write", Capacity.fixed(1)),
            windows=tuple(self._window(each, number) for number, each in enumerate(given["windows"], 1)),
            indexes=tuple(IndexCapacity(index_name=name) for name in indexes),
            mark=HighWaterMark.to_ceiling(),
            table_quota_units=self.table_quota_units,
        )
        return plan, None if given.get("boost") is None else self._boost(given["boost"])

    def _window(self, given: object, number: int) -> Window:
        units = tuple(f"{each}_min" for each in self.dimensions)
        window = _members(given, f"window {number}", (*_WINDOW, *units), _WINDOW)
        if not isinstance(window["days"], str):
            # without days it would be a window that opens once
            raise ProposalError(f"window {number} days: got {shown(window['days'])}, allowed: days such as 'MON-FRI'")
        return Window(timezone=self.timezone, **window)

    def _boost(self, given: object) -> PlannedBoost:
        boost = _members(given, "boost", _BOOST, _BOOST)
        if boost["dimension"] not in self.dimensions:
            raise ProposalError(
                f"boost dimension: got {shown(boost['dimension'])}, allowed: {_listed(self.dimensions)}"
            )
        for name, most in (("minutes", _LONGEST_BOOST_MINUTES), ("units", self.table_quota_units)):
            if not is_whole(boost[name]) or not 1 <= boost[name] <= most:
                raise ProposalError(
                    f"boost {name}: got {shown(boost[name])}, allowed: a whole number from 1 to {most:,}"
                )
        first, last = self.traffic.start, self.traffic.start + timedelta(minutes=self.traffic.minutes - 1)
        try:
            start = parse_local(boost["start"]).replace(tzinfo=UTC)
        except (TypeError, ValueError):
            start = None
        if start is None or not first <= start <= last:
            raise ProposalError(
                f"boost start: got {shown(boost['start'])}, allowed: a time of the traffic in UTC, "
                f"{first:%Y-%m-%dT%H:%M} to {last:%Y-%m-%dT%H:%M}"
            )
        return PlannedBoost(
            dimension=Dimension(boost["dimension"]),
            units=boost["units"],
            is_total=True,
            at=start,
            length=timedelta(minutes=boost["minutes"]),
        )


def _members(given: object, where: str, allowed: Sequence[str], needed: Sequence[str]) -> Mapping[str, Any]:
    """Return an object of JSON that has all members *needed*, and only members that are *allowed*."""
    if not isinstance(given, dict):
        raise ProposalError(f"{where}: got {shown(given)}, allowed: an object with {_listed(allowed)}")
    missing, unknown = [each for each in needed if each not in given], [each for each in given if each not in allowed]
    if missing or unknown:
        wrong = f"{missing[0]} is missing" if missing else f"{shown(unknown[0])} is unknown"
        raise ProposalError(f"{where}: {wrong}; its members are {_listed(allowed)}")
    return given


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _steps(run: Run, dimension: Dimension) -> dict[str, Any]:
    """Return what the page draws of one target: capacity, bounds, and units throttled in each minute that has some."""
    target = run.target(dimension)
    throttled = [
        (minute, round(sum(causes.values()) / QUANTA_PER_UNIT, 1)) for minute, causes in target.throttled.items()
    ]
    return {"units": target.capacity, "bounds": target.bounds, "throttled": throttled}


def _boost_code(boost: PlannedBoost) -> str:
    """Return the code of a job that asks for the boost when it begins."""
    minutes = boost.length // timedelta(minutes=1)
    return (
        f"\n# in the job that begins at {boost.at:%Y-%m-%dT%H:%M} UTC; it needs a BoostCoordinator\n"
        f"import highwater\n\n"
        f'with highwater.boost("{_NAME}", {boost.dimension}_total={boost.units:_}, minutes={minutes}):\n'
        "    ...  # the job's work\n"
    )
