"""The action for GitHub and the job for GitLab: their scripts are run as the services run them, beside stand-ins."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cdk_cli import ROOT
from tests.commands.pipelines import ACTION, JOB, SHELLS, STEPS, Runner, empty_job, nothing_was_run
from tests.template.plans import plan, table, target

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("pipelines")]

TRAFFIC = "bin_60s,table,writes\n" + "".join(
    f"{minute},{name},1200\n" for minute in range(30) for name in ("Visits", "orders")
)
# the last line of a job that fails
SAID = "A limit is exceeded, or AWS refuses or destroys something; the comment on the {}, says what.\n"
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


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def _runner(kind: str, folder: Path) -> Runner:
    """A checkout, without history, of a change that gives a table more capacity; the branches are at its origin."""
    runner = empty_job(kind, folder)
    origin, tools = folder / "origin", folder / "tools"
    origin.mkdir()
    _assembly(origin / "assembly", 43)
    (origin / "cdk.json").write_text("{}")
    (origin / "traffic.csv").write_text(TRAFFIC)
    for command in (("init",), ("add", "."), ("commit", "-m", "old"), ("branch", ODD)):
        _git(origin, *command)
    _assembly(origin / "assembly", 430)
    for command in (("checkout", "-b", "change"), ("commit", "-am", "new")):
        _git(origin, *command)
    _git(folder, "clone", "--depth=1", "--branch=change", f"file://{origin}", str(runner.folder))
    shutil.copytree(runner.folder / "assembly", runner.folder / "cdk.out")
    (tools / "cdk").write_text(CDK)
    (tools / "cdk").chmod(0o755)
    return runner


@pytest.fixture
def github(tmp_path: Path) -> Runner:
    """A job of GitHub Actions."""
    return _runner("gh", tmp_path)


@pytest.fixture
def gitlab(tmp_path: Path) -> Runner:
    """A job of GitLab CI."""
    return _runner("glab", tmp_path)


def test_action_comments_on_what_a_pull_request_changes(github: Runner) -> None:
    github.variables = {**github.variables, "GITHUB_BASE_REF": "main"}
    assert github.action(version="installed", traffic="traffic.csv") == ("Limits", 0), github.said
    (body,) = github.host.bodies()
    assert body.startswith("<!-- highwater:: -->\n### DynamoDB capacity\n")
    assert "Before (origin/main): " in body
    assert "| Data/<wbr>Visits | " in body
    assert github.outputs["rehearse", "exceeded"] == "false"
    assert "| Data/<wbr>Visits | " in Path(github.outputs["rehearse", "document"]).read_text()
    assert "Data/Visits" in Path(github.outputs["rehearse", "page"]).read_text()
    assert github.action(version="installed", traffic="traffic.csv", against="cdk.out") == ("Limits", 0)
    assert github.host.written() == ["POST", "DELETE"], "nothing differs any more"


def test_action_fails_for_a_limit_after_it_has_commented(github: Runner) -> None:
    limits = {"max_cost_rise": "1", "max_throttled_rise": "99", "max_cost": "9999", "max_throttled": "99"}
    limits["fail_on_unknown"] = "true"
    done = github.action(version="installed", traffic="traffic.csv", against="origin/main", **limits)
    assert done == ("Rehearse", 2), "nothing was fetched, as a revision is named"
    github.variables = {**github.variables, "GITHUB_BASE_REF": "main"}
    done = github.action(version="installed", traffic="traffic.csv", **limits)
    assert done == ("Limits", 1), github.said
    (body,) = github.host.bodies()
    assert "\n- ❌ the cost rises by $" in body
    assert github.outputs["rehearse", "exceeded"] == "true"
    assert github.said.endswith(SAID.format("pull request, or the summary of the job"))


def _with_a_lost_table(folder: Path) -> dict[str, str]:
    """Write a template that a table was removed from, and the old one; return the inputs of the action."""
    key = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}
    every = {name: {"Type": "AWS::DynamoDB::Table", "Properties": key} for name in ("Orders", "Carts", "Visits")}
    (folder / "old.json").write_text(json.dumps({"Resources": every}))
    (folder / "new.json").write_text(json.dumps({"Resources": {"Visits": every["Visits"]}}))
    return {"traffic": "traffic.csv", "against": "old.json", "cdk_out": "new.json"}


def test_action_fails_for_a_lost_table_unless_its_line_is_accepted(github: Runner) -> None:
    inputs = _with_a_lost_table(github.folder) | {"version": "installed"}
    assert github.action(**inputs, accept="removed=Orders") == ("Limits", 1), github.said
    accepted = "removed=Orders\n\nremoved=Carts\nremoved=$(touch pwned)\n"
    assert github.action(**inputs, accept=accepted) == ("Limits", 0), github.said
    (body,) = github.host.bodies()
    assert "- ⚠️ accepted: Orders: removed: CloudFormation deletes it" in body
    assert nothing_was_run(github)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_job_fails_for_a_lost_table_unless_its_line_is_accepted(gitlab: Runner, shell: list[str]) -> None:
    inputs = _with_a_lost_table(gitlab.folder) | {"version": "installed"}
    variables = {f"HIGHWATER_{name.upper()}": value for name, value in inputs.items()}
    assert gitlab.job(shell, **variables, HIGHWATER_ACCEPT="removed=Orders") == 1
    accepted = "removed=Orders\nremoved=Carts\nremoved=*"
    assert gitlab.job(shell, **variables, HIGHWATER_ACCEPT=accepted) == 0, gitlab.said


def test_action_fails_at_once_for_what_cannot_be_rehearsed(github: Runner) -> None:
    assert github.action(version="installed", traffic="none.csv") == ("Rehearse", 2)
    assert github.said.endswith(
        "highwater rehearse: none.csv: cannot be read: No such file or directory; give a CSV, JSON or Parquet file\n"
    )
    assert github.action(version="installed") == ("Rehearse", 2)
    assert github.said.endswith(
        "traffic: is not given; give the file or folder that highwater traffic fetch --all writes\n"
    )
    assert github.host.calls() == []


def test_action_after_a_push_compares_with_nothing_and_shows_the_rehearsal(github: Runner) -> None:
    github.number = ""
    done = github.action(version="installed", traffic="traffic.csv", max_cost_rise="1", max_throttled_rise="1")
    assert done == ("Limits", 0), github.said
    assert "### DynamoDB capacity" in github.summary()
    assert github.host.calls() == []


def test_action_in_a_fork_shows_the_rehearsal_and_keeps_its_limits(github: Runner) -> None:
    github.variables = {**github.variables, "GITHUB_BASE_REF": "main"}
    github.host.refuses("POST", "gh: Resource not accessible by integration (HTTP 403)")
    done = github.action(version="installed", traffic="traffic.csv", max_cost_rise="1")
    assert done == ("Limits", 1), github.said
    assert "❌ the cost rises by $" in github.summary()
    assert "Resource not accessible by integration (HTTP 403); what differs is in the summary of the job" in github.said


def test_inputs_and_branches_of_the_action_are_run_by_no_shell(github: Runner) -> None:
    github.variables = {**github.variables, "GITHUB_BASE_REF": ODD}
    folder = github.folder / "$(touch pwned) '\"; touch pwned"
    folder.mkdir()
    for name in ("cdk.out", "traffic.csv", "assembly"):
        (github.folder / name).rename(folder / name)
    (folder / "cdk.out").rename(folder / "--$(touch pwned)")
    _assembly(folder / "old", 43)
    done = github.action(
        version="installed",
        traffic="traffic.csv",
        against="old",
        cdk_out="--$(touch pwned)",
        working_directory=folder.name,
        artifact_url="https://example.com/$(touch${IFS}pwned)",
    )
    assert done == ("Limits", 0), github.said
    odd = f"{ODD} touch pwned"
    limits = {"max_cost": odd, "max_throttled": odd, "max_cost_rise": odd, "max_throttled_rise": odd}
    for inputs in ({"traffic": odd, "cdk_out": odd}, {"traffic": "traffic.csv", "against": odd} | limits):
        assert github.action(version="installed", **inputs) == ("Rehearse", 2)
    for version in (ODD, "1; touch pwned", "-e .", "1\nhighwater=x"):
        assert github.action(version=version, traffic="traffic.csv") == ("Install", 2)
    assert nothing_was_run(github)
    assert len(github.host.bodies()) == 1


def test_branch_with_an_odd_name_is_compared_with(github: Runner) -> None:
    github.variables = {**github.variables, "GITHUB_BASE_REF": ODD}
    assert github.action(version="installed", traffic="traffic.csv") == ("Limits", 0), github.said
    assert "Before (origin/$(touch${IFS}pwned)\\`touch" in github.host.bodies()[0]
    assert nothing_was_run(github)


def _planned(folder: Path) -> None:
    """What `terraform show -json` prints of a plan that raises a table's floor."""
    document = plan(table(), target(min_capacity=2_900, max_capacity=9_000), prior=(table(), target()))
    (folder / "plan.json").write_text(json.dumps(document))


def test_action_compares_a_terraform_plan_with_the_state_before(github: Runner) -> None:
    github.variables = {**github.variables, "GITHUB_BASE_REF": "main"}
    _planned(github.folder)
    inputs = {"version": "installed", "traffic": "traffic.csv", "cdk_out": "plan.json"}
    # without a CDK CLI
    (github.folder.parent / "tools" / "cdk").unlink()
    assert github.action(**inputs, against="prior", name="shop") == ("Limits", 0), github.said
    (body,) = github.host.bodies()
    assert body.startswith("<!-- highwater:shop: -->\n### DynamoDB capacity · shop\n")
    assert "Before (prior): " in body
    assert "| aws\\_<wbr>dynamodb\\_<wbr>table.<wbr>orders | " in body
    assert github.action(**inputs, against="prior", name="shop", max_cost_rise="1") == ("Limits", 1)
    assert github.action(**inputs) == ("Rehearse", 2)
    assert github.said.endswith(
        "highwater rehearse: --against origin/main: is no file, and no plan of Terraform is made of a revision of git; "
        "compare with the state that the plan was made from: --against prior\n"
    )


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_job_compares_a_terraform_plan_with_the_state_before(gitlab: Runner, shell: list[str]) -> None:
    _planned(gitlab.folder)
    (gitlab.folder.parent / "tools" / "cdk").unlink()
    variables = {"HIGHWATER_VERSION": "installed", "HIGHWATER_TRAFFIC": "traffic.csv", "HIGHWATER_CDK_OUT": "plan.json"}
    assert gitlab.job(shell, **variables, HIGHWATER_AGAINST="prior") == 0, gitlab.said
    assert "Before (prior): " in gitlab.host.bodies()[0]


@pytest.mark.parametrize("kind", ["gh", "glab"])
def test_command_is_installed_from_the_projects_files_apart_from_the_jobs_packages(tmp_path: Path, kind: str) -> None:
    """By name, an index could hand out what anybody has published under it."""
    runner = empty_job(kind, tmp_path)
    (tmp_path / "tools" / "python3").write_text(PYTHON)
    (tmp_path / "tools" / "python3").chmod(0o755)
    runner.variables = {**runner.variables, "CALLS": str(tmp_path / "calls")}
    if kind == "gh":
        source = str(ROOT)
        # the stand-in installs nothing
        runner.variables = {**runner.variables, "GITHUB_ACTION_PATH": source}
        assert runner.action(traffic="x")[0] == "Rehearse"
        place = f"{tmp_path}/highwater"
        assert runner.outputs["install", "highwater"] == f"{place}/bin/highwater"
    else:
        released = tmp_path / "hosted" / "highwater"
        released.mkdir(parents=True)
        version = JOB["variables"]["HIGHWATER_VERSION"]
        for command in (("init",), ("commit", "--allow-empty", "-m", "released"), ("tag", f"v{version}")):
            _git(released, *command)
        place = str(tmp_path / "venv")
        source = f"{place}-source"
        here = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{released.parent}/.insteadOf"}
        here["GIT_CONFIG_VALUE_0"] = "https://github.com/cdk-highwater/"
        script = JOB["script"][0].replace("/tmp/highwater", place)  # noqa: S108
        runner.shell(script, ["bash", "-e"], runner.folder, **JOB["variables"], **here)
        assert Path(source, ".git").exists(), runner.said
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"-m venv {place}",
        f"-m pip install --quiet --disable-pip-version-check {source}/lambda_src {source}/lab_src",
    ]
    for part in ("lambda_src", "lab_src"):
        assert (ROOT / part / "pyproject.toml").exists()


def test_version_of_the_job_is_that_of_the_packages() -> None:
    text = (ROOT / "lab_src" / "pyproject.toml").read_text()
    assert f'\nversion = "{JOB["variables"]["HIGHWATER_VERSION"]}"\n' in text


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_job_comments_on_what_a_merge_request_changes(gitlab: Runner, shell: list[str]) -> None:
    variables = {"HIGHWATER_VERSION": "installed", "HIGHWATER_TRAFFIC": "traffic.csv"}
    assert gitlab.job(shell, **variables) == 0, gitlab.said
    (body,) = gitlab.host.bodies()
    assert "Before (origin/main): " in body
    assert "| Data/<wbr>Visits | " in body
    assert "| Data/<wbr>Visits | " in (gitlab.folder / JOB["artifacts"]["paths"][0]).read_text()
    assert "Data/Visits" in (gitlab.folder / JOB["artifacts"]["paths"][1]).read_text()
    limit = {"HIGHWATER_MAX_COST_RISE": "1", "HIGHWATER_MAX_THROTTLED_RISE": "99"}
    more = {"HIGHWATER_MAX_COST": "9999", "HIGHWATER_MAX_THROTTLED": "99", "HIGHWATER_NAME": "shop"}
    more["HIGHWATER_FAIL_ON_UNKNOWN"] = "true"
    assert gitlab.job(shell, **variables, **limit, **more) == 1
    assert gitlab.said.endswith(SAID.format("merge request, or the artifact"))
    assert "❌ the cost rises by $" in gitlab.host.bodies()[1]
    gitlab.host.refuses("PUT", "glab: 403 Forbidden (HTTP 403)")
    assert gitlab.job(shell, **variables, **limit) == 1, "a limit counts where no comment may be written"
    assert gitlab.job(shell, **(variables | {"HIGHWATER_TRAFFIC": "none.csv"})) == 2
    assert len(gitlab.host.bodies()) == 2


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_variables_and_branches_of_the_job_are_run_by_no_shell(gitlab: Runner, shell: list[str]) -> None:
    gitlab.variables = {
        **gitlab.variables,
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": ODD,
        "CI_JOB_URL": f"https://x/{ODD}",
    }
    folder = gitlab.folder / "$(touch pwned) '\"; touch pwned"
    folder.mkdir()
    for name in ("cdk.out", "traffic.csv", "assembly"):
        (gitlab.folder / name).rename(folder / name)
    _assembly(folder / "old", 43)
    variables = {"HIGHWATER_VERSION": "installed", "HIGHWATER_TRAFFIC": "traffic.csv", "HIGHWATER_AGAINST": "old"}
    named = {"HIGHWATER_DIRECTORY": folder.name, "HIGHWATER_NAME": "$(touch pwned)"}
    assert gitlab.job(shell, **(variables | named)) == 0, gitlab.said
    odd = dict.fromkeys(JOB["variables"], f"{ODD} touch pwned") | {"HIGHWATER_VERSION": "installed"}
    assert gitlab.job(shell, **odd) != 0
    assert gitlab.job(shell, **(odd | {"HIGHWATER_DIRECTORY": folder.name})) == 2
    assert nothing_was_run(gitlab)
    assert len(gitlab.host.bodies()) == 1


def test_merge_request_of_a_fork_is_compared_with_the_project_that_it_is_merged_into(gitlab: Runner) -> None:
    origin = gitlab.folder.parent / "origin"
    origin.rename(origin.with_suffix(".git"))
    fork = {"CI_MERGE_REQUEST_PROJECT_ID": "42", "CI_PROJECT_ID": "41"}
    fork["CI_MERGE_REQUEST_PROJECT_URL"] = f"file://{origin}"
    gitlab.variables = {**gitlab.variables, **fork}
    variables = {"HIGHWATER_VERSION": "installed", "HIGHWATER_TRAFFIC": "traffic.csv"}
    assert gitlab.job(SHELLS[0], **variables) == 0, gitlab.said
    assert len(gitlab.host.bodies()) == 1, "the comment is in the project that it is merged into"
    assert gitlab.job(SHELLS[0], **variables, GITLAB_TOKEN="") == 0
    assert "there is no merge request, or no GITLAB_TOKEN; the rehearsal is an artifact of the job" in gitlab.said


def test_every_input_is_used_and_no_script_is_made_of_inputs() -> None:
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", yaml.safe_dump(STEPS, width=10_000)))
    assert used == set(ACTION["inputs"])
    for step in STEPS:
        assert step["shell"] == "bash"
        # what another action is at a name may change; there is none
        assert "uses" not in step
        assert "${{" not in step["run"]
        # gh reads one of its two tokens, by the host
        for name in set(step.get("env", {})) - {"GH_ENTERPRISE_TOKEN"}:
            assert re.search(rf"\$\{{?{name}\b|ENVIRON\[\"{name}\"\]", step["run"]), f"{step['name']}: {name}"
    script = "\n".join(JOB["script"])
    assert set(re.findall(r"\$\{?(HIGHWATER_\w+)", script)) == set(JOB["variables"])
