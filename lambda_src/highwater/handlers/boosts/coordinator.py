"""What the coordinator does with a call: leases are written first, then the scaler's turn sets the floors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from highwater.aws.leases import LeasesFullError, LeasesOvertakenError, LeasesUnavailableError, LeaseTable, TableLeases
from highwater.aws.wakes import Wakes, WakesUnavailableError
from highwater.core.boosts import BoostCap, BoostRequest, Caller, Grant, Lease, LeaseError, find_cap
from highwater.core.boosts.documents import described_lease
from highwater.core.boosts.request import read_id, read_minutes
from highwater.core.scaler import ScaledPlan
from highwater.handlers.boosts.answers import grant_documents, notes_on, outcome_of, target_documents
from highwater.handlers.boosts.call import Call
from highwater.handlers.boosts.granting import check_room, grant_of, grant_of_known, read_table
from highwater.handlers.boosts.kept_plans import KeptPlans
from highwater.handlers.boosts.refusal import RefusedError
from highwater.handlers.boosts.state import TableState
from highwater.handlers.scaler.outcome import Outcome
from highwater.handlers.scaler.region import Region

Answer = dict[str, Any]
# Each second that a call waits for others is a second that its job waits
_KEPT_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """Serves the calls of one invocation.

    Attributes:
        scaler: The name under which the plans are in Systems Manager.
        region_name: The function's region, whose prices count for its own tables.
        region_of: Makes a region's adapter; `None` asks for the function's own.
        plans: The plans that this function read last.
        leases: Where boosts are kept.
        read_caps: Reads who may boost what.
        wakes: Has the function run while a boost is live.
        turn: Has the scaler look at a table at once, and returns what was done.
        pause: Waits a little before the attempt of that number, at a length of its own choice.
        remaining_seconds: Answers how much time the invocation has left.
    """

    scaler: str
    region_name: str
    region_of: Callable[[str | None], Region]
    plans: KeptPlans
    leases: LeaseTable
    read_caps: Callable[[], Sequence[BoostCap]]
    wakes: Wakes
    turn: Callable[[str], Outcome]
    pause: Callable[[int], None]
    remaining_seconds: Callable[[], float]

    def serve(self, call: Call) -> Answer:
        """Carry out a call; raises `RefusedError` for one that cannot be."""
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
        """Write what can be granted; or find what was granted before, if the request arrives again."""
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
                # first, so that no lease is ever live that nothing ends
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
        # whoever has a boost may give it back, also when the grant was taken away meanwhile
        state, _ = self._look(table)
        own = self._change(table, id, caller, state, lambda lease, _: lease.released_at(state.now), may_be_over=True)
        self._tell(table, id, "release", {"owner": caller.name, "session": caller.session}, state)
        notes = self._set_floors(table)
        if own:
            # some more runs, as this turn may have met one that still raised, or could not lower
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
        """Write the leases of one boost as they are *changed*."""
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
        """Have the scaler look at a table at once, as the fleet asks for help."""
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
        """The leases of one boost, which only its owner may ask for; without those that are over."""
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
        """Add to the log; a boost is not refused for want of an entry."""
        try:
            self.leases.log(table, id, what, entry, state.now)
        except (LeasesUnavailableError, LeasesOvertakenError):
            return

    def _pause(self, attempt: int) -> None:
        if self.remaining_seconds() < _KEPT_SECONDS:
            raise RefusedError(503, "too many boosts of the table were asked for at once; ask again")
        self.pause(attempt)
