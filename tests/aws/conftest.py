from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aws.bench import Bench, running_bench


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
    return found
