"""The action for GitHub and the job for GitLab: their scripts are run as the services run them, against a stand-in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cdk_cli import ROOT
from tests.command import SCRIPT
from tests.commands.test_comment import OF_JOBS, job
from tests.comments.forge import Forge, serving

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("pipelines")]

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
JOB: dict[str, Any] = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".highwater-rehearsal"]
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
TRAFFIC = "bin_60s,table,writes\n" + "".join(f"{minute},Visits,1200\n" for minute in range(30))
# names that a shell would run, if it saw them
ODD = "$(touch${IFS}pwned)`touch${IFS}pwned`';touch${IFS}pwned;'\"&touch${IFS}pwned&\""
# stands for the CDK CLI: copies the app's assembly to the folder after --output
CDK = '#!/bin/bash\n[ "$1 $3" = "synth --output" ] && cp -r assembly "$4"\n'
# stands for Python where packages are installed
PYTHON = """#!/bin/bash
echo "$*" >> "$CALLS"
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi
"""


def _assembly(folder: Path, units: int) -> None:
    """What `cdk synth` writes of an app with one table."""
    folder.mkdir(exist_ok=True)
    properties = {"templateFile": "Data.template.json", "stackName": "data"}
    stack = {"type": "aws:cloudformation:stack", "environment": "aws://123456789012/eu-west-1"}
    (folder / "manifest.json").write_text(
        json.dumps({"version": "48.0.0", "artifacts": {"Data": stack | {"properties": properties}}})
    )
    table = {
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": units},
    }
    resource = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": table,
        "Metadata": {"aws:cdk:path": "Data/Visits/Resource"},
    }
    (folder / "Data.template.json").write_text(json.dumps({"Resources": {"Visits": resource}}))


@dataclass
class Runner:
    """A folder in which jobs run.

    Attributes:
        folder: The checkout.
        variables: The variables of the job.
    """

    folder: Path
    variables: Mapping[str, str | None]
    outputs: dict[tuple[str, str], str] = field(default_factory=dict)
    said: str = ""

    def shell(self, script: str, shell: list[str], cwd: Path, **variables: str) -> int:
        """Run a script, and return its exit status."""
        tools = self.folder.parent / "tools"
        plain = {name: value for name, value in os.environ.items() if name not in OF_JOBS}
        every = (
            plain | {"PATH": f"{tools}:{Path(SCRIPT).parent}:{os.environ['PATH']}"} | dict(self.variables) | variables
        )
        every |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": "/dev/null"}
        environment = {name: value for name, value in every.items() if value is not None}
        file = self.folder.parent / "script.sh"
        file.write_text(script)
        done = subprocess.run(
            [*shell, str(file)], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        self.said += done.stdout + done.stderr
        return done.returncode

    def action(self, **inputs: str) -> tuple[str, int]:
        """Run the steps of the action; return the last that ran, and its status."""
        given = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}

        def filled(text: str) -> str:
            def value(expression: re.Match[str]) -> str:
                kind, *rest = expression[1].split(".")
                if kind == "inputs":
                    return filled(given[rest[0]])
                if kind == "steps":
                    return self.outputs[rest[0], rest[2]]
                assert expression[1] == "github.token"
                return self.variables["GITHUB_TOKEN"] or ""

            return re.sub(r"\$\{\{ ([\w.-]+) \}\}", value, text)

        for step in STEPS:
            output = self.folder.parent / "output"
            output.write_text("")
            status = self.shell(
                step["run"],
                ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
                self.folder / filled(step.get("working-directory", "")),
                GITHUB_OUTPUT=str(output),
                RUNNER_TEMP=str(self.folder.parent),
                **{name: filled(text) for name, text in step.get("env", {}).items()},
            )
            for line in output.read_text().splitlines():
                name, _, text = line.partition("=")
                self.outputs[step["id"], name] = text
            if status != 0:
                break
        return step["name"], status

    def job(self, shell: list[str], **variables: str) -> int:
        """Run the job of GitLab CI."""
        (script,) = JOB["script"]
        return self.shell(script, shell, self.folder, **(JOB["variables"] | variables))


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def _runner(forge: Forge, folder: Path) -> Runner:
    """A checkout, without history, of a change that gives a table more capacity; the branches are at its origin."""
    origin, checkout, tools = folder / "origin", folder / "checkout", folder / "tools"
    origin.mkdir()
    _assembly(origin / "assembly", 43)
    (origin / "cdk.json").write_text("{}")
    (origin / "traffic.csv").write_text(TRAFFIC)
    for command in (("init",), ("add", "."), ("commit", "-m", "old"), ("branch", ODD)):
        _git(origin, *command)
    _assembly(origin / "assembly", 430)
    for command in (("checkout", "-b", "change"), ("commit", "-am", "new")):
        _git(origin, *command)
    _git(folder, "clone", "--depth=1", "--branch=change", f"file://{origin}", str(checkout))
    shutil.copytree(checkout / "assembly", checkout / "cdk.out")
    tools.mkdir()
    (tools / "cdk").write_text(CDK)
    (tools / "cdk").chmod(0o755)
    return Runner(checkout, job(forge, folder))


@pytest.fixture
def github(tmp_path: Path) -> Iterator[tuple[Forge, Runner]]:
    """A job of GitHub Actions."""
    with serving(Forge("github")) as forge:
        yield forge, _runner(forge, tmp_path)


@pytest.fixture
def gitlab(tmp_path: Path) -> Iterator[tuple[Forge, Runner]]:
    """A job of GitLab CI."""
    with serving(Forge("gitlab")) as forge:
        runner = _runner(forge, tmp_path)
        runner.variables = {
            **runner.variables,
            "CI_PROJECT_DIR": str(runner.folder),
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_JOB_URL": "https://gitlab.example.com/jobs/1",
        }
        yield forge, runner


def _nothing_was_run(runner: Runner) -> bool:
    return list(runner.folder.parent.rglob("pwned*")) == []


def test_action_comments_on_what_a_pull_request_changes(github: tuple[Forge, Runner]) -> None:
    forge, runner = github
    runner.variables = {**runner.variables, "GITHUB_BASE_REF": "main"}
    assert runner.action(version="installed", traffic="traffic.csv") == ("Limits", 0), runner.said
    (body,) = forge.bodies()
    assert body.startswith("<!-- highwater rehearsal:  -->\n<!-- highwater run: 9.1 -->\n### DynamoDB capacity\n")
    assert "Before (origin/main): " in body
    assert "| Data/<wbr>Visits | " in body
    assert runner.outputs["rehearse", "exceeded"] == "false"
    assert "| Data/<wbr>Visits | " in Path(runner.outputs["rehearse", "document"]).read_text()


def test_action_fails_for_a_limit_after_it_has_commented(github: tuple[Forge, Runner]) -> None:
    forge, runner = github
    limits = {"max_cost_rise": "1", "max_throttled_rise": "99", "max_cost": "9999", "max_throttled": "99"}
    limits["fail_on_unknown"] = "true"
    done = runner.action(version="installed", traffic="traffic.csv", against="origin/main", **limits)
    assert done == ("Rehearse", 2), "nothing was fetched, as a revision is named"
    runner.variables = {**runner.variables, "GITHUB_BASE_REF": "main"}
    done = runner.action(version="installed", traffic="traffic.csv", **limits)
    assert done == ("Limits", 1), runner.said
    (body,) = forge.bodies()
    assert "\n- ❌ the cost rises by $" in body
    assert runner.outputs["rehearse", "exceeded"] == "true"
    assert runner.said.endswith(
        "A limit is exceeded; the comment on the pull request, or the summary of the job, says which.\n"
    )


def test_action_fails_at_once_for_what_cannot_be_rehearsed(github: tuple[Forge, Runner]) -> None:
    forge, runner = github
    assert runner.action(version="installed", traffic="none.csv") == ("Rehearse", 2)
    assert runner.said.endswith(
        "highwater rehearse: none.csv: cannot be read: No such file or directory; give a CSV, JSON or Parquet file\n"
    )
    assert runner.action(version="installed") == ("Rehearse", 2)
    assert runner.said.endswith(
        "traffic: is not given; give the file or folder that highwater traffic fetch --all writes\n"
    )
    assert forge.asked == []


def test_action_after_a_push_compares_with_nothing_and_shows_the_rehearsal(github: tuple[Forge, Runner]) -> None:
    forge, runner = github
    (runner.folder.parent / "event.json").write_text('{"ref": "refs/heads/main"}')
    done = runner.action(version="installed", traffic="traffic.csv", max_cost_rise="1", max_throttled_rise="1")
    assert done == ("Limits", 0), runner.said
    assert "### DynamoDB capacity" in (runner.folder.parent / "summary.md").read_text()
    assert forge.comments == {}


def test_action_in_a_fork_shows_the_rehearsal_and_keeps_its_limits(github: tuple[Forge, Runner]) -> None:
    forge, runner = github
    runner.variables = {**runner.variables, "GITHUB_BASE_REF": "main"}
    forge.scripted["POST"] = [(403, {}, None), (403, {}, {"message": "Resource not accessible by integration"})]
    done = runner.action(version="installed", traffic="traffic.csv", max_cost_rise="1")
    assert done == ("Limits", 1), runner.said
    assert "❌ the cost rises by $" in (runner.folder.parent / "summary.md").read_text()
    assert "Resource not accessible by integration; the rehearsal is in the summary of the step; " in runner.said


def test_inputs_and_branches_of_the_action_are_run_by_no_shell(github: tuple[Forge, Runner]) -> None:
    forge, runner = github
    runner.variables = {**runner.variables, "GITHUB_BASE_REF": ODD}
    folder = runner.folder / "$(touch pwned) '\"; touch pwned"
    folder.mkdir()
    for name in ("cdk.out", "traffic.csv", "assembly"):
        (runner.folder / name).rename(folder / name)
    (folder / "cdk.out").rename(folder / "--$(touch pwned)")
    _assembly(folder / "old", 43)
    done = runner.action(
        version="installed",
        traffic="traffic.csv",
        against="old",
        cdk_out="--$(touch pwned)",
        working_directory=folder.name,
        artifact_url="https://example.com/$(touch${IFS}pwned)",
    )
    assert done == ("Limits", 0), runner.said
    odd = f"{ODD} touch pwned"
    limits = {"max_cost": odd, "max_throttled": odd, "max_cost_rise": odd, "max_throttled_rise": odd}
    for inputs in ({"traffic": odd, "cdk_out": odd}, {"traffic": "traffic.csv", "against": odd} | limits):
        assert runner.action(version="installed", **inputs) == ("Rehearse", 2)
    for version in (ODD, "1; touch pwned", "-e .", "1\nhighwater=x"):
        assert runner.action(version=version, traffic="traffic.csv") == ("Install", 2)
    assert _nothing_was_run(runner)
    assert len(forge.bodies()) == 1


def test_branch_with_an_odd_name_is_compared_with(github: tuple[Forge, Runner]) -> None:
    forge, runner = github
    runner.variables = {**runner.variables, "GITHUB_BASE_REF": ODD}
    assert runner.action(version="installed", traffic="traffic.csv") == ("Limits", 0), runner.said
    assert "Before (origin/$(touch${IFS}pwned)\\`touch" in forge.bodies()[0]
    assert _nothing_was_run(runner)


@pytest.mark.parametrize(
    ("working_directory", "cdk_out", "name"),
    [
        (".", "cdk.out", ""),
        ("./", "cdk.out/", ""),
        ("infra", "cdk.out", "infra"),
        ("./infra/", "cdk.out", "infra"),
        (".", "build/cdk.out", "build"),
        ("a/b", "out", "a/b/out"),
    ],
)
def test_apps_of_several_folders_have_comments_of_their_own(
    tmp_path: Path, working_directory: str, cdk_out: str, name: str
) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "shown").write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    (tmp_path / "shown").chmod(0o755)
    runner = Runner(tmp_path / "checkout", {})
    (step,) = [each for each in STEPS if each["name"] == "Comment"]
    variables = dict.fromkeys(step["env"], "") | {"DOCUMENT": "rehearsal.md", "HIGHWATER": str(tmp_path / "shown")}
    places = {"WORKING_DIRECTORY": working_directory, "CDK_OUT": cdk_out}
    runner.shell(step["run"], ["bash", "-eo", "pipefail"], runner.folder, **(variables | places))
    assert runner.said.splitlines() == ["comment", "--github", f"--name={name}", "--", "rehearsal.md"]
    runner.said = ""
    runner.shell(step["run"], ["bash", "-eo", "pipefail"], runner.folder, **(variables | places | {"NAME": "shop"}))
    assert "--name=shop" in runner.said.splitlines()


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_command_is_installed_in_the_projects_version_apart_from_the_jobs_packages(tmp_path: Path, kind: str) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "python3").write_text(PYTHON)
    (tmp_path / "tools" / "python3").chmod(0o755)
    runner = Runner(
        tmp_path / "checkout", {"CALLS": str(tmp_path / "calls"), "CI_PROJECT_DIR": str(tmp_path / "checkout")}
    )
    if kind == "github":
        # the stand-in installs nothing
        assert runner.action(traffic="x")[0] == "Rehearse"
        place = f"{tmp_path}/highwater"
        assert runner.outputs["install", "highwater"] == f"{place}/bin/highwater"
    else:
        place = str(tmp_path / "venv")
        (script,) = JOB["script"]
        runner.shell(script.replace("/tmp/highwater", place), ["bash", "-e"], runner.folder, **JOB["variables"])  # noqa: S108
    text = (ROOT / "lab_src" / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.*)"', text, re.MULTILINE)
    assert version is not None
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"-m venv {place}",
        f"-m pip install --quiet --disable-pip-version-check highwater-lab=={version[1]}",
    ]


@pytest.mark.parametrize("shell", [["bash", "-eo", "pipefail"], ["sh", "-e"]], ids=lambda shell: shell[0])
def test_job_comments_on_what_a_merge_request_changes(gitlab: tuple[Forge, Runner], shell: list[str]) -> None:
    forge, runner = gitlab
    variables = {"HIGHWATER_VERSION": "installed", "HIGHWATER_TRAFFIC": "traffic.csv"}
    assert runner.job(shell, **variables) == 0, runner.said
    (body,) = forge.bodies()
    assert "Before (origin/main): " in body
    assert "| Data/<wbr>Visits | " in body
    assert "| Data/<wbr>Visits | " in (runner.folder / JOB["artifacts"]["paths"][0]).read_text()
    limit = {"HIGHWATER_MAX_COST_RISE": "1", "HIGHWATER_MAX_THROTTLED_RISE": "99"}
    more = {"HIGHWATER_MAX_COST": "9999", "HIGHWATER_MAX_THROTTLED": "99", "HIGHWATER_NAME": "shop"}
    more["HIGHWATER_FAIL_ON_UNKNOWN"] = "true"
    assert runner.job(shell, **variables, **limit, **more) == 1
    assert runner.said.endswith("app: posted\nA limit is exceeded; the comment on the merge request says which.\n")
    assert "❌ the cost rises by $" in forge.bodies()[1]
    assert runner.job(shell, **(variables | {"HIGHWATER_TRAFFIC": "none.csv"})) == 2
    assert len(forge.bodies()) == 2


@pytest.mark.parametrize("shell", [["bash", "-eo", "pipefail"], ["sh", "-e"]], ids=lambda shell: shell[0])
def test_variables_and_branches_of_the_job_are_run_by_no_shell(gitlab: tuple[Forge, Runner], shell: list[str]) -> None:
    forge, runner = gitlab
    runner.variables = {
        **runner.variables,
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": ODD,
        "CI_JOB_URL": f"https://x/{ODD}",
    }
    folder = runner.folder / "$(touch pwned) '\"; touch pwned"
    folder.mkdir()
    for name in ("cdk.out", "traffic.csv", "assembly"):
        (runner.folder / name).rename(folder / name)
    _assembly(folder / "old", 43)
    variables = {"HIGHWATER_VERSION": "installed", "HIGHWATER_TRAFFIC": "traffic.csv", "HIGHWATER_AGAINST": "old"}
    named = {"HIGHWATER_DIRECTORY": folder.name, "HIGHWATER_NAME": "$(touch pwned)"}
    assert runner.job(shell, **(variables | named)) == 0, runner.said
    odd = dict.fromkeys(JOB["variables"], f"{ODD} touch pwned") | {"HIGHWATER_VERSION": "installed"}
    assert runner.job(shell, **odd) != 0
    assert runner.job(shell, **(odd | {"HIGHWATER_DIRECTORY": folder.name})) == 2
    assert _nothing_was_run(runner)
    assert len(forge.bodies()) == 1


def test_merge_request_of_a_fork_is_compared_with_the_project_that_it_is_merged_into(
    gitlab: tuple[Forge, Runner],
) -> None:
    forge, runner = gitlab
    origin = runner.folder.parent / "origin"
    origin.rename(origin.with_suffix(".git"))
    fork = {"CI_MERGE_REQUEST_PROJECT_ID": "41", "CI_MERGE_REQUEST_PROJECT_URL": f"file://{origin}"}
    runner.variables = {**runner.variables, **fork, "GITLAB_TOKEN": None}
    variables = {"HIGHWATER_VERSION": "installed", "HIGHWATER_TRAFFIC": "traffic.csv"}
    assert runner.job(["bash", "-eo", "pipefail"], **variables) == 0, runner.said
    assert "| Data/<wbr>Visits | " in runner.said
    assert (
        "no comment on the merge request: GITLAB_TOKEN is not set; the rehearsal is on standard output" in runner.said
    )
    assert forge.asked == []


def test_every_input_is_used_and_no_script_is_made_of_inputs() -> None:
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", yaml.safe_dump(STEPS, width=10_000)))
    assert used == set(ACTION["inputs"])
    for step in STEPS:
        assert step["shell"] == "bash"
        # what another action is at a name may change; there is none
        assert "uses" not in step
        assert "${{" not in step["run"]
        for name in set(step.get("env", {})) - {"GITHUB_TOKEN"}:
            assert re.search(rf"\$\{{?{name}\b", step["run"]), f"{step['name']}: {name}"
    (script,) = JOB["script"]
    for name in JOB["variables"]:
        assert f"${name}" in script
    assert set(re.findall(r"\$\{?(HIGHWATER_\w+)", script)) == set(JOB["variables"])
