"""A dashboard of tables with managed capacity: what is asked, what is there, what is throttled and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from cdk_highwater.high_water_table import HighWaterTable
from cdk_highwater.manage_capacity import capacity_of
from cdk_highwater.table_capacity import TableCapacity
from cdk_highwater.target_metrics import TargetMetrics, ThrottleCause
from cdk_highwater.throttle_aware_scaler import ThrottleAwareScaler
from highwater.core import Capacity, Target, Window

_WIDTH = 12
_HEIGHT = 6
_DECISIONS = (
    "fields @timestamp, decision.table, decision.target, decision.current, decision.granted, decision.reason",
    'filter message = "decision"',
    "sort @timestamp desc",
    "limit 30",
)


class CapacityDashboard(Construct):
    """A CloudWatch dashboard with two graphs for every target of the tables given.

    One has units per second: consumed, provisioned, the plan's floor and ceiling. The other has throttle events by
    cause. Windows stand under the table's name; they are in the plan and not in CloudWatch. With a scaler it also
    shows what that did, and its last decisions. Costs 3 USD a month beyond an account's first three dashboards
    (Amazon CloudWatch pricing, us-east-1, read 2026-11).

    Args:
        scope: Parent construct.
        id: Unique within *scope*.
        tables: The tables, each a `HighWaterTable` or what `manage_capacity` returned; at least one.
        scaler: The scaler that looks after them. By default none.
        name: The dashboard's name. By default CloudFormation's.

    Raises:
        TypeError: If one of *tables* has no managed capacity.
        ValueError: If there is none.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        tables: Sequence[HighWaterTable | TableCapacity],
        scaler: ThrottleAwareScaler | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        if not tables:
            message = "tables must have one table at least, got none"
            raise ValueError(message)
        self._dashboard = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=name)
        for table in tables:
            for widgets in _rows_of_table(capacity_of(table)):
                self._dashboard.add_widgets(*widgets)
        if scaler is not None:
            self._dashboard.add_widgets(*_of_scaler(scaler))

    @property
    def dashboard(self) -> cloudwatch.Dashboard:
        """The dashboard, for widgets of your own."""
        return self._dashboard


def _rows_of_table(capacity: TableCapacity) -> Iterator[list[cloudwatch.IWidget]]:
    windows = [_line(window) for window in dict.fromkeys(capacity.plan.all_windows())]
    lines = [f"# {capacity.subject.name}", *windows]
    yield [cloudwatch.TextWidget(markdown="\n".join(lines), width=24, height=1 + -(-len(windows) // 2))]
    for target in capacity.plan.targets():
        metrics = TargetMetrics(capacity.subject.name, target, capacity.subject.region)
        yield [
            cloudwatch.GraphWidget(
                title=f"{target.label}: units per second",
                left=[metrics.consumed_per_second(), metrics.provisioned().with_(label="provisioned")],
                left_annotations=list(_bounds(target)),
                left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
                width=_WIDTH,
                height=_HEIGHT,
            ),
            cloudwatch.GraphWidget(
                title=f"{target.label}: throttle events",
                left=[metrics.throttled(cause).with_(label=cause.label) for cause in ThrottleCause],
                left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
                stacked=True,
                width=_WIDTH,
                height=_HEIGHT,
            ),
        ]


def _bounds(target: Target) -> Iterator[cloudwatch.HorizontalAnnotation]:
    """The plan's base floor and ceiling, where they are known now."""
    capacity: Capacity = target.capacity
    if not capacity.is_deploy_time:
        yield cloudwatch.HorizontalAnnotation(
            value=int(capacity.min_capacity), label="floor", color=cloudwatch.Color.GREEN
        )
        if capacity.is_autoscaled:
            yield cloudwatch.HorizontalAnnotation(
                value=int(capacity.max_capacity), label="ceiling", color=cloudwatch.Color.RED
            )


def _line(window: Window) -> str:
    """A window in words: `- **night** 23:00 to 02:00 Europe/Berlin: write floor 900`."""
    days = "" if window.days is None else f"{window.days if isinstance(window.days, str) else ','.join(window.days)} "
    bounds = {
        "read floor": window.read_min,
        "write floor": window.write_min,
        "read ceiling": window.read_max,
        "write ceiling": window.write_max,
    }
    asked = ", ".join(f"{name} {units:,}" for name, units in bounds.items() if units is not None)
    return f"- **{window.name}** {days}{window.start} to {window.end} {window.timezone}: {asked}"


def _of_scaler(scaler: ThrottleAwareScaler) -> list[cloudwatch.IWidget]:
    return [
        cloudwatch.GraphWidget(
            title="the scaler, all targets",
            left=[
                scaler.metric_floors_set(),
                scaler.metric_capacities_set(),
                scaler.metric_at_ceiling(),
                scaler.metric_hot_keys(),
                scaler.metric_decrease_budget_exhausted(),
                scaler.metric_paused(),
                scaler.metric_tables_failed(),
            ],
            left_y_axis=cloudwatch.YAxisProps(min=0, show_units=False),
            width=_WIDTH,
            height=_HEIGHT,
        ),
        cloudwatch.LogQueryWidget(
            title="its last decisions",
            log_group_names=[scaler.log_group.log_group_name],
            query_lines=list(_DECISIONS),
            width=_WIDTH,
            height=_HEIGHT,
        ),
    ]
