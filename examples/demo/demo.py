"""Deploys two examples to a local cloud with the real CDK CLI, shows a Monday with windows, and sends a surge.

The demo prints the deployed resources, draws the next seven days, moves the cloud's clock through Monday's windows, and
compares everything with the plan. Then it sends a surge without a window to four tables: one with native scaling
alone, one with the scaler in addition, one that a job boosts before, and one whose clients pulse. Exits with status 1
if anything differs from the plan, or from the simulator by more than 1 %. Run it with `make demo`.
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
from datetime import timedelta
from pathlib import Path
from typing import Final

from callers import Caller
from monday import Deployed, Monday
from rich.console import Console
from side_by_side import Surge, Tables

from highwater.core import Plan
from highwater.terminal.console import hear_interrupts
from highwater_lab.local import LocalCloud
from highwater_lab.local.control import CloudError
from highwater_lab.template import find_table, load_templates

ROOT: Final = Path(__file__).resolve().parents[2]
BUILD: Final = ROOT / "build" / "demo"
PICTURE: Final = BUILD / "next-seven-days.png"
SURGE_PICTURE: Final = BUILD / "surge.png"
REPORT: Final = BUILD / "surge.html"
# DynamoDB needs five to nine minutes to raise a high-water mark; the deployment does not wait for that
_WARM_UP = timedelta(minutes=10)


class DemoError(Exception):
    """The demo cannot continue; the message is one line with the reason."""


class Demo:
    """One run of the demo in one local cloud."""

    def __init__(self, cloud: LocalCloud, console: Console) -> None:
        self._cloud = cloud
        self._console = console
        self._monday = Monday(cloud, console)
        self._surge_differences: list[str] = []

    def run(self) -> int:
        """Run all parts of the demo; return the exit status, 1 if anything differs from the plan, else 0."""
        with tempfile.TemporaryDirectory(prefix="highwater-demo-") as folder:
            self._watch_monday(Path(folder))
            self._send_surge(Path(folder))
        for difference in self._monday.differences:
            self._console.print(f"[red]differs from the plan:[/] {difference}")
        for difference in self._surge_differences:
            self._console.print(f"[red]differs from the simulator:[/] {difference}")
        if self._monday.differences or self._surge_differences:
            return 1
        self._console.print("[green]everything is as planned[/]")
        return 0

    def _watch_monday(self, folder: Path) -> None:
        out = self._deploy("bulk_load", "BulkLoad", folder, bootstraps=True)
        self._cloud.advance(_WARM_UP)
        self._monday.watch(self._find(out), "BulkLoad/Orders", PICTURE)
        self._console.print(f"picture: {PICTURE.relative_to(ROOT)}\n")

    def _send_surge(self, folder: Path) -> None:
        out = self._deploy("side_by_side", "SideBySide", folder)
        templates = load_templates(out)
        tables = Tables("Native", "Scaled", "Boosted", "Pulsed")
        setups = tables.each(lambda name: find_table(templates, name=name))
        names = tables.each(lambda name: self._physical("SideBySide", name))
        job, fleet = (
            Caller(self._output("SideBySide", role), self._output("SideBySide", coordinator))
            for role, coordinator in (("LoaderRole", "Coordinator"), ("CrawledRole", "Teller"))
        )
        surge = Surge(self._cloud, self._console, names, setups, job, fleet)
        surge.run(SURGE_PICTURE, REPORT)
        self._surge_differences = surge.differences
        self._console.print(f"picture: {SURGE_PICTURE.relative_to(ROOT)}\nreport: {REPORT.relative_to(ROOT)}")

    def _deploy(self, example: str, stack: str, folder: Path, *, bootstraps: bool = False) -> Path:
        """Synthesize and deploy an example with the CDK CLI; return the folder with its template."""
        out = folder / example
        app = f"{sys.executable} examples/{example}/app.py"
        self._cdk(f"synthesize {stack}", "synth", "--app", app, "--quiet", "--output", str(out))
        if bootstraps:
            self._cdk("bootstrap the local cloud", "bootstrap", "--app", str(out))
        self._cdk(f"deploy {stack}", "deploy", "--app", str(out), "--require-approval", "never", stack)
        return out

    def _cdk(self, title: str, *arguments: str) -> None:
        command = [str(ROOT / "node_modules" / ".bin" / "cdk"), *arguments, "--no-notices", "--ci"]
        began = time.monotonic()
        with self._console.status(f"{title} …"):
            status, output = _run(command, _environment(self._cloud))
        if status:
            self._console.print(output, highlight=False, markup=False)
            message = f"cdk {arguments[0]} failed with status {status}; read its output above"
            raise DemoError(message)
        self._console.print(f"[green]✓[/] {title} [dim]({time.monotonic() - began:.0f} s)[/]")

    def _find(self, out: Path) -> Deployed:
        template = json.loads((out / "BulkLoad.template.json").read_text())
        plan = next(
            json.loads(resource["Properties"]["Plan"])
            for resource in template["Resources"].values()
            if resource["Type"] == "Custom::HighwaterFloors"
        )
        return Deployed(self._physical("BulkLoad", "Orders"), Plan.from_document(plan))

    def _physical(self, stack: str, logical: str) -> str:
        """Return the name of the table whose logical id begins with *logical*."""
        resources = self._cloud.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]
        return next(
            str(resource["PhysicalResourceId"])
            for resource in resources
            if resource["ResourceType"] == "AWS::DynamoDB::Table" and resource["LogicalResourceId"].startswith(logical)
        )

    def _output(self, stack: str, name: str) -> str:
        """Return an output of a stack."""
        (found,) = self._cloud.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return next(str(output["OutputValue"]) for output in found["Outputs"] if output["OutputKey"] == name)


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a command and return its status and output.

    The command has its own process group. Ctrl-C then reaches only this program, which stops the whole group, so that
    the command prints nothing about the interrupt.
    """
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
    quiet = {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20", "CDK_DISABLE_CLI_TELEMETRY": "true"}
    return os.environ | cloud.environment() | quiet


def main(arguments: Sequence[str] = ()) -> int:
    """Run the demo; return 0 if everything is as planned, 1 if anything differs, 2 if the demo cannot run."""
    if arguments:
        print(f"demo: takes no arguments, got {' '.join(arguments)!r}", file=sys.stderr)
        return 2
    console = Console()
    try:
        with LocalCloud(clock="driven") as cloud:
            console.print(f"[green]✓[/] local cloud at {cloud.endpoint}")
            return Demo(cloud, console).run()
    except (CloudError, DemoError) as error:
        console.print(f"demo: {error}", style="red")
        return 2
    except KeyboardInterrupt:
        # a new console: the old one would repeat the line in whose middle it was interrupted
        Console().print("demo: interrupted", style="red")
        return 130


if __name__ == "__main__":
    hear_interrupts()
    sys.exit(main(sys.argv[1:]))
