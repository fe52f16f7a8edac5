"""The CDK CLI, aimed at one place."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from acceptance.place import Place
from highwater.core import HighwaterError

ROOT: Final = Path(__file__).resolve().parents[1]


class CdkError(HighwaterError):
    """The CDK CLI failed; the message ends with what it said last."""


@dataclass(frozen=True, slots=True)
class App:
    """A CDK app of one stack.

    Attributes:
        file: The app's file, from the root of the repository.
        stack: The id of its stack in that file.
    """

    file: str
    stack: str


@dataclass(frozen=True, slots=True)
class Cdk:
    """Synthesizes and deploys apps below *folder*, with *prefix* in front of the names of their stacks."""

    place: Place
    prefix: str
    folder: Path

    def stack_name(self, app: App) -> str:
        """The name of the app's stack."""
        return f"{self.prefix}-{app.stack}"

    def bootstrap(self) -> None:
        """Bootstrap the place; only for a local cloud, as a bootstrap stays when the suite has ended."""
        self._run("bootstrap", f"aws://{self.place.account}/{self.place.region}", "--output", str(self.folder))

    def synth(self, app: App, context: dict[str, str], within: timedelta | None = None) -> Path:
        """Synthesize the app; return the folder with its template. Raises `CdkError`, also if it takes longer."""
        out = self.folder / app.stack
        command = f"{sys.executable} -m acceptance.app {self.prefix} {app.file}"
        contexts = [f"--context={name}={value}" for name, value in context.items()]
        self._run("synth", "--quiet", "--app", command, *contexts, "--output", str(out), within=within)
        return out

    def deploy(self, app: App, within: timedelta | None = None) -> None:
        """Deploy what was synthesized last. Raises `CdkError`, also if it takes longer; CloudFormation then goes on."""
        out = str(self.folder / app.stack)
        self._run("deploy", "--app", out, "--require-approval", "never", self.stack_name(app), within=within)

    def _run(self, *arguments: str, within: timedelta | None = None) -> None:
        command = [str(ROOT / "node_modules" / ".bin" / "cdk"), *arguments, "--no-notices", "--ci"]
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
        with (self.folder.parent / "cdk.log").open("a") as log:
            log.write(f"$ cdk {' '.join(arguments)}\n{output}\n")
        if process.returncode:
            last = " / ".join(line.strip() for line in output.strip().splitlines()[-3:])
            raise CdkError(f"cdk {arguments[0]} ended with status {process.returncode}: {last}")
