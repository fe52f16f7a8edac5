"""A recommended plan as Terraform code: read back, over the form of a plan, it is the same table."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import hcl2
import pytest

from highwater.core import Capacity, HighWaterMark, IndexCapacity, Plan, Window
from highwater_lab.recommend.candidates import Candidate
from highwater_lab.recommend.hcl import hcl_of
from highwater_lab.simulation import TableSetup
from highwater_lab.simulation.plans import table_of
from highwater_lab.template import find_table, load_templates
from tests.command import Command
from tests.template.plans import plan as made_plan
from tests.template.plans import resource

Block = dict[str, Any]
READ = Capacity.autoscaled(min_capacity=13, max_capacity=1_300, target_utilization_percent=55)
WRITE = Capacity.autoscaled(min_capacity=17, max_capacity=1_700)
NIGHT = Window.weekly("night", days="MON-FRI", start="23:30", end="01:15", timezone="America/New_York", write_min=900)
DAY = Window.weekly(
    "day", days="SAT,SUN", start="08:00", end="09:30", timezone="Europe/Berlin", read_min=70, write_min=80
)
PLANS = {
    "autoscaled": Plan(read=READ, write=WRITE, mark=HighWaterMark.none()),
    "fixed": Plan(read=Capacity.fixed(5), write=Capacity.fixed(6), mark=HighWaterMark.none()),
    "one dimension": Plan(read=Capacity.fixed(5), write=WRITE, mark=HighWaterMark.none()),
    "window across midnight and clock changes": Plan(
        read=READ, write=WRITE, windows=(NIGHT,), mark=HighWaterMark.none()
    ),
    "windows over fixed capacity": Plan(
        read=Capacity.fixed(5), write=Capacity.fixed(6), windows=(DAY,), mark=HighWaterMark.none()
    ),
    "once": Plan(
        read=READ,
        write=WRITE,
        windows=(
            NIGHT,
            Window.once(
                "sale",
                start="2026-11-27T05:00",
                end="2026-11-27T09:00",
                timezone="Europe/Berlin",
                write_min=1_500,
            ),
        ),
        mark=HighWaterMark.none(),
    ),
    "indexes with names that are no labels": Plan(
        read=READ,
        write=replace(WRITE, scale_in_cooldown=timedelta(seconds=60), disable_scale_in=True),
        windows=(NIGHT,),
        indexes=tuple(IndexCapacity(index_name=name) for name in ("by.state", "by_state", "7-days", 'odd"%{x}\\é')),
        mark=HighWaterMark.none(),
    ),
    "high-water mark": Plan(
        read=Capacity.autoscaled(min_capacity=100, max_capacity=20_000),
        write=Capacity.autoscaled(min_capacity=100, max_capacity=9_000),
        indexes=(IndexCapacity(index_name="by_state"),),
        mark=HighWaterMark.to_ceiling(),
    ),
}


def _resources(code: str) -> dict[str, Block]:
    """Parse code; return its resources by address. A resource that is declared twice is an error."""
    found: dict[str, Block] = {}
    for each in hcl2.loads(code).get("resource", []):
        ((kind, named),) = each.items()
        ((name, block),) = named.items()
        address = f"{json.loads(kind)}.{json.loads(name)}"
        assert address not in found
        found[address] = _plain(block)
    return found


def _plain(value: Any) -> Any:
    """Return a parsed value without what the parser adds: comments, marks of blocks, and braces around references."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if not key.startswith("__")}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value[2:-1] if isinstance(value, str) and re.fullmatch(r"\$\{[^}]*\}", value) else value


def _evaluated(value: Any, resources: dict[str, Block]) -> Any:
    if isinstance(value, list):
        return [_evaluated(each, resources) for each in value]
    if isinstance(value, dict):
        left_out = ("lifecycle", "depends_on")
        return {key: _evaluated(each, resources) for key, each in value.items() if key not in left_out}
    if not isinstance(value, str):
        return value
    if value.startswith('"'):
        text: str = json.loads(value)
        filled = re.sub(r"(?<!\$)\$\{([^}]*)\}", lambda match: str(_referred(match[1], resources)), text)
        return filled.replace("$${", "${").replace("%%{", "%{")
    return _referred(value, resources)


def _referred(reference: str, resources: dict[str, Block]) -> Any:
    kind, name, attribute = reference.split(".")
    return _evaluated(resources[f"{kind}.{name}"][attribute], resources)


def _candidate(plan: Plan | None) -> Candidate:
    return Candidate(plan=plan, cost_per_month=1, throttled_percent=0, utilization_percent=None)


def _read_back(code: str, folder: Path) -> TableSetup:
    declared = _resources(code)
    planned = made_plan(*(resource(address, **_evaluated(block, declared)) for address, block in declared.items()))
    (folder / "plan.json").write_text(json.dumps(planned))
    return find_table(load_templates(folder / "plan.json"))


@pytest.mark.parametrize("name", PLANS)
def test_code_read_back_is_the_same_plan(name: str, tmp_path: Path) -> None:
    """Bounds, policies and every scheduled action, with its instants in its time zone."""
    wanted = table_of(PLANS[name], "aws_dynamodb_table.table")
    assert _read_back(hcl_of(_candidate(PLANS[name])), tmp_path) == wanted


def test_name_that_looks_like_a_template_is_none() -> None:
    plan = Plan(read=READ, write=WRITE, indexes=(IndexCapacity(index_name="${x}%{y}"),))
    assert '  index_name = "$${x}%%{y}"\n' in hcl_of(_candidate(plan))


def test_on_demand(tmp_path: Path) -> None:
    setup = _read_back(hcl_of(_candidate(None)), tmp_path)
    assert setup.is_on_demand
    assert setup.name == "aws_dynamodb_table.table"


def test_only_what_scaling_changes_is_ignored() -> None:
    code = hcl_of(_candidate(PLANS["indexes with names that are no labels"]))
    assert code.startswith("# needs version 6.44 or newer of the AWS provider\n\nresource ")
    assert "  # its keys are not known: id is a placeholder\n" in code
    declared = _resources(code)
    table = declared["aws_dynamodb_table.table"]
    assert table["lifecycle"] == [{"ignore_changes": ["read_capacity", "write_capacity"]}]
    assert "global_secondary_index" not in table
    assert (
        "    # what changes by itself, and nothing else;\n"
        "    # global_secondary_index here would hide new, changed and removed indexes\n"
    ) in code
    indexes = {name: each for name, each in declared.items() if name.startswith("aws_dynamodb_global_secondary_index.")}
    assert list(indexes) == [
        f"aws_dynamodb_global_secondary_index.{label}"
        for label in ("index_by_state", "index_by_state_2", "index_7-days", "index_odd___x___")
    ]
    assert all(each["lifecycle"] == [{"ignore_changes": ["provisioned_throughput"]}] for each in indexes.values())
    # a window's scheduled actions set both bounds; without windows, a change of the bounds must not be ignored
    with_windows = declared["aws_appautoscaling_target.table_write"]
    assert with_windows["lifecycle"] == [{"ignore_changes": ["min_capacity", "max_capacity"]}]
    assert "lifecycle" not in declared["aws_appautoscaling_target.table_read"]
    one = _resources(hcl_of(_candidate(PLANS["one dimension"])))
    assert one["aws_dynamodb_table.table"]["lifecycle"] == [{"ignore_changes": ["write_capacity"]}]
    fixed = _resources(hcl_of(_candidate(PLANS["fixed"])))
    assert "lifecycle" not in fixed["aws_dynamodb_table.table"]


@pytest.mark.skipif(shutil.which("terraform") is None, reason="the parser above checks the form, too")
@pytest.mark.parametrize("name", PLANS)
def test_code_is_formatted_as_terraform_does(name: str) -> None:
    code = hcl_of(_candidate(PLANS[name]))
    done = subprocess.run(["terraform", "fmt", "-"], input=code, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, code)


def test_command_prints_the_code_of_either(command: Command) -> None:
    done = command("recommend", "--scenario", "constant", "--code", "hcl")
    assert (done.returncode, done.stderr) == (0, "")
    code = done.stdout.split("\n\n", 1)[1]
    assert code.startswith('resource "aws_dynamodb_table" "table" {\n')
    assert "aws_appautoscaling_policy.table_write" in _resources(code)
    document = json.loads(command("recommend", "--scenario", "constant", "--code", "hcl", "--json").stdout)
    assert document["best"]["code"] == code
