"""Fixtures that several folders share."""

from __future__ import annotations

import functools
import gc
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader
from hypothesis import HealthCheck, settings

from tests.cdk_cli import CdkCli, bootstrapped_cloud
from tests.command import Command
from tests.core.examples import SAME_EACH_TIME, examples

# a busy machine changes nothing: no example has to end within a time
settings.register_profile(
    "same",
    deadline=None,
    derandomize=SAME_EACH_TIME,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """`highwater` in an empty folder, which is also its home, without credentials."""
    return Command(tmp_path)


# boto3 would look for credentials at the address that AWS's machines have
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"

_LOOPBACK = frozenset({None, "", "127.0.0.1", "::1", "0.0.0.0", "localhost"})  # noqa: S104 - names, not to listen at
_address_info = socket.getaddrinfo
_asked_hosts: list[str] = []


def _loopback_only(host: Any, *args: Any, **named: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else host
    if name in _LOOPBACK:
        return _address_info(host, *args, **named)
    _asked_hosts.append(name)
    raise socket.gaierror(socket.EAI_NONAME, "tests ask no other machine")


socket.getaddrinfo = _loopback_only


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    """Each test asks this machine alone, and its threads of the runtime end before the next test begins."""
    before = set(threading.enumerate())
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("highwater-") and thread not in before:
            thread.join(60)
            assert not thread.is_alive(), f"{thread.name} goes on after the test that began it"
    asked = list(_asked_hosts)
    _asked_hosts.clear()
    assert asked == [], "tests ask no machine but this one"


# The CDK checks every template against rules of its own, which takes most of a synth, and only prints what it finds.
# The process of the CDK's classes reads this when the first test module imports them. tests/security asks for these
# rules.
os.environ["CDK_VALIDATION"] = "false"
# The CDK's classes are unpacked once for a home, in some five seconds; many tests run commands with an empty home.
os.environ.setdefault("JSII_RUNTIME_PACKAGE_CACHE_ROOT", str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"))
# each run of the CDK CLI would start another process that reports to AWS
os.environ["CDK_DISABLE_CLI_TELEMETRY"] = "true"


# A session's first client of a service reads what the SDK knows of it, in a third of a second; here a process reads it
# once.
_read_file = JSONFileLoader.load_file


@functools.cache
def _known_of_services(path: str) -> Any:
    return _read_file(JSONFileLoader(), path)


JSONFileLoader.load_file = lambda _, path: _known_of_services(path)  # type: ignore[assignment, method-assign]

# What is imported remains: it is not searched for garbage, while it is made nor by any test.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


# fixtures that start a local cloud
_CLOUDS = frozenset({"bootstrapped", "cloud", "highwater", "long_load", "running", "shared_bench"})
_FOLDERS_OF_CLOUDS = frozenset({"deploys", "local"})


# Groups of tests that run one after another for a minute or more. They begin first: what ends last would run alone.
_LONG_GROUPS = (
    "sequences",
    "cloud",
    "pages",
    "shared budgets",
    "distributions",
    "cloud-express",
    "cloud-first-day",
    "demo",
    "cloud-boosted",
    "cloud-migration",
    "paced scans",
    "examples",
    "pulses",
    "cloud-scaled",
    "cloud-scaler",
    "acceptance",
    "scan",
    "tables-by-time",
    "pytest plugin",
)


def _place(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    name = group.args[0] if group is not None else ""
    return _LONG_GROUPS.index(name) if name in _LONG_GROUPS else len(_LONG_GROUPS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `cloud` what needs a local cloud or the CDK CLI, but for what is `quick`; put long groups first."""
    items.sort(key=_place)
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        needs = folder in _FOLDERS_OF_CLOUDS or not _CLOUDS.isdisjoint(getattr(item, "fixturenames", ()))
        if needs and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.cloud)


@pytest.fixture(scope="session")
def bootstrapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    """A local cloud that the real CDK CLI has bootstrapped; stacks of several tests live side by side in it."""
    folder = tmp_path_factory.mktemp("cdk")
    # deploys are looked at here; what updates take is seen in tests/local/test_update_times
    with bootstrapped_cloud(folder, has_instant_updates=True) as cli:
        yield cli
