"""The licences of all dependencies, on a page: `make licences` writes docs/licences.md, a test compares it.

A licence is what a package's metadata states. What a user installs has to be under a licence that Apache-2.0 permits to
be used with; what only develops Highwater is listed too, and some of it is under others.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = _ROOT / "docs" / "licences.md"
# the environments, each with its lock
ENVIRONMENTS: Final = {
    ".venv": "requirements-dev.txt",
    ".venv-local": "requirements-local.txt",
    "build/release": "requirements-release.txt",
}
_PARTS: Final = (".", "lambda_src", "lab_src", "local_src")
# what is written of a licence, by a pattern that fits the whole, and its identifier of SPDX
_SAID: Final = {
    r"apache( software license|-2\.0| 2\.0| license 2\.0)": "Apache-2.0",
    r"(the )?mit( license)?": "MIT",
    r"mit no attribution license \(mit-0\)|mit-0": "MIT-0",
    r"bsd[- ]3(-clause license|-clause)?": "BSD-3-Clause",
    r"bsd( license)?|bsd-2-clause": "BSD",
    r"mozilla public license 2\.0 \(mpl 2\.0\)|mpl-2\.0": "MPL-2.0",
    r"python software foundation license": "PSF-2.0",
    r"isc license \(iscl\)": "ISC",
    r"gnu general public license \(gpl\)": "GPL",
    r"public domain": "public domain",
}
# classifiers that name no licence
_NONE: Final = ("OSI Approved", "DFSG approved", "UNKNOWN")
# stated by their projects, and not by their packages: sjakthol/aws-dynamodb-parallel-scan, LICENSE of 1.2.0
_ELSEWHERE: Final = {"aws-dynamodb-parallel-scan": "MIT"}
# Works under these may be used by one under Apache-2.0, and be distributed beside it: all are permissive but MPL-2.0,
# whose terms hold for its own files alone.
FITTING: Final = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0"),
        *("MIT-CMU", "MPL-2.0", "PSF-2.0", "ZPL-2.1", "Zlib"),
    }
)
_PAGE: Final = """\
# Licences

Highwater is under [Apache-2.0](../LICENSE). These are the licences of the packages that it depends on, as their
metadata states them, in the versions of the lock files on Linux. `make licences` writes this page; a test compares it
with what is installed, and each licence with those that fit.

## What you install

| package | licence |
|---|---|
{users}

`highwater-runtime[dask]` asks for `distributed` too (BSD-3-Clause), which no lock file has.

## What develops Highwater

Nothing of this is in a wheel, nor asked for by one.

| package | licence |
|---|---|
{developers}
"""


def licence(metadata: importlib.metadata.PackageMetadata) -> str:
    """Return the licence that a package's metadata states: an expression of SPDX, or several that it names.

    Returns:
        `unknown` if the metadata states none that this code knows.
    """
    name = normal(metadata["Name"])
    stated = metadata.json
    if written := stated.get("license_expression"):
        return str(written)
    short = str(stated.get("license", ""))
    of_classifiers = [each.split(" :: ")[-1] for each in metadata.get_all("Classifier") or [] if "License ::" in each]
    found = [said for each in [short.strip(), *of_classifiers] if (said := _identifier(each))]
    # one that this code does not know may be one that does not fit
    found += ["unknown" for each in of_classifiers if each not in _NONE and _identifier(each) is None]
    # one that says the same less exactly adds nothing
    exact = sorted({each for each in found if not (each == "BSD" and {"BSD-2-Clause", "BSD-3-Clause"} & set(found))})
    return " AND ".join(exact) or _ELSEWHERE.get(name, "unknown")


def fits(stated: str) -> bool:
    """Whether a licence fits Apache-2.0; of those to choose from, one is enough."""
    if "(" in stated:
        # not taken apart: whatever the brackets say, each of these fits
        return set(re.findall(r"[\w.-]+", stated)) - {"AND", "OR"} <= FITTING
    choices = [re.findall(r"[\w.-]+", choice.replace(" AND ", " ")) for choice in stated.split(" OR ")]
    return any(set(choice) <= FITTING for choice in choices)


def installed(root: Path = _ROOT) -> dict[str, str]:
    """Return the licence of each package of the lock files that is installed, by its normal name."""
    found: dict[str, str] = {}
    for environment, lock in ENVIRONMENTS.items():
        folders = [str(folder) for folder in (root / environment).glob("lib/python*/site-packages")]
        locked = set(_locked(root / lock))
        for each in importlib.metadata.distributions(path=folders):
            name = normal(each.metadata["Name"])
            if name in locked:
                # where two environments have two versions, the first is that of users
                found.setdefault(name, licence(each.metadata))
    return dict(sorted(found.items()))


def of_users(root: Path = _ROOT) -> set[str]:
    """Return the normal names of what the four distributions ask for, and of what that asks for."""
    own, waiting = set(), []
    for part in _PARTS:
        project = tomllib.loads((root / part / "pyproject.toml").read_text())["project"]
        own.add(normal(project["name"]))
        waiting += project["dependencies"]
        for extra in project.get("optional-dependencies", {}).values():
            waiting += extra
    asks: dict[str, list[str]] = {}
    for each in _distributions(root):
        # of two versions, what that of users asks for
        asks.setdefault(normal(each.metadata["Name"]), each.requires or [])
    found: set[str] = set()
    while waiting:
        asked = waiting.pop()
        name = normal(re.split(r"[^\w.-]", asked.strip(), maxsplit=1)[0])
        # what only an extra asks for is not followed, but for the extras of the distributions themselves
        if name in found or name in own or name not in asks:
            continue
        found.add(name)
        waiting += [one for one in asks[name] if "extra ==" not in one]
    return found


def page(licences: dict[str, str], users: set[str]) -> str:
    """Return the page."""
    return _PAGE.format(users=_rows(licences, users), developers=_rows(licences, licences.keys() - users))


def normal(name: str) -> str:
    """Return a package's name as indexes compare it: in lower case, with hyphens."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _rows(licences: dict[str, str], names: Iterable[str]) -> str:
    return "\n".join(f"| {name} | {licences[name]} |" for name in sorted(names) if name in licences)


def _identifier(said: str) -> str | None:
    if not said or said in _NONE:
        return None
    first = said.splitlines()[0].strip()
    return next((name for pattern, name in _SAID.items() if re.fullmatch(pattern, first, re.IGNORECASE)), None)


def _locked(lock: Path) -> list[str]:
    return [normal(name) for name in re.findall(r"^([\w.-]+)==", lock.read_text(), re.MULTILINE)]


def _distributions(root: Path) -> Iterator[importlib.metadata.Distribution]:
    for environment in ENVIRONMENTS:
        folders = [str(folder) for folder in (root / environment).glob("lib/python*/site-packages")]
        yield from importlib.metadata.distributions(path=folders)


def _main(arguments: Sequence[str]) -> int:
    licences, users = installed(), of_users()
    if list(arguments) == ["--write"]:
        PAGE.write_text(page(licences, users))
    bad = sorted(name for name in users & licences.keys() if not fits(licences[name]))
    for name in bad:
        print(f"{name}: is under {licences[name]}, which is not known to fit Apache-2.0")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
