"""The first day in a fresh account: each stop has its line from the doctor and at the deploy, and the doctor's fix."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from cdk_highwater import ThrottleAwareScaler
from highwater_lab.local import LocalCloud
from tests.cdk_cli import CdkCli
from tests.command import Command
from tests.deploys.apps import HERE, managed_table, scaled, synthesize
from tests.deploys.live import targets

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("cloud-first-day")]
REGION = "us-east-1"
PLACE = f"aws://000000000000/{REGION}"
VERSION = "/cdk-bootstrap/hnb659fds/version"
ROLE = "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
SERVICE = "dynamodb.application-autoscaling.amazonaws.com"
CHECKS = ("service-linked-role", "bootstrap", "concurrency")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[CdkCli]:
    """The CDK CLI for a fresh account."""
    with LocalCloud(
        log=tmp_path / "server.log",
        clock="driven",
        has_instant_updates=True,
        is_strict=True,
        is_fresh_account=True,
    ) as cloud:
        yield CdkCli(cloud, tmp_path)


def _shop(stack: cdk.Stack) -> None:
    """Two tables, and a scaler with as many runs as docs/operations.md reserves for it."""
    managed_table(stack, "Orders", "orders", write=scaled(34, 340))
    events = managed_table(stack, "Events", "events", write=scaled(7, 70))
    ThrottleAwareScaler(stack, "Scaler", reserved_concurrency=20).add_table(events)


def _examine(cli: CdkCli, app: Path) -> tuple[int, dict[str, str]]:
    """Run `highwater doctor`; return its exit status and, by check, its line after the name."""
    only = [argument for name in CHECKS for argument in ("--only", name)]
    done = Command(cli.folder, cli.cloud.environment())("doctor", str(app), *only)
    assert done.stderr == "", done.stderr
    lines = re.findall(r"(?m)^(\S+) +(\S+): (.*)$", done.stdout)
    assert tuple(name for _, name, _ in lines) == CHECKS
    return done.returncode, {name: f"{state} {text}" for state, name, text in lines}


def _carry_out(cli: CdkCli, line: str) -> None:
    """Do what a line of the doctor has as its fix: a command of the CDK CLI, or of the AWS CLI by boto3."""
    program, *arguments = shlex.split(line.partition("; fix: ")[2].rpartition(", or ")[2])
    if program == "cdk":
        cli.run(*arguments)
        return
    service, operation, *options = arguments
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert (program, given.pop("--region", REGION)) == ("aws", REGION)
    client = cli.cloud.client(service)
    method = operation.replace("-", "_")
    shape = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method]).input_shape
    asked = {
        name: float(given.pop(option)) if member.type_name == "double" else given.pop(option)
        for name, member in shape.members.items()
        if (option := f"--{xform_name(name, '-')}") in given
    }
    assert given == {}
    try:
        getattr(client, method)(**asked)
    finally:
        client.close()


def _stopped(cli: CdkCli, app: Path) -> str:
    """Deploy, which has to fail; return what the CDK CLI said, in one line."""
    done = cli.attempt_deploy(app)
    assert done.returncode == 1, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def test_each_stop_of_the_first_day_is_foretold_and_has_its_fix(fresh: CdkCli, tmp_path: Path) -> None:
    app = synthesize(tmp_path, "Shop", _shop, env=HERE)
    status, foretold = _examine(fresh, app)
    assert (status, foretold) == (
        1,
        {
            "service-linked-role": f"failure there is no role {ROLE}; the first target makes it, and others may fail "
            f"until it is in effect; fix: aws iam create-service-linked-role --aws-service-name {SERVICE}",
            "bootstrap": f"failure {PLACE} is not bootstrapped: there is no parameter {VERSION}; fix: cdk bootstrap "
            f"{PLACE}",
            "concurrency": "failure the app reserves 20 concurrent runs, and the account has 10 concurrent runs, 10 "
            "not reserved, of which 0 may be, so the deploy fails; fix: lower reserved_concurrency, or aws "
            f"service-quotas request-service-quota-increase --region {REGION} --service-code lambda "
            "--quota-code L-B99A9384 --desired-value 1000",
        },
    )

    assert (
        f"SSM parameter {VERSION} not found in {PLACE}. Has the environment been bootstrapped? Please run 'cdk "
        "bootstrap'"
    ) in _stopped(fresh, app)
    _carry_out(fresh, foretold["bootstrap"])

    assert (
        f"Unable to assume IAM role: arn:aws:iam::000000000000:role/aws-service-role/{SERVICE}/{ROLE} (Service: "
        "ApplicationAutoScaling, Status Code: 400, ValidationException)"
    ) in _stopped(fresh, app)
    # the deploy that failed has made the role, which its command says
    with pytest.raises(ClientError, match=re.escape(f"Service role name {ROLE} has been taken in this account")):
        _carry_out(fresh, foretold["service-linked-role"])
    fresh.cloud.step(20)

    assert (
        "(AWS::Lambda::Function ScalerFunctionB87D86ED) Specified ReservedConcurrentExecutions for function decreases "
        "account's UnreservedConcurrentExecution below its minimum value of [10]. (Service: Lambda, Status Code: 400, "
        "InvalidParameterValueException)"
    ) in _stopped(fresh, app)
    _carry_out(fresh, foretold["concurrency"])

    fresh.deploy(app)
    assert targets(fresh.cloud, "orders") == {"table read": (5, 50), "table write": (34, 340)}
    status, lines = _examine(fresh, app)
    assert status == 0
    assert re.fullmatch(rf"ok {PLACE} is bootstrapped, version \d+", lines.pop("bootstrap"))
    assert lines == {
        "service-linked-role": f"ok {ROLE} is there",
        "concurrency": "ok the account has 1,000 concurrent runs, 980 not reserved, of which 880 may be; the app "
        "reserves 20, and its jobs and queues take 0",
    }
