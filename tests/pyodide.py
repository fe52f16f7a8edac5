"""Other versions of Python than the tests' own: CPython for WebAssembly, by Pyodide, as package.json pins it.

`python -m tests.pyodide` runs the tests of the core in the version that Lambda runs (`make test-lambda-python`).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.cdk_cli import ROOT

# of the packages pyodide-3.12 and so on
VERSIONS: Final = ("3.12", "3.13", "3.14")
# that of the functions
OF_LAMBDA: Final = VERSIONS[-1]

# as much as macOS allows
_STACK_BYTES: Final = 65_520 * 1_024
# Pyodide sees nothing of this machine but what is mounted
_RUN: Final = """
import fs from "node:fs";
const [version, mounts, code] = process.argv.slice(1);
const { loadPyodide } = await import("pyodide-" + version);
const python = await loadPyodide();
for (const [name, path] of Object.entries(JSON.parse(mounts))) {
  if (fs.statSync(path).isDirectory()) {
    python.FS.mkdirTree(name);
    python.FS.mount(python.FS.filesystems.NODEFS, { root: path }, name);
  } else {
    python.FS.mkdirTree(name.slice(0, name.lastIndexOf("/")));
    python.FS.writeFile(name, fs.readFileSync(path));
  }
}
try {
  python.runPython(code);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
"""


def run_python(
    version: str, code: str, mounts: Mapping[str, Path], *, has_output: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run *code* in that version of Python, which sees the *mounts*: files and folders of this machine, by its names.

    The output goes where this process's does if *has_output* is false.
    """
    files = json.dumps({name: str(path) for name, path in mounts.items()})
    # WebAssembly takes much more of the stack than Node gives by default
    command = [
        "node",
        f"--stack-size={_STACK_BYTES // 1_100}",
        "--input-type=module",
        "--eval",
        _RUN,
        version,
        files,
        code,
    ]
    return subprocess.run(
        command, cwd=ROOT, capture_output=has_output, text=True, check=False, preexec_fn=_take_more_stack
    )


def _take_more_stack() -> None:
    resource.setrlimit(resource.RLIMIT_STACK, (_STACK_BYTES, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def installed(*names: str) -> dict[str, Path]:
    """Return the mounts of installed packages and modules: in the folder /installed, which code adds to its path."""
    mounts = {}
    for name in names:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None, f"{name} is not installed"  # noqa: PT018
        path = Path(spec.origin)
        path = path.parent if path.name == "__init__.py" else path
        mounts[f"/installed/{path.name}"] = path
    return mounts


# Hypothesis is compiled: build/ has it for WebAssembly. It tries a quarter of the examples, the same in each run.
# One test starts a process, which WebAssembly cannot.
_TESTS_OF_THE_CORE: Final = """
import os, sys
from pathlib import Path

os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
sys.dont_write_bytecode = True
sys.path += ["/hypothesis", "/installed", "/project", "/project/lambda_src", "/project/lab_src"]
import pytest
from hypothesis import HealthCheck, settings

checks = list(HealthCheck)
settings.register_profile("wasm", deadline=None, derandomize=True, database=None, suppress_health_check=checks)
settings.load_profile("wasm")
Path("/pytest.ini").write_text("[pytest]\\nfilterwarnings = error\\n")
print("Python", sys.version.partition(" ")[0], flush=True)
PROCESS = "test_import_of_the_core_in_a_fresh_interpreter_brings_only_the_standard_library"
options = [
    "-q", "-c/pytest.ini", "--rootdir=/project", "--confcutdir=/project/tests/core", "--import-mode=importlib",
    "-pno:cacheprovider", "--deselect=tests/core/test_purity.py::" + PROCESS,
]
code = pytest.main([*options, *ARGUMENTS, "/project/tests/core"])
assert code == 0, "pytest: " + repr(code)
"""


def _main(*arguments: str) -> int:
    pytest = find_spec("pytest")
    assert pytest is not None and pytest.origin is not None  # noqa: PT018
    mounts = {f"/project/{name}": ROOT / name for name in ("docs", "lab_src", "lambda_src", "tests")}
    mounts |= {"/installed": Path(pytest.origin).parents[1], "/hypothesis": ROOT / "build" / f"python-{OF_LAMBDA}"}
    code = f"ARGUMENTS = {json.dumps(arguments)}\n{_TESTS_OF_THE_CORE}"
    return run_python(OF_LAMBDA, code, mounts, has_output=False).returncode


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
