"""Templates of the shapes that people write, each with what is right beside it (`corpus/SHAPE/right.json`).

An entry of `right.json` is one reading: `ask` has the arguments of `find_table` (and `file` where the folder holds more
than one), and what comes of it is either `error`, or the table's `name`, its `notes` and, by table and index, units,
floor, ceiling and target utilization of reads, then of writes; where it matters, also its `region`, and region, read
units and class of its further `replicas`. `HERE` stands for the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from highwater_lab.simulation import TargetSetup
from highwater_lab.template import TemplateError, find_table, load_templates

CORPUS = Path(__file__).parent / "corpus"
SHAPES = sorted(folder.name for folder in CORPUS.iterdir())


def _readings() -> Iterator[Any]:
    for shape in SHAPES:
        for number, right in enumerate(json.loads((CORPUS / shape / "right.json").read_text())):
            yield pytest.param(CORPUS / shape, right, id=f"{shape}-{number}")


def _figures(target: TargetSetup) -> list[int | None]:
    return [target.units, target.min, target.max, target.tracking.target_percent if target.tracking else None]


def _read(folder: Path, ask: dict[str, Any]) -> dict[str, Any]:
    files = [file for file in folder.iterdir() if file.name != "right.json"]
    file = folder / ask.pop("file") if "file" in ask else files[0]
    try:
        setup = find_table(load_templates(file), **ask)
    except TemplateError as error:
        return {"error": str(error).replace(str(folder), "HERE")}
    resources = {resource.label: [_figures(resource.read), _figures(resource.write)] for resource in setup.resources}
    replicas = [[replica.region, replica.read_units, replica.is_infrequent_access] for replica in setup.replicas]
    found = {
        "name": setup.name,
        "region": setup.region,
        "resources": resources,
        "notes": [note.replace(str(folder), "HERE") for note in setup.notes],
    }
    return found | {"replicas": replicas}


@pytest.mark.parametrize(("folder", "right"), list(_readings()))
def test_template_is_read_right(folder: Path, right: dict[str, Any]) -> None:
    ask = right.pop("ask")
    found = _read(folder, ask)
    assert {key: found.get(key) for key in right} == right
    assert "error" in right or right.keys() >= {"name", "resources", "notes"}


def test_every_shape_says_what_is_right() -> None:
    assert len(SHAPES) >= 14
    assert all(json.loads((CORPUS / shape / "right.json").read_text()) for shape in SHAPES)
