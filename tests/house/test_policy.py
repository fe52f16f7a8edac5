"""What the project promises: supported versions, names that go, weaknesses, and what a report has to say."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
import yaml

from release.licences import normal
from release.locks import pinned
from tests.cdk_cli import ROOT
from tests.pyodide import OF_LAMBDA, VERSIONS

PARTS = (".", "lambda_src", "lab_src", "local_src")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def _project(part: str) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / part / "pyproject.toml").read_text())["project"]
    return project


def _asked(part: str, package: str) -> str:
    """What a distribution asks for of a package, such as `>=3,<4`."""
    (asked,) = (each for each in _project(part)["dependencies"] if re.split(r"[<>=]", each)[0] == package)
    return str(asked.removeprefix(package))


def _locked(lock: str, package: str) -> str:
    versions = {normal(name): version for name, version in pinned((ROOT / lock).read_text()).items()}
    return versions[package]


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _table() -> dict[str, tuple[str, str]]:
    section = (ROOT / "docs" / "install.md").read_text().split("## Versions\n")[1]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    return {of: (supported, tried) for of, supported, tried in rows[2:]}


def test_supported_versions_are_those_that_the_packages_ask_for_and_the_locks_have() -> None:
    dev, local = "requirements-dev.txt", "requirements-local.txt"
    package = json.loads((ROOT / "package.json").read_text())
    for part in PARTS:
        assert _project(part)["requires-python"] == ">=3.11"
    cdk = _asked(".", "aws-cdk-lib").removeprefix(">=").removesuffix(",<3")
    assert (_asked(".", "constructs"), _asked(".", "aws-lambda-powertools")) == (">=10.8,<11", ">=3,<4")
    assert _asked("lambda_src", "boto3") == ">=1.40"
    assert package["engines"]["node"] == ">=22"
    server = _asked("local_src", "ministack").removeprefix("==")
    others = f"{', '.join(VERSIONS[:-1])} and {VERSIONS[-1]}"
    older, newer = (_minor(_locked(lock, "boto3")) for lock in (local, dev))
    assert _table() == {
        "Python": ("3.11 or newer", f"3.11; the handlers in {others}, and the core in {OF_LAMBDA}"),
        "Node": ("22 or newer (20 works)", "20 and 22"),
        "aws-cdk-lib": (f"{cdk} or newer, below 3", f"{_locked(dev, 'aws-cdk-lib')}, and the newest of version 2"),
        "constructs": ("10.8 or newer, below 11", _minor(_locked(dev, "constructs"))),
        "Powertools for AWS Lambda": ("3 or newer, below 4", _minor(_locked(dev, "aws-lambda-powertools"))),
        "boto3 and botocore, of jobs and commands": ("boto3 1.40 or newer", f"{older} and {newer}"),
        "botocore, of the local cloud's server": (
            f"what MiniStack {server} asks for",
            _minor(_locked(local, "botocore")),
        ),
        "the CDK CLI": ("what goes with aws-cdk-lib", package["devDependencies"]["aws-cdk"]),
    }


def test_versions_of_node_are_those_that_a_workflow_runs() -> None:
    nightly = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())
    tried = nightly["jobs"]["node"]["strategy"]["matrix"]["node"]
    assert " and ".join(tried) == _table()["Node"][1]


def test_alpha_packages_promise_nothing_but_what_the_page_says() -> None:
    page = " ".join((ROOT / "docs" / "upgrade.md").read_text().split())
    for part in PARTS:
        project = _project(part)
        assert "Development Status :: 3 - Alpha" in project["classifiers"]
        assert project["version"].startswith("0.")
    assert "The packages are alpha, and promise nothing else." in page
    # nothing is announced, so nothing warns
    assert "At present no name is to go" in page
    packages = ("constructs_pkg", "lambda_src", "lab_src", "local_src")
    warning = [path for part in packages for path in (ROOT / part).rglob("*.py") if "DeprecationW" in path.read_text()]
    assert [path.name for path in warning] == []


def test_weakness_is_reported_by_the_code_hosts_own_way() -> None:
    address = f"{_project('.')['urls']['Homepage']}/security/advisories/new"
    policy = (ROOT / "SECURITY.md").read_text()
    assert f"]({address})" in policy
    # an address that nobody reads is worse than none
    assert "@" not in policy
    links = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text())["contact_links"]
    assert links[0]["url"] == address


def test_threat_model_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)`", page)
    assert len(set(named)) > 15
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_form_of_an_issue_asks_for_what_is_needed(path: Any) -> None:
    form = yaml.safe_load(path.read_text())
    fields = {each["id"]: each for each in form["body"]}
    asked = {name for name, each in fields.items() if each.get("validations", {}).get("required")}
    assert {"version", "traffic"} <= fields.keys()
    assert "version" in asked
    assert all(each["attributes"]["label"] and each["attributes"]["description"] for each in fields.values())
    if path.stem == "wrong":
        assert "template" in asked
        assert "`highwater doctor --json`" in fields["doctor"]["attributes"]["description"]


def test_notice_is_in_every_package() -> None:
    for part in PARTS:
        assert (ROOT / part / "NOTICE").read_text() == (ROOT / "NOTICE").read_text()
        assert _project(part)["license-files"] == ["LICENSE", "NOTICE"]
