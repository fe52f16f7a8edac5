"""Clients that are not boto3: the SDK for JavaScript and the AWS CLI see tables throttle and metrics appear."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.local import LocalCloud
from tests.cdk_cli import ROOT
from tests.local.world import MINUTE, World

pytestmark = pytest.mark.xdist_group("other clients")
# A command line of its own botocore: it cannot be in the environment that MiniStack is in
AWSCLI = "awscli==1.46.3"


def _table(world: World, write: int) -> str:
    return world.table(5, write)


def test_javascript_sdk_sees_the_exception_and_its_reasons(cloud: LocalCloud, world: World) -> None:
    table = _table(world, 1)
    script = ROOT / "tests" / "local" / "client.mjs"
    done = subprocess.run(
        ["node", str(script), cloud.endpoint, table, "3"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # a bucket of 300 and items of two units
    assert 150 <= told["sent"] <= 160
    assert told["capacity"] == {"TableName": table, "CapacityUnits": 2, "Table": {"CapacityUnits": 2}}
    assert (told["name"], told["isThroughputExceeded"]) == ("ProvisionedThroughputExceededException", True)
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}"
    assert told["reasons"] == [{"reason": "TableWriteProvisionedThroughputExceeded", "resource": arn}]
    assert told["attempts"] == 3, "its retries took it for a throttle"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The AWS CLI in an environment of its own."""
    folder = tmp_path_factory.mktemp("awscli")
    # pip of this environment installs into the new one, which takes none of its own
    venv.create(folder, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-compile", AWSCLI], check=True, capture_output=True)
    return folder / "bin" / "aws"


def test_aws_cli_writes_registers_and_reads_metrics(aws: Path, cloud: LocalCloud, world: World, tmp_path: Path) -> None:
    table = _table(world, 11)

    def run(*words: str) -> Any:
        done = subprocess.run(
            [str(aws), *words, "--output", "json"],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **cloud.environment()},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    item = json.dumps({"id": {"S": "p"}, "fill": {"S": "x" * 2_500}})
    put = run("dynamodb", "put-item", "--table-name", table, "--item", item, "--return-consumed-capacity", "TOTAL")
    assert put["ConsumedCapacity"] == {"TableName": table, "CapacityUnits": 3.0}
    target = ["--service-namespace", "dynamodb", "--resource-id", f"table/{table}"]
    dimension = ["--scalable-dimension", "dynamodb:table:WriteCapacityUnits"]
    bounds = ["--min-capacity", "13", "--max-capacity", "900"]
    run("application-autoscaling", "register-scalable-target", *target, *dimension, *bounds)
    described = run("dynamodb", "describe-table", "--table-name", table)["Table"]
    assert described["ProvisionedThroughput"]["WriteCapacityUnits"] == 13
    cloud.advance(5 * MINUTE)
    now = cloud.status().now
    query = [
        {
            "Id": "consumed",
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/DynamoDB",
                    "MetricName": "ConsumedWriteCapacityUnits",
                    "Dimensions": [{"Name": "TableName", "Value": table}],
                },
                "Period": 60,
                "Stat": "Sum",
            },
        }
    ]
    span = ["--start-time", (now - timedelta(hours=1)).isoformat(), "--end-time", now.isoformat()]
    answer = run("cloudwatch", "get-metric-data", "--metric-data-queries", json.dumps(query), *span)
    assert sum(answer["MetricDataResults"][0]["Values"]) == 3
