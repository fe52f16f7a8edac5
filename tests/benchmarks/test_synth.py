"""A fleet of tables fits into the stacks that docs/fleets.md speaks of."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.synth import TABLES_PER_STACK
from cdk_highwater.deployment_function import MOST_TABLES
from tests.cdk_cli import ROOT

MOST_RESOURCES = 500


def test_two_hundred_tables_with_two_indexes_fit_into_eight_stacks() -> None:
    """11: as many tables in a stack as the policies of a role have room for."""
    assert TABLES_PER_STACK == MOST_TABLES
    command = [sys.executable, "-m", "benchmarks.synth", "--measure", "highwater", "--tables", "200"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    resources = json.loads(done.stdout.splitlines()[-1])["resources"]
    assert 0.8 * MOST_RESOURCES < resources / 8 <= MOST_RESOURCES
