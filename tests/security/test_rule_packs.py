"""cdk-nag's packs and cfn-lint on every example: nothing found that docs/security.md does not answer."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3

from cdk_highwater import BoostCoordinator, TaggedTables, ThrottleAwareScaler
from tests.cdk_cli import ROOT
from tests.constructs.jobs import buffered_writes, paced_load, paced_scan
from tests.constructs.template_view import placed_stack, scalable_table

pytestmark = pytest.mark.cloud

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


@cache
def _app(example: str) -> cdk.App:
    """The app of an example, synthesized."""
    app: cdk.App = runpy.run_path(str(ROOT / "examples" / example / "app.py"))["app"]
    return app


@cache
def _rules_of_the_cdk() -> cdk.CloudFormationValidatePlugin:
    """The rules that apps of users have by default; making them takes seconds."""
    return cdk.CloudFormationValidatePlugin()


def _report(app: cdk.App) -> dict[str, Any]:
    """What the CDK's own rules for templates and five packs of cdk-nag find in an app."""
    packs = (
        cdk_nag.AwsSolutionsChecks,
        cdk_nag.NIST80053R5Checks,
        cdk_nag.HIPAASecurityChecks,
        cdk_nag.PCIDSS321Checks,
        cdk_nag.ServerlessChecks,
    )
    cdk.Validations.of(app).add_plugins(_rules_of_the_cdk(), *(pack(app) for pack in packs))
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
    report = _report(_app(example))
    ran = {plugin["pluginName"] for plugin in report["pluginReports"]}
    assert _violations(report) <= LEFT_TO_USERS
    assert _answered() >= LEFT_TO_USERS
    assert example == "existing_table" or {"NIST.800.53.R5", "HIPAA.Security"} <= ran, "the packs did run"


def _make_everything(app: cdk.App) -> None:
    """Stacks with what no example has: scalers and tables of several regions, coordinators, queues, scans and loads."""
    here, there = placed_stack(app, "Here", "us-east-1"), placed_stack(app, "There")
    scaler = ThrottleAwareScaler(here, "Scaler", tagged=TaggedTables(regions=["ap-south-1"]))
    for stack in (here, there):
        scaler.add_table(scalable_table(stack, table_name="jobs"))
    stack = placed_stack(app)
    job = iam.Role(stack, "Job", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
    alone = BoostCoordinator(stack, "Boosts")
    alone.add_table(scalable_table(stack, "Orders"))
    for coordinator in (alone, BoostCoordinator(stack, "Shared", scaler=ThrottleAwareScaler(stack, "Scaler"))):
        coordinator.grant_boost(job, max_write=7)
        coordinator.grant_boost_events("acme.loader", max_write=7)
    buffered_writes(stack).grant_send(job)
    buffered_writes(placed_stack(app, "Versions"), version_attribute="v")
    arn = "arn:aws:lambda:eu-west-1:111122223333:function:work"
    paced_scan(stack, function=lambda_.Function.from_function_arn(stack, "Work", arn)).grant_start(job)
    paced_load(stack, rejects=s3.Bucket.from_bucket_name(stack, "Rejects", "rejected"), prefix="nightly/")


def test_constructs_break_no_rule_that_is_not_answered(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path))
    _make_everything(app)
    assert _violations(_report(app)) <= LEFT_TO_USERS
    _check_by_cfn_lint(sorted(tmp_path.glob("*.template.json")))


def test_rejected_lines_in_a_bucket_of_the_app_break_no_rule_that_is_not_answered(tmp_path: Path) -> None:
    app = cdk.App(outdir=str(tmp_path))
    stack = placed_stack(app)
    paced_load(stack, bucket=s3.Bucket(stack, "Exports"))
    found = _violations(_report(app)) - LEFT_TO_USERS
    # the bucket's own are up to its owner
    assert not {rule for rule in found if "S3" not in rule and not rule.startswith("AwsSolutions-S")}


def test_rules_of_the_cdk_would_find_what_is_wrong(tmp_path: Path) -> None:
    """A plugin that finds nothing is not in the report."""
    app = cdk.App(outdir=str(tmp_path))
    cdk.CfnResource(placed_stack(app), "Topic", type="AWS::SNS::Topic", properties={"TopicNaem": "night"})
    assert cdk.CloudFormationValidatePlugin.PLUGIN_NAME in {
        plugin["pluginName"] for plugin in _report(app)["pluginReports"]
    }


def test_every_acknowledged_rule_stands_on_the_page() -> None:
    source = (ROOT / "constructs_pkg" / "cdk_highwater" / "support" / "nag.py").read_text()
    acknowledged = set(re.findall(r"::([\w.]+-\w+)", source))
    assert len(acknowledged) > 10
    assert acknowledged | LEFT_TO_USERS == _answered()


def test_examples_are_clean_for_cfn_lint() -> None:
    templates = [path for example in EXAMPLES for path in Path(_app(example).outdir).glob("*.template.json")]
    assert len(templates) >= len(EXAMPLES)
    _check_by_cfn_lint(templates)


def _check_by_cfn_lint(templates: list[Path]) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "cfn-lint"), "--non-zero-exit-code", "warning", *map(str, templates)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
