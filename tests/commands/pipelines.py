"""The scripts of the action and of GitLab's job, run as the services run them, beside stand-ins of gh and glab."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cdk_cli import ROOT
from tests.command import SCRIPT
from tests.commands.code_hosts import TOKEN, CodeHost

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
JOB: dict[str, Any] = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".highwater-rehearsal"]
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
(COMMENT,) = [step for step in STEPS if step["name"] == "Comment"]
SHELLS = [["bash", "-eo", "pipefail"], ["sh", "-e"]]
# what jobs of the services have; the tests may run in one
OF_JOBS = re.compile("GITHUB_|GITLAB_|CI_|GH_|HIGHWATER_")


@dataclass
class Runner:
    """A folder in which jobs run.

    Attributes:
        folder: The checkout.
        host: The comments of the request.
        variables: The variables of the job.
        number: The number of the pull request, empty after a push.
    """

    folder: Path
    host: CodeHost
    variables: Mapping[str, str | None]
    number: str = "7"
    outputs: dict[tuple[str, str], str] = field(default_factory=dict)
    said: str = ""

    def shell(self, script: str, shell: list[str], cwd: Path, **variables: str) -> int:
        """Run a script, and return its exit status."""
        plain = {name: value for name, value in os.environ.items() if not OF_JOBS.match(name)}
        path = f"{self.host.state.parent}:{Path(SCRIPT).parent}:{os.environ['PATH']}"
        every = plain | {"PATH": path} | dict(self.variables) | variables
        every |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": "/dev/null"}
        environment = {name: value for name, value in every.items() if value is not None}
        file = self.folder.parent / "script.sh"
        file.write_text(script)
        done = subprocess.run(
            [*shell, str(file)], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        self.said += done.stdout + done.stderr
        assert TOKEN not in self.said
        return done.returncode

    def action(self, **inputs: str) -> tuple[str, int]:
        """Run the steps of the action; return the last that ran, and its status."""
        given = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        values = {f"inputs.{name}": value for name, value in given.items()}
        values |= {"inputs.token": self.variables["TOKEN"] or "", "github.event.pull_request.number": self.number}
        for step in STEPS:
            output = self.folder.parent / "output"
            output.write_text("")
            values |= {f"steps.{name}.outputs.{key}": text for (name, key), text in self.outputs.items()}
            filled = {
                name: _filled(text, values)
                for name, text in (step.get("env", {}) | {"cwd": step.get("working-directory", "")}).items()
            }
            status = self.shell(
                step["run"],
                ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
                self.folder / filled.pop("cwd"),
                GITHUB_OUTPUT=str(output),
                **filled,
            )
            for line in output.read_text().splitlines():
                name, _, text = line.partition("=")
                self.outputs[step["id"], name] = text
            if status != 0:
                break
        return step["name"], status

    def job(self, shell: list[str], **variables: str) -> int:
        """Run the job of GitLab CI, whose scripts it joins."""
        return self.shell("\n".join(JOB["script"]), shell, self.folder, **(JOB["variables"] | variables))

    def comment(self, document: str, **variables: str) -> int:
        """Run only what posts a document."""
        (self.folder.parent / "document.md").write_text(document)
        path = str(self.folder.parent / "document.md")
        if self.host.kind == "gh":
            given = {
                "DOCUMENT": path,
                "NUMBER": self.number,
                "NAME": "",
                "WORKING_DIRECTORY": ".",
                "CDK_OUT": "cdk.out",
            }
            given |= {"GH_TOKEN": self.variables["TOKEN"] or "", "ARTIFACT_URL": "https://x/7"}
            return self.shell(COMMENT["run"], SHELLS[0], self.folder, **(given | variables))
        name = variables.pop("NAME", "")
        script = 'set -e\nstatus=0\ndocument="$DOCUMENT"\n' + JOB["script"][1]
        return self.shell(script, ["sh"], self.folder, DOCUMENT=path, HIGHWATER_NAME=name, **variables)

    def summary(self) -> str:
        """The summary of the job on GitHub."""
        file = self.folder.parent / "summary.md"
        return file.read_text() if file.exists() else ""


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: values[found[1]], text)


def empty_job(kind: str, folder: Path) -> Runner:
    """A job of a service in an empty folder."""
    checkout, tools = folder / "checkout", folder / "tools"
    checkout.mkdir()
    tools.mkdir()
    variables = {
        "TOKEN": TOKEN,
        "GITHUB_REPOSITORY": "shop/infra",
        "GITHUB_SERVER_URL": "https://github.example.com",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "RUNNER_TEMP": str(folder),
    }
    if kind == "glab":
        variables = {
            "GITLAB_TOKEN": TOKEN,
            "CI_SERVER_URL": "https://gitlab.example.com:8443",
            "CI_PROJECT_ID": "42",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_PROJECT_DIR": str(checkout),
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_JOB_URL": "https://x/7",
            "TMPDIR": str(folder),
        }
    return Runner(checkout, CodeHost.installed(kind, tools), variables)


def nothing_was_run(runner: Runner) -> bool:
    """Whether no name was run as a command: each would have written a file."""
    return list(runner.folder.parent.rglob("pwned*")) == []
