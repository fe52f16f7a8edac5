"""What a release is refused for before anything is built, and its notes."""

from __future__ import annotations

import re

import pytest

from release.check import ReleaseError, check_tag, notes, version
from tests.cdk_cli import ROOT

CHANGELOG = """\
# Changelog

All that users notice.

## [0.2.0] - 2027-01-09

- Windows have [holidays](docs/windows.md#holidays), as in [this issue](https://example.com/7).

## [0.1.0]

The first release.

## [0.0.9]
"""


def test_tag_is_that_of_the_version() -> None:
    check_tag("v0.2.0", "0.2.0")
    message = "tag v0.2: is not that of the packages, whose version is 0.2.0; expected v0.2.0"
    with pytest.raises(ReleaseError, match=f"^{re.escape(message)}$"):
        check_tag("v0.2", "0.2.0")


def test_notes_are_what_the_changelog_says_of_the_version() -> None:
    address = "https://github.com/cdk-highwater/highwater/blob/v0.2.0/docs/windows.md#holidays"
    assert notes(CHANGELOG, "0.2.0") == (
        f"- Windows have [holidays]({address}), as in [this issue](https://example.com/7).\n"
    )
    assert notes(CHANGELOG, "0.1.0") == "The first release.\n"


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ("0.3.0", "CHANGELOG.md: has no section of 0.3.0; expected a line: ## [0.3.0]"),
        ("0.0.9", "CHANGELOG.md: the section of 0.0.9 is empty; say what users notice"),
    ],
)
def test_changelog_without_the_version_is_refused(stated: str, message: str) -> None:
    with pytest.raises(ReleaseError, match=f"^{re.escape(message)}$"):
        notes(CHANGELOG, stated)


def test_changelog_has_notes_for_the_version_of_the_packages() -> None:
    assert "### Constructs" in notes((ROOT / "CHANGELOG.md").read_text(), version())
