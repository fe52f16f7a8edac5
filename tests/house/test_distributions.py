"""The wheels, installed into an empty virtual environment outside the repository."""

from __future__ import annotations

import email
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.cdk_cli import ROOT
from tests.pyodide import VERSIONS

pytestmark = pytest.mark.xdist_group("distributions")

REPOSITORY = "https://github.com/cdk-highwater/highwater"
PARTS = {".": "cdk_highwater", "lambda_src": "highwater", "lab_src": "highwater_lab", "local_src": "highwater_local"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dist")
    built = {}
    for part, package in PARTS.items():
        target = folder / package
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(ROOT / part)],
            check=True,
            capture_output=True,
        )
        built[package] = next(target.glob("*.whl"))
    return built


@pytest.mark.parametrize(("part", "package"), PARTS.items())
def test_wheel_holds_its_package_whole_and_nothing_else(wheels: dict[str, Path], part: str, package: str) -> None:
    source = ROOT / ("constructs_pkg" if part == "." else part)
    wanted = {
        str(path.relative_to(source))
        for path in (source / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(wheels[package]).namelist())
    assert {name for name in names if ".dist-info/" not in name} == wanted


def test_wheels_pass_the_index_check(wheels: dict[str, Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *(str(wheel) for wheel in wheels.values())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 4


@pytest.mark.parametrize("package", PARTS.values())
def test_metadata_leads_a_stranger_to_everything(wheels: dict[str, Path], package: str) -> None:
    with zipfile.ZipFile(wheels[package]) as wheel:
        names = wheel.namelist()
        metadata = email.message_from_bytes(wheel.read(next(name for name in names if name.endswith("/METADATA"))))
        for file in ("LICENSE", "NOTICE"):
            (text,) = (wheel.read(name).decode() for name in names if name.endswith(f"/licenses/{file}"))
            assert text == (ROOT / file).read_text()
    assert metadata["Author"] == "The Highwater contributors"
    assert metadata["License-Expression"] == "Apache-2.0"
    urls = metadata.get_all("Project-URL") or []
    assert [url.split(", ")[0] for url in urls] == [
        *("Homepage", "Documentation", "Changelog", "Issues", "Source", "Security")
    ]
    links = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload())) + [url.split(", ")[1] for url in urls]
    assert len(links) > 5
    for link in links:
        assert link.startswith("https://"), link
        path = re.fullmatch(rf"{REPOSITORY}/(?:blob|tree)/main/([^#]+)(?:#.*)?", link)
        assert path is None or (ROOT / path[1]).exists(), link


@pytest.mark.parametrize("part", PARTS)
def test_classifiers_name_the_versions_of_python_that_tests_run_in(part: str) -> None:
    """Of all packages the oldest that is allowed, of the functions' the others that have tests, too."""
    project = tomllib.loads((ROOT / part / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert versions == ["3.11", *(VERSIONS if part == "lambda_src" else ())]


def test_version_of_the_cdk_is_the_same_everywhere() -> None:
    """What is stated as the oldest that works is what all tests run with, but for the wheels' own below."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"][0]
    oldest = re.fullmatch(r"aws-cdk-lib>=([\d.]+),<3", stated)
    assert oldest is not None
    assert importlib.metadata.version("aws-cdk-lib") == oldest[1]
    assert (ROOT / "docs" / "install.md").read_text().count(f"aws-cdk-lib {oldest[1]}") == 2


def _run(folder: Path, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder outside the repository, with nothing that leads to this one's packages."""
    own = ("AWS_", "PYTHON", "VIRTUAL_ENV")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return subprocess.run(command, cwd=folder, env=clean | variables, capture_output=True, text=True, check=False)


def _install(environment: Path, lock: str, *wheels: Path | str, newest: tuple[str, ...] = ()) -> Path:
    """Install wheels, and what they ask for in the versions of a lock file; the environment's Python.

    What has a name that begins with one of *newest* is installed in the newest version that is allowed.
    """
    # pip of this environment installs into the new one, which takes none of its own
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    constraints = environment / "constraints.txt"
    locked = (ROOT / lock).read_text()
    lines = re.findall(r"^([\w.-]+==\S+(?: ; .*?)?) \\$", locked, re.MULTILINE)
    constraints.write_text("\n".join(line for line in lines if not line.startswith(newest)))
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    install = [*pip, "install", "--quiet", "--no-compile", "--constraint", str(constraints), *map(str, wheels)]
    subprocess.run(install, check=True, capture_output=True)
    checked = subprocess.run([*pip, "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    return python


def _synthesized(python: Path | str, tmp_path: Path, out: Path) -> dict[str, Any]:
    """The template of an example, which is synthesized outside the repository."""
    app = tmp_path / "app.py"
    app.write_text((ROOT / "examples" / "bulk_load" / "app.py").read_text())
    variables = {"CDK_OUTDIR": str(out), "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"}
    done = _run(tmp_path, python, app, **variables)
    assert done.returncode == 0, done.stderr
    template: dict[str, Any] = json.loads((out / "BulkLoad.template.json").read_text())
    return template


@pytest.mark.cloud
def test_wheels_in_an_empty_environment_synthesize_an_example_with_the_newest_cdk(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    environment, out = tmp_path / "venv", tmp_path / "cdk.out"
    python = _install(
        environment, "requirements-dev.txt", *(wheels[each] for each in list(wheels)[:3]), newest=("aws-cdk",)
    )
    shown = 'import importlib.metadata; print(importlib.metadata.version("aws-cdk-lib"))'
    version = subprocess.run([str(python), "-c", shown], capture_output=True, text=True, check=True).stdout.strip()
    newest, oldest = ([*map(int, each.split("."))] for each in (version, importlib.metadata.version("aws-cdk-lib")))
    assert newest > oldest
    template = _synthesized(python, tmp_path, out)
    # all other tests say what the oldest makes
    assert template == _synthesized(sys.executable, tmp_path, tmp_path / "oldest.out")
    types = sorted(resource["Type"] for resource in template["Resources"].values())
    assert types.count("AWS::ApplicationAutoScaling::ScalableTarget") == 2
    assert "Custom::HighwaterFloors" in types
    asset = next(path for path in out.iterdir() if path.name.startswith("asset."))
    with zipfile.ZipFile(asset) as archive:
        assert "highwater/handlers/deploy/handler.py" in archive.namelist()

    said = _run(tmp_path, environment / "bin" / "highwater", "local", "status", HOME=str(tmp_path))
    assert (said.returncode, said.stderr) == (
        2,
        "highwater local: no local cloud is running; start one with: highwater local up\n",
    )


@pytest.mark.cloud
def test_application_is_tested_with_its_own_boto3_against_an_installed_server(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    """The page's test, with the newest boto3 beside `highwater-lab` and MiniStack's beside `highwater-local`."""
    runtime, lab, server = (wheels[name] for name in ("highwater", "highwater_lab", "highwater_local"))
    python = _install(tmp_path / "application", "requirements-dev.txt", runtime, lab)
    _install(tmp_path / "server", "requirements-local.txt", runtime, lab, server)
    page = (ROOT / "docs" / "test-your-application.md").read_text()
    code, _of_pytest = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    versions = "import boto3, highwater_lab; assert boto3.__version__ >= '1.44', boto3.__version__\n"
    command = tmp_path / "server" / "bin" / "highwater-local"
    done = _run(tmp_path, python, "-c", versions + code, HIGHWATER_LOCAL=str(command))
    assert done.returncode == 0, done.stderr
    without = _run(tmp_path, python, "-c", versions + code, PATH="/usr/bin:/bin")
    assert without.stderr.splitlines()[-1] == (
        "highwater_lab.local.control.CloudError: the local cloud is not installed; install "
        f"highwater-local 0.1.0 as {REPOSITORY}/blob/main/docs/install.md#the-local-cloud says"
    )


_ASYNCHRONOUS = """
import asyncio
import aioboto3
import highwater


def refused(call, *arguments, **more):
    try:
        call(*arguments, **more)
    except TypeError as error:
        print(error)


async def main():
    session = aioboto3.Session(aws_access_key_id="A", aws_secret_access_key="B", region_name="eu-central-1")
    async with session.client("dynamodb") as client:
        for given in (session, client):
            refused(highwater.pulse, given)
            refused(highwater.pace, given, write=5)
    refused(highwater.boost, "orders", write=5, minutes=5, session=session)


asyncio.run(main())
"""


@pytest.mark.cloud
def test_aioboto3_is_refused_by_the_library_itself(wheels: dict[str, Path], tmp_path: Path) -> None:
    """It asks for versions of boto3 of its own, which are older than the lock's."""
    python = _install(
        tmp_path / "aio", "requirements-dev.txt", wheels["highwater"], "aioboto3", newest=("boto", "s3transfer")
    )
    done = _run(tmp_path, python, "-c", _ASYNCHRONOUS)
    assert done.returncode == 0, done.stderr
    end = "allowed: a boto3.Session or a DynamoDB client of boto3; use boto3 for these requests"
    kinds = ("aioboto3.session.Session", "a client of dynamodb")
    assert done.stdout.splitlines() == [
        *(
            f"{call}: session_or_client: got {kind}, which is asynchronous, {end}"
            for kind in kinds
            for call in ("pulse", "pace")
        ),
        "boost: session: got aioboto3.session.Session, which is asynchronous, allowed: a boto3.Session; "
        "use boto3 for these requests",
    ]
