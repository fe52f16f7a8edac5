"""The coordinator: leases are written first, then the scaler's turn sets the floors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from highwater.aws.coordinator_table import (
    LeasesFullError,
    LeasesUnavailableError,
    LeaseTable,
    TableLeases,
    check_share,
)
from highwater.aws.region import AwsRegion
from highwater.calls.attempts import LOST_WRITE
from highwater.core.boosts import BoostCap, BoostRequest, Caller, Grant, Lease, LeaseError, find_cap
from highwater.core.boosts.lease import LONGEST_BOOST, described_lease
from highwater.core.boosts.request import read_member
from highwater.core.errors import did_you_mean
from highwater.core.limits import billed_hours
from highwater.core.scaler import ScaledPlan
from highwater.handlers.coordinator import refusals
from highwater.handlers.coordinator.state import KeptTables, ReadDemand, TableState
from highwater.handlers.scaler.gather import RunOutcome

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        caller: The identity that sent it.
        action: The requested action: `begin`, `renew`, `release`, `status`, `list`, `log` or `pulse`.
        document: The other members of the request.
    """

    caller: Caller
    action: str
    document: dict[str, Any]


def outcome_of(grants: Sequence[Grant]) -> str:
    """Return `whole`, `part` or `refused`."""
    if not any(each.units for each in grants):
        return "refused"
    return "whole" if all(each.is_whole for each in grants) else "part"


# The pulses of a fleet run one turn of a table in this time: more would see the same.
_TURN_INTERVAL = timedelta(seconds=5)
# Boosts that are begun or released share a turn in this time: a job waits a second for the next one.
_SHARED_INTERVAL = timedelta(seconds=1)
# the clocks of two runs differ by less
_CLOCK_SKEW = timedelta(seconds=0.2)
_MOST_PAUSES_FOR_A_TURN = 12
# Waits for another request's turn are as long as those after so many lost writes: up to half a second.
_LATE_ATTEMPT = 5
# A renewal that moves the end of a boost by less than this, or by less than a tenth of its length, changes nothing.
_RENEWED_LATELY = timedelta(seconds=30)
# Seconds that an invocation must have left to retry after another request's write; the job waits for as long
_SPARE_SECONDS = 10.0
# tables that a message lists
_MOST_LABELS = 10


def _log_may_fail() -> suppress:
    """Ignore that the log cannot be written: a boost is not rejected for it."""
    return suppress(LeasesUnavailableError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """Serves the calls of one invocation.

    Attributes:
        scaler: The name under which the plans are in Systems Manager.
        region_name: The function's region, whose prices apply to the region's tables.
        region_of: Makes a region's clients; `None` is the function's own region.
        tables: A cache of plans and states.
        leases: The table of leases.
        read_caps: Reads the grants.
        turn: Runs the scaler's turn for a table at once, and returns its outcome.
        pause: Sleeps for the given number of seconds.
        remaining_seconds: Returns how much time the invocation has left.
        now: Returns the present instant, for the times between turns.
    """

    scaler: str
    region_name: str
    region_of: Callable[[str | None], AwsRegion]
    tables: KeptTables
    leases: LeaseTable
    read_caps: Callable[[], Sequence[BoostCap]]
    turn: Callable[[str], RunOutcome]
    pause: Callable[[float], None]
    remaining_seconds: Callable[[], float]
    now: Callable[[], datetime]

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
            raise refusals.unknown_action(call.action, serve)
        try:
            return serve[call.action](call.caller, call.document)
        except LeaseError as error:
            raise refusals.malformed(error) from error
        except LeasesUnavailableError as error:
            raise refusals.leases_silent(error) from error

    def _turn_if_due(self, label: str, interval: timedelta) -> RunOutcome | None:
        try:
            is_due = self.leases.claim_turn(label, self.now(), interval)
        except LeasesUnavailableError:
            is_due = True
        return self.turn(label) if is_due else None

    def _begin(self, caller: Caller, document: Answer) -> Answer:
        request = BoostRequest.from_document(document)
        cap = self._cap(caller, request.table, to_boost=True)
        state = self._look(request.table, is_anew=True)
        shares = self.tables.shares(state, self.region_of(state.scaled.region)) if request.boosts_indexes else None
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
            "billed_hours": billed_hours(grants[0].asked.start, grants[0].asked.end),
            "targets": state.grant_documents(grants, state.scaled.region or self.region_name),
        }
        self._tell_of_begin(request, answer | {"session": caller.session}, state, is_new=is_new)
        notes = []
        if granted:
            keys = [lease.key for lease in granted]
            begins = max(state.now, granted[0].start)
            notes = state.notes_on(keys, self.leases.read(request.table), begins)
            if any(lease.is_live(state.now) for lease in granted):
                notes += self._set_floors(request.table, is_due=is_new)
        return answer | {"notes": notes}

    def _tell_of_begin(self, request: BoostRequest, entry: Answer, state: TableState, *, is_new: bool) -> None:
        """Log a boost once, and refusals once a minute."""
        with _log_may_fail():
            if entry["outcome"] == "refused":
                self.leases.log_refusal(request.table, entry["owner"], entry, state.now)
            elif is_new or not self._is_logged(request.table, entry["owner"], request.id):
                self.leases.log(request.table, request.id, "begin", entry, state.now)

    def _is_logged(self, label: str, owner: str, id: str) -> bool:
        """Whether the first answer to a request, which was lost, got as far as the log."""
        begun = (entry for entry in self.leases.read_log(label) if entry["what"] == "begin")
        return any(entry.get("owner") == owner and entry["id"] == id for entry in begun)

    def _grant(
        self, request: BoostRequest, asked: Sequence[Lease], caller: Caller, cap: BoostCap, state: TableState
    ) -> tuple[list[Grant], bool]:
        """Write the leases that can be granted; if the request arrives again, find the earlier ones."""
        label, read_demand = request.table, self._read_demand(state)
        keyed = [(each.key, each) for each in asked]

        def granted(found: TableLeases) -> tuple[tuple[list[Grant], bool], list[Lease] | None]:
            # the id of a boost that ended long ago is free, whether or not somebody has written the table since
            known = found.recent(state.now)
            if known.of(caller.name, request.id):
                own = {lease.key: lease for lease in self._own(known, request.id, caller, state)}
                earlier = [
                    state.grant_of_known(own[key], known, cap, read_demand) if key in own else Grant(each, 0)
                    for key, each in keyed
                ]
                return (earlier, False), None
            grants = [state.grant(each, known, cap, read_demand, boost=asked) for each in asked]
            if request.is_all_or_nothing and not all(each.is_whole for each in grants):
                grants = [Grant(each.asked, 0, each.limits) for each in grants]
            new = [each.lease for each in grants if each.lease is not None]
            if not new:
                return (grants, True), None
            check_share([*known.leases, *new], caller.name, state.now)
            return (grants, True), [*known.leases, *new]

        try:
            return self.leases.change(label, granted, state.now, self._again)
        except LeasesFullError as full:
            raise refusals.too_many_boosts(label, full) from full

    def _renew(self, caller: Caller, document: Answer) -> Answer:
        table, id = read_member(document, "table"), read_member(document, "id")
        duration = timedelta(minutes=read_member(document, "minutes"))
        cap = self._cap(caller, table, to_boost=True)
        known = self.leases.read(table)
        if (unchanged := self._end_if_renewed_lately(known, id, caller, duration)) is not None:
            return {"id": id, "table": table, "end": unchanged.isoformat()}
        state = self._look(table)
        end = state.now + duration

        def renewed(lease: Lease, known: TableLeases) -> Lease:
            new = lease.renewed(end)
            if new.end > lease.end and state.has_target(lease.key):
                more = replace(lease, start=lease.end, end=new.end)
                state.check_room(more, known, cap, self._read_demand(state))
            return new

        own = self._change(table, id, caller, state, renewed)
        return {"id": id, "table": table, "end": max(lease.end for lease in own).isoformat()}

    def _end_if_renewed_lately(
        self, known: TableLeases, id: str, caller: Caller, duration: timedelta
    ) -> datetime | None:
        """Return the end of a boost that more time would hardly move; `None` if it is to be renewed.

        Each renewal writes all boosts of the table, so that requests in a loop would be dear.
        """
        now = self.now()
        live = [(lease, lease.renewed(now + duration).end) for lease in known.of(caller.name, id) if lease.ends > now]
        least = max(duration / 10, _RENEWED_LATELY)
        if not live or any(
            # the last minutes of a lease's day are to be had too
            end - lease.end >= least or lease.end < end == lease.start + LONGEST_BOOST
            for lease, end in live
        ):
            return None
        return max(lease.end for lease, _ in live)

    def _release(self, caller: Caller, document: Answer) -> Answer:
        table, id = read_member(document, "table"), read_member(document, "id")
        state = self._look(table)

        def released(known: TableLeases) -> tuple[list[Lease], list[Lease] | None]:
            own = known.of(caller.name, id)
            if not own:
                return [], self._with_one_that_is_over(known, id, caller, state)
            others = [lease for lease in known.leases if lease not in own]
            found = [lease.released_at(state.now) for lease in own]
            return found, None if found == own else [*others, *found]

        # a boost's owner may release it even if its grant was removed meanwhile
        own = self.leases.change(table, released, state.now, self._again)
        notes = []
        # released by this call, and not over before
        if any(lease.released == state.now < lease.end for lease in own):
            entry = {"owner": caller.name, "session": caller.session}
            with _log_may_fail():
                self.leases.log(table, id, "release", entry, state.now)
            notes = self._set_floors(table)
        return {"id": id, "table": table, "released": bool(own), "notes": notes}

    def _with_one_that_is_over(
        self, known: TableLeases, id: str, caller: Caller, state: TableState
    ) -> list[Lease] | None:
        """Add a boost that is over already, so that its request is refused if it arrives later, as events may.

        `None` where the caller may begin none, or without room: then the boost, if its request arrives at all, ends
        with its lease.
        """
        cap = find_cap(self.read_caps(), caller, state.scaled.label)
        if cap is None or not cap.is_for_boosts:
            return None
        index, dimension = state.scaled.plan.targets()[0].key
        over = Lease(
            id=id,
            table=state.scaled.label,
            index=index,
            dimension=dimension,
            units=1,
            start=state.now - timedelta(seconds=1),
            end=state.now,
            owner=caller.name,
        )
        try:
            check_share([*known.leases, over], caller.name, state.now)
        except LeasesFullError:
            return None
        return [*known.leases, over]

    def _change(
        self,
        table: str,
        id: str,
        caller: Caller,
        state: TableState,
        changed: Callable[[Lease, TableLeases], Lease],
    ) -> list[Lease]:
        """Apply *changed* to the leases of one boost, and write them."""

        def new(known: TableLeases) -> tuple[list[Lease], list[Lease] | None]:
            own = self._own(known, id, caller, state)
            others = [lease for lease in known.leases if (lease.owner, lease.id) != (caller.name, id)]
            found = [changed(lease, known) for lease in own]
            return found, None if found == own else [*others, *found]

        return self.leases.change(table, new, state.now, self._again)

    def _status(self, caller: Caller, document: Answer) -> Answer:
        table, id = read_member(document, "table"), read_member(document, "id")
        self._cap(caller, table, to_boost=True)
        state = self._look(table, for_poll=True)
        known = self.leases.read(table)
        own = self._own(known, id, caller, state)
        keys = [lease.key for lease in own if state.has_target(lease.key)]
        is_live = any(lease.is_live(state.now) for lease in own)
        targets = state.target_documents(keys, known)
        return {
            "id": id,
            "table": table,
            "now": state.now.isoformat(),
            "is_ready": is_live and all(target["is_ready"] for target in targets),
            "targets": targets,
            "notes": state.notes_on(keys, known),
        }

    def _list(self, caller: Caller, document: Answer) -> Answer:
        table = read_member(document, "table")
        self._cap(caller, table, to_boost=True)
        state = self._look(table, for_poll=True)
        live = [lease for lease in self.leases.read(table).leases if lease.ends > state.now]
        return {"table": table, "now": state.now.isoformat(), "boosts": [described_lease(lease) for lease in live]}

    def _log(self, caller: Caller, document: Answer) -> Answer:
        table = read_member(document, "table")
        self._cap(caller, table, to_boost=True)
        self._plan(table)
        return {"table": table, "log": self.leases.read_log(table)}

    def _pulse(self, caller: Caller, document: Answer) -> Answer:
        """Run the scaler's turn for a table at once, because its fleet needs help."""
        table = read_member(document, "table")
        self._cap(caller, table)
        return self.help(table)

    def help(self, label: str) -> Answer:
        """Run the scaler's turn for a table whose fleet needs help, unless one has just run.

        Raises `RefusedError` for a table that the coordinator does not have.
        """
        self._plan(label)
        outcome = self._turn_if_due(label, _TURN_INTERVAL)
        return {"table": label, "decisions": 0 if outcome is None else len(outcome.decisions)}

    def _cap(self, caller: Caller, table: str, *, to_boost: bool = False) -> BoostCap:
        """Return the caller's grant; raises `RefusedError` without one, or *to_boost* with one for pulses alone."""
        caps = self.read_caps()
        cap = find_cap(caps, caller, table)
        if cap is not None and (cap.is_for_boosts or not to_boost):
            return cap
        may = {name for each in caps if each.caller == caller.name for name in each.tables or ()}
        raise refusals.not_granted(caller, table, sorted(may) if cap is None else (), to_boost=to_boost)

    def _look(self, label: str, *, is_anew: bool = False, for_poll: bool = False) -> TableState:
        scaled = self._plan(label, is_anew=is_anew)
        region = self.region_of(scaled.region)
        return self.tables.state(scaled, region) if for_poll else TableState.read(scaled, region)

    def _plan(self, label: str, *, is_anew: bool = False) -> ScaledPlan:
        home = self.region_of(None)
        found = self.tables.plan(home, self.scaler, label, is_anew=is_anew)
        for plan in found.plans:
            # a parameter is found by other names too, such as that of one of its versions
            if not plan.is_released and plan.label == label:
                return plan
        if found.unreadable:
            why = f"its plan could not be read: {'; '.join(found.unreadable)}"
        else:
            labels = self.tables.labels(home, self.scaler)
            shown = ", ".join(labels[:_MOST_LABELS]) + (" and others" if len(labels) > _MOST_LABELS else "")
            why = f"no such table here; the coordinator has: {shown or 'none'}{did_you_mean(label, labels)}"
        raise refusals.unknown_table(label, why)

    def _read_demand(self, state: TableState) -> ReadDemand:
        return lambda key: self.tables.demand(state, self.region_of(state.scaled.region), key)

    def _own(self, known: TableLeases, id: str, caller: Caller, state: TableState) -> list[Lease]:
        """Return the caller's leases of one boost that have not ended."""
        own = known.of(caller.name, id)
        # time may have passed since the state was read
        live = [lease for lease in own if lease.ends > max(state.now, self.now())]
        if not live:
            raise refusals.over(state.scaled.label, id)
        return live

    def _set_floors(self, label: str, *, is_due: bool = True) -> list[str]:
        """Run a turn; return what is not set yet. If nothing has changed, not more often than pulses do."""
        outcome = self._shared_turn(label) if is_due else self._turn_if_due(label, _TURN_INTERVAL)
        if outcome is None:
            return []
        return [
            f"{table}: the floor is not set yet, the next minute's run tries again: {error}"
            for table, error in outcome.failed.items()
        ]

    def _shared_turn(self, label: str) -> RunOutcome | None:
        """Run a turn, unless another request does that later than now: of jobs that begin together a few run one.

        So two hundred boosts at one time are a turn in a second, and not two hundred turns.
        """
        written = self.now()
        for pauses in range(_MOST_PAUSES_FOR_A_TURN):
            try:
                if pauses and self.leases.is_turned_since(label, written + _CLOCK_SKEW):
                    return None
                if self.leases.claim_turn(label, self.now(), _SHARED_INTERVAL):
                    break
            except LeasesUnavailableError:
                break
            if self.remaining_seconds() < _SPARE_SECONDS:
                break
            self.pause(LOST_WRITE.seconds(_LATE_ATTEMPT))
        return self.turn(label)

    def _again(self, attempt: int) -> None:
        """Wait after another request's write, if the invocation has time for that."""
        if self.remaining_seconds() < _SPARE_SECONDS:
            raise refusals.too_many_at_once()
        self.pause(LOST_WRITE.seconds(attempt))
