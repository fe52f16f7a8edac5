"""`make demo`: ends well, and ends with status 1 where what it sees differs from the plan."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from highwater_lab.local import LocalCloud
from highwater_lab.local.process import HeldPort
from tests.cdk_cli import ROOT

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    # run as a script, it finds its neighbours
    sys.path.append(str(ROOT / "examples" / "demo"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["demo"] = module
    spec.loader.exec_module(module)
    return module


def test_demo_shows_everything_and_finds_it_as_planned(demo: ModuleType) -> None:
    output = io.StringIO()
    with LocalCloud(clock="driven") as cloud:
        status = demo.Demo(cloud, Console(file=output, width=140)).run()
    text = output.getvalue()
    assert status == 0, text
    for title in (
        "Tables and indexes",
        "Scalable targets",
        "Scheduled actions",
        "table write: floor over the next seven days (units/s, log scale)",
        "Monday, New York time",
        "14 scaling activities",
        "A surge from 27 to 270 writes/s on all tables, by the cloud's clock",
        "everything is as planned",
    ):
        assert title in text
    assert demo.PICTURE.exists()
    assert demo.SURGE_PICTURE.exists()
    report = demo.REPORT.read_text()
    rows = re.findall(r"<tr data-row='\d'.*?> *(?:<abbr[^>]*>)?([\w:-]+)(?:</abbr>)?</td>", report)
    assert rows == ["native:70", "highwater-floor", "declared", "highwater-floor-pulse"]
    throttled = {}
    for title in ("target tracking alone", "with the scaler", "with a boost", "with pulses"):
        told = re.search(title + r": +throttled +([\d,]+) of ([\d,]+) units, simulated +([\d,]+)", text)
        assert told is not None
        throttled[title], asked, simulated = (int(figure.replace(",", "")) for figure in told.groups())
        # twenty minutes of the base load before the four that are shown
        assert asked == 24 * 27 * 60 + 10 * 270 * 60
        # alarms are judged once a minute, at seconds of their own
        assert throttled[title] == pytest.approx(simulated, abs=60 * 243 if simulated else 0)
    # the same figures on every machine
    assert throttled == {
        "target tracking alone": 117_450,
        "with the scaler": 40_905,
        "with a boost": 0,
        "with pulses": 0,
    }
    assert text.count("\n") < 80, "two screens"
    assert "the job asked two minutes before the surge, and got 348 units/s for 18 minutes" in text


def test_demo_ends_with_one_where_a_hand_edit_made_a_difference(demo: ModuleType) -> None:
    class Meddled(demo.Demo):  # type: ignore[misc, name-defined] # loaded from a file
        """Somebody deletes the action that opens the bulk load's window, right after the deploy."""

        def _find(self, out: Any) -> Any:
            deployed = super()._find(out)
            self._cloud.client("application-autoscaling").delete_scheduled_action(
                ServiceNamespace="dynamodb",
                ResourceId=f"table/{deployed.table}",
                ScalableDimension="dynamodb:table:WriteCapacityUnits",
                ScheduledActionName="MON-FRI 0455 America.New_York min 18000 max 20000",
            )
            return deployed

        def _send_surge(self, folder: Any) -> None:
            """Not needed here."""

    output = io.StringIO()
    with LocalCloud(clock="driven") as cloud:
        status = Meddled(cloud, Console(file=output, width=200)).run()
    assert status == 1
    differences = [line for line in output.getvalue().splitlines() if line.startswith("differs from the plan:")]
    assert (
        "differs from the plan: bounds of table write at 05:30: planned (18000, 20000), actually (100, 20000)"
        in differences
    )
    assert "differs from the plan: capacity of table write at 05:30: planned 18000, actually 100" in differences
    assert not any("table read" in line for line in differences)


def test_demo_that_is_interrupted_says_so_in_one_line_and_leaves_no_cloud() -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo" / "demo.py")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        started = process.stdout.readline()
        # as a terminal does: to the whole group
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stdout.read()
    port = int(started.rsplit(":", 1)[1])
    assert (rest, process.returncode) == ("demo: interrupted\n", 130)
    with HeldPort(port):
        pass
