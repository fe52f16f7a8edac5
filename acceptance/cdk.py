"""The CDK CLI, aimed at one place, and what CloudFormation has of the stacks that it deployed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from acceptance.place import Place
from highwater.core import HighwaterError

ROOT: Final = Path(__file__).resolve().parents[1]


class CdkError(HighwaterError):
    """The CDK CLI failed; the message ends with what it said last."""


@dataclass(frozen=True, slots=True)
class Cdk:
    """Deploys stacks of `acceptance.app` with *prefix* in front of their names; its files go below *folder*."""

    place: Place
    prefix: str
    folder: Path

    def full_name(self, stack: str) -> str:
        """The name of one of the app's stacks in the place."""
        return f"{self.prefix}-{stack}"

    def bootstrap(self) -> None:
        """Bootstrap the place; only for a local cloud, as a bootstrap stays when the suite has ended."""
        self._run("bootstrap", f"aws://{self.place.account}/{self.place.region}", within=None)

    def deploy(self, stack: str, context: dict[str, str], within: timedelta | None, *more: str) -> None:
        """Deploy a stack, with *more* options of the CDK CLI.

        Raises `CdkError`, also if it takes longer than *within*; CloudFormation then goes on.
        """
        app = f"{sys.executable} -m acceptance.app {self.prefix} {stack}"
        contexts = [f"--context={name}={value}" for name, value in context.items()]
        self._run("deploy", "--app", app, *contexts, "--require-approval", "never", *more, within=within)

    def status(self, stack: str) -> str:
        """The stack's status."""
        return str(self._described(stack)["StackStatus"])

    def outputs(self, stack: str) -> dict[str, str]:
        """The stack's outputs."""
        return {output["OutputKey"]: output["OutputValue"] for output in self._described(stack)["Outputs"]}

    def names_of_type(self, stack: str, kind: str) -> list[str]:
        """The names of the stack's resources of one type, such as `AWS::DynamoDB::Table`."""
        pages = self.place.client("cloudformation").get_paginator("list_stack_resources")
        resources = [
            each
            for page in pages.paginate(StackName=self.full_name(stack))
            for each in page["StackResourceSummaries"]
            if each["ResourceType"] == kind and "PhysicalResourceId" in each
        ]
        return [str(each["PhysicalResourceId"]) for each in resources]

    def _described(self, stack: str) -> dict[str, Any]:
        described = self.place.client("cloudformation").describe_stacks(StackName=self.full_name(stack))
        return dict(described["Stacks"][0])

    def _run(self, *arguments: str, within: timedelta | None) -> None:
        program = str(ROOT / "node_modules" / ".bin" / "cdk")
        command = [program, *arguments, "--output", str(self.folder / "cdk.out"), "--no-notices", "--ci"]
        environment = self.place.environment() | {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"}
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # an interrupt of the terminal reaches only the suite, which ends the CLI before it deletes anything
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=None if within is None else within.total_seconds())
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                raise CdkError(
                    f"cdk {arguments[0]} did not end in the {error.timeout:.0f} s that its part had left; "
                    "it was stopped"
                ) from None
        with (self.folder / "cdk.log").open("a") as log:
            log.write(f"$ cdk {' '.join(arguments)}\n{output}\n")
        if process.returncode:
            last = " / ".join(line.strip() for line in output.strip().splitlines()[-3:])
            raise CdkError(f"cdk {arguments[0]} ended with status {process.returncode}: {last}")
