"""One local cloud per module of tests, as its clock goes only ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from highwater_lab.local import LocalCloud
from tests.local.world import Stack, World, client


@pytest.fixture(scope="module")
def cloud(request: pytest.FixtureRequest) -> Iterator[LocalCloud]:
    """A cloud with the options in the module's `CLOUD`, if it has one."""
    # what updates take is seen in test_update_times, everything else at once
    options: dict[str, Any] = {"clock": "driven", "has_instant_updates": True}
    with LocalCloud(**options | getattr(request.module, "CLOUD", {})) as running:
        yield running


@pytest.fixture(scope="module")
def clients(cloud: LocalCloud) -> dict[str, Any]:
    return {name: client(cloud, name) for name in ("application-autoscaling", "dynamodb", "cloudformation")}


@pytest.fixture
def session(cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> boto3.Session:
    """A session of a worker, whose coordinator's table is `leases`."""
    for name, value in (cloud.environment() | {"HIGHWATER_PULSES": "leases"}).items():
        monkeypatch.setenv(name, value)
    return boto3.Session()


@pytest.fixture
def iam(cloud: LocalCloud) -> Any:
    return cloud.client("iam")


@pytest.fixture
def world(cloud: LocalCloud, clients: dict[str, Any]) -> Iterator[World]:
    made = World(cloud, clients["application-autoscaling"], clients["dynamodb"])
    yield made
    made.forget()


@pytest.fixture
def resource(world: World) -> str:
    """A table whose reads are a target from 7 to 900."""
    made = world.resource()
    world.register(made, 7, 900)
    return made


@pytest.fixture
def make_stack(clients: dict[str, Any], world: World) -> Callable[[], Stack]:
    del world  # forgets tables and targets at the end
    return lambda: Stack(clients["cloudformation"])


@pytest.fixture
def stack(make_stack: Callable[[], Stack]) -> Stack:
    return make_stack()
