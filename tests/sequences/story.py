"""Stories of deploys, rollbacks, windows, edits by hand and hours without a scaler, and the laws that hold in all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from highwater.aws.autoscaling import suspend
from highwater.core import Bounds, Dimension, Plan, Target
from highwater.core.names import TargetName
from highwater.core.schedule.bounds import bounds_at, bounds_with, has_changed
from highwater.handlers.deploy.handler import FLOORS_TYPE, MARKS_TYPE
from tests.memory_aws.account import Account
from tests.sequences.cloudformation import Resource, Stack
from tests.sequences.declared import (
    BEGIN,
    DECLARATIONS,
    LATER,
    LEGACY,
    MARK_UNITS,
    ORDERS,
    Synthesized,
    compose,
    synthesize,
)
from tests.sequences.provider import AccountProvider

_HOUR = 3600
# Units a second that each table and index consumes all the time: less than any floor.
CONSUMED = 3
_LATE_IN_THE_HOUR = 57 * 60
# A deploy of a change has some ten operations, the first one forty.
_FAILURES = st.none() | st.integers(0, 10) | st.integers(0, 40)
_SECONDS_EACH = st.sampled_from([0, 0, 20, 61])
_HALF_HOURS = 60
_WHILE = timedelta(hours=1)
_A_MINUTE, _TEN_MINUTES = 60, 600
_DEPLOYMENT = "HighwaterDeploymentFunction"
_FUNCTION = "AWS::Lambda::Function"


@cache
def _synthesized(name: str, is_later: bool = False) -> Synthesized:
    # only a one-off window makes a difference
    if is_later and all(window.is_recurring for window in DECLARATIONS[name].windows):
        return _synthesized(name)
    return synthesize(DECLARATIONS[name], LATER if is_later else BEGIN)


def _declaration() -> st.SearchStrategy[str | None]:
    return st.sampled_from([None, *DECLARATIONS])


def _targets(name: str | None) -> tuple[Target, ...]:
    """The targets of a declaration; none of one on demand, or where there is no table."""
    plan = None if name is None else _synthesized(name).plan
    return () if plan is None else plan.targets()


class Sequences(RuleBasedStateMachine):
    """One stack with the tables `Orders`, which is deleted with it, and `Legacy`, which is retained."""

    steps_taken = 0
    account_type = Account

    @initialize(hour=st.integers(0, 47))
    def begin(self, hour: int) -> None:
        self.account = self.account_type(int(BEGIN.timestamp()) + hour * _HOUR + 61, consumed_units=CONSUMED)
        self.provider = AccountProvider(self.account)
        self.stack = Stack(self.provider)
        self.account.stack_status = lambda: self.stack.status
        self.account.stack_resources = lambda: {key: each.physical_id for key, each in self.stack.resources.items()}
        self.declared: dict[str, str | None] = {ORDERS: None, LEGACY: None}
        # the last plan of a table, by the name that DynamoDB knows it by
        self.plans: dict[str, Plan] = {}
        # targets of which somebody set the floor by hand
        self.edited: set[TargetName] = set()

    @rule(orders=_declaration(), legacy=_declaration(), fails_at=_FAILURES, seconds_each=_SECONDS_EACH)
    def deploy(self, orders: str | None, legacy: str | None, fails_at: int | None, seconds_each: int) -> None:
        """A deploy, which may fail half-way, and take so long that the scaler runs between its operations."""
        self.provider.seconds_each = seconds_each
        wanted: dict[str, str | None] = {ORDERS: orders, LEGACY: legacy}
        template = compose(self.synthesized(orders), self.synthesized(legacy), _synthesized("calm"))
        before, began, capacity = dict(self.stack.resources), self.account.at(), self.capacity()
        failure = self.stack.deploy(template, fails_at)
        if failure is None:
            self._check_capacities(wanted, before, _WHILE)
            self.edited = {name for name in self.edited if self._is_unchanged(name, wanted)}
            self.declared = wanted
        else:
            assert fails_at is not None, f"nothing was in the way: {failure}"
        self.turn()
        if failure is not None:
            self._recover_without_our_function(wanted)
        self.check_kept(capacity, self.account.at() - began + _WHILE)
        if failure is None:
            # what had to wait for an index is raised by now
            self._check_capacities(wanted, before, self.account.at() - began + _WHILE)
            self._check_raised(before)
        self.check()

    @rule(by_hand=st.booleans())
    def destroy(self, by_hand: bool) -> None:
        """The stack goes; somebody may have deleted its tables before, by hand."""
        if by_hand:
            self.account.tables.clear()
        self.stack.delete()
        assert not self.stack.resources
        self.declared = {ORDERS: None, LEGACY: None}
        self.turn()
        assert not self.account.autoscaling.targets
        assert not self.account.parameters
        assert not self.account.alarms
        self.check()

    @rule(hours=st.integers(1, 30), minutes=st.integers(0, 59), is_down=st.booleans())
    def wait(self, hours: int, minutes: int, is_down: bool) -> None:
        """Windows open and close; the scaler may be down for all that time."""
        for _ in range(hours):
            self.account.advance(_LATE_IN_THE_HOUR - self.account.now % _HOUR + _HOUR)
            if not is_down:
                self.turn()
        if not is_down and hours > 1:
            # a floor that was raised is lowered late in an hour that is paid for
            self.edited = {name for name in self.edited if not self._is_followed(name)}
            self.check_repairs(timedelta(hours=min(hours, 2)))
        self.account.advance(minutes * 60)
        self.turn()
        self.check()

    @rule(minutes=st.integers(0, 20))
    def wait_for_a_window(self, minutes: int) -> None:
        """Most deploys are inside no window, and the mistakes are in those that are."""
        self.wait_until_open([name for name in self.declared.values() if name is not None])
        self.account.advance(minutes * 60)
        self.turn()
        self.check()

    def wait_until_open(self, declared: list[str]) -> None:
        """Wait until a window of these declarations is open, for as long as that may take."""
        targets = [target for name in declared for target in _targets(name) if target.windows]
        for _ in range(_HALF_HOURS):
            if any(bounds_at(target, self.account.at()) != bounds_with(target, ()) for target in targets):
                break
            self.account.advance(1_800)
            self.turn()

    @rule(number=st.integers(0, 7), low=st.integers(1, 60))
    def set_a_floor_by_hand(self, number: int, low: int) -> None:
        """The scaler sets it right in its next turn, and a deploy of another plan."""
        names = sorted(self.account.autoscaling.targets, key=str)
        if not names:
            return
        name = names[number % len(names)]
        ceiling = self.account.autoscaling.targets[name].bounds.max
        self.account.autoscaling.register(name, Bounds(min(low, ceiling), ceiling), self.account.now)
        self.edited.add(name)
        self.turn()
        self.check()

    def turn(self) -> None:
        """Serve what was handed on, then run the scaler."""
        while self.account.waiting:
            self.account.serve_waiting()
        turn = self.account.turn()
        assert turn is None or not turn.failed, turn.failed

    def check(self) -> None:
        """Every law."""
        Sequences.steps_taken += 1
        # nothing that CloudFormation asked for failed, a deletion least of all: that would keep the whole stack
        assert not self.provider.failures, self.provider.failures
        # leaving never takes a table below what it had
        assert not self.provider.lowered, self.provider.lowered
        names = self.names()
        for table, name in self.declared.items():
            if name is not None and (plan := _synthesized(name).plan) is not None:
                self.plans[names[table]] = plan
                self._check_floors(names[table], name)
        for name in list(self.account.tables):
            self._check_marks(name)
            if name not in names.values():
                # somebody deletes what was retained
                del self.account.tables[name]

    def _check_floors(self, table: str, declared: str) -> None:
        """Every floor and ceiling is the plan's, for now."""
        for target in self.plans[table].targets():
            name = TargetName(table, *target.key)
            found, wanted = self.account.autoscaling.targets[name].bounds, bounds_at(target, self.account.at())
            if name in self.edited:
                is_right = found.min >= wanted.min or not self._is_followed(name)
                assert is_right, f"{name} has {found}, not at least {wanted}, {declared}"
                continue
            assert found == wanted, f"{name} has {found}, not {wanted}, at {self.account.at()}, {declared}"

    def _check_capacities(
        self, wanted: dict[str, str | None], before: Mapping[str, Resource], within: timedelta
    ) -> None:
        """After a deploy that sets its floors, a table has at least these."""
        tables = {resource.properties["TableName"] for resource in self._changed(FLOORS_TYPE, before)}
        names = self.names()
        changed = {table: name for table, name in wanted.items() if names.get(table) in tables}
        self._check_reached(changed, within)

    def capacity(self) -> dict[TargetName, int]:
        """What the managed tables have, or are about to have."""
        return {
            name: self.account.tables[name.table].resources[name.index].granted[name.dimension]
            for name, _ in self._live_targets()
        }

    def _live_targets(self) -> Iterator[tuple[TargetName, Target]]:
        """The targets that the managed tables should have, and whose table and index exist."""
        names = self.names()
        for table, declared in self.declared.items():
            for target in _targets(declared):
                physical = self.account.tables.get(names[table])
                if physical is not None and target.index in physical.resources:
                    yield TargetName(names[table], *target.key), target

    def check_kept(self, before: Mapping[TargetName, int], within: timedelta = _WHILE) -> None:
        """No deploy, failed or not, leaves a target with less than its floor that had as much before it.

        When a window opens, one of a table's two dimensions may stay where it is until a scaler looks at it.
        """
        found = self.capacity()
        for name, target in self._live_targets():
            if has_changed(target, self.account.at(), within):
                continue
            units, had = found[name], before.get(name, 0)
            floor = self.account.autoscaling.targets[name].bounds.min
            assert units >= min(had, floor), f"{name} has {units} units, had {had} before, and its floor is {floor}"

    def _recover_without_our_function(self, wanted: Mapping[str, str | None]) -> None:
        """Where a failed deploy would have put a table on demand, its template has no function of ours for it.

        A scaler registers targets again, as one of two may be rejected at once in several turns; without one somebody
        does it, as docs/drift.md says.
        """
        for table, declared in self.declared.items():
            left = wanted[table]
            if declared is None or left is None or DECLARATIONS[left].is_managed:
                continue
            for name in [each for each in self.account.autoscaling.targets if each.table == self.names()[table]]:
                if DECLARATIONS[declared].is_scaled:
                    self.account.advance(_TEN_MINUTES)
                    self.turn()
                else:
                    client: Any = self.account.targets_client(lambda *_: True)
                    suspend(client, name, suspended=False)
                    self.account.advance(_A_MINUTE)

    def check_repairs(self, within: timedelta) -> None:
        """The scaler has capacity follow a floor that auto scaling could not raise it to when a window opened."""
        scaled = {table: name for table, name in self.declared.items() if name and DECLARATIONS[name].is_scaled}
        self._check_reached(scaled, within)

    def _check_reached(self, wanted: Mapping[str, str | None], within: timedelta) -> None:
        """Capacity has at least its floor, unless that has changed lately or the table is being changed."""
        at = self.account.at()
        for table, declared in wanted.items():
            if declared is None:
                continue
            name = self.names()[table]
            for target in _targets(declared):
                control = self.account.tables[name].resources[target.index]
                control.settle(self.account.now)
                if self.account.tables[name].is_changing(self.account.now) or has_changed(target, at, within):
                    continue
                floor = self.account.autoscaling.targets[TargetName(name, *target.key)].bounds.min
                units = control.units[target.dimension]
                assert units >= floor, f"{name} {target.label} has {units} units, its floor is {floor}, {declared}"

    def _check_marks(self, name: str) -> None:
        """Nothing is provisioned at a mark's price."""
        table = self.account.tables[name]
        for index, control in table.resources.items():
            assert control.granted[Dimension.WRITE] != MARK_UNITS, f"{name} {index} is left at its mark"

    def _changed(self, kind: str, before: Mapping[str, Resource]) -> Iterator[Resource]:
        """The custom resources that a deploy created or updated. Of others the function is not told.

        So the rollback of a removed index makes it again without its mark, if all else of it was unchanged.
        """
        for key, resource in self.stack.resources.items():
            if resource.kind == kind and (key not in before or resource.properties != before[key].properties):
                yield resource

    def _check_raised(self, before: Mapping[str, Resource]) -> None:
        """Every mark of a deploy is raised, or being raised, also where it had to wait for an index."""
        for resource in self._changed(MARKS_TYPE, before):
            table = self.account.tables[resource.properties["TableName"]]
            for mark in json.loads(resource.properties["Marks"]):
                found = table.resources[mark["index"]].mark_to_come
                low = [each for each in Dimension if found[each] < mark[each]]
                assert not low, f"{table.name} {mark['index']} has marks {found}, not {mark}"

    def _is_unchanged(self, name: TargetName, wanted: dict[str, str | None]) -> bool:
        """Whether a deploy leaves a target's table as it was declared before."""
        table = self._table_of(name)
        return table is not None and wanted[table] == self.declared[table]

    def _is_followed(self, name: TargetName) -> bool:
        """Whether a scaler sets the target's floor; that of fixed capacity is left to deploys and scheduled actions."""
        table = self._table_of(name)
        declared = None if table is None else self.declared[table]
        if declared is None or not DECLARATIONS[declared].is_scaled:
            return False
        return any(
            target.key == (name.index, name.dimension) and target.capacity.is_autoscaled
            for target in _targets(declared)
        )

    def _table_of(self, name: TargetName) -> str | None:
        """`Orders` or `Legacy`; `None` for a table that the stack no longer has."""
        return next((table for table, physical in self.names().items() if physical == name.table), None)

    def synthesized(self, name: str | None) -> Synthesized | None:
        return None if name is None else _synthesized(name, self.account.at() >= LATER)

    def names(self) -> dict[str, str]:
        """The tables' physical names."""
        resources = self.stack.resources.items()
        found = {table: each for key, each in resources for table in (ORDERS, LEGACY) if key[:-8] == table}
        return {table: resource.physical_id for table, resource in found.items()}


def function_id() -> str:
    """The logical id of the function for deploys."""
    resources = _synthesized("calm").resources.items()
    (found,) = [key for key, each in resources if key.startswith(_DEPLOYMENT) and each["Type"] == _FUNCTION]
    return found
