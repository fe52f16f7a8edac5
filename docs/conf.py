"""The pages of docs/ as a site: `make docs` builds it into build/docs, and any warning fails it.

The pages are written for the code host, and nothing in them is for Sphinx alone. What the site needs beside them is
made here: the menu from the lists of index.md, addresses for links that lead out of docs/, and reStructuredText from
docstrings, whose words in backticks and examples are Markdown.
"""

from __future__ import annotations

import html
import importlib.metadata
import inspect
import os
import posixpath
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# what Sphinx reads; its names are not ours to choose
project = "Highwater"
author = "The Highwater contributors"
project_copyright = author
# `make docs-versions` builds several versions, each with links to the others
version = release = os.environ.get("HIGHWATER_DOCS_VERSION") or importlib.metadata.version("cdk-highwater")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
html_theme = "furo"
html_title = f"{project} {version}"
html_copy_source = False
# decisions come last in what a search finds
html_search_scorer = str(Path(__file__).parent / "_templates" / "search_scorer.js")
html_static_path = ["_static"]
html_css_files = ["site.css"]
# of options, it would make one dash of two
smartquotes = False
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "versions.html",
        "sidebar/scroll-end.html",
    ]
}
myst_heading_anchors = 4
napoleon_numpy_docstring = False
autodoc_typehints = "signature"
python_use_unqualified_type_names = True

REPOSITORY: Final = "https://github.com/cdk-highwater/highwater"
SOURCE: Final = f"{REPOSITORY}/blob/main"
_LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s]+)(?=\))")
_ENTRY: Final = re.compile(r"^- \[[^\]]+\]\(([^)#]+)\.(?:md|rst)\)", re.MULTILINE)
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_FENCE: Final = re.compile(r"^( *)```(\w+)$")
_CODE: Final = re.compile(r"(?<![`:\w])`([^`\n]+)`(?![`_])")


class _Unwritten:
    """A default that is made by code, and so cannot be written where it would stand."""

    def __repr__(self) -> str:
        return "..."


_UNWRITTEN: Final = _Unwritten()


def built(environment: Mapping[str, str], commit: str, is_changed: bool, at: datetime) -> str:
    """Return what the footer of each page says of this build, in HTML: its day, commit and run.

    Args:
        environment: The environment variables; those of GitHub's runners name the run.
        commit: The commit that is built, "" if the pages are not in a repository.
        is_changed: Whether the work tree has changes that are not committed.
        at: When it is built.
    """
    link = '<a class="muted-link" href="{}">{}</a>'.format
    said = f"Built on {at.astimezone(UTC):%Y-%m-%d}"
    if commit:
        said += f" from commit {link(f'{REPOSITORY}/commit/{commit}', commit[:7])}"
        said += ", with changes that are not committed," if is_changed else ""
    if run := environment.get("GITHUB_RUN_ID"):
        repository = f"{environment['GITHUB_SERVER_URL']}/{environment['GITHUB_REPOSITORY']}"
        return f"{said} by {link(html.escape(f'{repository}/actions/runs/{run}'), f'run {html.escape(run)}')}."
    return f"{said} by a local build."


def _built_now() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return built(os.environ, _git("rev-parse", "HEAD"), bool(_git("status", "--porcelain")), now)


def _git(*arguments: str) -> str:
    """Return what git says of the checkout with these pages, "" if it says nothing."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def menu(index: str) -> list[tuple[str, list[str]]]:
    """Return the sections of a page that lists others: each title with the documents that its list names, in order.

    Args:
        index: The page in Markdown. What stands before its first section has the title "".
    """
    parts = _SECTION.split(index)
    sections = [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]
    return [(title, entries) for title, text in sections if (entries := _ENTRY.findall(text))]


def with_menu(index: str) -> str:
    """Return a page that lists others with a hidden table of contents for each of its sections."""
    trees = [
        "\n".join(["```{toctree}", ":hidden:", *([f":caption: {title}"] if title else []), "", *entries, "```"])
        for title, entries in menu(index)
    ]
    return "\n\n".join([index, *trees]) + "\n"


def with_addresses(page: str, text: str) -> str:
    """Return a page whose links to what is not in docs/ lead to the code host.

    Args:
        page: The page's path in docs/, without its suffix, such as `decisions/index`.
        text: The page in Markdown.
    """

    def address(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link[1]))
        return link[1] if path.startswith("docs/") else f"{SOURCE}/{path}"

    return _LINK.sub(address, text)


def as_restructured(docstring: list[str]) -> list[str]:
    """Return a docstring's lines with Markdown's words of code, and its blocks of code, in reStructuredText."""
    lines: list[str] = []
    fence: str | None = None
    for line in docstring:
        if fence is None and (opened := _FENCE.match(line)):
            fence = opened[1]
            lines += [f"{fence}.. code-block:: {opened[2]}", ""]
        elif fence is not None and line.strip() == "```":
            fence = None
            lines.append("")
        elif fence is not None:
            lines.append(f"   {line}" if line.strip() else "")
        else:
            lines.append(_CODE.sub(r"``\1``", line))
    return lines


def constructor_of(kind: type) -> inspect.Signature:
    """Return what a class is called with: that of `__init__`, without what is private.

    Constructs have a metaclass that takes anything, and dataclasses have defaults that nobody could write: these are
    shown as `...`.
    """
    signature = inspect.signature(kind.__init__)  # type: ignore[misc]  # of the class itself, and never of an instance
    shown = []
    for parameter in list(signature.parameters.values())[1:]:
        has_default = parameter.default is not inspect.Parameter.empty
        if has_default and (callable(parameter.default) or repr(parameter.default) == "<factory>"):
            parameter = parameter.replace(default=_UNWRITTEN)
        if not parameter.name.startswith("_"):
            shown.append(parameter)
    return signature.replace(parameters=shown, return_annotation=inspect.Signature.empty)


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    if Path(app.env.doc2path(page)).suffix == ".md":
        source[0] = with_addresses(page, source[0])
        if posixpath.basename(page) == "index":
            source[0] = with_menu(source[0])


def _restructure(_app: Sphinx, _what: str, _name: str, _object: object, _options: Any, lines: list[str]) -> None:
    lines[:] = as_restructured(lines)


def _sign(
    _app: Sphinx, what: str, _name: str, documented: Any, _options: Any, signature: str | None, _returned: str | None
) -> tuple[str, None] | None:
    if what != "class" or not signature or "__init__" not in vars(documented):
        return None
    # here, so that this file can be read without Sphinx
    from sphinx.util.inspect import stringify_signature

    return stringify_signature(constructor_of(documented), unqualified_typehints=True), None


# what templates may show
html_context = {"versions": os.environ.get("HIGHWATER_DOCS_VERSIONS", "").split(), "built": _built_now()}


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect what this file does with Sphinx, which calls it."""
    app.connect("source-read", _read)
    # before napoleon, which has 500
    app.connect("autodoc-process-docstring", _restructure, priority=400)
    app.connect("autodoc-process-signature", _sign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
