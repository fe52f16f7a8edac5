"""Every page can be found, every link between pages leads somewhere, and the site shows what the pages say."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cdk_highwater
from docs import conf, versions
from tests.cdk_cli import ROOT
from tests.report.test_page import BROWSER

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DOCS = ROOT / "docs"
_PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES = [*_PAGES, *sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("examples/*/README.md"))]
_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
_FENCE_LINE = re.compile(r"^ *```.*$", re.MULTILINE)
# one for each reader: who declares windows, has throttles, runs jobs, reviews costs
_PATHS = ("Declare windows", "Throttles now", "Run jobs", "Review costs")


def _anchors(page: Path) -> set[str]:
    """The addresses of a page's headings, as the code host and the site make them."""
    text = _FENCED.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", each).replace("`", "").lower() for each in headings]
    return {re.sub(r"[^\w\- ]", "", each).strip().replace(" ", "-") for each in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in _LINK.findall(_CODE.sub("", _FENCED.sub("", page.read_text()))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert broken == []


def _listed(index: Path) -> list[str]:
    return [entry for _, entries in conf.menu(index.read_text()) for entry in entries]


def test_index_has_every_page_once_and_nothing_else() -> None:
    pages = [path.relative_to(DOCS) for suffix in ("md", "rst") for path in DOCS.rglob(f"*.{suffix}")]
    # index.md is the list; that of the decisions has a list of its own
    expected = [str(path.with_suffix("")) for path in pages if path.parts[0] != "decisions" and path.stem != "index"]
    assert sorted(_listed(DOCS / "index.md")) == sorted([*expected, "decisions/index"])


def test_index_has_the_sections_of_the_menu() -> None:
    titles = [title for title, _ in conf.menu((DOCS / "index.md").read_text())]
    reference = ["begin", "tables", "scaler and jobs", "try", "operate", "measured", "names", "decisions"]
    assert titles == [*_PATHS, *(f"Reference: {each}" for each in reference)]


def test_each_path_is_read_in_ten_minutes() -> None:
    """Two hundred words a minute, with those of tables and code."""
    paths = dict(conf.menu((DOCS / "index.md").read_text()))
    words = {
        path: sum(len(_FENCE_LINE.sub("", (DOCS / f"{page}.md").read_text()).split()) for page in paths[path])
        for path in _PATHS
    }
    assert {path: count for path, count in words.items() if count > 2_000} == {}


def test_first_page_begins_with_the_four_paths() -> None:
    first = (DOCS / "index.md").read_text().partition("\n## ")[0]
    rows = [line for line in first.splitlines() if line.startswith("| ")][1:]
    linked = [[link.removesuffix(".md") for link in _LINK.findall(row)] for row in rows]
    assert linked == [pages for title, pages in conf.menu((DOCS / "index.md").read_text()) if title in _PATHS]
    readme = (ROOT / "README.md").read_text()
    assert all(f"](docs/{pages[0]}.md)" in readme for pages in linked)


def test_list_of_decisions_has_each_with_its_title() -> None:
    folder = DOCS / "decisions"
    files = sorted(folder.glob("0*.md"))
    lines = [f"- [{path.read_text().splitlines()[0].removeprefix('# ')}]({path.name})" for path in files]
    assert (folder / "index.md").read_text().splitlines()[-len(lines) :] == lines
    assert _listed(folder / "index.md") == [path.stem for path in files]


def test_page_of_recorded_facts_has_each_number_and_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| (\d+)([a-z]?) \|(.*)\|$", (DOCS / "recorded.md").read_text(), re.MULTILINE)
    numbers = [(int(number), letter) for number, letter, _ in rows]
    assert numbers == sorted(set(numbers))
    assert [number for number, letter in numbers if not letter] == [*range(1, 112)]
    lacking = []
    for number, letter, row in rows:
        named = re.findall(r"`(tests/\w+/test_\w+\.py)::(test_\w+)`", row)
        known = [f"def {test}(" in (ROOT / file).read_text() for file, test in named]
        # a fact without a test says so
        if not (all(known) if known else row.rpartition("|")[2].strip().startswith("none: ")):
            lacking.append(f"{number}{letter}")
    assert lacking == []


def test_words_of_the_glossary_are_in_order() -> None:
    tables = re.findall(r"(?:^\|.*\|\n)+", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    for table in tables:
        words = [line.split("|")[1].strip(" [").lower() for line in table.splitlines()[2:]]
        assert words == sorted(words)
    assert len(tables) == 2


def test_pages_repeat_when_on_demand_is_cheaper() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    below = re.search(r"cheaper choice below (\d+) % use", readme)
    assert below is not None
    for page in ("choosing.md", "faq.md"):
        assert f"less than {below[1]} % of" in (DOCS / page).read_text()


def test_menu_is_added_behind_a_page_that_lists_others() -> None:
    page = "# All\n\n## Begin\n\n- [One](one.md): first\n- [Two](sub/two.rst)\n\n## Empty\n\nSee [three](three.md).\n"
    trees = "```{toctree}\n:hidden:\n:caption: Begin\n\none\nsub/two\n```\n"
    assert conf.with_menu(page) == f"{page}\n\n{trees}"
    assert conf.with_menu("- [One](0001-one.md)\n") == (
        "- [One](0001-one.md)\n\n\n```{toctree}\n:hidden:\n\n0001-one\n```\n"
    )


@pytest.mark.parametrize(
    ("page", "link", "address"),
    [
        ("cost", "../README.md", f"{conf.SOURCE}/README.md"),
        ("decisions/index", "../../ci/gitlab.yml", f"{conf.SOURCE}/ci/gitlab.yml"),
        ("decisions/index", "../cost.md#boosts", "../cost.md#boosts"),
        ("cost", "tables.md#indexes", "tables.md#indexes"),
        ("cost", "#boosts", "#boosts"),
        ("cost", "https://example.com/a", "https://example.com/a"),
    ],
)
def test_links_that_leave_the_pages_lead_to_the_code_host(page: str, link: str, address: str) -> None:
    assert conf.with_addresses(page, f"see [it]({link}).") == f"see [it]({address})."


def test_docstrings_become_what_sphinx_reads() -> None:
    lines = ["Sets `floor` to ``x``.", "", "Example:", "    ```python", "    f(`a`)", "", "    g()", "    ```", "End."]
    assert conf.as_restructured(lines) == [
        "Sets ``floor`` to ``x``.",
        "",
        "Example:",
        "    .. code-block:: python",
        "",
        "       f(`a`)",
        "",
        "       g()",
        "",
        "End.",
    ]


@dataclass
class _Kind:
    name: str
    clock: Callable[[], float] = lambda: 0.0
    found: list[str] = field(default_factory=list)
    _seen: int = 0


def test_reference_shows_what_a_class_is_called_with() -> None:
    assert str(conf.constructor_of(_Kind)) == (
        "(name: 'str', clock: 'Callable[[], float]' = ..., found: 'list[str]' = ...)"
    )
    shown = conf.constructor_of(cdk_highwater.ThrottleAwareScaler).parameters
    options = ["topic", "tagged", "dry_run", "reserved_concurrency", "throttle_price_requests"]
    assert list(shown) == ["scope", "id", *options]
    assert shown["dry_run"].default is False
    assert shown["scope"].default is inspect.Parameter.empty


@pytest.mark.cloud
def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """As `make docs` builds it: every page and every docstring is one that the site can be made of."""
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*sphinx, "-d", str(tmp_path / "doctrees"), str(ROOT / "docs"), str(tmp_path / "site")],
        env=os.environ | {"SOURCE_DATE_EPOCH": "1894060800"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "index.html").read_text()
    assert f"Highwater {conf.version}" in page
    assert 'href="boosts.html"' in page
    assert '<p class="built">Built on 2030-01-08 ' in page
    if BROWSER is None:
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        _check_search(tmp_path / "site", browser)
        _check_widths(tmp_path / "site", browser)


def _check_widths(site: Path, browser: Browser) -> None:
    """On a phone no page is wider than the screen, and neither code nor a picture is."""
    page = browser.new_page(viewport={"width": 390, "height": 800})
    wide = """() => [document.documentElement, ...document.querySelectorAll("article pre, article img")]
        .filter(each => each.scrollWidth > each.clientWidth + 1 || each.clientWidth > innerWidth)
        .map(each => each.tagName)"""
    for file in sorted(site.glob("*.html")):
        page.goto(file.as_uri())
        assert page.evaluate(wide) == [], file.name
    page.close()


def _check_search(site: Path, browser: Browser) -> None:
    """Decisions are found, behind all pages for users."""
    page = browser.new_page()
    for words in ("price", "savings plan", "aftermath rollback"):
        page.goto(f"{(site / 'search.html').as_uri()}?q={words}")
        page.locator("p.search-summary", has_text="Search finished").wait_for()
        links = page.locator("#search-results li > a").all()
        found = [str(link.get_attribute("href")) for link in links]
        is_decision = [each.startswith("decisions/") for each in found]
        assert is_decision == sorted(is_decision), f"{words}: {found}"
        assert {True, False} == set(is_decision), f"{words}: {found}"


_COMMIT = "0123456789abcdef0123456789abcdef01234567"
_RUNNER = {
    "GITHUB_SERVER_URL": "https://code.example",
    "GITHUB_REPOSITORY": "someone/fork",
    "GITHUB_RUN_ID": "4711",
}


@pytest.mark.parametrize(
    ("environment", "commit", "is_changed", "said"),
    [
        pytest.param(
            _RUNNER,
            _COMMIT,
            False,
            "Built on 2030-01-08 from commit "
            f'<a class="muted-link" href="{conf.REPOSITORY}/commit/{_COMMIT}">0123456</a> by '
            '<a class="muted-link" href="https://code.example/someone/fork/actions/runs/4711">run 4711</a>.',
            id="by-a-run-of-ci",
        ),
        pytest.param(
            {},
            _COMMIT,
            True,
            "Built on 2030-01-08 from commit "
            f'<a class="muted-link" href="{conf.REPOSITORY}/commit/{_COMMIT}">0123456</a>, '
            "with changes that are not committed, by a local build.",
            id="locally-with-changes",
        ),
        pytest.param({}, "", False, "Built on 2030-01-08 by a local build.", id="of-files-in-no-repository"),
    ],
)
def test_footer_says_day_commit_and_run_of_the_build(
    environment: dict[str, str], commit: str, is_changed: bool, said: str
) -> None:
    late = datetime(2030, 1, 7, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert conf.built(environment, commit, is_changed, late) == said, "the day in UTC, wherever it is built"


def test_releases_are_the_tags_of_versions_and_the_newest_is_first() -> None:
    tags = ["v0.9.1", "v0.10.0", "v0.10.0-rc1", "nightly", "v0.9.10", "0.11.0"]
    assert versions.releases(tags) == ["0.10.0", "0.9.10", "0.9.1"]


@pytest.mark.cloud
def test_each_released_version_is_built_from_its_own_pages_and_leads_to_the_others(tmp_path: Path) -> None:
    repository, out = tmp_path / "repository", tmp_path / "site"
    docs = repository / "docs"
    for folder in ("_templates", "_static"):
        shutil.copytree(DOCS / folder, docs / folder)
    shutil.copy(DOCS / "conf.py", docs)

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        command = ["git", "-C", str(repository), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "--quiet")
    for version, tags in (("0.9.1", ["v0.9.1"]), ("0.10.0", ["v0.10.0", "nightly"])):
        (docs / "index.md").write_text(f"# Pages of {version}\n")
        git("add", "--all")
        git("commit", "--quiet", "--message", version)
        for tag in tags:
            git("tag", tag)
    (docs / "index.md").write_text("# Not released\n\n- [More](more/page.md)\n")
    (docs / "more").mkdir()
    (docs / "more" / "page.md").write_text("# A page in a folder\n")

    assert versions.build(repository, out) == ["main", "0.10.0", "0.9.1"]

    assert sorted(each.name for each in out.iterdir()) == ["0.10.0", "0.9.1", "index.html", "main"]
    assert 'url=0.10.0/index.html"' in (out / "index.html").read_text()
    for version, title in (("main", "Not released"), ("0.10.0", "Pages of 0.10.0"), ("0.9.1", "Pages of 0.9.1")):
        page = (out / version / "index.html").read_text()
        assert f"<h1>{title}<" in page
        assert f"Highwater {version}" in page
        assert re.findall(r'href="(\.\./[^"]+)">', page) == [
            "../main/index.html",
            "../0.10.0/index.html",
            "../0.9.1/index.html",
        ]
    assert 'href="../../0.9.1/index.html">0.9.1<' in (out / "main" / "more" / "page.html").read_text()
    assert git("worktree", "list").count("\n") == 1
