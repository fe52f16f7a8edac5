"""Carrying out the review of one table: floors or capacity, then alarm thresholds, then the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from highwater.aws.autoscaling import read_targets, register_again, set_bounds, set_bounds_patiently
from highwater.aws.coordinator_table import LeasesUnavailableError, PulsesUnavailableError
from highwater.aws.observe import NOTHING_KEPT, Kept
from highwater.aws.region import AwsRegion
from highwater.aws.tables import DecreaseRefusedError, OvertakenError, TableBusyError, set_capacity, translating
from highwater.core.names import TargetName
from highwater.core.plan.plan import TargetKey
from highwater.core.scaler import Decision, LimitCode, Mode, SeenTable, SkipReason, TableReview, TargetReview
from highwater.core.scaler.attention import FULL_TICK_MINUTES, follows_closely
from highwater.core.scaler.decision import decision_document
from highwater.core.scaler.demand import DemandAlone
from highwater.core.scaler.metrics import ScalerMetric
from highwater.core.schedule.bounds import Bounds, bounds_at
from highwater.core.units import Dimension
from highwater.handlers.scaler.gather import GatheredRegion, RunOutcome, ThresholdChange

# Below this share of the lower bound of provisioned cost, on-demand is cheaper whatever scales the table.
_CHEAPER_ON_DEMAND_PERCENT = 100
# Decreases an hour apart to the second were refused and accepted by tenths (measured, 2026-10).
_SPARE_SECONDS = 0.2
_NO_FLOOR = frozenset({SkipReason.NO_INDEX, SkipReason.NOT_REGISTERED, SkipReason.LEFT_TO_AUTO_SCALING})


@dataclass(slots=True)
class Application:
    """Applies one table's review to AWS.

    Attributes:
        region: The adapter of the table's region.
        gathered: The state of the region from which the review was made.
        seen: The state of the table from which the review was made.
        review: The review to apply.
        dry_run: Log, and change nothing.
        pause: Sleeps for the given number of seconds.
        outcome: The outcome for this table only, because each table is handled in a separate thread.
        kept: The coordinator's table.
        noted: The units of each floor that are recorded as boosts'; at first those that the review was made with.
        noted_demands: The units of these floors that this turn has recorded as demand's and the plan's.
        noted_alone: The demand of boosted targets that this turn has recorded.
        settled: The targets whose floor or capacity is what the review asks for.
    """

    region: AwsRegion
    gathered: GatheredRegion
    seen: SeenTable
    review: TableReview
    dry_run: bool
    pause: Callable[[float], None]
    outcome: RunOutcome = field(default_factory=RunOutcome)
    kept: Kept = NOTHING_KEPT
    noted: Mapping[TargetKey, int] = field(init=False)
    noted_demands: Mapping[TargetKey, int] = field(default_factory=dict)
    noted_alone: Mapping[TargetKey, DemandAlone] = field(default_factory=dict)
    settled: set[TargetKey] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with what is recorded."""
        self.noted = self.seen.boosted

    def apply(self) -> RunOutcome:
        """Apply the review and return the outcome.

        Raises:
            TableNotFoundError: The table does not exist any more.
            TableBusyError: AWS does not accept a floor at present.
            TableRefusedError: AWS rejects a floor.
        """
        self._note_skips()
        self._note_unmanaged()
        self._compare_with_on_demand()
        # a target that this turn did not decide on keeps its record
        before = self._boosted_before()
        boosted = {each.key: each.boosted for each in self.review.decisions}
        # before a floor is raised: a part of it that is not recorded would be taken for demand, and raised again
        self._note_boosted(before | {key: max(units, before.get(key, 0)) for key, units in boosted.items()})
        try:
            self._set()
        finally:
            # and so would a part that is recorded of a floor which could not be set
            self._note_boosted(before | {key: units for key, units in boosted.items() if key in self.settled})
        self._tell_fleet()
        return self.outcome

    def _boosted_before(self) -> dict[TargetKey, int]:
        """The units of each floor that are recorded as boosts', without the floors that there are no more.

        The table stays on the list of the tick until nothing is recorded, so a floor that nobody can lower is left out.
        """
        planned = {target.key for target in self.review.scaled.plan.targets()}
        gone = {skip.target.key for skip in self.review.skips if skip.reason in _NO_FLOOR}
        return {key: units for key, units in self.seen.boosted.items() if key in planned - gone}

    def _set(self) -> None:
        if self.review.scaled.mode is Mode.DIRECT:
            self._set_capacities()
        # lowering may have to wait, so it comes last
        for reviewed in sorted(self.review.targets, key=lambda each: each.lowered is not None):
            if self.review.scaled.mode.moves_floors:
                self._set_floor(reviewed)
            self._log(reviewed.decision)
            self._ask_for_threshold(reviewed)
        if not self.dry_run:
            self._register_fixed_again()

    def _register_fixed_again(self) -> None:
        """Have capacity that is fixed, and was set below its floor, raised: by a deploy, a rollback or a hand."""
        for target in self.review.fixed_below_floor:
            name = TargetName(self.review.scaled.table, *target.key)
            translating(partial(register_again, self.region.autoscaling, name))
            self.outcome.count(ScalerMetric.FLOORS_SET)
            self.outcome.notes.append(f"{name}: its fixed capacity was below its floor, so it is registered again")

    def _note_skips(self) -> None:
        for skip in self.review.skips:
            if skip.reason is SkipReason.PAUSED:
                self.outcome.count(ScalerMetric.PAUSED)
            elif skip.reason not in (SkipReason.NO_INDEX, SkipReason.BEING_CHANGED):
                # a deleted index, and a change that is still in progress, are not worth a line in the log
                name = TargetName(self.review.scaled.table, *skip.target.key)
                region = "" if self.review.scaled.region is None else f" in {self.review.scaled.region}"
                self.outcome.notes.append(f"{name}{region}: {skip.reason}")

    def _note_unmanaged(self) -> None:
        left = self.review.unmanaged
        if left:
            # at each full tick, so that the alarm goes off once and stays
            self.outcome.count(ScalerMetric.UNMANAGED_INDEXES, len(left))
            names = ", ".join(map(repr, left))
            fix = "nothing scales it: name it in indexes= and deploy"
            self.outcome.notes.append(f"{self.review.scaled.label}: index {names} is not in the plan, so {fix}")

    def _note_boosted(self, boosted: Mapping[TargetKey, int]) -> None:
        """Record boosts' part of each floor for the next turn (decision 19), and demand for the coordinator (53)."""
        now = {key: units for key, units in boosted.items() if units}
        # none of a floor that this turn did not decide on, or could not set: the rest of that floor is demand's
        demands = {
            each.key: each.granted - each.boosted for each in self.review.decisions if each.boosted == now.get(each.key)
        }
        alone = {each.key: each.alone for each in self.review.decisions if each.alone is not None}
        leases = self.kept.leases
        if leases is None or self.dry_run or self.seen.lacks_leases:
            return
        if (now, demands, alone) == (self.noted, self.noted_demands, self.noted_alone):
            return
        label = self.review.scaled.label
        try:
            leases.note_boosted(label, now, demands, alone, self.review.clock.now)
            self.noted, self.noted_demands, self.noted_alone = now, demands, alone
        except LeasesUnavailableError as error:
            self.outcome.notes.append(f"{label}: boosts' part of floors is not recorded: {error}")

    def _is_recorded(self, *keys: TargetKey) -> bool:
        """Whether the boosts' part of these targets' new values is recorded; reports it if not."""
        for decision in self.review.decisions:
            if decision.key in keys and decision.boosted > self.noted.get(decision.key, 0):
                label = self.review.scaled.label
                self.outcome.failed[label] = "the lease table does not record the boosts' part of floors"
                return False
        return True

    def _tell_fleet(self) -> None:
        """Write hints for a fleet that sends pulses, from which its processes conclude when to wake the scaler."""
        scaled, now = self.review.scaled, self.review.clock.now
        hints = {each.decision.key: each.hint for each in self.review.targets if each.hint is not None}
        if self.kept.pulses is None or self.dry_run or not hints:
            return
        try:
            self.kept.pulses.tell(scaled.label, hints, int(now.timestamp()) // 60, FULL_TICK_MINUTES + 1)
        except PulsesUnavailableError as error:
            self.outcome.notes.append(f"{scaled.label}: its fleet could not be told: {error}")

    def _compare_with_on_demand(self) -> None:
        percent = self.review.on_demand_percent
        if percent is not None and percent < _CHEAPER_ON_DEMAND_PERCENT:
            self.outcome.count(ScalerMetric.CHEAPER_ON_DEMAND)
            self.outcome.notes.append(
                f"{self.review.scaled.label}: on demand, its last day would have cost {percent} % of the least that "
                "provisioned capacity can cost, as it idles and bursts; use on-demand, or ask highwater recommend"
            )

    def _set_floor(self, reviewed: TargetReview) -> None:
        name = self._name(reviewed.decision)
        if reviewed.lowered is not None:
            self._wait_for_decrease(reviewed.decision.index)
        registered = self.gathered.registered.of(name)
        lowered = reviewed.lowered
        if self.dry_run or (reviewed.bounds == registered and not reviewed.is_below_floor and lowered is None):
            self.settled.add(reviewed.decision.key)
            return
        if not self._is_recorded(reviewed.decision.key):
            return
        # another run may have raised the floor since this run read it: of two runs the higher floor must stay
        found = read_targets(self.region.autoscaling, [name])
        live = found.of(name)
        if self._has_plan_changed(reviewed.decision, found.at):
            self.outcome.notes.append(f"{name}: a window begins or ends in this minute; the next run sets the floor")
            return
        if live is not None and live != registered and live.min > reviewed.bounds.min:
            self.outcome.notes.append(f"{name}: the floor stays at {live.min:,}, which another run has just set")
        elif lowered is not None and live != registered:
            # a deploy may have handed the table to another plan while this run waited for a decrease
            self.outcome.notes.append(f"{name}: its bounds were changed meanwhile, so the next run decides")
            return
        elif lowered is not None:
            self._lower(name, lowered, reviewed.bounds)
        else:
            self._set_bounds(reviewed)
        self.settled.add(reviewed.decision.key)

    def _set_bounds(self, reviewed: TargetReview) -> None:
        name = self._name(reviewed.decision)
        try:
            translating(partial(set_bounds, self.region.autoscaling, name, reviewed.bounds))
        except Exception:
            with suppress(Exception):
                # only the answer may have been lost
                if read_targets(self.region.autoscaling, [name]).of(name) == reviewed.bounds:
                    self.settled.add(reviewed.decision.key)
            raise
        self.outcome.count(ScalerMetric.FLOORS_SET)

    def _has_plan_changed(self, decision: Decision, at: datetime) -> bool:
        """Whether the plan asks for other bounds now than when the target was reviewed.

        A scheduled action may have set them meanwhile, and would be undone by bounds of the minute before.
        """
        reviewed_at = self.review.clock.now
        target = next(each for each in self.review.scaled.plan.targets() if each.key == decision.key)
        return bounds_at(target, max(at, reviewed_at)) != bounds_at(target, reviewed_at)

    def _lower(self, name: TargetName, lowered: Bounds, bounds: Bounds) -> None:
        """Lower capacity to a ceiling, and set the bounds that remain.

        A run that ends between the two calls leaves the ceiling low. The next run of the table, in a minute at most,
        sets the bounds of its plan again (docs/decisions/0030).
        """
        translating(partial(set_bounds, self.region.autoscaling, name, lowered))
        self.outcome.count(ScalerMetric.CAPACITIES_SET)
        try:
            translating(partial(set_bounds_patiently, self.region.autoscaling, name, bounds))
        except TableBusyError as error:
            self.outcome.notes.append(f"{name}: the ceiling stays at {lowered.max:,} until the next minute: {error}")
            return
        self.outcome.count(ScalerMetric.FLOORS_SET)

    def _set_capacities(self) -> None:
        scaled, changes = self.review.scaled, dict(self.review.capacity_changes())
        self.settled |= {each.key for each in self.review.decisions if each.index not in changes}
        for index, wanted in changes.items():
            if self.dry_run or not self._is_recorded(*((index, each) for each in Dimension)):
                continue
            present = self.seen.resources[index].provisioned
            units = present.with_units(wanted)
            if units.read < present.read or units.write < present.write:
                self._wait_for_decrease(index)
            try:
                set_capacity(self.region.dynamodb, scaled.table, index, units)
                self.outcome.count(ScalerMetric.CAPACITIES_SET)
                self.settled |= {(index, each) for each in Dimension}
            except (DecreaseRefusedError, TableBusyError, OvertakenError) as refused:
                # the next run decides again
                self.outcome.notes.append(f"{scaled.label}: {refused}")

    def _wait_for_decrease(self, index: str | None) -> None:
        """Wait until DynamoDB accepts a decrease: at the same minute of each hour, an hour may lack a second or two."""
        now = self.review.clock.now
        allowed = self.seen.resources[index].budget.next_allowed(now)
        if allowed > now and not self.dry_run:
            self.pause((allowed - now).total_seconds() + _SPARE_SECONDS)

    def _ask_for_threshold(self, reviewed: TargetReview) -> None:
        """Request that the alarm's threshold follow the capacity. Targets without alarm are reviewed by ticks only.

        The run moves thresholds after the floors of all tables: floors are more urgent, and CloudWatch accepts only few
        changes of alarms a second.
        """
        alarm, wanted = self.gathered.alarms.get(self._name(reviewed.decision)), reviewed.alarm_threshold
        if alarm is None or alarm.threshold == wanted or self.dry_run:
            return
        if not follows_closely(alarm.threshold, wanted, is_in_alarm=alarm.is_in_alarm):
            self.outcome.thresholds.append(ThresholdChange(self.region, alarm, wanted))

    def _name(self, decision: Decision) -> TargetName:
        return TargetName(self.review.scaled.table, *decision.key)

    def _log(self, decision: Decision) -> None:
        if decision.has_hot_key:
            self.outcome.count(ScalerMetric.HOT_KEYS)
        if decision.limited_by(LimitCode.CEILING):
            self.outcome.count(ScalerMetric.AT_CEILING)
        if decision.limited_by(LimitCode.REGRET):
            self.outcome.count(ScalerMetric.COSTS_MORE_THAN_TRACKING)
        if decision.limited_by(LimitCode.DECREASE_BUDGET):
            self.outcome.count(ScalerMetric.DECREASE_BUDGET_EXHAUSTED)
        # an idle target is limited by the plan's floor all day, which is not worth a line in the log
        was_limited = any(limit.code is not LimitCode.BASELINE for limit in decision.limits)
        if decision.changes or was_limited or decision.has_hot_key or decision.lowered_to is not None:
            self.outcome.decisions.append(self._document(decision))

    def _document(self, decision: Decision) -> dict[str, Any]:
        scaled = self.review.scaled
        table = {"table": scaled.label, "target": decision.label, "mode": str(scaled.mode)}
        return table | decision_document(decision) | {"dry_run": self.dry_run}
