"""The licences of dependencies: as their metadata states them, on the page, and fit for Apache-2.0."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from release.licences import PAGE, fits, installed, licence, of_users


def _licence(folder: Path, *lines: str) -> str:
    place = folder / "package-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", "Name: a-package", "Version: 1.0", *lines]))
    return licence(importlib.metadata.PathDistribution(place).metadata)


@pytest.mark.parametrize(
    ("lines", "stated"),
    [
        pytest.param(["License-Expression: MIT OR Apache-2.0", "License: BSD"], "MIT OR Apache-2.0", id="expression"),
        pytest.param(["License: Apache License 2.0"], "Apache-2.0", id="free text"),
        pytest.param(["Classifier: License :: OSI Approved :: MIT License"], "MIT", id="classifier"),
        pytest.param(
            ["License: BSD-3-Clause", "Classifier: License :: OSI Approved :: BSD License"],
            "BSD-3-Clause",
            id="the exact one of two that say the same",
        ),
        pytest.param(
            [f"Classifier: License :: OSI Approved :: {each}" for each in ("MIT License", "Sleepycat License")],
            "MIT AND unknown",
            id="one that is known and one that is not",
        ),
        pytest.param(["License: as you like", "Classifier: License :: OSI Approved"], "unknown", id="unknown"),
    ],
)
def test_licence_is_what_the_metadata_states(tmp_path: Path, lines: list[str], stated: str) -> None:
    assert _licence(tmp_path, *lines) == stated


@pytest.mark.parametrize(
    ("stated", "fitting"),
    [
        ("MIT AND PSF-2.0", True),
        ("GPL-3.0-only OR MIT", True),
        ("BSD AND GPL AND public domain", False),
        ("AGPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND BSD-3-Clause", True),
        ("unknown", False),
    ],
)
def test_licence_fits_if_one_of_those_to_choose_from_does(stated: str, fitting: bool) -> None:
    assert fits(stated) is fitting


def test_page_has_every_package_that_is_installed_with_its_licence() -> None:
    page = PAGE.read_text()
    found = installed()
    assert len(found) > 100
    assert [f"{name}: {stated}" for name, stated in found.items() if f"| {name} | {stated} |\n" not in page] == []


def test_what_users_install_fits_apache() -> None:
    found, users = installed(), of_users()
    assert {"aws-cdk-lib", "boto3", "botocore", "ministack", "numpy"} <= users
    assert [f"{name}: {found[name]}" for name in sorted(users & found.keys()) if not fits(found[name])] == []
    # a package of users is in the first table of the page
    first, second = PAGE.read_text().split("## What develops Highwater")
    assert [name for name in sorted(users & found.keys()) if f"| {name} |" not in first] == []
    assert [name for name in sorted(users) if f"| {name} |" in second] == []
