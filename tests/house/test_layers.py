"""The arrows of the house: who may import whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from highwater.rooms import ROOMS
from tests.cdk_cli import ROOT

RUNTIME = ROOT / "lambda_src" / "highwater"
_BULK = {"highwater.core", "highwater.calls", "highwater.client", "highwater.bulk", "boto3", "botocore"}
_ROOM = {"highwater.exports", "highwater.cli", "highwater.terminal", "click", "rich"}
# folder: what it may import beside the standard library and itself
ALLOWED = {
    RUNTIME / "core": {"highwater.core"},
    RUNTIME / "calls": {"highwater.core", "highwater.calls", "botocore"},
    RUNTIME / "aws": {"highwater.core", "highwater.calls", "highwater.aws", "boto3", "botocore", "mypy_boto3_*"},
    RUNTIME / "handlers": {
        "highwater.core",
        "highwater.calls",
        "highwater.aws",
        "highwater.handlers",
        "aws_lambda_powertools",
        "boto3",
        "mypy_boto3_*",
    },
    RUNTIME / "client": {"highwater.core", "highwater.calls", "highwater.client", "boto3", "botocore"},
    RUNTIME / "bulk": {*_BULK, "highwater.rooms"},
    **{
        RUNTIME / room: {*_BULK, *_ROOM, *(f"highwater.{each}" for each in (room, *needed))}
        for room, needed in ROOMS.items()
    },
    RUNTIME / "terminal": {"highwater.core", "highwater.terminal", "click", "rich"},
    RUNTIME / "cli": {
        "highwater.core",
        "highwater.aws",
        "highwater",
        "highwater.client",
        "highwater.bulk",
        "highwater.cli",
        "highwater.terminal",
        "boto3",
        "botocore",
        "click",
        "rich",
        "zstandard",
    },
    ROOT / "constructs_pkg" / "cdk_highwater": {
        "highwater",
        "highwater.core",
        "highwater.exports",
        "highwater.rooms",
        "highwater.jobs.segments",
        "highwater.queues.messages",
        "cdk_highwater",
        "aws_cdk",
        "constructs",
        "jsii",
    },
    ROOT / "lab_src" / "highwater_lab": {
        # the lab's commands are subcommands of the runtime's, and print as it does
        "highwater.terminal",
        # the rules of rooms that are simulated, in the lab's rooms of the same name
        "highwater.budgets.shares",
        "highwater.queues.messages",
        "highwater.calls",
        # the doctor reads plans and tags as the scaler does
        "highwater.aws.parameters",
        "highwater.aws.tags",
        "highwater.core",
        "highwater_lab",
        "boto3",
        "botocore",
        "click",
        "jinja2",
        "matplotlib",
        "mypy_boto3_*",
        "pyarrow",
        "pytest",  # its plugin alone, which pytest itself imports
        "rich",
        "yaml",
    },
    ROOT / "local_src" / "highwater_local": {
        "highwater.core",
        "highwater_lab.local",
        "highwater_lab.physics",
        "highwater_lab.services",
        "highwater_local",
        "botocore",
        "uvicorn",
        "ministack",
    },
    # files to copy, without the library; Lambda has boto3
    ROOT / "examples" / "tables_by_time": {
        "periods",
        "rotation",
        "aws_cdk",
        "boto3",
        "botocore",
        "constructs",
    },
}
CORE = "highwater.core"
GROUND = {
    f"{CORE}.{name}"
    for name in (
        *("bucket", "budget", "codec", "documents", "errors", "findings", "items", "limits"),
        *("names", "prices", "throttles", "tracking", "units"),
    )
}
# the core's places from the ground up, and the places that each may import beside the ground and itself
CORE_ARROWS = {
    "plan": set(),
    "boosts": {"plan", "schedule"},
    "schedule": {"plan"},
    "checks": {"plan", "schedule"},
    "pulses": {"plan"},
    "pacing": set(),
    "scaler": {"plan", "schedule", "checks", "boosts", "pulses"},
}
LAB = "highwater_lab"
# folders of the lab, and what of the lab each may import beside itself
LAB_ARROWS = {
    "physics": set(),
    "services": {"files", "physics"},
    "traffic": {"files", "physics"},
    "policies": {"physics", "rooms", "services", "simulation", "traffic"},
    "simulation": {"physics", "rooms", "services", "traffic"},
    "template": {"files", "physics", "services", "simulation"},
    "rehearse": {"physics", "policies", "recommend", "services", "simulation", "template", "traffic"},
    "recommend": {"physics", "policies", "services", "simulation", "traffic"},
    "audit": {"files", "policies", "recommend", "services", "simulation", "traffic"},
    "doctor": {"audit", "files", "rehearse", "services", "simulation", "template", "traffic"},
    "report": {
        "audit",
        "files",
        "physics",
        "services",
        "recommend",
        "rehearse",
        "simulation",
        "template",
        "traffic",
        "pictures",
    },
    "local": {"physics", "traffic"},
}
LAB_ARROWS |= {
    room: arrows
    for room, arrows in {"budgets": set[str](), "queues": {"physics", "simulation", "traffic"}}.items()
    if room in ROOMS
}
# the lab's folders that compute, and so need no library beside the core
LAB_PURE = ("physics", "services", "simulation", "policies", "recommend", "rehearse")
STANDARD = set(__import__("sys").stdlib_module_names)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


def _is_allowed(module: str, allowed: set[str]) -> bool:
    if module.split(".")[0] in STANDARD:
        return True
    return any(
        module == name or module.startswith(f"{name}.") or (name.endswith("*") and module.startswith(name[:-1]))
        for name in allowed
        if name != "highwater" or module == "highwater"
    )


def _check(files: list[Path], allowed: set[str], *, of_lab_only: bool = False) -> None:
    """Each import of the files is allowed; *of_lab_only* looks at those of the lab alone."""
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files
        for module in _imports(path)
        if (module.split(".")[0] == LAB or not of_lab_only) and not _is_allowed(module, allowed)
    ]
    assert wrong == []
    assert files


@pytest.mark.parametrize("folder", ALLOWED, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_folder_imports_only_what_its_arrows_allow(folder: Path) -> None:
    _check(sorted(folder.rglob("*.py")), ALLOWED[folder])


def _files_of(place: str) -> list[Path]:
    """A place of the core is a file or a folder."""
    file = RUNTIME / "core" / f"{place}.py"
    return [file] if file.exists() else sorted((RUNTIME / "core" / place).rglob("*.py"))


@pytest.mark.parametrize("place", CORE_ARROWS)
def test_place_of_the_core_imports_only_what_its_arrows_allow(place: str) -> None:
    allowed = {*GROUND, f"{CORE}.{place}", *(f"{CORE}.{name}" for name in CORE_ARROWS[place])}
    _check(_files_of(place), allowed)


def test_ground_of_the_core_imports_only_itself() -> None:
    files = [path for path in (RUNTIME / "core").glob("*.py") if path.stem not in {"__init__", *CORE_ARROWS}]
    assert {f"{CORE}.{path.stem}" for path in files} == GROUND
    _check(files, GROUND)


def _modules(folder: Path, package: str) -> dict[str, Path]:
    return {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in folder.rglob("*.py")
    }


@pytest.mark.parametrize(
    "folder",
    [*ALLOWED, ROOT / "acceptance", ROOT / "benchmarks"],
    ids=lambda folder: str(folder.relative_to(ROOT)),
)
def test_no_modules_import_each_other_in_a_circle(folder: Path) -> None:
    package = ".".join(folder.relative_to(ROOT).parts).removeprefix("lambda_src.").removeprefix("lab_src.")
    package = package.removeprefix("constructs_pkg.")
    modules = _modules(folder, package)
    arrows = {name: {module for module in _imports(path) if module in modules} for name, path in modules.items()}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))


@pytest.mark.parametrize("folder", LAB_ARROWS)
def test_folder_of_the_lab_imports_only_what_its_arrows_allow(folder: str) -> None:
    allowed = {"highwater.core", f"{LAB}.{folder}", *(f"{LAB}.{name}" for name in LAB_ARROWS[folder])}
    files = sorted((ROOT / "lab_src" / LAB / folder).rglob("*.py"))
    _check(files, allowed, of_lab_only=folder not in LAB_PURE)


def test_one_file_of_the_local_cloud_reaches_into_ministack() -> None:
    # by import_module: its settings have to be there before it is imported, and what is missing of it is listed whole
    folders = [ROOT / "lab_src" / LAB, ROOT / "local_src" / "highwater_local"]
    found = {
        path.name
        for folder in folders
        for path in folder.rglob("*.py")
        if any(module.split(".")[0] == "ministack" for module in _imports(path)) or "import_module" in path.read_text()
    }
    assert found - {"rooms.py"} == {"ministack.py"}


def test_every_folder_of_the_lab_has_its_arrows() -> None:
    folders = {path.parent.name for path in (ROOT / "lab_src" / LAB).glob("*/__init__.py")}
    assert folders - {"commands"} == set(LAB_ARROWS)


@pytest.mark.parametrize(
    "folder", [RUNTIME / "core", *(ROOT / "lab_src" / LAB / name for name in LAB_PURE)], ids=lambda path: path.name
)
def test_what_computes_reads_no_clock_and_no_environment(folder: Path) -> None:
    words = ("datetime.now(", "utcnow(", "time.time(", "os.environ", "import logging", "import random", "print(")
    found = [f"{path.name}: {word}" for path in folder.rglob("*.py") for word in words if word in path.read_text()]
    assert found == []


def test_no_room_is_named_for_nothing() -> None:
    names = {path.stem for part in ALLOWED for path in part.rglob("*.py")}
    assert names.isdisjoint({"utils", "util", "helpers", "helper", "common", "misc", "manager"})


@pytest.mark.parametrize("folder", ALLOWED, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_no_module_has_the_name_of_a_function_that_its_package_exports(folder: Path) -> None:
    wrong = []
    for package in folder.rglob("__init__.py"):
        modules = {path.stem for path in package.parent.glob("*.py")}
        exported = {
            alias.asname or alias.name
            for node in ast.parse(package.read_text()).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        wrong += [f"{package.parent.relative_to(ROOT)}: {name}" for name in sorted(modules & exported)]
    assert wrong == []
