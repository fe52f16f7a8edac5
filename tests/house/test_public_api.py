"""What users may import: listed, sorted, documented, typed."""

from __future__ import annotations

import importlib
import inspect
import tomllib

import pytest

from tests.cdk_cli import ROOT

PUBLIC = [
    "cdk_highwater",
    "highwater",
    "highwater.budgets",
    "highwater.core",
    "highwater.jobs",
    "highwater.queues",
    "highwater.shards",
    "highwater_lab.local",
    "highwater_lab.physics",
    "highwater_lab.recommend",
    "highwater_lab.rehearse",
    "highwater_lab.simulation",
    "highwater_lab.template",
    "highwater_lab.traffic",
]


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_listed_sorted_and_there(module: str) -> None:
    imported = importlib.import_module(module)
    # constants, then classes, then functions, as ruff sorts them
    assert imported.__all__ == sorted(imported.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    assert [name for name in imported.__all__ if not hasattr(imported, name)] == []


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_all_that_the_module_shows(module: str) -> None:
    imported = importlib.import_module(module)
    # a package that imports its names when they are first used lists them itself
    names = dir(imported) if hasattr(imported, "__dir__") and "__getattr__" in vars(imported) else vars(imported)
    shown = {name for name in names if not name.startswith("_") and not inspect.ismodule(getattr(imported, name))}
    assert shown == set(imported.__all__)


def test_first_list_that_a_user_meets_is_short() -> None:
    assert len(importlib.import_module("highwater").__all__) <= 34


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_documented(module: str) -> None:
    imported = importlib.import_module(module)
    bare = [name for name in imported.__all__ if not inspect.getdoc(getattr(imported, name))]
    assert bare == []


@pytest.mark.parametrize("package", ["constructs_pkg/cdk_highwater", "lambda_src/highwater", "lab_src/highwater_lab"])
def test_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


def test_distributions_have_one_version() -> None:
    versions = {
        tomllib.loads((ROOT / part / "pyproject.toml").read_text())["project"]["version"]
        for part in (".", "lambda_src", "lab_src")
    }
    assert len(versions) == 1
    assert f"## [{versions.pop()}]" in (ROOT / "CHANGELOG.md").read_text()
