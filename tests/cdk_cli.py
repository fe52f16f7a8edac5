"""The real CDK CLI, pointed at a local cloud."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from highwater_lab.local import LocalCloud

ROOT = Path(__file__).resolve().parents[1]
CDK = str(ROOT / "node_modules" / ".bin" / "cdk")
_DEPLOY = ("deploy", "--all", "--require-approval", "never")


@dataclass(frozen=True)
class CdkCli:
    """Runs `cdk` with an app and an output folder of its own."""

    cloud: LocalCloud
    folder: Path

    def go_to_noon(self) -> None:
        """Move the cloud's clock to a Wednesday at noon UTC, when none of the examples' windows is open.

        Within the hour after noon it stays: a week in which what others have deployed is scaled takes half a minute.
        """
        now = self.cloud.status().now
        if (now.weekday(), now.hour) != (2, 12):
            noon = now.replace(hour=12, minute=0, second=0) + timedelta(days=(2 - now.weekday()) % 7 or 7)
            self.cloud.advance(noon - now)

    def bootstrap(self) -> None:
        """Create the stack of `cdk bootstrap`."""
        cloudformation = self.cloud.client("cloudformation")
        bootstrap(cloudformation)
        cloudformation.close()

    def outputs(self, stack: str) -> dict[str, str]:
        """The outputs of a stack."""
        cloudformation = self.cloud.client("cloudformation")
        found = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["Outputs"]
        cloudformation.close()
        return {each["OutputKey"]: each["OutputValue"] for each in found}

    @property
    def synthesized(self) -> Path:
        """What was synthesized of the last app that was a program."""
        return self.folder / "cdk.out"

    def run(self, *arguments: str, app: Path | None = None, context: dict[str, str] | None = None) -> str:
        """Run and return the output, which must end well; the *app* is a program, or what was synthesized of one."""
        done = self.attempt(*arguments, app=app, context=context)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def attempt(
        self, *arguments: str, app: Path | None = None, context: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run, however it ends."""
        chosen = [] if app is None else ["--app", str(app) if app.is_dir() else f"{sys.executable} {app}"]
        contexts = [f"--context={name}={value}" for name, value in (context or {}).items()]
        return subprocess.run(
            [CDK, *arguments, *chosen, *contexts, "--output", str(self.synthesized), "--no-notices", "--ci"],
            cwd=ROOT,
            env=os.environ | self.cloud.environment() | {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def deploy(self, app: Path, context: dict[str, str] | None = None) -> str:
        """Deploy every stack of the app.

        Without a change set, with which the CDK CLI takes half as long again; `attempt_deploy`, the demo and the pages
        deploy with one.
        """
        return self.run(*_DEPLOY, "--method=direct", app=app, context=context)

    def attempt_deploy(self, app: Path, *more: str) -> subprocess.CompletedProcess[str]:
        """Deploy every stack of the app, however it ends."""
        return self.attempt(*_DEPLOY, *more, app=app)


@contextmanager
def bootstrapped_cloud(folder: Path, **more: Any) -> Iterator[CdkCli]:
    """The CDK CLI for a strict local cloud with a driven clock, which is bootstrapped."""
    with LocalCloud(log=folder / "server.log", clock="driven", is_strict=True, **more) as cloud:
        cli = CdkCli(cloud, folder)
        cli.bootstrap()
        yield cli


@contextmanager
def deployed_app(folder: Path, app: Path, stack: str) -> Iterator[tuple[CdkCli, dict[str, str]]]:
    """A cloud into which *app* is deployed; the CDK CLI, and the stack's outputs."""
    with bootstrapped_cloud(folder) as cli:
        cli.deploy(app)
        yield cli, cli.outputs(stack)


def bootstrap(cloudformation: Any) -> None:
    """Create the stack of `cdk bootstrap`; the command itself is run by the page on the local cloud and the demo."""
    cloudformation.create_stack(
        StackName="CDKToolkit", TemplateBody=_bootstrap_template(), Capabilities=["CAPABILITY_NAMED_IAM"]
    )
    (stack,) = cloudformation.describe_stacks(StackName="CDKToolkit")["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack


@cache
def _bootstrap_template() -> str:
    """The template of `cdk bootstrap`, which takes the CDK CLI a second; deploying it by itself takes five."""
    done = subprocess.run(
        [CDK, "bootstrap", "--show-template", "--no-notices"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout
