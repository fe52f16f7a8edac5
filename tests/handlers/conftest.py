from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from highwater.core import Units
from highwater.core.names import TargetName
from highwater_lab.local import LocalCloud
from tests.handlers.boost_world import World
from tests.memory_aws.account import Account
from tests.memory_aws.bench import Bench
from tests.memory_aws.deploys import role_for_deploys
from tests.memory_aws.stage import WITH_WINDOW, Stage
from tests.memory_aws.tables import Table


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


@pytest.fixture
def world() -> World:
    """A coordinator for the table `orders`."""
    return World()


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """A table whose targets a deploy has just registered with their base floors, inside an open window."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "HighwaterDeployment")
    made = Account(int(datetime(2027, 3, 4, 5, 6, tzinfo=UTC).timestamp()))
    made.roles["deployment"] = role_for_deploys()
    made.tables["orders"] = Table.provisioned("orders", {None: Units(9, 200)})
    made.register("orders", WITH_WINDOW)
    return made
