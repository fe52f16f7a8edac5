from __future__ import annotations

from collections.abc import Iterator

import pytest

from highwater_lab.local import LocalCloud
from tests.handlers.bench import Bench, running_bench
from tests.handlers.stage import Stage


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
def stage(scaled_cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Tables, and a scaler that hands events on to a list."""
    for name, value in scaled_cloud.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    made = Stage(scaled_cloud)
    # how long a peak is held depends on the minute of the hour
    made.wait_for_minute(20)
    yield made
    made.forget()
