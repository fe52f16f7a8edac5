"""A plugin for pytest: a local cloud for the tests that ask for it, and why their requests were throttled.

pytest imports this file in every session where highwater-lab is installed, so it imports the lab only for a test that
asks for the cloud.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from highwater_lab.local import LocalCloud

# variables that say nothing about an account, a region or an endpoint, which a test keeps
_KEPT: Final = ("AWS_LAMBDA_", "AWS_MAX_ATTEMPTS", "AWS_RETRY_MODE", "AWS_XRAY_")
# files from which an SDK would read a profile, with an endpoint or credentials of its own
_FILES: Final = ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "BOTO_CONFIG")
# throttle events by resource and reason
_Throttles = Mapping[tuple[str, str], int]
# the cloud of a test, and what it had throttled before the test
_before: Final = pytest.StashKey[tuple["LocalCloud", _Throttles]]()


class LocalTables:
    """Creates tables in a local cloud, which are deleted after the test."""

    def __init__(self, cloud: LocalCloud) -> None:
        self._dynamodb = cloud.client("dynamodb")
        self._names: list[str] = []

    def create(self, **arguments: Any) -> str:
        """Create a table from the arguments of boto3's `create_table`, and return its name.

        Without `TableName` the table gets a name of its own. Without `AttributeDefinitions` the attributes of all keys
        are strings.

        Raises:
            ClientError: DynamoDB refuses the arguments.

        Example:
            ```python
            name = local_tables.create(
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 1},
            )
            ```
        """
        table = {"TableName": f"table-{uuid4().hex}"} | arguments
        if "AttributeDefinitions" not in table:
            keyed = [table, *table.get("GlobalSecondaryIndexes", ()), *table.get("LocalSecondaryIndexes", ())]
            names = dict.fromkeys(key["AttributeName"] for each in keyed for key in each.get("KeySchema", ()))
            table["AttributeDefinitions"] = [{"AttributeName": name, "AttributeType": "S"} for name in names]
        name = str(self._dynamodb.create_table(**table)["TableDescription"]["TableName"])
        self._names.append(name)
        return name

    def delete_all(self) -> None:
        """Delete the tables that were created here and are there still."""
        for name in self._names:
            with suppress(self._dynamodb.exceptions.ResourceNotFoundException):
                self._dynamodb.delete_table(TableName=name)
        self._dynamodb.close()


@pytest.fixture(scope="session")
def local_cloud_options() -> dict[str, Any]:
    """The arguments of `LocalCloud` for `local_cloud`: a driven clock. Define a fixture of this name for others."""
    return {"clock": "driven"}


@pytest.fixture(scope="session")
def local_cloud_process(local_cloud_options: dict[str, Any]) -> Iterator[LocalCloud]:
    """The one local cloud of a pytest process; tests ask for `local_cloud`, which points boto3 at it, too."""
    from highwater_lab.local import CloudError, LocalCloud

    try:
        cloud = LocalCloud(**local_cloud_options).__enter__()
    except (CloudError, ValueError, TypeError) as error:
        pytest.fail(f"local_cloud: {error}", pytrace=False)
    try:
        yield cloud
    finally:
        cloud.__exit__(None, None, None)


@pytest.fixture
def local_cloud(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, local_cloud_process: LocalCloud
) -> LocalCloud:
    """A `LocalCloud`; boto3 and AWS's other tools find it, and no account, from here to the end of the test.

    The tests of a process share the cloud and its clock, which never goes back. If a test fails, its report says what
    the tables throttled during the test, and why.
    """
    for name in [name for name in os.environ if name.startswith("AWS_") and not name.startswith(_KEPT)]:
        monkeypatch.delenv(name)
    for name, value in local_cloud_process.environment().items():
        monkeypatch.setenv(name, value)
    for name in _FILES:
        monkeypatch.setenv(name, os.devnull)
    # a proxy cannot reach this machine
    hosts = [os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or "", "localhost", "127.0.0.1"]
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, ",".join(host for host in hosts if host))
    # the session behind boto3.client(), which keeps credentials
    if "boto3" in sys.modules:
        monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    request.node.stash[_before] = (local_cloud_process, _throttles(local_cloud_process))
    return local_cloud_process


@pytest.fixture
def local_tables(local_cloud: LocalCloud) -> Iterator[LocalTables]:
    """Creates tables that are deleted after the test: `local_tables.create(...)`, as boto3's `create_table`."""
    tables = LocalTables(local_cloud)
    yield tables
    tables.delete_all()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test what the cloud throttled during the test."""
    report = yield
    if report.failed and _before in item.stash:
        cloud, before = item.stash[_before]
        text = _report(cloud, before)
        if text:
            report.sections.append(("throttled by the local cloud", text))
    return report


def _throttles(cloud: LocalCloud) -> _Throttles:
    return {(each.resource, each.reason): each.requests for each in cloud.control.throttles()}


def _report(cloud: LocalCloud, before: _Throttles) -> str:
    from highwater_lab.local import CloudError

    try:
        now = _throttles(cloud)
    except CloudError as error:
        return str(error)
    lines = []
    for (resource, reason), total in sorted(now.items()):
        count = total - before.get((resource, reason), 0)
        # a table of this name that was made again counts from 0
        count = count if count >= 0 else total
        if count:
            lines.append(f"{resource}: {reason}: {count:,} request{'s' * (count != 1)}")
    return "\n".join(lines)
