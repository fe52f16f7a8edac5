from __future__ import annotations

from collections.abc import Iterator

import pytest

from highwater.core.names import TargetName
from highwater_lab.local import LocalCloud
from tests.memory_aws.bench import Bench
from tests.memory_aws.stage import Stage


@pytest.fixture(scope="module")
def scaled_cloud() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", has_instant_updates=True) as cloud:
        yield cloud


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Tables in memory, and the name of the function for deploys, by which it invokes itself."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "HighwaterDeployment")
    return Bench()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A region without tables, and a scaler that hands events on to a list."""
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    return Stage()


@pytest.fixture
def orders(stage: Stage) -> TargetName:
    """A table whose write floor is 2, and its plan's is 12."""
    return stage.table("orders", floor=2)


@pytest.fixture
def jobs(stage: Stage) -> TargetName:
    """Another one like it."""
    return stage.table("jobs", floor=2)
