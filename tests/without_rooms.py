"""Take each room out of a copy of the repository, and run the checks and tests of what is left.

    python -m tests.without_rooms [--rooms jobs,shards] [tests ...]

A test that names the room, by its package, one of its public names or its command, leaves with it, and so do the tests
of pages, which name all of them. Exit status 1 if anything of the rest fails.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from highwater.rooms import ROOMS
from tests.cdk_cli import ROOT

PACKAGES = ("lambda_src/highwater", "constructs_pkg/cdk_highwater", "lab_src/highwater_lab")
_CHECKED = ("constructs_pkg/cdk_highwater", "lambda_src/highwater", "lab_src/highwater_lab")
# the pages name every room; these read the repository as git knows it
_LEFT_OUT = ("tests/docs", "tests/house/test_repository.py", "tests/house/test_distributions.py", "tests/acceptance")


def leaving_with(room: str) -> list[str]:
    """Return the rooms that leave with *room*: itself, and those that import it."""
    return [room, *(other for other, needed in ROOMS.items() if room in needed)]


def names_of(room: str) -> re.Pattern[str]:
    """Return the pattern of whatever names a room."""
    names = [*importlib.import_module(f"highwater.{room}").__all__]
    text = (ROOT / "constructs_pkg" / "cdk_highwater" / "__init__.py").read_text()
    names += re.findall(rf'"(\w+)": "cdk_highwater\.{room}\.', text)
    packages = "|".join(("highwater", "cdk_highwater", "highwater_lab"))
    return re.compile(rf'\b(?:{packages})\.{room}\b|\b(?:{"|".join(names)})\b|"{room}"|"  {room} ')


def copy_without(rooms: list[str], to: Path) -> list[str]:
    """Copy what git knows to *to*, without the rooms; return the tests that are left out."""
    shutil.rmtree(to, ignore_errors=True)
    known = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    patterns = [names_of(room) for room in rooms]
    gone = tuple(f"{package}/{room}/" for package in PACKAGES for room in rooms)
    left_out = []
    for name in known.stdout.split("\n"):
        source = ROOT / name
        if not name or name.startswith(gone) or not source.is_file():
            continue
        if name.startswith("tests/") and name.endswith(".py"):
            text = source.read_text()
            if any(pattern.search(text) for pattern in patterns):
                left_out.append(name)
                continue
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, to / name)
    for registry in ("lambda_src/highwater/rooms.py", "constructs_pkg/cdk_highwater/__init__.py"):
        _drop_lines(to / registry, rooms)
    known_distribution = distribution("highwater-runtime")
    metadata = to / "site" / "highwater_runtime.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(known_distribution.read_text("METADATA") or "")
    (metadata / "entry_points.txt").write_text(known_distribution.read_text("entry_points.txt") or "")
    _drop_lines(metadata / "entry_points.txt", rooms)
    return left_out


def _drop_lines(path: Path, rooms: list[str]) -> None:
    """Drop the lines of a registry that name a room, and in a list those of its names."""
    text = path.read_text()
    for room in rooms:
        names = set(re.findall(rf'"(\w+)": "cdk_highwater\.{room}\.', text))
        text = "\n".join(
            line
            for line in text.split("\n")
            if not re.search(rf'highwater\.{room}\.|^ *"{room}": ', line) and line.strip(' ",') not in names
        )
    path.write_text(text)


def main() -> int:
    """Run it; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rooms", default=",".join(ROOMS), help="which of them, by default each")
    parser.add_argument("tests", nargs="*", default=["tests"], help="the tests to run, by default all that are quick")
    asked = parser.parse_args()
    failed = []
    for room in asked.rooms.split(","):
        rooms = leaving_with(room)
        to = ROOT / "build" / "without" / room
        left_out = copy_without(rooms, to)
        print(f"without {', '.join(rooms)}: {len(left_out)} files of tests left with it", flush=True)
        folders = [to / "site", to, *(to / part for part in ("constructs_pkg", "lambda_src", "lab_src", "local_src"))]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
        checks = [sys.executable, "-m", "mypy", *_CHECKED]
        ignored = [f"--ignore={each}" for each in _LEFT_OUT]
        tests = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "auto", "-m", "not cloud", *ignored]
        for command in (checks, [*tests, *asked.tests]):
            if subprocess.run(command, cwd=to, env=environment, check=False).returncode:
                failed.append(room)
    print(f"failed without: {', '.join(dict.fromkeys(failed))}" if failed else "each room can be taken out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
