from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from highwater.aws import tables
from highwater_lab.local import LocalCloud
from tests.aws.bench import Bench, Wire


@pytest.fixture(scope="session")
def shared_bench() -> Iterator[tuple[Bench, dict[str, str]]]:
    """A cloud, and the variables that point the code under test at it."""
    with LocalCloud(has_instant_updates=True) as cloud, pytest.MonkeyPatch.context() as environment:
        variables = cloud.environment()
        for name, value in variables.items():
            environment.setenv(name, value)
        arguments: dict[str, Any] = cloud.client_arguments()
        dynamodb = boto3.client("dynamodb", **arguments)
        autoscaling = boto3.client("application-autoscaling", **arguments)
        yield Bench(cloud, dynamodb, autoscaling, Wire(tables.client())), variables


@pytest.fixture
def bench(shared_bench: tuple[Bench, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The cloud; DynamoDB clients of the code under test are the wire's."""
    found, variables = shared_bench
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found.wire.reset()
    return found
