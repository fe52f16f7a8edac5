"""The plugin of pytest in sessions of its own, as a user's tests run, with real boto3 clients and real local clouds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cdk_cli import ROOT

pytestmark = pytest.mark.xdist_group("pytest plugin")
PAGE = "docs/test-your-application.md"
THROTTLED = """
import boto3
import pytest
from botocore.config import Config

KEYS = [{"AttributeName": "pk", "KeyType": "HASH"}]
ONCE = Config(retries={"total_max_attempts": 1})


def _table(local_tables, **more):
    capacity = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 2}
    return local_tables.create(KeySchema=KEYS, ProvisionedThroughput=capacity, **more)


def _throttle(name, times):
    dynamodb = boto3.client("dynamodb", config=ONCE)
    refused = 0
    for number in range(600 + times):
        try:
            dynamodb.put_item(TableName=name, Item={"pk": {"S": str(number)}})
        except dynamodb.exceptions.ProvisionedThroughputExceededException:
            refused += 1
    assert refused == times


def test_one_that_throttles_and_passes(local_tables):
    _throttle(_table(local_tables, TableName="orders"), 5)


def test_one_that_throttles_and_fails(local_tables):
    _throttle(_table(local_tables, TableName="orders"), 3)
    assert "this" == "fails"


def test_one_that_fails_alone(local_cloud):
    assert "nothing" == "throttled"


def test_the_tables_of_others_are_gone(local_cloud):
    assert boto3.client("dynamodb").list_tables()["TableNames"] == []


def test_cloud_that_is_asked_for_late_is_the_one_boto3_finds(request, monkeypatch):
    import os

    assert os.environ["AWS_PROFILE"] == "mine"
    cloud = request.getfixturevalue("local_cloud")
    assert "AWS_PROFILE" not in os.environ
    assert boto3.client("dynamodb").meta.endpoint_url == cloud.endpoint


def test_account_is_back_afterwards():
    import os

    assert os.environ["AWS_PROFILE"] == "mine"
    assert "AWS_ENDPOINT_URL" not in os.environ


def test_clock_is_driven(local_cloud):
    before = local_cloud.status().now
    assert (local_cloud.step(90).now - before).total_seconds() == 90


def test_table_with_an_index_and_a_name_of_its_own(local_cloud, local_tables):
    index = {
        "IndexName": "by-day",
        "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
        "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
    }
    names = {_table(local_tables), _table(local_tables, GlobalSecondaryIndexes=[index])}
    assert set(boto3.client("dynamodb").list_tables()["TableNames"]) == names
"""
OTHER_OPTIONS = """
import pytest


@pytest.fixture(scope="session")
def local_cloud_options():
    return {"clock": "driven", "is_express": True}
"""


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *arguments],
        cwd=folder,
        env=variables | {"AWS_PROFILE": "mine"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_tests_share_a_cloud_and_only_failures_tell_what_was_throttled(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(THROTTLED)
    done = _run(tmp_path)
    assert "2 failed, 6 passed" in done.stdout, done.stdout + done.stderr
    sections = re.findall(r"-+ throttled by the local cloud -+\n(.*)\n", done.stdout)
    assert sections == ["table orders: TableWriteProvisionedThroughputExceeded: 3 requests"]


def test_example_of_the_page_passes_on_each_worker(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(import boto3\n.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)
    for name in ("test_first.py", "test_second.py"):
        (tmp_path / name).write_text(example)
    done = _run(tmp_path, "-n", "2", "--dist", "loadfile")
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_options_that_do_not_fit_fail_the_test_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(OTHER_OPTIONS)
    (tmp_path / "test_orders.py").write_text("def test_orders(local_cloud):\n    pass\n")
    done = _run(tmp_path)
    said = "local_cloud: is_express: got True for a cloud that is not strict; add is_strict=True"
    assert said in done.stdout.splitlines(), done.stdout + done.stderr
    assert "1 error" in done.stdout


def test_session_without_such_tests_imports_nothing_of_the_lab(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n\n\ndef test_other():\n"
        "    lab = sorted(name for name in sys.modules if name.startswith('highwater_lab'))\n"
        "    assert lab == ['highwater_lab', 'highwater_lab.pytest_plugin']\n    assert 'boto3' not in sys.modules\n"
    )
    done = _run(tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
