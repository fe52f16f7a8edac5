"""The coordinator: leases are written first, then the scaler's turn sets the floors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from highwater.aws.autoscaling import RegisteredTargets
from highwater.aws.coordinator_table import (
    LeasesFullError,
    LeasesOvertakenError,
    LeasesUnavailableError,
    LeaseTable,
    TableLeases,
)
from highwater.aws.observe import Region
from highwater.aws.parameters import ScaledPlans
from highwater.aws.schedules import Wakes, WakesUnavailableError
from highwater.aws.tables import DescribedTable, TableBusyError, TableNotFoundError, TableRefusedError
from highwater.core.boosts import (
    BoostCap,
    BoostRequest,
    Caller,
    Grant,
    Lease,
    LeaseError,
    boosted_floor,
    boosts_at,
    find_cap,
    grant,
    index_shares_percent,
)
from highwater.core.boosts.lease import described_lease
from highwater.core.boosts.request import read_id, read_minutes
from highwater.core.limits import PARTITION_READ_UNITS, PARTITION_WRITE_UNITS, unit_hour_micro_usd
from highwater.core.names import TargetName
from highwater.core.plan.plan import Target, TargetKey
from highwater.core.scaler import ScaledPlan
from highwater.core.schedule.bounds import bounds_at
from highwater.core.units import Dimension, Units
from highwater.handlers.coordinator.call import Call, RefusedError
from highwater.handlers.scaler.gather import RunOutcome

# Cached as long as the grants. Every job that waits for its capacity sends a request every two seconds, and an account
# may read parameters 40 times a second in total (AWS General Reference, Systems Manager quotas, read 2026-11).
_PLANS_SECONDS = 30.0


@dataclass(slots=True)
class KeptPlans:
    """A cache of the plans of single tables.

    Attributes:
        clock: Monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _read: dict[str, tuple[float, ScaledPlans]] = field(default_factory=dict)

    def read(self, home: Region, scaler: str, label: str, *, is_anew: bool) -> ScaledPlans:
        """Return the plan of one table of *scaler*, read again after half a minute, or now if *is_anew*.

        New grants must follow the plan of a deploy that has just ended. Only a readable plan is cached: a table that
        was just added to the scaler, or whose plan was just repaired, is found at the next request.
        """
        now = self.clock()
        read_at, plans = self._read.get(label, (now, None))
        if plans is None or is_anew or now - read_at >= _PLANS_SECONDS:
            self._read.pop(label, None)
            plans = home.read_plans_of(scaler, [label])
            if any(not plan.is_released for plan in plans.plans):
                self._read[label] = (now, plans)
        return plans


# The time over which the writes of a table and its indexes are compared
_SHARES_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class TableState:
    """A table that may be boosted.

    Attributes:
        scaled: Its plan.
        registered: Its targets in Application Auto Scaling, with AWS's time.
        described: The answer of DescribeTable.
    """

    scaled: ScaledPlan
    registered: RegisteredTargets
    described: DescribedTable

    @classmethod
    def read(cls, scaled: ScaledPlan, region: Region) -> TableState:
        """Read a table's state; raises `RefusedError` if the table does not exist or AWS does not answer."""
        try:
            described = region.describe_table(scaled.table)
        except TableNotFoundError:
            raise RefusedError(404, f"{scaled.label}: the table does not exist") from None
        except (TableBusyError, TableRefusedError) as error:
            raise RefusedError(503, f"{scaled.label}: DynamoDB does not answer: {error}") from error
        if scaled.is_tagged:
            scaled = scaled.with_indexes(index for index in described.capacities if index is not None)
        names = [TargetName(scaled.table, *target.key) for target in scaled.plan.targets()]
        return cls(scaled, region.read_targets(names), described)

    @property
    def now(self) -> datetime:
        """AWS's time at which the state was read."""
        return self.registered.at

    def target(self, key: TargetKey) -> Target:
        """Return one target of the plan."""
        return next(each for each in self.scaled.plan.targets() if each.key == key)

    def provisioned(self, key: TargetKey) -> int:
        """Return the capacity of a target, in units per second; 0 where the table has no such index."""
        capacity = self.described.capacities.get(key[0])
        return 0 if capacity is None else capacity.of(key[1])

    def floor(self, key: TargetKey) -> int | None:
        """Return the floor of a target in units per second, `None` where none is registered."""
        bounds = self.registered.of(TargetName(self.scaled.table, *key))
        return None if bounds is None else bounds.min

    def is_paused(self, key: TargetKey) -> bool:
        """Whether scaling of a target is suspended, so that no floor is set."""
        return self.registered.is_suspended(TargetName(self.scaled.table, *key))

    def check_can_be_boosted(self, key: TargetKey) -> None:
        """Raise `RefusedError` for a target whose floor or capacity cannot be set."""
        label = f"{self.scaled.label}, {self.target(key).label}"
        if key[0] not in self.described.capacities:
            raise RefusedError(409, f"{label}: the table has no such index yet; boost it when it is built")
        if self.provisioned(key) == 0:
            raise RefusedError(409, f"{label}: the table is on demand, so it has no capacity to boost")
        if self.scaled.mode.moves_floors and self.floor(key) is None:
            raise RefusedError(409, f"{label}: no scalable target is registered; deploy the table's stack again")

    def demand(self, key: TargetKey, boosted: int) -> int:
        """Return the floor that demand alone asks for: the present floor less *boosted*, the units for boosts.

        0 if the scaler does not follow demand: target tracking then raises capacity above the floor by itself.
        """
        if not self.scaled.mode.follows_demand:
            return 0
        floor = self.floor(key)
        return max((self.provisioned(key) if floor is None else floor) - boosted, 0)

    def wanted(self, key: TargetKey, leases: Iterable[Lease]) -> int:
        """Return the floor of a target that plan and boosts ask for now, in units per second."""
        bounds, boosts = bounds_at(self.target(key), self.now), boosts_at(leases, key, self.now)
        ceiling = self.target(key).capacity.max_with_boosts
        return boosted_floor(bounds, boosts, self.scaled.plan.table_quota_units, ceiling)

    def is_ready(self, key: TargetKey, leases: Iterable[Lease]) -> bool:
        """Whether a target's floor and capacity have reached `wanted`, and its table is ACTIVE."""
        wanted, floor = self.wanted(key, leases), self.floor(key)
        has_floor = floor is None or floor >= wanted
        return has_floor and self.provisioned(key) >= wanted and self.described.is_active

    def index_shares(self, request: BoostRequest, region: Region) -> dict[TargetKey, int] | None:
        """Return each index's share of the table's consumed write units in the last day, in percent.

        `None` if the request does not need shares, or CloudWatch does not answer: each index is then boosted like its
        table, which is enough for any load.
        """
        indexes = [index for index, *_ in self.scaled.plan.resources() if index is not None]
        if request.index is not None or Dimension.WRITE not in request.sizes or not indexes:
            return None
        names = {
            (index, Dimension.WRITE): TargetName(self.scaled.table, index, Dimension.WRITE)
            for index in (None, *indexes)
        }
        try:
            consumed = region.read_consumption(names.values(), _SHARES_MINUTES, self.now)
        except Exception:
            return None
        return index_shares_percent(
            {key: sum(units or 0 for units in consumed[name].consumed_units) for key, name in names.items()}
        )


def read_table(document: dict[str, Any]) -> str:
    """Return the table that a call names; raises `RefusedError` if it names none."""
    table = document.get("table")
    if not isinstance(table, str) or not table:
        raise RefusedError(400, f"boost: table is {str(table)[:60]!r}; allowed: a table's name")
    return table


def grant_of(asked: Lease, known: TableLeases, cap: BoostCap, state: TableState) -> Grant:
    """Return the grant of a lease, given the known leases."""
    return grant(
        asked,
        state.target(asked.key),
        known.leases,
        demand_units=state.demand(asked.key, known.boosted.get(asked.key, 0)),
        quota_units=state.scaled.plan.table_quota_units,
        cap_units=cap.of(asked.dimension),
    )


def grant_of_known(lease: Lease, known: TableLeases, cap: BoostCap, state: TableState) -> Grant:
    """Return the earlier grant of a lease whose request arrives again, with the limits as they are now."""
    if lease.asked is None:
        return Grant(lease, lease.units)
    asked = replace(lease, units=lease.asked, asked=None)
    return Grant(asked, lease.units, grant_of(asked, known, cap, state).limits)


def check_room(more: Lease, known: TableLeases, cap: BoostCap, state: TableState) -> None:
    """Raise `RefusedError` if a lease cannot be extended: other leases are booked, or the caller's cap was lowered."""
    found = grant_of(more, known, cap, state)
    if not found.is_whole:
        why = "; ".join(sentence for _, sentence in found.limits)
        raise RefusedError(409, f"{more.label}: boost {more.id} cannot be renewed: {why}")


Answer = dict[str, Any]
_MICRO = 1_000_000
# the least throughput that any table supports without adding partitions
_PARTITION = Units(PARTITION_READ_UNITS, PARTITION_WRITE_UNITS)
# AWS does not document how long adding partitions takes; docs/decisions/0009 has what is known.
_GROWTH = "DynamoDB adds partitions first, which takes minutes; a high-water mark in the plan has them added before"


def outcome_of(grants: Sequence[Grant]) -> str:
    """Return `whole`, `part` or `refused`."""
    if not any(each.units for each in grants):
        return "refused"
    return "whole" if all(each.is_whole for each in grants) else "part"


def grant_documents(grants: Iterable[Grant], state: TableState, region: str) -> list[dict[str, Any]]:
    """Return the grant of each target of a request, with its limits and the price of an hour in US dollars."""
    found = []
    for each in grants:
        price = unit_hour_micro_usd(
            region, each.asked.dimension, is_infrequent_access=state.described.is_infrequent_access
        )
        found.append(
            described_lease(each.asked)
            | {
                "asked": each.asked.units,
                "units": each.units,
                "limits": [{"code": str(code), "sentence": sentence} for code, sentence in each.limits],
                "usd_per_hour": None if price is None else price * each.units / _MICRO,
            }
        )
    return found


def notes_on(keys: Iterable[TargetKey], leases: Sequence[Lease], state: TableState) -> list[str]:
    """Return remarks on the targets of a boost: partitions that have to be added first, or suspended scaling."""
    notes = []
    for key in keys:
        label, wanted = state.target(key).label, state.wanted(key, leases)
        mark = state.described.marks.get(key[0])
        if mark is not None and wanted > max(mark.of(key[1]), _PARTITION.of(key[1])):
            notes.append(f"{label}: {wanted:,} units/s is above the high-water mark of {mark.of(key[1]):,}; {_GROWTH}")
        if state.is_paused(key):
            notes.append(f"{label}: scaling is suspended, so no floor is set; highwater resume {state.scaled.table}")
    return notes


def target_documents(keys: Iterable[TargetKey], leases: Sequence[Lease], state: TableState) -> list[dict[str, Any]]:
    """Return the state of each target: wanted floor, present floor and capacity, in units per second."""
    return [
        {
            "target": state.target(key).label,
            "wanted": state.wanted(key, leases),
            "floor": state.floor(key),
            "provisioned": state.provisioned(key),
            "is_ready": state.is_ready(key, leases),
        }
        for key in keys
    ]


# Seconds that an invocation must have left to retry after another request's write; the job waits for as long
_SPARE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """Serves the calls of one invocation.

    Attributes:
        scaler: The name under which the plans are in Systems Manager.
        region_name: The function's region, whose prices apply to the region's tables.
        region_of: Makes a region's adapter; `None` is the function's own region.
        plans: A cache of plans.
        leases: The table of leases.
        read_caps: Reads the grants.
        wakes: Makes the schedules that run the function while a boost is live.
        turn: Runs the scaler's turn for a table at once, and returns its outcome.
        pause: Waits before the attempt of the given number.
        remaining_seconds: Returns how much time the invocation has left.
    """

    scaler: str
    region_name: str
    region_of: Callable[[str | None], Region]
    plans: KeptPlans
    leases: LeaseTable
    read_caps: Callable[[], Sequence[BoostCap]]
    wakes: Wakes
    turn: Callable[[str], RunOutcome]
    pause: Callable[[int], None]
    remaining_seconds: Callable[[], float]

    def serve(self, call: Call) -> Answer:
        """Carry out a call; raises `RefusedError` for one that is rejected."""
        serve = {
            "begin": self._begin,
            "renew": self._renew,
            "release": self._release,
            "status": self._status,
            "list": self._list,
            "log": self._log,
            "pulse": self._pulse,
        }
        if call.action not in serve:
            raise RefusedError(400, f"boost: do is {call.action[:40]!r}; allowed: {', '.join(serve)}")
        try:
            return serve[call.action](call.caller, call.document)
        except LeaseError as error:
            raise RefusedError(400, str(error)) from error
        except LeasesUnavailableError as error:
            unknown = "so it is not known what was granted; ask again with the same id"
            raise RefusedError(503, f"the lease table does not answer, {unknown}: {error}") from error
        except WakesUnavailableError as error:
            raise RefusedError(503, f"no schedule can be made, nothing was granted: {error}") from error

    def _begin(self, caller: Caller, document: Answer) -> Answer:
        request = BoostRequest.from_document(document)
        cap = self._cap(caller, request.table)
        state, region = self._look(request.table, is_anew=True)
        shares = state.index_shares(request, region)
        asked = request.leases(state.scaled.plan, caller.name, state.now, shares)
        for lease in asked:
            state.check_can_be_boosted(lease.key)
        grants, is_new = self._grant(request, asked, caller, cap, state)
        granted = [each.lease for each in grants if each.lease is not None]
        answer: Answer = {
            "id": request.id,
            "table": request.table,
            "owner": caller.name,
            "outcome": outcome_of(grants),
            "start": grants[0].asked.start.isoformat(),
            "end": grants[0].asked.end.isoformat(),
            "targets": grant_documents(grants, state, state.scaled.region or self.region_name),
        }
        if is_new:
            self._tell(request.table, request.id, "begin", answer | {"session": caller.session}, state)
        notes = []
        if granted:
            keys = [lease.key for lease in granted]
            notes = notes_on(keys, self.leases.read(request.table).leases, state)
            if any(lease.is_live(state.now) for lease in granted):
                notes += self._set_floors(request.table)
        return answer | {"notes": notes}

    def _grant(
        self, request: BoostRequest, asked: Sequence[Lease], caller: Caller, cap: BoostCap, state: TableState
    ) -> tuple[list[Grant], bool]:
        """Write the leases that can be granted; if the request arrives again, find the earlier ones."""
        label, is_scheduled, attempt = request.table, False, 0
        keyed = [(each.key, each) for each in asked]
        while True:
            known = self.leases.read(label)
            if any(lease.id == request.id for lease in known.leases):
                own = {lease.key: lease for lease in self._own(known, request.id, caller, state)}
                return [
                    grant_of_known(own[key], known, cap, state) if key in own else Grant(each, 0) for key, each in keyed
                ], False
            grants = [grant_of(each, known, cap, state) for each in asked]
            if request.is_all_or_nothing and not all(each.is_whole for each in grants):
                grants = [Grant(each.asked, 0, each.limits) for each in grants]
            granted = [each.lease for each in grants if each.lease is not None]
            if not granted:
                if is_scheduled:
                    self.wakes.rest(label, request.id)
                return grants, True
            if not is_scheduled:
                # before the leases, so that each live lease has a schedule that ends it
                self.wakes.run_every_minute(label, request.id, asked[0].start, asked[0].end, state.now)
                is_scheduled = True
            try:
                self.leases.write(label, [*known.leases, *granted], known, state.now, grows=True)
            except LeasesFullError as full:
                self.wakes.rest(label, request.id)
                raise RefusedError(429, f"{label}: {full}") from full
            except LeasesOvertakenError:
                attempt += 1
                self._pause(attempt)
                continue
            return grants, True

    def _renew(self, caller: Caller, document: Answer) -> Answer:
        table, id, duration = read_table(document), read_id(document), read_minutes(document)
        cap = self._cap(caller, table)
        state, _ = self._look(table)
        end = state.now + duration
        own = self._own(self.leases.read(table), id, caller, state)
        last = max(lease.renewed(end).end for lease in own)
        self.wakes.run_every_minute(table, id, min(lease.start for lease in own), last, state.now)

        def renewed(lease: Lease, known: TableLeases) -> Lease:
            new = lease.renewed(end)
            if new.end > lease.end:
                check_room(replace(lease, start=lease.end, end=new.end), known, cap, state)
            return new

        own = self._change(table, id, caller, state, renewed)
        return {"id": id, "table": table, "end": max(lease.end for lease in own).isoformat()}

    def _release(self, caller: Caller, document: Answer) -> Answer:
        table, id = read_table(document), read_id(document)
        # a boost's owner may release it even if its grant was removed meanwhile
        state, _ = self._look(table)
        own = self._change(table, id, caller, state, lambda lease, _: lease.released_at(state.now), may_be_over=True)
        self._tell(table, id, "release", {"owner": caller.name, "session": caller.session}, state)
        notes = self._set_floors(table)
        if own:
            # a few more runs: another run may have raised the floor during this turn, or this turn could not lower it
            self.wakes.run_every_minute(table, id, state.now, state.now, state.now)
        return {"id": id, "table": table, "released": bool(own), "notes": notes}

    def _change(
        self,
        table: str,
        id: str,
        caller: Caller,
        state: TableState,
        changed: Callable[[Lease, TableLeases], Lease],
        *,
        may_be_over: bool = False,
    ) -> list[Lease]:
        """Apply *changed* to the leases of one boost, and write them."""
        attempt = 0
        while True:
            known = self.leases.read(table)
            own = self._own(known, id, caller, state, may_be_over=may_be_over)
            others = [lease for lease in known.leases if lease.id != id]
            new = [changed(lease, known) for lease in own]
            if new == own:
                return own
            try:
                self.leases.write(table, [*others, *new], known, state.now)
            except LeasesOvertakenError:
                attempt += 1
                self._pause(attempt)
                continue
            return new

    def _status(self, caller: Caller, document: Answer) -> Answer:
        table, id = read_table(document), read_id(document)
        self._cap(caller, table)
        state, _ = self._look(table)
        known = self.leases.read(table)
        own, leases = self._own(known, id, caller, state), known.leases
        keys = [lease.key for lease in own]
        is_live = any(lease.is_live(state.now) for lease in own)
        targets = target_documents(keys, leases, state)
        return {
            "id": id,
            "table": table,
            "now": state.now.isoformat(),
            "is_ready": is_live and all(target["is_ready"] for target in targets),
            "targets": targets,
            "notes": notes_on(keys, leases, state),
        }

    def _list(self, caller: Caller, document: Answer) -> Answer:
        table = read_table(document)
        self._cap(caller, table)
        state, _ = self._look(table)
        live = [lease for lease in self.leases.read(table).leases if lease.ends > state.now]
        return {"table": table, "now": state.now.isoformat(), "boosts": [described_lease(lease) for lease in live]}

    def _log(self, caller: Caller, document: Answer) -> Answer:
        table = read_table(document)
        self._cap(caller, table)
        return {"table": table, "log": self.leases.read_log(table)}

    def _pulse(self, caller: Caller, document: Answer) -> Answer:
        """Run the scaler's turn for a table at once, because its fleet needs help."""
        table = read_table(document)
        self._cap(caller, table)
        self._plan(table)
        outcome = self.turn(table)
        return {"table": table, "decisions": len(outcome.decisions)}

    def _cap(self, caller: Caller, table: str) -> BoostCap:
        cap = find_cap(self.read_caps(), caller, table)
        if cap is None:
            fix = "give it grant_boost in the CDK app, and deploy"
            raise RefusedError(403, f"{caller.name} may not boost {table}; {fix}")
        return cap

    def _look(self, label: str, *, is_anew: bool = False) -> tuple[TableState, Region]:
        scaled = self._plan(label, is_anew=is_anew)
        region = self.region_of(scaled.region)
        return TableState.read(scaled, region), region

    def _plan(self, label: str, *, is_anew: bool = False) -> ScaledPlan:
        found = self.plans.read(self.region_of(None), self.scaler, label, is_anew=is_anew)
        for plan in found.plans:
            if not plan.is_released:
                return plan
        why = f": {'; '.join(found.unreadable)}" if found.unreadable else ""
        raise RefusedError(404, f"{label}: no plan of this coordinator{why}; add the table to it and deploy")

    def _own(
        self, known: TableLeases, id: str, caller: Caller, state: TableState, *, may_be_over: bool = False
    ) -> list[Lease]:
        """Return the leases of one boost that have not ended; only the boost's owner may request them."""
        own = [lease for lease in known.leases if lease.id == id]
        label = state.scaled.label
        for lease in own:
            if lease.owner != caller.name:
                raise RefusedError(409, f"{label}: boost {id} is of {lease.owner}, not of {caller.name}")
        if may_be_over:
            return own
        live = [lease for lease in own if lease.ends > state.now]
        if not live:
            raise RefusedError(410, f"{label}: boost {id} is over, or never was; begin one with an id of its own")
        return live

    def _set_floors(self, label: str) -> list[str]:
        outcome = self.turn(label)
        return [
            f"{table}: the floor is not set yet, the next minute's run tries again: {error}"
            for table, error in outcome.failed.items()
        ]

    def _tell(self, table: str, id: str, what: str, entry: Answer, state: TableState) -> None:
        """Add to the log; if that fails, the boost is not rejected."""
        try:
            self.leases.log(table, id, what, entry, state.now)
        except (LeasesUnavailableError, LeasesOvertakenError):
            return

    def _pause(self, attempt: int) -> None:
        if self.remaining_seconds() < _SPARE_SECONDS:
            raise RefusedError(503, "too many boosts of the table were asked for at once; ask again")
        self.pause(attempt)
