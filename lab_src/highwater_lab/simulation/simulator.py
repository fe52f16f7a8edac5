"""How a table stands when the traffic begins: settled, as if it had run for long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from highwater.core import Bounds, Dimension
from highwater.core.pulses import SLOT_SECONDS
from highwater.core.tracking import NATIVE_TARGET_PERCENT
from highwater_lab.physics import QUANTA_PER_UNIT
from highwater_lab.rooms import drained, start_queue
from highwater_lab.services.autoscaling import bounds_before
from highwater_lab.services.billing import ALARMS_PER_POLICY, Bill, BilledReplica, bill
from highwater_lab.services.prices import Prices, load_prices
from highwater_lab.services.timing import Timing
from highwater_lab.services.update_table import Refused
from highwater_lab.simulation.autoscaling import SimulatedAutoScaling
from highwater_lab.simulation.background import start_jobs
from highwater_lab.simulation.fleet import Fleet
from highwater_lab.simulation.policy import Calls, Policy, PolicyResource, PolicyTarget, Seen
from highwater_lab.simulation.run import Run
from highwater_lab.simulation.setup import ResourceSetup, TableSetup, TargetSetup
from highwater_lab.simulation.table import SimulatedTable, rates_of
from highwater_lab.traffic.series import Traffic


def opening(setup: TableSetup, traffic: Traffic, *, is_polled: bool = False) -> TableSetup:
    """The setup with the bounds that its schedule leaves at the start, and capacity to suit the first minute.

    Capacity that no policy scales stays as it is, but for the bounds; other capacity starts at the first minute's
    demand over the target utilization, within them. Where the policy polls, that is 70 % whatever it gives target
    tracking, so that all scalers start with the capacity that native:70 has.
    """
    if not setup.starts_settled:
        return setup
    resources = (
        each.with_targets(*(_open_target(each, dimension, traffic, is_polled=is_polled) for dimension in Dimension))
        for each in setup.resources
    )
    return replace(setup, resources=tuple(resources))


def _open_target(resource: ResourceSetup, dimension: Dimension, traffic: Traffic, *, is_polled: bool) -> TargetSetup:
    target = resource.target(dimension)
    floor, ceiling = bounds_before(target.actions, int(traffic.start.timestamp()), target.min, target.max)
    if not target.is_scaled:
        return replace(target, min=floor, max=ceiling, units=min(max(target.units, floor), ceiling))
    percent = NATIVE_TARGET_PERCENT if is_polled or target.tracking is None else target.tracking.target_percent
    rates = rates_of(traffic, resource, dimension)
    demand = -(-sum(rates[: 60 // traffic.bin_seconds]) * traffic.bin_seconds // 3600) if rates else 0
    units = min(max(-(-demand * 100 // percent), floor, 1), ceiling)
    return replace(target, min=floor, max=ceiling, units=units)


Progress = Callable[[int, int], None]


def simulate(
    setup: TableSetup,
    traffic: Traffic,
    policy: Policy,
    *,
    timing: Timing | None = None,
    prices: Prices | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run *traffic* against the table as *policy* has it, and record every minute.

    The table starts settled: with the bounds of its schedule at that time, capacity for the first minute (`opening`),
    and full buckets. Throttled requests are not sent again, except by jobs and by a queue. *progress*
    is called once a simulated day with the minutes done and all minutes. The same input gives the same run, to the last
    quantum.
    """
    timing = timing or Timing()
    served = drained(setup, traffic)
    opened = opening(policy.arrange(setup, served), served, is_polled=bool(policy.period_seconds))
    table = SimulatedTable(opened, served, timing.heat_split_minutes)
    autoscaling = SimulatedAutoScaling(table, timing)
    poller = _Poller(table, autoscaling, policy, timing) if policy.period_seconds else None
    fleet = poller.fleet if poller else None
    queue = start_queue(opened, table, traffic)
    shares = {resource.index: resource.write_share_percent for resource in opened.resources if resource.index}
    jobs = start_jobs(opened.jobs, table, timing.metric_delay, shares)
    minutes = traffic.minutes
    for minute in range(minutes):
        if autoscaling.has_policies:
            autoscaling.plan_alarms(minute)
        if fleet is not None:
            fleet.plan_minute(minute)
        table.serve_minute(minute)
        if fleet is not None:
            fleet.end_minute()
        table.end_minute(minute)
        if progress is not None and (minute % 1440 == 1439 or minute + 1 == minutes):
            progress(minute + 1, minutes)
    return Run(
        table=opened.name,
        policy=policy.name,
        start=traffic.start,
        minutes=minutes,
        targets=table.records(),
        events=tuple(table.events),
        decreases=sum(control.decreases for control in table.controls.values()),
        refused_decreases=table.refused_decreases,
        bill=_bill(table, prices or load_prices(), poller.metrics_requested if poller else 0, policy),
        notes=opened.notes,
        jobs=tuple(job.result() for job in jobs),
        queue=None if queue is None else queue.result(minutes * 60),
    )


class _Poller:
    """Has a policy look at the table every so often, and act."""

    def __init__(
        self, table: SimulatedTable, autoscaling: SimulatedAutoScaling, policy: Policy, timing: Timing
    ) -> None:
        self._table = table
        self._autoscaling = autoscaling
        self._policy = policy
        self._period = policy.period_seconds or 0
        self._pace = timing.pace(by_autoscaling=False)
        self.metrics_requested = 0
        self.fleet: Fleet | None = None
        targets = {(t.index, t.dimension): PolicyTarget(t, timing.gauge_age) for t in table.targets}
        resources = tuple(
            PolicyResource(index, control, targets[index, Dimension.READ], targets[index, Dimension.WRITE])
            for index, control in table.controls.items()
        )
        pulses = policy.pulses
        delay = 0 if pulses is None else pulses.delay_seconds
        self._seen = Seen(resources, timing.metric_delay, table.base, delay)
        if pulses is not None:
            self.fleet = Fleet(table, pulses, self._wake)
            for told in self.fleet.told:
                target = targets[told.state.index, told.state.dimension]
                target.told, target.base_slot = told, table.base // SLOT_SECONDS
        # a schedule runs in each whole period of the clock, at a second of its own
        table.at((timing.phase.tick - table.base) % self._period, self._poll)
        if policy.alarms_per_target:
            table.at((timing.phase.scaler_alarm - table.base) % 60, self._judge)

    def _wake(self, at: int) -> None:
        self._seen.move_to(at)
        if self._policy.needs_help(self._seen):
            self._turn(at)

    def _poll(self, at: int) -> None:
        self._table.at(at + self._period, self._poll)
        self._seen.move_to(at)
        self._turn(at)

    def _judge(self, at: int) -> None:
        self._table.at(at + 60, self._judge)
        self._seen.move_to(at)
        if self._policy.rings(self._seen):
            self._turn(at)

    def _turn(self, at: int) -> None:

        def update(index: str | None, wanted: Mapping[Dimension, int]) -> Refused | None:
            return self._table.request(at, index, wanted, self._pace, self._policy.actor)

        def set_bounds(index: str | None, dimension: Dimension, bounds: Bounds) -> None:
            self._autoscaling.set_bounds(at, index, dimension, bounds, self._policy.actor)

        asked = self._policy.poll(self._seen, Calls(update, set_bounds))
        if asked is None:
            asked = self._policy.metrics_per_target * 2 * len(self._seen.resources)
        self.metrics_requested += asked


def _bill(table: SimulatedTable, prices: Prices, metrics_requested: int, policy: Policy) -> Bill:
    setup = table.setup
    peaks = [] if setup.is_on_demand else [(t.dimension, tuple(t.hour_peaks)) for t in table.targets]
    requested = [(t.dimension, sum(t.consumed) / QUANTA_PER_UNIT) for t in table.targets] if setup.is_on_demand else []
    return bill(
        prices,
        peaks,
        requested,
        hours=len(table.targets[0].hour_peaks),
        seconds=len(table.targets[0].consumed) * 60,
        policies=sum(t.tracking is not None for t in table.targets),
        alarms=policy.alarms_per_target * len(table.targets),
        metrics_requested=metrics_requested,
        config_items=_config_items(table, policy),
        is_infrequent_access=setup.is_infrequent_access,
        warm_up=sum(
            mark_price(setup, priced) for priced in (prices, *(prices.in_region(r.region) for r in setup.replicas))
        ),
        replicas=billed_replicas(setup, prices),
    )


def _config_items(table: SimulatedTable, policy: Policy) -> int:
    """Return how many items AWS Config records: one of the table for each change, and those of the alarms that move.

    At each change, auto scaling deletes its alarms and makes new ones (recorded: radkawar/stackd 9dc356f,
    testdata/aws/applicationautoscaling/dynamodb_maintenance), which is two items of each.
    """
    of_table = {(target.index, at) for target in table.targets for at, _ in target.capacity[1:]}
    of_alarms = sum(
        (len(target.capacity) - 1) * (2 * ALARMS_PER_POLICY * (target.tracking is not None) + policy.alarms_per_target)
        for target in table.targets
    )
    return len(of_table) + of_alarms


def billed_replicas(setup: TableSetup, prices: Prices) -> list[BilledReplica]:
    """Return what each further replica of a global table is billed by; raises `PriceError` for an unknown region."""
    return [
        BilledReplica(
            prices=prices.in_region(replica.region).throughput(is_infrequent_access=replica.is_infrequent_access),
            read_units=replica.read_units,
        )
        for replica in setup.replicas
    ]


def mark_price(setup: TableSetup, prices: Prices) -> float:
    """Return the one-time charge in USD for the high-water marks of one replica, in the region of *prices*."""
    unit = prices.throughput()
    return sum(
        unit.read_unit_hour * r.bought_read_units + unit.write_unit_hour * r.bought_write_units for r in setup.resources
    )
