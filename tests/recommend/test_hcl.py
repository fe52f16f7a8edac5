"""A recommended plan as Terraform code: read back, over the form of a plan, it is the same table."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

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
_TOKEN = re.compile(r'\s*(?:#[^\n]*|("(?:[^"\\]|\\.)*")|(-?\d+)|([A-Za-z_][\w.-]*)|([={}\[\],]))')
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


class _Hcl:
    """Reads the part of HCL that is written: blocks, and arguments with texts, numbers, references and lists of them.

    Anything else, an argument that is given twice in a block, or a block that is not closed, is an error.
    """

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def resources(self) -> dict[str, Block]:
        found: dict[str, Block] = {}
        while self._at < len(self._tokens):
            assert self._next() == "resource"
            kind, name = json.loads(self._next()), json.loads(self._next())
            assert re.fullmatch(r"[A-Za-z_][\w-]*", name), "a label"
            assert f"{kind}.{name}" not in found, "a resource that is declared twice"
            found[f"{kind}.{name}"] = self._block()
        return found

    def _block(self) -> Block:
        assert self._next() == "{"
        block: Block = {}
        while (name := self._next()) != "}":
            assert re.fullmatch(r"[a-z_]+", name), name
            if self._tokens[self._at] == "{":
                block.setdefault(name, []).append(self._block())
            else:
                assert self._next() == "="
                assert name not in block, name
                block[name] = self._value()
        return block

    def _value(self) -> Any:
        token = self._next()
        if token == "{":
            self._at -= 1
            return self._block()
        if token != "[":
            return token
        items = []
        while (token := self._next()) != "]":
            items.append(token)
            assert self._tokens[self._at] in (",", "]")
            if self._tokens[self._at] == ",":
                self._at += 1
        return items

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        return token


def _tokens(text: str) -> Iterator[str]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None, f"no HCL: {text[at : at + 60]!r}"
        at = match.end()
        yield from (group for group in match.groups() if group is not None)


def _evaluated(value: Any, resources: dict[str, Block]) -> Any:
    if isinstance(value, list):
        return [_evaluated(each, resources) for each in value]
    if isinstance(value, dict):
        return {key: _evaluated(each, resources) for key, each in value.items() if key != "lifecycle"}
    if value in ("true", "false") or re.fullmatch(r"-?\d+", value):
        return json.loads(value)
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
    declared = _Hcl(code).resources()
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
    declared = _Hcl(code).resources()
    table = declared["aws_dynamodb_table.table"]
    assert table["lifecycle"] == [{"ignore_changes": ["read_capacity", "write_capacity"]}]
    assert "global_secondary_index" not in table
    assert (
        "    # auto scaling changes these, and nothing else;\n"
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
    one = _Hcl(hcl_of(_candidate(PLANS["one dimension"]))).resources()
    assert one["aws_dynamodb_table.table"]["lifecycle"] == [{"ignore_changes": ["write_capacity"]}]
    fixed = _Hcl(hcl_of(_candidate(PLANS["fixed"]))).resources()
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
    assert "aws_appautoscaling_policy.table_write" in {*_Hcl(code).resources()}
    document = json.loads(command("recommend", "--scenario", "constant", "--code", "hcl", "--json").stdout)
    assert document["best"]["code"] == code
