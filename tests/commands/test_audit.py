"""`highwater audit` of a strict local cloud with planted faults, by a role with the policy of its page alone."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import pty
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest

from highwater_lab.local import LocalCloud
from tests.audit.account import FAULTS, SOUND, create_table, plant, plant_deviations, put_alarm
from tests.cdk_cli import ROOT
from tests.command import Command, refused

pytestmark = pytest.mark.xdist_group("cloud-audit")
DAYS = 3
ACCOUNT = "000000000000"
PRICE = "12 tables, 3 days: 26 requests to CloudWatch for 52 metrics, less than 0.01 USD\n"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/auditor"


@pytest.fixture(scope="module")
def cloud() -> Iterator[LocalCloud]:
    """Tables with faults and without, three days old, and the role."""
    with LocalCloud(clock="driven", has_instant_updates=True, is_strict=True) as made:
        (policy,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "audit-in-detail.md").read_text(), re.DOTALL)
        iam = made.client("iam")
        caller = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}
        trust = {"Version": "2012-10-17", "Statement": [caller]}
        iam.create_role(RoleName="auditor", AssumeRolePolicyDocument=json.dumps(trust))
        iam.put_role_policy(RoleName="auditor", PolicyName="audit", PolicyDocument=policy)
        iam.close()
        dublin: Any = made.client_arguments() | {"region_name": "eu-west-1"}
        make: Any = boto3.client
        dynamodb, autoscaling = make("dynamodb", **dublin), make("application-autoscaling", **dublin)
        for name in ("by-hand", "paused", "switched"):
            create_table(dynamodb, name, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 6})
        plant(made, FAULTS | SOUND, DAYS)
        plant_deviations(made, "us-west-2")
        cloudwatch = make("cloudwatch", **(made.client_arguments() | {"region_name": "us-west-1"}))
        put_alarm(cloudwatch, "never")
        cloudwatch.close()
        dynamodb.update_table(
            TableName="by-hand", ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 8}
        )
        dynamodb.update_table(TableName="switched", BillingMode="PAY_PER_REQUEST")
        autoscaling.register_scalable_target(
            ServiceNamespace="dynamodb",
            ResourceId="table/paused",
            ScalableDimension="dynamodb:table:WriteCapacityUnits",
            MinCapacity=6,
            MaxCapacity=60,
            SuspendedState={"DynamicScalingInSuspended": True},
        )
        dynamodb.close()
        autoscaling.close()
        yield made


@pytest.fixture
def audit(cloud: LocalCloud, tmp_path: Path) -> Command:
    """The command as the role, in a second of the cloud's clock in which no datapoints were requested yet."""
    cloud.step(1)
    return Command(tmp_path, cloud.environment("auditor"))


def _findings(document: str) -> set[tuple[str, str]]:
    return {(table["table"], each["kind"]) for table in json.loads(document)["tables"] for each in table["findings"]}


def test_just_the_planted_faults_are_found(audit: Command, tmp_path: Path) -> None:
    files = ("--html", "audit.html", "--csv", "audit.csv")
    done = audit("audit", "--days", "3", "--yes", "--out", "kept", "--json", *files)
    assert (done.returncode, done.stderr) == (1, PRICE)
    wanted = {(name, table.kind) for name, table in FAULTS.items()}
    assert _findings(done.stdout) == wanted
    document = json.loads(done.stdout)
    assert (document["deviations"], document["deviations_usd"], document["unchecked"]) == ([], 0, [])
    (policy,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "audit-in-detail.md").read_text(), re.DOTALL)
    allowed = {action.partition(":")[2] for each in json.loads(policy)["Statement"] for action in _actions(each)}
    # needs no permission
    assert document["calls"].keys() - allowed == {"GetCallerIdentity"}
    calls = {each: document["calls"][each] for each in ("DescribeTable", "GetMetricData")}
    assert calls == {"DescribeTable": 12, "GetMetricData": 26}
    rows = list(csv.DictReader(io.StringIO((tmp_path / "audit.csv").read_text())))
    assert {(row["table"], row["kind"]) for row in rows} == wanted
    codes = {row["table"]: row["code"] for row in rows}
    assert "Window.weekly(" in codes["nightly"]
    assert "capacity=Capacity.on_demand()," in codes["bursty"]
    assert 'index_name="by_owner"' in codes["half-scaled"]
    assert codes["hot"] == ""
    before = {row["table"]: float(row["throttled_before"]) for row in rows}
    # 900 in each minute of half a day
    assert before["starved"] == pytest.approx(900 * 720 * 365 / 12, rel=0.01)
    (_, three_years) = document["commitments"]["offers"]
    (reserved,) = three_years["reserved"]
    assert (reserved["upfront_usd"], reserved["hour_usd"]) == pytest.approx(
        (reserved["units"] / 100 * 180, reserved["units"] / 100 * 0.0081)
    )
    assert document["commitments"]["list_month_usd"] < sum(table["cost_usd"] for table in document["tables"])
    page = (tmp_path / "audit.html").read_text()
    assert "<pre>Commitments for these tables after their best change, " in page
    assert all(f"<td>{ACCOUNT}/us-east-1/{name}</td>" in page for name in FAULTS)
    assert "<script" not in page


def _actions(statement: dict[str, Any]) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else action


def test_what_tables_left_and_what_drifted_is_found_with_its_command(cloud: LocalCloud, audit: Command) -> None:
    mine = replace(audit, variables=cloud.environment())
    where = ("--role", ROLE, "--region", "us-west-2", "--region", "us-west-1", "--days", "2")
    done = mine("audit", *where)
    west = f"{ACCOUNT}/us-west-2"
    of_writes = "--region us-west-2 --service-namespace dynamodb --resource-id table/{} --scalable-dimension {}"
    gone, kept = (of_writes.format(name, "dynamodb:table:WriteCapacityUnits") for name in ("gone", "kept"))
    register = f"aws application-autoscaling register-scalable-target {kept} --min-capacity 50 --max-capacity 50"
    lines = [re.sub(r"http://localhost:\d+", "URL", line) for line in done.stdout.splitlines()]
    # what costs nothing is in the order of its check: first the leftovers of each region
    assert lines == [
        # ten units above the ceiling of 50 cost 10 * 0.00065 * 730
        f"{west}: drift: target table/kept write has a floor of 60, declared for now: 50, 4.75 USD a month; fix: "
        f"{register}",
        f"{west}: leftover: target table/gone write is registered, and the table is gone; it has 4 alarms, 0.40 USD a "
        f"month; fix: aws application-autoscaling deregister-scalable-target {gone}",
        f"{west}: leftover: alarm 'Highwater gone write' watches a table that is gone, 0.10 USD a month; fix: aws "
        "cloudwatch delete-alarms --region us-west-2 --alarm-names 'Highwater gone write'",
        f"{ACCOUNT}/us-west-1: leftover: alarm 'Highwater never write' watches a table that is gone, 0.10 USD a month; "
        "fix: aws cloudwatch delete-alarms --region us-west-1 --alarm-names 'Highwater never write'",
        f"{west}: leftover: parameter /highwater/plans/Shop/gone is the plan of table gone, which is gone; the scaler "
        "looks for it in every run; fix: aws ssm delete-parameter --region us-west-2 --name /highwater/plans/Shop/gone",
        f"{west}: leftover: queue gone-writes buffers for table gone, which is gone; fix: aws sqs delete-queue "
        f"--region us-west-2 --queue-url URL/{ACCOUNT}/gone-writes",
        f"{west}: drift: target table/kept write has a ceiling of 64, declared for now: 50; fix: {register}",
        f"{west}/kept: not judged: was created at 2026-01-08 00:10 UTC; ask for fewer days",
        # 4.745 + 0.40 + 2 * 0.10
        "0 tables judged, 0 findings, 0.00 USD a month to be saved; 5 leftovers and 2 drifts, 5.34 USD a month",
    ]
    assert done.returncode == 1


def test_what_was_left_is_in_every_form(audit: Command, tmp_path: Path) -> None:
    done = audit("audit", "--region", "us-west-1", "--csv", "audit.csv", "--html", "audit.html", "--json")
    assert (done.returncode, json.loads(done.stdout)["deviations_usd"]) == (1, 0.1)
    delete = "aws cloudwatch delete-alarms --region us-west-1 --alarm-names 'Highwater never write'"
    assert json.loads(done.stdout)["deviations"] == [
        {
            "account": ACCOUNT,
            "region": "us-west-1",
            "kind": "leftover",
            "subject": "alarm 'Highwater never write'",
            "problem": "watches a table that is gone",
            "command": delete,
            "usd_month": 0.1,
            "can_throttle": False,
        }
    ]
    (row,) = csv.DictReader(io.StringIO((tmp_path / "audit.csv").read_text()))
    assert (row["region"], row["table"], row["kind"], row["gain_usd"], row["code"]) == (
        "us-west-1",
        "",
        "leftover",
        "0.1",
        delete,
    )
    page = (tmp_path / "audit.html").read_text()
    assert f"<pre>{delete}</pre>" in html.unescape(page)


def test_audit_goes_on_where_it_was(audit: Command, tmp_path: Path) -> None:
    first = audit("audit", "--days", "3", "--yes", "--out", "kept", "--json")
    place = tmp_path / "kept" / ACCOUNT / "us-east-1"
    # as an interruption leaves it: one table was fetched only, of another there is nothing
    fetched = json.loads((place / "nightly.json").read_text())
    del fetched["judgement"]
    (place / "nightly.json").write_text(json.dumps(fetched))
    (place / "half-scaled.json").unlink()
    done = audit("audit", "--days", "3", "--yes", "--out", "kept", "--json")
    assert done.stderr == (
        "12 tables, 3 days: 4 requests to CloudWatch for 8 metrics, less than 0.01 USD; 10 kept from before\n"
    )
    again, before = json.loads(done.stdout), json.loads(first.stdout)
    assert (again["tables"], again["until"]) == (before["tables"], before["until"])
    assert again["commitments"] == before["commitments"]
    assert again["calls"]["GetMetricData"] == 4
    done = audit("audit", "--days", "3", "--least-gain", "25", "--yes", "--out", "kept")
    assert done.stderr == (
        "highwater audit: kept: has an audit with least gain 20.0, not 25.0; give another folder with --out, or the "
        "same options\n"
    )
    assert (done.returncode, done.stdout) == (2, "")
    (place / "hot.json").write_text("[]")
    done = audit("audit", "--days", "3", "--yes", "--out", "kept")
    message = f"kept/{ACCOUNT}/us-east-1/hot.json: is not of an audit; give another folder with --out"
    assert (done.returncode, done.stderr) == (2, f"highwater audit: {message}\n")


def test_every_region_is_read_by_a_role_that_is_assumed(cloud: LocalCloud, audit: Command) -> None:
    mine = replace(audit, variables=cloud.environment())
    done = mine("audit", "--role", ROLE, "--all-regions", "--days", "3", "--price-only")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", PRICE.replace("12", "16", 1))


def test_tables_whose_settings_changed_are_not_judged(audit: Command) -> None:
    done = audit("audit", "--region", "eu-west-1", "--days", "2")
    assert done.stderr == "3 tables, 2 days: 0 requests to CloudWatch for 0 metrics, less than 0.01 USD\n"
    place, at = f"{ACCOUNT}/eu-west-1", "2026-01-08 00:10 UTC"
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            f"{place}/by-hand: not judged: has capacity that something other than auto scaling changed at {at}, so "
            "what it cost is not known",
            f"{place}/paused: not judged: has suspended scaling (table/paused write); highwater resume, or judge it "
            "later",
            f"{place}/switched: not judged: is on demand since {at} only; ask for fewer days",
            "0 tables judged, 0 findings, 0.00 USD a month to be saved",
        ],
    )


def test_price_is_told_and_nothing_is_read_without_a_yes(audit: Command) -> None:
    done = audit("audit", "--days", "3", "--price-only")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", PRICE)
    done = audit("audit", "--days", "3")
    nobody = "CloudWatch charges for this, and nobody is at the terminal to be asked; add --yes or --price-only"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{PRICE}highwater audit: {nobody}\n")


def test_terminal_is_asked(audit: Command) -> None:
    ours, theirs = pty.openpty()
    with audit.start("audit", "--days", "3", stdin=theirs) as started:
        os.write(ours, b"n\n")
        out, err = started.communicate()
    os.close(ours)
    os.close(theirs)
    said = "Go on? [y/N]: highwater audit: not confirmed; nothing was read from CloudWatch\n"
    assert (started.returncode, out, err) == (2, "", PRICE + said)


def test_young_tables_are_not_judged(audit: Command) -> None:
    done = audit("audit", "--days", "4", "--yes")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0] == (
        f"{ACCOUNT}/us-east-1/bursty: not judged: was created at 2026-01-05 00:00 UTC; ask for fewer days"
    )
    assert lines[-1] == "0 tables judged, 0 findings, 0.00 USD a month to be saved"


def test_lines_of_the_terminal_have_dollars_and_throttles_and_point_to_compute_optimizer(audit: Command) -> None:
    done = audit("audit", "--days", "2", "--yes")
    *lines, idle, cost, total = done.stdout.splitlines()
    # what is planted has no items
    assert re.fullmatch(
        r"cost now: ([\d,]+) USD a month: capacity of 12 tables \1; not simulated: storage 0\.00 \(0\.0 GB\), "
        r"point-in-time recovery 0\.00 \(0\.0 GB\), on-demand backups 0\.00 \(0\.0 GB\)",
        cost,
    )
    findings, commitments = lines[: len(FAULTS)], lines[len(FAULTS) :]
    assert all(line.startswith(f"{ACCOUNT}/us-east-1/") for line in findings)
    # 1,500 / 100 * 150 USD, and 0.0128 an hour for each hundred
    assert commitments[:5] == [
        "Commitments for these tables after their best change, 809 USD a month at list",
        "prices, if every hour of a term is like one of these 47 (2.0 days):",
        "reserved for one year:",
        "  1,500 write units in us-east-1: 2,250 USD once, 0.1920 an hour",
        "    saves 348 USD a month; saves 169 if usage falls by a third",
    ]
    assert all(len(line) <= 80 for line in commitments)
    assert idle == (
        "2 tables had no requests in 2 days: AWS Compute Optimizer names idle tables, if it is enabled; its "
        "recommendations were not read"
    )
    assert re.fullmatch(r"12 tables judged, 8 findings, [\d,]+ USD a month to be saved", total)
    (line,) = [line for line in findings if "idle-but-paid" in line]
    assert line == (
        f"{ACCOUNT}/us-east-1/idle-but-paid: mode: it is provisioned, and nothing was requested; on-demand costs "
        "nothing; saves 380 USD a month, throttled 0 -> 0 a month"
    )


def test_compute_optimizer_is_quoted(audit: Command) -> None:
    class Optimizer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            arn = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/idle-but-paid"
            savings = {"estimatedMonthlySavings": {"currency": "USD", "value": 379.5}}
            answer = json.dumps({"idleRecommendations": [{"resourceArn": arn, "savingsOpportunity": savings}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Optimizer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        done = audit("audit", "--days", "1", "--yes", AWS_ENDPOINT_URL_COMPUTE_OPTIMIZER=endpoint)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-3] == (
        "2 tables had no requests in 1 days: AWS Compute Optimizer names 1 of them idle, with savings of 380 USD"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--region", "eu-west-1", "--all-regions"), "give --region or --all-regions, not both"),
        (("--timezone", "Berlin"), "--timezone: unknown timezone 'Berlin'; use an IANA name such as 'Europe/Berlin'"),
        ((), "no region is set; give --region, or set AWS_REGION"),
        (("--html", "a", "--csv", "a"), "--csv and --html are the same file, a; give another file"),
    ],
)
def test_command_line_that_cannot_be_is_told(command: Command, arguments: tuple[str, ...], message: str) -> None:
    assert refused(command("audit", *arguments)) == f"highwater audit: {message}"


def test_region_that_refuses_is_told(cloud: LocalCloud, audit: Command) -> None:
    iam = cloud.client("iam")
    iam.create_role(RoleName="nobody", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []}))
    iam.close()
    nobody = replace(audit, variables=cloud.environment("nobody"))
    message = refused(nobody("audit", "--price-only", "--days", "3"))
    assert message.startswith("highwater audit: us-east-1: An error occurred (AccessDeniedException) when calling the")
