"""Traces of real services; they lie outside the repository, and the tests are skipped where they are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from highwater.core import Dimension
from highwater_lab.policies.catalogue import run_policy
from highwater_lab.traffic import Stream, read_traffic
from tests.cdk_cli import ROOT
from tests.simulation.tables import table, tracked

TRACES = ROOT.parent / "shared" / "traces"
pytestmark = pytest.mark.skipif(
    not (TRACES / "manifest.json").exists(), reason=f"no traces at {TRACES}: they are not part of the repository"
)


def _manifest() -> list[dict[str, Any]]:
    file = TRACES / "manifest.json"
    return json.loads(file.read_text())["traces"] if file.exists() else []


@pytest.mark.parametrize("trace", _manifest(), ids=lambda trace: Path(trace["file"]).stem)
def test_trace_is_read_as_its_manifest_has_it(trace: dict[str, Any]) -> None:
    traffic = read_traffic(TRACES / trace["file"])
    assert traffic.source_bin_seconds == trace["resolution_seconds"]
    assert traffic.minutes == trace["length_bins"] * trace["resolution_seconds"] // 60
    lines = (TRACES / trace["file"]).read_text().split()[1:]
    total = sum(float(line.split(",")[1]) for line in lines)
    assert traffic.total_units(Stream(None, Dimension.WRITE)) == pytest.approx(total, rel=1e-6, abs=len(lines))


def test_demand_of_a_real_trace_is_consumed_or_throttled_minute_by_minute() -> None:
    traffic = read_traffic(TRACES / "nasa_jul95.csv").with_mean(1_000)
    run = run_policy("native:70", table(tracked()), traffic)
    target = run.target(Dimension.WRITE)
    rates = traffic.rates[Stream(None, Dimension.WRITE)]
    assert [target.demand_quanta(minute) for minute in range(traffic.minutes)] == [rate * 60 for rate in rates]
    assert 0 < run.throttled_per_million < 50_000
