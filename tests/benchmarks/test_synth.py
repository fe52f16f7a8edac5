"""A fleet of tables fits into the stacks that docs/fleets.md speaks of."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cdk_cli import ROOT

pytestmark = pytest.mark.cloud

MOST_RESOURCES = 500


def test_two_hundred_tables_with_two_indexes_fit_into_eight_stacks() -> None:
    """11: in each stack about as many as its resources, and the policies of a role, have room for."""
    command = [sys.executable, "-m", "benchmarks.synth", "--measure", "highwater", "--tables", "200"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    resources = json.loads(done.stdout.splitlines()[-1])["resources"]
    assert 0.8 * MOST_RESOURCES < resources / 8 <= MOST_RESOURCES
