"""The lock files: `make lock` compiles them from the groups of pyproject.toml, `make lock-check` says what is old.

A lock that does not fit its group is a finding, and so is a version with a known vulnerability. A newer version is not.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parent.parent
# the groups of pyproject.toml that have a lock
GROUPS: Final = ("dev", "local", "release")
_TOOLS: Final = _ROOT / "build" / "release" / "bin"
# for all supported versions of Python at once, with hashes, without the address of an index
_COMPILE: Final = (
    *("pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-emit-index-url", "--no-annotate", "--no-header"),
)


def lock_file(group: str) -> Path:
    """Return the lock file of a group."""
    return _ROOT / f"requirements-{group}.txt"


def pinned(lock: str) -> dict[str, str]:
    """Return the version of each package of a lock file; of one that has several by platform, all of them."""
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE):
        versions.setdefault(name, []).append(version)
    return {name: " and ".join(several) for name, several in versions.items()}


def newer(locked: str, compiled: str) -> list[str]:
    """Return a sentence for each package that is in one of two locks in another version, or in one alone."""
    before, after = pinned(locked), pinned(compiled)
    return [
        f"{name}: {before.get(name, 'none')} → {after.get(name, 'none')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def advisories(report: dict[str, Any]) -> tuple[list[str], int, int]:
    """Return what pip-audit reported: a sentence for each vulnerability, packages asked of, packages in all."""
    found = []
    asked = 0
    for each in report["dependencies"]:
        if "skip_reason" in each:
            continue
        asked += 1
        for known in each["vulns"]:
            mended = " or ".join(known["fix_versions"]) or "no version yet"
            found.append(f"{each['name']} {each['version']}: {known['id']}, mended in {mended}")
    return found, asked, len(report["dependencies"])


def reached(group: str, asked: int, packages: int) -> str:
    """Return the sentence that says of how many packages the list of advisories was asked."""
    of = f"requirements-{group}.txt: advisories"
    if asked == 0:
        return f"{of}: the list cannot be reached from here, so nothing is known of vulnerable versions"
    if asked < packages:
        return f"{of}: {asked} of {packages} packages asked, the list does not know the others"
    return f"{of}: {packages} packages asked"


def compile_lock(group: str, *, upgrade: bool, out: Path) -> None:
    """Compile a group into *out*, which keeps the versions that it has unless they are upgraded.

    Raises:
        subprocess.CalledProcessError: No index can be reached, or no versions fit together; uv has said why.
    """
    command = [str(_TOOLS / "uv"), *_COMPILE, *(["--upgrade"] if upgrade else []), "--group", group, "-o", str(out)]
    subprocess.run(command, cwd=_ROOT, check=True)


def _check(group: str, folder: Path) -> bool:
    locked = lock_file(group).read_text()
    copy = folder / "lock.txt"
    copy.write_text(locked)
    compile_lock(group, upgrade=False, out=copy)
    unfit = newer(locked, copy.read_text())
    for line in unfit:
        print(f"requirements-{group}.txt: does not fit the group {group}: {line}; run make lock")
    compile_lock(group, upgrade=True, out=copy)
    old = newer(locked, copy.read_text())
    print(f"requirements-{group}.txt: {len(old)} of {len(pinned(locked))} packages have a newer version")
    for line in old:
        print(f"  {line}")
    found, asked, packages = advisories(_audited(group))
    print(reached(group, asked, packages))
    for line in found:
        print(f"  {line}")
    return not unfit and not found


def _audited(group: str) -> dict[str, Any]:
    command = ["--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(
        [str(_TOOLS / "pip-audit"), *command, "--requirement", str(lock_file(group))],
        capture_output=True,
        text=True,
        check=False,
    )
    # without a connection it ends with a traceback, and no report
    report: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {"dependencies": []}
    return report


def _main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--write"]:
        for group in GROUPS:
            compile_lock(group, upgrade=True, out=lock_file(group))
        return 0
    with tempfile.TemporaryDirectory(prefix="highwater-locks-") as folder:
        fit = [_check(group, Path(folder)) for group in GROUPS]
    return 0 if all(fit) else 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
