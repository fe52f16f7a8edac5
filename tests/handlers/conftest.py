from __future__ import annotations

from collections.abc import Iterator

import pytest

from highwater_lab.local import LocalCloud
from tests.handlers.bench import Bench, running_bench
from tests.memory_aws.stage import Stage


@pytest.fixture(scope="session")
def shared_bench() -> Iterator[tuple[Bench, dict[str, str]]]:
    with running_bench() as running:
        yield running


@pytest.fixture
def bench(shared_bench: tuple[Bench, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The cloud, and the environment that leads boto3 to it."""
    found, variables = shared_bench
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found.wire.reset()
    return found


@pytest.fixture(scope="module")
def scaled_cloud() -> Iterator[LocalCloud]:
    with LocalCloud(has_instant_updates=True) as cloud:
        yield cloud


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A region without tables, and a scaler that hands events on to a list."""
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    return Stage()
