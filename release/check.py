"""All of a release but publishing it: `make release-check`.

It builds the source distributions and wheels of the four packages into dist/, checks what an index checks, installs
each into an empty environment by its lock, lists what is in there (build/sbom), runs the quickstart from the wheels,
and writes the notes of the version (build/release-notes.md).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release.names import differences, public_names, stated_names

_ROOT: Final = Path(__file__).resolve().parent.parent
_DIST: Final = _ROOT / "dist"
_BUILD: Final = _ROOT / "build"
_CYCLONEDX: Final = _BUILD / "release" / "bin" / "cyclonedx-py"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A package of the release: its folder, the lock of its environment, and the folders it needs beside."""

    part: str
    lock: str
    beside: tuple[str, ...] = ()


DISTRIBUTIONS: Final = (
    Distribution("lambda_src", "requirements-dev.txt"),
    Distribution(".", "requirements-dev.txt", ("lambda_src",)),
    Distribution("lab_src", "requirements-dev.txt", ("lambda_src",)),
    Distribution("local_src", "requirements-local.txt", ("lambda_src", "lab_src")),
)


class ReleaseError(Exception):
    """The release is not ready; the message says why."""


def version() -> str:
    """Return the version of the four packages."""
    return str(_project(".")["version"])


def check_tag(tag: str, stated: str) -> None:
    """Raise `ReleaseError` if a tag is not that of the version."""
    if tag != f"v{stated}":
        raise ReleaseError(f"tag {tag}: is not that of the packages, whose version is {stated}; expected v{stated}")


def notes(changelog: str, stated: str) -> str:
    """Return what a changelog says of a version, without its title.

    Raises:
        ReleaseError: It has no section of the version, or says nothing in it.
    """
    sections = re.split(r"^## \[([^\]]+)\].*\n", changelog, flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True)).get(stated)
    if found is None:
        raise ReleaseError(f"CHANGELOG.md: has no section of {stated}; expected a line: ## [{stated}]")
    if not found.strip():
        raise ReleaseError(f"CHANGELOG.md: the section of {stated} is empty; say what users notice")
    # on the page of a release a link needs the repository's address
    address = _project(".")["urls"]["Homepage"]
    return re.sub(r"\]\((?!https?://|#)([^)]+)\)", rf"]({address}/blob/v{stated}/\1)", found.strip() + "\n")


def build() -> list[Path]:
    """Build a source distribution of each package, and from it a wheel; return the files."""
    shutil.rmtree(_DIST, ignore_errors=True)
    for each in DISTRIBUTIONS:
        _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(_DIST), str(_ROOT / each.part))
    files = sorted(_DIST.iterdir())
    _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files))
    return files


def install(parts: Sequence[str], lock: str, folder: Path) -> Path:
    """Install wheels of dist/, and what they ask for by a lock, into a new environment; return its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    # the pip of this environment installs into the new one, which takes none of its own
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    locked = re.findall(r"^([\w.-]+==\S+(?: ; .*?)?) \\$", (_ROOT / lock).read_text(), re.MULTILINE)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(locked))
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    _run(*pip, "install", "--quiet", "--no-compile", "--constraint", str(constraints), *map(str, map(_wheel, parts)))
    _run(*pip, "check")
    return python


def list_contents(each: Distribution) -> Path:
    """Install a package into an environment with nothing else, and list what is in it as CycloneDX; return the file."""
    project = _project(each.part)
    name = str(project["name"])
    folder = _BUILD / "wheels" / name
    python = install([each.part, *each.beside], each.lock, folder)
    out = _BUILD / "sbom" / f"{name}-{project['version']}.cdx.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    about = ["--pyproject", str(_ROOT / each.part / "pyproject.toml"), "--mc-type", "library", "--output-reproducible"]
    # pip notes of a file from which folder it came, which is of this machine alone
    for note in folder.glob("lib/python*/site-packages/*.dist-info/direct_url.json"):
        note.unlink()
    _run(str(_CYCLONEDX), "environment", *about, "--output-file", str(out), str(python))
    return out


def run_quickstart() -> None:
    """Run the commands of docs/quickstart.md in an environment that has the wheels, and nothing of this repository."""
    python = install([".", "lambda_src", "lab_src"], "requirements-dev.txt", _BUILD / "wheels" / "quickstart")
    test = "tests/docs/test_snippets.py::test_shell_snippets_of_a_page_run_as_printed[docs/quickstart.md]"
    _run(sys.executable, "-m", "pytest", "-q", "--numprocesses", "0", test, HIGHWATER_BIN=str(python.parent))


def _project(part: str) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((_ROOT / part / "pyproject.toml").read_text())["project"]
    return project


def _wheel(part: str) -> Path:
    name = str(_project(part)["name"]).replace("-", "_")
    return next(_DIST.glob(f"{name}-*.whl"))


def _run(*command: str, **variables: str) -> None:
    done = subprocess.run(command, cwd=_ROOT, env=os.environ | variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(command)}: ended with {done.returncode}\n{done.stdout}{done.stderr}")


def _main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make release-check", description="All of a release but publishing it.")
    parser.add_argument("--tag", default="", help="the tag that is released, such as v0.2.0; by default none")
    options = parser.parse_args(arguments)
    changed = differences(stated_names(), public_names())
    for line in changed:
        print(line)
    if changed:
        print("public names differ from release/public_api.txt; if that is meant: make public-api", file=sys.stderr)
        return 1
    try:
        if options.tag:
            check_tag(options.tag, version())
        text = notes((_ROOT / "CHANGELOG.md").read_text(), version())
        print("public names: as release/public_api.txt has them", flush=True)
        files = build()
        print(f"dist/: {len(files)} files, which an index would accept", flush=True)
        listed = [list_contents(each) for each in DISTRIBUTIONS]
        print(f"build/sbom/: {len(listed)} files, each of an environment with one package alone", flush=True)
        run_quickstart()
        print("docs/quickstart.md: runs from the wheels", flush=True)
    except ReleaseError as error:
        print(f"make release-check: {error}", file=sys.stderr)
        return 1
    (_BUILD / "release-notes.md").write_text(text)
    print(f"build/release-notes.md: what CHANGELOG.md says of {version()}")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
