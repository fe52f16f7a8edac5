"""The Monday of the bulk-load example: shows the deployed resources through the day and compares them with the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table

from highwater.core import Dimension, Plan, Target, bounds_at, compile_actions, marks_of
from highwater.core.names import TargetName
from highwater_lab.local import LocalCloud
from highwater_lab.pictures import save_png, terminal_chart

ZONE: Final = ZoneInfo("America/New_York")
# local times of Monday, each with its label
MOMENTS: Final = (
    ("04:50", "before the load"),
    ("04:56", "five minutes ahead"),
    ("05:30", "during the load"),
    ("06:35", "after the load"),
    ("09:30", "morning rush"),
    ("11:05", "after the rush"),
)


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployed table: its name, and the plan that it was deployed from."""

    table: str
    plan: Plan


class Monday:
    """Shows one table through a Monday; `differences` lists everything that is not as planned."""

    def __init__(self, cloud: LocalCloud, console: Console) -> None:
        self._cloud = cloud
        self._console = console
        self._dynamodb = cloud.client("dynamodb")
        self._autoscaling = cloud.client("application-autoscaling")
        self.differences: list[str] = []

    def watch(self, deployed: Deployed, title: str, picture: Path) -> None:
        """Show the deployed resources, draw the week to *picture*, and move the clock through Monday."""
        self._show_table(deployed)
        self._show_targets(deployed)
        self._show_actions(deployed)
        self._draw(deployed, title, picture)
        self._watch_monday(deployed)
        self._check_activities()

    def _show_table(self, deployed: Deployed) -> None:
        table = self._dynamodb.describe_table(TableName=deployed.table)["Table"]
        view = _view("Tables and indexes", ["resource"], ["read", "write", "mark, read", "mark, write"])
        resources = [(deployed.table, table), *((i["IndexName"], i) for i in table.get("GlobalSecondaryIndexes", []))]
        for (name, resource), mark in zip(resources, marks_of(deployed.plan), strict=True):
            units, warm = resource["ProvisionedThroughput"], resource["WarmThroughput"]
            view.add_row(
                name,
                f"{units['ReadCapacityUnits']:,}",
                f"{units['WriteCapacityUnits']:,}",
                f"{warm['ReadUnitsPerSecond']:,}",
                f"{warm['WriteUnitsPerSecond']:,}",
            )
            self._compare(
                f"high-water mark of {name}",
                (mark.read, mark.write),
                (warm["ReadUnitsPerSecond"], warm["WriteUnitsPerSecond"]),
            )
        self._console.print(view)

    def _show_targets(self, deployed: Deployed) -> None:
        view = _view("Scalable targets", ["target"], ["min", "max", "target utilization"])
        policies = self._autoscaling.describe_scaling_policies(ServiceNamespace="dynamodb")["ScalingPolicies"]
        now = self._cloud.status().now
        for target in deployed.plan.targets():
            low, high = self._bounds(deployed, target)
            value = next(
                f"{policy['TargetTrackingScalingPolicyConfiguration']['TargetValue']:.0f} %"
                for policy in policies
                if (policy["ResourceId"], policy["ScalableDimension"]) == _names(deployed.table, target)
            )
            view.add_row(target.label, f"{low:,}", f"{high:,}", value)
            planned = bounds_at(target, now)
            self._compare(f"bounds of {target.label} after the deploy", (planned.min, planned.max), (low, high))
        self._console.print(view)

    def _show_actions(self, deployed: Deployed) -> None:
        view = _view("Scheduled actions", ["target", "schedule", "zone"], ["min", "max"])
        for target in deployed.plan.targets():
            resource_id, dimension = _names(deployed.table, target)
            actions = self._autoscaling.describe_scheduled_actions(
                ServiceNamespace="dynamodb",
                ResourceId=resource_id,
                ScalableDimension=dimension,
            )["ScheduledActions"]
            for action in actions:
                bounds = action["ScalableTargetAction"]
                view.add_row(
                    target.label,
                    action["Schedule"],
                    action["Timezone"],
                    f"{bounds['MinCapacity']:,}",
                    f"{bounds['MaxCapacity']:,}",
                )
            planned = sorted(action.schedule for action in compile_actions(target))
            self._compare(f"schedules of {target.label}", planned, sorted(action["Schedule"] for action in actions))
        self._console.print(view)

    def _draw(self, deployed: Deployed, title: str, picture: Path) -> None:
        midnight = _midnight(self._cloud.status().now)
        write = next(target for target in deployed.plan.targets() if target.dimension is Dimension.WRITE)
        self._console.print(f"[bold]{write.label}[/]: floor over the next seven days (units/s, log scale)")
        self._console.print(terminal_chart(write, midnight, 7, ZONE, min(self._console.width - 9, 100)))
        save_png(deployed.plan, title, midnight, 7, ZONE, picture)

    def _watch_monday(self, deployed: Deployed) -> None:
        targets = deployed.plan.targets()
        units = [f"{target.dimension} {what}" for target in targets for what in ("floor", "capacity")]
        view = _view("Monday, New York time", ["time", ""], units)
        monday = _next_monday(self._cloud.status().now)
        for clock, label in MOMENTS:
            hour, minute = map(int, clock.split(":"))
            moment = monday.replace(hour=hour, minute=minute).astimezone(UTC)
            # half a minute later, so that the scheduled actions of the minute have run
            self._cloud.advance(moment - self._cloud.status().now + timedelta(seconds=30))
            shown: list[str] = []
            for target in targets:
                planned = bounds_at(target, moment)
                low, high = self._bounds(deployed, target)
                provisioned = self._provisioned(deployed, target)
                shown += [f"{each:,}" for each in (low, provisioned)]
                self._compare(f"bounds of {target.label} at {clock}", (planned.min, planned.max), (low, high))
                # the table has no traffic, so target tracking keeps its capacity at the floor
                self._compare(f"capacity of {target.label} at {clock}", planned.min, provisioned)
            view.add_row(clock, label, *shown)
        self._console.print(view)

    def _check_activities(self) -> None:
        """Print how many activities auto scaling had; each that did not succeed is a difference."""
        activities = self._autoscaling.describe_scaling_activities(ServiceNamespace="dynamodb")["ScalingActivities"]
        self._console.print(f"{len(activities)} scaling activities", highlight=False)
        for activity in activities:
            if activity["StatusCode"] != "Successful":
                self.differences.append(f"activity {activity['Description']!r} ended {activity['StatusCode']}")

    def _bounds(self, deployed: Deployed, target: Target) -> tuple[int, int]:
        resource_id, dimension = _names(deployed.table, target)
        targets = self._autoscaling.describe_scalable_targets(
            ServiceNamespace="dynamodb",
            ResourceIds=[resource_id],
            ScalableDimension=dimension,
        )["ScalableTargets"]
        return (targets[0]["MinCapacity"], targets[0]["MaxCapacity"]) if targets else (0, 0)

    def _provisioned(self, deployed: Deployed, target: Target) -> int:
        table = self._dynamodb.describe_table(TableName=deployed.table)["Table"]
        resources = {None: table} | {index["IndexName"]: index for index in table.get("GlobalSecondaryIndexes", [])}
        throughput = resources[target.index]["ProvisionedThroughput"]
        return int(throughput[f"{target.dimension.title()}CapacityUnits"])

    def _compare(self, subject: str, planned: object, actual: object) -> None:
        if planned != actual:
            self.differences.append(f"{subject}: planned {planned}, actually {actual}")


def _view(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    view = Table(title=f"[bold]{title}[/]", title_justify="left", title_style="", box=None, pad_edge=False)
    for column in left:
        view.add_column(column, header_style="dim")
    for column in right:
        view.add_column(column, justify="right", header_style="dim")
    return view


def _names(table: str, target: Target) -> tuple[str, str]:
    name = TargetName(table, target.index, target.dimension)
    return name.resource_id, name.scalable_dimension


def _midnight(now: datetime) -> datetime:
    return now.astimezone(ZONE).replace(hour=0, minute=0, second=0, microsecond=0)


def _next_monday(now: datetime) -> datetime:
    """Return midnight of the next Monday after today, whose windows are all in the future."""
    local = _midnight(now)
    return local + timedelta(days=(0 - local.weekday()) % 7 or 7)
