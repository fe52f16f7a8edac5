"""cdk-nag's packs and cfn-lint on every example: nothing found that docs/security.md does not answer."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_iam as iam

from cdk_highwater import BoostCoordinator, Capacity, HighWaterTable, TaggedTables, ThrottleAwareScaler
from tests.cdk_cli import ROOT
from tests.constructs.template_view import key

EXAMPLES = sorted(path.parent.name for path in ROOT.glob("examples/*/app.py"))
# left to users and therefore not acknowledged by the library
LEFT_TO_USERS = {
    "NIST.800.53.R5-CloudWatchAlarmAction",
    "HIPAA.Security-CloudWatchAlarmAction",
    "NIST.800.53.R5-DynamoDBInBackupPlan",
    "HIPAA.Security-DynamoDBInBackupPlan",
}


def _answered() -> set[str]:
    """The rules that the page's cdk-nag table answers."""
    page = (ROOT / "docs" / "security.md").read_text().split("## cdk-nag")[1]
    return set(re.findall(r"`([\w.]+-[\w]+)`", page))


def _synthesized(example: str) -> tuple[cdk.App, dict[str, Any]]:
    app: cdk.App = runpy.run_path(str(ROOT / "examples" / example / "app.py"))["app"]
    return app, _report(app)


def _report(app: cdk.App) -> dict[str, Any]:
    packs = (
        cdk_nag.AwsSolutionsChecks,
        cdk_nag.NIST80053R5Checks,
        cdk_nag.HIPAASecurityChecks,
        cdk_nag.PCIDSS321Checks,
        cdk_nag.ServerlessChecks,
    )
    cdk.Validations.of(app).add_plugins(*(pack(app) for pack in packs))
    try:
        app.synth(force=True)
    except RuntimeError as refused:
        assert str(refused).startswith("ValidationFailed")  # noqa: PT017 - the report says what of it matters
    report: dict[str, Any] = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    return report


def _violations(report: dict[str, Any]) -> set[str]:
    return {
        violation["ruleName"].split("[")[0]
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        if "highwater:" not in violation["ruleName"]
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_breaks_no_rule_that_is_not_answered(example: str) -> None:
    _, report = _synthesized(example)
    ran = {plugin["pluginName"] for plugin in report["pluginReports"]}
    assert _violations(report) <= LEFT_TO_USERS
    assert _answered() >= LEFT_TO_USERS
    assert example == "existing_table" or {"NIST.800.53.R5", "HIPAA.Security"} <= ran, "the packs did run"


def test_scaler_of_several_regions_in_a_stack_of_a_given_one_breaks_no_rule_that_is_not_answered(
    tmp_path: Path,
) -> None:
    app = cdk.App(outdir=str(tmp_path))
    here, there = (
        cdk.Stack(app, name, env=cdk.Environment(account="111122223333", region=region))
        for name, region in (("Here", "us-east-1"), ("There", "eu-west-1"))
    )
    scaler = ThrottleAwareScaler(here, "Scaler", tagged=TaggedTables(regions=["ap-south-1"]))
    units = Capacity.autoscaled(min_capacity=3, max_capacity=30)
    for stack in (here, there):
        scaler.add_table(HighWaterTable(stack, "Jobs", table_name="jobs", partition_key=key(), read=units, write=units))
    assert _violations(_report(app)) <= LEFT_TO_USERS


def test_coordinators_alone_and_with_a_scaler_break_no_rule_that_is_not_answered(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path))
    stack = cdk.Stack(app, "Here", env=cdk.Environment(account="111122223333", region="us-east-1"))
    units = Capacity.autoscaled(min_capacity=3, max_capacity=30)
    job = iam.Role(stack, "Job", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
    alone = BoostCoordinator(stack, "Alone")
    alone.add_table(HighWaterTable(stack, "Jobs", partition_key=key(), read=units, write=units))
    for coordinator in (alone, BoostCoordinator(stack, "Shared", scaler=ThrottleAwareScaler(stack, "Scaler"))):
        coordinator.grant_boost(job, max_write=7)
        coordinator.grant_boost_events("acme.loader", max_write=7)
    assert _violations(_report(app)) <= LEFT_TO_USERS


def test_every_acknowledged_rule_stands_on_the_page() -> None:
    source = (ROOT / "constructs_pkg" / "cdk_highwater" / "rule_packs.py").read_text()
    acknowledged = set(re.findall(r"::([\w.]+-\w+)", source))
    assert len(acknowledged) > 10
    assert acknowledged | LEFT_TO_USERS == _answered()


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_clean_for_cfn_lint(example: str, tmp_path: Path) -> None:
    app: cdk.App = runpy.run_path(str(ROOT / "examples" / example / "app.py"))["app"]
    templates = [str(path) for path in Path(app.outdir).glob("*.template.json")]
    done = subprocess.run(
        [str(Path(sys.executable).parent / "cfn-lint"), "--non-zero-exit-code", "warning", *templates],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
