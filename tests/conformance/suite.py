"""Runs the public conformance suite of DynamoDB on a local cloud, and with it this project's tests of capacity.

Run it with `make conformance CONFORMANCE=folder`: the folder is a checkout of `nubo-db/dynamodb-conformance`, or of its
successor, Parity Suite (`paritysuite/dynamodb-conformance`), with its packages installed. Nothing is written into it:
its files and those of `tests/conformance/capacity` are copied into a temporary folder, and run there on a cloud that
starts and ends with them. Prints how many tests of each tier passed, and Parity Suite's two figures: divergence, the
share of tests that failed, and coverage, the share that was not skipped. Exits with the status of the test runner: 1 if
a test failed, 2 for misuse.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.local_cloud import plain
from highwater_lab.local import LocalCloud

SUITE: Final = "github.com/nubo-db/dynamodb-conformance"
SUCCESSOR: Final = "github.com/paritysuite/dynamodb-conformance"
# What a checkout of either has, as both publish it, and the program that its packages bring
_MARKS: Final = ("package.json", "vitest.config.ts", "src/client.ts", "src/helpers.ts", "tests/tier1")
_NAME: Final = "dynamodb-conformance"
# The major versions that have this layout, the newest of 2026-11
_VERSIONS: Final = ("1", "2", "3")
_RUNNER: Final = "node_modules/vitest/vitest.mjs"
OWN: Final = Path(__file__).resolve().parent / "capacity"
# The names of the folders below `tests`, in the suite's order and then this project's own
TIERS: Final = ("tier1", "tier2", "tier3", "capacity")
# The texts of rejections differ between regions. The suite has those of May 2026, which one region still has
REGION: Final = "me-central-1"
# A cloud's second has to be shorter than an SDK's pause before a retry, as tables without provisioned capacity serve
# by the second
SPEED: Final = 20


class Misuse(Exception):
    """No folder was named, or it is no checkout of a suite of a known layout with its packages."""


def find_suite(named: str) -> Path:
    """Return the folder of the suite's checkout; raises `Misuse` with one line that says what is missing."""
    if not named:
        raise Misuse(f"CONFORMANCE: got nothing; name a checkout of {SUITE}: make conformance CONFORMANCE=folder")
    folder = Path(named).expanduser().absolute()
    lacking = [mark for mark in _MARKS if not (folder / mark).exists()]
    if lacking:
        told = f"{named!r} is no checkout of {SUITE} or {SUCCESSOR}"
        raise Misuse(f"CONFORMANCE: {told}, as it has no {lacking[0]}; clone one of them there")
    package = json.loads((folder / "package.json").read_text())
    version = str(package.get("version", "none"))
    if package.get("name") != _NAME or version.partition(".")[0] not in _VERSIONS:
        told = f"the package.json of {named!r} has the name {package.get('name')!r} and the version {version!r}"
        allowed = f"{_NAME!r} and a version from {_VERSIONS[0]} to {_VERSIONS[-1]}, whose layout is known"
        raise Misuse(f"CONFORMANCE: {told}; allowed: {allowed}; check out an older version")
    if not (folder / _RUNNER).exists():
        raise Misuse(f"CONFORMANCE: {named!r} has no {_RUNNER}; run npm install there first")
    return folder


def lay_out(suite: Path, folder: Path) -> None:
    """Copy the suite's files and this project's tests into an empty *folder*, and link the suite's packages there."""
    shutil.copytree(suite, folder, ignore=shutil.ignore_patterns(".git", "node_modules"), dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(suite / "node_modules", target_is_directory=True)
    shutil.copytree(OWN, folder / "tests" / OWN.name)


@dataclass(frozen=True, slots=True)
class Result:
    """How many tests passed, failed and there are; the others were skipped."""

    passed: int = 0
    failed: int = 0
    every: int = 0

    def __add__(self, other: Result) -> Result:
        """Return the result of the tests of both."""
        return Result(self.passed + other.passed, self.failed + other.failed, self.every + other.every)

    def __str__(self) -> str:
        """Return how many tests passed, in words."""
        return f"{self.passed} of {self.every} ({100 * self.passed / self.every:.1f} %)"


def results_by_tier(report: Mapping[str, Any], folder: Path) -> dict[str, Result]:
    """Return the result of each tier; *report* is the test runner's, run in *folder*."""
    found: dict[str, Result] = {}
    for file in report["testResults"]:
        tier = Path(file["name"]).resolve().relative_to((folder / "tests").resolve()).parts[0]
        for test in file["assertionResults"]:
            one = Result(test["status"] == "passed", test["status"] == "failed", 1)
            found[tier] = found.get(tier, Result()) + one
    return {tier: found[tier] for tier in TIERS if tier in found}


def lines_of(results: Mapping[str, Result], region: str) -> Iterator[str]:
    """Yield the printed lines: the suite's tiers, their sum and its two figures, then this project's tests."""
    suite = {tier: result for tier, result in results.items() if tier != "capacity"}
    if suite:
        together = sum(suite.values(), Result())
        parts = [f"tier {tier[-1]} {result}" for tier, result in suite.items()]
        yield f"the suite in {region}: {', '.join(parts)}; together {together}"
        divergence = 100 * together.failed / together.every
        coverage = 100 * (together.passed + together.failed) / together.every
        yield f"divergence {divergence:.1f} %, coverage {coverage:.1f} %"
    if "capacity" in results:
        yield f"this project's tests of capacity: {results['capacity']}"


@contextmanager
def _target(scratch: Path, *, is_plain: bool) -> Iterator[str]:
    """Start what is tested; yields its endpoint."""
    if is_plain:
        with plain(scratch) as port:
            yield f"http://localhost:{port}"
    else:
        with LocalCloud(speed=SPEED, has_instant_updates=True) as cloud:
            yield cloud.endpoint


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite; return the exit status."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("suite", nargs="?", default="", help="the folder of the suite's checkout")
    parser.add_argument("--region", default=REGION, help="the region that is called (%(default)s)")
    parser.add_argument("--plain", action="store_true", help="test plain MiniStack instead of the local cloud")
    parser.add_argument("--arguments", default="", help="more for the test runner: parts of files' names, options")
    options = parser.parse_args(arguments)
    try:
        suite = find_suite(options.suite)
    except Misuse as wrong:
        print(f"conformance: {wrong}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="highwater-conformance-", ignore_cleanup_errors=True) as made:
        scratch, folder = Path(made), Path(made) / "suite"
        lay_out(suite, folder)
        report = scratch / "report.json"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        with _target(scratch, is_plain=options.plain) as endpoint:
            told = ["--reporter=default", "--reporter=json", f"--outputFile.json={report}"]
            # parts of files' names may be of the suite alone
            told += ["--passWithNoTests", *shlex.split(options.arguments)]
            status = subprocess.run(
                ["node", str(folder / _RUNNER), "run", *told],
                cwd=folder,
                env=environment | {"DYNAMODB_ENDPOINT": endpoint, "AWS_REGION": options.region},
                check=False,
            ).returncode
        if report.exists():
            results = results_by_tier(json.loads(report.read_text()), folder)
            print(*lines_of(results, options.region), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
