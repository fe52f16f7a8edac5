"""docs/acceptance.md says what the suite does."""

from __future__ import annotations

import re

from acceptance.costs import longest
from acceptance.parts.catalogue import PARTS
from tests.cdk_cli import ROOT

PAGE = (ROOT / "docs" / "acceptance.md").read_text()


def test_page_lists_every_part_with_its_minutes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert rows == [(part.name, part.title, str(part.minutes)) for part in PARTS]


def test_page_says_how_many_hours_a_run_takes() -> None:
    planned = sum(part.minutes for part in PARTS) / 60
    most = sum(longest(part.minutes).total_seconds() for part in PARTS) / 3600
    assert f"All parts take {planned:.1f} hours as planned and at most {most:.0f}" in PAGE


def test_facts_of_the_page_are_measured() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "acceptance" / "parts").glob("*.py"))
    # the middle of some names is put in as they are measured
    made = ("raise_", "_shown_seconds", "metric_delay_", "_seconds_after_deploy", "surge_throttled_")
    table = PAGE.split("## What it measures")[1]
    names = [
        name for row in re.findall(r"^\| (`.+?`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    unknown = [name for name in names if name not in sources and not any(part in name for part in made)]
    assert unknown == []
    assert len(names) > 15


def test_each_assumption_of_what_was_not_seen_has_parts_that_settle_it() -> None:
    page = (ROOT / "docs" / "what-was-not-seen.md").read_text()
    _, *last = [row.rsplit("|", 2)[1].strip() for row in page.splitlines() if row.startswith("| ")]
    assert len(last) > 20
    parts = {part.name for part in PARTS}
    for cell in last:
        named = set(re.findall(r"`(\w+)`", cell))
        assert named <= parts
        assert named or cell == "each part that deploys"
