"""A local cloud for the commands that look at live tables, and the command itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from highwater_lab.local import LocalCloud
from tests.command import Command
from tests.handlers.stage import Stage


@pytest.fixture(scope="module")
def running() -> Iterator[LocalCloud]:
    with LocalCloud(clock="driven", has_instant_updates=True) as cloud:
        yield cloud


@pytest.fixture
def stage(running: LocalCloud) -> Iterator[Stage]:
    made = Stage(running)
    yield made
    made.forget()


@pytest.fixture
def highwater(running: LocalCloud, tmp_path: Path) -> Command:
    """The command, pointed at the cloud."""
    return Command(tmp_path, running.environment() | {"TERM": "dumb"})
