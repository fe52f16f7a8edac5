"""Mutation testing of the core: changes its code in small ways, one at a time, and lists what tests/core lets pass.

`make mutants` runs it; `make mutants ARGS="plan budget.py tests/core/test_plan.py"` changes these folders and files of
the core alone, and runs these tests alone.

mutmut makes the mutants. The tests are collected and run once, to learn which functions each of them reaches and how
long it takes. Then each mutant gets a forked child: it replaces the code of the function that is changed, and runs the
tests that reach it, quickest first, until one fails, with few random examples. A mutant that survives is tried again
with all examples. Where a test module calls the function while it is imported, a child of the fork comes too late:
these modules run in a new process.
"""

from __future__ import annotations

import os
import sys
import time

import pytest

from tests.mutants.driver import IN_NEW_PROCESS, Driver
from tests.mutants.mutant import CORE, mutants_of

# the settings in pyproject.toml, without what is for the terminal and for several processes
OPTIONS = (
    *("-o", "addopts=--strict-markers --strict-config --import-mode=importlib"),
    *("-o", "timeout=0", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)


def main(arguments: list[str]) -> int:
    """Run, and print what survived; 1 if anything did."""
    # where this machine's own time is UTC, a mutant that takes local time for UTC would survive
    os.environ["TZ"] = "Asia/Kathmandu"
    time.tzset()
    alone = int(arguments[1]) if arguments[:1] == [IN_NEW_PROCESS] else None
    arguments = arguments[2:] if alone is not None else arguments
    tests = [argument for argument in arguments if "tests/" in argument] or ["tests/core"]
    parts = [CORE / argument for argument in arguments if "tests/" not in argument] or [CORE]
    paths = sorted({path for part in parts for path in (part.rglob("*.py") if part.is_dir() else [part])})
    mutants = [mutant for path in paths for mutant in mutants_of(path)]
    if alone is not None:
        mutants[alone].put(mutants[alone].changed)
        return pytest.main([*OPTIONS, "-x", *tests])
    driver = Driver(mutants)
    result = pytest.main([*OPTIONS, "-p", "no:terminal", "-s", *tests], plugins=[driver])
    if result or driver.has_failed:
        return int(result) or 1
    print(f"\n{len(mutants):,} mutants, {driver.survivors} survive")
    return int(bool(driver.survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
