"""A session whose answers a test puts down."""

from __future__ import annotations

import pytest

from tests.doctor.stubs import StubbedSession


@pytest.fixture
def session() -> StubbedSession:
    """Of one test."""
    return StubbedSession()
