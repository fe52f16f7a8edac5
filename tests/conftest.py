"""Fixtures that several folders share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from highwater_lab.local import LocalCloud
from tests.cdk_cli import CdkCli
from tests.command import Command


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """`highwater` in an empty folder, which is also its home, without credentials."""
    return Command(tmp_path)


@pytest.fixture(scope="session")
def bootstrapped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CdkCli]:
    """A local cloud that the real CDK CLI has bootstrapped; stacks of several tests live side by side in it."""
    folder = tmp_path_factory.mktemp("cdk")
    # deploys are looked at here; what updates take is seen in tests/local/test_update_times
    with LocalCloud(log=folder / "server.log", has_instant_updates=True, is_strict=True) as cloud:
        cli = CdkCli(cloud, folder)
        cli.run("bootstrap", f"aws://{cloud.environment()['CDK_DEFAULT_ACCOUNT']}/us-east-1")
        yield cli
