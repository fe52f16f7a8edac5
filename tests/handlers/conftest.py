from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from highwater.aws import tables
from highwater.handlers import scaler
from highwater.handlers.plan_cache import PlanCache
from highwater_lab.local import LocalCloud
from tests.handlers.bench import Bench, running_bench
from tests.handlers.stage import Stage


@pytest.fixture(scope="session")
def shared_bench() -> Iterator[tuple[Bench, dict[str, str]]]:
    with running_bench() as running:
        yield running


@pytest.fixture
def bench(shared_bench: tuple[Bench, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The cloud; DynamoDB clients of the code under test are the wire's."""
    found, variables = shared_bench
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found.wire.reset()
    monkeypatch.setattr(tables, "client", lambda _region=None: found.wire.client)
    return found


@pytest.fixture(scope="module")
def scaled_cloud() -> Iterator[LocalCloud]:
    with LocalCloud(has_instant_updates=True) as cloud:
        yield cloud


@pytest.fixture
def stage(scaled_cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Tables and the scaler's function, which hands on to a list."""
    for name, value in scaled_cloud.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "the-scaler")
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
    handed_on: list[dict[str, Any]] = []
    monkeypatch.setattr(scaler, "_hand_on", handed_on.append)
    monkeypatch.setattr(scaler, "_PLANS", PlanCache())
    made = Stage(scaled_cloud, handed_on)
    # what is held, and until when, depends on the minute of the hour
    made.wait_for_minute(20)
    yield made
    made.forget()
