"""The workflows of the code host: what they run anybody can run, and they may do no more than they have to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cdk_cli import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# what may be more than reading the checkout, and in which job
MORE = {
    ("docs", "publish"): {"pages": "write", "id-token": "write"},
    ("release", "index"): {"id-token": "write"},
    ("release", "page"): {"contents": "write"},
}
ZIZMOR = Path(sys.executable).parent / "zizmor"


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def _steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in _read(path)["jobs"].values() for step in job["steps"]]


def test_workflows_are_those_of_the_page() -> None:
    assert [path.stem for path in WORKFLOWS] == ["checks", "docs", "nightly", "release"]
    page = (ROOT / "docs" / "releasing.md").read_text()
    assert [path.stem for path in WORKFLOWS if f"`{path.stem}.yml`" not in page] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_step_is_a_target_of_the_makefile(path: Path) -> None:
    targets = set(re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"] for step in _steps(path) if "run" in step]
    assert commands
    assert [each for each in commands if each.split() not in [["make", target] for target in targets]] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_action_is_pinned_by_its_commit_and_names_its_version(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert [line for line in lines if not re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []
    assert len(lines) == sum("uses" in step for step in _steps(path))


def test_an_action_has_one_commit_and_one_version_everywhere() -> None:
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (\S+@.*)", path.read_text())}
    names = [each.split("@")[0] for each in used]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_may_do_nothing_and_each_job_what_it_needs(path: Path) -> None:
    document = _read(path)
    assert document["permissions"] == {}
    assert document["concurrency"]["group"]
    for name, job in document["jobs"].items():
        assert job["permissions"] == MORE.get((path.stem, name), {"contents": "read"}), name
        assert 0 < job["timeout-minutes"] <= 350
        assert re.fullmatch(r"ubuntu-\d\d\.04", job["runs-on"]), "a named image does not change by itself"
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
    # the job's own token is none that anybody has to keep
    assert "secrets." not in path.read_text()


def test_what_publishes_builds_nothing_and_what_builds_publishes_nothing() -> None:
    jobs = _read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert [step["run"] for step in jobs["build"]["steps"] if "run" in step] == ["make release-check"]
    assert "run" not in {key for step in jobs["index"]["steps"] for key in step}
    assert jobs["index"]["needs"] == "build"
    assert jobs["index"]["steps"][-1]["with"] == {"attestations": True}
    assert jobs["page"]["needs"] == ["build", "index"]
    assert [step["run"] for step in jobs["page"]["steps"] if "run" in step] == ["make release-publish"]


def test_zizmor_finds_nothing() -> None:
    command = ["--offline", "--quiet", "--persona", "pedantic", ".github", "action.yml"]
    assert f"$(BIN)/zizmor {' '.join(command)}\n" in (ROOT / "Makefile").read_text()
    # zizmor colors what it prints wherever the variable `CI` is set, also into a pipe
    done = subprocess.run(
        [str(ZIZMOR), "--color", "never", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip().splitlines()[-1:]) == (0, ["No findings to report. Good job!"]), done


def test_zizmor_would_find_something(tmp_path: Path) -> None:
    """Offline, too: a workflow of a stranger's making, whose token is not limited and whose action may change."""
    workflow = tmp_path / "bad.yml"
    workflow.write_text(
        "name: Bad\non: push\njobs:\n  bad:\n    runs-on: ubuntu-24.04\n    steps:\n      - uses: an/action@v7\n"
    )
    command = [str(ZIZMOR), "--offline", "--quiet", "--color", "never", "--format", "plain", str(workflow)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = set(re.findall(r"^(?:warning|error)\[([\w-]+)\]", done.stdout, re.MULTILINE))
    assert {"excessive-permissions", "unpinned-uses"} <= found
    assert done.returncode != 0
