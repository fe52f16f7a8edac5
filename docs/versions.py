"""The site with a folder for each released version, and one for what is not released: `make docs-versions`.

A release is a tag such as `v0.2.0`. Each is built from its own pages and docstrings, and its menu leads to all others.
The site's front page leads to the newest release.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

# the folder of what is not released
UNRELEASED: Final = "main"
_TAG: Final = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
_SOURCES: Final = ("constructs_pkg", "lambda_src", "lab_src", "local_src")
_FRONT: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={version}/index.html">
<title>Highwater</title>
<body><a href="{version}/index.html">Highwater {version}</a></body>
</html>
"""


def releases(tags: Iterable[str]) -> list[str]:
    """Return the versions of the tags that are releases, the newest first: `0.10.0` of `v0.10.0` before `0.9.1`."""
    found = [match for tag in tags if (match := _TAG.fullmatch(tag))]
    return [match[0][1:] for match in sorted(found, key=lambda match: [*map(int, match.groups())], reverse=True)]


def build(repository: Path, out: Path) -> list[str]:
    """Build the site of every version into a folder of *out*, and its front page.

    Args:
        repository: The checkout. What is built of it as `main` is its work tree, with what is not committed.
        out: The folder, which is made.

    Returns:
        The versions, `main` first.

    Raises:
        subprocess.CalledProcessError: A version cannot be built; Sphinx has said why on standard error.
    """
    released = releases(_git(repository, "tag", "--list").split())
    versions = [UNRELEASED, *released]
    out.mkdir(parents=True, exist_ok=True)
    _site(repository, UNRELEASED, versions, out)
    with tempfile.TemporaryDirectory(prefix="highwater-docs-") as folder:
        for version in released:
            tree = Path(folder) / version
            _git(repository, "worktree", "add", "--quiet", "--detach", str(tree), f"v{version}")
            try:
                _site(tree, version, versions, out)
            finally:
                _git(repository, "worktree", "remove", "--force", str(tree))
    (out / "index.html").write_text(_FRONT.format(version=released[0] if released else UNRELEASED))
    return versions


def _site(tree: Path, version: str, versions: Sequence[str], out: Path) -> None:
    # the docstrings of this version, whatever is installed
    environment = {
        "PYTHONPATH": os.pathsep.join(str(tree / part) for part in _SOURCES),
        "HIGHWATER_DOCS_VERSION": version,
        "HIGHWATER_DOCS_VERSIONS": " ".join(versions),
    }
    with tempfile.TemporaryDirectory(prefix="highwater-docs-") as doctrees:
        subprocess.run(
            [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-d", doctrees, tree / "docs", out / version],
            env=os.environ | environment,
            check=True,
        )


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", repository, *arguments], check=True, capture_output=True, text=True).stdout


def main(arguments: Sequence[str]) -> int:
    """Build all versions of this repository, and print where."""
    parser = argparse.ArgumentParser(prog="versions", description=__doc__)
    parser.add_argument("out", type=Path, help="folder to build into")
    given = parser.parse_args(arguments)
    versions = build(Path(__file__).resolve().parents[1], given.out)
    print(f"{given.out / 'index.html'}: {', '.join(versions)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
