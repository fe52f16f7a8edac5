"""One run of the scaler: its tables region by region, each table in a separate thread, and the run's outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from highwater.aws.cloudwatch import move_threshold
from highwater.aws.observe import NOTHING_KEPT, Kept, observe_table
from highwater.aws.parameters import ScaledPlans, read_plans, read_plans_of
from highwater.aws.region import AwsRegion
from highwater.aws.tables import TableBusyError, describe_table, translating
from highwater.aws.tags import read_tagged_plans, read_tagged_scalers
from highwater.core.names import TargetName
from highwater.core.scaler import Observation, ScaledPlan, review
from highwater.core.scaler.attention import is_other_scalers_tick
from highwater.core.scaler.metrics import ScalerMetric
from highwater.handlers.scaler.apply import Application
from highwater.handlers.scaler.boosted import BoostedTables
from highwater.handlers.scaler.event import ALARM, TICK, ScalerEvent
from highwater.handlers.scaler.gather import Consumption, DueTable, GatheredRegion, RunOutcome, gather_region

_KEPT = timedelta(minutes=5)
_MOST_READ_ALWAYS = 200


@dataclass(slots=True)
class PlanCache:
    """A cache of the plans.

    Attributes:
        kept: How long plans are cached, by the events' time.
        most_read_always: Up to this number of plans, all plans are read in every run.
    """

    kept: timedelta = _KEPT
    most_read_always: int = _MOST_READ_ALWAYS
    _read_at: datetime | None = None
    _plans: ScaledPlans | None = None

    def read(self, home: AwsRegion, scaler: str, now: datetime | None, boosted: Sequence[str] = ()) -> ScaledPlans:
        """Return the plans of *scaler*.

        They are read again if the cached ones are too old or later than *now*, if *now* is not known, or if those of
        *boosted* tables are missing.
        """
        is_fresh = now is not None and self._read_at is not None and timedelta(0) <= now - self._read_at < self.kept
        if self._plans is not None and not {plan.label for plan in self._plans.plans}.issuperset(boosted):
            is_fresh = False
        if self._plans is None or not is_fresh or len(self._plans.plans) <= self.most_read_always:
            self._plans = read_plans(home.ssm, scaler)
            self._read_at = now
        return self._plans


_THREADS = 8
# CloudWatch accepts about three changes of alarms a second for the whole account (CloudWatch User Guide, "CloudWatch
# service quotas", PutMetricAlarm, read 2026-11), so this many take half a minute. The next runs move the others.
MOST_THRESHOLDS_MOVED = 100
# If CloudWatch throttles this many calls in one run, the rate is exceeded.
_MOST_BUSY = 3
# This many rejected calls mean that a permission is missing, not that some alarms were changed by hand.
_MOST_REFUSALS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a scaler.

    Attributes:
        name: The scaler's name, unique in its account and region: part of the path of its plans.
        function: The name of its Lambda function, empty if not known.
        dry_run: Decide and log, and change nothing.
        sees_tags: Also manage tables that have the tag `highwater:managed`.
        regions: Regions in which to search for tagged tables, in addition to the scaler's own region.
    """

    name: str = "scaler"
    function: str = ""
    dry_run: bool = False
    sees_tags: bool = False
    regions: tuple[str, ...] = ()


@dataclass(slots=True)
class ScalerRun:
    """One run.

    Attributes:
        event: The event that started it.
        remaining_seconds: Returns how much time the run has left.
        region_of: Makes a region's clients; `None` is the scaler's own region, which has the plans.
        plan_cache: Plans that earlier runs have read.
        options: The scaler's options.
        outcome: The outcome so far.
        kept: The coordinator's table; by default there is none.
        pause: Sleeps for the given number of seconds.
    """

    event: ScalerEvent
    remaining_seconds: Callable[[], float]
    region_of: Callable[[str | None], AwsRegion]
    plan_cache: PlanCache = field(default_factory=PlanCache)
    options: Options = field(default_factory=Options)
    outcome: RunOutcome = field(default_factory=RunOutcome)
    kept: Kept = NOTHING_KEPT
    pause: Callable[[float], None] = time.sleep

    def run(self) -> RunOutcome:
        """Set floor or capacity of every target that is due.

        A failure of one table or region does not affect the others. If the plans cannot be read, the run fails, and
        Lambda retries it.
        """
        home = self.region_of(None)
        at = self.event.now if self.event.kind == TICK and not self.event.tables else None
        boosted = BoostedTables(self.kept.leases if at is not None else None, self.outcome)
        read = self._read_plans(home, boosted.listed)
        for line in read.unreadable:
            self.outcome.notes.append(f"a plan could not be read: {line}")
            self.outcome.count(ScalerMetric.UNREADABLE_PLANS)
        managed = [plan for plan in read.plans if not plan.is_released]
        chosen = [plan for plan in managed if not self.event.tables or plan.label in self.event.tables]
        if at is not None:
            boosted.find_due(read, at)
        by_region: dict[str | None, list[ScaledPlan]] = {}
        for plan in chosen:
            by_region.setdefault(plan.region, []).append(plan)
        # the scaler's own region first
        regions = sorted(by_region, key=lambda name: name or "")
        due = sum(self._scale_region(name, home, by_region[name], boosted.due) for name in regions)
        if at is not None:
            boosted.unlist(at)
        self._move_thresholds()
        self._note_other_tagged_scalers()
        self.outcome.figures |= {"Tables": len(chosen), "TargetsDue": due, "TablesLeft": len(self.outcome.left)}
        self.outcome.count(ScalerMetric.TABLES_FAILED, len(self.outcome.failed))
        return self.outcome

    def _read_plans(self, home: AwsRegion, boosted: Sequence[str]) -> ScaledPlans:
        # a run by hand, after a deploy or after a failure needs the newest plans, not cached ones
        if self.event.tables:
            plans = read_plans_of(home.ssm, self.options.name, self.event.tables)
        else:
            cache = self.plan_cache if self.event.kind == TICK else PlanCache()
            plans = cache.read(home, self.options.name, self.event.now, boosted)
        # tags are read for the whole region at once, which an event for tables with plans does not need
        is_complete = bool(self.event.tables) and len(plans.plans) == len(set(self.event.tables))
        if not self.options.sees_tags or is_complete:
            return plans
        plans = plans.and_others(read_tagged_plans(home.tagging, home.name))
        for name in self.options.regions:
            try:
                there = self.region_of(name)
                plans = plans.and_others(read_tagged_plans(there.tagging, there.name))
            except Exception as error:
                self.outcome.notes.append(f"tags in {name} could not be read: {type(error).__name__}: {error}")
                self.outcome.count(ScalerMetric.UNREADABLE_PLANS)
        return plans

    def _scale_region(self, name: str | None, home: AwsRegion, plans: list[ScaledPlan], boosted: Set[str]) -> int:
        """Scale the tables of one region, of which *boosted* are due; return how many targets were due."""
        try:
            region = home if name is None else self.region_of(name)
            gathered = gather_region(region, plans, self.event, self.outcome, boosted)
        except Exception as error:
            if name is None:
                raise
            self.outcome.failed.update((plan.label, f"{type(error).__name__}: {error}") for plan in plans)
            return 0
        if gathered is None:
            return 0
        self._note_other_scalers(gathered)
        consumption = Consumption(region, gathered.clock, self.outcome)
        work: list[Future[RunOutcome]] = []
        unfinished: set[Future[RunOutcome]] = set()
        with ThreadPoolExecutor(_THREADS) as pool:
            for group in consumption.groups(gathered.due):
                has_time = self.remaining_seconds() > 0
                consumed = consumption.read(group) if has_time else {}
                started = [pool.submit(self._outcome_of, region, due, gathered, consumed) for due in group]
                work += started
                unfinished.update(started)
                # read on when a thread would be idle, so that only the minutes of these tables take memory
                while len(unfinished) >= _THREADS:
                    unfinished = wait(unfinished, return_when=FIRST_COMPLETED).not_done
        for done in work:
            self.outcome.add(done.result())
        return sum(len(due.targets) for due in gathered.due)

    def _note_other_scalers(self, gathered: GatheredRegion) -> None:
        """Report each table whose alarm starts another function: two scalers then set the same floors."""
        if not self.options.function:
            return
        for due in gathered.due:
            alarms = (gathered.alarms[name] for name in due.names() if name in gathered.alarms)
            functions = {arn.split(":function:")[-1] for alarm in alarms for arn in alarm.functions}
            others = sorted(functions - {self.options.function})
            if others:
                self.outcome.notes.append(
                    f"{due.scaled.label}: another scaler manages this table too, with the function "
                    f"{', '.join(others)}; remove the table from one of the two"
                )

    def _note_other_tagged_scalers(self) -> None:
        """Report, once an hour, other scalers of tagged tables in the searched regions.

        Tagged tables have no alarm that names a scaler's function, so the functions themselves are searched for.
        """
        at, options = self.event.now, self.options
        # a dry run sets nothing, so it cannot conflict with another scaler
        may_meet_others = options.sees_tags and options.function and not options.dry_run
        if not may_meet_others or self.event.kind != TICK or at is None:
            return
        if not is_other_scalers_tick(options.name, int(at.timestamp()) // 60):
            return
        for name in (None, *options.regions):
            where = "the scaler's region" if name is None else name
            try:
                functions = set(read_tagged_scalers(self.region_of(name).tagging))
            except Exception as error:
                self.outcome.notes.append(
                    f"other scalers of tagged tables in {where} could not be read: {type(error).__name__}: {error}"
                )
                continue
            # a function in another region is not this one, even if it has the same name
            others = sorted(functions - {options.function} if name is None else functions)
            if others:
                self.outcome.notes.append(
                    f"tagged tables of {where}: another scaler manages them too, with the function "
                    f"{', '.join(others)}; pass tagged= to one of the two, or give them different regions"
                )

    def _move_thresholds(self) -> None:
        """Move thresholds of alarms, within the run's limits; the next runs do the rest.

        A run that an alarm started moves none: when alarms of many tables go off at once, there is a run for each, and
        together they would exceed the rate of the account. The next tick reviews these targets again.
        """
        if self.event.kind == ALARM:
            return
        moved, busy, refusals = 0, 0, list[str]()
        for change in self.outcome.thresholds[:MOST_THRESHOLDS_MOVED]:
            if self.remaining_seconds() <= 0 or busy >= _MOST_BUSY or len(refusals) >= _MOST_REFUSALS:
                break
            try:
                translating(partial(move_threshold, change.region.cloudwatch, change.alarm, change.threshold))
                moved += 1
            except Exception as error:
                busy += isinstance(error, TableBusyError)
                refusals.append(f"{type(error).__name__}: {error}")
        if moved:
            self.outcome.figures["AlarmsMoved"] = moved
        left = len(self.outcome.thresholds) - moved
        if left:
            why = f": {'; '.join(refusals)}" if refusals else ""
            self.outcome.notes.append(f"thresholds of {left} alarms are left to the next runs{why}")

    def _outcome_of(
        self, region: AwsRegion, due: DueTable, gathered: GatheredRegion, consumed: Mapping[TargetName, Observation]
    ) -> RunOutcome:
        """Scale one table. An error is returned as a sentence: its traceback would retain the table's minutes."""
        label = due.scaled.label
        if self.remaining_seconds() <= 0:
            return RunOutcome(left=[label])
        try:
            return self._scale_table(region, due, gathered, consumed)
        except Exception as error:
            return RunOutcome(failed={label: f"{type(error).__name__}: {error}"})

    def _scale_table(
        self, region: AwsRegion, due: DueTable, gathered: GatheredRegion, consumed: Mapping[TargetName, Observation]
    ) -> RunOutcome:
        """Observe, review and apply, for one table."""
        outcome = RunOutcome()
        scaled = due.scaled
        described = describe_table(region.dynamodb, scaled.table)
        registered, clock = gathered.registered, gathered.clock
        seen = observe_table(region, scaled, described, due.names(), registered, consumed, clock, self.kept, outcome)
        reviewed = review(scaled, seen, clock)
        dry_run = self.options.dry_run
        return Application(region, gathered, seen, reviewed, dry_run, self.pause, outcome, self.kept).apply()
