"""Deploys this example to a local cloud with the real CDK CLI, watches a Monday go by, and sends a surge.

Prints what boto3 sees, draws the next seven days, moves the cloud's clock through Monday's windows, and compares
everything with the plan; then the table meets a surge that no window was declared for. Exit status 1 where what is
seen differs from the plan. Run it with `make demo`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from surge import Surge

from highwater.core import Plan, Target, bounds_at, compile_actions, marks_of
from highwater_lab.local import LocalCloud
from highwater_lab.local.cloud import CloudError
from highwater_lab.pictures import save_png, terminal_chart
from highwater_lab.simulation import TableSetup
from highwater_lab.template import find_table, load_templates

ROOT = Path(__file__).resolve().parents[2]
STACK = "BulkLoad"
ZONE = ZoneInfo("America/New_York")
PICTURE = ROOT / "build" / "demo" / "next-seven-days.png"
SURGE_PICTURE = ROOT / "build" / "demo" / "surge.png"
# local times of Monday, each with what it shows
MOMENTS = (
    ("04:50", "before the load"),
    ("04:56", "five minutes ahead"),
    ("05:30", "during the load"),
    ("06:35", "after the load"),
    ("09:30", "morning rush"),
    ("11:05", "after the rush"),
)


_DEPLOY_SPEED = 20
# a table takes five to nine minutes for a higher mark, which the deploy does not wait for
_WARM_UP = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Deployed:
    """What the deploy made, and what it was made from."""

    table: str
    plan: Plan
    setup: TableSetup


class DemoError(Exception):
    """The demo cannot go on; one line says why."""


class Demo:
    """One run of the demo against one cloud."""

    def __init__(self, cloud: LocalCloud, console: Console) -> None:
        self._cloud = cloud
        self._console = console
        self._dynamodb = cloud.client("dynamodb")
        self._autoscaling = cloud.client("application-autoscaling")
        self._differences: list[str] = []

    def run(self) -> int:
        """Everything in order; the exit status."""
        with tempfile.TemporaryDirectory(prefix="highwater-demo-") as folder:
            out = Path(folder) / "cdk.out"
            self._cdk("synthesize", "synth", "--quiet", "--output", str(out))
            # AWS changes a table in half a minute, and the deploy waits for it
            self._cloud.run_at(_DEPLOY_SPEED)
            self._cdk("bootstrap the local cloud", "bootstrap", "--app", str(out))
            self._cdk(f"deploy {STACK}", "deploy", "--app", str(out), "--require-approval", "never", STACK)
            self._cloud.run_at(1)
            deployed = self._find(out)
        self._cloud.advance(_WARM_UP)
        self._show_table(deployed)
        self._show_targets(deployed)
        self._show_actions(deployed)
        self._draw(deployed)
        self._watch_monday(deployed)
        self._show_activities()
        self._send_surge(deployed)
        for difference in self._differences:
            self._console.print(f"[red]differs from the plan:[/] {difference}")
        if self._differences:
            return 1
        self._console.print("[green]everything seen is as planned[/]")
        return 0

    def _cdk(self, title: str, *arguments: str) -> None:
        command = [str(ROOT / "node_modules" / ".bin" / "cdk"), *arguments, "--no-notices", "--ci"]
        began = time.monotonic()
        with self._console.status(f"{title} …"):
            status, output = _run(command, _environment(self._cloud))
        if status:
            self._console.print(output, highlight=False, markup=False)
            message = f"cdk {arguments[0]} ended with status {status}; its output is above"
            raise DemoError(message)
        self._console.print(f"[green]✓[/] {title} [dim]({time.monotonic() - began:.0f} s)[/]")

    def _find(self, out: Path) -> Deployed:
        template = json.loads((out / f"{STACK}.template.json").read_text())
        plan = next(
            json.loads(resource["Properties"]["Plan"])
            for resource in template["Resources"].values()
            if resource["Type"] == "Custom::HighwaterFloors"
        )
        cloudformation = self._cloud.client("cloudformation")
        table = next(
            resource["PhysicalResourceId"]
            for resource in cloudformation.describe_stack_resources(StackName=STACK)["StackResources"]
            if resource["ResourceType"] == "AWS::DynamoDB::Table"
        )
        return Deployed(table, Plan.from_document(plan), find_table(load_templates(out)))

    def _show_table(self, deployed: Deployed) -> None:
        seen = self._dynamodb.describe_table(TableName=deployed.table)["Table"]
        view = _view("Tables and indexes", ["resource"], ["read", "write", "mark, read", "mark, write"])
        resources = [(deployed.table, seen), *((i["IndexName"], i) for i in seen.get("GlobalSecondaryIndexes", []))]
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
            wanted = bounds_at(target, now)
            self._compare(f"bounds of {target.label} after the deploy", (wanted.min, wanted.max), (low, high))
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

    def _draw(self, deployed: Deployed) -> None:
        midnight = _midnight(self._cloud.status().now)
        for target in deployed.plan.targets():
            title = f"[bold]{target.label}[/]: floor over the next seven days (units/s, log scale)"
            self._console.print(f"\n{title}")
            self._console.print(terminal_chart(target, midnight, 7, ZONE, min(self._console.width - 9, 100)))
        save_png(deployed.plan, f"{STACK}/Orders", midnight, 7, ZONE, PICTURE)
        self._console.print(f"\npicture: {PICTURE.relative_to(ROOT)}\n")

    def _watch_monday(self, deployed: Deployed) -> None:
        view = _view("Monday, New York time", ["time", "", "target"], ["floor", "ceiling", "provisioned"])
        monday = _next_monday(self._cloud.status().now)
        for clock, what in MOMENTS:
            hour, minute = map(int, clock.split(":"))
            moment = monday.replace(hour=hour, minute=minute).astimezone(UTC)
            # half a minute on: what was due at the minute has run
            self._cloud.advance(moment - self._cloud.status().now + timedelta(seconds=30))
            for position, target in enumerate(deployed.plan.targets()):
                wanted = bounds_at(target, moment)
                low, high = self._bounds(deployed, target)
                units = self._provisioned(deployed, target)
                labels = ("", "") if position else (clock, what)
                view.add_row(*labels, target.label, f"{low:,}", f"{high:,}", f"{units:,}")
                self._compare(f"bounds of {target.label} at {clock}", (wanted.min, wanted.max), (low, high))
                # nobody uses the table, so target tracking keeps it at its floor
                self._compare(f"capacity of {target.label} at {clock}", wanted.min, units)
            view.add_section()
        self._console.print(view)
        self._console.print(
            "[dim]A window's end lowers the floor; auto scaling then lowers capacity, here a minute later, as nobody "
            "uses the table.[/]\n"
        )

    def _show_activities(self) -> None:
        view = _view("Scaling activities, New York time", ["time", "activity", "cause", "status"], [])
        activities = self._autoscaling.describe_scaling_activities(ServiceNamespace="dynamodb")["ScalingActivities"]
        for activity in reversed(activities):
            cause = activity["Cause"]
            if cause.startswith("monitor alarm"):
                cause = "low alarm of target tracking: nobody uses the table"
            view.add_row(
                f"{activity['StartTime'].astimezone(ZONE):%a %H:%M:%S}",
                activity["Description"].removesuffix("."),
                cause,
                activity["StatusCode"],
            )
            if activity["StatusCode"] != "Successful":
                self._differences.append(f"activity {activity['Description']!r} ended {activity['StatusCode']}")
        self._console.print(view)

    def _send_surge(self, deployed: Deployed) -> None:
        Surge(self._cloud, self._console, deployed.table, deployed.setup).run(SURGE_PICTURE)
        self._console.print(f"\npicture: {SURGE_PICTURE.relative_to(ROOT)}\n")

    def _bounds(self, deployed: Deployed, target: Target) -> tuple[int, int]:
        resource_id, dimension = _names(deployed.table, target)
        found = self._autoscaling.describe_scalable_targets(
            ServiceNamespace="dynamodb",
            ResourceIds=[resource_id],
            ScalableDimension=dimension,
        )["ScalableTargets"]
        return (found[0]["MinCapacity"], found[0]["MaxCapacity"]) if found else (0, 0)

    def _provisioned(self, deployed: Deployed, target: Target) -> int:
        table = self._dynamodb.describe_table(TableName=deployed.table)["Table"]
        resources = {None: table} | {index["IndexName"]: index for index in table.get("GlobalSecondaryIndexes", [])}
        throughput = resources[target.index]["ProvisionedThroughput"]
        return int(throughput[f"{target.dimension.title()}CapacityUnits"])

    def _compare(self, subject: str, planned: object, seen: object) -> None:
        if planned != seen:
            self._differences.append(f"{subject}: planned {planned}, seen {seen}")


def _view(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    view = Table(title=title, title_justify="left")
    for column in left:
        view.add_column(column)
    for column in right:
        view.add_column(column, justify="right")
    return view


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run in a group of its own, so that an interrupt is this program's to pass on, and ends all of it quietly."""
    with subprocess.Popen(  # noqa: S603
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGTERM)
            raise
    return process.returncode, output


def _environment(cloud: LocalCloud) -> dict[str, str]:
    return os.environ | cloud.environment() | {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"}


def _names(table: str, target: Target) -> tuple[str, str]:
    kind = "table" if target.index is None else "index"
    resource_id = f"table/{table}" if target.index is None else f"table/{table}/index/{target.index}"
    return resource_id, f"dynamodb:{kind}:{target.dimension.title()}CapacityUnits"


def _midnight(now: datetime) -> datetime:
    return now.astimezone(ZONE).replace(hour=0, minute=0, second=0, microsecond=0)


def _next_monday(now: datetime) -> datetime:
    """Midnight of the next Monday whose windows are all still to come."""
    local = _midnight(now)
    return local + timedelta(days=(0 - local.weekday()) % 7 or 7)


def main(arguments: Sequence[str] = ()) -> int:
    """Run the demo; exit status 0 as planned, 1 differing, 2 not able to run."""
    if arguments:
        print(f"demo: takes no arguments, got {' '.join(arguments)!r}", file=sys.stderr)
        return 2
    console = Console()
    try:
        with LocalCloud() as cloud:
            console.print(f"[green]✓[/] local cloud at {cloud.endpoint}")
            return Demo(cloud, console).run()
    except (CloudError, DemoError) as error:
        console.print(f"demo: {error}", style="red")
        return 2
    except KeyboardInterrupt:
        # a new console: one interrupted in the middle of a line says that line again with its next
        Console().print("demo: interrupted", style="red")
        return 130


if __name__ == "__main__":
    # started in the background, a program inherits interrupts as ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
