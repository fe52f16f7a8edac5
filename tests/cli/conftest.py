"""A local cloud for the commands that look at live tables, and the command itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from highwater_lab.local import LocalCloud
from tests.handlers.stage import Stage

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def running() -> Iterator[LocalCloud]:
    with LocalCloud(has_instant_updates=True) as cloud:
        yield cloud


@pytest.fixture
def stage(running: LocalCloud) -> Iterator[Stage]:
    made = Stage(running)
    yield made
    made.forget()


@pytest.fixture
def highwater(running: LocalCloud) -> Run:
    common = os.environ | running.environment() | {"COLUMNS": "140", "TERM": "dumb"}

    def run(*arguments: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(Path(sys.executable).parent / "highwater"), *arguments],
            env={name: value for name, value in (common | variables).items() if value is not None},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
