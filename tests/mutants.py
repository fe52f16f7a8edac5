"""Mutation testing of the core: changes its code in small ways, one at a time, and lists what tests/core lets pass.

`make mutants` runs it; `make mutants ARGS="plan budget.py"` looks at these folders and files alone. mutmut wants the
code beneath a folder `src` and leaves decorated functions alone, so it works on a copy, in which functions whose
results are only kept for speed are plain ones: a result that was kept would hide a mutant, too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "build" / "mutants"
CORE = Path("src/highwater/core")
# reading the zone database takes too long to do it at each call
KEPT_CACHES = ("zones.py",)
_CACHE = re.compile(r"^@lru_cache\(maxsize=\d+\)\n", re.MULTILINE)

SETTINGS = """\
[tool.mutmut]
source_paths = ["src"]
only_mutate = [{patterns}]
also_copy = ["tests"]
pytest_add_cli_args_test_selection = [{tests}]
pytest_add_cli_args = ["-q", "-p", "no:cacheprovider"]
process_isolation = "forkserver"
timeout_constant = 4.0
timeout_multiplier = 3.0

[tool.pytest.ini_options]
addopts = "--strict-markers --strict-config --import-mode=importlib"
pythonpath = ["."]
"""

# a mutant is dead at the first example that fails: no smaller one is looked for
CONFTEST = """\
from hypothesis import Phase, settings

settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate], database=None)
settings.load_profile("mutants")
"""


def stage(parts: list[str], tests: list[str]) -> None:
    """Copy the core and its tests to where mutmut finds them."""
    shutil.rmtree(STAGE, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lambda_src" / "highwater" / "core", STAGE / CORE, ignore=ignored)
    (STAGE / "src" / "highwater" / "__init__.py").touch()
    shutil.copytree(ROOT / "tests" / "core", STAGE / "tests" / "core", ignore=ignored)
    for path in (STAGE / CORE).rglob("*.py"):
        if path.name not in KEPT_CACHES:
            path.write_text(_CACHE.sub("", path.read_text()))
    patterns = [f"{CORE}/{part}" if part.endswith(".py") else f"{CORE}/{part}/*" for part in parts] or [f"{CORE}/*"]
    settings = SETTINGS.format(
        patterns=", ".join(f'"{pattern}"' for pattern in patterns), tests=", ".join(f'"{test}"' for test in tests)
    )
    (STAGE / "pyproject.toml").write_text(settings)
    (STAGE / "tests" / "conftest.py").write_text(CONFTEST)


def main() -> int:
    """Run, and print what survived; 1 if anything did."""
    parts = [argument for argument in sys.argv[1:] if not argument.startswith("tests/")]
    tests = [argument for argument in sys.argv[1:] if argument.startswith("tests/")]
    stage(parts, tests or ["tests/core"])
    # the copy's own code is to be found, not the one that is installed
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    mutmut = [sys.executable, "-m", "mutmut"]
    run = subprocess.run([*mutmut, "run", "--max-children", "1"], cwd=STAGE, env=environment, check=False)
    results = subprocess.run(
        [*mutmut, "results"], cwd=STAGE, env=environment, check=True, capture_output=True, text=True
    )
    verdicts = (line.strip().rpartition(": ") for line in results.stdout.splitlines())
    survivors = [name for name, _, verdict in verdicts if verdict in ("survived", "no tests")]
    for name in survivors:
        subprocess.run([*mutmut, "show", name], cwd=STAGE, env=environment, check=False)
    return run.returncode or int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
