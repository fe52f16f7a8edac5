"""docs/acceptance.md says what the suite does."""

from __future__ import annotations

import math
import re

from rich.console import Console

from acceptance.costs import longest, tell_cost
from acceptance.parts import PARTS
from tests.cdk_cli import ROOT

PAGE = (ROOT / "docs" / "acceptance.md").read_text()


def test_page_lists_every_part_with_its_minutes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert rows == [(part.name, part.title, str(part.minutes)) for part in PARTS]


def test_page_says_how_many_hours_a_run_takes() -> None:
    planned = sum(part.minutes for part in PARTS) / 60
    most = sum(longest(part.minutes).total_seconds() for part in PARTS) / 3600
    assert f"All parts take {planned:.1f} hours as planned and at most {math.ceil(most)}" in PAGE


def test_page_says_what_all_parts_cost() -> None:
    usd = tell_cost(Console(quiet=True), PARTS, "us-east-1")
    assert f"{usd:.2f} USD for all parts" in PAGE


def test_page_explains_what_is_measured() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "acceptance" / "parts").glob("*.py"))
    measured = re.findall(r"stage\.measure\(\s*f?\"([\w{}]+)\"", sources) + re.findall(r'"(\w+_calls)"', sources)
    made = {"{kind}": ("quiet", "loaded", "native", "scaled"), "{units}": ("25", "100", "400")}
    table = PAGE.split("## What it measures")[1]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?`.*?) \|", table, re.MULTILINE)))
    for name in measured:
        kinds = [name.replace(place, kind) for place, kinds in made.items() if place in name for kind in kinds]
        assert name in named or any(kind in named for kind in kinds), name
    patterns = [re.compile(re.sub(r"{\w+}", r"\\w+", name)) for name in measured]
    assert [name for name in named if not any(pattern.fullmatch(name) for pattern in patterns)] == []
    assert len(measured) > 20


def test_each_assumption_of_what_was_not_seen_has_parts_that_settle_it() -> None:
    page = (ROOT / "docs" / "what-was-not-seen.md").read_text()
    _, *last = [row.rsplit("|", 2)[1].strip() for row in page.splitlines() if row.startswith("| ")]
    assert len(last) > 15
    parts = {part.name for part in PARTS}
    for cell in last:
        named = set(re.findall(r"`(\w+)`", cell))
        assert named <= parts
        assert named or cell == "each part that deploys"
