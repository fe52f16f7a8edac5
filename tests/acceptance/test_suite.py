"""The acceptance suite as a program: what it refuses, what it runs, what it deletes.

An account is a profile whose endpoint is the local cloud, so that everything but AWS itself is as in an account.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from acceptance.cleanup import find_leftovers
from acceptance.place import LocalPlace, open_account
from acceptance.run import Run
from acceptance.stage import Part, Stage
from acceptance.tables import read_units
from highwater_lab.local import LocalCloud
from highwater_lab.local.control import ACCOUNT
from tests.cdk_cli import ROOT, CdkCli

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("acceptance")]
PREFIX = "HwAccept"


@dataclass(frozen=True)
class Suite:
    """Runs the suite in a folder of its own, with profiles for the cloud."""

    cloud: LocalCloud
    folder: Path

    def environment(self) -> dict[str, str]:
        elsewhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_PROFILE": "production"}
        files = {"AWS_CONFIG_FILE": str(self.folder / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "no")}
        return os.environ | elsewhere | files | {"COLUMNS": "160"}

    @property
    def build(self) -> Path:
        return self.folder / "build"

    def start(self, *arguments: str, answer: str = "") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "acceptance", "--build", str(self.build), *arguments],
            cwd=ROOT,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(f"{answer}\n")
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, *arguments: str, answer: str = "") -> tuple[int, str]:
        with self.start(*arguments, answer=answer) as process:
            output, _ = process.communicate(timeout=400)
        return process.returncode, output

    def in_account(self, *arguments: str) -> tuple[str, ...]:
        return ("--profile", "trial", "--account", ACCOUNT, *arguments)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    folder = tmp_path_factory.mktemp("acceptance")
    with LocalCloud(log=folder / "server.log", speed=20, is_strict=True) as cloud:
        yield cloud


@pytest.fixture
def suite(cloud: LocalCloud, tmp_path: Path) -> Suite:
    # by number: to a name the CDK CLI would add the bucket's
    keys = (
        f"endpoint_url = http://127.0.0.1:{cloud.port}\naws_access_key_id = {ACCOUNT}\naws_secret_access_key = local\n"
    )
    (tmp_path / "config").write_text(f"[profile trial]\nregion = us-east-1\n{keys}[profile nowhere]\n{keys}")
    return Suite(cloud, tmp_path)


@pytest.fixture(scope="module")
def _bootstrapped(cloud: LocalCloud, tmp_path_factory: pytest.TempPathFactory) -> None:
    CdkCli(cloud, tmp_path_factory.mktemp("cdk")).run("bootstrap", f"aws://{ACCOUNT}/us-east-1")


def _wait_for(what: Callable[[], bool]) -> None:
    while not what():
        os.sched_yield()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--profile", "trial", "--account", "123456789012"),
            f"profile 'trial' is of account {ACCOUNT}, and ACCOUNT is 123456789012; nothing was done: correct one",
        ),
        (
            ("--profile", "trial", "--account", "orders"),
            f"profile 'trial' is of account {ACCOUNT}, and ACCOUNT is orders; nothing was done: correct one",
        ),
        (
            ("--profile", "nobody", "--account", ACCOUNT),
            "profile 'nobody' cannot be used: The config profile (nobody) could not be found; nothing was done",
        ),
        (
            ("--profile", "nowhere", "--account", ACCOUNT),
            "profile 'nowhere' has no region; add REGION=..., such as REGION=us-east-1",
        ),
    ],
    ids=["another-account", "no-number", "no-profile", "no-region"],
)
def test_suite_is_aimed_at_nothing_but_the_account_that_was_named(
    suite: Suite, arguments: tuple[str, ...], message: str
) -> None:
    assert suite.run(*arguments) == (2, f"acceptance: {message}\n")
    assert not suite.build.exists()


@pytest.mark.parametrize("arguments", [("--profile", "trial"), ("--account", ACCOUNT)], ids=["profile", "account"])
def test_profile_and_account_belong_together(suite: Suite, arguments: tuple[str, ...]) -> None:
    status, output = suite.run(*arguments)
    assert status == 2
    assert output.endswith("Error: PROFILE and ACCOUNT belong together: give both for an account, or neither\n")


@pytest.mark.usefixtures("_bootstrapped")
def test_nothing_begins_without_a_confirmation_or_above_the_limit(suite: Suite) -> None:
    status, output = suite.run(*suite.in_account("--parts", "raises"), answer="yes")
    assert status == 2
    assert output.endswith("acceptance: not confirmed; nothing was done\n")
    assert f"This deploys to account {ACCOUNT}, us-east-1, sends traffic, deletes everything at its end" in output
    status, output = suite.run(*suite.in_account("--parts", "raises", "--most-usd", "0.2"), answer=ACCOUNT)
    assert status == 2
    # 91 units in two clock hours, and 25 cents for what is not listed
    assert output.endswith(
        "acceptance: the run can cost 0.37 USD, more than the limit of 0.20; choose fewer PARTS, or raise MOST_USD\n"
    )
    assert find_leftovers(LocalPlace(suite.cloud), PREFIX) == []


@pytest.mark.usefixtures("_bootstrapped")
def test_run_in_an_account_leaves_nothing_but_a_report_that_does_not_name_it(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_a_minimum(stage: Stage) -> None:
        (name,) = stage.deploy("Raises", {"units": "10"})
        stage.place.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="dynamodb",
            ResourceId=name.resource_id,
            ScalableDimension=name.scalable_dimension,
            MinCapacity=30,
            MaxCapacity=40,
        )
        took = stage.settle("capacity", 30, read_units, name, timedelta(minutes=5))
        stage.measure("raise_quiet_shown_seconds", took, assumed="35")

    for name, value in suite.environment().items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f" {ACCOUNT} \n"))
    output = io.StringIO()
    place = open_account("trial", ACCOUNT, "")
    part = Part(name="short", title="short", minutes=9, units=40, run=raise_a_minimum)
    console = Console(file=output, width=200)
    assert Run(place, [part], suite.build, console, profile="trial", most_usd=1).run() == 0, output.getvalue()
    assert "all 2 checks hold" in output.getvalue()
    report = (suite.build / "report.md").read_text()
    assert report.splitlines()[2].startswith("account ACCOUNT, us-east-1, ")
    assert "| short | `raise_quiet_shown_seconds` | " in report
    assert ACCOUNT not in report
    assert find_leftovers(LocalPlace(suite.cloud), PREFIX) == []
    assert suite.run("--clean")[1].startswith("no ledger of an unfinished run")


def test_part_runs_on_a_local_cloud_of_its_own(suite: Suite) -> None:
    status, output = suite.run("--parts", "raises")
    assert status == 0, output
    assert "all 4 checks hold" in output
    report = (suite.build / "report.md").read_text().splitlines()
    assert report[3] == "Parts: raises."
    # what the lab assumes, whatever this machine does meanwhile
    measured = [line for line in report if "_shown_seconds`" in line]
    assert measured == [f"| raises | `raise_{kind}_shown_seconds` | 2 | 2 |" for kind in ("quiet", "loaded")]


def test_cost_is_told_without_an_account(suite: Suite) -> None:
    status, output = suite.run("--cost", "--parts", "raises", "--region", "eu-west-1")
    assert status == 0
    assert output.startswith("At most, in eu-west-1")
    assert "Type the account's number" not in output
    assert not suite.build.exists()


@pytest.mark.usefixtures("_bootstrapped")
def test_run_that_is_interrupted_while_it_deploys_deletes_everything(suite: Suite) -> None:
    cloudformation = suite.cloud.client("cloudformation")

    def is_deploying() -> bool:
        stacks = cloudformation.describe_stacks()["Stacks"]
        return any(s["StackName"].startswith(PREFIX) and s["StackStatus"] == "CREATE_IN_PROGRESS" for s in stacks)

    with suite.start(*suite.in_account("--parts", "stack_order"), answer=ACCOUNT) as process:
        _wait_for(is_deploying)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 130, output
    assert "delete stack HwAccept" in output
    assert output.endswith("acceptance: interrupted\n")
    assert find_leftovers(LocalPlace(suite.cloud), PREFIX) == []
    said = f"no ledger of an unfinished run below {suite.build}; no account was looked at\n"
    assert suite.run("--clean") == (0, said)


@pytest.mark.usefixtures("_bootstrapped")
def test_run_that_is_killed_is_deleted_by_a_later_one(suite: Suite) -> None:
    place = LocalPlace(suite.cloud)
    with suite.start(*suite.in_account("--parts", "raises"), answer=ACCOUNT) as process:
        _wait_for(lambda: any(name.startswith("scalable target") for name in find_leftovers(place, PREFIX)))
        process.kill()
        process.communicate()
    kinds = [left.split("HwAccept")[0] for left in find_leftovers(place, PREFIX)]
    assert kinds == ["scalable target table/", "stack ", "table "]
    status, output = suite.run("--clean")
    assert status == 0, output
    prefix = next(suite.build.iterdir()).name
    assert output.splitlines() == [
        f"{prefix} in account {ACCOUNT}, us-east-1",
        f"delete stack {prefix}-Raises",
        "nothing is left of earlier runs",
    ]
    assert find_leftovers(place, PREFIX) == []
